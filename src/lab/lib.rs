//! The laboratory: results of runs and everything that is made from them. It does not depend on the live head, the command
//! line or the width of a terminal: those belong to `rota`, the package around it.

pub mod conform;
pub mod diff;
pub mod duel;
pub mod explain;
pub mod export;
pub mod original;
pub mod profile;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod shared;
pub mod solve;
pub mod statistics;
pub mod study;
