//! Scripted batches: a study's script asks for runs, they are run on all cores, kept, and end in tidy tables.
//!
//! ```text
//! script (rota_scripts::study) ── submit ─▶ batch ─┬▶ cache    one file for each run, by a hash of all it depends on
//!                                                  └▶ Execute  runs what is not there yet
//! batch ─▶ table (runs.csv, .parquet) ─▶ groups (means, intervals) and pairs (policies on the same seeds) ─▶ page
//! ```
//!
//! A study that was stopped or killed is the same study with more of its runs in the cache: it is simply run
//! again. Several machines share one by shards, each a part of the runs by their hash; merging is gathering the
//! caches. What a run *is* lies behind [`Execute`]; its options are those of `rota simulate`.

mod batch;
mod cache;
mod error;
mod figures;
mod groups;
mod page;
mod pairs;
mod parquet_file;
mod shard;
mod table;
mod terminal;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rota_scripts::study::{RunRefused, Settings, StudyOptions};

pub use batch::{Batch, Outcome, Ran};
pub use cache::{Cache, Figures, Key};
pub use error::{RunError, StudyError};
pub use groups::{FIGURES, Group, groups};
pub use pairs::{Pair, pairs};
pub use shard::Shard;
pub use table::{Column, Table, Values, runs_table};

use crate::report::PlotOptions;
use crate::results::{RunResult, replace_file};

/// What a study writes besides its cache.
pub const WRITTEN: &[&str] = &[
    "report.html",
    "plots",
    "timing.csv",
    "runs.csv",
    "runs.parquet",
    "groups.csv",
    "groups.parquet",
    "pairs.csv",
    "pairs.parquet",
];

/// Runs what a study asks for.
pub trait Execute: Send + Sync + 'static {
    /// A run that is known to make sense.
    type Plan: Send + Sync;
    /// Checks the settings of a run and gathers what its result depends on; cheap, nothing is run.
    fn plan(&self, settings: &Settings) -> Result<(Self::Plan, Key), RunError>;
    /// Runs it.
    fn run(&self, plan: &Self::Plan) -> Result<RunResult, RunError>;
}

/// Shows how far a study is; called from several threads.
pub trait Watch: Send + Sync {
    /// So many more runs are asked for; `is_cached` if the result is there already.
    fn submitted(&self, is_cached: bool);
    /// One more run is over.
    fn done(&self, is_failed: bool);
    /// A line that the script prints, or a remark about it.
    fn say(&self, line: &str);
}

/// What to run, and where to.
pub struct Order<'a> {
    /// The script's file, for messages.
    pub file: &'a str,
    /// Text of the script.
    pub source: &'a str,
    /// From `--set` and `--quick`.
    pub options: StudyOptions,
    /// Folder that holds the cache and gets tables and page.
    pub out: &'a Path,
    /// Folders of other caches to read from.
    pub also_from: &'a [PathBuf],
    /// The part of the runs that is run here.
    pub shard: Option<Shard>,
}

/// A study that has been run.
#[derive(Debug)]
pub struct Study {
    /// As the script calls it, else the name of its file.
    pub title: String,
    /// Lines that the script printed.
    pub remarks: Vec<String>,
    /// Every run asked for, in the order of the script.
    pub runs: Vec<Ran>,
    /// Why the script stopped before its end, if it did.
    pub stopped: Option<String>,
}

/// Runs a study to its end. Runs that fail are part of the answer; what the script gets wrong is in `stopped`, so that
/// what was run until then is not lost.
pub fn study<E: Execute>(order: &Order<'_>, execute: E, watch: Arc<dyn Watch>) -> Result<Study, StudyError> {
    let cache = Cache::open(order.out, order.also_from)?;
    let batch = Arc::new(Batch::new(execute, cache, order.shard, Arc::clone(&watch)));
    let ran = rota_scripts::study::run(
        order.file,
        order.source,
        Arc::new(batch::Shared(Arc::clone(&batch))),
        order.options.clone(),
    );
    if ran.is_err() {
        watch.say("the script stopped; waiting for the runs that it asked for");
    }
    let (title, remarks, runs) = batch.finish();
    let title = title.unwrap_or_else(|| default_title(order.file, &runs));
    Ok(Study { title, remarks, runs, stopped: ran.err().map(|error| error.to_string()) })
}

/// More policies than this are counted, not named.
const MOST_NAMED: usize = 4;

/// What a study without a title is called: its file and the policies that were run.
fn default_title(file: &str, runs: &[Ran]) -> String {
    let mut policies: Vec<String> = Vec::new();
    for policy in runs.iter().map(|run| run.setting("policy")) {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    match policies.len() {
        0 => file.to_owned(),
        1..=MOST_NAMED => format!("{file}: {}", policies.join(", ")),
        n => format!("{file}: {n} policies"),
    }
}

/// Runs these settings without a script; what is in the folder's cache is not run again. The answers are in the order of
/// the settings.
pub fn run_each<E: Execute>(
    settings: Vec<Settings>,
    out: &Path,
    execute: E,
    watch: Arc<dyn Watch>,
) -> Result<Vec<Ran>, StudyError> {
    use rota_scripts::study::Batch as _;
    let batch = Arc::new(Batch::new(execute, Cache::open(out, &[])?, None, watch));
    let shared = batch::Shared(Arc::clone(&batch));
    let submitted: Vec<(Settings, Result<usize, RunRefused>)> =
        settings.into_iter().map(|settings| (settings.clone(), shared.submit(settings))).collect();
    let (_, _, runs) = batch.finish();
    let ran = |(settings, submitted): (Settings, Result<usize, RunRefused>)| match submitted {
        Ok(run) => runs[run].clone(),
        Err(RunRefused(why)) => Ran { settings, key: Key::new([]), outcome: Outcome::Failed(why) },
    };
    Ok(submitted.into_iter().map(ran).collect())
}

impl Study {
    /// Writes tables and page; the cache is there already.
    pub fn write(&self, out: &Path) -> Result<(), StudyError> {
        self.write_as(out, &PlotOptions::default())
    }

    /// The same with plots of another size.
    pub fn write_as(&self, out: &Path, options: &PlotOptions) -> Result<(), StudyError> {
        let runs = runs_table(&self.runs);
        let groups = groups(&self.runs);
        let pairs = pairs(&self.runs);
        for (name, table) in
            [("runs", &runs), ("groups", &groups::table(&groups)), ("pairs", &pairs::table(&pairs))]
        {
            replace_file(&out.join(format!("{name}.csv")), &table.to_csv())?;
            replace_file(&out.join(format!("{name}.parquet")), &table.to_parquet()?)?;
        }
        replace_file(&out.join("timing.csv"), &table::timing(&self.runs).to_csv())?;
        page::write(self, &groups, &pairs, out, options)?;
        Ok(())
    }

    /// The study for a terminal.
    pub fn to_text(&self) -> String {
        terminal::to_text(self, &groups(&self.runs), &pairs(&self.runs))
    }

    /// Runs that failed, with the reason of each.
    pub fn failures(&self) -> impl Iterator<Item = (&Ran, &str)> {
        self.runs.iter().filter_map(|run| match &run.outcome {
            Outcome::Failed(why) => Some((run, why.as_str())),
            Outcome::Done(_) | Outcome::Elsewhere => None,
        })
    }

    /// Runs that another shard runs.
    pub fn n_elsewhere(&self) -> usize {
        self.runs.iter().filter(|run| matches!(run.outcome, Outcome::Elsewhere)).count()
    }
}
