//! The original's functional test: five schedulers, one server of eight GPUs, ten jobs, two lines at the end of each.
//!
//! The authors' ten jobs were never published. `ten_jobs.csv` is ours, a trace in Rota's format: found by search for
//! jobs on which the original program prints the counts of its README. That Rota prints them too shows that it decides
//! as the original does, and nothing about the authors' own run.

use std::fmt::Write;

use rota_core::time::Span;
use rota_scripts::artifact::elasticflow::{self as artifact, ElasticflowSettings};
use rota_traces::format::{Setting, rota};
use rota_traces::profile;
use rota_traces::source::Source;

use super::{CONTENDERS, servers};
use crate::reproduce::ReproduceError;

/// The ten jobs, in Rota's format.
pub const TEN_JOBS: &str = include_str!("ten_jobs.csv");
const SLOT: Span = Span::from_secs(240);

/// Accepted and declined, as the original's README names them, by contender.
pub const README: [(usize, usize); 5] = [(6, 4), (1, 9), (5, 5), (2, 8), (3, 7)];

/// How the test went.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FunctionalReport {
    /// Whether every count is that of the README.
    pub is_as_published: bool,
    /// What the ten jobs are.
    pub note: &'static str,
    /// One for each scheduler.
    pub runs: Vec<FunctionalRun>,
}

/// One scheduler.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FunctionalRun {
    /// The shipped policy.
    pub policy: &'static str,
    /// Its name in the original.
    pub original: &'static str,
    /// Jobs done by their deadline.
    pub accepted: usize,
    /// Jobs refused or late.
    pub declined: usize,
    /// What the README says: accepted, declined.
    pub published: (usize, usize),
}

const NOTE: &str = "the authors' ten jobs were never published: these were found by search for a file on which the \
                    original program prints the counts of its README";

/// Runs the test; it needs no file.
pub fn functional() -> Result<FunctionalReport, ReproduceError> {
    let cluster = servers(1)?;
    let profiles = profile::load("elasticflow-a100")?;
    let source = Source::new("ten_jobs.csv", TEN_JOBS);
    let workload = rota::read(&source, &Setting::new(&cluster, &profiles))?.workload;
    let mut runs = Vec::with_capacity(CONTENDERS.len());
    for (contender, published) in CONTENDERS.iter().zip(README) {
        let settings = ElasticflowSettings::new(contender.scheduler, SLOT);
        let run = artifact::run(&cluster, &workload, &settings).map_err(|error| {
            ReproduceError::Elasticflow { policy: contender.original, trace: "the ten jobs", error }
        })?;
        runs.push(FunctionalRun {
            policy: contender.policy,
            original: contender.original,
            accepted: run.accepted(),
            declined: run.declined(),
            published,
        });
    }
    let is_as_published = runs.iter().all(FunctionalRun::is_as_published);
    Ok(FunctionalReport { is_as_published, note: NOTE, runs })
}

impl FunctionalRun {
    /// Whether both counts are those of the README.
    pub fn is_as_published(&self) -> bool {
        (self.accepted, self.declined) == self.published
    }
}

impl FunctionalReport {
    /// For people: each scheduler ends with the original's two lines.
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "ElasticFlow's functional test: one server of 8 GPUs, ten jobs, slots of 240 s, compat=artifact\n",
        );
        for run in &self.runs {
            let (accepted, declined) = run.published;
            let verdict = match run.is_as_published() {
                true => String::new(),
                false => format!(" (the README says {accepted} and {declined})"),
            };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n{}, the original's {}{verdict}\naccepted jobs: {}\ndeclined jobs: {}\n",
                run.policy, run.original, run.accepted, run.declined
            );
        }
        let _ = writeln!(
            text,
            "\n{}",
            if self.is_as_published {
                "All counts are those of the original's README."
            } else {
                "Some counts are not those of the original's README."
            }
        );
        let _ = writeln!(text, "Note: {}.", self.note);
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("counts and names are plain JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_readme() {
        let report = functional().expect("it needs nothing from outside");
        let counts: Vec<_> = report.runs.iter().map(|run| (run.accepted, run.declined)).collect();
        assert_eq!(counts, README);
        assert!(report.is_as_published);
    }

    #[test]
    fn a_wrong_count_is_said_beside_the_published_one() {
        let run =
            FunctionalRun { policy: "edf", original: "edf", accepted: 2, declined: 8, published: (1, 9) };
        let report = FunctionalReport { is_as_published: false, note: NOTE, runs: vec![run] };
        let text = report.to_text();
        assert!(
            text.contains("edf, the original's edf (the README says 1 and 9)\naccepted jobs: 2\n"),
            "{text}"
        );
        assert!(text.contains("Some counts are not"), "{text}");
    }
}
