//! Chronus' leases over a view: which jobs hold one, what is promised for the
//! leases to come, and which jobs may be promised more.
//!
//! ```text
//!  memory ─▶ LeaseBook ─▶ night   fewer nodes for the leases of the night      (`night`)
//!             │  └─▶ term    the lease model, at a boundary               (`term`, `known`)
//!             │  └─▶ admit   newcomers, packed next to the promises       (`book`)
//!             └─▶ memory (plain numbers), columns for the script
//! ```
//!
//! Packing and model are [`rota_solvers::chronus_leases`]; the order in which jobs without a lease run is the script's.

mod book;
mod known;
mod memory;
mod night;
mod term;

pub(crate) use book::{LeaseBook, LeaseRules};
pub(crate) use night::Saving;
pub(crate) use term::{Found, TermOptions};
