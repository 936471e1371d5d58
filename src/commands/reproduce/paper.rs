//! `rota reproduce` for figures that are studies or comparisons: files found, time said first, runs, numbers beside.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser};
use rota_scripts::shipped;
use rota_scripts::study::StudyOptions;

use crate::commands::run::{self, RunArgs, parse_set};
use crate::commands::study::{Bar, Simulate};
use crate::reproduce::papers::{How, Needed, PaperFigure, beside, find, found_in_runs, found_in_study};
use crate::results::Results;
use crate::study::{self, Order, Watch};

/// Which figure, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct PaperArgs {
    /// The figure
    #[arg(value_name = "FIGURE")]
    pub figure: String,
    /// The shape of it in less than a minute
    #[arg(long)]
    pub quick: bool,
    /// Folder with the traces; may be given several times [default: the folders below $ROTA_SHARED, else ../shared]
    #[arg(long, value_name = "DIR")]
    pub traces: Vec<PathBuf>,
    /// Set a parameter of the figure's study, as in `--set seeds=5`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for tables, plots and the page; run again to go on where it stopped [default: `reproduce-` and its name]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// A comparison as on a command line.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Comparison {
    #[command(flatten)]
    args: RunArgs,
}

/// Runs a figure of a paper.
pub(crate) fn run(system: &str, figures: &'static [PaperFigure], args: &PaperArgs) -> Result<ExitCode> {
    let Some(figure) = find(figures, &args.figure) else {
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        bail!(
            "{system} has no figure {} that could be reproduced: there are {}",
            args.figure,
            names.join(", ")
        );
    };
    let files =
        figure.needs.iter().map(|needed| located(needed, &args.traces)).collect::<Result<Vec<_>>>()?;
    let out =
        args.out.clone().unwrap_or_else(|| PathBuf::from(format!("reproduce-{system}-{}", figure.name)));
    if !args.quiet {
        let time = if args.quick { "less than a minute".to_owned() } else { minutes(figure.full_minutes) };
        println!("{system}, Figure {}: {}; takes about {time} on two cores", figure.name, figure.title);
    }
    match figure.how {
        How::Study(name) => as_study(name, figure, &files, &out, args),
        How::Compare(options) => as_comparison(options, figure, &files, &out, args),
    }
}

fn minutes(minutes: f64) -> String {
    if minutes < 1.0 { format!("{:.0} seconds", minutes * 60.0) } else { format!("{minutes:.0} minutes") }
}

fn as_study(
    name: &str,
    figure: &PaperFigure,
    files: &[PathBuf],
    out: &Path,
    args: &PaperArgs,
) -> Result<ExitCode> {
    let script =
        shipped::STUDIES.iter().find(|study| study.name == name).context("a study that is shipped")?;
    let mut set: std::collections::BTreeMap<String, String> = parse_set(&args.set)?.into_iter().collect();
    for (needed, file) in figure.needs.iter().zip(files) {
        set.insert(needed.name.to_owned(), file.display().to_string());
    }
    let order = Order {
        file: script.file,
        source: script.source,
        options: StudyOptions { is_quick: args.quick, set },
        out,
        also_from: &[],
        shard: None,
    };
    let bar = Arc::new(Bar::new(args.quiet));
    let study = study::study(&order, Simulate::new()?, Arc::clone(&bar) as Arc<dyn Watch>);
    bar.finish();
    let mut study = study?;
    let lines = beside(figure, &found_in_study(&study));
    study.remarks.extend(lines.iter().cloned());
    study.write(out)?;
    if !args.quiet {
        print!("{}\n{}\n{}\n", study.to_text(), lines.join("\n"), bar.summary());
        println!("results in {0}: open {0}/report.html", out.display());
    }
    for (run, why) in study.failures() {
        eprintln!("{}: {why}", run.name());
    }
    if let Some(why) = &study.stopped {
        bail!("{why}");
    }
    Ok(if study.failures().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_comparison(
    options: &str,
    figure: &PaperFigure,
    files: &[PathBuf],
    out: &Path,
    args: &PaperArgs,
) -> Result<ExitCode> {
    let mut argv: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    for (needed, file) in figure.needs.iter().zip(files) {
        argv.extend([format!("--{}", needed.name), file.display().to_string()]);
    }
    argv.extend(args.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    argv.extend(["--out".to_owned(), out.display().to_string()]);
    argv.extend(args.quiet.then(|| "--quiet".to_owned()));
    let run_args = Comparison::try_parse_from(&argv)?.args;
    run::run(&run_args, &[])?;
    if !args.quiet {
        println!("{}", beside(figure, &found_in_runs(&Results::read(out)?)).join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a file that is not shipped lies, or what to do about it.
fn located(needed: &Needed, given: &[PathBuf]) -> Result<PathBuf> {
    let shared = std::env::var_os("ROTA_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folders = if given.is_empty() { vec![shared.join(needed.below)] } else { given.to_vec() };
    let found = folders.iter().map(|folder| folder.join(needed.file)).find(|path| path.is_file());
    found.with_context(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!(
            "{} is in none of the folders {}; it is published at {}: fetch it and name its folder with --traces",
            needed.file,
            folders.join(", "),
            needed.origin
        )
    })
}
