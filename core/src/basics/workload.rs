//! The input of a simulation: the jobs as submitted and, kept apart from them, the truth that only `World` may see.

use std::sync::Arc;

use crate::ids::NodeId;
use crate::job::JobSpec;
use crate::time::Time;

/// Jobs with their truths, by ascending arrival; `jobs[i].id` is `i`.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// As submitted.
    pub jobs: Vec<Arc<JobSpec>>,
    /// What really happens to each.
    pub truths: Vec<Truth>,
    /// Names of the tenants, by id.
    pub tenants: Vec<String>,
    /// Data sets, by id.
    pub datasets: Vec<Dataset>,
}

/// What is not known before a job ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Iterations it needs.
    pub work: f64,
    /// Its real speed relative to its profile: 1 when the profile is right.
    pub pace: f64,
    /// How it ended where it was recorded; its work is what it had done until then.
    pub end: RecordedEnd,
    /// How often it was started where it was recorded; 0 when nobody counted.
    pub attempts: u32,
}

/// How a job ended in the cluster whose log a trace is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordedEnd {
    /// The trace does not say, or the job still ran when the log was taken.
    #[default]
    Unknown,
    /// It did what it was to do.
    Passed,
    /// It ended with an error of its own, or its node failed.
    Failed,
    /// Its owner, a time limit or the cluster ended it.
    Killed,
}

impl Truth {
    /// So much work, at the speed of the profile; how it ends is not recorded.
    pub fn of(work: f64) -> Self {
        Truth { work, pace: 1.0, end: RecordedEnd::Unknown, attempts: 0 }
    }
}

impl RecordedEnd {
    /// Every end with its word in Rota's traces.
    pub const WORDS: [(RecordedEnd, &'static str); 3] =
        [(RecordedEnd::Passed, "passed"), (RecordedEnd::Failed, "failed"), (RecordedEnd::Killed, "killed")];

    /// Whether the job came to its end without having done what it was to do.
    pub fn is_premature(self) -> bool {
        matches!(self, RecordedEnd::Failed | RecordedEnd::Killed)
    }

    /// Its word in Rota's traces; nothing for the unknown.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(end, _)| *end == self).map_or("", |(_, word)| word)
    }
}

/// Data that jobs read.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Dataset {
    /// Its name in the workload file.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The node it lives on; `None` is the remote store.
    pub home: Option<NodeId>,
}

/// A workload that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {name}: {why}")]
pub struct WorkloadError {
    /// The job's name in the trace.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl Workload {
    /// Checks what the engine relies on: dense ids, ascending arrivals, positive finite work, GPUs.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let mut last = Time(i64::MIN);
        for (index, (job, truth)) in self.jobs.iter().zip(&self.truths).enumerate() {
            let wrong = |why: String| Err(WorkloadError { name: job.name.to_string(), why });
            if job.id.index() != index {
                return wrong(format!("has id {} at position {index}", job.id));
            }
            if job.arrival < last {
                return wrong(format!("arrives at {} s, before the job in front of it", job.arrival));
            }
            if !(truth.work.is_finite() && truth.work > 0.0 && truth.pace.is_finite() && truth.pace > 0.0) {
                return wrong(format!("needs {} iterations at pace {}", truth.work, truth.pace));
            }
            if !(job.estimated_work.is_finite() && job.estimated_work > 0.0) {
                return wrong(format!("is estimated at {} iterations", job.estimated_work));
            }
            if job.gpus.asked == 0 || job.gpus.min() == 0 {
                return wrong("asks for no GPU".into());
            }
            last = job.arrival;
        }
        match self.jobs.len() == self.truths.len() {
            true => Ok(()),
            false => {
                Err(WorkloadError { name: "(all)".into(), why: "as many truths as jobs are needed".into() })
            }
        }
    }
}
