//! What `config.toml` records of a run: every option as resolved, and the scripts of its policies.

use std::collections::BTreeMap;

use anyhow::Result;
use rota_scripts::{ScriptPolicy, Source, shipped};
use rota_traces::estimates::ErrorPer;

use super::{Inputs, RunArgs};
use rota_lab::results::Input;

/// The options of a run, in the words of the command line.
pub(super) fn settings(args: &RunArgs, inputs: &Inputs) -> toml::Table {
    let mut table = toml::Table::new();
    let mut put =
        |key: &str, value: Option<toml::Value>| drop(value.map(|value| table.insert(key.to_owned(), value)));
    let list = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec().into());
    let span = |span: rota_core::time::Span| Some(format!("{span}s").into());
    let options = &inputs.options;
    put("workload", Some(inputs.name.clone().into()));
    put("cluster", Some(inputs.cluster.name.clone().into()));
    put("profiles", Some(inputs.profiles.name.clone().into()));
    put("format", args.inputs.format.clone().map(Into::into));
    put("map", args.inputs.map.clone().map(Into::into));
    put("jobs", options.jobs.map(|jobs| (jobs as i64).into()));
    let split = options.split.0.iter().map(|(class, percent)| (class.clone(), (*percent).into()));
    put("split", Some(toml::Table::from_iter(split).into()));
    put("multi_gpu", Some(options.multi_gpu.into()));
    put("best_effort", args.inputs.best_effort.map(Into::into));
    put("static", Some(options.is_static.into()));
    put("lengths", Some(format!("{:?}", options.lengths).to_lowercase().into()));
    put("durations", Some(format!("{:?}", options.durations).to_lowercase().into()));
    put("arrivals", Some(format!("{:?}", options.arrivals).to_lowercase().into()));
    put("skip_bad_rows", Some(args.inputs.skip_bad_rows.into()));
    put("seed", Some(inputs.seed.to_string().into()));
    put("round", span(args.round));
    put("first_round", span(args.first_round));
    put("every_round", Some(args.every_round.into()));
    put("prioritize", Some(args.prioritize.into()));
    put("log_hours", args.inputs.log_hours.map(|(lo, hi)| format!("{lo}..{hi}").into()));
    put("set", list(&args.set));
    put("defect", list(&args.defects));
    put("quota", list(&args.quota));
    put("min_run", args.min_run.and_then(span));
    put("mtbf", args.mtbf.and_then(span));
    put("mttr", args.mtbf.and_then(|_| span(args.mttr)));
    put("ends_as_recorded", args.ends_as_recorded.then(|| true.into()));
    put("estimate_bias", Some(args.estimate_bias.into()));
    put("estimate_noise", Some(args.estimate_noise.into()));
    let per = (args.estimate_per == ErrorPer::Model).then(|| "model".into());
    put("estimate_per", per);
    put("restart_cost", args.inputs.restart_cost.and_then(span));
    put("checkpoint_every", args.inputs.checkpoint_every.and_then(span));
    table
}

/// More policies than this are counted, not named, in a heading.
const MOST_NAMED: usize = 4;

/// What was run, as the heading of a page.
pub(super) fn title(policies: &[String], inputs: &Inputs) -> String {
    let policies = match policies {
        few if few.len() <= MOST_NAMED => few.join(", "),
        many => format!("{} policies", many.len()),
    };
    let loads: Vec<String> =
        inputs.loads.iter().filter_map(|load| load.jobs_per_hour).map(|load| load.to_string()).collect();
    let loads = match loads.as_slice() {
        [] => String::new(),
        [first, .., last] if loads.len() > MOST_NAMED => format!(" at {first} to {last} jobs/h"),
        few => format!(" at {} jobs/h", few.join(", ")),
    };
    let is_trace = inputs.loads.iter().any(|load| load.reading.is_some());
    format!(
        "{policies}: {} {}{loads} on cluster {} ({} GPUs)",
        if is_trace { "trace" } else { "workload" },
        inputs.name,
        inputs.cluster.name,
        inputs.cluster.n_gpus()
    )
}

/// The scripts of all policies, each once, with checksums.
pub(super) fn scripts(policies: &[String]) -> Result<Vec<Input>> {
    let mut sources = Vec::new();
    for policy in policies {
        sources.extend(ScriptPolicy::sources_of(policy)?);
    }
    Ok(script_inputs(sources))
}

/// Scripts, each once, with checksums; with their text where they are not the shipped ones.
pub(super) fn script_inputs(sources: Vec<Source>) -> Vec<Input> {
    let mut inputs = BTreeMap::new();
    for Source { file, text, .. } in sources {
        let is_shipped = shipped::ALL.iter().any(|script| script.file == file && script.source == text);
        let input = Input::of_bytes("policy", &file, text.as_bytes());
        let own = Input { text: (!is_shipped).then_some(text), ..input };
        inputs.entry(file).or_insert(own);
    }
    inputs.into_values().collect()
}
