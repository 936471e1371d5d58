//! Models as text: MPS (free and fixed) and LP. Pure functions over `&str`; files are read and written in [`crate::files`].
//!
//! Both readers take what the common solvers write for linear models, and refuse the rest (quadratic terms,
//! special ordered sets, semi-continuous variables) by line and column. Numbers are written so that they
//! read back to the same bits.

mod lp_lexer;
mod lp_read;
mod lp_write;
mod mps_fields;
mod mps_read;
mod mps_write;

pub use lp_read::read_lp;
pub use lp_write::write_lp;
pub use mps_read::read_mps;
pub use mps_write::write_mps;
