//! What `rota policy` does, as functions that return what is to be shown: list, show, check, new, test, bench, defs.
//!
//! Printing and reading the command line is left to the binary.

mod bench;
mod check;
mod error;
mod list;
mod new;
pub mod sample;
mod test;

pub use bench::{Timing, bench};
pub use check::check;
pub use error::TryError;
pub use list::{list, show};
pub use new::{NewError, STARTER, new};
pub use test::{TestError, test};

pub use crate::language::reference::definitions as defs;
pub use crate::scenario::Report;
