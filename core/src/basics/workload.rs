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

/// A failure or a recovery of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When the node fails or recovers.
    pub time: Time,
    /// Index of the node in the cluster.
    pub node: NodeId,
    /// Whether it recovers (otherwise it fails).
    pub is_up: bool,
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
