//! The operator's binary: parses the command line and hands over.

use std::process::ExitCode;

/// Counts what scripts allocate, so that their memory limit holds.
#[global_allocator]
static ALLOCATOR: rota_scripts::memory::CountingAllocator = rota_scripts::memory::CountingAllocator;

fn main() -> ExitCode {
    rota::commands::main()
}
