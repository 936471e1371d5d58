//! Launches whose record cannot be read, though they may be alive: they are kept, their GPUs count as taken, and an operator is
//! told. What is alive can still be stopped, because its shim needs no record any more.

use std::path::Path;

use rota_core::resources::Host;

use super::launches::KnownLaunch;
use crate::launch::spec::Attempt;
use crate::launch::{environment, survivors};
use crate::probe::Node;
use crate::ranges::Ranges;
use crate::shim::record::{AttemptDir, ShimPhase, State};
use crate::shim::{self, ShimError};

/// Whether something of a launch may be alive, or its end is recorded: then its directory must stay.
pub(super) fn must_stay(dir: &AttemptDir) -> bool {
    matches!(shim::lock(dir), Err(ShimError::Held(_))) || !matches!(dir.state(), Ok(None))
}

/// What is known of a launch without its record: its number, and the GPUs that it holds, as far as its processes show them;
/// otherwise all that no other launch holds.
pub(super) fn stand_in(attempt: Attempt, run_dir: &Path, node: &Node, held: &Ranges) -> KnownLaunch {
    let all = node.gpus.iter().map(|gpu| gpu.number);
    let free: Vec<u32> = all.clone().filter(|number| !held.as_slice().contains(number)).collect();
    // One GPU at least: a launch without any cannot be reported.
    let left = if free.is_empty() { all.take(1).collect() } else { free };
    KnownLaunch {
        attempt,
        launch_id: 0,
        epoch: 0,
        n_nodes: 1,
        gpus: shown(attempt, run_dir).unwrap_or(left).into_iter().collect(),
        gpu_share_milli: 1_000,
        host: Host::NONE,
        pinned: Ranges::default(),
        is_container: false,
        done: 0.0,
        origin: None,
    }
}

/// The GPUs that processes of a launch were told to use.
fn shown(attempt: Attempt, run_dir: &Path) -> Option<Vec<u32>> {
    survivors::marked(&environment::mark(attempt, run_dir)).into_iter().find_map(|pid| {
        let text = survivors::variable(pid, "CUDA_VISIBLE_DEVICES")?;
        let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.parse().ok()).collect();
        numbers.filter(|numbers| !numbers.is_empty())
    })
}

/// The last state that was recorded, or that of a launch that runs and has recorded none that can be read.
pub(super) fn state(dir: &AttemptDir) -> State {
    let recorded = dir.state().ok().flatten();
    recorded.unwrap_or_else(|| State { phase: ShimPhase::Running, ..State::without_shim(0.0) })
}
