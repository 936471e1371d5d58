//! Jobs that have ended, as people ask for them and see them. Times are those of the wall clock.

use rota_core::ids::{Incarnation, JobId};
use serde::{Deserialize, Serialize};

use super::JobStateView;
use crate::value::{Iterations, Name, Text};

/// Which jobs that have ended are wanted; what is empty or absent does not narrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryFilter {
    /// Whose they were.
    pub user: Text,
    /// Whom they counted for.
    pub tenant: Text,
    /// Their model.
    pub model: Text,
    /// Their name.
    pub name: Text,
    /// How they ended.
    pub state: Option<JobStateView>,
    /// Ended at this time or later, in microseconds since 1970.
    pub from_us: Option<i64>,
    /// Ended before this time, in microseconds since 1970.
    pub until_us: Option<i64>,
    /// Only jobs with a higher number: the last of the page before.
    pub after: Option<JobId>,
}

impl Default for HistoryFilter {
    /// All of them.
    fn default() -> Self {
        let none = || Text::cut("");
        let (user, tenant, model, name) = (none(), none(), none(), none());
        HistoryFilter { user, tenant, model, name, state: None, from_us: None, until_us: None, after: None }
    }
}

/// A job that has ended. Times are in microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedJobView {
    /// The number that the head gave it when it was submitted.
    pub id: JobId,
    /// The name it was submitted with.
    pub name: Text,
    /// Who submitted it.
    pub user: Name,
    /// Whom it counted for.
    pub tenant: Text,
    /// Name of the profile it ran by; empty when it had none.
    pub model: Text,
    /// How it ended.
    pub state: JobStateView,
    /// Why it ended so; empty if there is nothing to add.
    pub reason: Text,
    /// GPUs asked for.
    pub gpus: u32,
    /// When it was submitted.
    pub submitted_us: i64,
    /// When it first ran.
    pub started_us: Option<i64>,
    /// When it ended.
    pub ended_us: i64,
    /// GPU time that it received, in GPU-seconds.
    pub gpu_s: f64,
    /// Iterations done.
    pub done: Iterations,
    /// Iterations in all; 0 if nobody said.
    pub work: Iterations,
    /// How often it was launched.
    pub launches: Incarnation,
    /// How often it failed.
    pub n_failures: u32,
    /// How often it was stopped in favour of others.
    pub n_preemptions: u32,
    /// Names of the nodes of its last launch.
    pub nodes: Vec<Text>,
}
