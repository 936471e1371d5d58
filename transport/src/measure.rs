//! What `rota profile` and `rota-agent measure` send each other over a pipe: JSON, one object per line. The first line is
//! a [`MeasureSpec`], later ones are [`MeasureOrder`]s; the agent answers with [`MeasureEvent`]s until one is an end.
//!
//! Times are seconds of the kernel's monotonic clock.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureSpec {
    /// Identifies the run; no two runs at the same time have the same.
    pub number: u32,
    /// Program and arguments; `rota-agent` means the agent's own binary.
    pub command: Vec<String>,
    /// Environment variables besides those that Rota sets.
    pub environment: BTreeMap<String, String>,
    /// Working directory of the command.
    pub directory: PathBuf,
    /// Where the run's own files are kept until it has ended.
    pub run_dir: PathBuf,
    /// GPUs it gets.
    pub gpus: u32,
    /// Type of the GPUs; if empty, the one that the driver reports.
    pub gpu_type: String,
    /// CPUs it gets, in millionths.
    pub cpu_micro: u64,
    /// Memory it gets; 0 is no limit.
    pub mem_bytes: u64,
    /// Storage rate that it is told it has.
    pub storage_bps: u64,
    /// Iterations to do in all.
    pub iterations: f64,
    /// Iterations done before.
    pub done: f64,
    /// Where its data are.
    pub data_dir: PathBuf,
    /// Where it keeps checkpoints.
    pub checkpoint_dir: PathBuf,
    /// A container to run in; none runs it as a process.
    pub container: Option<MeasureContainer>,
    /// Whether it is limited to its resources.
    pub resources: MeasureResources,
    /// It is stopped after this many seconds.
    pub time_limit_s: f64,
    /// It is stopped when it neither writes nor reports for this many seconds.
    pub silence_limit_s: f64,
    /// Time between being asked to stop and being killed.
    pub grace_s: f64,
}

/// A container to run in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureContainer {
    /// The client with its global options, such as `docker`.
    pub client: Vec<String>,
    /// Name of the image, with its tag or digest.
    pub image: String,
    /// Folders of the host inside the container: (host, container).
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// Option that gives the container GPUs; empty gives it none.
    pub gpu_flag: String,
    /// More options of `create`.
    pub options: Vec<String>,
}

/// Whether a run is limited to its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureResources {
    /// It is limited to what it is told it has.
    Held,
    /// It is told its resources, and nothing is limited: for commands that only pretend to compute.
    Told,
}

/// A request to a run. The end of the input is a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureOrder {
    /// Write a checkpoint and go on.
    Checkpoint,
    /// Stop, after a checkpoint.
    Stop,
}

/// What a run reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureEvent {
    /// Its processes run.
    Started {
        /// When, on the kernel's monotonic clock.
        at_s: f64,
    },
    /// It reported so many iterations.
    Progress {
        /// When they were done.
        at_s: f64,
        /// Iterations in all.
        iterations: f64,
    },
    /// It wrote a checkpoint.
    Checkpointed {
        /// When that was noticed.
        at_s: f64,
        /// Iterations in it.
        iterations: f64,
    },
    /// It wrote a line.
    Line {
        /// When that was noticed.
        at_s: f64,
        /// The line without its end.
        text: String,
    },
    /// No process of it is left.
    Ended(MeasureEnd),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureEnd {
    /// When, on the kernel's monotonic clock.
    pub at_s: f64,
    /// Exit code, signal or the limit that it broke.
    pub how: MeasureEndHow,
    /// The most memory its processes were seen to use; 0 when it was not watched.
    pub peak_mem_bytes: u64,
    /// What an operator should know.
    pub warnings: Vec<String>,
}

/// How the processes of a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureEndHow {
    /// It returned success.
    Finished,
    /// It returned something else.
    Failed(i32),
    /// A signal ended it.
    Killed(i32),
    /// It was never started, and why.
    NotStarted(String),
    /// It was stopped at its time limit.
    TooLong,
    /// It was stopped because it neither wrote nor reported for too long.
    Silent,
    /// It used more memory than it was given.
    OverMemory,
    /// It was stopped on request.
    Stopped,
}
