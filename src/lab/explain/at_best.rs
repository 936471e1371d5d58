//! What `opt` would do at one decision: the best levels for the jobs that run then, and what that means for one of them.

use rota_core::allocation::Allocation;
use rota_core::ids::JobId;
use rota_core::room::Room;
use rota_scripts::optimum::{OptimumSettings, optimum, speed_of};
use rota_solvers::{FormulationError, Highs};

use super::slow::Moment;
use crate::solve::given;

/// Decisions with more running jobs are not solved again for an explanation; `rota solve --at` has no such limit.
const MOST_JOBS: usize = 512;

/// What `opt` would give a job.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AtBest {
    /// Time of the decision, in seconds.
    pub at_s: f64,
    /// Its CPUs; `None` when it would not be placed.
    pub cpus: Option<f64>,
    /// Its memory, in gigabytes.
    pub mem_gb: Option<f64>,
    /// The part of its best speed it would have.
    pub of_best: Option<f64>,
    /// The nodes it would be on.
    pub nodes: Vec<String>,
    /// Speed relative to proportional shares, summed over all jobs: by the policy.
    pub reached: f64,
    /// The same sum under `opt`.
    pub best: f64,
    /// An upper bound of that sum, over all plans.
    pub bound: f64,
}

/// Why the optimum of a decision is not part of an explanation.
#[derive(Debug, thiserror::Error)]
pub enum NotSolved {
    /// The model would be too large for an explanation.
    #[error("{n_jobs} jobs ran, more than {MOST_JOBS}")]
    TooManyJobs {
        /// Jobs that ran after the decision.
        n_jobs: usize,
    },
    /// The decision does not know the job.
    #[error("the job was not there")]
    NoJob,
    /// The optimum cannot be formulated or found.
    #[error(transparent)]
    Optimum(#[from] FormulationError),
}

/// Computes the optimum at a decision.
pub(super) fn at_best(moment: &Moment, job: JobId) -> Result<AtBest, NotSolved> {
    let snapshot = &moment.snapshot;
    let runs = given(snapshot, &moment.plan);
    if runs.len() > MOST_JOBS {
        return Err(NotSolved::TooManyJobs { n_jobs: runs.len() });
    }
    let row = snapshot.jobs.row(job).ok_or(NotSolved::NoJob)?;
    let order: Vec<u32> = runs.iter().map(|(row, _)| *row as u32).collect();
    let best = optimum(snapshot, &order, &mut Room::new(snapshot), &mut Highs, &OptimumSettings::default())?;
    let mine = best.granted.iter().find(|granted| granted.row as usize == row);
    let mine = mine.map(|granted| Allocation { slices: granted.slices.clone() });
    let name = |slice: &rota_core::allocation::Slice| {
        snapshot.cluster.node(slice.node).map_or_else(|| slice.node.to_string(), |node| node.name.clone())
    };
    let spec = snapshot.jobs.spec(row);
    let of_best =
        |held: &Allocation| spec.part_of_best(held, snapshot.jobs.demand_per_gpu(row), &snapshot.cluster);
    Ok(AtBest {
        at_s: snapshot.now.as_secs_f64(),
        cpus: mine.as_ref().map(|held| held.host().cpus()),
        mem_gb: mine.as_ref().map(|held| held.host().mem_gb()),
        of_best: mine.as_ref().map(of_best),
        nodes: mine.iter().flat_map(|held| held.slices.iter().map(name)).collect(),
        reached: runs.iter().map(|(row, held)| speed_of(snapshot, snapshot.jobs.spec(*row), held)).sum(),
        best: best.throughput,
        bound: best.bound,
    })
}
