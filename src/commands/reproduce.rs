//! `rota reproduce`: the papers' figures, from options to what [`crate::reproduce`] runs.

mod gpemu;
mod live;
mod own;
mod paper;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::progress::Meter;
use super::run::parse_set;
use crate::reproduce::Picture;
use crate::reproduce::chronus;
use crate::reproduce::elasticflow::{self, Figure, Mode, StudyOptions, Watch};
use crate::reproduce::papers::{ELASTICFLOW, SYNERGY};
use paper::PaperArgs;

/// A paper.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ReproduceCommand {
    /// ElasticFlow (ASPLOS'23): its functional test, Figure 8(b), and the order of the schedulers
    Elasticflow(ElasticflowArgs),
    /// Synergy (OSDI'22): Figures 1, 6 to 12
    Synergy(PaperArgs),
    /// Chronus (SoCC'21): deadlines missed and best-effort completion times beside its baselines, on its traces
    Chronus(ChronusArgs),
    /// GPEmu's Synergy run: forty jobs deployed on emulated agents, beside GPEmu's completion times and the paper's
    Gpemu(gpemu::GpemuArgs),
}

/// How to compare Chronus.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChronusArgs {
    /// Only the first 2,000 jobs of each trace, on 40 nodes
    #[arg(long)]
    pub quick: bool,
    /// Folder with the traces; may be given several times [default: traces/philly-chronus below $ROTA_SHARED, else ../shared]
    #[arg(long, value_name = "DIR")]
    pub traces: Vec<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Folder for the page and the plots
    #[arg(short, long, value_name = "DIR", default_value = "reproduce-chronus")]
    pub out: PathBuf,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// What of ElasticFlow.
#[derive(Args, Clone, Debug)]
pub(crate) struct ElasticflowArgs {
    /// What to reproduce
    #[arg(value_enum)]
    pub what: What,
    /// Run the functional test on a live cluster of emulated GPUs on this machine, with fast-forward
    #[arg(long)]
    pub live: bool,
    /// Only the small traces
    #[arg(long)]
    pub quick: bool,
    /// Folder with the traces; may be given several times [default: the folders below $ROTA_SHARED, else ../shared]
    #[arg(long, value_name = "DIR")]
    pub traces: Vec<PathBuf>,
    /// `compat=artifact` runs the original's program instead of the shipped policies; the functional test always does
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Folder for tables, plots and the page of a figure [default: `reproduce-elasticflow-` and its name]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

impl ElasticflowArgs {
    fn name(&self) -> String {
        self.what.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The same for a figure that is a study or a comparison.
    fn as_paper(&self) -> PaperArgs {
        PaperArgs {
            figure: self.name(),
            quick: self.quick,
            traces: self.traces.clone(),
            set: self.set.clone(),
            out: self.out.clone(),
            quiet: self.quiet,
        }
    }
}

/// A figure or a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// The original's functional test: five schedulers, one server, ten jobs; needs no file
    Functional,
    /// Figure 8(b): eleven traces under five schedulers
    #[value(name = "8b")]
    EightB,
    /// Six traces on which ElasticFlow should meet the most deadlines
    Order,
    /// Figure 6(a): 25 jobs on 32 GPUs
    #[value(name = "6a")]
    SixA,
    /// Figure 6(b): 195 jobs on 128 GPUs
    #[value(name = "6b")]
    SixB,
    /// Figure 7: GPUs given over time
    #[value(name = "7")]
    Seven,
    /// Figure 8(a): 195 jobs on 64 T4s
    #[value(name = "8a")]
    EightA,
    /// Figure 9: admission control and elasticity, apart
    #[value(name = "9")]
    Nine,
    /// Figure 10: cluster efficiency over time
    #[value(name = "10")]
    Ten,
    /// Figure 11: best-effort jobs among those with deadlines
    #[value(name = "11")]
    Eleven,
    /// How far ElasticFlow's greedy admission falls short of the optimum, on three traces (elasticflow-opt)
    Admission,
}

/// Runs the command; 1 when the functional test's counts are not the published ones.
pub(crate) fn run(command: &ReproduceCommand) -> Result<ExitCode> {
    match command {
        ReproduceCommand::Elasticflow(args) => run_elasticflow(args),
        ReproduceCommand::Synergy(args) => paper::run("synergy", SYNERGY, args),
        ReproduceCommand::Chronus(args) => run_chronus(args),
        ReproduceCommand::Gpemu(args) => gpemu::run(args),
    }
}

fn run_chronus(args: &ChronusArgs) -> Result<ExitCode> {
    let default = || vec![shared().join("traces/philly-chronus")];
    let folders = if args.traces.is_empty() { default() } else { args.traces.clone() };
    let n_runs = chronus::POLICIES.len() * chronus::TRACES.len();
    if !args.quick && !args.quiet && !args.json {
        eprintln!(
            "{n_runs} runs of 30,700 jobs each: about three minutes on two cores; --quick takes seconds"
        );
    }
    let meter = Meter::new(n_runs as u64, n_runs, args.quiet || args.json);
    let options = chronus::ChronusOptions { is_quick: args.quick, folders };
    let study = chronus::study(&options, &|| {
        meter.advance(1);
        meter.run_done();
    });
    meter.finish();
    let study = study?;
    show(&study.picture(), args.json.then(|| study.to_json()), &args.out)
}

/// Writes the page and prints the tables, or what programs are told.
fn show(picture: &Picture, json: Option<String>, out: &Path) -> Result<ExitCode> {
    picture.write(out)?;
    match json {
        Some(json) => print!("{json}"),
        None => print!("{}\nresults in {1}: open {1}/report.html\n", picture.text, out.display()),
    }
    Ok(ExitCode::SUCCESS)
}

fn run_elasticflow(args: &ElasticflowArgs) -> Result<ExitCode> {
    if args.live && args.what != What::Functional {
        bail!("--live: only the functional test runs on a live cluster");
    }
    let figure = match args.what {
        What::Functional if args.live => return live::functional(args.json, args.quiet),
        What::Functional => return functional(args.json),
        What::Admission => return admission(args),
        What::EightB => Figure::EightB,
        What::Order => Figure::Order,
        What::SixA | What::SixB | What::Seven | What::EightA | What::Nine | What::Ten | What::Eleven => {
            return paper::run("elasticflow", ELASTICFLOW, &args.as_paper());
        }
    };
    let mode = mode(&args.set)?;
    let folders = if args.traces.is_empty() { default_folders() } else { args.traces.clone() };
    let bar = Bar { meter: OnceLock::new(), is_quiet: args.quiet || args.json };
    let study = elasticflow::study(&StudyOptions { figure, is_quick: args.quick, mode, folders }, &bar);
    bar.finish();
    let study = study?;
    let out =
        args.out.clone().unwrap_or_else(|| PathBuf::from(format!("reproduce-elasticflow-{}", args.name())));
    show(&study.picture(), args.json.then(|| study.to_json()), &out)
}

fn functional(is_json: bool) -> Result<ExitCode> {
    let report = elasticflow::functional()?;
    print!("{}", if is_json { report.to_json() } else { report.to_text() });
    Ok(if report.is_as_published { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn admission(args: &ElasticflowArgs) -> Result<ExitCode> {
    if mode(&args.set)? == Mode::Artifact {
        bail!("--set compat=artifact: the original has no model to compare with");
    }
    let folders = if args.traces.is_empty() { default_folders() } else { args.traces.clone() };
    let bar = Bar { meter: OnceLock::new(), is_quiet: args.quiet || args.json };
    let rows = elasticflow::admission(&folders, &bar);
    bar.finish();
    let rows = rows?;
    let is_json = args.json;
    print!(
        "{}",
        if is_json { elasticflow::admission_to_json(&rows) } else { elasticflow::admission_to_text(&rows) }
    );
    Ok(ExitCode::SUCCESS)
}

fn mode(set: &[String]) -> Result<Mode> {
    let mut mode = Mode::Shipped;
    for (key, value) in parse_set(set)? {
        mode = match (key.as_str(), value.as_str()) {
            ("compat", "artifact") => Mode::Artifact,
            ("compat", "none") => Mode::Shipped,
            _ => bail!(
                "--set {key}={value}: a figure is run with the policies' own parameters, only compat=artifact can be set"
            ),
        };
    }
    Ok(mode)
}

fn shared() -> PathBuf {
    std::env::var_os("ROTA_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from)
}

fn default_folders() -> Vec<PathBuf> {
    let shared = shared();
    ["traces/elasticflow-itp/elasticflow", "traces/philly-elasticflow", "golden/elasticflow/traces"]
        .map(|folder| shared.join(folder))
        .to_vec()
}

/// The progress bar of a study: made when it is known how much there is to do.
struct Bar {
    meter: OnceLock<Meter>,
    is_quiet: bool,
}

impl Bar {
    fn finish(&self) {
        if let Some(meter) = self.meter.get() {
            meter.finish();
        }
    }
}

impl Watch for Bar {
    fn begin(&self, n_jobs: u64, n_runs: usize) {
        self.meter.get_or_init(|| Meter::new(n_jobs, n_runs, self.is_quiet));
    }

    fn ended(&self, n_jobs: u64) {
        if let Some(meter) = self.meter.get() {
            meter.advance(n_jobs);
        }
    }

    fn run_done(&self) {
        if let Some(meter) = self.meter.get() {
            meter.run_done();
        }
    }
}
