//! What one agent is told to run, complete: kept as `launch.json` in the attempt's directory, so that a shim needs
//! nothing else and a restarted agent knows what runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ranges::Ranges;

/// One launch of one job on this node, with as many processes as it has ranks here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Which attempt this is.
    pub attempt: Attempt,
    /// The head's own number for this launch, told back to it.
    pub launch_id: u64,
    /// The epoch of the head that ordered it.
    pub epoch: u64,
    /// Program and arguments; `rota-agent` means the agent's own binary.
    pub command: Vec<String>,
    /// What the job asked to find in its environment.
    pub environment: BTreeMap<String, String>,
    /// Where it runs; made if it is not there.
    pub directory: PathBuf,
    /// Its place among all ranks of the job.
    pub gang: Gang,
    /// What it may use here.
    pub grant: Grant,
    /// What there is to do.
    pub work: Work,
    /// Where it keeps checkpoints.
    pub checkpoint_dir: PathBuf,
    /// Where its data are.
    pub data_dir: PathBuf,
    /// How it is started.
    pub launcher: LauncherKind,
    /// What happens when nobody renews its lease.
    pub on_head_lost: OnHeadLost,
    /// Until when it may run without being renewed, by `clock`; none lasts for ever.
    pub lease_until_ms: Option<u64>,
    /// Time between being asked to stop and being killed, when nobody says otherwise.
    pub grace_ms: u64,
    /// Whether it waits, prepared, until it is told to go.
    pub waits_for_go: bool,
    /// Whether every report of progress is written down with its time, for who measures.
    #[serde(default)]
    pub keeps_progress: bool,
    /// How much output is kept.
    pub log: LogCaps,
}

/// A job's launch: the number of the job and how many times it was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job.
    pub job: u32,
    /// Which launch of it.
    pub incarnation: u32,
}

impl Attempt {
    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (job, incarnation) = text.split_once('.')?;
        Some(Attempt { job: job.parse().ok()?, incarnation: incarnation.parse().ok()? })
    }
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.job, self.incarnation)
    }
}

/// The ranks of a job that run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    /// Place of this node among the job's nodes.
    pub node: u32,
    /// Nodes of the job.
    pub n_nodes: u32,
    /// The first rank here.
    pub first_rank: u32,
    /// How many ranks are here: so many processes are started.
    pub n_ranks: u32,
    /// Ranks in all.
    pub world_size: u32,
}

/// Where ranks meet: rank 0 listens there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendezvous {
    /// Host name or address.
    pub address: String,
    /// A port there.
    pub port: u16,
}

/// What a launch has to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Iterations in all; 0 when nobody knows.
    pub iterations: f64,
    /// Iterations that are done and need not be done again.
    pub done: f64,
    /// Iterations per second by its profile, of its own time: the progress of jobs that report none. 0 when unknown.
    pub rate: f64,
    /// Seconds of its own time it loses before its first iteration.
    pub delay_s: f64,
    /// Seconds of its own time that pass in one real second: more than 1 for emulated jobs only.
    pub time_scale: f64,
}

/// What a launch may use on this node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// GPUs by the number the driver gives them.
    pub gpus: Ranges,
    /// The share of each of them, in thousandths.
    pub gpu_share_milli: u16,
    /// Their kind.
    pub gpu_type: String,
    /// Memory of one of them in bytes; 0 when nobody knows.
    pub gpu_mem_bytes: u64,
    /// CPUs in millionths.
    pub cpu_micro: u64,
    /// CPUs the processes are bound to; empty binds to none.
    pub pinned: Ranges,
    /// Memory in bytes; 0 is no limit.
    pub mem_bytes: u64,
    /// Storage rate in bytes per second, for the job to know; nothing enforces it.
    pub storage_bps: u64,
    /// Whether CPU and memory limits are set in control groups; emulated resources cannot be.
    pub limits: Limits,
}

/// Whether limits are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limits {
    /// By control groups, or by the container runtime.
    Enforced,
    /// Only told to the job.
    Told,
}

/// How processes come to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherKind {
    /// As children of the shim.
    Process,
    /// In containers of docker or podman.
    Container(ContainerSpec),
}

/// What a container launch adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The command line client with its global options: `docker`, or `podman --cgroup-manager=cgroupfs`.
    pub client: Vec<String>,
    /// The image.
    pub image: String,
    /// When to pull it.
    pub pull: Pull,
    /// Directories of the host inside the container.
    pub mounts: Vec<Mount>,
    /// Name of the network; `host` shares the host's.
    pub network: String,
    /// How GPUs are handed in, `{gpus}` standing for their numbers: `--gpus=device={gpus}`. An option that takes one
    /// GPU, such as `--device=nvidia.com/gpu={gpu}`, is repeated for each. Empty hands in none.
    pub gpu_flag: String,
    /// More options of `run`, as they are.
    pub options: Vec<String>,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pull {
    /// At every launch.
    Always,
    /// When it is not here.
    Missing,
    /// Never.
    Never,
}

/// A directory of the host in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is on the host.
    pub host: PathBuf,
    /// Where the container sees it.
    pub container: PathBuf,
    /// Whether the container may write to it.
    pub is_read_only: bool,
}

/// What happens to a job when its lease runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHeadLost {
    /// It is asked for a checkpoint and stopped.
    Stop,
    /// It runs on.
    Keep,
}

/// How much of a job's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCaps {
    /// A file is put aside when it has this many bytes.
    pub file_bytes: u64,
    /// Files kept, the current one included; the oldest goes first.
    pub n_files: u32,
}

impl Default for LogCaps {
    fn default() -> Self {
        LogCaps { file_bytes: 16 << 20, n_files: 4 }
    }
}
