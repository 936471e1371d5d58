//! `rota conform`: recorded outputs of the original programs against ours. The cases with inputs of our own are built in.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use include_dir::{Dir, include_dir};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rota_core::time::{Span, Time};
use tempfile::TempDir;

use rota_lab::conform::{self, Options};
use rota_lab::results::MadeBy;
use rota_lab::shared::shared_folder;

/// Runs shorter than this show no progress.
const QUIET_FOR: Duration = Duration::from_secs(1);

const ABOUT_GOLDEN: &str = "\
A golden case is an input and what an original program (Synergy's, ElasticFlow's or Chronus' simulator) did with it: when each job started and ended, which jobs were admitted, or the optimum of a model. Rota runs the same input by the original's rules (compat=artifact) and names the first difference. Cases with inputs of our own are built in; those with the originals' own inputs are not shipped.

Try:
  rota conform                       everything that is there
  rota conform synergy --out cases   with a result folder for every case";

/// The golden cases whose inputs are our own.
static CARRIED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/tests/data");

/// Which cases to run, and how to report.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = ABOUT_GOLDEN)]
pub(super) struct ConformArgs {
    /// Systems to check [default: all]
    #[arg(value_name = "SYSTEM", value_parser = PossibleValuesParser::new(conform::SYSTEMS.map(|system| system.name)))]
    systems: Vec<String>,
    /// Folder with a subfolder of golden cases for each system [default: $ROTA_SHARED/golden or ../shared/golden, else the
    /// built-in cases]
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Write a result folder for every case, DIR/SYSTEM/CASE; a folder with other results is refused [default: not written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace other results in that folder
    #[arg(long, requires = "out")]
    overwrite: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Time of the first round of every Synergy case, such as 0, 1s or 5m [default: as the case says]
    #[arg(long, value_name = "T", value_parser = Span::parse)]
    first_round: Option<Span>,
}

/// Runs the command: the report on stdout, progress on stderr, 1 if anything failed.
pub(super) fn run(args: ConformArgs) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        made_by(&args).take(out, args.overwrite, &conform::SYSTEMS.map(|system| system.name))?;
    }
    // Kept until the end: the built-in cases are unpacked into it.
    let unpacked;
    let golden = match args.golden.or_else(found_golden) {
        Some(golden) => golden,
        None => {
            unpacked = carried()?;
            unpacked.path().to_owned()
        }
    };
    let options = Options {
        golden,
        systems: args.systems,
        out: args.out,
        first_round: args.first_round.map(|span| Time::ZERO + span),
    };
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    bar.set_style(ProgressStyle::with_template("{pos}/{len} cases {wide_bar} {eta}")?);
    let began = Instant::now();
    let report = conform::conform(&options, &|n_done, n_cases| {
        bar.set_length(n_cases as u64);
        bar.set_position(n_done as u64);
        if bar.is_hidden() && began.elapsed() > QUIET_FOR {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar.finish_and_clear();
    let report = report?;
    print!("{}", if args.json { report.to_json() } else { report.to_text() });
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The command that a folder of cases belongs to; systems are apart in it, so it is the same for each.
fn made_by(args: &ConformArgs) -> MadeBy {
    let mut command = "conform".to_owned();
    command.extend(args.golden.as_ref().map(|golden| format!(" --golden {}", golden.display())));
    command.extend(args.first_round.map(|first| format!(" --first-round {}s", first.as_secs_f64())));
    MadeBy::new(command)
}

fn found_golden() -> Option<PathBuf> {
    Some(shared_folder().join("golden")).filter(|folder| folder.is_dir())
}

/// The built-in cases in a folder that is removed at the end.
fn carried() -> anyhow::Result<TempDir> {
    eprintln!(
        "no folder {}: running the built-in golden cases, recorded outputs of the original programs on inputs of our own",
        shared_folder().join("golden").display()
    );
    let folder = tempfile::Builder::new().prefix("rota-conform-").tempdir()?;
    CARRIED.extract(folder.path()).context("cannot unpack the built-in cases")?;
    Ok(folder)
}
