//! `rota study`: scripted batches. The options of a run are those of `rota simulate`, parsed by the same parser.

mod bar;
mod cluster;
mod plan;
mod shards;
mod slurm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rota_core::time::Span;
use rota_scripts::shipped;
use rota_scripts::study::StudyOptions;

use super::plots::PlotArgs;
use super::run::parse_set;
pub(crate) use bar::Bar;
pub(crate) use plan::Simulate;
use rota_lab::results::MadeBy;
use rota_lab::study::{self, Cache, Order, Shard, Study};
use shards::Shards;

/// A study, and how to run it.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    pub command: Option<StudyCommand>,
    #[command(flatten)]
    pub batch: BatchArgs,
    #[command(flatten)]
    pub parts: PartsArgs,
}

/// What else can be done with studies.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Gather the shards of a study into one folder, with the tables and the page of the whole
    Merge {
        #[command(flatten)]
        batch: BatchArgs,
        /// Folders of the shards
        #[arg(long = "from", value_name = "DIR", required = true, num_args = 1..)]
        from: Vec<PathBuf>,
    },
    /// List the studies that come with Rota
    List,
}

/// A script and where its results go.
#[derive(Args, Clone, Debug)]
pub(crate) struct BatchArgs {
    /// The study: a .rhai file, or the name of one that comes with Rota (`rota study list`)
    #[arg(required = true, value_name = "FILE|NAME")]
    pub file: Option<String>,
    /// Folder for tables, page and the results kept; run again with the same folder to go on where it stopped; a folder of
    /// another study is refused [default: the script's name with `-study`]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the tables and the page of another study in that folder; results of runs stay, and are used where they fit
    #[arg(long)]
    pub overwrite: bool,
    /// A small form, as the script understands it
    #[arg(long)]
    pub quick: bool,
    /// Set a parameter of the study [default: as the script says]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs at a time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// No progress, no table
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub plots: PlotArgs,
}

/// A study in parts: one of them here, or all of them elsewhere.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Several machines")]
pub(crate) struct PartsArgs {
    /// Run only part I of N, for several machines [default: all of it]
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Where the runs happen: here, as a job array of an existing Slurm, or as jobs of a live Rota cluster. All nodes
    /// must see the folder of results, the inputs and this program
    #[arg(long, value_enum, value_name = "WHERE", default_value = "here", conflicts_with = "shard")]
    pub on: RunsOn,
    /// Tasks, each of which runs its share
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub shards: u32,
    /// An option for sbatch, as in `--slurm-option=--partition=cpu`; may be given several times [default: none]
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub slurm_option: Vec<String>,
    /// How long a task is thought to run, for the policy of a live Rota cluster
    #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "10m")]
    pub task_time: Span,
    /// The head of that cluster, as host:port [default: $ROTA_HEAD, else what `rota up` wrote]
    #[arg(long, value_name = "HOST:PORT")]
    pub head: Option<String>,
    /// Your certificate and key [default: $ROTA_CREDENTIALS, else what `rota up` wrote]
    #[arg(long, value_name = "DIR")]
    pub credentials: Option<PathBuf>,
}

/// Where runs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RunsOn {
    /// On this machine
    Here,
    /// As a job array of Slurm
    Slurm,
    /// As jobs of a live Rota cluster
    Rota,
}

/// Runs the command; 1 when a run failed or the script stopped.
pub(crate) fn run(args: &StudyArgs) -> Result<ExitCode> {
    match &args.command {
        None => {
            args.batch.take_folder(args.parts.shard)?;
            let gathered = elsewhere(&args.batch, &args.parts)?;
            batch(&args.batch, args.parts.shard, &gathered)
        }
        Some(StudyCommand::Merge { batch: args, from }) => {
            args.take_folder(None)?;
            batch(args, None, from)
        }
        Some(StudyCommand::List) => {
            for script in shipped::STUDIES {
                println!("{:<14} {}", script.name, script.summary());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl BatchArgs {
    fn name(&self) -> Result<&str> {
        self.file.as_deref().context("which study? `rota study list` shows those that come with Rota")
    }

    fn out(&self) -> Result<PathBuf> {
        let name = self.name()?;
        Ok(self.out.clone().unwrap_or_else(|| default_folder(name)))
    }

    /// Refuses a folder with results of another study; an edited script is the same study, since no result of a run is lost.
    fn take_folder(&self, shard: Option<Shard>) -> Result<()> {
        let name = self.name()?;
        if self.threads == Some(0) {
            bail!("--threads 0: nothing would run");
        }
        // Only a study that can begin marks its folder: not one whose script cannot be read, nor in a folder of other things.
        script(name)?;
        Cache::check(&self.out()?)?;
        let mut command = format!("study {}", name.trim_start_matches("./"));
        command.extend(self.quick.then_some(" --quick"));
        command.extend(self.set.iter().map(|set| format!(" --set {set}")));
        command.extend(shard.map(|shard| format!(" --shard {shard}")));
        Ok(MadeBy::new(command).take(&self.out()?, self.overwrite, study::WRITTEN)?)
    }
}

/// Has others run the shards, if asked to; the folders they left.
fn elsewhere(args: &BatchArgs, parts: &PartsArgs) -> Result<Vec<PathBuf>> {
    if parts.on == RunsOn::Here {
        return Ok(Vec::new());
    }
    // A script that cannot be read is refused here, not by every task.
    script(args.name()?)?;
    let shards = Shards::new(args, parts.shards)?;
    match parts.on {
        RunsOn::Here => {}
        RunsOn::Slurm => slurm::run(parts, &shards, args.quiet)?,
        RunsOn::Rota => cluster::run(parts, &shards, args.quiet)?,
    }
    Ok(shards.present())
}

fn batch(args: &BatchArgs, shard: Option<Shard>, from: &[PathBuf]) -> Result<ExitCode> {
    let (file, source) = script(args.name()?)?;
    let out = args.out()?;
    let set: BTreeMap<String, String> = parse_set(&args.set)?.into_iter().collect();
    let order = Order {
        file: &file,
        source: &source,
        options: StudyOptions { is_quick: args.quick, set },
        out: &out,
        also_from: from,
        shard,
    };
    let bar = Arc::new(Bar::new(args.quiet));
    let study = study::study(&order, Simulate::new()?, Arc::clone(&bar) as Arc<dyn study::Watch>);
    bar.finish();
    let study = study?;
    study.write_as(&out, &args.plots.options()?)?;
    if !args.quiet {
        print!("{}", study.to_text());
        println!("{}", bar.summary());
        println!("results in {0}: open {0}/report.html", out.display());
    }
    say_what_is_missing(&study, shard);
    Ok(if study.stopped.is_none() && study.failures().next().is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn say_what_is_missing(study: &Study, shard: Option<Shard>) {
    let failures: Vec<_> = study.failures().collect();
    if !failures.is_empty() {
        eprintln!("{} of {} runs failed:", failures.len(), study.runs.len());
        // One line for each reason: a mistake in a script fails every run that uses it.
        let mut reasons: Vec<(&str, String, usize)> = Vec::new();
        for (run, why) in &failures {
            match reasons.iter_mut().find(|(known, ..)| known == why) {
                Some((.., n)) => *n += 1,
                None => reasons.push((why, run.name(), 1)),
            }
        }
        for (why, run, n) in reasons.iter().take(20) {
            let more = if *n > 1 { format!(" (and {} more runs)", n - 1) } else { String::new() };
            eprintln!("  {run}: {why}{more}");
        }
        if reasons.len() > 20 {
            eprintln!("  … and {} more reasons, in runs.csv", reasons.len() - 20);
        }
    }
    if let (Some(shard), n @ 1..) = (shard, study.n_elsewhere()) {
        eprintln!(
            "{n} of {} runs are not of shard {shard}: `rota study merge` puts the shards together",
            study.runs.len()
        );
    }
    if let Some(why) = &study.stopped {
        eprintln!("rota: the script stopped: {why}");
    }
}

/// A study's name for messages and its text: a path, or one that comes with Rota.
fn script(name: &str) -> Result<(String, String)> {
    if let Some(script) = shipped::STUDIES.iter().find(|script| script.name == name) {
        return Ok((script.file.to_owned(), script.source.to_owned()));
    }
    let text = std::fs::read_to_string(name).with_context(|| {
        let names: Vec<&str> = shipped::STUDIES.iter().map(|script| script.name).collect();
        format!("{name}: no such file, and no study that comes with Rota ({})", names.join(", "))
    })?;
    Ok((name.to_owned(), text))
}

fn default_folder(name: &str) -> PathBuf {
    let stem = Path::new(name).file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy());
    PathBuf::from(format!("{stem}-study"))
}
