//! The first decision in which two runs differ, with the state around it.
//!
//! ```text
//! RunResult A ─▶ moments ─┐
//!                         ├▶ first difference ─▶ Difference ─▶ sentences (text), JSON
//! RunResult B ─▶ moments ─┘
//! ```
//!
//! A moment is a time at which some job was given something or lost something. Two runs that agree on all moments made the
//! same decisions; the first moment on which they differ is where to look, because everything after it may be its
//! consequence. Nothing is simulated: the data are in `jobs.csv`, `rounds.csv` and `timeline.csv`.

mod moments;
mod text;

use rota_core::ledger::Sample;
use rota_core::time::Time;

use crate::results::{JobRow, RunResult};
pub use moments::{Change, What};

/// What two runs have in common, and where they diverge.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Difference {
    /// Settings that differ: name, value in A, value in B.
    pub settings: Vec<(String, String, String)>,
    /// Where they diverge.
    pub parting: Parting,
    /// Figures that differ: name, value in A, value in B.
    pub figures: Vec<(String, f64, f64)>,
}

/// Where two runs diverge.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parting {
    /// Nowhere: every decision is the same.
    Nowhere,
    /// They were not given the same jobs: the first that differs, as each has it.
    Jobs {
        /// Index in the trace.
        index: usize,
        /// The job as A has it.
        a: Option<String>,
        /// The job as B has it.
        b: Option<String>,
    },
    /// At a moment.
    At(Box<Moment>),
}

/// The first moment at which two runs did not do the same.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Moment {
    /// When, in seconds.
    pub time_s: f64,
    /// Decisions before it.
    pub n_decisions_before: usize,
    /// What both did then.
    pub both: Vec<Change>,
    /// What only A did.
    pub only_a: Vec<Change>,
    /// What only B did.
    pub only_b: Vec<Change>,
    /// The cluster right after, in A.
    pub state_a: Option<State>,
    /// The cluster right after, in B.
    pub state_b: Option<State>,
    /// The jobs that the difference is about.
    pub jobs: Vec<Involved>,
    /// Whether the folders record what ran where; without it a moment is a start, an end or a refusal.
    pub has_timeline: bool,
}

/// The cluster right after a decision.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct State {
    /// Jobs without GPUs.
    pub waiting: u32,
    /// Jobs with GPUs.
    pub running: u32,
    /// GPUs held.
    pub gpus_held: u32,
    /// GPUs that are up.
    pub gpus_up: u32,
}

/// A job that the difference is about.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Involved {
    /// Its name in the trace.
    pub job_id: String,
    /// Name of its model in the profiles.
    pub model: String,
    /// Owner in the trace.
    pub tenant: String,
    /// GPUs it asked for.
    pub gpus: u32,
    /// When it was submitted, in seconds.
    pub arrival_s: f64,
    /// GPU time it had held by then, in A and in B, in GPU-seconds; `None` without a timeline.
    pub held_gpu_s: Option<(f64, f64)>,
    /// When it first held GPUs, in A and in B.
    pub start_s: (Option<f64>, Option<f64>),
    /// When it ended, in A and in B.
    pub finish_s: (Option<f64>, Option<f64>),
}

/// Options of the command line that differ: name, value in A, value in B.
pub fn different_options(a: &toml::Table, b: &toml::Table) -> Vec<(String, String, String)> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let text = |table: &toml::Table, name: &str| table.get(name).map(ToString::to_string).unwrap_or_default();
    let all = names.into_iter().map(|name| (name.clone(), text(a, name), text(b, name)));
    all.filter(|(_, a, b)| a != b).collect()
}

/// Compares two runs.
pub fn difference(a: &RunResult, b: &RunResult) -> Difference {
    Difference { settings: settings(a, b), parting: parting(a, b), figures: figures(a, b) }
}

fn parting(a: &RunResult, b: &RunResult) -> Parting {
    if let Some(index) = first_unlike_job(a, b) {
        let named = |run: &RunResult| run.jobs.get(index).map(described);
        return Parting::Jobs { index, a: named(a), b: named(b) };
    }
    let has_timeline = !a.timeline.is_empty() && !b.timeline.is_empty();
    let (of_a, of_b) = (moments::moments(a, has_timeline), moments::moments(b, has_timeline));
    let times: std::collections::BTreeSet<&Time> = of_a.keys().chain(of_b.keys()).collect();
    let none = Default::default();
    for time in times {
        let (in_a, in_b) = (of_a.get(time).unwrap_or(&none), of_b.get(time).unwrap_or(&none));
        if in_a != in_b {
            let only =
                |one: &std::collections::BTreeSet<Change>, other| one.difference(other).cloned().collect();
            let both = in_a.intersection(in_b).cloned().collect();
            return Parting::At(Box::new(moment(
                a,
                b,
                *time,
                both,
                (only(in_a, in_b), only(in_b, in_a)),
                has_timeline,
            )));
        }
    }
    Parting::Nowhere
}

fn moment(
    a: &RunResult,
    b: &RunResult,
    time: Time,
    both: Vec<Change>,
    (only_a, only_b): (Vec<Change>, Vec<Change>),
    has_timeline: bool,
) -> Moment {
    let mut jobs: Vec<usize> = only_a.iter().chain(&only_b).map(|change| change.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    Moment {
        time_s: time.as_secs_f64(),
        n_decisions_before: a.samples.partition_point(|sample| sample.time < time),
        both,
        only_a,
        only_b,
        state_a: state(a, time),
        state_b: state(b, time),
        jobs: jobs.into_iter().map(|job| involved(a, b, job, time, has_timeline)).collect(),
        has_timeline,
    }
}

/// The cluster after the last decision up to a time.
fn state(run: &RunResult, time: Time) -> Option<State> {
    let at = run.samples.partition_point(|sample| sample.time <= time);
    let sample: &Sample = run.samples.get(at.checked_sub(1)?)?;
    let Sample { waiting, running, gpus_held, gpus_up, .. } = *sample;
    Some(State { waiting, running, gpus_held, gpus_up })
}

fn involved(a: &RunResult, b: &RunResult, job: usize, time: Time, has_timeline: bool) -> Involved {
    let (in_a, in_b) = (&a.jobs[job], &b.jobs[job]);
    let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
    Involved {
        job_id: in_a.job_id.to_string(),
        model: in_a.model.to_string(),
        tenant: in_a.tenant.to_string(),
        gpus: in_a.gpus,
        arrival_s: in_a.arrival.as_secs_f64(),
        held_gpu_s: has_timeline.then(|| (held_gpu_s(a, job, time), held_gpu_s(b, job, time))),
        start_s: (seconds(in_a.start), seconds(in_b.start)),
        finish_s: (seconds(in_a.finish), seconds(in_b.finish)),
    }
}

fn held_gpu_s(run: &RunResult, job: usize, until: Time) -> f64 {
    let stretches = run.timeline.iter().filter(|stretch| stretch.job.index() == job && stretch.from < until);
    let held = stretches.map(|s| (s.to.min(until) - s.from).as_secs_f64() * f64::from(s.slice.gpus.len()));
    // An empty sum of floats is -0.
    held.fold(0.0, |sum, gpu_s| sum + gpu_s)
}

/// The first job that was not submitted the same in both.
fn first_unlike_job(a: &RunResult, b: &RunResult) -> Option<usize> {
    let submitted =
        |job: &JobRow| (job.job_id.clone(), job.arrival, job.gpus, job.model.clone(), job.deadline);
    let n = a.jobs.len().max(b.jobs.len());
    (0..n).find(|at| a.jobs.get(*at).map(submitted) != b.jobs.get(*at).map(submitted))
}

fn described(job: &JobRow) -> String {
    format!("{} ({}, {} GPUs, at {} s)", job.job_id, job.model, job.gpus, job.arrival)
}

fn settings(a: &RunResult, b: &RunResult) -> Vec<(String, String, String)> {
    let (a, b) = (&a.meta, &b.meta);
    let load = |load: Option<f64>| load.map(|load| load.to_string()).unwrap_or_default();
    let window =
        |window: Option<crate::results::Window>| window.map(|window| window.to_string()).unwrap_or_default();
    let mut all = vec![
        ("policy".to_owned(), a.policy.clone(), b.policy.clone()),
        ("seed".to_owned(), a.seed.to_string(), b.seed.to_string()),
        ("cluster".to_owned(), a.cluster.name.clone(), b.cluster.name.clone()),
        ("GPUs".to_owned(), a.cluster.gpus.to_string(), b.cluster.gpus.to_string()),
        ("jobs per hour".to_owned(), load(a.jobs_per_hour), load(b.jobs_per_hour)),
        ("exact estimates".to_owned(), a.exact_estimates.to_string(), b.exact_estimates.to_string()),
        ("window".to_owned(), window(a.window), window(b.window)),
    ];
    let names: std::collections::BTreeSet<&String> = a.parameters.keys().chain(b.parameters.keys()).collect();
    let value = |table: &toml::Table, name: &str| {
        table.get(name).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).unwrap_or_default()
    };
    all.extend(
        names
            .into_iter()
            .map(|name| (format!("--set {name}"), value(&a.parameters, name), value(&b.parameters, name))),
    );
    all.retain(|(_, a, b)| a != b);
    all
}

fn figures(a: &RunResult, b: &RunResult) -> Vec<(String, f64, f64)> {
    let numbers = |run: &RunResult| serde_json::to_value(&run.summary).unwrap_or_default();
    let (a, b) = (numbers(a), numbers(b));
    let all = a.as_object().into_iter().flatten();
    all.filter(|(name, _)| !matches!(name.as_str(), "wall_s" | "decide_s" | "seed"))
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?, b.get(name)?.as_f64()?)))
        .filter(|(_, a, b)| a != b)
        .collect()
}

#[cfg(test)]
mod tests;
