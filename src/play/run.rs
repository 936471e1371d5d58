//! One run that can be cancelled between rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{SimulationError, simulate};
use rota_core::snapshot::Snapshot;
use rota_lab::results::{RunMeta, RunResult, Timing};
use rota_scripts::{ScriptError, ScriptPolicy};

use crate::bench::Prepared;

/// A run without a result.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Nobody waits for it any more.
    Cancelled,
    /// The script went wrong at a decision.
    Script(Box<ScriptError>),
    /// The plan could not be carried out.
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Cancelled => f.write_str("cancelled"),
            Failure::Script(error) => error.fmt(f),
            Failure::Other(message) => f.write_str(message),
        }
    }
}

/// Runs a policy to the end of the workload.
pub(crate) fn run(
    prepared: &Prepared,
    policy: &mut ScriptPolicy,
    label: &str,
    is_cancelled: &AtomicBool,
) -> Result<RunResult, Failure> {
    let started = Instant::now();
    let parameters = policy
        .params()
        .into_iter()
        .map(|(_, parameter)| (parameter.name.clone(), toml::Value::String(parameter.value.to_string())))
        .collect();
    let mut watched =
        Watched { inner: policy, is_cancelled, decisions: Vec::new(), error: None, reads_estimates: false };
    let (cluster, workload) = (Arc::clone(&prepared.cluster), Arc::clone(&prepared.workload));
    let ledger =
        simulate(cluster, workload, prepared.faults.clone(), &mut watched, &prepared.settings, &mut |_| ());
    let Watched { decisions, error, reads_estimates, .. } = watched;
    let mut ledger = ledger.map_err(|failed| failure(failed, error, is_cancelled))?;
    for (sample, took) in ledger.samples.iter_mut().zip(&decisions) {
        sample.decide_s = took.as_secs_f64();
    }
    let workload = &prepared.workload;
    let is_exact = |(job, truth): (&Arc<rota_core::job::JobSpec>, &rota_core::workload::Truth)| {
        job.estimated_work == truth.work && truth.pace == 1.0
    };
    let meta = RunMeta {
        policy: label.to_owned(),
        seed: prepared.seed,
        jobs_per_hour: prepared.jobs_per_hour,
        exact_estimates: workload.jobs.iter().zip(&workload.truths).all(is_exact),
        reads_estimates,
        window: prepared.window,
        cluster: (&*prepared.cluster).into(),
        parameters,
    };
    let decide_s = decisions.iter().sum::<Duration>().as_secs_f64();
    let timing = Timing { wall_s: started.elapsed().as_secs_f64(), decide_s };
    Ok(RunResult::new(meta, timing, workload, &prepared.cluster, ledger))
}

fn failure(failed: SimulationError, error: Option<ScriptError>, is_cancelled: &AtomicBool) -> Failure {
    match error {
        Some(error) => Failure::Script(Box::new(error)),
        None if is_cancelled.load(Relaxed) => Failure::Cancelled,
        None => Failure::Other(failed.to_string()),
    }
}

/// Stops when nobody waits any more, and keeps what a script did wrong in its parts.
struct Watched<'a> {
    inner: &'a mut ScriptPolicy,
    is_cancelled: &'a AtomicBool,
    decisions: Vec<Duration>,
    error: Option<ScriptError>,
    reads_estimates: bool,
}

impl Policy for Watched<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        if self.is_cancelled.load(Relaxed) {
            return Err(PolicyError { message: "cancelled".into() });
        }
        snapshot.jobs.take_estimates_read();
        let started = Instant::now();
        let plan = self.inner.decide_or_explain(snapshot);
        self.decisions.push(started.elapsed());
        self.reads_estimates |= snapshot.jobs.take_estimates_read();
        plan.map_err(|error| {
            let message = error.to_string();
            self.error = Some(error);
            PolicyError { message }
        })
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}
