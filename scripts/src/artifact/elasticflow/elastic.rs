//! `ef-accessctrl` and `ef`: least shares in deadline order, spare GPUs on top, everything placed anew each round.

use rota_core::time::{Span, Time};
use rota_core::timeline::{Grid, Timeline};

use super::deadlines::{Payers, State};
use super::events::Event;
use super::job::Run;
use super::{ArtifactError, Case, Defect, plans, scale};

/// Which jobs are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// All jobs (`ef`).
    None,
    /// Jobs that are in time without making others late.
    Deadlines,
}

/// Runs to the end.
pub(super) fn run(case: Case, admission: Admission) -> Result<Run, ArtifactError> {
    let mut timeline = Timeline::new(Time::ZERO, case.machines.n_gpus);
    let mut state = State::new(case);
    loop {
        state.progress();
        let event = state.events.take(state.now).unwrap_or_default();
        end_jobs(&mut state, &event, admission);
        for &id in state.runnable.iter().chain(&event.starts) {
            let job = &mut state.jobs[id as usize];
            job.old_end = Some(job.end);
        }
        match admission {
            Admission::None => enter(&mut state, &mut timeline, &event.starts),
            Admission::Deadlines => admit(&mut state, &mut timeline, &event.starts),
        }
        apply_plans(&mut state);
        start_pending(&mut state, admission);
        scale::use_spare_gpus(&mut state, &mut timeline);
        let next_change = place_all(&mut state, admission);
        state.close_round();
        if admission == Admission::Deadlines
            && let Some(change) = next_change
            && state.events.first().is_none_or(|first| change < first)
        {
            state.events.wake(change);
        }
        if state.events.is_empty() {
            break;
        }
        state.charge(if admission == Admission::None { Payers::Running } else { Payers::Runnable });
        if !state.advance() {
            break;
        }
    }
    Ok(state.close())
}

/// A job without GPUs does not end: it is planned anew and gets another end event.
fn end_jobs(state: &mut State, event: &Event, admission: Admission) {
    for id in state.ended(event, |id| state.shelves.holds(id)) {
        state.shelves.release(id);
        let job = &state.jobs[id as usize];
        let judged = match admission {
            Admission::None => job.end,
            Admission::Deadlines => job.real_end.unwrap_or(job.end),
        };
        let is_late = state.is_late(id, judged);
        state.finish(id, is_late);
    }
}

/// All arrivals of an event together, or one after another.
fn admit(state: &mut State, timeline: &mut Timeline, starts: &[u32]) {
    if starts.is_empty() {
        return enter(state, timeline, starts);
    }
    let n_together = if state.has(Defect::JointAdmission) { starts.len() } else { 1 };
    for group in starts.chunks(n_together) {
        admit_group(state, timeline, group);
    }
}

/// They enter if no job is late with them, or only jobs that would be late without them too.
fn admit_group(state: &mut State, timeline: &mut Timeline, group: &[u32]) {
    let mut late_anyway = Vec::new();
    if !state.has(Defect::LateJobBlocks) {
        let mut without = state.runnable.clone();
        late_anyway = plan_all(state, timeline, &mut without);
    }
    let mut all = state.runnable.clone();
    all.extend(group);
    let late = plan_all(state, timeline, &mut all);
    if late.iter().all(|id| late_anyway.contains(id)) {
        state.take_in(group);
        state.runnable = all;
        return;
    }
    State::by_deadline(&state.jobs, &mut state.runnable);
    for &id in group {
        if state.jobs[id as usize].is_best_effort {
            state.take_in(&[id]);
            state.runnable.push(id);
        } else {
            state.accounts.decline(id);
        }
    }
    enter(state, timeline, &[]);
}

/// All jobs enter.
fn enter(state: &mut State, timeline: &mut Timeline, starts: &[u32]) {
    let mut all = state.runnable.clone();
    all.extend(starts);
    state.take_in(starts);
    plan_all(state, timeline, &mut all);
    state.runnable = all;
}

/// Releases all jobs and plans them in deadline order; returns those that are late.
fn plan_all(state: &mut State, timeline: &mut Timeline, list: &mut [u32]) -> Vec<u32> {
    timeline.reset(state.now);
    State::by_deadline(&state.jobs, list);
    let mut put_off = Vec::new();
    for &id in list.iter() {
        state.shelves.release(id);
        let is_in_time = aim(state, timeline, id);
        if is_in_time || state.has(Defect::LateJobsFirst) {
            plan_one(state, timeline, id);
        } else {
            put_off.push(id);
        }
    }
    for &id in &put_off {
        plan_one(state, timeline, id);
    }
    let is_late = |id: &u32| {
        let job = &state.jobs[*id as usize];
        let by = if job.is_admitted { job.deadline } else { state.target(*id) };
        job.plan.finish() > by
    };
    list.iter().copied().filter(is_late).collect()
}

/// Plans a job; returns whether it can be in time given what is planned already, where that counts.
fn aim(state: &mut State, timeline: &Timeline, id: u32) -> bool {
    let (now, grid, early) = (state.now, grid(state), state.target(id));
    if state.has(Defect::LateJobsFirst) && state.has(Defect::PlansWithoutCosts) {
        return true;
    }
    let job = state.job(id);
    for target in [early, job.deadline] {
        job.target = target;
        if timeline.least_share(&job.need(), &grid, now).is_ok() {
            return true;
        }
    }
    false
}

fn plan_one(state: &mut State, timeline: &mut Timeline, id: u32) {
    let (now, grid) = (state.now, grid(state));
    let job = state.job(id);
    job.plan = plans::fill(timeline, &grid, &job.need(), now);
    job.end = job.plan.end();
    job.real_end = Some(job.plan.finish());
}

pub(super) fn grid(state: &State) -> Grid {
    Grid::even(state.now, state.slot, Span::from_secs(1))
}

fn apply_plans(state: &mut State) {
    for index in 0..state.runnable.len() {
        let id = state.runnable[index];
        let job = state.job(id);
        job.gpus = job.plan.first_share();
        state.move_end(id);
        let job = state.job(id);
        job.old_end = Some(job.end);
    }
}

fn start_pending(state: &mut State, admission: Admission) {
    let now = state.now;
    let mut starting = Vec::new();
    for &id in &state.pending {
        match state.jobs[id as usize].plan.start().filter(|start| *start > now) {
            None => starting.push(id),
            Some(start) if admission == Admission::None => state.events.wake(start),
            Some(_) => {}
        }
    }
    for id in starting {
        state.start(id);
        let end = state.jobs[id as usize].end;
        state.events.end(id, end);
    }
}

/// Places jobs that fill nodes in list order, then the smaller ones by size; says when a plan changes next.
fn place_all(state: &mut State, admission: Admission) -> Option<Time> {
    let now = state.now;
    if admission == Admission::Deadlines {
        let jobs = &state.jobs;
        state.runnable.sort_by_key(|id| std::cmp::Reverse(jobs[*id as usize].gpus));
    }
    let placed = if admission == Admission::None { state.running.clone() } else { state.runnable.clone() };
    let mut next_change: Option<Time> = None;
    for &id in &placed {
        if let Some(change) = state.jobs[id as usize].plan.next_change(now) {
            next_change = Some(next_change.map_or(change, |next| next.min(change)));
            if admission == Admission::None {
                state.events.wake(change);
            }
        }
        if state.jobs[id as usize].gpus >= state.machines.gpus_per_node {
            state.place(id);
        }
    }
    let mut small: Vec<u32> = placed;
    small.retain(|id| (1..state.machines.gpus_per_node).contains(&state.jobs[*id as usize].gpus));
    small.sort_by_key(|id| std::cmp::Reverse(state.jobs[*id as usize].gpus));
    for id in small {
        state.place(id);
    }
    next_change
}
