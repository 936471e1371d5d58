//! Launches whose record cannot be read, though they may be alive: they are kept, their GPUs count as taken, and an operator is
//! told. What is alive can still be stopped, because its shim needs no record any more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::launch::account::RunAs;
use crate::launch::spec::{
    Attempt, Gang, Grant, LaunchSpec, LauncherKind, Limits, LogCaps, OnHeadLost, Work,
};
use crate::launch::{environment, survivors};
use crate::probe::Node;
use crate::ranges::Ranges;
use crate::shim::record::{AttemptDir, State};
use crate::shim::{self, ShimError};

/// Whether something of a launch may be alive, or its end is recorded: then its directory must stay.
pub(super) fn must_stay(dir: &AttemptDir) -> bool {
    matches!(shim::lock(dir), Err(ShimError::Held(_))) || !matches!(dir.state(), Ok(None))
}

/// What stands in for the record of a launch: its number, and the GPUs that it holds, as far as its processes show them;
/// otherwise all that no other launch holds.
pub(super) fn stand_in(attempt: Attempt, run_dir: &Path, node: &Node, held: &Ranges) -> LaunchSpec {
    let mut spec = LaunchSpec {
        attempt,
        launch_id: 0,
        epoch: 0,
        command: Vec::new(),
        environment: BTreeMap::new(),
        directory: PathBuf::new(),
        gang: Gang { node: 0, n_nodes: 1, first_rank: 0, n_ranks: 1, world_size: 1 },
        grant: Grant {
            gpus: Ranges::default(),
            gpu_share_milli: 1_000,
            gpu_type: String::new(),
            gpu_mem_bytes: 0,
            cpu_micro: 0,
            pinned: Ranges::default(),
            mem_bytes: 0,
            storage_bps: 0,
            limits: Limits::Told,
            hidden: Vec::new(),
        },
        work: Work { iterations: 0.0, done: 0.0, rate: 0.0, delay_s: 0.0, time_scale: 1.0 },
        checkpoint_dir: PathBuf::new(),
        data_dir: PathBuf::new(),
        launcher: LauncherKind::Process,
        on_head_lost: OnHeadLost::Stop,
        lease_until_ms: None,
        grace_ms: 0,
        waits_for_go: false,
        keeps_progress: false,
        run_as: RunAs::Agent,
        makes_directory: false,
        makes_checkpoint_dir: false,
        log: LogCaps::default(),
        origin: None,
    };
    let shown = survivors::marked(&environment::mark(&spec, run_dir)).into_iter().find_map(|pid| {
        let text = survivors::variable(pid, "CUDA_VISIBLE_DEVICES")?;
        let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.parse().ok()).collect();
        numbers.filter(|numbers| !numbers.is_empty())
    });
    let all = node.gpus.iter().map(|gpu| gpu.number);
    let free: Vec<u32> = all.clone().filter(|number| !held.as_slice().contains(number)).collect();
    // One GPU at least: a launch without any cannot be reported.
    let left = if free.is_empty() { all.take(1).collect() } else { free };
    spec.grant.gpus = shown.unwrap_or(left).into_iter().collect();
    spec
}

/// The last state that was recorded, or that of a launch that runs and has recorded none that can be read.
pub(super) fn state(dir: &AttemptDir, spec: &LaunchSpec) -> State {
    use crate::shim::record::ShimPhase;
    let recorded = dir.state().ok().flatten();
    recorded.unwrap_or_else(|| State { phase: ShimPhase::Running, ..State::without_shim(spec) })
}
