//! Where a command runs: scripts of people need more stack than a thread has by default.

use std::process::ExitCode;
use std::thread;

use anyhow::Result;
use rota_scripts::STACK_BYTES;

use super::{Command, dispatch};

/// Runs a command, with room for scripts if it may run some.
pub(super) fn run(command: Command) -> Result<ExitCode> {
    let threads = match &command {
        // Processes of their own, whose address space is limited; and the live cluster, which runs scripts in such processes.
        Command::SolveChild | Command::DecideChild { .. } | Command::Live(_) => return dispatch(command),
        Command::Study(args) => args.batch.threads,
        _ => None,
    };
    let n_threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    // A pool that could not be made can never be made again, so room for all is asked for first.
    if !has_room_for(n_threads + 1) {
        if let Some(threads) = threads {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
        }
        return dispatch(command);
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .stack_size(STACK_BYTES)
        .build_global()?;
    let running = thread::Builder::new().name("main".into()).stack_size(STACK_BYTES);
    let running = running.spawn(|| dispatch(command))?;
    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Whether the address space of this process, which may be limited, has room for so many threads' stacks.
fn has_room_for(n_threads: usize) -> bool {
    let all = thread::Builder::new().stack_size(STACK_BYTES.saturating_mul(n_threads));
    all.spawn(|| ()).is_ok_and(|thread| thread.join().is_ok())
}
