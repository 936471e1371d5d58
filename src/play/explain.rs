//! Why a job of a run that is shown fared as it did, and where two of these runs part: what `rota explain` and `rota diff` say.

use std::cell::Cell;
use std::sync::Arc;

use rota_core::simulation::Simulation;
use rota_core::time::Time;
use rota_lab::diff::difference;
use rota_lab::explain::{Explanation, Watch, Watched, explain};

use crate::session::Shown;

/// The sentences of `rota explain` about a job.
pub(crate) fn of_job(shown: &Shown, policy: usize, job: &str) -> Result<Vec<String>, String> {
    let (contender, result) = shown.run(policy)?;
    let mut explanation = explain(result, job).map_err(|error| error.to_string())?;
    let id = Explanation::id(result, job).ok_or_else(|| "there is no such job".to_owned())?;
    let mut watch = Watch::new(&result.jobs, id);
    let mut script = contender.compile().map_err(|failure| failure.to_string())?;
    let has_seen_enough = Cell::new(false);
    let mut see = |snapshot: &_, plan: &_| watch.see(snapshot, plan);
    let mut watched = Watched::new(&mut script, &mut see, &has_seen_enough);
    let prepared = &shown.prepared;
    let (cluster, workload) = (Arc::clone(&prepared.cluster), Arc::clone(&prepared.workload));
    let mut simulation =
        Simulation::new(cluster, workload, prepared.faults.clone(), &mut watched, &prepared.settings);
    while !has_seen_enough.get() && simulation.step().map_err(|error| error.to_string())? {}
    drop(simulation);
    let last_decision = result.samples.last().map_or(Time::ZERO, |sample| sample.time);
    explanation.add_decisions(watch.close(result.jobs[id.index()].finish.unwrap_or(last_decision)));
    Ok(explanation.sentences)
}

/// What `rota diff` says of the edited policy and another.
pub(crate) fn first_difference(shown: &Shown, other: usize) -> Result<String, String> {
    let ((_, own), (_, result)) = (shown.run(0)?, shown.run(other)?);
    Ok(difference(own, result).to_text(&own.meta.policy, &result.meta.policy))
}
