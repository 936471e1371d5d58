//! The node daemon as a library, for its binary and its tests.
//!
//! `probe` finds what a node has, `check` reports whether it is ready, `launch` starts and ends processes and containers,
//! `shim` watches one launch, `job` is what jobs and their nodes say to each other, `emulate` pretends to be a job, `measure`
//! runs one command once and says how it fared, `options` and `settings` are what an operator says.

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
