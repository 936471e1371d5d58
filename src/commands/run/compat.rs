//! `--set compat=artifact`: the driver of the original program in place of the engine.
//!
//! How the original behaves is in `rota_scripts::artifact`. Here is only which options reach it: what the original
//! does not have is refused, so that nobody believes that it took effect.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rota_core::ledger::Ledger;
use rota_core::simulation::Progress;
use rota_core::time::Time;
use rota_scripts::artifact::synergy::{self, Allocation, Scheme};

use super::{Inputs, Load, RunArgs, keeps_timeline, parse_set};

/// Who runs the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compat {
    /// The engine, with the scripts people read.
    None,
    /// The original's driver.
    Artifact,
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
        if let Some(option) = foreign_option(args) {
            bail!("{option}: the original has nothing like it (compat=artifact)");
        }
        for policy in policies {
            scheme(policy)?;
        }
        Ok(Compat::Artifact)
    }
}

/// A policy in the original's words; an order alone means the same allocation as without compat.
fn scheme(policy: &str) -> Result<Scheme> {
    Scheme::parse(policy, Allocation::Proportional).context("compat=artifact")
}

fn foreign_option(args: &RunArgs) -> Option<&'static str> {
    let given = [
        (args.every_round, "--every-round"),
        (args.min_run.is_some(), "--min-run"),
        (!args.quota.is_empty(), "--quota"),
        (args.mtbf.is_some(), "--mtbf"),
        (args.estimate_bias != 1.0, "--estimate-bias"),
        (args.estimate_noise != 0.0, "--estimate-noise"),
        (args.inputs.restart_cost.is_some(), "--restart-cost"),
        (args.inputs.checkpoint_every.is_some(), "--checkpoint-every"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}

/// Runs a workload as the original does.
pub(super) fn run(
    args: &RunArgs,
    inputs: &Inputs,
    load: &Load,
    policy: &str,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Ledger> {
    let settings = synergy::Settings {
        round: args.round,
        first_round: Time::ZERO + args.first_round,
        keeps_timeline: keeps_timeline(args, &load.workload),
    };
    let models = crate::conform::synergy_models(&inputs.profiles);
    let cluster = Arc::clone(&inputs.cluster);
    Ok(synergy::run(scheme(policy)?, cluster, &load.workload, &models, &settings, observe)?)
}
