//! One scheduler on one trace, as the shipped policy or as the original program.

use std::sync::Arc;
use std::time::Instant;

use rota_core::cluster::Cluster;
use rota_core::ledger::{Outcome, Status};
use rota_core::simulation::{Progress, Settings, simulate};
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_scripts::artifact::elasticflow as artifact;
use rota_scripts::{Limits, ScriptPolicy};

use super::{Contender, Panel, ReproduceError};

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The shipped policies on Rota's engine.
    Shipped,
    /// The original's program with its quirks (`compat=artifact`).
    Artifact,
}

/// What came of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Counts {
    /// Jobs with a deadline.
    pub deadline_jobs: usize,
    /// Of these, done by it.
    pub met: usize,
    /// Refused at admission.
    pub declined: usize,
    /// Met as a part of all.
    pub ratio: f64,
    /// Wall-clock time of the run.
    pub wall_s: f64,
}

/// A trace that has been read, and what it runs on.
pub(super) struct Loaded {
    pub(super) panel: Panel,
    pub(super) cluster: Arc<Cluster>,
    pub(super) workload: Arc<Workload>,
    /// Run times of the trace by job, for the original's program.
    pub(super) durations: Option<Vec<Span>>,
}

/// Runs one scheduler; `ended` hears of jobs as they end.
pub(super) fn run(
    loaded: &Loaded,
    contender: &Contender,
    mode: Mode,
    ended: &dyn Fn(u64),
) -> Result<Counts, ReproduceError> {
    let began = Instant::now();
    let (met, declined) = match mode {
        Mode::Shipped => shipped(loaded, contender, ended)?,
        Mode::Artifact => original(loaded, contender, ended)?,
    };
    let deadline_jobs = loaded.workload.jobs.iter().filter(|job| job.deadline.first().is_some()).count();
    let ratio = if deadline_jobs == 0 { 0.0 } else { met as f64 / deadline_jobs as f64 };
    Ok(Counts { deadline_jobs, met, declined, ratio, wall_s: began.elapsed().as_secs_f64() })
}

fn shipped(
    loaded: &Loaded,
    contender: &Contender,
    ended: &dyn Fn(u64),
) -> Result<(usize, usize), ReproduceError> {
    let mut policy = ScriptPolicy::load(contender.policy, Limits::default())?;
    let settings = Settings { round: loaded.panel.slot, ..Settings::default() };
    let mut n_seen = 0;
    let observe = &mut |progress: &Progress| {
        ended((progress.n_ended - n_seen) as u64);
        n_seen = progress.n_ended;
    };
    let (cluster, workload) = (Arc::clone(&loaded.cluster), Arc::clone(&loaded.workload));
    let ledger = simulate(cluster, workload, Vec::new(), &mut policy, &settings, observe);
    let ledger = ledger.map_err(|error| ReproduceError::Run {
        policy: contender.policy,
        panel: loaded.panel.name,
        error,
    })?;
    ended((loaded.workload.jobs.len() - n_seen) as u64);
    Ok((n_met(&loaded.workload, &ledger.outcomes), n_declined(&ledger.outcomes)))
}

fn original(
    loaded: &Loaded,
    contender: &Contender,
    ended: &dyn Fn(u64),
) -> Result<(usize, usize), ReproduceError> {
    let settings = artifact::Settings {
        durations: loaded.durations.as_deref(),
        ..artifact::Settings::new(contender.scheduler, loaded.panel.slot)
    };
    let run = artifact::run(&loaded.cluster, &loaded.workload, &settings);
    let run = run.map_err(|error| ReproduceError::Artifact {
        policy: contender.original,
        panel: loaded.panel.name,
        error,
    })?;
    ended(loaded.workload.jobs.len() as u64);
    Ok((run.accepted(), n_declined(&run.ledger.outcomes)))
}

pub(super) fn n_met(workload: &Workload, outcomes: &[Outcome]) -> usize {
    let jobs = workload.jobs.iter().zip(outcomes);
    jobs.filter(|(job, outcome)| {
        let finish = outcome.finish.filter(|_| outcome.status == Status::Finished);
        finish.zip(job.deadline.first()).is_some_and(|(finish, deadline)| finish <= deadline)
    })
    .count()
}

pub(super) fn n_declined(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| outcome.status == Status::Declined).count()
}
