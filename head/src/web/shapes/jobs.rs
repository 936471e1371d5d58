//! Jobs: a line of the list, a page, what is submitted, what is changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Job {
    /// Its number.
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: String,
    /// Who submitted it.
    pub(crate) user: String,
    /// Whom it counts for.
    pub(crate) tenant: String,
    /// The profile it runs by; empty when it has none.
    pub(crate) model: String,
    /// asking, waiting, starting, running, stopping, held, finished, declined, cancelled, failed or time-limit.
    pub(crate) state: String,
    /// The reason for its state; empty if there is nothing to add.
    pub(crate) reason: String,
    /// GPUs asked for.
    pub(crate) gpus: u32,
    /// GPUs held.
    pub(crate) gpus_held: u32,
    /// Names of the nodes it runs on, or ran on last.
    pub(crate) nodes: Vec<String>,
    /// Larger is more important.
    pub(crate) priority: i32,
    /// When it was submitted.
    pub(crate) submitted_s: f64,
    /// When it first ran.
    pub(crate) started_s: Option<f64>,
    /// When it ended.
    pub(crate) ended_s: Option<f64>,
    /// When it should be done.
    pub(crate) deadline_s: Option<f64>,
    /// Iterations done.
    pub(crate) done: f64,
    /// Iterations in all; 0 if nobody said.
    pub(crate) work: f64,
    /// Iterations a second, by its profile and its pace; none while it does not run.
    pub(crate) rate: Option<f64>,
    /// When it will have done its work at that rate.
    pub(crate) end_s: Option<f64>,
    /// When it may start, by the last forecast.
    pub(crate) start: Option<Expected>,
    /// How often it was launched.
    pub(crate) launches: u32,
    /// How often it failed.
    pub(crate) n_failures: u32,
    /// How often it was stopped in favour of others.
    pub(crate) n_preemptions: u32,
    /// The most time that it may run.
    pub(crate) time_limit_s: Option<f64>,
    /// What its last launch that failed by itself ended with.
    pub(crate) exit_code: Option<i32>,
}

/// A time that is expected, with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Expected {
    /// As often earlier as later.
    pub(crate) median_s: f64,
    /// Seldom earlier.
    pub(crate) low_s: f64,
    /// Seldom later; none if it may be beyond the horizon.
    pub(crate) high_s: Option<f64>,
}

/// A job and everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct JobPage {
    #[serde(flatten)]
    #[schema(inline)]
    pub(crate) job: Job,
    /// As it was asked for; none of a job that has left the memory.
    pub(crate) request: Option<RequestShape>,
    /// What it holds.
    pub(crate) placement: Vec<Placement>,
    /// How far its launch is on each node.
    pub(crate) ranks: Vec<RankShape>,
    /// Its measured speed as a multiple of its profile's.
    pub(crate) pace: f64,
    /// Iterations a second that it would do with all CPUs and memory that it can use.
    pub(crate) best_rate: Option<f64>,
    /// Iterations in its last checkpoint.
    pub(crate) checkpointed: f64,
    /// Who holds it.
    pub(crate) held_by: Option<String>,
    /// When it reaches its time limit, if it runs on.
    pub(crate) limit_at_s: Option<f64>,
    /// GPU time that it received, in GPU-seconds.
    pub(crate) gpu_s: f64,
}

/// What a job holds on a node.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Placement {
    /// The node.
    pub(crate) node: String,
    /// Numbers of its GPUs.
    pub(crate) gpus: Vec<u32>,
    /// CPUs.
    pub(crate) cpus: f64,
    /// Memory in bytes.
    pub(crate) mem_bytes: u64,
}

/// How far a launch is on a node.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct RankShape {
    /// The node.
    pub(crate) node: String,
    /// unordered, ordered, prepared, going, up or exited.
    pub(crate) state: &'static str,
}

/// A job as it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct RequestShape {
    /// Global batch size; 0 takes the profile's.
    pub(crate) batch: u32,
    /// GPU counts with which it can run.
    pub(crate) levels: Vec<u32>,
    /// The only GPU type it may run on; empty is any.
    pub(crate) gpu_type: String,
    /// emulated, process or container.
    pub(crate) launcher: &'static str,
    /// The container's image; empty without one.
    pub(crate) image: String,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Variables that it is given.
    pub(crate) env: Vec<(String, String)>,
    /// Where it runs; empty is a folder of the agent.
    pub(crate) workdir: String,
    /// per-node or per-gpu.
    pub(crate) processes: &'static str,
    /// Whether it goes on when its node has no contact to the head for longer than the lease.
    pub(crate) keep: bool,
    /// Time between asking it to stop and killing it.
    pub(crate) grace_s: f64,
    /// How often it is tried again if it fails by itself.
    pub(crate) retries: u32,
    /// Time between checkpoints that it writes by itself.
    pub(crate) checkpoint_every_s: f64,
    /// Jobs that have to end before it may begin.
    pub(crate) after: Vec<AfterShape>,
}

/// A job that another waits for.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AfterShape {
    /// Its number.
    pub(crate) job: u32,
    /// `ended` in any way, or `finished`.
    pub(crate) needs: &'static str,
}

/// Why a job waits, or how it ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// Sentences.
    pub(crate) text: String,
    /// When it may start.
    pub(crate) start: Option<Expected>,
}

/// A piece of a job's output.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Output {
    /// Where it begins.
    pub(crate) offset: u64,
    /// The piece itself; what is no UTF-8 is replaced.
    pub(crate) text: String,
    /// Where the next one begins.
    pub(crate) next: u64,
    /// Whether the job has ended and nothing follows.
    pub(crate) is_end: bool,
    /// Whether something was replaced.
    pub(crate) is_lossy: bool,
}

/// Jobs to be submitted, all or none.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submission {
    /// In the order in which they get their numbers.
    #[schema(min_items = 1, max_items = 10000)]
    pub(crate) jobs: Vec<JobSpec>,
    /// A random number: the same request sent again makes no second job.
    pub(crate) key: Option<u64>,
}

/// A job to be submitted; as the options of `rota submit`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JobSpec {
    /// A name for people; the program's if it is left out.
    #[schema(max_length = 200)]
    pub(crate) name: Option<String>,
    /// GPUs; the first level, or 1, if it is left out.
    pub(crate) gpus: Option<u32>,
    /// GPU counts with which an elastic job can run.
    pub(crate) levels: Vec<u32>,
    /// A model of the head's profiles.
    pub(crate) model: Option<String>,
    /// Global batch size.
    pub(crate) batch: Option<u32>,
    /// Iterations.
    pub(crate) work: Option<f64>,
    /// Estimated run time of a job without a model.
    pub(crate) time_s: Option<f64>,
    /// When it should be done, counted from now.
    pub(crate) deadline_s: Option<f64>,
    /// Larger is more important; above 0 only by operators.
    pub(crate) priority: Option<i32>,
    /// Whom it counts for.
    pub(crate) tenant: Option<String>,
    /// The only GPU type it may run on.
    pub(crate) gpu_type: Option<String>,
    /// Whether it only sleeps for as long as its model's profile says.
    pub(crate) emulate: bool,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// A container's image.
    pub(crate) image: Option<String>,
    /// When the image is fetched; only if it is missing, if this is left out.
    pub(crate) pull: Option<PullWord>,
    /// Folders of the node that the container sees.
    pub(crate) mounts: Vec<MountShape>,
    /// The container's network; its runtime's own choice if it is left out.
    pub(crate) network: Option<String>,
    /// Variables that it is given.
    pub(crate) env: BTreeMap<String, String>,
    /// Where it runs.
    pub(crate) workdir: Option<String>,
    /// Where it keeps checkpoints.
    pub(crate) checkpoint_dir: Option<String>,
    /// One process for each GPU instead of one for each node.
    pub(crate) per_gpu: bool,
    /// Whether it goes on when its node has no contact to the head for longer than the lease.
    pub(crate) keep: bool,
    /// How often it is tried again if it fails by itself.
    pub(crate) retries: Option<u32>,
    /// Time between asking it to stop and killing it.
    pub(crate) grace_s: Option<f64>,
    /// Time between checkpoints that it writes by itself.
    pub(crate) checkpoint_every_s: Option<f64>,
    /// The most time that it may run.
    pub(crate) time_limit_s: Option<f64>,
    /// Whether it waits until it is released.
    pub(crate) hold: bool,
    /// Jobs that must have ended before it begins.
    pub(crate) after: Vec<u32>,
    /// Jobs that must have finished before it begins.
    pub(crate) after_ok: Vec<u32>,
}

/// When a container's image is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PullWord {
    Missing,
    Always,
    Never,
}

/// A folder of the node that a container sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountShape {
    /// On the node.
    pub(crate) source: String,
    /// In the container.
    pub(crate) target: String,
    /// Whether it can only be read there.
    #[serde(default)]
    pub(crate) is_read_only: bool,
}

/// The jobs that were submitted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Submitted {
    /// Their numbers.
    pub(crate) ids: Vec<u32>,
}

/// What is to happen to jobs; to all of them or to none.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeShape {
    /// Which jobs.
    pub(crate) jobs: SelectionShape,
    /// What.
    pub(crate) change: ChangeWord,
    /// With `priority`: the priority.
    pub(crate) priority: Option<i32>,
}

/// What is to happen to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeWord {
    Cancel,
    Hold,
    Release,
    Requeue,
    Priority,
}

/// Which jobs a change is about: those of the numbers, ranges and arrays, or all if there are none; of these, those with the
/// name and of the user.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SelectionShape {
    /// Numbers.
    pub(crate) ids: Vec<u32>,
    /// First and last number of each range.
    pub(crate) ranges: Vec<(u32, u32)>,
    /// Each stands for all jobs that were submitted together with it.
    pub(crate) arrays: Vec<u32>,
    /// Their name.
    pub(crate) name: String,
    /// Whose they are.
    pub(crate) user: String,
}

/// The jobs that a change was made to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Changed {
    /// Their numbers.
    pub(crate) changed: Vec<u32>,
}
