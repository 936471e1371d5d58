//! Rota's operator side: commands, results, reports. The binary in `main.rs` is a thin door to it.

pub mod commands;
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
mod shared;
pub mod solve;
pub mod statistics;
pub mod study;
