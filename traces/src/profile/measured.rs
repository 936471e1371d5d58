//! Where the numbers of a measured profile come from: which command, where, when, and every point that was run.

use serde::Deserialize;

use crate::units::Bytes;

/// The table `[profile.measured]` of a profile file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Measured {
    /// The command that was run.
    pub command: String,
    /// The machine or cluster that it was measured on.
    pub machine: String,
    /// The day of the measurement, as `2026-05-31`.
    pub day: String,
    /// Program and version that measured.
    pub tool: String,
    /// What a reader must know in addition to the numbers.
    pub notes: Vec<String>,
    /// Every point that was run.
    pub points: Vec<MeasuredPoint>,
    /// Every change of an allocation that was timed.
    pub changes: Vec<MeasuredChange>,
}

/// One point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredPoint {
    /// GPUs of the job on all nodes.
    pub gpus: u32,
    /// Its global batch size; 0 when that is unknown.
    #[serde(default)]
    pub batch: u32,
    /// CPUs for each GPU.
    pub cpus: f64,
    /// Memory for each GPU.
    pub mem: Bytes,
    /// Seconds of an iteration.
    pub iteration_s: f64,
    /// Half the width of the 95 % interval of that.
    #[serde(default)]
    pub within_s: f64,
    /// Number of runs behind this value.
    pub runs: u32,
}

/// What one change of an allocation cost.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredChange {
    /// GPUs of the job before the change.
    pub from: u32,
    /// GPUs of the job after the change.
    pub to: u32,
    /// Whether the job went to another node.
    #[serde(default)]
    pub moved: bool,
    /// Seconds from the order to stop to the end of the checkpoint.
    pub checkpoint_s: f64,
    /// Seconds from there to the first new iteration.
    pub restart_s: f64,
}
