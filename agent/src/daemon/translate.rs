//! Translates between the types of the wire and those of a launch's record on this node.

use std::path::{Path, PathBuf};

use rota_core::allocation::GpuSet;
use rota_core::ids::{Incarnation, JobId};
use rota_transport::message as wire;
use rota_transport::value::{GpuShare, Gpus, HostAmount, Iterations, LongText, Text};

use super::launches::KnownLaunch;
use crate::launch::account::RunAs;
use crate::launch::devices::{self, Device};
use crate::launch::spec::{
    Attempt, ContainerSpec, Gang, Grant, LaunchSpec, LauncherKind, Limits, LogCaps, Mount, OnHeadLost, Pull,
    Work,
};
use crate::options::{LaunchOptions, PlaceOptions};
use crate::probe::Node;
use crate::ranges::Ranges;
use crate::shim::record::{Exit, ShimPhase, State};

/// How much of the last output goes with the report of an end.
const MOST_TAIL_BYTES: usize = 16 * 1024;

/// Sizes of a file of output, ...
const LEAST_LOG_FILE_BYTES: u64 = 64 << 10;
const MOST_LOG_FILE_BYTES: u64 = 64 << 20;
/// ... and how many of them are kept for a launch.
const MOST_LOG_FILES: u32 = 16;

/// A launch that asks for what this node does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OrderError {
    /// A GPU that is not there.
    #[error("GPU {gpu} is asked for, this node has {n_gpus}, numbered from 0")]
    NoSuchGpu {
        /// The GPU that was ordered, as the head counts them.
        gpu: u32,
        /// GPUs that this node has.
        n_gpus: usize,
    },
}

/// What the agent adds to an order.
pub(super) struct Local<'a> {
    pub(super) node: &'a Node,
    pub(super) places: &'a PlaceOptions,
    pub(super) options: &'a LaunchOptions,
    pub(super) limits: Limits,
    pub(super) epoch: wire::Epoch,
    pub(super) lease_until_ms: Option<u64>,
    pub(super) run_as: RunAs,
    pub(super) hidden: Vec<Device>,
}

/// The number of a launch here.
pub(super) fn attempt(attempt: wire::Attempt) -> Attempt {
    Attempt { job: attempt.job.0, incarnation: attempt.incarnation.0 }
}

/// The number of a launch as messages carry it.
pub(super) fn to_wire(attempt: Attempt) -> wire::Attempt {
    wire::Attempt { job: JobId(attempt.job), incarnation: Incarnation(attempt.incarnation) }
}

/// GPUs by the driver's numbers, and CPUs near them.
pub(super) fn gpus(launch: &wire::Launch, node: &Node) -> Result<(Ranges, Ranges), OrderError> {
    let mut numbers = Vec::new();
    let mut near = Vec::new();
    for local in launch.gpus.set().iter() {
        let gpu = node.gpus.get(local as usize);
        let gpu = gpu.ok_or(OrderError::NoSuchGpu { gpu: local, n_gpus: node.gpus.len() })?;
        numbers.push(gpu.number);
        near.extend(gpu.near_cpus.as_slice());
    }
    Ok((numbers.into_iter().collect(), near.into_iter().collect()))
}

/// Devices of the machine's GPUs that a launch was not given; none if those it was given cannot be told from the others.
pub(super) fn hidden(given: &Ranges, node: &Node) -> Vec<Device> {
    let numbers = given
        .as_slice()
        .iter()
        .map(|number| node.gpus.iter().find(|gpu| gpu.number == *number)?.device_number);
    match numbers.collect::<Option<Vec<u32>>>() {
        Some(numbers) => devices::gpus_except(Path::new("/dev"), &numbers),
        None => Vec::new(),
    }
}

/// Everything a shim needs to know.
pub(super) fn spec(launch: &wire::Launch, gpus: Ranges, pinned: Ranges, local: &Local<'_>) -> LaunchSpec {
    let attempt = attempt(launch.attempt);
    let host = launch.host.host();
    let first = launch.gpus.set().iter().next().and_then(|gpu| local.node.gpus.get(gpu as usize));
    let numbers = launch.gang.numbers();
    let job_dir = |text: &Text, default: PathBuf| match text.as_str() {
        "" => default,
        path => PathBuf::from(path),
    };
    let home = local.places.run_dir.join("work").join(attempt.job.to_string());
    LaunchSpec {
        attempt,
        launch_id: launch.id,
        epoch: local.epoch.0,
        command: command(launch),
        environment: launch.env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        directory: job_dir(&launch.working_directory, home),
        gang: Gang {
            node: numbers.node_rank,
            n_nodes: numbers.n_nodes,
            first_rank: numbers.first_rank,
            n_ranks: numbers.n_ranks,
            world_size: numbers.world_size,
        },
        grant: Grant {
            gpus,
            gpu_share_milli: launch.share.thousandths(),
            gpu_type: first.map(|gpu| gpu.model.clone()).unwrap_or_default(),
            gpu_mem_bytes: first.map_or(0, |gpu| gpu.mem_bytes),
            cpu_micro: host.cpu_micro,
            pinned,
            mem_bytes: host.mem_bytes,
            storage_bps: host.storage_bps,
            limits: local.limits,
            hidden: local.hidden.clone(),
        },
        work: Work {
            iterations: launch.work.to_do.count(),
            done: launch.work.done.count(),
            rate: launch.work.rate.per_s(),
            delay_s: launch.work.delay.span().as_secs_f64(),
            time_scale: launch.time_scale.factor(),
        },
        checkpoint_dir: job_dir(&launch.checkpoint_directory, local.places.checkpoints_of(attempt.job)),
        data_dir: local.places.data_dir(),
        launcher: launcher(&launch.launcher, local.options),
        on_head_lost: match launch.on_head_lost {
            wire::OnHeadLost::Stop => OnHeadLost::Stop,
            wire::OnHeadLost::Keep => OnHeadLost::Keep,
        },
        lease_until_ms: local.lease_until_ms,
        grace_ms: millis(launch.grace.span()),
        waits_for_go: launch.start == wire::Start::WhenTold,
        run_as: local.run_as.clone(),
        makes_directory: launch.working_directory.as_str().is_empty(),
        makes_checkpoint_dir: launch.checkpoint_directory.as_str().is_empty(),
        keeps_progress: false,
        log: log_caps(launch.log),
        origin: launch.request.as_ref().map(|request| {
            let (attempt, user, n_nodes) = (launch.attempt, launch.user.clone(), numbers.n_nodes);
            Box::new(wire::Origin { attempt, user, request: (**request).clone(), n_nodes })
        }),
    }
}

/// How much output is kept: what was asked for, as far as one job may fill the disk of a node, and not in so small files that turning
/// them over takes all the time of a shim.
fn log_caps(asked: wire::LogLimits) -> LogCaps {
    LogCaps {
        file_bytes: asked.file_bytes.clamp(LEAST_LOG_FILE_BYTES, MOST_LOG_FILE_BYTES),
        n_files: u32::from(asked.n_files).clamp(1, MOST_LOG_FILES),
    }
}

/// Whole milliseconds of a length of time.
pub(super) fn millis(span: rota_core::time::Span) -> u64 {
    u64::try_from(span.0 / 1_000).unwrap_or(0)
}

/// An emulated job is this program itself; arguments of the order are appended.
fn command(launch: &wire::Launch) -> Vec<String> {
    let given = launch.argv.iter().map(Text::to_string);
    if launch.launcher != wire::Launcher::Emulated {
        return given.collect();
    }
    let seconds = |wait: rota_transport::value::Wait| format!("{}s", wait.span());
    let own = [
        "rota-agent".to_owned(),
        "emulate".to_owned(),
        format!("--rate={}", launch.work.rate.per_s().max(1e-9)),
        format!("--delay={}", seconds(launch.work.delay)),
        format!("--checkpoint-every={}", seconds(launch.work.checkpoint_every)),
        format!("--time-scale={}", launch.time_scale.factor()),
    ];
    own.into_iter().chain(given).collect()
}

fn launcher(launcher: &wire::Launcher, options: &LaunchOptions) -> LauncherKind {
    let wire::Launcher::Container(container) = launcher else { return LauncherKind::Process };
    let mount = |mount: &wire::Mount| Mount {
        host: PathBuf::from(mount.source.as_str()),
        container: PathBuf::from(mount.target.as_str()),
        is_read_only: mount.is_read_only,
    };
    LauncherKind::Container(ContainerSpec {
        client: options.container_client.split_whitespace().map(str::to_owned).collect(),
        image: container.image.to_string(),
        pull: match container.pull {
            wire::Pull::Missing => Pull::Missing,
            wire::Pull::Always => Pull::Always,
            wire::Pull::Never => Pull::Never,
        },
        mounts: container.mounts.iter().map(mount).collect(),
        network: container.network.to_string(),
        gpu_flag: options.container_gpu_flag.clone(),
        options: options.container_option.clone(),
    })
}

/// What a node has and runs.
pub(super) fn inventory(node: &Node, rack: u32, attempts: Vec<wire::AttemptInfo>) -> wire::Inventory {
    let gpus = node.gpus.iter().enumerate().map(|(index, gpu)| wire::GpuInfo {
        index: index as u32,
        uuid: Text::cut(&gpu.uuid),
        model: Text::cut(&gpu.model),
        mem_bytes: gpu.mem_bytes,
        numa: node.topology.numa_near(&gpu.near_cpus).unwrap_or(0),
        is_healthy: gpu.trouble.is_none(),
    });
    let numa = node.topology.numa.iter().map(|numa| wire::NumaInfo {
        index: numa.number,
        cpus: numa
            .cpus
            .and(&node.cpus)
            .as_slice()
            .iter()
            .filter_map(|cpu| u16::try_from(*cpu).ok())
            .collect(),
        mem_bytes: numa.mem_bytes,
    });
    wire::Inventory {
        gpus: gpus.collect(),
        host: HostAmount::new(node.host).ok(),
        numa: numa.collect(),
        attempts,
        rack,
        is_emulated: node.is_emulated,
    }
}

/// A launch as an inventory shows it; none when its record has values that no message can carry.
pub(super) fn attempt_info(launch: &KnownLaunch, state: &State, node: &Node) -> Option<wire::AttemptInfo> {
    let places = launch.gpus.as_slice().iter();
    let local = places.filter_map(|number| node.gpus.iter().position(|gpu| gpu.number == *number));
    let gpus = Gpus::new(GpuSet(local.fold(0, |set, index| set | 1 << index))).ok()?;
    Some(wire::AttemptInfo {
        attempt: to_wire(launch.attempt),
        epoch: wire::Epoch(launch.epoch),
        gpus,
        share: GpuShare::new(launch.gpu_share_milli).ok()?,
        host: HostAmount::new(launch.host).ok()?,
        state: match &state.phase {
            ShimPhase::Preparing | ShimPhase::Prepared => wire::AttemptState::Prepared,
            ShimPhase::Running => wire::AttemptState::Running,
            ShimPhase::Stopping => wire::AttemptState::Stopping,
            ShimPhase::Ended(end) => wire::AttemptState::Exited(end.clone()),
        },
        iterations: iterations(state.iterations),
        checkpointed: iterations(state.checkpointed),
        launch: launch.launch_id,
        n_nodes: launch.n_nodes,
    })
}

/// The report of an end.
pub(super) fn exited(attempt: Attempt, state: &State, end: &Exit, log: &std::path::Path) -> wire::Exited {
    wire::Exited {
        attempt: to_wire(attempt),
        exit: end.clone(),
        iterations: iterations(state.iterations),
        checkpointed: iterations(state.checkpointed),
        tail: LongText::cut(&crate::shim::log::tail(log, MOST_TAIL_BYTES)),
    }
}

/// A count for the wire; an invalid number becomes 0.
pub(super) fn iterations(count: f64) -> Iterations {
    Iterations::new(count).unwrap_or(Iterations::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_cannot_fill_the_disk_with_output_or_keep_its_shim_busy_with_files() {
        let caps = |file_bytes, n_files| log_caps(wire::LogLimits { file_bytes, n_files });
        assert_eq!(caps(16 << 20, 4), LogCaps::default());
        assert_eq!(caps(u64::MAX, u16::MAX), LogCaps { file_bytes: 64 << 20, n_files: 16 });
        assert_eq!(caps(0, 0), LogCaps { file_bytes: 64 << 10, n_files: 1 });
    }
}
