//! The original programs by the names of their policies: which program a name means, and a run of it.
//!
//! How the programs behave is in [`rota_scripts::artifact`]; here their names and options are translated into Rota's, for
//! `--set compat=artifact` and `rota reproduce`. `parameters` reads what `--set` can change in a program.

mod error;
mod parameters;

use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ledger::Ledger;
use rota_core::simulation::Progress;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_scripts::artifact::elasticflow::{self, Judgement, Scheduler};
use rota_scripts::artifact::synergy::{self, Allocation, Scheme};
use rota_scripts::artifact::{Defects, System, chronus};
use rota_solvers::Highs;
use rota_traces::profile::ProfileSet;

pub use error::OriginalError;
pub use parameters::{ParameterError, Parameters};

/// A policy of an original program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Original {
    /// An order, an allocation and a placement.
    Synergy(Scheme),
    /// ElasticFlow or one of its baselines.
    ElasticFlow(Scheduler),
    /// The only scheduler it ships.
    Chronus,
}

impl Original {
    /// ElasticFlow's schedulers have names of their own; everything else is an order of Synergy's, and an order alone
    /// means the same allocation as without compat.
    pub fn parse(policy: &str) -> Result<Self, OriginalError> {
        if ["chronus", "time-aware-with-lease"].contains(&policy.to_lowercase().as_str()) {
            return Ok(Original::Chronus);
        }
        if let Ok(scheduler) = Scheduler::parse(&policy.to_lowercase()) {
            return Ok(Original::ElasticFlow(scheduler));
        }
        let scheme = Scheme::parse(policy, Allocation::Proportional);
        Ok(Original::Synergy(scheme?))
    }

    /// The program that it belongs to.
    pub fn system(self) -> System {
        match self {
            Original::Synergy(_) => System::Synergy,
            Original::ElasticFlow(_) => System::ElasticFlow,
            Original::Chronus => System::Chronus,
        }
    }
}

/// What an original runs on.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The cluster that the jobs run on.
    pub cluster: &'a Arc<Cluster>,
    /// The jobs and how much work each really has.
    pub workload: &'a Workload,
    /// Their models; Synergy's program uses its own numbers for them.
    pub profiles: &'a ProfileSet,
    /// Run times of the trace by job, where it has them; ElasticFlow's baselines use them.
    pub durations: Option<&'a [Span]>,
}

/// How an original runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Its round or slot.
    pub round: Span,
    /// Its first round.
    pub first_round: Time,
    /// Whether what ran where is recorded.
    pub keeps_timeline: bool,
    /// Which of its defects are present.
    pub defects: Defects,
    /// Its other parameters.
    pub parameters: Parameters,
}

/// What an original's run leaves behind.
#[derive(Clone, Debug)]
pub struct Driven {
    /// As a run of Rota leaves it.
    pub ledger: Ledger,
    /// Whether each job met its deadline, where the original has its own rules for that.
    pub is_met: Option<Vec<bool>>,
}

/// Runs a workload as the original does, with the defects that are asked for.
pub fn run(
    original: Original,
    case: &Case<'_>,
    options: &Options,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Driven, OriginalError> {
    match original {
        Original::Synergy(scheme) => {
            let settings = synergy::SynergySettings {
                round: options.round,
                first_round: options.first_round,
                keeps_timeline: options.keeps_timeline,
                defects: options.defects,
            };
            let models = crate::conform::synergy_models(case.profiles);
            let cluster = Arc::clone(case.cluster);
            let ledger = synergy::run(scheme, cluster, case.workload, &models, &settings, observe)?;
            Ok(Driven { ledger, is_met: None })
        }
        Original::ElasticFlow(scheduler) => {
            let settings = elasticflow::ElasticflowSettings {
                durations: case.durations,
                defects: options.defects,
                keeps_timeline: options.keeps_timeline,
                ..elasticflow::ElasticflowSettings::new(scheduler, options.round)
            };
            let run = elasticflow::run(case.cluster, case.workload, &settings)?;
            let is_met = run.judgements.iter().map(|judgement| *judgement == Judgement::Met).collect();
            Ok(Driven { ledger: run.ledger, is_met: Some(is_met) })
        }
        Original::Chronus => {
            let settings = chronus::ChronusSettings {
                defects: options.defects,
                keeps_timeline: options.keeps_timeline,
                ..options.parameters.chronus()?
            };
            let lease = settings.unit * settings.lease;
            let run = chronus::run(case.cluster, case.workload, &settings, &mut Highs)
                .map_err(|error| OriginalError::Chronus { lease, error })?;
            let is_met = run.fates.iter().map(|fate| fate.missed_value < 1.0).collect();
            Ok(Driven { ledger: run.ledger, is_met: Some(is_met) })
        }
    }
}
