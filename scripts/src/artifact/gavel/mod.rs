//! Gavel's simulator (OSDI'20 artifact): a policy divides the time of each GPU type among jobs, rounds follow its shares.
//!
//! ```text
//!  call        what a policy is asked, and the shares it answers with
//!  heuristics  isolated, proportional, fifo*, gandiva: no model          assignment  allox
//!  models      max-min fairness, finish-time fairness, makespan, throughput, water filling, product
//!  rounds      who runs in a round: share over time received; the clock
//! ```
//!
//! The models are those of [`rota_solvers::gavel_shares`]. Randomness comes from outside ([`Draws`]), so that the original's
//! generator can be used. What the original does differently from what its paper says is marked with the names of its
//! defects (`D1`, …) in docs/fidelity.md.

mod assignment;
mod call;
mod heuristics;
mod models;
mod rounds;
#[cfg(test)]
mod tests;

use rota_solvers::FormulationError;

pub use call::{ByType, Call, CallJob, Entity, EntityRule, PairSpeeds, RowId, Shares};
pub use models::Objective;
pub use rounds::{GavelJob, Inputs, Outcome, Rounds, Run, Speeds, run};

use heuristics::Heuristic;
use models::ModelPolicy;

/// A source of random numbers.
pub trait Draws {
    /// A number from 0 to less than `n`, which is at least 1.
    fn below(&mut self, n: usize) -> usize;
}

/// Answers with shares of time.
pub trait Policy {
    /// Divides the time of the GPUs among the jobs of a call.
    fn shares(&mut self, call: &Call<'_>) -> Result<Shares, ArtifactError>;

    /// What the last call came to, for a policy with a model.
    fn objective(&self) -> Option<f64> {
        None
    }
}

/// A call that cannot be answered, or a run that cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArtifactError {
    /// A name that is none of the policies'.
    #[error("{name:?} is no policy of Gavel's")]
    UnknownPolicy {
        /// The name that was given.
        name: String,
    },
    /// A policy that takes every job for one with the speed of a v100, on a cluster without one.
    #[error("{policy} takes every GPU for a v100, and this cluster has none")]
    NoV100 {
        /// The policy's name.
        policy: String,
    },
    /// A policy for jobs of one GPU was given a larger one.
    #[error("allox places jobs of one GPU only, and job {job} has {gpus}")]
    Gang {
        /// The number of the job.
        job: u32,
        /// Its GPUs.
        gpus: u32,
    },
    /// A job that no GPU of the cluster can run.
    #[error("job {job} has no speed on any GPU type of this cluster")]
    NoSpeed {
        /// The number of the job.
        job: u32,
    },
    /// A recorded answer that does not belong to this run.
    #[error("the policy is asked at {now_s} s, and the recorded answer is {recorded}")]
    Recording {
        /// When it is asked.
        now_s: f64,
        /// What the recording has instead.
        recorded: String,
    },
    /// A run that does not come to an end.
    #[error("the run does not end: {n_left} jobs are left after {n_rounds} rounds")]
    Endless {
        /// Jobs without an end.
        n_left: usize,
        /// How many rounds were held.
        n_rounds: usize,
    },
    /// A model that cannot be built or solved.
    #[error(transparent)]
    Formulation(#[from] FormulationError),
}

/// How the simulator treats a policy, which follows from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Two jobs may share GPUs.
    pub packs: bool,
    /// GPU types are filled in a new random order in every round.
    pub shuffles: bool,
    /// Rows without a share run on no GPU, idle or not.
    pub leaves_idle: bool,
}

impl Traits {
    /// Those of a policy by its name.
    #[must_use]
    pub fn of(policy: &str) -> Self {
        let policy = base_name(policy);
        Traits {
            packs: policy == "gandiva" || policy.contains("packed"),
            shuffles: [
                "fifo",
                "isolated",
                "max_min_fairness",
                "max_min_fairness_water_filling",
                "finish_time_fairness",
                "min_total_duration",
            ]
            .contains(&policy),
            leaves_idle: policy.starts_with("fifo"),
        }
    }
}

/// A policy by the original's name; `random` is its generator.
pub fn policy(name: &str, random: Box<dyn Draws + Send>) -> Result<Box<dyn Policy + Send>, ArtifactError> {
    if let Some(heuristic) = Heuristic::parse(name, random) {
        return Ok(Box::new(heuristic));
    }
    if base_name(name) == "allox" {
        return Ok(Box::new(assignment::Allox::new(parameter(name).unwrap_or(1.0))));
    }
    match Objective::parse(name) {
        Some(objective) => Ok(Box::new(ModelPolicy::new(name, objective))),
        None => Err(ArtifactError::UnknownPolicy { name: name.to_owned() }),
    }
}

/// The name without a parameter: `allox` of `allox_alpha=0.5`.
fn base_name(name: &str) -> &str {
    name.split_once("_alpha").map_or(name, |(base, _)| base)
}

fn parameter(name: &str) -> Option<f64> {
    name.split_once("_alpha=").and_then(|(_, value)| value.parse().ok())
}
