//! `themis`: leases of one slot to the jobs with the largest fair share.
//!
//! The original leaves the convex problem to an interior-point solver and sorts by its last digits; here it is solved
//! by bisection, so the order of jobs with nearly equal shares may differ.

use rota_core::time::{Span, Time};
use smallvec::SmallVec;

use super::job::{Job, Run};
use super::overhead::{RestartCount, cost};
use super::{ArtifactError, Case, Defect, Defects};
use crate::models::fairness::{Claim, fair_shares};

/// What this scheduler keeps of a job.
#[derive(Clone, Debug)]
struct Lease {
    left_s: f64,
    /// Work at the last round, and the part of the cluster the job was owed then.
    last: Option<(f64, f64)>,
    /// Time its work so far would have taken with the part it was owed.
    alone: f64,
    end: Time,
    /// Leases received, and whether the last one was among them.
    n_received: u32,
    is_held: bool,
}

/// Runs to the end.
pub(super) fn run(case: Case) -> Result<Run, ArtifactError> {
    let mut restarts = RestartCount::new(&case);
    let Case { mut jobs, machines, slot, defects, mut accounts } = case;
    let fresh = |job: &Job| Lease {
        left_s: job.duration.as_secs_f64(),
        last: None,
        alone: 0.0,
        end: Time::ZERO,
        n_received: 0,
        is_held: false,
    };
    let mut leases: Vec<Lease> = jobs.iter().map(fresh).collect();
    let mut n_arrived = 0;
    let mut runnable: Vec<u32> = Vec::new();
    let mut ending: Vec<u32> = Vec::new();
    let mut now = jobs.first().map_or(Time::ZERO, |job| job.submit);
    let mut last_event = now;
    while n_arrived < jobs.len() || !runnable.is_empty() {
        if runnable.is_empty() && jobs.get(n_arrived).is_some_and(|job| job.submit > now) {
            now = next_round(now, slot, jobs[n_arrived].submit);
        }
        let n_before = n_arrived;
        while jobs.get(n_arrived).is_some_and(|job| job.submit <= now) {
            runnable.push(n_arrived as u32);
            n_arrived += 1;
        }
        if n_arrived > n_before || !ending.is_empty() {
            last_event = now;
        }
        for id in ending.drain(..) {
            let (job, end) = (&jobs[id as usize], leases[id as usize].end);
            accounts.finish(id, job, None, end, end > job.deadline);
            runnable.retain(|j| *j != id);
        }
        let clock = if defects.has(Defect::ThemisClock) { last_event } else { now };
        let chosen = choose(&jobs, &mut leases, &mut runnable, machines.n_gpus, clock, defects);
        let is_restart = restarts.next();
        for &id in &runnable {
            let (job, lease) = (&mut jobs[id as usize], &mut leases[id as usize]);
            let had = std::mem::replace(&mut lease.is_held, chosen.contains(&id));
            if !lease.is_held {
                continue;
            }
            lease.n_received += 1;
            let is_free = defects.has(Defect::StartsFree) || (had && !is_restart);
            let lost = if is_free {
                Span::ZERO
            } else {
                cost(job.asked, machines.n_gpus, is_restart, false).min(slot)
            };
            if run_lease(job, lease, now, slot, lost, defects) {
                ending.push(id);
            }
        }
        let holding = |id: &u32| jobs[*id as usize].holding(*id, jobs[*id as usize].asked, SmallVec::new());
        accounts.round(now, &jobs, &runnable, chosen.iter().map(holding).collect());
        now = now + slot;
    }
    Ok(accounts.close(&jobs))
}

/// The first round at or after `time`; idle rounds before it change nothing.
fn next_round(now: Time, slot: Span, time: Time) -> Time {
    time.align_up(now, slot)
}

/// Sorts by fair share, largest first, and takes the jobs that fit.
fn choose(
    jobs: &[Job],
    leases: &mut [Lease],
    runnable: &mut [u32],
    n_gpus: u32,
    clock: Time,
    defects: Defects,
) -> Vec<u32> {
    let each = f64::from(n_gpus.div_ceil((runnable.len() as u32).max(1)));
    let claims: Vec<Claim> = runnable
        .iter()
        .map(|id| {
            let (job, lease) = (&jobs[*id as usize], &mut leases[*id as usize]);
            let part = (each / f64::from(job.asked)).min(1.0);
            let owed =
                if defects.has(Defect::ThemisShare) { part } else { part * job.speeds.rate(job.asked) };
            if let Some((work, owed)) = lease.last {
                lease.alone += (work - job.work) / owed;
            }
            lease.last = Some((job.work, owed));
            Claim {
                gpus: f64::from(job.asked),
                waited: (clock - job.submit).as_secs_f64(),
                left: job.work / job.speeds.rate(job.asked),
                alone: lease.alone + job.work / owed,
            }
        })
        .collect();
    let (_, shares) = fair_shares(&claims, f64::from(n_gpus));
    let counts = !defects.has(Defect::ThemisReceipts);
    let weighed = |(share, id): (f64, &u32)| {
        let n_received = if counts { leases[*id as usize].n_received } else { 0 };
        (share / f64::from(n_received + 1), *id)
    };
    let mut order: Vec<(f64, u32)> = shares.into_iter().zip(runnable.iter()).map(weighed).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut free = n_gpus;
    let mut chosen = Vec::new();
    for (place, (_, id)) in runnable.iter_mut().zip(order) {
        *place = id;
        let asked = jobs[id as usize].asked;
        if asked <= free {
            free -= asked;
            chosen.push(id);
        }
    }
    chosen
}

/// Credits one lease ahead, less what its start loses; returns whether the job ends with it.
fn run_lease(job: &mut Job, lease: &mut Lease, now: Time, slot: Span, lost: Span, defects: Defects) -> bool {
    let needed_s = job.work / job.speeds.rate(job.asked);
    let worked = Span(slot.0 - lost.0);
    lease.end = now + lost + Span::from_secs_f64(lease.left_s);
    lease.left_s = (lease.left_s - worked.as_secs_f64()).max(0.0);
    job.work -= worked.as_secs_f64() * job.speeds.rate(job.asked);
    if !defects.has(Defect::ThemisWholeLeases) {
        lease.end = now + lost + Span::from_secs(needed_s.ceil() as i64);
    } else if job.work <= 0.0 {
        lease.end = now + slot;
    }
    lease.end <= now + slot
}
