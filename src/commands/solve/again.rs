//! A finished run as a command line again, from what its `config.toml` keeps.

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::commands::run::RunArgs;
use crate::results::{Input, Results, RunMeta};

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    args: RunArgs,
}

/// The options one of the runs was made with.
pub(super) fn args(results: &Results, policy: Option<&str>) -> Result<RunArgs> {
    let meta = chosen(results, policy)?;
    if meta.parameters.get("compat").is_some() {
        bail!("a run with compat=artifact has no instants of the engine");
    }
    let mut line: Vec<String> =
        vec!["--policy".into(), meta.policy.clone(), "--seed".into(), meta.seed.to_string()];
    for role in ["cluster", "trace", "workload", "profiles"] {
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
    for (key, option) in [("set", "--set"), ("quota", "--quota")] {
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
    Ok(Line::try_parse_from(line).context("config.toml does not say a run of this version")?.args)
}

/// Options with a value: its name in `config.toml`, and on the command line.
const OPTIONS: &[(&str, &str)] = &[
    ("format", "--format"),
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
];

fn text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

fn chosen<'a>(results: &'a Results, policy: Option<&str>) -> Result<&'a RunMeta> {
    let names = || results.runs.iter().map(|run| run.meta.policy.as_str()).collect::<Vec<_>>().join(", ");
    match (policy, results.runs.as_slice()) {
        (None, [run]) => Ok(&run.meta),
        (None, _) => bail!("the folder holds several runs: say which with --policy, one of {}", names()),
        (Some(policy), runs) => {
            let run = runs.iter().find(|run| run.meta.policy == policy);
            Ok(&run.with_context(|| format!("--policy {policy}: the folder holds {}", names()))?.meta)
        }
    }
}

/// Refuses a run whose files have changed since.
pub(super) fn same_inputs(results: &Results, now: &[Input]) -> Result<()> {
    for then in results.inputs.iter().filter(|input| input.role != "policy") {
        let same = now.iter().find(|input| input.role == then.role);
        match same {
            Some(input) if input.sha256 == then.sha256 => {}
            _ => bail!(
                "{} {} is not what the run was made with: its checksum was {}",
                then.role,
                then.name,
                then.sha256
            ),
        }
    }
    Ok(())
}
