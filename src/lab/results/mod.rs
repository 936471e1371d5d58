//! What a run leaves behind: the result folder, its figures, and reading it back.
//!
//! ```text
//! Workload + Cluster + Ledger ─▶ RunResult ─▶ Results ─▶ Staging ─▶ DIR/{summary.json, jobs.csv, …}
//!                                                 ▲                          │
//!                                                 └────────── read ──────────┘
//! ```
//!
//! `jobs`, `rounds`, `timeline` and `config` each know one file, `summary` computes the figures, `folder` makes a
//! folder appear whole or not at all, `made_by` marks those that other commands fill file by file. Drawing and tables for people are in the room `report`.

mod config;
mod decimal;
mod error;
mod folder;
mod jobs;
mod made_by;
mod rounds;
mod summary;
mod table_file;
mod timeline;
mod window;

use std::path::Path;

use rota_core::cluster::Cluster;
use rota_core::ledger::{Ledger, Sample, Stretch};
use rota_core::time::Span;
use rota_core::workload::Workload;

pub(crate) use config::to_toml as config_toml;
pub use config::{ClusterTotals, Input, RunMeta};
pub use error::ResultsError;
pub(crate) use folder::suffixes as file_suffixes;
pub use folder::{Request, Staging, refuse_other_results, refuse_results, replace_file};
pub use jobs::{HostShare, JobRow};
pub use made_by::{MADE_BY, MadeBy};
pub use rounds::RoundBound;
use summary::SummaryFile;
pub use summary::{Faults, ModelLoss, Promises, SpeedGap, Summary, Timing};
pub use window::{Window, WindowError};

/// Version of the folder's layout; a reader refuses what is newer.
pub const FORMAT: u32 = 2;

/// Everything one result folder holds.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Heading of the report.
    pub title: String,
    /// Version of the program that ran.
    pub version: String,
    /// Every setting as resolved, in the words of the command line and the files.
    pub settings: toml::Table,
    /// What was read, with checksums.
    pub inputs: Vec<Input>,
    /// One for each policy, load and seed.
    pub runs: Vec<RunResult>,
}

/// One run: what was asked, what came of it.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Policy, seed, load and cluster.
    pub meta: RunMeta,
    /// The numbers of `summary.json`.
    pub summary: Summary,
    /// One for each job, in the order of submission.
    pub jobs: Vec<JobRow>,
    /// One for each decision.
    pub samples: Vec<Sample>,
    /// Remarks of rounds: (index of the sample, text).
    pub notes: Vec<(usize, String)>,
    /// What each decision reached and could have reached; empty without `--bound`.
    pub bounds: Vec<RoundBound>,
    /// What ran where; empty when it was not recorded.
    pub timeline: Vec<Stretch>,
    /// Names of the nodes that the timeline speaks of, by id.
    pub nodes: Vec<String>,
}

impl RunResult {
    /// Joins what was submitted with what became of it.
    pub fn new(
        meta: RunMeta,
        timing: Timing,
        workload: &Workload,
        cluster: &Cluster,
        ledger: Ledger,
    ) -> Self {
        let jobs = jobs::join(workload, cluster, &ledger.outcomes, &ledger.shares, &ledger.samples);
        let summary = Summary::new(&meta, timing, &jobs, &ledger);
        RunResult {
            meta,
            summary,
            jobs,
            samples: ledger.samples,
            notes: ledger.notes,
            bounds: Vec::new(),
            timeline: ledger.timeline,
            nodes: cluster.nodes().iter().map(|n| n.name.clone()).collect(),
        }
    }

    /// A length of time of every job in the measurement window that has one, in seconds, ascending.
    pub fn ascending_s(&self, length: impl Fn(&JobRow) -> Option<Span>) -> Vec<f64> {
        let mut lengths: Vec<Span> =
            Window::of(self.meta.window, &self.jobs).iter().filter_map(length).collect();
        lengths.sort_unstable();
        lengths.into_iter().map(Span::as_secs_f64).collect()
    }

    /// Replaces the verdict on each job's deadline: the originals have rules of their own.
    pub fn judge(&mut self, is_met: impl IntoIterator<Item = bool>) {
        for (job, is_met) in self.jobs.iter_mut().zip(is_met) {
            job.met = job.met.map(|_| is_met);
        }
        self.recount();
    }

    /// Recomputes the summary from the job rows, after a row was corrected.
    pub fn recount(&mut self) {
        self.summary.count(&self.jobs, self.meta.window);
    }
}

impl Results {
    /// Writes the folder: all of it or nothing. An older result folder of that name is replaced.
    pub fn write(&self, dir: &Path) -> Result<(), ResultsError> {
        let staging = Staging::new(dir)?;
        self.write_files(staging.path())?;
        staging.commit()
    }

    /// Writes the files into a folder that exists already, usually [`Staging::path`].
    pub fn write_files(&self, dir: &Path) -> Result<(), ResultsError> {
        folder::write(self, dir)
    }

    /// Reads a folder back.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        folder::read(dir)
    }

    /// What to call each run among the others: the policy, with cluster, load and seed where those differ.
    pub fn run_names(&self) -> Vec<String> {
        let differ =
            |part: fn(&RunMeta) -> String| self.runs.windows(2).any(|w| part(&w[0].meta) != part(&w[1].meta));
        let parts: [fn(&RunMeta) -> String; 3] = [
            |meta| format!(" on {}", meta.cluster.name),
            |meta| meta.jobs_per_hour.map(|load| format!(", {load} jobs/h")).unwrap_or_default(),
            |meta| format!(", seed {}", meta.seed),
        ];
        let shown: Vec<fn(&RunMeta) -> String> = parts.into_iter().filter(|part| differ(*part)).collect();
        let name =
            |meta: &RunMeta| shown.iter().fold(meta.policy.clone(), |name, part| name + part(meta).as_str());
        self.runs.iter().map(|run| name(&run.meta)).collect()
    }

    /// The contents of `summary.json`, also what `--json` prints.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&SummaryFile::of(self)).expect("figures are plain numbers and text")
            + "\n"
    }
}

#[cfg(test)]
pub(crate) mod samples;
