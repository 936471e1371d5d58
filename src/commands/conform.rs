//! `rota conform`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rota_core::time::{Span, Time};

use rota_lab::conform::{self, Options};
use rota_lab::shared::shared_folder;

/// Runs shorter than this show no progress.
const QUIET_FOR: Duration = Duration::from_secs(1);

/// Which cases to run, and how to report.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ConformArgs {
    /// Systems to check [default: all]
    #[arg(value_name = "SYSTEM", value_parser = PossibleValuesParser::new(conform::SYSTEMS.map(|system| system.name)))]
    systems: Vec<String>,
    /// Parent of the system folders [default: $ROTA_SHARED/golden, else ../shared/golden].
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Write a result folder for every case, DIR/SYSTEM/CASE [default: not written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Time of the first round of every Synergy case, such as 0, 1s or 5m [default: as the case says]
    #[arg(long, value_name = "T", value_parser = Span::parse)]
    first_round: Option<Span>,
}

/// Runs the command: the report on stdout, progress on stderr, 1 if anything failed.
pub(super) fn run(args: ConformArgs) -> anyhow::Result<ExitCode> {
    let options = Options {
        golden: args.golden.unwrap_or_else(default_golden),
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

fn default_golden() -> PathBuf {
    shared_folder().join("golden")
}
