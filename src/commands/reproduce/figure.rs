//! One figure: files found, time said first, every story run, then claims, tables, plots and the page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rota_scripts::artifact::Defects;
use rota_scripts::shipped;
use rota_scripts::study::{Setting, StudyOptions};

use super::HowArgs;
use super::attribute::attribute;
use super::stories::{Also, Pairs, With, asked};
use crate::commands::progress::Meter;
use crate::commands::run::{self, RunArgs};
use crate::commands::study::{Bar, Simulate};
use rota_lab::original::Original;
use rota_lab::reproduce::evidence::{Evidence, Story};
use rota_lab::reproduce::papers::{How, Needed, Paper, PaperFigure};
use rota_lab::reproduce::{NONE, Reproduced, chronus, elasticflow, rows, with_baseline};
use rota_lab::results::Input;
use rota_lab::shared::shared_folder;
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
        print!("{}", reproduced.to_json(&program()?, &how.asked()));
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
    // A name that is none, or another program's, must not cost a run.
    refuse_unknown_defects(paper, &how.defects)?;
    let files = figure.needs.iter().map(|needed| located(needed, &how.traces)).collect::<Result<Vec<_>>>()?;
    if !how.quiet {
        let time = if how.quick { "less than a minute".to_owned() } else { about(figure.full_minutes) };
        eprintln!("{}; takes {time} on two cores", paper.heading(figure));
    }
    let question = Question { paper, figure, how, stories, set, files, out };
    let Found { mut evidence, failures, originals } = match figure.how {
        How::Study(study) => question.by_study(study)?,
        How::Admission => Found::just(question.admission()?),
        How::Chronus => Found::just(question.baselines()?),
    };
    evidence.rows.insert(Story::Published, with_baseline(figure.published_rows()));
    let defects = match figure.attributed.filter(|_| how.defects.is_empty()) {
        Some(attributed) => {
            attribute(paper, &attributed, &originals, &evidence, &question.study_folder(), how.is_silent())?
        }
        None => Vec::new(),
    };
    if let Some(options) = figure.over_time.filter(|_| question.stories.contains(&Story::Shipped)) {
        question.over_time(options)?;
    }
    let reproduced = Reproduced { paper, figure, is_quick: how.quick, evidence, defects };
    reproduced.write(out, &program()?, &how.asked())?;
    Ok(Done { reproduced, failures })
}

fn refuse_unknown_defects(paper: &Paper, names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let chosen = Defects::parse(names.iter().map(String::as_str))?;
    let has_own = chosen.of(paper.program).iter().next().is_some() || names.iter().any(|name| name == NONE);
    if !has_own {
        bail!(
            "--defect {}: {} has no such defect; `--defect list` of `rota simulate` names them",
            names.join(","),
            paper.system
        );
    }
    Ok(())
}

pub(super) fn about(minutes: f64) -> String {
    match minutes {
        minutes if minutes < 1.0 => format!("about {:.0} seconds", minutes * 60.0),
        1.0 => "about a minute".to_owned(),
        minutes => format!("about {minutes:.0} minutes"),
    }
}

impl HowArgs {
    /// What the user set, in words.
    fn asked(&self) -> Vec<String> {
        let defects = self.defects.iter().map(|name| format!("defect={name}"));
        self.set.iter().cloned().chain(defects).collect()
    }

    fn is_silent(&self) -> bool {
        self.quiet || self.json
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

/// A figure with everything that is asked of it.
struct Question<'a> {
    paper: &'static Paper,
    figure: &'static PaperFigure,
    how: &'a HowArgs,
    stories: Vec<Story>,
    /// Parameters that are no story.
    set: Pairs,
    /// The files that it needs, in its order.
    files: Vec<PathBuf>,
    out: &'a Path,
}

impl Question<'_> {
    /// Where the study's own tables, page and kept runs lie.
    fn study_folder(&self) -> PathBuf {
        self.out.join("study")
    }

    /// A shipped study, once for each story.
    fn by_study(&self, name: &str) -> Result<Found> {
        let script =
            shipped::STUDIES.iter().find(|study| study.name == name).context("a study that is shipped")?;
        let named = self.figure.needs.iter().zip(&self.files);
        let files = named.map(|(needed, file)| (needed.name.to_owned(), file.display().to_string()));
        let set: BTreeMap<String, String> = self.set.iter().cloned().chain(files).collect();
        let out = self.study_folder();
        let mut found = Found::just(Evidence::default());
        let mut all = Study { title: String::new(), remarks: Vec::new(), runs: Vec::new(), stopped: None };
        for story in &self.stories {
            let order = Order {
                file: script.file,
                source: script.source,
                options: StudyOptions { is_quick: self.how.quick, set: set.clone() },
                out: &out,
                also_from: &[],
                shard: None,
            };
            let bar = Arc::new(Bar::new(self.how.is_silent()));
            let with = With { simulate: Simulate::new()?, also: self.also(*story) };
            let study = study::study(&order, with, Arc::clone(&bar) as Arc<dyn Watch>);
            bar.finish();
            let study = study?;
            if let Some(why) = study.stopped {
                bail!("{why}");
            }
            found.evidence.rows.insert(*story, rows(&study.runs, self.figure.along));
            if *story == Story::Original {
                found.originals.clone_from(&study.runs);
            }
            let (runs, failed) = self.told_apart(study.runs, *story);
            found.failures.extend(failed);
            all.title = study.title;
            all.runs.extend(runs);
        }
        all.write(&out)?;
        Ok(found)
    }

    /// What makes a run one of this story's.
    fn also(&self, story: Story) -> Also {
        match story {
            Story::Original => Also::Original {
                parameters: self.paper.parameters,
                defects: self.how.defects.clone(),
                without: self.figure.without_original,
            },
            Story::Shipped | Story::Published => Also::Nothing,
        }
    }

    /// Runs that say by whose rules they were run, and those that failed. That a policy has no original, or one that is
    /// left out, is no failure.
    fn told_apart(&self, runs: Vec<Ran>, story: Story) -> (Vec<Ran>, Vec<String>) {
        let mut kept = Vec::new();
        let mut failures = Vec::new();
        for mut run in runs {
            if let study::Outcome::Failed(why) = &run.outcome {
                let policy = run.setting("policy");
                let is_left_out = self.figure.without_original.contains(&policy.as_str());
                if story == Story::Original && (is_left_out || Original::parse(&policy).is_err()) {
                    continue;
                }
                failures.push(format!("{}, {}: {why}", run.name(), story.heading()));
            }
            run.settings.push(("rules".to_owned(), Setting::Text(story.heading().to_owned())));
            kept.push(run);
        }
        (kept, failures)
    }

    fn admission(&self) -> Result<Evidence> {
        self.refuse_parameters()?;
        if !self.stories.contains(&Story::Shipped) {
            bail!("--set compat=artifact: the original has no model to compare with");
        }
        let meter = self.meter(elasticflow::n_runs());
        let rows = elasticflow::admission(&self.files, &|| {
            meter.advance(1);
            meter.run_done();
        });
        meter.finish();
        Ok(Evidence { rows: [(Story::Shipped, rows?)].into() })
    }

    fn baselines(&self) -> Result<Evidence> {
        self.refuse_parameters()?;
        let defects = match self.how.defects.as_slice() {
            [] => Defects::ALL,
            names => Defects::parse(names.iter().map(String::as_str))?,
        };
        let options = chronus::ChronusOptions {
            is_quick: self.how.quick,
            files: self.files.clone(),
            stories: self.stories.clone(),
            defects,
        };
        let meter = self.meter(chronus::n_runs(&self.stories));
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

    fn refuse_parameters(&self) -> Result<()> {
        match self.set.first() {
            Some((key, value)) => bail!("--set {key}={value}: this figure has no parameters but compat"),
            None => Ok(()),
        }
    }

    /// The shipped policies over time, on a page of `rota compare`.
    fn over_time(&self, options: &str) -> Result<()> {
        let mut argv: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        for (needed, file) in self.figure.needs.iter().zip(&self.files) {
            argv.extend([format!("--{}", needed.name), file.display().to_string()]);
        }
        let out = self.out.join("over-time").display().to_string();
        argv.extend(["--quiet".to_owned(), "--out".to_owned(), out]);
        run::run(&Comparison::try_parse_from(&argv)?.args)
    }
}

/// Where a file that is not shipped lies, or what to do about it.
fn located(needed: &Needed, given: &[PathBuf]) -> Result<PathBuf> {
    let folders = if given.is_empty() { vec![shared_folder().join(needed.below)] } else { given.to_vec() };
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
