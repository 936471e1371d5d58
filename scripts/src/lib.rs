//! Policies as scripts: the Rhai host, and every policy that comes with Rota.
//!
//! A script says *what*; loops over jobs, nodes and time are native verbs it calls. [`ScriptPolicy`] composes
//! scripts into a [`Policy`](rota_core::policy::Policy): each part fills the stages it defines (`admit`, `order`,
//! `allocate`, `place`, or `decide` for all at once), the rest have defaults. Scripts have no clock and no files,
//! and [`Limits`] on everything. Rhai's types stay in this crate.

pub mod artifact;
pub mod commands;
mod compose;
mod engine;
mod error;
pub mod fairness;
mod leases;
mod limits;
pub mod memory;
mod nearest;
pub mod optimum;
mod parameters;
mod part;
mod policy;
mod private;
mod rank;
pub mod reference;
pub mod sample;
pub mod scenario;
mod session;
pub mod shares;
pub mod shipped;
mod solving;
mod stages;
pub mod study;
mod trace;
mod values;
mod variant;

pub use compose::Source;
pub use error::{LoadError, ScriptError};
pub use limits::Limits;
pub use parameters::{Domain, Parameter, SetError, Value};
pub use part::Stage;
pub use policy::ScriptPolicy;
