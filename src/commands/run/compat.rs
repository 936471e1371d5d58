//! `--set compat=artifact`: the driver of an original program in place of the engine.
//!
//! How the originals behave is in `rota_scripts::artifact`. Here is only which of them a policy's name means and which
//! options reach it: what the original does not have is refused, so that nobody believes that it took effect.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use rota_core::ledger::Ledger;
use rota_core::simulation::Progress;
use rota_core::time::{Span, Time};
use rota_scripts::artifact::chronus;
use rota_scripts::artifact::elasticflow::{self, Judgement, Scheduler};
use rota_scripts::artifact::synergy::{self, Allocation, Scheme};

use rota_solvers::Highs;

use super::{Inputs, Load, RunArgs, keeps_timeline, parse_set};

/// Who runs the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compat {
    /// The engine, with the scripts people read.
    None,
    /// The original's driver.
    Artifact,
}

/// A policy in the words of the original that has it.
#[derive(Clone, Copy, Debug)]
enum Original {
    Synergy(Scheme),
    ElasticFlow(Scheduler),
    Chronus,
}

/// What an original's driver says.
pub(super) struct Driven {
    /// In Rota's terms.
    pub(super) ledger: Ledger,
    /// Who met its deadline, by job, where the original has rules of its own for that.
    pub(super) is_met: Option<Vec<bool>>,
}

impl Compat {
    /// What `--set` says, checked against the policies and the other options.
    pub(super) fn of(args: &RunArgs, policies: &[String]) -> Result<Self> {
        let set = parse_set(&args.set)?;
        let Some((_, value)) = set.iter().rev().find(|(key, _)| key == "compat") else {
            return Ok(Compat::None);
        };
        match value.as_str() {
            "none" => return Ok(Compat::None),
            "artifact" => {}
            _ => bail!("--set compat={value}: there is `artifact`, the original as it is, and `none`"),
        }
        if let Some((key, value)) = set.iter().find(|(key, _)| key != "compat") {
            bail!("--set {key}={value}: the originals have no parameters (compat=artifact)");
        }
        for policy in policies {
            if let Some(option) = foreign_option(args, Original::of(policy)?) {
                bail!("{option}: the original of {policy} has nothing like it (compat=artifact)");
            }
        }
        Ok(Compat::Artifact)
    }
}

impl Original {
    /// ElasticFlow's schedulers have names of their own; everything else is an order of Synergy's, and an order alone
    /// means the same allocation as without compat.
    fn of(policy: &str) -> Result<Self> {
        if ["chronus", "time-aware-with-lease"].contains(&policy.to_lowercase().as_str()) {
            return Ok(Original::Chronus);
        }
        if let Ok(scheduler) = Scheduler::parse(&policy.to_lowercase()) {
            return Ok(Original::ElasticFlow(scheduler));
        }
        let scheme = Scheme::parse(policy, Allocation::Proportional);
        scheme.map(Original::Synergy).map_err(|error| {
            let names: Vec<_> = Scheduler::ALL.iter().map(|(name, _)| *name).collect();
            anyhow!(
                "compat=artifact: {error}; ElasticFlow's original has {}; Chronus' is chronus",
                names.join(", ")
            )
        })
    }
}

/// Whether some original has this policy.
pub(crate) fn has_original(policy: &str) -> bool {
    Original::of(policy).is_ok()
}

fn foreign_option(args: &RunArgs, original: Original) -> Option<&'static str> {
    // Chronus alone reckons with wrong durations.
    let is_chronus = matches!(original, Original::Chronus);
    let given = [
        (args.every_round, "--every-round"),
        (args.min_run.is_some(), "--min-run"),
        (!args.quota.is_empty(), "--quota"),
        (args.mtbf.is_some(), "--mtbf"),
        (args.estimate_bias != 1.0 && !is_chronus, "--estimate-bias"),
        (args.estimate_noise != 0.0 && !is_chronus, "--estimate-noise"),
        (args.inputs.restart_cost.is_some(), "--restart-cost"),
        (args.inputs.checkpoint_every.is_some(), "--checkpoint-every"),
    ];
    let is_elasticflow = matches!(original, Original::ElasticFlow(_) | Original::Chronus);
    let elasticflow = [
        (args.first_round != Span::ZERO, "--first-round"),
        (args.window.is_some(), "--window"),
        (args.timeline, "--timeline"),
        (args.bound, "--bound"),
    ];
    let elasticflow = elasticflow.into_iter().filter(|_| is_elasticflow);
    given.into_iter().chain(elasticflow).find(|(is_given, _)| *is_given).map(|(_, option)| option)
}

/// Runs a workload as the original does.
pub(super) fn run(
    args: &RunArgs,
    inputs: &Inputs,
    load: &Load,
    policy: &str,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Driven> {
    match Original::of(policy)? {
        Original::Synergy(scheme) => {
            let settings = synergy::Settings {
                round: args.round,
                first_round: Time::ZERO + args.first_round,
                keeps_timeline: keeps_timeline(args, &load.workload),
            };
            let models = crate::conform::synergy_models(&inputs.profiles);
            let cluster = Arc::clone(&inputs.cluster);
            let ledger = synergy::run(scheme, cluster, &load.workload, &models, &settings, observe)?;
            Ok(Driven { ledger, is_met: None })
        }
        Original::ElasticFlow(scheduler) => {
            let settings =
                elasticflow::Settings { scheduler, slot: args.round, durations: load.durations.as_deref() };
            let run =
                elasticflow::run(&inputs.cluster, &load.workload, &settings).context("compat=artifact")?;
            let is_met = run.judgements.iter().map(|judgement| *judgement == Judgement::Met).collect();
            Ok(Driven { ledger: run.ledger, is_met: Some(is_met) })
        }
        Original::Chronus => {
            let settings = chronus::Settings::minutes();
            let run = chronus::run(&inputs.cluster, &load.workload, &settings, &mut Highs)
                .context("compat=artifact, leases of 20 minutes")?;
            let is_met = run.fates.iter().map(|fate| fate.missed_value < 1.0).collect();
            Ok(Driven { ledger: run.ledger, is_met: Some(is_met) })
        }
    }
}
