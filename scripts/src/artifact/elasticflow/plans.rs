//! How the original plans a job: the shared verbs of the timeline, and what it does differently around them.
//!
//! Shared are the least share and the earliest plan. Its own are: a job that cannot make it runs at the widest level
//! up to its deadline and as wide as possible after it ([`late`]); a trial with more GPUs keeps them until the next
//! change of the timeline, credits that whole stretch, but charges it only up to the deadline ([`scaled`]); and the
//! earliest plan gives GPUs back at a slot that may hold another number already ([`earliest_overwriting`]).

use rota_core::artifact::OverwriteTimeline as _;
use rota_core::time::Time;
use rota_core::timeline::{Grid, Need, Reservation, Timeline};

/// Plans and reserves; the plan's last zero step is where the original's list of times goes on, which counts when it
/// looks for the next change and for GPU time.
pub(super) fn fill(timeline: &mut Timeline, grid: &Grid, need: &Need<'_>, now: Time) -> Reservation {
    let widest = need.speeds.within(timeline.n_gpus() as i32).map_or(0, |l| l.0);
    fill_from(timeline, grid, need, now, widest)
}

fn fill_from(timeline: &mut Timeline, grid: &Grid, need: &Need<'_>, from: Time, widest: u32) -> Reservation {
    let Ok(mut plan) = timeline.least_share(need, grid, from) else {
        let plan = late(timeline, grid, need, from, widest);
        timeline.reserve(&plan);
        return plan;
    };
    let (end, finish) = (plan.end(), plan.finish());
    let next = timeline.next_change(Time(finish.0 - 1));
    timeline.reserve(&plan);
    if let Some(next) = next.filter(|next| *next < grid.align(need.deadline)) {
        plan.push(next, 0);
    }
    plan.close(end, finish)
}

/// The plan of a job that cannot make it; `widest` is what it gets once everything is free.
fn late(timeline: &Timeline, grid: &Grid, need: &Need<'_>, from: Time, widest: u32) -> Reservation {
    let n_gpus = timeline.n_gpus() as i32;
    let mut plan = Reservation::none(from);
    let mut left = need.work;
    for (begin, end, free) in timeline.window(from, need.deadline) {
        let level = need.speeds.within(free.min(n_gpus));
        plan.push(begin, level.map_or(0, |l| l.0));
        left -= (end - begin).as_secs_f64() * level.map_or(0.0, |l| l.1);
    }
    let after = grid.align(need.deadline).max(from);
    for stretch in timeline.stretches(after) {
        let Some(to) = stretch.to else {
            plan.push(stretch.from, widest);
            let finish = grid.finish_on_clock(stretch.from, left / need.speeds.rate(widest));
            return plan.close(grid.align(finish), finish);
        };
        let level = need.speeds.within(stretch.free);
        plan.push(stretch.from, level.map_or(0, |l| l.0));
        let Some((_, rate)) = level else { continue };
        let done = (to - stretch.from).as_secs_f64() * rate;
        if done >= left {
            let finish = grid.finish_on_clock(stretch.from, left / rate);
            return plan.close(grid.align(finish), finish);
        }
        left -= done;
    }
    plan.close(after, after)
}

/// How long the GPUs of a trial are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    UpToDeadline,
    WhileHeld,
}

/// A trial: `gpus` until the timeline changes, then the least share again. Plans and reserves.
pub(super) fn scaled(
    timeline: &mut Timeline,
    grid: &Grid,
    need: &Need<'_>,
    now: Time,
    gpus: u32,
    charge: Charge,
) -> Reservation {
    let rate = need.speeds.rate(gpus);
    let deadline_slot = grid.align(need.deadline);
    let change = timeline.next_change(now).unwrap_or(deadline_slot);
    let finish = grid.finish_on_clock(now, need.work / rate);
    let end = grid.align(finish);
    if change >= end && need.deadline >= finish {
        let plan = Reservation::flat(now, gpus, end, finish);
        timeline.reserve(&plan);
        return plan;
    }
    let credited = if change == deadline_slot { need.deadline } else { change };
    let left = need.work - (credited - now).as_secs_f64() * rate;
    let charged = match charge {
        Charge::UpToDeadline if deadline_slot > now => change.min(deadline_slot),
        _ => change,
    };
    timeline.reserve(&Reservation::flat(now, gpus, charged, charged));
    let rest = fill_from(timeline, grid, &Need { work: left, ..*need }, change, gpus);
    if change <= now {
        return rest;
    }
    let mut plan = Reservation::flat(now, gpus, change, change);
    for (from, gpus) in rest.steps() {
        plan.push(*from, *gpus);
    }
    plan.close(rest.end(), rest.finish())
}

/// As soon and as wide as possible. Plans and reserves; says the share at once and when the job is done.
pub(super) fn earliest(timeline: &mut Timeline, grid: &Grid, need: &Need<'_>, now: Time) -> (u32, Time) {
    let plan = timeline.earliest(need, grid, now);
    timeline.reserve(&plan);
    (plan.first_share(), plan.finish())
}

/// The same, but where its end falls into a slot whose number of free GPUs another plan changes, that number is set to
/// what it was before.
pub(super) fn earliest_overwriting(
    timeline: &mut Timeline,
    grid: &Grid,
    need: &Need<'_>,
    now: Time,
) -> (u32, Time) {
    let plan = timeline.earliest(need, grid, now);
    let last = last_change_before(timeline, plan.finish());
    if last >= timeline.horizon() {
        timeline.set_free(timeline.horizon(), None, timeline.n_gpus() as i32);
    }
    let free = timeline.free_at(last);
    let slot = grid.align(plan.finish());
    let is_taken = plan.finish() != slot && timeline.next_change(Time(slot.0 - 1)) == Some(slot);
    let after = timeline.next_change(slot);
    timeline.reserve(&plan);
    if is_taken {
        timeline.set_free(slot, after, free);
    }
    (plan.first_share(), plan.finish())
}

fn last_change_before(timeline: &Timeline, time: Time) -> Time {
    let after = timeline.steps().partition_point(|s| s.from < time);
    timeline.steps()[after.saturating_sub(1)].from
}
