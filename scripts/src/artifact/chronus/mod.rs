//! Chronus' simulator (SoCC'21 artifact): its clock, its credit and its mistakes.
//!
//! ```text
//!            ┌ turn off   nodes of the night            (`power`)
//!  tick ─────┤ running    ends, and credit for the tick (`running`)
//!            │ lease      every lease: release all, solve, place the jobs with a lease  (`lease`)
//!            │ admit      every slot: pack newcomers    (`admit`)
//!            │ pending    every slot: forced, then opportunistic starts (`pending`)
//!            └ fill       odd ticks: jobs that fit, credited from their last look
//! ```
//!
//! Shared with the shipped policy: the packing and the lease model ([`rota_solvers::chronus_leases`]) and the choice of
//! nodes ([`rota_core::switches`]). Reproduced: rows of refused jobs that linger through a slot, capacity counted with
//! rounded gangs here and true ones there, credit for time not run, the fallback's order. Not reproduced: which node
//! the original's `random` draws, since speed does not depend on it; and the swallowed error that turns an unknown
//! objective into the fallback.

mod admit;
#[cfg(test)]
mod defect_tests;
mod error;
mod job;
mod lease;
mod machines;
mod pending;
mod power;
mod record;
mod running;
mod simulator;

pub use error::ArtifactError;
pub use job::Class;
pub use record::{Admission, Boundary, Fate, PlanLeft, Run, Solve};

use rota_core::cluster::Cluster;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_solvers::Solver;

use super::{Defect, Defects};

/// What the MILP prefers among plans that meet the most deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Few GPUs in the first lease.
    Minimize,
    /// Many GPUs in the first lease.
    Maximize,
    /// Any plan.
    Random,
    /// Few while a job is refused, else many.
    Adaptive,
}

/// How GPUs are found for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Anywhere.
    Random,
    /// On as few nodes below one switch as possible, or not at all.
    Consolidate,
    /// The same, with the allowed splits of small gangs.
    ConsolidateRandom,
    /// Greedy by what is free; needs a profile.
    LocalSearch,
}

/// How nodes are turned off at night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerSaving {
    /// Never.
    Off,
    /// What no plan needs in a lease.
    Aggressive,
    /// Jobs with many planned leases keep their GPUs throughout.
    Conservative,
}

/// How the plan of a lease is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plans {
    /// The model is solved at every boundary between leases, as in the original.
    Solved,
    /// A packed plan that is proved to reach the model's optimum is used without a solve; only the other models are
    /// solved. The objective is the same; among plans that are equally good, another one may be taken.
    Proved,
}

/// How a run goes. Times are in units of the trace.
#[derive(Clone, Copy, Debug)]
pub struct ChronusSettings<'a> {
    /// What one unit is: a minute for the published traces.
    pub unit: Span,
    /// Length of a lease.
    pub lease: i64,
    /// Time between ticks.
    pub check: i64,
    /// Time between admissions: 5 in the original, 240 in ElasticFlow's port.
    pub slot: i64,
    /// What the MILP prefers.
    pub objective: Objective,
    /// How its plan is found.
    pub plans: Plans,
    /// How GPUs are found.
    pub placement: Placement,
    /// Whether speeds of splits were profiled.
    pub has_profile: bool,
    /// How nodes are turned off.
    pub power: PowerSaving,
    /// First deadlines after submission by job id, as best-effort jobs have them in the trace too; without them, a
    /// best-effort job expects its own duration.
    pub expectations: Option<&'a [i64]>,
    /// The defects that the run has.
    pub defects: Defects,
    /// Whether what ran where is recorded.
    pub keeps_timeline: bool,
}

impl ChronusSettings<'_> {
    /// Minutes, leases of 20, as the authors' batch script has it, with nodes on all night.
    pub fn minutes() -> Self {
        ChronusSettings {
            unit: Span::from_secs(60),
            lease: 20,
            check: 1,
            slot: 5,
            objective: Objective::Adaptive,
            plans: Plans::Solved,
            placement: Placement::LocalSearch,
            has_profile: true,
            power: PowerSaving::Off,
            expectations: None,
            defects: Defects::ALL,
            keeps_timeline: false,
        }
    }

    /// Seconds, as ElasticFlow's authors ported it: leases, slots and ticks of 240.
    pub fn seconds() -> Self {
        ChronusSettings { unit: Span::from_secs(1), lease: 240, check: 240, slot: 240, ..Self::minutes() }
    }

    /// A time of the trace.
    fn time(&self, units: f64) -> Time {
        Time((units * self.unit.0 as f64).round() as i64)
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.has(defect)
    }
}

/// Runs a workload through the original; `solver` answers its MILPs.
pub fn run(
    cluster: &Cluster,
    workload: &Workload,
    settings: &ChronusSettings<'_>,
    solver: &mut dyn Solver,
) -> Result<Run, ArtifactError> {
    simulator::Simulator::new(cluster, workload, settings, solver)?.run()
}
