//! The laboratory: results of runs and all that is made of them. It knows no live head, no command line and no terminal
//! width: `rota`, the package around it, has those.

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
