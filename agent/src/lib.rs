//! The node daemon as a library, for its binary and its tests.
//!
//! `probe` finds what a node has, `check` reports whether it is ready, `accounts` says whose account a job runs under, `launch`
//! starts and ends processes and containers,
//! `shim` watches one launch, `job` has the messages between a job and its node, `emulate` is an emulated job, `measure` runs
//! one command once and reports on it, `options` and `settings` are what an operator chooses.

pub mod accounts;
pub mod check;
pub mod clock;
pub mod daemon;
pub mod emulate;
pub mod job;
pub mod launch;
pub mod measure;
pub mod options;
pub mod probe;
pub mod ranges;
pub mod settings;
pub mod shim;
