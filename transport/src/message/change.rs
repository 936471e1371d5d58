//! What people ask of jobs and nodes besides submitting and looking: on which conditions a job runs, which jobs a request is
//! about, what is to happen to them, and how a node is taken out of service.

use rota_core::ids::JobId;
use serde::{Deserialize, Serialize};

use crate::value::{Text, Wait};

/// When a job may begin, and for how long it may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobConditions {
    /// The most time that it may run, over all its launches; none is no limit.
    pub time_limit: Option<Wait>,
    /// Jobs that must have ended before it begins.
    pub after: Vec<Dependency>,
    /// Whether it waits until it is released.
    pub is_held: bool,
}

/// A job that must have ended before another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dependency {
    /// The job that has to end.
    pub job: JobId,
    /// How it has to end.
    pub needs: Needs,
}

/// How a job has to end for another to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// In any way.
    Ended,
    /// With its work done.
    Finished,
}

/// Which jobs a request is about: those of the ranges and arrays, or all if there are none; of these, those with the name and
/// of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSelection {
    /// First and last number of each range. A job that is named alone must be there and not have ended.
    pub ranges: Vec<(JobId, JobId)>,
    /// Each stands for all jobs that were submitted together with it.
    pub arrays: Vec<JobId>,
    /// Their name; empty is any.
    pub name: Text,
    /// Whose they are; empty is anybody's.
    pub user: Text,
}

impl Default for JobSelection {
    /// Every job that has not ended.
    fn default() -> Self {
        let (name, user) = (Text::cut(""), Text::cut(""));
        JobSelection { ranges: Vec::new(), arrays: Vec::new(), name, user }
    }
}

impl JobSelection {
    /// Some jobs by number.
    pub fn these(jobs: impl IntoIterator<Item = JobId>) -> Self {
        JobSelection { ranges: jobs.into_iter().map(|job| (job, job)).collect(), ..JobSelection::default() }
    }
}

/// What is to happen to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobChange {
    /// They end.
    Cancel,
    /// They do not run until they are released; those that run are stopped, after a checkpoint.
    Hold,
    /// They may run again.
    Release,
    /// Those that run are stopped, after a checkpoint, and wait again.
    Requeue,
    /// They have this priority from now on.
    Priority(i32),
}

/// How a node is taken out of service, or back into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeService {
    /// Out of it at once: its jobs move to other nodes.
    Out,
    /// Out of it when the jobs that run there have ended; until then it takes no new ones.
    OutWhenIdle,
    /// Back into it.
    In,
}
