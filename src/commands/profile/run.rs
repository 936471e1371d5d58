//! `rota profile run`: the sweep as its user sees it. What to run next is decided in `rota_lab::profile::sweep`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rota_core::profile::Profile;
use rota_traces::profile::{Measured, MeasuredPoint, ProfileEntry, ProfileSet, write};
use rota_traces::units::Bytes;
use rota_transport::measure::{MeasureResources, MeasureSpec};

use super::cluster::ClusterRuns;
use super::probe::rates_of;
use super::settings::{DataSet, RunArgs};
use crate::commands::live::agent_program;
use rota_lab::profile::findings::{Findings, FindingsFile, Run};
use rota_lab::profile::fit::{Fit, rounded};
use rota_lab::profile::grid::Point;
use rota_lab::profile::invocation::Invocation;
use rota_lab::profile::measure::{Running, Speaks};
use rota_lab::profile::overhead::published;
use rota_lab::profile::page::{self, PageFacts};
use rota_lab::profile::perf_file::PerfFile;
use rota_lab::profile::rates::machine_name;
use rota_lab::profile::sweep::Sweep;
use rota_lab::report::write_figures;
use rota_lab::results::{MadeBy, replace_file};

/// How often a measured command is asked to report, in seconds.
const REPORT_EVERY_S: &str = "0.02";
/// Time between asking a run to stop and killing it.
const GRACE_S: f64 = 5.0;

/// Runs the sweep and writes the profile.
pub(super) fn run(args: &RunArgs) -> Result<()> {
    let dataset = DataSet::of(args)?;
    let sweep = args.sweep(dataset.as_ref())?;
    let invocation = args.invocation();
    say_plan(args, &sweep, &invocation);
    if args.dry_run {
        return Ok(());
    }
    warn_if_busy(args);
    let folder = args.folder();
    let of = subject(args, &invocation);
    let written = ["runs.jsonl", "profile.toml", "report.html", "plots"];
    MadeBy::of_any_version(format!("profile run -- {of}")).take(&folder, args.overwrite, &written)?;
    let (file, findings) = FindingsFile::open(&folder.join("runs.jsonl"), &of)?;
    if !findings.runs().is_empty() {
        eprintln!("continuing after {} runs in {}", findings.runs().len(), folder.display());
    }
    let mut session = Session {
        cluster: ClusterRuns::of(args)?,
        args,
        sweep: &sweep,
        invocation: &invocation,
        agent: agent_program()?,
        // A short name: the path of a socket has at most about a hundred bytes.
        run_dir: tempfile::Builder::new().prefix("rota-").tempdir()?,
        file,
        findings,
    };
    let ending = session.sweep();
    let findings = session.findings;
    let Some(fit) = Fit::new(&sweep, &findings) else {
        ending?;
        bail!("nothing could be measured");
    };
    let fit = match &dataset {
        Some(dataset) if !args.measure_memory => with_cache(args, dataset, &sweep, fit)?,
        _ => fit,
    };
    let notes = notes(&sweep, &findings, &fit, ending.as_ref().err());
    write_results(args, &folder, &sweep, &findings, &fit, notes)?;
    ending
}

/// Warns when other processes use the machine: they would be measured too.
fn warn_if_busy(args: &RunArgs) {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let n_cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    if !args.pretend && args.head.is_none() && load > n_cpus / 2.0 {
        eprintln!(
            "note: other processes are running on this machine ({load} for {n_cpus} CPUs): measured speeds will be too low"
        );
    }
}

/// Everything that the numbers of a folder depend on: other runs are not mixed in.
fn subject(args: &RunArgs, invocation: &Invocation) -> String {
    let point = Point { gpus: 0, batch: 0, cpu_micro: 0, mem_bytes: 0 };
    let image = args.image.as_deref().map_or(String::new(), |image| format!(" in {image}"));
    format!("{}{image}, {} iterations", invocation.at(&point).join(" "), args.iterations)
}

fn say_plan(args: &RunArgs, sweep: &Sweep, invocation: &Invocation) {
    let cost = sweep.cost();
    let base = sweep.grid.base();
    eprintln!("the command with the most resources: {}", invocation.at(&base).join(" "));
    for option in invocation.overruled() {
        eprintln!("its own `{option}` is replaced by the profiler's");
    }
    let list = |levels: Vec<String>| levels.join(", ");
    let cpus = sweep.grid.cpu_micro().iter().map(|cpu| (*cpu as f64 / 1e6).to_string());
    eprintln!("CPUs for each GPU: {}", list(cpus.collect()));
    if sweep.grid.mem_bytes().len() > 1 {
        let memory = sweep.grid.mem_bytes().iter().map(|mem| format!("{} GB", *mem as f64 / 1e9));
        let how = if args.measure_memory { "run" } else { "computed from the data set, not run" };
        eprintln!("memory for each GPU ({how}): {}", list(memory.collect()));
    }
    if sweep.grid.scale_axis().len() > 1 {
        let scale = sweep.grid.scale_axis();
        let scale = scale.iter().map(|point| match point.batch {
            0 => point.gpus.to_string(),
            batch => format!("{} with batch {batch}", point.gpus),
        });
        eprintln!("GPUs: {}", list(scale.collect()));
    }
    eprintln!(
        "{} to {} runs of {} iterations (the full grid has {}), not counting repetitions; \
         each at most {} s, no new one after {} s",
        cost.least,
        cost.most,
        args.iterations,
        cost.full,
        args.run_limit.as_secs_f64(),
        args.budget.as_secs_f64()
    );
}

struct Session<'a> {
    /// A live cluster to run on, instead of this machine.
    cluster: Option<ClusterRuns>,
    args: &'a RunArgs,
    sweep: &'a Sweep,
    invocation: &'a Invocation,
    agent: PathBuf,
    /// For the runs' own files; removed at the end.
    run_dir: tempfile::TempDir,
    file: FindingsFile,
    findings: Findings,
}

impl Session<'_> {
    /// Runs point after point. What was measured before something went wrong is kept.
    fn sweep(&mut self) -> Result<()> {
        let budget_s = self.args.budget.as_secs_f64();
        while let Some(next) = self.sweep.next(&self.findings) {
            if self.findings.wall_s() >= budget_s {
                bail!(
                    "the budget of {budget_s} s is spent: what was measured is kept, and a run with a larger --budget continues from there"
                );
            }
            let run = self.measure(&next.point, next.is_warm_up)?;
            self.file.add(&run)?;
            self.say(&run);
            self.findings.add(run);
        }
        let base = self.sweep.grid.base();
        match self.findings.failure(&base) {
            Some(why) => bail!("{base}: {why}"),
            None => Ok(()),
        }
    }

    fn measure(&mut self, point: &Point, is_warm_up: bool) -> Result<Run> {
        let Some(cluster) = &mut self.cluster else { return self.measure_here(point, is_warm_up) };
        let began = Instant::now();
        let run = cluster.measure(self.args, self.invocation, point)?;
        let iteration_s = run.iteration_s.iter().map(|seconds| seconds * self.args.time_scale).collect();
        let wall_s = began.elapsed().as_secs_f64();
        Ok(Run { point: *point, iteration_s, wall_s, failure: run.failure, is_warm_up })
    }

    fn measure_here(&self, point: &Point, is_warm_up: bool) -> Result<Run> {
        let spec = self.spec(point)?;
        let perf_file = self.perf_file(&spec, point)?;
        let began = Instant::now();
        let mut running = Running::start(&self.agent, &spec)?;
        while running.next(self.args.pattern.as_ref()).is_some() {}
        let mut account = running.account()?;
        let speaks = match perf_file.map(|file| file.take()) {
            None if self.args.pattern.is_some() => Speaks::Pattern,
            None => Speaks::Protocol,
            Some(Ok(seconds)) => {
                account.stated_s = vec![seconds];
                Speaks::File(None)
            }
            Some(Err(why)) => Speaks::File(Some(why)),
        };
        if self.findings.runs().is_empty() {
            for warning in account.end.iter().flat_map(|end| &end.warnings) {
                eprintln!("note: {warning}");
            }
        }
        let warm_up = self.args.warm_up.unwrap_or(self.args.iterations / 10);
        let times = account.iteration_s(warm_up);
        let mut failure = account.failure(&spec, &speaks);
        if failure.is_none() && times.is_empty() {
            failure = Some(format!("too few reports of progress after a warm-up of {warm_up} iterations"));
        }
        let iteration_s = match failure {
            Some(_) => Vec::new(),
            None => times.iter().map(|seconds| seconds * self.args.time_scale).collect(),
        };
        Ok(Run { point: *point, iteration_s, wall_s: began.elapsed().as_secs_f64(), failure, is_warm_up })
    }

    /// The file into which a script of Synergy writes its time.
    fn perf_file(&self, spec: &MeasureSpec, point: &Point) -> Result<Option<PerfFile>> {
        let job = self.invocation.job_at(point).filter(|_| self.args.synergy);
        let file = job.map(|job| PerfFile::before_run(&spec.directory, &job));
        file.transpose().with_context(|| spec.directory.display().to_string())
    }

    fn spec(&self, point: &Point) -> Result<MeasureSpec> {
        let args = self.args;
        let mut environment: BTreeMap<String, String> = BTreeMap::new();
        // A pipe makes many programs keep their output back, and with it the time of every line.
        environment.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        environment.insert("ROTA_REPORT_EVERY_S".to_owned(), REPORT_EVERY_S.to_owned());
        for pair in &args.env {
            let (name, value) =
                pair.split_once('=').with_context(|| format!("--env {pair}: write NAME=VALUE"))?;
            environment.insert(name.to_owned(), value.to_owned());
        }
        let here = std::env::current_dir()?;
        let directory = args.directory.as_ref().map_or(here.clone(), |directory| here.join(directory));
        let gpus = u64::from(point.gpus);
        Ok(MeasureSpec {
            number: self.findings.runs().len() as u32 + 1,
            command: self.invocation.at(point),
            environment,
            directory,
            run_dir: self.run_dir.path().to_owned(),
            gpus: point.gpus,
            gpu_type: args.gpu_type.clone(),
            cpu_micro: point.cpu_micro.saturating_mul(gpus),
            mem_bytes: point.mem_bytes.saturating_mul(gpus),
            storage_bps: args.storage_rate.unwrap_or(0),
            iterations: args.iterations as f64,
            done: 0.0,
            data_dir: args.data.as_ref().map_or(here.clone(), |data| here.join(data)),
            checkpoint_dir: self.run_dir.path().join("checkpoints"),
            container: args.container()?,
            resources: if args.pretend { MeasureResources::Told } else { MeasureResources::Held },
            time_limit_s: args.run_limit.as_secs_f64(),
            silence_limit_s: args.silence.as_secs_f64(),
            grace_s: GRACE_S,
        })
    }

    fn say(&self, run: &Run) {
        let number = self.findings.runs().len() + 1;
        let what = if run.is_warm_up { " (warming up)" } else { "" };
        match (&run.failure, rota_lab::profile::samples::Estimate::of(&run.iteration_s)) {
            (Some(why), _) => eprintln!("run {number}: {}{what}: {why}", run.point),
            (None, Some(e)) => {
                let within = if e.within_s.is_finite() {
                    format!(" ± {:.1} %", e.relative() * 100.0)
                } else {
                    String::new()
                };
                eprintln!(
                    "run {number}: {}{what}: {:.4} s an iteration{within}, took {:.1} s",
                    run.point, e.iteration_s, run.wall_s
                );
            }
            (None, None) => {}
        }
        if number == 1 {
            let cost = self.sweep.cost();
            eprintln!(
                "at this pace {:.0} to {:.0} s in all",
                f64::from(cost.least) * run.wall_s,
                f64::from(cost.most) * run.wall_s
            );
        }
    }
}

fn with_cache(args: &RunArgs, dataset: &DataSet, sweep: &Sweep, fit: Fit) -> Result<Fit> {
    let needs_rates = args.storage_rate.is_none() || args.memory_rate.is_none();
    let folder = args.data.clone().unwrap_or_else(|| PathBuf::from("."));
    let rates = if needs_rates { Some(rates_of(&folder)?) } else { None };
    let cpus = sweep.grid.base().cpus();
    Ok(match dataset.cache_model(args, rates.as_ref(), cpus) {
        Some(model) => fit.with_cache(&model),
        None => fit,
    })
}

fn notes(sweep: &Sweep, findings: &Findings, fit: &Fit, ending: Option<&anyhow::Error>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(error) = ending {
        notes.push(format!("partial: {error}"));
    }
    let failed =
        findings.points().filter_map(|point| Some(format!("{point}: {}", findings.failure(&point)?)));
    notes.extend(failed);
    if let Some(worst) = fit.worst_check.filter(|worst| *worst > sweep.flat) {
        notes.push(format!(
            "away from its axes the model is wrong by {:.1} %: CPUs and memory limit this command at the same time",
            worst * 100.0
        ));
    }
    notes
}

fn write_results(
    args: &RunArgs,
    folder: &Path,
    sweep: &Sweep,
    findings: &Findings,
    fit: &Fit,
    notes: Vec<String>,
) -> Result<()> {
    let (name, machine) = (args.model(), machine_name());
    let command = args.command.join(" ");
    let points = findings.points().filter_map(|point| {
        let estimate = findings.at(&point)?;
        Some(MeasuredPoint {
            gpus: point.gpus,
            batch: point.batch,
            cpus: point.cpus(),
            mem: Bytes(point.mem_bytes),
            iteration_s: rounded(estimate.iteration_s),
            within_s: if estimate.within_s.is_finite() { rounded(estimate.within_s) } else { 0.0 },
            runs: findings.n_runs(&point),
        })
    });
    let measured = Measured {
        command: command.clone(),
        machine: machine.clone(),
        day: time::OffsetDateTime::now_utc().date().to_string(),
        tool: format!("rota {}", env!("CARGO_PKG_VERSION")),
        notes: notes.clone(),
        points: points.collect(),
        changes: Vec::new(),
    };
    let profile = Profile { source: format!("measured on {machine}"), ..fit.profile(&name, &args.gpu_type)? };
    let demand = fit.demand();
    let levels = profile.scale.iter().filter_map(|curve| {
        let most = *demand.most_gpus.get(&curve.batch)?;
        Some((curve.batch, curve.points.iter().map(|point| point.0).filter(|gpus| *gpus <= most).collect()))
    });
    let entry = ProfileEntry {
        levels: levels.collect(),
        trained: std::collections::BTreeMap::new(),
        measured: Some(measured),
        iteration_s: Some(rounded(1.0 / profile.base_rate)),
        profile: Arc::new(profile),
        ideal_speedup: None,
        is_drawn: true,
    };
    let set = ProfileSet::new(name.clone(), vec![entry]);
    let (toml, page) = (folder.join("profile.toml"), folder.join("report.html"));
    replace_file(&toml, write(&set).as_bytes())?;
    let published = published::of(&name).map_or_else(String::new, |printed| {
        let (model, took_s) = (printed.model, printed.profiling_s);
        format!(" (ElasticFlow's Figure 12(a) has {took_s} s for {model} on A100s)")
    });
    let facts = PageFacts { name, command, machine, notes };
    replace_file(&page, page::to_html(&facts, sweep, findings, fit)?.as_bytes())?;
    write_figures(&page::figures(sweep, findings, fit), folder)?;
    let plural = if demand.cpu_micro == 1_000_000 { "" } else { "s" };
    println!("request {} CPU{plural} for each GPU", demand.cpu_micro as f64 / 1e6);
    if sweep.grid.mem_bytes().len() > 1 {
        println!("request {} GB of memory for each GPU", demand.mem_bytes as f64 / 1e9);
    }
    for (batch, gpus) in demand.most_gpus.iter().filter(|_| sweep.grid.gpus().len() > 1) {
        let of = if *batch > 0 { format!(" with batch {batch}") } else { String::new() };
        println!("more than {gpus} GPUs do not make it faster{of}");
    }
    println!("{} runs in {:.0} s{published}", findings.runs().len(), findings.wall_s());
    println!("{} and {} written", toml.display(), page.display());
    Ok(())
}
