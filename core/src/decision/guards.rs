//! Rules that hold for every policy: a minimum run time before a preemption, and tenants' quotas. A job that fetches data
//! that no cache keeps is protected until it has worked as long as it fetched, or for a round if that is less.
//!
//! The native walks already respect them; this enforces them on all other plans. A plan that breaks a
//! guard is mended, and a note of the round says how. The minimum run time comes first: a protected job goes on with
//! what it holds, its GPUs are counted against its tenant's quota before those of all others, and no quota stops it.
//! Protected jobs that exceed the quota by themselves (it was lowered meanwhile) go on until they are protected no
//! longer; until then no other job of the tenant runs.

use std::collections::BTreeMap;

use crate::ids::TenantId;
use crate::plan::{Hold, Plan, Run};
use crate::resources::Host;
use crate::snapshot::{Guards, Snapshot};

/// Mends a plan so that no protected job is stopped and no other job exceeds its tenant's quota.
pub fn mend(snapshot: &Snapshot, plan: &mut Plan) {
    if snapshot.may_protect() {
        protect(snapshot, plan);
    }
    if !snapshot.guards.quota_gpus.is_empty() {
        enforce_quotas(snapshot, plan);
    }
}

/// Puts protected jobs back with what they hold; jobs that were to have their GPUs wait.
fn protect(snapshot: &Snapshot, plan: &mut Plan) {
    let jobs = &snapshot.jobs;
    let mut kept: Vec<_> =
        (0..jobs.len()).filter(|row| snapshot.is_protected(*row)).map(|row| jobs.id(row)).collect();
    kept.sort_unstable();
    let stays = |run: &Run| match (&run.what, jobs.row(run.job)) {
        (Hold::Keep, _) => true,
        (Hold::Take(allocation), Some(row)) => allocation.same_gpus(jobs.allocation(row)),
        (Hold::Take(_), None) => false,
    };
    kept.retain(|job| !plan.run.iter().any(|run| run.job == *job && stays(run)));
    if kept.is_empty() {
        return;
    }
    // What protected jobs hold now fits together; with another share for one of them it might not.
    let mut protected = Vec::new();
    for run in &mut plan.run {
        if let Some(row) = jobs.row(run.job).filter(|row| snapshot.is_protected(*row)) {
            run.what = Hold::Keep;
            protected.push(row);
        }
    }
    for job in kept {
        plan.run.retain(|run| run.job != job);
        let Some(row) = jobs.row(job) else { continue };
        for slice in &jobs.allocation(row).slices {
            plan.run.retain(|run| {
                let held = match &run.what {
                    Hold::Keep => return true,
                    Hold::Take(allocation) => allocation,
                };
                !held.slices.iter().any(|s| s.node == slice.node && !s.gpus.and(slice.gpus).is_empty())
            });
        }
        plan.run.push(Run { job, what: Hold::Keep });
        protected.push(row);
        let why = match snapshot.guards.min_run {
            _ if snapshot.is_on_closed(row) => "is on a node that takes no new jobs",
            Guards::NO_PREEMPTION => "runs",
            min_run if snapshot.now - jobs.started(row) < min_run => "has run for less than the minimum",
            _ => "fetches its data or has just done so",
        };
        plan.notes.push(format!("guard: job {job} {why} and goes on"));
    }
    for row in protected {
        make_host_room(snapshot, plan, row);
    }
}

/// Drops new placements, last first, from nodes where the protected job of `row` no longer fits with them.
fn make_host_room(snapshot: &Snapshot, plan: &mut Plan, row: usize) {
    let jobs = &snapshot.jobs;
    for slice in &jobs.allocation(row).slices {
        let Some(node) = snapshot.cluster.node(slice.node) else { continue };
        loop {
            let mut sum = Host::NONE;
            let mut last_new = None;
            for (index, run) in plan.run.iter().enumerate() {
                let held = match (&run.what, jobs.row(run.job)) {
                    (Hold::Take(allocation), _) => allocation,
                    (Hold::Keep, Some(row)) => jobs.allocation(row),
                    (Hold::Keep, None) => continue,
                };
                for there in held.slices.iter().filter(|s| s.node == slice.node) {
                    sum = sum.checked_add(&there.host).unwrap_or(sum);
                    if matches!(run.what, Hold::Take(_)) {
                        last_new = Some(index);
                    }
                }
            }
            match last_new {
                Some(index) if !sum.fits_in(&node.host) => drop(plan.run.remove(index)),
                _ => break,
            }
        }
    }
}

/// Leaves out jobs, last first, that would take their tenant beyond its quota; protected jobs are counted first.
fn enforce_quotas(snapshot: &Snapshot, plan: &mut Plan) {
    let jobs = &snapshot.jobs;
    let gpus = |run: &Run, row: usize| match &run.what {
        Hold::Keep => jobs.allocation(row).n_gpus(),
        Hold::Take(allocation) => allocation.n_gpus(),
    };
    let mut left: BTreeMap<TenantId, u32> = snapshot.guards.quota_gpus.clone();
    for run in &plan.run {
        let Some(row) = jobs.row(run.job).filter(|row| snapshot.is_protected(*row)) else { continue };
        if let Some(quota) = left.get_mut(&jobs.spec(row).tenant) {
            *quota = quota.saturating_sub(gpus(run, row));
        }
    }
    let mut notes = Vec::new();
    plan.run.retain(|run| {
        let Some(row) = jobs.row(run.job).filter(|row| !snapshot.is_protected(*row)) else { return true };
        let Some(quota) = left.get_mut(&jobs.spec(row).tenant) else { return true };
        let rest = quota.checked_sub(gpus(run, row));
        match rest {
            Some(rest) => *quota = rest,
            None => notes.push(format!("guard: job {} waits, its tenant's quota is used up", run.job)),
        }
        rest.is_some()
    });
    plan.notes.append(&mut notes);
}
