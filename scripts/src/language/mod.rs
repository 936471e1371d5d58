//! The Rhai host: the engine, what a script may use up, how its errors are explained, and the table of its verbs.
//!
//! Nothing here knows what a policy decides: types and verbs are in `values`, stages in `policy`.

pub(crate) mod arrays;
pub(crate) mod engine;
pub(crate) mod error;
pub(crate) mod limits;
pub mod memory;
pub(crate) mod names;
pub(crate) mod nearest;
pub(crate) mod operators;
pub(crate) mod parameters;
pub(crate) mod private;
pub mod reference;
pub(crate) mod session;
pub(crate) mod tally;
pub(crate) mod texts;
pub(crate) mod trace;
