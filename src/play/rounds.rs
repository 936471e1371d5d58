//! One decision of a run that is shown: by which keys jobs were ordered, who was given what, who was not and for want of what, what
//! was admitted or declined, what was printed, what each stage cost. The run is simulated again up to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::allocation::Allocation;
use rota_core::guards;
use rota_core::ids::JobId;
use rota_core::plan::{Hold, Plan, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::Simulation;
use rota_core::snapshot::Snapshot;
use rota_core::table::JobPhase;
use rota_core::time::Time;
use rota_lab::explain::{Limit, Shortage, Watch};
use rota_lab::results::RunResult;
use rota_scripts::{Account, ScriptPolicy};
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::session::Shown;

/// Jobs of the front of the queue that are listed, with all of which the decision says something; the rest are counted.
const MAX_JOBS: usize = 300;
const MAX_CONCERNED: usize = 2_000;

/// The decision with a number, from 0, of one of the runs.
pub(crate) fn at(shown: &Shown, policy: usize, decision: usize) -> Result<Value, Refusal> {
    let (contender, result) = shown.run(policy)?;
    let mut script = contender.compile().map_err(Refusal::Policy)?;
    let mut until = Until { inner: &mut script, n_before: decision, seen: None };
    let prepared = &shown.prepared;
    let (cluster, workload) = (Arc::clone(&prepared.cluster), Arc::clone(&prepared.workload));
    let mut simulation =
        Simulation::new(cluster, workload, prepared.faults.clone(), &mut until, &prepared.settings);
    while simulation.progress().n_decisions as usize <= decision && simulation.step()? {}
    drop(simulation);
    let seen = until.seen.ok_or(Refusal::NoDecision(decision))?;
    Ok(seen.told(result, decision))
}

/// The last decision that was taken by a time: where the runs of two policies are looked at side by side.
pub(crate) fn by_time(shown: &Shown, policy: usize, time_s: f64) -> Result<usize, Refusal> {
    let (_, result) = shown.run(policy)?;
    let time = Time::from_secs_f64(time_s.clamp(0.0, 1e12));
    Ok(result.samples.partition_point(|sample| sample.time <= time).saturating_sub(1))
}

/// The decision after a time at which a job is given something or loses something.
pub(crate) fn next_change(
    shown: &Shown,
    policy: usize,
    decision: usize,
    job: &str,
) -> Result<usize, Refusal> {
    let (_, result) = shown.run(policy)?;
    let at = result.jobs.iter().position(|row| &*row.job_id == job);
    let id = at.map(JobId::from).ok_or_else(|| Refusal::NotInRun(job.to_owned()))?;
    let now = result.samples.get(decision).map_or(Time::ZERO, |sample| sample.time);
    let times = result.timeline.iter().filter(|stretch| stretch.job == id).flat_map(|s| [s.from, s.to]);
    let next = times.filter(|time| *time > now).min();
    let next = next.ok_or_else(|| Refusal::NoChange(job.to_owned()))?;
    // It may end between rounds: the next one is the first to see that.
    let found = result.samples.iter().position(|sample| sample.time >= next);
    found.ok_or_else(|| Refusal::NoLaterDecision(job.to_owned()))
}

/// Keeps the decision after so many others.
struct Until<'a> {
    inner: &'a mut ScriptPolicy,
    n_before: usize,
    seen: Option<Seen>,
}

/// One decision.
struct Seen {
    snapshot: Snapshot,
    plan: Plan,
    account: Account,
    operations: u64,
    took: Duration,
}

impl Policy for Until<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        if self.n_before > 0 || self.seen.is_some() {
            self.n_before = self.n_before.saturating_sub(1);
            return self.inner.decide(snapshot);
        }
        let started = Instant::now();
        let decided = self.inner.decide_with_account(snapshot);
        let took = started.elapsed();
        let (plan, account) = decided.map_err(|error| PolicyError { message: error.to_string() })?;
        // What is shown is what the cluster is given, after the guards.
        let mut mended = plan.clone();
        guards::mend(snapshot, &mut mended);
        let operations = self.inner.operations();
        self.seen = Some(Seen { snapshot: snapshot.clone(), plan: mended, account, operations, took });
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}

impl Seen {
    fn told(&self, result: &RunResult, decision: usize) -> Value {
        let jobs = &self.snapshot.jobs;
        let place: BTreeMap<JobId, usize> = self.plan.run.iter().map(|run| run.job).zip(0..).collect();
        let queued: BTreeMap<JobId, usize> = self.account.queue.iter().copied().zip(1..).collect();
        // As the policy ordered them; where it left no order, as the plan served them; then by arrival.
        let mut rows: Vec<usize> = (0..jobs.len()).collect();
        rows.sort_by_key(|row| {
            let id = jobs.id(*row);
            let at = |of: &BTreeMap<JobId, usize>| of.get(&id).copied().unwrap_or(usize::MAX);
            (at(&queued), at(&place), id)
        });
        let is_concerned = |row: usize| {
            let id = jobs.id(row);
            place.contains_key(&id)
                || jobs.phase(row) != JobPhase::Waiting
                || self.plan.verdicts.iter().any(|(job, _)| *job == id)
        };
        let mut shown: Vec<usize> = rows.iter().copied().take(MAX_JOBS).collect();
        let further = rows.iter().copied().skip(MAX_JOBS).filter(|row| is_concerned(*row));
        shown.extend(further.take(MAX_CONCERNED));
        let listed: Vec<Value> = shown.iter().map(|row| self.job(*row, (&place, &queued), result)).collect();
        let written = self.account.written.as_ref();
        let stage = |cost: &rota_scripts::StageCost| {
            json!({
                "stage": cost.stage.name(),
                "file": cost.file,
                "operations": cost.operations,
                "took_us": cost.took.as_micros() as u64,
                "is_within": cost.is_within,
            })
        };
        let sample = result.samples.get(decision);
        json!({
            "decision": decision,
            "time_s": self.snapshot.now.as_secs_f64(),
            "waiting": sample.map(|sample| sample.waiting),
            "running": sample.map(|sample| sample.running),
            "gpus_held": sample.map(|sample| sample.gpus_held),
            "gpus_up": sample.map(|sample| sample.gpus_up),
            "stages": self.account.stages.iter().map(stage).collect::<Vec<_>>(),
            "keys": self.account.keys.iter().map(|key| key.text.as_str()).collect::<Vec<_>>(),
            "is_by_keys": self.account.is_by_keys,
            "ordered_at": written.map(|(file, line)| format!("{file}:{line}")),
            "operations": self.operations,
            "took_us": self.took.as_micros() as u64,
            "printed": self.plan.notes,
            "jobs": listed,
            "n_more": rows.len() - shown.len(),
        })
    }

    fn job(
        &self,
        row: usize,
        (place, queued): (&BTreeMap<JobId, usize>, &BTreeMap<JobId, usize>),
        result: &RunResult,
    ) -> Value {
        let (jobs, cluster) = (&self.snapshot.jobs, &self.snapshot.cluster);
        let (id, spec, phase) = (jobs.id(row), jobs.spec(row), jobs.phase(row));
        let hold = place.get(&id).map(|at| &self.plan.run[*at].what);
        let given: Option<&Allocation> = hold.map(|hold| match hold {
            Hold::Keep => jobs.allocation(row),
            Hold::Take(allocation) => allocation,
        });
        let node = |slice: &rota_core::allocation::Slice| {
            cluster
                .nodes()
                .get(slice.node.index())
                .map_or_else(|| slice.node.index().to_string(), |node| node.name.clone())
        };
        let named = result.jobs.get(id.index());
        json!({
            "job": named.map(|row| &*row.job_id),
            "model": named.map(|row| &*row.model),
            "asked": spec.gpus.asked,
            "queued": queued.get(&id),
            // Infinite keys, such as the deadline of a job without one, are written as words.
            "keys": self.account.keys.iter().map(|key| key.values.get(&id).map(|value| told(*value))).collect::<Vec<_>>(),
            "becomes": self.becomes(row, phase, hold),
            "gpus": given.map(Allocation::n_gpus),
            "nodes": given.map(|given| given.slices.iter().map(node).collect::<Vec<_>>()),
            "of_best": given.map(|given| spec.part_of_best(given, jobs.demand_per_gpu(row), cluster)),
            "why": given.is_none().then(|| self.lack(id, result)).flatten(),
        })
    }

    fn becomes(&self, row: usize, phase: JobPhase, hold: Option<&Hold>) -> String {
        let jobs = &self.snapshot.jobs;
        let verdict =
            self.plan.verdicts.iter().find(|(job, _)| *job == jobs.id(row)).map(|(_, verdict)| verdict);
        match (phase, hold, verdict) {
            (_, _, Some(Verdict::Decline(reason))) => format!("is declined: {reason}"),
            (JobPhase::Running, Some(Hold::Keep), _) => "goes on".to_owned(),
            (JobPhase::Running, Some(Hold::Take(given)), _) => {
                let (was, is) = (jobs.allocation(row).n_gpus(), given.n_gpus());
                if was == is { "is moved".to_owned() } else { format!("is resized from {was} GPUs") }
            }
            (JobPhase::Running, None, _) => "is stopped".to_owned(),
            (_, Some(_), _) => "starts".to_owned(),
            (JobPhase::Asking, None, None) => "waits for admission".to_owned(),
            (JobPhase::Asking, None, Some(Verdict::Admit)) => "is admitted, and waits".to_owned(),
            (JobPhase::Waiting, None, _) => "waits".to_owned(),
        }
    }

    /// For want of what a job does not run, as `rota explain` finds it.
    fn lack(&self, id: JobId, result: &RunResult) -> Option<String> {
        let mut watch = Watch::new(&result.jobs, id);
        // Only this decision is watched: whether it would end the watch does not matter.
        let _ = watch.see(&self.snapshot, &self.plan);
        let seen = watch.close(self.snapshot.now);
        seen.shortages.first().map(lack)
    }
}

/// A key as JSON can say it.
fn told(value: f64) -> Value {
    match value.is_finite() && value.abs() < 1e15 {
        true => json!(value),
        false if value > 0.0 => json!("∞"),
        false => json!("−∞"),
    }
}

fn lack(of: &Shortage) -> String {
    let free = of.gpus_free.1;
    match (of.limit, of.gpus_needed) {
        (Limit::Gpus, Some(needed)) => format!("needs {needed} GPUs, {free} are free"),
        (Limit::Gpus, None) => format!("{free} GPUs are free"),
        (Limit::Places, _) => format!("{free} GPUs are free, at most {} on one node", of.most_on_one_node),
        (Limit::Cpus, _) => "too few CPUs on the nodes with free GPUs".to_owned(),
        (Limit::Memory, _) => "too little memory on the nodes with free GPUs".to_owned(),
        (Limit::Time, _) => "no number of GPUs meets its deadline any more".to_owned(),
        (Limit::Quota, _) => match &of.quota {
            Some((tenant, gpus)) => format!("the quota of {tenant}, {gpus} GPUs"),
            None => "its tenant's quota".to_owned(),
        },
        (Limit::Policy, _) => "what it needs is free: the policy did not use it".to_owned(),
    }
}
