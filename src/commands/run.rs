//! `rota simulate` and `rota compare`: policies over workloads, in parallel, ending in a table and a result folder.
//!
//! `compat` hands a run to the original's driver, `parameters` reads `--set`, `record` says what `config.toml` keeps of
//! the options.

mod compat;
mod faults;
mod parameters;
mod record;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use rayon::prelude::*;
use rota_core::ids::TenantId;
use rota_core::ledger::Ledger;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{Progress, RunSettings, simulate};
use rota_core::snapshot::{Guards, Snapshot};
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_scripts::shipped::Role;
use rota_traces::estimates::{ErrorPer, EstimateError};

use super::help::scripts;
use super::inputs::{InputArgs, Inputs, Load};
use super::plots::PlotArgs;
use super::progress::Meter;
use compat::Compat;
pub(crate) use compat::runs_originals;
pub(crate) use faults::{drawn_faults, what_fails};
use faults::{faults_help, let_jobs_fail};
pub(crate) use parameters::{check as check_set, load_policy, own as own_set, parse_set};
use rota_lab::original::Driven;
use rota_lab::report::{self, By};
use rota_lab::results::{
    Promises, Request, Results, RoundBound, RunMeta, RunResult, SpeedGap, Staging, Timing, Window,
    refuse_other_results, refuse_results,
};
use rota_lab::solve::{Bounded, Sampled};

/// Timelines of larger runs are left out unless asked for.
pub(super) const MOST_JOBS_WITH_TIMELINE: usize = 20_000;

/// Written into every result folder.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How policies are run.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Policy: parts joined by `+`, each the name of a shipped script or a path; several policies are separated by commas
    #[arg(short, long = "policy", value_name = "P", value_delimiter = ',', help_heading = "Policies", long_help = policy_help())]
    pub policies: Vec<String>,
    /// Set a parameter of every policy that has it (`rota policy show --about P` lists them), or `compat=artifact` [default: as the scripts say]
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Policies")]
    pub set: Vec<String>,
    /// With compat=artifact, the defects that the original program keeps; all others are fixed [default: all]
    ///
    /// Names separated by commas. `all` is the original as it is, `none` fixes every defect that has a name, `no-NAME` fixes
    /// that one alone. `list` prints the names and what each defect does.
    #[arg(long = "defect", value_name = "NAME", value_delimiter = ',', help_heading = "Policies")]
    pub defects: Vec<String>,
    /// Time between scheduling rounds
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "5m", help_heading = "Rounds and guards")]
    pub round: Span,
    /// Time of the first round
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "0", help_heading = "Rounds and guards")]
    pub first_round: Span,
    /// Ask the policy at every round, even where its answer cannot have changed; slower, with the same result
    #[arg(long, help_heading = "Rounds and guards")]
    pub every_round: bool,
    /// Do not preempt a job that has run for less than this [default: 0]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, help_heading = "Rounds and guards")]
    pub min_run: Option<Span>,
    /// The most GPUs a tenant may hold, e.g. `--quota vision=32` [default: no limit]
    #[arg(long, value_name = "TENANT=GPUS", help_heading = "Rounds and guards")]
    pub quota: Vec<String>,
    /// Mean time between failures of a node [default: nodes do not fail]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, help_heading = "Faults and estimates")]
    pub mtbf: Option<Span>,
    /// Mean time to repair a failed node
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1h", help_heading = "Faults and estimates")]
    pub mttr: Span,
    /// What fails, and when: a .toml of distributions, a .csv of outages, or a built-in name [default: nothing fails]
    #[arg(long, value_name = "FILE|NAME", long_help = faults_help(), conflicts_with = "mtbf", help_heading = "Faults and estimates")]
    pub faults: Option<String>,
    /// Jobs that the trace records as failed or killed fail here too, after the time they ran there; otherwise they finish then
    #[arg(long, help_heading = "Faults and estimates")]
    pub ends_as_recorded: bool,
    /// Multiply every duration that policies see by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = "Faults and estimates")]
    pub estimate_bias: f64,
    /// Spread of the durations that policies see: the standard deviation of their logarithm (0.7: one in three is more than
    /// twice or less than half the true one)
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0, help_heading = "Faults and estimates")]
    pub estimate_noise: f64,
    /// Draw the error of an estimate for each job, as users guess, or for each model, as a wrong profile would
    #[arg(long, value_name = "job|model", default_value = "job", value_parser = parse_per, help_heading = "Faults and estimates")]
    pub estimate_per: ErrorPer,
    /// At each decision, compute the most throughput that the running jobs could have, each gang on as few nodes as can hold it;
    /// one solve each
    #[arg(long, help_heading = "Output")]
    pub bound: bool,
    /// Jobs that count for the averages, by position in the trace; the run ends when all of them have ended [default: all jobs]
    #[arg(long, value_name = "LO..HI", help_heading = "Rounds and guards")]
    pub window: Option<Window>,
    /// Give the jobs of the window a higher priority
    #[arg(long, requires = "window", help_heading = "Rounds and guards")]
    pub prioritize: bool,
    /// Write a result folder; a folder that holds results of another run is refused [default: only print the table]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder
    #[arg(long, help_heading = "Output")]
    pub overwrite: bool,
    /// Also write every plot as SVG, PNG and PDF into DIR/plots; without --out, DIR is rota-out
    #[arg(long, help_heading = "Output")]
    pub plot: bool,
    #[command(flatten)]
    pub plots: PlotArgs,
    /// Also show results by GPUs asked for, by model or by tenant [default: not shown]
    #[arg(long, value_name = "gpus|model|tenant", value_delimiter = ',', help_heading = "Output")]
    pub by: Vec<By>,
    /// Record which job ran on which GPUs even in runs of more than 20,000 jobs
    #[arg(long, help_heading = "Output")]
    pub timeline: bool,
    /// Print summary.json instead of a table
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print nothing: no progress bar and no table
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

fn policy_help() -> String {
    format!(
        "Policy: parts joined by `+`, each the name of a shipped script or a path; several policies are separated by commas\n\n\
         A part is an order or a whole policy ({}), an admission rule ({}), an allocation of CPUs and memory ({}), a placement ({}) or a \
         model for what asks for one ({}): `las+tune`, \
         `./mine.rhai+tune+consolidate`. `rota policy list` describes them.",
        scripts(Role::Policy),
        scripts(Role::Admission),
        scripts(Role::Allocation),
        scripts(Role::Placement),
        scripts(Role::Model)
    )
}

/// Runs everything and reports it.
pub(crate) fn run(args: &RunArgs) -> Result<()> {
    if compat::asks_for_list(args) {
        print!("{}", compat::list());
        return Ok(());
    }
    try_out_dir(args)?;
    args.plots.options()?;
    let inputs = prepared(args)?;
    let policies = &args.policies;
    // Every policy is compiled and set before the first is run: a typing error must not cost a run.
    let compat = Compat::of(args, policies)?;
    if matches!(compat, Compat::None) {
        let warnings = parameters::check(policies, &args.set)?;
        warnings.iter().filter(|_| !args.quiet).for_each(|warning| eprintln!("warning: {warning}"));
    }
    settings_of_all(args, &inputs)?;
    let settings = record::settings(args, &inputs);
    let files: Vec<_> = inputs.files.iter().cloned().chain(record::scripts(policies)?).collect();
    let cells: Vec<_> =
        inputs.loads.iter().flat_map(|load| policies.iter().map(move |policy| (load, policy))).collect();
    if let Some(dir) = out_dir(args).filter(|_| !args.overwrite) {
        let runs = cells.iter().map(|(load, policy)| (policy.as_str(), load.jobs_per_hour)).collect();
        let request =
            Request { version: VERSION, settings: &settings, inputs: &files, runs, window: args.window };
        refuse_other_results(&dir, &request)?;
    }
    if !args.quiet {
        say_what_was_dropped(&inputs);
    }
    let started = Instant::now();
    let n_jobs = cells.iter().map(|(load, _)| load.workload.jobs.len() as u64).sum();
    let meter = Meter::new(n_jobs, cells.len(), args.quiet || args.json);
    let runs: Result<Vec<_>> =
        cells.par_iter().map(|(load, policy)| one(args, compat, &inputs, load, policy, &meter)).collect();
    meter.finish();
    let results = Results {
        title: record::title(policies, &inputs),
        version: VERSION.into(),
        settings,
        inputs: files,
        runs: runs?,
    };
    write(args, &results)?;
    if args.json {
        print!("{}", results.to_json());
    } else if !args.quiet {
        print!("{}{}", report::to_text(&results), report::on_the_table(&results));
        print!("{}", report::promises(&results));
        args.by.iter().for_each(|by| print!("{}", report::by_text(&results, *by)));
        let jobs = if n_jobs == 1 { "job" } else { "jobs" };
        println!("{} {jobs} in {}", report::grouped(n_jobs), human(started.elapsed()));
        match out_dir(args) {
            Some(dir) => println!("results in {0}: open {0}/report.html", dir.display()),
            None => println!("add --out DIR to keep jobs.csv, rounds.csv, plots and a report"),
        }
    }
    Ok(())
}

/// The inputs as policies see them.
pub(crate) fn prepared(args: &RunArgs) -> Result<Inputs> {
    let mut inputs = match runs_originals(args)? {
        true => args.inputs.resolve_for_originals()?,
        false => args.inputs.resolve()?,
    };
    let_jobs_fail(args, &mut inputs)?;
    spoil_estimates(args, &mut inputs)?;
    prioritize(args, &mut inputs);
    Ok(inputs)
}

/// The jobs that count get through first, so that a window is measured under the load behind it.
fn prioritize(args: &RunArgs, inputs: &mut Inputs) {
    let Some((first, past)) = args.window.filter(|_| args.prioritize).map(Window::bounds) else { return };
    for load in &mut inputs.loads {
        let jobs = &mut Arc::make_mut(&mut load.workload).jobs;
        let past = jobs.len().min(past as usize);
        for job in &mut jobs[(first as usize).min(past)..past] {
            Arc::make_mut(job).priority += 1;
        }
    }
}

fn parse_per(text: &str) -> Result<ErrorPer, String> {
    match text {
        "job" => Ok(ErrorPer::Job),
        "model" => Ok(ErrorPer::Model),
        _ => Err("write `job` or `model`".to_owned()),
    }
}

fn spoil_estimates(args: &RunArgs, inputs: &mut Inputs) -> Result<()> {
    if (args.estimate_bias, args.estimate_noise) == (1.0, 0.0) {
        return Ok(());
    }
    let error = EstimateError {
        bias: args.estimate_bias,
        noise: args.estimate_noise,
        per: args.estimate_per,
        seed: inputs.seed,
    };
    for load in &mut inputs.loads {
        error.apply(Arc::make_mut(&mut load.workload))?;
    }
    Ok(())
}

fn say_what_was_dropped(inputs: &Inputs) {
    let Some(load) = inputs.loads.first().filter(|l| !l.dropped.is_empty()) else { return };
    eprintln!("{} rows dropped:", load.dropped.len());
    for row in load.dropped.iter().take(20) {
        eprintln!("  line {}: {}", row.line, row.reason);
    }
    if load.dropped.len() > 20 {
        eprintln!("  … and {} more", load.dropped.len() - 20);
    }
}

/// The same for a run that no other is equal to: any results in the folder would be lost.
pub(super) fn refuse_any_results(args: &RunArgs) -> Result<()> {
    Ok(out_dir(args).filter(|_| !args.overwrite).map_or(Ok(()), |dir| refuse_results(&dir))?)
}

/// A folder that cannot be written must not cost a run: this one is made and dropped again.
pub(super) fn try_out_dir(args: &RunArgs) -> Result<()> {
    out_dir(args).map(|dir| Staging::new(&dir)).transpose()?;
    Ok(())
}

fn out_dir(args: &RunArgs) -> Option<PathBuf> {
    args.out.clone().or_else(|| args.plot.then(|| PathBuf::from("rota-out")))
}

pub(super) fn write(args: &RunArgs, results: &Results) -> Result<()> {
    let Some(dir) = out_dir(args) else { return Ok(()) };
    let staging = Staging::new(&dir)?;
    results.write_files(staging.path())?;
    report::write_page(results, staging.path())?;
    if args.plot {
        report::write_plots(results, staging.path(), &args.plots.options()?)?;
    }
    Ok(staging.commit()?)
}

/// Runs that were made elsewhere, with what a result folder says of them.
pub(super) fn results(
    args: &RunArgs,
    inputs: &Inputs,
    policies: &[String],
    sources: Vec<rota_scripts::Source>,
    runs: Vec<RunResult>,
) -> Results {
    Results {
        title: record::title(policies, inputs),
        version: VERSION.into(),
        settings: record::settings(args, inputs),
        inputs: inputs.files.iter().cloned().chain(record::script_inputs(sources)).collect(),
        runs,
    }
}

/// The only run that options describe, without a progress bar: what a study asks for.
pub(crate) fn single(args: &RunArgs, inputs: &Inputs) -> Result<RunResult> {
    let ([load], [policy]) = (inputs.loads.as_slice(), args.policies.as_slice()) else {
        bail!("{} loads and {} policies: a run has one of each", inputs.loads.len(), args.policies.len());
    };
    settings_of_all(args, inputs)?;
    let compat = Compat::of(args, &args.policies)?;
    if matches!(compat, Compat::None) {
        parameters::check(&args.policies, &args.set)?;
    }
    one_observed(args, compat, inputs, load, policy, &mut |_| ())
}

fn one(
    args: &RunArgs,
    compat: Compat,
    inputs: &Inputs,
    load: &Load,
    policy: &str,
    meter: &Meter,
) -> Result<RunResult> {
    let mut seen = 0;
    let result = one_observed(args, compat, inputs, load, policy, &mut |progress: &Progress| {
        meter.advance((progress.n_ended - seen) as u64);
        seen = progress.n_ended;
    })?;
    meter.advance((load.workload.jobs.len() - seen) as u64);
    meter.run_done();
    Ok(result)
}

fn one_observed(
    args: &RunArgs,
    compat: Compat,
    inputs: &Inputs,
    load: &Load,
    policy: &str,
    observe: &mut dyn FnMut(&Progress),
) -> Result<RunResult> {
    let started = Instant::now();
    let Ran { ledger, decide_s, parameters, bounds, speed_gap, is_met, promises, reads_estimates } =
        match compat {
            Compat::None => run_engine(args, inputs, load, policy, observe)?,
            Compat::Artifact(artifact) => {
                let Driven { ledger, is_met } = artifact
                    .run(args, inputs, load, policy, observe)
                    .with_context(|| format!("policy {policy}"))?;
                let parameters = artifact.record(&args.set)?;
                // What an original looks at is not recorded: it may be anything.
                Ran {
                    ledger,
                    decide_s: 0.0,
                    parameters,
                    bounds: Vec::new(),
                    speed_gap: None,
                    is_met,
                    promises: None,
                    reads_estimates: true,
                }
            }
        };
    let meta = RunMeta {
        policy: policy.to_owned(),
        seed: inputs.seed,
        jobs_per_hour: load.jobs_per_hour,
        exact_estimates: load
            .workload
            .jobs
            .iter()
            .zip(&load.workload.truths)
            .all(|(j, t)| j.estimated_work == t.work && t.pace == 1.0),
        reads_estimates,
        window: args.window,
        cluster: (&*inputs.cluster).into(),
        parameters,
    };
    let timing = Timing { wall_s: started.elapsed().as_secs_f64(), decide_s };
    let result = RunResult::new(meta, timing, &load.workload, &inputs.cluster, ledger);
    let mut result = RunResult { bounds, ..result };
    result.summary.speed_gap = speed_gap;
    result.summary.promises = promises;
    if let Some(is_met) = is_met {
        result.judge(is_met);
    }
    Ok(result)
}

/// Runs a workload under scripts.
fn run_engine(
    args: &RunArgs,
    inputs: &Inputs,
    load: &Load,
    policy: &str,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Ran> {
    let mut script = load_policy(policy, &args.set)?;
    let parameters = script
        .params()
        .into_iter()
        .map(|(_, p)| (p.name.clone(), toml::Value::String(p.value.to_string())))
        .collect();
    let promises = script.promises_by().map(|by| Promises { by: by.to_owned(), kept_by: script.kept_by() });
    let settings = settings(args, &load.workload)?;
    let faults = drawn_faults(args, inputs, &load.workload)?;
    let mut timed = Timed { inner: &mut script, decisions: Vec::new(), reads_estimates: false };
    let (cluster, workload) = (Arc::clone(&inputs.cluster), Arc::clone(&load.workload));
    let mut sampled = Sampled::new(&mut timed);
    let (ledger, bounds) = if args.bound {
        let mut bounded = Bounded::new(&mut sampled);
        (simulate(cluster, workload, faults, &mut bounded, &settings, observe), bounded.rounds)
    } else {
        (simulate(cluster, workload, faults, &mut sampled, &settings, observe), Vec::new())
    };
    let speed_gap = sampled.gap(&inputs.cluster);
    let (ledger, decide_s) =
        with_times(ledger.with_context(|| format!("policy {policy}"))?, &timed.decisions);
    let reads_estimates = timed.reads_estimates;
    Ok(Ran { ledger, decide_s, parameters, bounds, speed_gap, is_met: None, promises, reads_estimates })
}

/// What a run left behind.
struct Ran {
    ledger: Ledger,
    /// Time that decisions took.
    decide_s: f64,
    /// Parameters that held.
    parameters: toml::Table,
    /// Empty without `--bound`.
    bounds: Vec<RoundBound>,
    /// What some decisions left on the table.
    speed_gap: Option<SpeedGap>,
    /// What the run promised of deadlines.
    promises: Option<Promises>,
    /// Which jobs met their deadlines, where an original has its own rule for that.
    is_met: Option<Vec<bool>>,
    /// Whether the policy looked at how long a job will take.
    reads_estimates: bool,
}

fn with_times(mut ledger: Ledger, decisions: &[Duration]) -> (Ledger, f64) {
    for (sample, took) in ledger.samples.iter_mut().zip(decisions) {
        sample.decide_s = took.as_secs_f64();
    }
    (ledger, decisions.iter().sum::<Duration>().as_secs_f64())
}

/// Settings of the engine.
pub(super) fn settings(args: &RunArgs, workload: &Workload) -> Result<RunSettings> {
    if args.round <= Span::ZERO {
        bail!("--round {}: must be more than 0", args.round);
    }
    Ok(RunSettings {
        round: args.round,
        first_round: Time::ZERO + args.first_round,
        skips_rounds: !args.every_round,
        guards: Guards {
            min_run: args.min_run.unwrap_or(Span::ZERO),
            quota_gpus: quotas(&args.quota, workload)?,
        },
        keeps_timeline: keeps_timeline(args, workload),
        ends_as_recorded: workload.truths.iter().any(|truth| truth.end.is_premature()),
        window: args.window.map(Window::bounds),
        ..RunSettings::default()
    })
}

/// Every load's settings make sense, before the first is run.
fn settings_of_all(args: &RunArgs, inputs: &Inputs) -> Result<()> {
    for load in &inputs.loads {
        settings(args, &load.workload)?;
        let n_jobs = load.workload.jobs.len();
        if let Some(window) = args.window.filter(|window| window.bounds().1 as usize > n_jobs) {
            bail!("--window {window}: there are {n_jobs} jobs");
        }
    }
    Ok(())
}

fn keeps_timeline(args: &RunArgs, workload: &Workload) -> bool {
    args.timeline || (out_dir(args).is_some() && workload.jobs.len() <= MOST_JOBS_WITH_TIMELINE)
}

fn quotas(given: &[String], workload: &Workload) -> Result<BTreeMap<TenantId, u32>> {
    let quota = |text: &String| {
        let (tenant, gpus) =
            text.split_once('=').ok_or_else(|| anyhow!("--quota {text}: write TENANT=GPUS"))?;
        let index = workload.tenants.iter().position(|t| t == tenant);
        let index = index.with_context(|| {
            format!(
                "--quota {text}: there is no tenant `{tenant}`; the tenants are {}",
                workload.tenants.join(", ")
            )
        })?;
        Ok((
            TenantId::from(index),
            gpus.parse().with_context(|| format!("--quota {text}: `{gpus}` is not a number of GPUs"))?,
        ))
    };
    given.iter().map(quota).collect()
}

/// A duration as people say it.
pub(crate) fn human(duration: Duration) -> String {
    let s = duration.as_secs_f64();
    match s {
        _ if s < 1.0 => format!("{:.0} ms", s * 1e3),
        _ if s < 120.0 => format!("{s:.1} s"),
        _ => format!("{:.0} min", s / 60.0),
    }
}

/// Measures how long each decision takes, as the core has no clock, and sees what it looks at.
struct Timed<'a> {
    inner: &'a mut dyn Policy,
    decisions: Vec<Duration>,
    /// Whether it ever looked at how long a job will take.
    reads_estimates: bool,
}

impl Policy for Timed<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        snapshot.jobs.take_estimates_read();
        let started = Instant::now();
        let plan = self.inner.decide(snapshot);
        self.decisions.push(started.elapsed());
        self.reads_estimates |= snapshot.jobs.take_estimates_read();
        plan
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}
