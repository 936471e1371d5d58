//! Why a job of a run that is shown fared as it did, and where two of these runs part: what `rota explain` and `rota diff` say.

use std::cell::Cell;
use std::sync::Arc;

use rota_core::simulation::Simulation;
use rota_core::time::Time;
use rota_lab::diff::{Parting, difference};
use rota_lab::explain::{Explanation, Watch, Watched, explain};
use rota_lab::results::RunResult;
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::session::Shown;

/// The sentences of `rota explain` about a job.
pub(crate) fn of_job(shown: &Shown, policy: usize, job: &str) -> Result<Vec<String>, Refusal> {
    let (contender, result) = shown.run(policy)?;
    let mut explanation = explain(result, job)?;
    let id = Explanation::id(result, job).ok_or(Refusal::NoJob)?;
    let mut watch = Watch::new(&result.jobs, id);
    let mut script = contender.compile().map_err(Refusal::Policy)?;
    let has_seen_enough = Cell::new(false);
    let mut see = |snapshot: &_, plan: &_| watch.see(snapshot, plan);
    let mut watched = Watched::new(&mut script, &mut see, &has_seen_enough);
    let prepared = &shown.prepared;
    let (cluster, workload) = (Arc::clone(&prepared.cluster), Arc::clone(&prepared.workload));
    let mut simulation =
        Simulation::new(cluster, workload, prepared.faults.clone(), &mut watched, &prepared.settings);
    while !has_seen_enough.get() && simulation.step()? {}
    drop(simulation);
    let last_decision = result.samples.last().map_or(Time::ZERO, |sample| sample.time);
    explanation.add_decisions(watch.close(result.jobs[id.index()].finish.unwrap_or(last_decision)));
    Ok(explanation.sentences)
}

/// What `rota diff` says of two of the policies, and the decision of each in which they part.
pub(crate) fn first_difference(shown: &Shown, one: usize, other: usize) -> Result<Value, Refusal> {
    let ((_, a), (_, b)) = (shown.run(one)?, shown.run(other)?);
    let found = difference(a, b);
    let (time, job) = match &found.parting {
        Parting::At(moment) => (Some(moment.time_s), moment.jobs.first().map(|job| job.job_id.clone())),
        Parting::Nowhere | Parting::Jobs { .. } => (None, None),
    };
    // Something may end between two decisions: the next one is the first to see that.
    let decision = |run: &RunResult| {
        let time = Time::from_secs_f64(time?);
        Some(run.samples.partition_point(|sample| sample.time < time).min(run.samples.len().checked_sub(1)?))
    };
    Ok(json!({
        "text": found.to_text(&a.meta.policy, &b.meta.policy),
        "time_s": time,
        "job": job,
        "decisions": [decision(a), decision(b)],
    }))
}
