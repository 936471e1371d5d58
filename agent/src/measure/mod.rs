//! One run of one command, under a shim as every launch is, watched closely: every report and every line with its time,
//! within limits of time, silence and memory. What the times mean is decided by `rota profile`.
//!
//! Nothing outlives this process: when its input ends it stops the run, and when it is killed itself the shim's lease
//! ends, which it renews every second.

mod memory;
mod watch;

use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use rota_transport::measure::{MeasureContainer, MeasureEvent, MeasureOrder, MeasureResources, MeasureSpec};

use crate::clock::now_ms;
use crate::launch::account::RunAs;
use crate::launch::cgroup;
use crate::launch::spec::*;
use crate::probe;
use crate::ranges::Ranges;
use crate::shim::record::{AttemptDir, RecordError};
use watch::Watch;

/// A shim whose lease is not renewed for this long stops its launch.
const LEASE_MS: u64 = 10_000;

/// A run that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The first line of the input is not an order.
    #[error("standard input: {0}")]
    Spec(String),
    /// More than this machine has.
    #[error(
        "{asked} {what} are asked for and this machine has {present}; --pretend tells the command so and limits nothing"
    )]
    TooMuch {
        /// What there is too little of: GPUs, CPUs, memory.
        what: &'static str,
        /// How much is asked for.
        asked: String,
        /// How much the machine has, with its unit.
        present: String,
    },
    /// A file that cannot be made.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder that was tried.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A record that cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The program that ordered the measurement no longer reads its events.
    #[error("standard output: {0}")]
    Output(io::Error),
}

/// Reads what to run from standard input and reports on standard output until it has ended.
pub fn run() -> Result<(), MeasureError> {
    let mut lines = io::stdin().lock().lines();
    let first =
        lines.next().and_then(Result::ok).ok_or_else(|| MeasureError::Spec("nothing to run".to_owned()))?;
    let spec: MeasureSpec = serde_json::from_str(&first).map_err(|e| MeasureError::Spec(e.to_string()))?;
    drop(lines);
    let (orders, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str::<MeasureOrder>(&line) {
                Ok(order) if orders.send(order).is_ok() => {}
                _ => return,
            }
        }
    });
    let prepared = Prepared::new(&spec)?;
    let mut out = io::stdout().lock();
    let tell = |event: &MeasureEvent| {
        let line = serde_json::to_string(event).unwrap_or_default() + "\n";
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(MeasureError::Output)
    };
    Watch::new(spec, prepared)?.run(&heard, tell)
}

/// A launch whose record is written, and how its limits are enforced.
struct Prepared {
    launch: LaunchSpec,
    dir: AttemptDir,
    /// Whether this process must look at the memory, because nothing else limits it.
    watches_memory: bool,
    warnings: Vec<String>,
}

impl Prepared {
    fn new(spec: &MeasureSpec) -> Result<Self, MeasureError> {
        let attempt = Attempt { job: spec.number, incarnation: 1 };
        let path = spec.run_dir.join("attempts").join(attempt.to_string());
        let wrong = |source| MeasureError::File { path: path.clone(), source };
        fs::create_dir_all(&path).map_err(wrong)?;
        let dir = AttemptDir::new(&path);
        let mut warnings = Vec::new();
        let (grant, watches_memory) = grant(spec, &mut warnings)?;
        let launch = LaunchSpec {
            attempt,
            launch_id: 1,
            epoch: 1,
            command: spec.command.clone(),
            environment: spec.environment.clone(),
            directory: spec.directory.clone(),
            gang: Gang { node: 0, n_nodes: 1, first_rank: 0, n_ranks: 1, world_size: 1 },
            grant,
            work: Work {
                iterations: spec.iterations,
                done: spec.done,
                rate: 0.0,
                delay_s: 0.0,
                time_scale: 1.0,
            },
            checkpoint_dir: spec.checkpoint_dir.clone(),
            data_dir: spec.data_dir.clone(),
            launcher: spec.container.as_ref().map_or(LauncherKind::Process, container),
            on_head_lost: OnHeadLost::Stop,
            lease_until_ms: Some(now_ms() + LEASE_MS),
            grace_ms: (spec.grace_s.clamp(0.0, 3_600.0) * 1e3) as u64,
            waits_for_go: false,
            keeps_progress: true,
            run_as: RunAs::Agent,
            makes_directory: false,
            makes_checkpoint_dir: false,
            log: LogCaps::default(),
        };
        dir.set_launch(&launch)?;
        Ok(Prepared { launch, dir, watches_memory, warnings })
    }

    fn start_shim(&self) -> Result<Child, MeasureError> {
        let path = self.dir.shim_log();
        let wrong = |source| MeasureError::File { path: path.clone(), source };
        let log = fs::OpenOptions::new().create(true).append(true).open(&path).map_err(wrong)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg("shim").arg(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.process_group(0).spawn().map_err(wrong)
    }
}

/// What the command gets, and whether its memory must be watched from here.
fn grant(spec: &MeasureSpec, warnings: &mut Vec<String>) -> Result<(Grant, bool), MeasureError> {
    let is_held = spec.resources == MeasureResources::Held;
    let (gpus, gpu_type) = gpus(spec, warnings)?;
    let mut grant = Grant {
        gpus,
        gpu_share_milli: 1000,
        gpu_type,
        gpu_mem_bytes: 0,
        cpu_micro: spec.cpu_micro,
        pinned: Ranges::default(),
        mem_bytes: spec.mem_bytes,
        storage_bps: spec.storage_bps,
        limits: Limits::Told,
        hidden: Vec::new(),
    };
    if !is_held {
        return Ok((grant, false));
    }
    let topology = probe::read_topology();
    let cpus = topology.cpus();
    let too_much = |what, asked: String, present: String| Err(MeasureError::TooMuch { what, asked, present });
    if spec.cpu_micro > cpus.len() as u64 * 1_000_000 {
        return too_much("CPUs", (spec.cpu_micro as f64 / 1e6).to_string(), cpus.len().to_string());
    }
    if spec.mem_bytes > topology.mem_bytes() && topology.mem_bytes() > 0 {
        let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        return too_much("of memory", gb(spec.mem_bytes), gb(topology.mem_bytes()));
    }
    let n_whole = spec.cpu_micro.div_ceil(1_000_000).max(1) as usize;
    grant.pinned = cpus.as_slice().iter().take(n_whole).copied().collect();
    if spec.container.is_some() {
        // The runtime limits.
        grant.limits = Limits::Enforced;
        return Ok((grant, false));
    }
    match cgroup::support() {
        Ok(_) => {
            grant.limits = Limits::Enforced;
            Ok((grant, false))
        }
        Err(error) => {
            let parts = !spec.cpu_micro.is_multiple_of(1_000_000);
            let cpus = if parts { ", parts of CPUs are not limited" } else { "" };
            warnings.push(format!(
                "{error}: the command is bound to its CPUs and stopped when it uses too much memory{cpus}"
            ));
            Ok((grant, spec.mem_bytes > 0))
        }
    }
}

fn gpus(spec: &MeasureSpec, warnings: &mut Vec<String>) -> Result<(Ranges, String), MeasureError> {
    let numbers = |n: u32| (0..n).collect::<Ranges>();
    if spec.resources == MeasureResources::Told {
        return Ok((numbers(spec.gpus), spec.gpu_type.clone()));
    }
    let found = probe::find_gpus().unwrap_or_default();
    match (spec.gpus, found.len()) {
        (0, _) => Ok((Ranges::default(), spec.gpu_type.clone())),
        // Data loading and CPU training are profiled as if for one GPU.
        (1, 0) => {
            warnings.push("this machine has no GPU: CPUs and memory are measured as those of one".to_owned());
            Ok((numbers(1), spec.gpu_type.clone()))
        }
        (asked, present) if asked as usize > present => Err(MeasureError::TooMuch {
            what: "GPUs",
            asked: asked.to_string(),
            present: present.to_string(),
        }),
        (asked, _) => {
            let taken = found.iter().take(asked as usize);
            let model = found.first().map(|gpu| gpu.model.clone()).unwrap_or_default();
            let gpu_type = if spec.gpu_type.is_empty() { model } else { spec.gpu_type.clone() };
            Ok((taken.map(|gpu| gpu.number).collect(), gpu_type))
        }
    }
}

fn container(container: &MeasureContainer) -> LauncherKind {
    let mount = |(host, inside): &(PathBuf, PathBuf)| Mount {
        host: host.clone(),
        container: inside.clone(),
        is_read_only: false,
    };
    LauncherKind::Container(ContainerSpec {
        client: container.client.clone(),
        image: container.image.clone(),
        pull: Pull::Missing,
        mounts: container.mounts.iter().map(mount).collect(),
        network: "host".to_owned(),
        gpu_flag: container.gpu_flag.clone(),
        options: container.options.clone(),
    })
}
