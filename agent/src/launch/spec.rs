//! Everything a node needs to know to run a launch. It is kept as `launch.json` in the attempt's directory: a shim needs
//! nothing else, and a restarted agent reads there what is running.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::account::RunAs;
use super::devices::Device;
use crate::ranges::Ranges;

/// One launch of one job on this node, with as many processes as it has ranks here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// The job and the number of this launch of it.
    pub attempt: Attempt,
    /// The head's own number for this launch, which reports repeat.
    pub launch_id: u64,
    /// The epoch of the head that ordered it.
    pub epoch: u64,
    /// Program and arguments; `rota-agent` means the agent's own binary.
    pub command: Vec<String>,
    /// What the job asked to find in its environment.
    pub environment: BTreeMap<String, String>,
    /// Where it runs. If it is not there, the agent's user makes it; other accounts must have it.
    pub directory: PathBuf,
    /// Its place among all ranks of the job.
    pub gang: Gang,
    /// What it may use here.
    pub grant: Grant,
    /// What there is to do.
    pub work: Work,
    /// The folder in which the job keeps its checkpoints.
    pub checkpoint_dir: PathBuf,
    /// The folder in which jobs find their data.
    pub data_dir: PathBuf,
    /// Whether it runs as processes or as containers.
    pub launcher: LauncherKind,
    /// What happens when its lease is not renewed.
    pub on_head_lost: OnHeadLost,
    /// Until when it may run without being renewed, by `clock`; none lasts for ever.
    pub lease_until_ms: Option<u64>,
    /// Time between being asked to stop and being killed, unless the order says otherwise.
    pub grace_ms: u64,
    /// Whether it waits, prepared, for `ToShim::Go`.
    pub waits_for_go: bool,
    /// Whether every report of progress is kept with its time, for measurements.
    #[serde(default)]
    pub keeps_progress: bool,
    /// Who its processes run as.
    #[serde(default)]
    pub run_as: RunAs,
    /// Whether the directory is the agent's, which gives it to the account.
    #[serde(default)]
    pub makes_directory: bool,
    /// Whether the folder of checkpoints is the agent's, which gives it to the account.
    #[serde(default)]
    pub makes_checkpoint_dir: bool,
    /// How much output is kept.
    pub log: LogCaps,
}

/// A job's launch: the number of the job and how many times it was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job's number at its head.
    pub job: u32,
    /// Number of this launch of the job; later launches have higher numbers.
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
    /// Nodes that the job runs on.
    pub n_nodes: u32,
    /// The lowest rank on this node.
    pub first_rank: u32,
    /// How many ranks are here; one process is started for each.
    pub n_ranks: u32,
    /// Ranks of the job on all nodes.
    pub world_size: u32,
}

/// Where ranks find each other: rank 0 listens there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendezvous {
    /// Host name or address of the node with rank 0.
    pub address: String,
    /// A port that was free on that node when the launch was prepared.
    pub port: u16,
}

/// What a launch has to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Iterations in all; 0 when that is unknown.
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
    /// Their type, as profiles and policies name it.
    pub gpu_type: String,
    /// Memory of one of them in bytes; 0 when that is unknown.
    pub gpu_mem_bytes: u64,
    /// CPUs in millionths; parts of a CPU are possible.
    pub cpu_micro: u64,
    /// CPUs the processes are bound to; empty binds to none.
    pub pinned: Ranges,
    /// Memory in bytes; 0 is no limit.
    pub mem_bytes: u64,
    /// Storage rate in bytes per second, for the job to know; nothing enforces it.
    pub storage_bps: u64,
    /// Whether CPU and memory limits are set in control groups; emulated resources cannot be.
    pub limits: Limits,
    /// Devices of other GPUs, which a process launch cannot open.
    #[serde(default)]
    pub hidden: Vec<Device>,
}

/// Whether limits are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limits {
    /// By control groups, or by the container runtime.
    Enforced,
    /// The job finds its share in its environment; nothing holds it to that share.
    Told,
}

/// How ranks are started.
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
    /// The image's reference, as the container client understands it.
    pub image: String,
    /// When the image is fetched from its registry.
    pub pull: Pull,
    /// Directories of the host inside the container.
    pub mounts: Vec<Mount>,
    /// Name of the network; `host` shares the host's.
    pub network: String,
    /// Option that gives the container GPUs; `{gpus}` stands for their numbers: `--gpus=device={gpus}`. An option that takes one
    /// GPU, such as `--device=nvidia.com/gpu={gpu}`, is repeated for each. Empty gives it none.
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
    /// Never; a missing image is an error.
    Never,
}

/// A directory of the host in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is on the host.
    pub host: PathBuf,
    /// Where the container sees it.
    pub container: PathBuf,
    /// Whether the container may only read it.
    pub is_read_only: bool,
}

/// What happens to a job when its lease runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHeadLost {
    /// It is asked for a checkpoint and stopped.
    Stop,
    /// It runs on, whatever happens to the head.
    Keep,
}

/// How much of a job's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCaps {
    /// A new file is started when the current one has this many bytes.
    pub file_bytes: u64,
    /// Files kept, the current one included; the oldest goes first.
    pub n_files: u32,
}

impl Default for LogCaps {
    fn default() -> Self {
        LogCaps { file_bytes: 16 << 20, n_files: 4 }
    }
}
