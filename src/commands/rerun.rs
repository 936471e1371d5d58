//! Simulates a finished run again, with the options in its `config.toml`, to see its decisions.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rota_core::plan::Plan;
use rota_core::simulation::Simulation;
use rota_core::snapshot::Snapshot;

use super::inputs::is_standard_input;
use super::run::{self, RunArgs};
use rota_lab::explain::Watched;
use rota_lab::results::{Input, Results, RunMeta, RunResult};

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    args: RunArgs,
}

/// Simulates a run again and shows every decision to `watch`, until it has seen enough; says how many there were.
pub(super) fn decisions(
    results: &Results,
    meta: &RunMeta,
    watch: &mut dyn FnMut(&Snapshot, &Plan) -> ControlFlow<()>,
) -> Result<u64> {
    let args = args(results, meta)?;
    let inputs = run::prepared(&args)?;
    same_inputs(results, &inputs.files)?;
    let load = inputs.loads.first().context("the run has no workload")?;
    let policy = args.policies.first().context("the run has no policy")?;
    let mut script = run::load_policy(policy, &args.set)?;
    let has_seen_enough = Cell::new(false);
    let mut watched = Watched::new(&mut script, watch, &has_seen_enough);
    let settings = run::settings(&args, &load.workload)?;
    let faults = run::drawn_faults(&args, &inputs, &load.workload)?;
    let (cluster, workload) = (Arc::clone(&inputs.cluster), Arc::clone(&load.workload));
    let mut simulation = Simulation::new(cluster, workload, faults, &mut watched, &settings);
    while !has_seen_enough.get() && simulation.step()? {}
    Ok(simulation.progress().n_decisions)
}

/// The run of a folder that is meant: by its policy, or as the report calls it where loads or seeds differ.
pub(super) fn chosen<'a>(results: &'a Results, policy: Option<&str>) -> Result<&'a RunResult> {
    let names = results.run_names();
    match (policy, results.runs.as_slice()) {
        (None, [run]) => Ok(run),
        (None, _) => {
            bail!("the folder has several runs: choose one with --policy from {}", names.join("; "))
        }
        (Some(policy), runs) => {
            let found =
                runs.iter().zip(&names).find(|(run, name)| *name == policy || run.meta.policy == policy);
            Ok(found
                .with_context(|| {
                    format!("--policy {policy}: the runs of the folder are {}", names.join("; "))
                })?
                .0)
        }
    }
}

/// The options a run was made with.
fn args(results: &Results, meta: &RunMeta) -> Result<RunArgs> {
    if meta.parameters.get("compat").is_some() {
        bail!("the run was made with compat=artifact, whose decisions cannot be simulated again");
    }
    let is_piped = |input: &Input| input.role == "trace" && is_standard_input(Path::new(&input.name));
    if results.inputs.iter().any(is_piped) {
        bail!(
            "the run read its trace from standard input, so it cannot be simulated again: run it with --trace FILE"
        );
    }
    let mut line: Vec<String> =
        vec!["--policy".into(), meta.policy.clone(), "--seed".into(), meta.seed.to_string()];
    for role in ["cluster", "trace", "workload", "profiles", "faults"] {
        if let Some(input) = results.inputs.iter().find(|input| input.role == role) {
            line.extend([format!("--{role}"), input.name.clone()]);
        }
    }
    let settings = &results.settings;
    for (key, option) in OPTIONS {
        if let Some(value) = settings.get(*key).and_then(text) {
            line.extend([(*option).to_owned(), value]);
        }
    }
    for (key, option) in SWITCHES {
        if settings.get(*key).and_then(toml::Value::as_bool) == Some(true) {
            line.push((*option).to_owned());
        }
    }
    if settings.get("lengths").and_then(toml::Value::as_str) == Some("short") {
        line.push("--short".into());
    }
    for (key, option) in [("set", "--set"), ("defect", "--defect"), ("quota", "--quota")] {
        let list = settings.get(key).and_then(toml::Value::as_array);
        line.extend(list.into_iter().flatten().filter_map(text).flat_map(|value| [option.to_owned(), value]));
    }
    if let Some(split) = settings.get("split").and_then(toml::Value::as_table) {
        let percent = |class: &str| split.get(class).and_then(text).unwrap_or_else(|| "0".into());
        line.extend(["--split".into(), ["vision", "language", "speech"].map(percent).join(",")]);
    }
    if let Some(load) = meta.jobs_per_hour {
        line.extend(["--jobs-per-hour".into(), load.to_string()]);
    }
    if let Some(window) = meta.window {
        line.extend(["--window".into(), window.to_string()]);
    }
    Ok(Line::try_parse_from(line).context("config.toml does not describe a run of this version")?.args)
}

/// Options with a value: its name in `config.toml`, and on the command line.
const OPTIONS: &[(&str, &str)] = &[
    ("format", "--format"),
    ("map", "--map"),
    ("jobs", "--jobs"),
    ("durations", "--durations"),
    ("arrivals", "--arrivals"),
    ("round", "--round"),
    ("first_round", "--first-round"),
    ("min_run", "--min-run"),
    ("mtbf", "--mtbf"),
    ("mttr", "--mttr"),
    ("estimate_bias", "--estimate-bias"),
    ("estimate_noise", "--estimate-noise"),
    ("estimate_per", "--estimate-per"),
    ("restart_cost", "--restart-cost"),
    ("checkpoint_every", "--checkpoint-every"),
    ("log_hours", "--log-hours"),
];

/// Options without one.
const SWITCHES: &[(&str, &str)] = &[
    ("multi_gpu", "--multi-gpu"),
    ("prioritize", "--prioritize"),
    ("static", "--static"),
    ("skip_bad_rows", "--skip-bad-rows"),
    ("every_round", "--every-round"),
    ("ends_as_recorded", "--ends-as-recorded"),
];

fn text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Refuses a run whose files have changed since.
fn same_inputs(results: &Results, now: &[Input]) -> Result<()> {
    for then in results.inputs.iter().filter(|input| input.role != "policy") {
        let same = now.iter().find(|input| input.role == then.role);
        match same {
            Some(input) if input.sha256 == then.sha256 => {}
            _ => bail!(
                "{} {} has changed since the run: its checksum was {}",
                then.role,
                then.name,
                then.sha256
            ),
        }
    }
    Ok(())
}
