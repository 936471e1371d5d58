//! What a run did and when, as sets that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::ledger::Status;
use rota_core::time::Time;

use crate::results::RunResult;

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Change {
    /// Index in the trace.
    #[serde(skip)]
    pub job: usize,
    /// Its name in the trace.
    pub job_id: String,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// From now on it holds this on a node.
    Holds {
        /// Name of the node in the cluster's configuration.
        node: String,
        /// GPUs of the node, by number.
        gpus: Vec<u32>,
        /// Part of each GPU, in thousandths.
        share: u16,
        /// Millionths of a CPU.
        cpu_micro: u64,
        /// Bytes of memory.
        mem_bytes: u64,
    },
    /// It no longer holds anything on a node, and is not done.
    Leaves {
        /// Name of the node in the cluster's configuration.
        node: String,
    },
    /// It is done.
    Finishes,
    /// It first holds GPUs; where is not recorded.
    Starts,
    /// It was refused, given up, or did not end.
    Ends {
        /// As in `jobs.csv`.
        status: &'static str,
    },
}

/// Everything that happened, by time.
pub(super) fn moments(run: &RunResult, has_timeline: bool) -> BTreeMap<Time, BTreeSet<Change>> {
    let mut moments: BTreeMap<Time, BTreeSet<Change>> = BTreeMap::new();
    let mut put = |time: Time, job: usize, what: What| {
        let job_id = run.jobs.get(job).map(|row| row.job_id.to_string()).unwrap_or_default();
        moments.entry(time).or_default().insert(Change { job, job_id, what });
    };
    for (at, job) in run.jobs.iter().enumerate() {
        match (job.status, job.finish) {
            (Status::Finished, Some(finish)) => put(finish, at, What::Finishes),
            (Status::Declined, _) => put(job.arrival, at, What::Ends { status: "declined" }),
            (_, finish) => {
                put(finish.unwrap_or(Time(i64::MAX)), at, What::Ends { status: job.status_name() })
            }
        }
        if let (false, Some(start)) = (has_timeline, job.start) {
            put(start, at, What::Starts);
        }
    }
    if has_timeline {
        for stretch in &run.timeline {
            let (slice, job) = (&stretch.slice, stretch.job.index());
            let node = run.nodes.get(slice.node.index()).cloned().unwrap_or_else(|| slice.node.to_string());
            let is_end = run.jobs.get(job).and_then(|row| row.finish) == Some(stretch.to);
            if !is_end {
                put(stretch.to, job, What::Leaves { node: node.clone() });
            }
            put(
                stretch.from,
                job,
                What::Holds {
                    node,
                    gpus: slice.gpus.iter().collect(),
                    share: slice.share,
                    cpu_micro: slice.host.cpu_micro,
                    mem_bytes: slice.host.mem_bytes,
                },
            );
        }
        moments.values_mut().for_each(drop_leaving_for_the_same_node);
    }
    moments
}

/// A job that holds something else on the same node from then on has not left it.
fn drop_leaving_for_the_same_node(changes: &mut BTreeSet<Change>) {
    let held: BTreeSet<(usize, String)> = changes
        .iter()
        .filter_map(|change| match &change.what {
            What::Holds { node, .. } => Some((change.job, node.clone())),
            _ => None,
        })
        .collect();
    changes.retain(|change| match &change.what {
        What::Leaves { node } => !held.contains(&(change.job, node.clone())),
        _ => true,
    });
}
