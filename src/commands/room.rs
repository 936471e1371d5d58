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
    let room = thread::Builder::new().name("main".into()).stack_size(STACK_BYTES);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).stack_size(STACK_BYTES);
    // Where address space is short, a pool with small stacks is made when it is needed.
    let has_pool = pool.build_global().is_ok();
    if let (false, Some(threads)) = (has_pool, threads) {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let mut waiting = Some(command);
    let done = thread::scope(|scope| {
        let running = room.spawn_scoped(scope, || waiting.take().map(dispatch)).ok()?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    // There was no room: what it runs may still be no chain of closures.
    done.or_else(|| waiting.map(dispatch)).unwrap_or(Ok(ExitCode::FAILURE))
}
