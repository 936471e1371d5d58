//! One figure: files found, time said first, every story run, then claims, tables, plots and the page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rota_scripts::shipped;
use rota_scripts::study::{Setting, StudyOptions};

use super::HowArgs;
use super::stories::{With, asked, overlay};
use crate::commands::progress::Meter;
use crate::commands::run::{self, RunArgs, has_original};
use crate::commands::study::{Bar, Simulate};
use crate::reproduce::evidence::{Evidence, Story};
use crate::reproduce::papers::{How, Needed, Paper, PaperFigure};
use crate::reproduce::{Reproduced, chronus, elasticflow, rows};
use crate::results::Input;
use crate::study::{self, Order, Ran, Study, Watch};

/// A comparison as on a command line.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Comparison {
    #[command(flatten)]
    args: RunArgs,
}

/// What came of a figure.
pub(super) struct Done {
    pub(super) reproduced: Reproduced,
    /// Runs that failed, each with its reason.
    pub(super) failures: Vec<String>,
}

/// Runs a figure of a paper and shows it.
pub(super) fn run(paper: &'static Paper, name: &str, how: &HowArgs) -> Result<ExitCode> {
    let Some(figure) = paper.figure(name) else {
        let names: Vec<&str> = paper.figures.iter().map(|figure| figure.name).collect();
        bail!(
            "{} has no figure {name} that could be reproduced: there are {}",
            paper.system,
            names.join(", ")
        );
    };
    let out =
        how.out.clone().unwrap_or_else(|| PathBuf::from(format!("reproduce-{}", folder(paper, figure))));
    let Done { reproduced, failures } = reproduce(paper, figure, how, &out)?;
    if how.json {
        print!("{}", reproduced.to_json(&program()?, &how.set));
    } else {
        print!("{}", reproduced.to_text());
        println!("\nresults in {0}: open {0}/report.html", out.display());
    }
    for failure in &failures {
        eprintln!("{failure}");
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A figure's folder among others.
pub(super) fn folder(paper: &Paper, figure: &PaperFigure) -> String {
    match paper.figures {
        [_] => paper.system.to_owned(),
        _ => format!("{}-{}", paper.system, figure.name),
    }
}

/// Version and checksum of this program.
pub(super) fn program() -> Result<String> {
    let path = std::env::current_exe().context("cannot find the program itself")?;
    Ok(format!("{} {}", env!("CARGO_PKG_VERSION"), Input::of_file("program", &path)?.sha256))
}

/// Runs a figure and writes all of it into a folder.
pub(super) fn reproduce(
    paper: &'static Paper,
    figure: &'static PaperFigure,
    how: &HowArgs,
    out: &Path,
) -> Result<Done> {
    let (stories, set) = asked(&how.set)?;
    let files = figure.needs.iter().map(|needed| located(needed, &how.traces)).collect::<Result<Vec<_>>>()?;
    if !how.quiet {
        let time = if how.quick { "less than a minute".to_owned() } else { minutes(figure.full_minutes) };
        eprintln!("{}; takes about {time} on two cores", paper.heading(figure));
    }
    let (mut evidence, failures) = match figure.how {
        How::Study(study) => by_study(study, figure, how, &stories, set, &files, out)?,
        How::Admission => (admission(&stories, &set, &files, how)?, Vec::new()),
        How::Chronus => (baselines(&stories, &set, files.clone(), how)?, Vec::new()),
    };
    evidence.rows.insert(Story::Published, figure.published_rows());
    if let Some(options) = figure.over_time.filter(|_| stories.contains(&Story::Shipped)) {
        over_time(options, figure, &files, &out.join("over-time"))?;
    }
    let reproduced = Reproduced { paper, figure, is_quick: how.quick, evidence, defects: Vec::new() };
    reproduced.write(out, &program()?, &how.set)?;
    Ok(Done { reproduced, failures })
}

fn minutes(minutes: f64) -> String {
    if minutes < 1.0 { format!("{:.0} seconds", minutes * 60.0) } else { format!("{minutes:.0} minutes") }
}

/// A shipped study, once for each story; its own tables and page lie in `study`.
fn by_study(
    name: &str,
    figure: &PaperFigure,
    how: &HowArgs,
    stories: &[Story],
    set: Vec<(String, String)>,
    files: &[PathBuf],
    out: &Path,
) -> Result<(Evidence, Vec<String>)> {
    let script =
        shipped::STUDIES.iter().find(|study| study.name == name).context("a study that is shipped")?;
    let mut set: std::collections::BTreeMap<String, String> = set.into_iter().collect();
    for (needed, file) in figure.needs.iter().zip(files) {
        set.insert(needed.name.to_owned(), file.display().to_string());
    }
    let out = out.join("study");
    let mut evidence = Evidence::default();
    let mut all =
        Study { title: figure.title.to_owned(), remarks: Vec::new(), runs: Vec::new(), stopped: None };
    let mut failures = Vec::new();
    for story in stories {
        let order = Order {
            file: script.file,
            source: script.source,
            options: StudyOptions { is_quick: how.quick, set: set.clone() },
            out: &out,
            also_from: &[],
            shard: None,
        };
        let bar = Arc::new(Bar::new(how.quiet || how.json));
        let with = With { simulate: Simulate::new()?, also: overlay(*story) };
        let study = study::study(&order, with, Arc::clone(&bar) as Arc<dyn Watch>);
        bar.finish();
        let study = study?;
        if let Some(why) = study.stopped {
            bail!("{why}");
        }
        evidence.rows.insert(*story, rows(&study.runs, figure.along));
        let (runs, failed) = told_apart(study.runs, *story);
        failures.extend(failed);
        all.title = study.title;
        all.runs.extend(runs);
    }
    all.write(&out)?;
    Ok((evidence, failures))
}

/// Runs that say by whose rules they were run, and those that failed. That a policy has no original is no failure.
fn told_apart(runs: Vec<Ran>, story: Story) -> (Vec<Ran>, Vec<String>) {
    let mut kept = Vec::new();
    let mut failures = Vec::new();
    for mut run in runs {
        let policy = run.setting("policy");
        if let study::Outcome::Failed(why) = &run.outcome {
            if story == Story::Original && !has_original(&policy) {
                continue;
            }
            failures.push(format!("{}, {}: {why}", run.name(), story.heading()));
        }
        run.settings.push(("rules".to_owned(), Setting::Text(story.heading().to_owned())));
        kept.push(run);
    }
    (kept, failures)
}

fn admission(
    stories: &[Story],
    set: &[(String, String)],
    files: &[PathBuf],
    how: &HowArgs,
) -> Result<Evidence> {
    refuse_parameters(set)?;
    if !stories.contains(&Story::Shipped) {
        bail!("--set compat=artifact: the original has no model to compare with");
    }
    let n_runs = elasticflow::n_runs();
    let meter = Meter::new(n_runs as u64, n_runs, how.quiet || how.json);
    let rows = elasticflow::admission(files, &|| {
        meter.advance(1);
        meter.run_done();
    });
    meter.finish();
    Ok(Evidence { rows: [(Story::Shipped, rows?)].into() })
}

fn baselines(
    stories: &[Story],
    set: &[(String, String)],
    files: Vec<PathBuf>,
    how: &HowArgs,
) -> Result<Evidence> {
    refuse_parameters(set)?;
    let n_runs = chronus::n_runs(stories);
    let meter = Meter::new(n_runs as u64, n_runs, how.quiet || how.json);
    let options = chronus::ChronusOptions { is_quick: how.quick, files, stories: stories.to_vec() };
    let evidence = chronus::study(&options, &|| {
        meter.advance(1);
        meter.run_done();
    });
    meter.finish();
    Ok(evidence?)
}

fn refuse_parameters(set: &[(String, String)]) -> Result<()> {
    match set.first() {
        Some((key, value)) => bail!("--set {key}={value}: this figure has no parameters but compat"),
        None => Ok(()),
    }
}

/// The shipped policies over time, on a page of `rota compare`.
fn over_time(options: &str, figure: &PaperFigure, files: &[PathBuf], out: &Path) -> Result<()> {
    let mut argv: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    for (needed, file) in figure.needs.iter().zip(files) {
        argv.extend([format!("--{}", needed.name), file.display().to_string()]);
    }
    argv.extend(["--quiet".to_owned(), "--out".to_owned(), out.display().to_string()]);
    run::run(&Comparison::try_parse_from(&argv)?.args, &[])
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
