//! The records of a run: one outcome for each job, a sample for each decision, and what ran where.

use crate::allocation::Slice;
use crate::ids::JobId;
use crate::time::{Span, Time};

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All its work was done.
    Finished,
    /// Refused at admission.
    Declined,
    /// Not ended when the run did.
    Unfinished,
    /// Given up.
    Failed,
}

/// How one job ended and what it held.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// When it first held GPUs.
    pub start: Option<Time>,
    /// When it ended.
    pub finish: Option<Time>,
    /// GPU time it held, in GPU-microseconds.
    pub service: Span,
    /// Time for which it held GPUs, however many.
    pub ran: Span,
    /// How often it was stopped before its end.
    pub preemptions: u32,
    /// Why it was declined, failed, or did not end; empty otherwise.
    pub reason: String,
}

impl Outcome {
    /// A job that never held a GPU and has not ended, and why.
    pub fn unfinished(reason: impl Into<String>) -> Self {
        Outcome {
            status: Status::Unfinished,
            start: None,
            finish: None,
            service: Span::ZERO,
            ran: Span::ZERO,
            preemptions: 0,
            reason: reason.into(),
        }
    }
}

/// What a job held besides its GPUs over the whole run, and how fast that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// GPU-seconds, each counted as the part of its best speed that the job had.
    pub best_gpu_s: f64,
    /// CPU-seconds held.
    pub cpu_s: f64,
    /// Gigabyte-seconds of memory held.
    pub mem_gb_s: f64,
}

/// The cluster at one decision, right after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When the sample was taken.
    pub time: Time,
    /// Jobs without GPUs.
    pub waiting: u32,
    /// Jobs with GPUs.
    pub running: u32,
    /// GPUs of nodes that are up.
    pub gpus_up: u32,
    /// GPUs held.
    pub gpus_held: u32,
    /// What the GPUs held are worth to their jobs, in GPUs: the sum over running jobs of their speed relative to one GPU.
    pub gpus_worth: f64,
    /// GPUs asked for by all jobs, running or not.
    pub gpus_asked: u64,
    /// CPUs held, used at most (what the job can turn into speed) and asked for by running jobs.
    pub cpus: Use,
    /// The same for memory in gigabytes.
    pub mem_gb: Use,
    /// Wall-clock seconds the decision took; filled in by callers that have a clock, else 0.
    pub decide_s: f64,
    /// Commands that followed.
    pub commands: u32,
}

impl Sample {
    /// Cluster efficiency (ElasticFlow, ASPLOS'23, §6.2): how fast all jobs run relative to one GPU each, by GPU.
    pub fn efficiency(&self) -> f64 {
        if self.gpus_up == 0 { 0.0 } else { self.gpus_worth / f64::from(self.gpus_up) }
    }
}

/// A resource at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Use {
    /// Given to jobs.
    pub held: f64,
    /// Of that, not more than the job's best demand.
    pub used: f64,
    /// Best demand of the jobs that run.
    pub asked: f64,
}

/// How jobs got their data. Counted once for each node of a job's allocation, at every start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataUse {
    /// The data was there.
    pub hits: u64,
    /// It was not there, or not all of it yet.
    pub fetches: u64,
    /// Bytes that nodes have fetched until the end of the run.
    pub fetched_bytes: u64,
    /// Time that jobs with GPUs waited for their data, all together; a job that is stopped has waited until then.
    pub waited: Span,
}

/// What failed, and what that cost. GPU time is in GPU-microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultUse {
    /// Failures of nodes.
    pub node_failures: u64,
    /// Failures of single GPUs.
    pub gpu_failures: u64,
    /// How often a node became slow.
    pub slowdowns: u64,
    /// Launches that a failure ended.
    pub stops: u64,
    /// GPU time whose work was lost, because it came after the last checkpoint or the checkpoint was lost too.
    pub lost: i128,
    /// GPU time in which jobs held GPUs and did not work yet: restarts and waiting for data.
    pub overhead: i128,
    /// GPU time of work by jobs that ended without having done what they were to do.
    pub premature: i128,
    /// GPU time that nodes and GPUs were down.
    pub down: i128,
    /// How long jobs took from a failure until they had again what they had done before it. A job that is hit again before
    /// that counts once, from the first failure on.
    pub recoveries: Vec<Span>,
    /// Failures from which a job had not recovered when the run ended.
    pub unrecovered: u64,
}

/// A stretch of time in which a job held the same on one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Index into [`Ledger::outcomes`].
    pub job: JobId,
    /// What it held.
    pub slice: Slice,
    /// Start of the stretch.
    pub from: Time,
    /// End of the stretch, exclusive.
    pub to: Time,
}

/// All that is recorded of a run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// One for each job of the workload, by id.
    pub outcomes: Vec<Outcome>,
    /// What each job held besides its GPUs, by id; empty where that was not recorded.
    pub shares: Vec<Share>,
    /// One for each decision.
    pub samples: Vec<Sample>,
    /// What ran where, by time of ending; empty when not asked for.
    pub timeline: Vec<Stretch>,
    /// Remarks of rounds: (index of the sample, text).
    pub notes: Vec<(usize, String)>,
    /// Rounds at which a decision was taken.
    pub n_decisions: u64,
    /// Rounds skipped because the answer could not have changed.
    pub n_skipped: u64,
    /// Integral of GPUs held over time, GPU-microseconds.
    pub gpu_time: i128,
    /// Integral of what the GPUs held were worth to their jobs, GPU-seconds.
    pub worth_time_s: f64,
    /// Integral of CPUs held over time, CPU-seconds.
    pub cpu_time_s: f64,
    /// When the first job arrived.
    pub first: Option<Time>,
    /// When the last job ended, of those that did.
    pub last: Option<Time>,
    /// The last arrival, with the integral of GPUs held up to it; `None` where arrivals were not recorded.
    pub loaded: Option<(Time, i128)>,
    /// How jobs got their data; `None` when no job reads a data set.
    pub data: Option<DataUse>,
    /// What failures cost; `None` when nothing can fail.
    pub faults: Option<FaultUse>,
    /// Digest over all events and commands.
    pub digest: String,
}
