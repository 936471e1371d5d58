//! `rota reproduce`: the papers' figures, from options to what [`rota_lab::reproduce`] knows of them.

mod all;
mod attribute;
mod columns;
mod figure;
mod gpemu;
mod inputs;
mod list;
mod live;
mod local_cluster;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use all::AllArgs;
use rota_lab::reproduce::elasticflow;
use rota_lab::reproduce::papers::{Paper, paper};

/// A paper.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ReproduceCommand {
    /// ElasticFlow (ASPLOS'23): Figures 6 to 11, its functional test, its admission compared with an optimal one
    Elasticflow(ElasticflowArgs),
    /// Synergy (OSDI'22): Figures 1, 6 to 12
    Synergy(SynergyArgs),
    /// Chronus (SoCC'21): missed deadlines and best-effort completion times, compared with its baselines on its traces
    Chronus(HowArgs),
    /// GPEmu's Synergy run: forty jobs deployed on emulated agents, compared with GPEmu's completion times and the paper's
    Gpemu(gpemu::GpemuArgs),
    /// Every figure of every paper, and the list of all claims with their verdicts
    All(AllArgs),
    /// List the claims of every figure, each with the name that verdicts carry; runs nothing
    Claims,
    /// List the figures: the command for each, how long it takes, and which need files; runs nothing
    List,
}

/// How a figure is run.
///
/// Every figure is run twice, by the original's rules and by the shipped policies, and shown next to the published numbers.
/// Each of its claims is judged by all three: it holds, does not hold, is a tie, or there is nothing to compare.
#[derive(Args, Clone, Debug)]
pub(crate) struct HowArgs {
    #[command(flatten)]
    pub form: FormArgs,
    /// Set a parameter of the figure's study, as in `--set seeds=5` [default: as the script says]
    ///
    /// `compat=artifact` runs the original's rules only, `compat=none` the shipped policies only.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The original's rules with these of its defects only; `none` fixes all of them (`rota simulate --defect list`)
    /// [default: all]
    ///
    /// Without it the original is run as it is, and for most figures a table shows what each defect alone changes.
    #[arg(long = "defect", value_name = "NAME", value_delimiter = ',')]
    pub defects: Vec<String>,
    /// Print claims.json instead of tables
    #[arg(long)]
    pub json: bool,
    /// Folder for claims, plots and the page; run again to go on where it stopped; a folder with other results is refused
    /// [default: `reproduce-` and its name]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What one figure and all figures are run with.
#[derive(Args, Clone, Debug)]
pub(crate) struct FormArgs {
    /// Run the small form of a figure, in less than a minute; it says how it is smaller and what it cannot show
    #[arg(long)]
    pub quick: bool,
    /// Folder with the traces; may be given several times [default: the folders below $ROTA_SHARED, else ../shared]
    #[arg(long, value_name = "DIR")]
    pub traces: Vec<PathBuf>,
    /// Replace other results in the folder
    #[arg(long)]
    pub overwrite: bool,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// What of Synergy.
#[derive(Args, Clone, Debug)]
pub(crate) struct SynergyArgs {
    /// The figure: 1, 6, 7, 8, 9, 10 (tune and the optimum), 11 (CPUs for each GPU) or 12
    #[arg(value_name = "FIGURE")]
    pub figure: String,
    #[command(flatten)]
    pub how: HowArgs,
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
    #[command(flatten)]
    pub how: HowArgs,
}

/// A figure or a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// The original's functional test: five schedulers, one server, ten jobs; needs no file
    Functional,
    /// Figure 8(b): eleven traces under six schedulers
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

impl What {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Runs the command; 1 when a run failed, or when the functional test's counts are not the published ones.
pub(crate) fn run(command: &ReproduceCommand) -> Result<ExitCode> {
    match command {
        ReproduceCommand::Elasticflow(args) if args.what == What::Functional => functional(args),
        ReproduceCommand::Elasticflow(args) if args.live => {
            bail!("--live is for the functional test: `rota deploy` runs any trace on a live cluster")
        }
        ReproduceCommand::Elasticflow(args) => {
            figure::run(known("elasticflow")?, &args.what.name(), &args.how)
        }
        ReproduceCommand::Synergy(args) => figure::run(known("synergy")?, &args.figure, &args.how),
        ReproduceCommand::Chronus(how) => {
            let paper = known("chronus")?;
            figure::run(paper, paper.figures[0].name, how)
        }
        ReproduceCommand::Gpemu(args) => gpemu::run(args),
        ReproduceCommand::All(args) => all::run(args),
        ReproduceCommand::List => {
            print!("{}", list::list_of_figures());
            Ok(ExitCode::SUCCESS)
        }
        ReproduceCommand::Claims => {
            print!("{}", all::list_of_claims());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn known(system: &str) -> Result<&'static Paper> {
    match paper(system) {
        Some(paper) => Ok(paper),
        None => bail!("{system}: no such paper"),
    }
}

fn functional(args: &ElasticflowArgs) -> Result<ExitCode> {
    if args.live {
        return live::functional(args.how.json, args.how.form.quiet);
    }
    let report = elasticflow::functional()?;
    print!("{}", if args.how.json { report.to_json() } else { report.to_text() });
    Ok(if report.is_as_published { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
