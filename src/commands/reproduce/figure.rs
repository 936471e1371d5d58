//! One figure: its files are found, every column is run, then claims, tables, plots and the page are written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rota_scripts::artifact::{Defect, Defects};
use rota_scripts::shipped;
use rota_scripts::study::{Setting, StudyOptions};

use super::HowArgs;
use super::attribute::attribute;
use super::columns::{Also, Pairs, With, to_run};
use super::inputs;
use crate::commands::progress::Meter;
use crate::commands::run::RunArgs;
use crate::commands::study::{Bar, Simulate};
use rota_lab::original::Original;
use rota_lab::reproduce::evidence::{Column, Evidence};
use rota_lab::reproduce::papers::{How, Needed, Paper, PaperFigure};
use rota_lab::reproduce::{Reproduced, chronus, elasticflow, rows, with_baseline};
use rota_lab::results::{Input, MadeBy};
use rota_lab::study::{self, Order, Ran, Study, Watch};

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
        print!("{}", reproduced.to_json(&program()?, &how.options()));
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
    let (columns, set) = to_run(&how.set)?;
    // A mistyped defect, or one of another program, must be refused before anything runs.
    refuse_unknown_defects(paper, &how.defects)?;
    refuse_parameters(figure, how, &columns, &set)?;
    let located = |needed: &Needed| inputs::located(needed, &how.form.traces);
    let files = figure.needs.iter().map(located).collect::<Result<Vec<_>>>()?;
    made_by(paper, figure, how).take(out, how.form.overwrite, WRITTEN)?;
    if !how.form.quiet {
        let time = if how.form.quick { "less than a minute".to_owned() } else { about(figure.full_minutes) };
        eprintln!("{}; takes {time} on two cores", paper.heading(figure));
    }
    let kept = figure.needs.iter().zip(files).map(|(needed, file)| inputs::kept(needed, file, out));
    let files = kept.collect::<Result<Vec<_>>>()?;
    let run = FigureRun { figure, how, columns, set, files, out };
    let Found { mut evidence, failures, originals } = match figure.how {
        How::Study(study) => run.by_study(study)?,
        How::Admission => Found::just(run.admission()?),
        How::Chronus => Found::just(run.baselines()?),
    };
    evidence.rows.insert(Column::Published, with_baseline(figure.published_rows()));
    let defects = match figure.attributed.filter(|_| how.defects.is_empty()) {
        Some(attributed) => {
            let (folder, is_silent) = (run.study_folder(), how.is_silent());
            let attributed = attributed.in_form(how.form.quick);
            attribute((paper, figure), &attributed, &originals, &evidence, &folder, is_silent)?
        }
        None => Vec::new(),
    };
    if let Some(options) = figure.over_time.filter(|_| run.columns.contains(&Column::Shipped)) {
        run.over_time(options)?;
    }
    let reproduced = Reproduced { paper, figure, is_quick: how.form.quick, evidence, defects };
    reproduced.write(out, &program()?, &how.options())?;
    Ok(Done { reproduced, failures })
}

/// What a figure leaves in its folder.
const WRITTEN: &[&str] = &["report.html", "plots", "claims.json", "study", "over-time", "inputs"];

/// The command that a figure's folder belongs to.
fn made_by(paper: &Paper, figure: &PaperFigure, how: &HowArgs) -> MadeBy {
    let mut command = format!("reproduce {} {}", paper.system, figure.name);
    command.extend(how.form.quick.then_some(" --quick"));
    command.extend(how.set.iter().map(|set| format!(" --set {set}")));
    command.extend(how.defects.iter().map(|name| format!(" --defect {name}")));
    MadeBy::new(command)
}

fn refuse_unknown_defects(paper: &Paper, names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    Defects::parse(names.iter().map(String::as_str))?;
    let foreign = Defect::ALL.into_iter().find(|defect| {
        let is_named = names.iter().any(|name| name.trim_start_matches("no-") == defect.name());
        is_named && !paper.programs.contains(&defect.system())
    });
    match foreign {
        Some(defect) => bail!(
            "--defect {defect}: {} has no such defect, it is {}'s; `rota simulate --defect list` names them all",
            paper.system,
            defect.system()
        ),
        None => Ok(()),
    }
}

pub(super) fn about(minutes: f64) -> String {
    match minutes {
        minutes if minutes < 1.0 => format!("about {:.0} seconds", minutes * 60.0),
        1.0 => "about a minute".to_owned(),
        minutes => format!("about {minutes:.0} minutes"),
    }
}

/// Refuses what a figure cannot be run with, before its folder is touched; a study checks its parameters itself.
fn refuse_parameters(figure: &PaperFigure, how: &HowArgs, columns: &[Column], set: &Pairs) -> Result<()> {
    if matches!(figure.how, How::Study(_)) {
        return Ok(());
    }
    if let Some((key, value)) = set.first() {
        bail!("--set {key}={value}: this figure has no parameters but compat");
    }
    if !matches!(figure.how, How::Admission) {
        return Ok(());
    }
    if !columns.contains(&Column::Shipped) {
        bail!("--set compat=artifact: the original has no model to compare with");
    }
    match how.defects.first() {
        Some(name) => {
            bail!("--defect {name}: the original has no model to compare with, so it is not run here")
        }
        None => Ok(()),
    }
}

impl HowArgs {
    /// What the user set, in words.
    fn options(&self) -> Vec<String> {
        let defects = self.defects.iter().map(|name| format!("defect={name}"));
        self.set.iter().cloned().chain(defects).collect()
    }

    fn is_silent(&self) -> bool {
        self.form.quiet || self.json
    }
}

/// What was found.
struct Found {
    evidence: Evidence,
    /// Runs that failed, each with its reason.
    failures: Vec<String>,
    /// Runs by the original's rules.
    originals: Vec<Ran>,
}

impl Found {
    fn just(evidence: Evidence) -> Self {
        Found { evidence, failures: Vec::new(), originals: Vec::new() }
    }
}

/// A figure with how it is run.
struct FigureRun<'a> {
    figure: &'static PaperFigure,
    how: &'a HowArgs,
    columns: Vec<Column>,
    /// What the user set besides the columns.
    set: Pairs,
    /// The files that it needs, in its order.
    files: Vec<PathBuf>,
    out: &'a Path,
}

impl FigureRun<'_> {
    /// Where the study's own tables, page and kept runs lie.
    fn study_folder(&self) -> PathBuf {
        self.out.join("study")
    }

    /// A shipped study, once for each column.
    fn by_study(&self, name: &str) -> Result<Found> {
        let script =
            shipped::STUDIES.iter().find(|study| study.name == name).context("a study that is shipped")?;
        let named = self.figure.needs.iter().zip(&self.files);
        let files = named.map(|(needed, file)| (needed.name.to_owned(), file.display().to_string()));
        let set: BTreeMap<String, String> = self.set.iter().cloned().chain(files).collect();
        let out = self.study_folder();
        let mut found = Found::just(Evidence::default());
        let mut all = Study { title: String::new(), remarks: Vec::new(), runs: Vec::new(), stopped: None };
        for column in &self.columns {
            let order = Order {
                file: script.file,
                source: script.source,
                options: StudyOptions { is_quick: self.how.form.quick, set: set.clone() },
                out: &out,
                also_from: &[],
                shard: None,
            };
            let bar = Arc::new(Bar::new(self.how.is_silent()));
            let with = With { simulate: Simulate::new()?, also: self.also(*column) };
            let study = study::study(&order, with, Arc::clone(&bar) as Arc<dyn Watch>);
            bar.finish();
            let study = study?;
            if let Some(why) = study.stopped {
                bail!("{why}");
            }
            found.evidence.rows.insert(*column, rows(&study.runs, self.figure.along));
            if *column == Column::Original {
                found.originals.clone_from(&study.runs);
            }
            let (runs, failed) = self.labelled(study.runs, *column);
            found.failures.extend(failed);
            all.title = study.title;
            all.runs.extend(runs);
        }
        all.write(&out)?;
        Ok(found)
    }

    /// What makes a run one of this column's.
    fn also(&self, column: Column) -> Also {
        match column {
            Column::Original => Also::Original {
                parameters: self.figure.parameters,
                defects: self.how.defects.clone(),
                without: self.figure.without_original,
            },
            Column::Shipped | Column::Published => Also::Nothing,
        }
    }

    /// Runs that say by whose rules they were run, and those that failed. That a policy has no original, or one that is
    /// left out, is no failure.
    fn labelled(&self, runs: Vec<Ran>, column: Column) -> (Vec<Ran>, Vec<String>) {
        let mut kept = Vec::new();
        let mut failures = Vec::new();
        for mut run in runs {
            if let study::Outcome::Failed(why) = &run.outcome {
                let policy = run.setting("policy");
                let is_left_out = self.figure.without_original.contains(&policy.as_str());
                if column == Column::Original && (is_left_out || Original::parse(&policy).is_err()) {
                    continue;
                }
                failures.push(format!("{}, {}: {why}", run.name(), column.heading()));
            }
            run.settings.push(("rules".to_owned(), Setting::Text(column.heading().to_owned())));
            kept.push(run);
        }
        (kept, failures)
    }

    fn admission(&self) -> Result<Evidence> {
        let meter = self.meter(elasticflow::n_runs());
        let rows = elasticflow::admission(&self.files, &|| {
            meter.advance(1);
            meter.run_done();
        });
        meter.finish();
        Ok(Evidence { rows: [(Column::Shipped, rows?)].into() })
    }

    fn baselines(&self) -> Result<Evidence> {
        let defects = match self.how.defects.as_slice() {
            [] => Defects::ALL,
            names => Defects::parse(names.iter().map(String::as_str))?,
        };
        let options = chronus::ChronusOptions {
            is_quick: self.how.form.quick,
            files: self.files.clone(),
            columns: self.columns.clone(),
            defects,
        };
        let meter = self.meter(chronus::n_runs(&self.columns));
        let evidence = chronus::study(&options, &|| {
            meter.advance(1);
            meter.run_done();
        });
        meter.finish();
        Ok(evidence?)
    }

    fn meter(&self, n_runs: usize) -> Meter {
        Meter::new(n_runs as u64, n_runs, self.how.is_silent())
    }

    /// The shipped policies over time, on a page of `rota compare`.
    fn over_time(&self, options: &str) -> Result<()> {
        let mut argv: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        for (needed, file) in self.figure.needs.iter().zip(&self.files) {
            argv.extend([format!("--{}", needed.name), file.display().to_string()]);
        }
        let out = self.out.join("over-time").display().to_string();
        argv.extend(["--quiet".to_owned(), "--overwrite".to_owned(), "--out".to_owned(), out]);
        crate::commands::run::run(&Comparison::try_parse_from(&argv)?.args)
    }
}
