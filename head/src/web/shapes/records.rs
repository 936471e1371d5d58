//! What happened: events, attempts of a job, jobs that have ended.

use serde::Serialize;
use utoipa::ToSchema;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Event {
    /// Its line in the journal, counted from 1.
    pub(crate) line: u64,
    /// When.
    pub(crate) at_s: f64,
    /// Its kind in one word, such as `job-started`.
    pub(crate) kind: String,
    /// A sentence.
    pub(crate) text: String,
    /// The job that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<u32>,
    /// The node that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The person who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
}

/// What became of a job so far.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobHistory {
    /// Its launches.
    pub(crate) attempts: Vec<AttemptShape>,
    /// Progress as it was recorded: time and iterations.
    pub(crate) points: Vec<[f64; 2]>,
    /// What happened to it, the newest last.
    pub(crate) events: Vec<Event>,
    /// Whether everything since its submission is in it.
    pub(crate) is_complete: bool,
}

/// A launch of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct AttemptShape {
    /// Its number, from 1.
    pub(crate) launch: u32,
    /// Names of its nodes.
    pub(crate) nodes: Vec<String>,
    /// Its GPUs.
    pub(crate) gpus: u32,
    /// When it was decided.
    pub(crate) ordered_s: Option<f64>,
    /// When every rank was up.
    pub(crate) started_s: Option<f64>,
    /// When it was over.
    pub(crate) ended_s: Option<f64>,
    /// finished, stopped, requeued, failed, cancelled or time-limit; none while it is not over.
    pub(crate) end: Option<&'static str>,
    /// Why it ended so.
    pub(crate) reason: String,
    /// Iterations before it.
    pub(crate) done_from: f64,
    /// Iterations after it.
    pub(crate) done_to: Option<f64>,
    /// What it ended with, if it failed by itself.
    pub(crate) exit_code: Option<i32>,
}

/// A job that has ended; times are those of the calendar.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PastJob {
    /// Its number.
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: String,
    /// Who submitted it.
    pub(crate) user: String,
    /// Whom it counted for.
    pub(crate) tenant: String,
    /// Its profile; empty when it had none.
    pub(crate) model: String,
    /// finished, declined, cancelled, failed or time-limit.
    pub(crate) state: String,
    /// Why; empty if there is nothing to add.
    pub(crate) reason: String,
    /// GPUs asked for.
    pub(crate) gpus: u32,
    /// When it was submitted.
    pub(crate) submitted_unix_s: f64,
    /// When it first ran.
    pub(crate) started_unix_s: Option<f64>,
    /// When it ended.
    pub(crate) ended_unix_s: f64,
    /// GPU time that it received.
    pub(crate) gpu_s: f64,
    /// Iterations done.
    pub(crate) done: f64,
    /// Iterations in all; 0 if nobody said.
    pub(crate) work: f64,
    /// How often it was launched.
    pub(crate) launches: u32,
    /// How often it failed.
    pub(crate) n_failures: u32,
    /// How often it was stopped in favour of others.
    pub(crate) n_preemptions: u32,
    /// Nodes of its last launch.
    pub(crate) nodes: Vec<String>,
}

/// GPU-hours of jobs that have ended, by what was asked for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// What the rows are by.
    pub(crate) by: Vec<String>,
    /// A row for each combination.
    pub(crate) rows: Vec<UsageRow>,
}

/// GPU-hours of some jobs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UsageRow {
    /// What they have in common.
    pub(crate) key: Vec<String>,
    /// How many.
    pub(crate) n_jobs: u64,
    /// How many of them finished.
    pub(crate) n_finished: u64,
    /// Their GPU time.
    pub(crate) gpu_hours: f64,
}
