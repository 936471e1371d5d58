//! GPEmu's Synergy run: a head and two agents with eight emulated GPUs each on this machine, the same jobs deployed under
//! each policy with time running faster, by the commands a user would type.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::FormArgs;
use super::local_cluster::LocalCluster;
use rota_lab::reproduce::gpemu::{
    ALLOCATIONS, Cell, Column, Curve, JOBS, ORDERS, ORIGIN, POINTS, Published, Study,
};
use rota_lab::results::{MadeBy, Results, RunResult, replace_file};
use rota_lab::shared::shared_folder;

/// The servers of the cluster file that GPEmu's fork of Synergy deploys on.
const CLUSTER: &str = "format = 1\nname = \"gpemu\"\n\n[[nodes]]\ncount = 2\ngpu_type = \"V100\"\ngpus = 8\n\
                       gpu_mem = \"32GB\"\ncpus = 24\nmem = \"500GB\"\nstorage = \"500MB/s\"\n";
/// Synergy's rounds.
const ROUND: &str = "300s";
const JOBS_OF_GPEMU: usize = 40;
const QUICK_JOBS: usize = 8;
/// From the first arrival to the last end, roughly.
const HOURS_OF_JOBS: f64 = 15.0;
/// Seconds of the jobs' time in one real second, unless the user asks for another factor.
const TIME_SCALE: f64 = 240.0;
/// Jobs an hour: see `rota_lab::reproduce::gpemu::JOBS`.
const LOAD: &str = "6";
const SPLIT: &str = "33,33,34";

/// What of GPEmu, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct GpemuArgs {
    /// What to reproduce
    #[arg(value_enum)]
    pub what: What,
    /// Eight jobs instead of forty, skipping the time in which nothing happens
    #[arg(long)]
    pub quick: bool,
    /// Seconds of the jobs' time in one real second
    #[arg(long, value_name = "FACTOR", default_value_t = TIME_SCALE)]
    pub time_scale: f64,
    /// Seed of the jobs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The table of GPEmu's points [default: golden/gpemu/synergy_cdf.csv below $ROTA_SHARED, else ../shared]
    #[arg(long, value_name = "FILE")]
    pub points: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Folder for the page, the plots and times.csv, every job's time; a folder with other results is refused
    #[arg(short, long, value_name = "DIR", default_value = "reproduce-gpemu-synergy")]
    pub out: PathBuf,
    /// Replace other results in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// A run of GPEmu's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Its reproduction of Synergy's deployment: las and srtf, proportional and tuned
    Synergy,
}

/// Deploys, compares and draws.
pub(super) fn run(args: &GpemuArgs) -> Result<ExitCode> {
    let What::Synergy = args.what;
    let study = reproduce(args)?;
    match args.json {
        true => print!("{}", study.to_json()),
        false => {
            print!("{}\nresults in {1}: open {1}/report.html\n", study.to_text(), args.out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The run as part of `rota reproduce all`, in Markdown; kept in its folder, where the same program finds it again.
pub(super) fn as_part_of_all(out: &Path, form: &FormArgs) -> Result<String> {
    let out = out.join("gpemu-synergy");
    let (file, program) = (out.join(KEPT), super::figure::program()?);
    let kept = std::fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<Kept>(&text).ok());
    if let Some(kept) = kept.filter(|kept| kept.program == program && kept.is_quick == form.quick) {
        return Ok(kept.markdown);
    }
    let points = form.traces.iter().filter_map(|folder| Some(folder.join(Path::new(POINTS).file_name()?)));
    let args = GpemuArgs {
        what: What::Synergy,
        quick: form.quick,
        time_scale: TIME_SCALE,
        seed: 1,
        points: points.into_iter().find(|file| file.is_file()),
        json: false,
        out,
        overwrite: form.overwrite,
        quiet: form.quiet,
    };
    let kept = Kept { program, is_quick: form.quick, markdown: reproduce(&args)?.to_markdown() };
    replace_file(&file, serde_json::to_string_pretty(&kept)?.as_bytes())?;
    Ok(kept.markdown)
}

/// Minutes that all forty jobs take.
pub(super) fn full_minutes() -> f64 {
    minutes(TIME_SCALE)
}

/// The file that remembers a complete run.
const KEPT: &str = "kept.json";

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Version and checksum of the program that ran it: another one may decide otherwise.
    program: String,
    is_quick: bool,
    markdown: String,
}

fn minutes(time_scale: f64) -> f64 {
    (ORDERS.len() * ALLOCATIONS.len()) as f64 * HOURS_OF_JOBS * 60.0 / time_scale
}

/// Deploys and compares, and writes everything into the folder of results.
fn reproduce(args: &GpemuArgs) -> Result<Study> {
    if !(args.time_scale.is_finite() && args.time_scale >= 1.0) {
        bail!("--time-scale {}: at least 1 is expected", args.time_scale);
    }
    let say = |text: &str| {
        if !args.quiet && !args.json {
            eprintln!("{text}");
        }
    };
    let (published, missing) = published(args)?;
    let quick = if args.quick { " --quick" } else { "" };
    let command =
        format!("reproduce gpemu synergy{quick} --time-scale {} --seed {}", args.time_scale, args.seed);
    MadeBy::new(command).take(&args.out, args.overwrite, &["report.html", "plots", "times.csv", KEPT])?;
    if let Some(missing) = &missing {
        say(missing);
    }
    let n_jobs = if args.quick { QUICK_JOBS } else { JOBS_OF_GPEMU };
    if !args.quick {
        let minutes = minutes(args.time_scale);
        say(&format!(
            "{HOURS_OF_JOBS} hours of the jobs' time under each of four policies: about {minutes:.0} minutes; --quick takes one or two"
        ));
    }
    let results = deployed(args, n_jobs, &say)?;
    let study = study(args, n_jobs, &results, &published, missing)?;
    study.write(&args.out)?;
    Ok(study)
}

/// The points, or why they are missing.
fn published(args: &GpemuArgs) -> Result<(Published, Option<String>)> {
    let default = shared_folder().join(POINTS);
    match (&args.points, default.exists()) {
        (Some(file), _) => Ok((Published::read(file)?, None)),
        (None, true) => Ok((Published::read(&default)?, None)),
        (None, false) => {
            let missing = format!(
                "GPEmu's points are not at {}, so its times and the paper's are not shown; they are published at \
                 {ORIGIN}: name the file with --points",
                default.display()
            );
            Ok((Published::default(), Some(missing)))
        }
    }
}

/// Starts the cluster and deploys the jobs under each policy; every run with a simulation of it.
fn deployed(args: &GpemuArgs, n_jobs: usize, say: &dyn Fn(&str)) -> Result<Results> {
    let rota = LocalCluster::new()?;
    let cluster = rota.home().join("gpemu.toml");
    std::fs::write(&cluster, CLUSTER).with_context(|| cluster.display().to_string())?;
    let cluster = cluster.display().to_string();
    let scale = args.time_scale.to_string();
    say("starting a head and two agents with 8 emulated GPUs each");
    let mut up = vec!["--cluster", &cluster, "--profiles", "synergy", "--round", ROUND, "--on-grid"];
    up.extend(["--time-scale", &scale]);
    up.extend(args.quick.then_some("--fast-forward"));
    rota.up(&up)?;
    let (jobs, seed) = (n_jobs.to_string(), args.seed.to_string());
    let mut runs = Vec::new();
    let mut first: Option<Results> = None;
    for policy in policies() {
        say(&format!("deploying {n_jobs} jobs under {policy}"));
        let out = rota.home().join(&policy).display().to_string();
        let mut deploy = vec!["deploy", "--cluster", &cluster, "--profiles", "synergy", "--round", ROUND];
        deploy.extend([
            "--jobs",
            &jobs,
            "--short",
            "--split",
            SPLIT,
            "--jobs-per-hour",
            LOAD,
            "--seed",
            &seed,
        ]);
        deploy.extend(["-p", &policy, "--compare-simulation", "--quiet", "--out", &out]);
        deploy.extend(args.quick.then_some(["--fast-forward", "1"]).into_iter().flatten());
        rota.run(&deploy)?;
        let mut results = Results::read(out.as_ref())?;
        runs.append(&mut results.runs);
        first.get_or_insert(results);
    }
    rota.down()?;
    let first = first.context("no policy was deployed")?;
    Ok(Results { title: "GPEmu's Synergy run".to_owned(), runs, ..first })
}

fn policies() -> impl Iterator<Item = String> {
    ORDERS.iter().flat_map(|order| ALLOCATIONS.iter().map(move |allocation| format!("{order}+{allocation}")))
}

fn study(
    args: &GpemuArgs,
    n_jobs: usize,
    results: &Results,
    published: &Published,
    missing: Option<String>,
) -> Result<Study> {
    let run = |policy: &str| results.runs.iter().find(|run| run.meta.policy == policy);
    let mut cells = Vec::new();
    for order in ORDERS {
        for allocation in ALLOCATIONS {
            let policy = format!("{order}+{allocation}");
            let times = |policy: &str| run(policy).and_then(|run| curve(run, n_jobs));
            let nothing = || format!("not all of the jobs ended under {policy}");
            cells.push(Cell {
                order,
                allocation,
                deployed: times(&policy).with_context(nothing)?,
                simulated: times(&format!("{policy} simulated")).with_context(nothing)?,
                gpemu: published.curve(Column::Gpemu, order, allocation).cloned(),
                paper: published.curve(Column::Paper, order, allocation).cloned(),
            });
        }
    }
    let how = if args.quick { ", skipping the time in which nothing happens" } else { "" };
    let what = format!(
        "{n_jobs} jobs on 2 emulated servers of 8 GPUs and 24 CPUs, seed {}, {} times as fast{how}",
        args.seed, args.time_scale
    );
    let mut notes = vec![JOBS.to_owned()];
    notes.extend(
        args.quick.then(|| format!("The small form has {n_jobs} jobs, GPEmu's run had {JOBS_OF_GPEMU}.")),
    );
    notes.extend(missing);
    Ok(Study { what, is_quick: args.quick, notes, cells })
}

/// Completion times in hours; none unless every job ended.
fn curve(run: &RunResult, n_jobs: usize) -> Option<Curve> {
    let hours = run.jobs.iter().filter_map(|job| job.jct()).map(|jct| jct.as_secs_f64() / 3_600.0);
    Curve::of_times(hours.collect()).filter(|curve| curve.n_jobs() == n_jobs)
}
