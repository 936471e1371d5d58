//! What `rota policy` does, as functions that return what is to be shown: list, show, check, new, test, bench,
//! profile, defs.
//!
//! Printing and reading the command line is left to the binary.

mod bench;
pub(crate) mod check;
mod error;
mod hours;
mod list;
mod new;
mod profile;
pub mod sample;
mod test;

pub use bench::{Timing, bench};
pub use check::{check, diagnose};
pub use error::TryError;
pub use list::{about, list, show};
pub use new::{NewError, STARTER, new};
pub use profile::{CodeLine, Profile, Spent, profile};
pub use test::{TestError, test};

pub use crate::language::reference::definitions as defs;
pub use crate::scenario::Report;
