//! The algorithms behind the larger verbs, without Rhai: `values` gives them their names in scripts.

pub mod fairness;
pub(crate) mod leases;
pub mod optimum;
pub mod shares;
