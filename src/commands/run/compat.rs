//! `--set compat=artifact`: the driver of an original program in place of the engine.
//!
//! How the originals behave is in `rota_scripts::artifact`; which of them a policy's name means is in [`rota_lab::original`].
//! This file passes options on: an option that the original does not have is refused, so that no user believes it took effect.

use std::fmt::Write;

use anyhow::{Result, bail};
use rota_core::simulation::Progress;
use rota_core::time::{Span, Time};
use rota_scripts::artifact::{Defect, Defects, System};

use super::{Inputs, Load, RunArgs, keeps_timeline, parse_set};
use rota_lab::original::{self, Case, Driven, Options, Original, Parameters};

/// Who runs the workload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compat {
    /// The engine, with scripts.
    None,
    /// The original's driver.
    Artifact(Artifact),
}

/// Defects and parameters of an original.
#[derive(Clone, Copy, Debug)]
pub(super) struct Artifact {
    defects: Defects,
    parameters: Parameters,
}

/// Whether an original program is to run. Any other value is refused by [`Compat::of`].
pub(crate) fn runs_originals(args: &RunArgs) -> Result<bool> {
    Ok(value(&parse_set(&args.set)?) == Some("artifact"))
}

/// The value of `compat`; the last one counts.
fn value(set: &[(String, String)]) -> Option<&str> {
    set.iter().rev().find(|(key, _)| key == "compat").map(|(_, value)| value.as_str())
}

impl Compat {
    /// What `--set` and `--defect` say, checked against the policies and the other options.
    pub(super) fn of(args: &RunArgs, policies: &[String]) -> Result<Self> {
        let set = parse_set(&args.set)?;
        match value(&set) {
            Some("artifact") => {}
            None | Some("none") if args.defects.is_empty() => return Ok(Compat::None),
            None | Some("none") => bail!(
                "--defect {}: only the originals have defects; run them with --set compat=artifact",
                args.defects.join(",")
            ),
            Some(value) => {
                bail!(
                    "--set compat={value}: write `artifact` for the rules of the original program, or `none`"
                )
            }
        }
        let originals =
            policies.iter().map(|policy| Original::parse(policy)).collect::<Result<Vec<_>, _>>()?;
        for (policy, original) in policies.iter().zip(&originals) {
            if let Some(option) = foreign_option(args, *original) {
                bail!("{option}: the original program of {policy} has no such option (compat=artifact)");
            }
        }
        let others = set.iter().filter(|(key, _)| key != "compat");
        let others: Vec<(&str, &str)> = others.map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let parameters = Parameters::parse(others, &originals)?;
        Ok(Compat::Artifact(Artifact { defects: defects(args, policies, &originals)?, parameters }))
    }
}

impl Artifact {
    /// What `config.toml` records of the run.
    pub(super) fn record(&self, set: &[String]) -> Result<toml::Table> {
        let mut table: toml::Table =
            parse_set(set)?.into_iter().map(|(key, value)| (key, value.into())).collect();
        let names: Vec<String> = self.defects.names().into_iter().map(str::to_owned).collect();
        table.insert("defects".to_owned(), names.into());
        Ok(table)
    }

    /// Runs a workload as the original does.
    pub(super) fn run(
        &self,
        args: &RunArgs,
        inputs: &Inputs,
        load: &Load,
        policy: &str,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Driven> {
        let case = Case {
            cluster: &inputs.cluster,
            workload: &load.workload,
            profiles: &inputs.profiles,
            durations: load.durations.as_deref(),
        };
        let options = Options {
            round: args.round,
            first_round: Time::ZERO + args.first_round,
            keeps_timeline: keeps_timeline(args, &load.workload),
            defects: self.defects,
            parameters: self.parameters,
        };
        Ok(original::run(Original::parse(policy)?, &case, &options, observe)?)
    }
}

/// The defects asked for, all by default; each must be a defect of an original that runs.
fn defects(args: &RunArgs, policies: &[String], originals: &[Original]) -> Result<Defects> {
    if args.defects.is_empty() {
        return Ok(Defects::ALL);
    }
    let told = Defects::parse(args.defects.iter().map(String::as_str));
    let told = told.map_err(|error| anyhow::anyhow!("--defect: {error} (--defect list shows them)"))?;
    let is_theirs = |defect: &Defect| originals.iter().any(|original| original.system() == defect.system());
    // With names, the defects that are on must be theirs; with no-NAME, those that are off.
    let is_taken_away = args.defects.iter().all(|name| name == "all" || name.starts_with("no-"));
    let named = Defect::ALL.into_iter().filter(|defect| told.has(*defect) != is_taken_away);
    if let Some(defect) = named.into_iter().find(|defect| !is_theirs(defect)) {
        let whose = originals.first().map(|original| original.system().to_string()).unwrap_or_default();
        bail!(
            "--defect {defect}: this is a defect of {}, but {} is a policy of {whose}",
            defect.system(),
            policies.join(", ")
        );
    }
    Ok(told)
}

/// Whether the names of all defects are asked for and nothing else.
pub(super) fn asks_for_list(args: &RunArgs) -> bool {
    args.defects.iter().any(|name| name == "list")
}

/// Every defect with the original's rule and the one in its place.
pub(super) fn list() -> String {
    let mut text = String::from(
        "--defect all (the original as it is), none (all of these fixed), names of defects to keep,\n\
         or no-NAME to fix only that one:\n",
    );
    let width = Defect::ALL.iter().map(|defect| defect.name().len()).max().unwrap_or(0);
    for system in System::ALL {
        let _ = writeln!(text, "\n{system}");
        for defect in Defects::ALL.of(system).iter() {
            let _ = writeln!(text, "  {:width$}  {}", defect.name(), defect.original());
            let _ = writeln!(text, "  {:width$}  fixed: {}", "", defect.mended());
        }
    }
    text
}

fn foreign_option(args: &RunArgs, original: Original) -> Option<&'static str> {
    // Only Chronus has rules for wrong durations.
    let is_chronus = matches!(original, Original::Chronus);
    let given = [
        (args.every_round, "--every-round"),
        (args.min_run.is_some(), "--min-run"),
        (!args.quota.is_empty(), "--quota"),
        (args.mtbf.is_some(), "--mtbf"),
        (args.faults.is_some(), "--faults"),
        (args.ends_as_recorded, "--ends-as-recorded"),
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
