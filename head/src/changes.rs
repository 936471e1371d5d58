//! What it costs to change an allocation on a live cluster, measured from its journal: the time from the plan that took
//! the job's GPUs until its last rank had ended, and from there until every rank of the next launch runs.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::allocation::Allocation;
use rota_core::ids::{JobId, NodeId};
use rota_core::time::Time;
use rota_traces::profile::MeasuredChange;

use crate::record::{PlanRecord, Record};

/// A change of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Number of the job in the journal.
    pub job: JobId,
    /// Its model; empty when it has none.
    pub model: String,
    /// What it cost.
    pub change: MeasuredChange,
}

/// Where a job is between two launches.
#[derive(Default)]
struct BetweenLaunches {
    model: String,
    /// What it holds by the last plan that gave it something.
    holds: Option<Allocation>,
    /// What it held before, and when that was taken from it.
    left: Option<(Allocation, Time)>,
    /// When its last rank had ended.
    gone: Option<Time>,
}

/// All changes in a journal, in the order of their ends. Jobs that failed or waited longer than they needed are left out:
/// only a job that goes on at once shows what the change itself costs.
pub fn changes(journal: &[(Time, Record)]) -> Vec<Change> {
    let mut jobs: BTreeMap<JobId, BetweenLaunches> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, record) in journal {
        match record {
            Record::JobReceived { job, request, .. } => {
                jobs.entry(*job).or_default().model = request.model.to_string();
            }
            Record::Planned { plan, .. } => planned(&mut jobs, *at, plan),
            Record::JobStopped { job, .. } => {
                if let Some(state) = jobs.get_mut(job) {
                    state.gone = state.left.as_ref().map(|_| *at);
                }
            }
            Record::JobRequeued { job, .. } => {
                let model = model_of(&jobs, *job);
                jobs.insert(*job, BetweenLaunches { model, ..BetweenLaunches::default() });
            }
            Record::JobStarted { job, .. } => {
                found.extend(jobs.get_mut(job).and_then(|state| started(state, *job, *at)));
            }
            _ => {}
        }
    }
    found
}

fn model_of(jobs: &BTreeMap<JobId, BetweenLaunches>, job: JobId) -> String {
    jobs.get(&job).map(|state| state.model.clone()).unwrap_or_default()
}

fn planned(jobs: &mut BTreeMap<JobId, BetweenLaunches>, at: Time, plan: &PlanRecord) {
    let run = &plan.run;
    let runs: BTreeSet<JobId> = run.iter().map(|(job, _)| *job).collect();
    for (job, state) in &mut *jobs {
        let waits = match &plan.stopped {
            Some(stopped) => stopped.contains(job),
            None => !runs.contains(job),
        };
        if waits {
            // The job has to wait, so the time until it runs again is more than the cost of the change.
            (state.holds, state.left, state.gone) = (None, None, None);
        }
    }
    for (job, allocation) in run {
        let (Some(allocation), state) = (allocation, jobs.entry(*job).or_default()) else { continue };
        if let Some(before) = state.holds.take().filter(|before| !before.same_gpus(allocation)) {
            (state.left, state.gone) = (Some((before, at)), None);
        }
        state.holds = Some(allocation.clone());
    }
}

fn started(state: &mut BetweenLaunches, job: JobId, at: Time) -> Option<Change> {
    let (before, left) = state.left.take()?;
    let (gone, holds) = (state.gone.take()?, state.holds.as_ref()?);
    let nodes =
        |allocation: &Allocation| allocation.slices.iter().map(|s| s.node).collect::<BTreeSet<NodeId>>();
    let change = MeasuredChange {
        from: before.n_gpus(),
        to: holds.n_gpus(),
        moved: nodes(&before).is_disjoint(&nodes(holds)),
        checkpoint_s: (gone - left).as_secs_f64(),
        restart_s: (at - gone).as_secs_f64(),
    };
    Some(Change { job, model: state.model.clone(), change })
}
