//! What tests need beyond this repository and a Rust toolchain. Only tests and benchmarks depend on this crate.

pub mod accounts;
pub mod need;
pub mod ports;
mod skips;
