//! `ef-accessctrl` and `ef`: least shares in deadline order, spare GPUs on top, everything placed anew each round.

use rota_core::time::{Span, Time};
use rota_core::timeline::{Grid, Timeline};

use super::deadlines::{Payers, State};
use super::events::Event;
use super::job::{Job, Run};
use super::{ArtifactError, Machines, plans, scale};

/// Who may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Everybody (`ef`).
    None,
    /// All arrivals of an event together, if every deadline holds with them; so one late job keeps everybody out.
    AllOrNothing,
}

/// Runs to the end.
pub(super) fn run(
    jobs: Vec<Job>,
    machines: Machines,
    slot: Span,
    admission: Admission,
) -> Result<Run, ArtifactError> {
    let mut timeline = Timeline::new(Time::ZERO, machines.n_gpus);
    let mut state = State::new(jobs, machines, slot);
    loop {
        state.progress();
        let event = state.events.take(state.now).unwrap_or_default();
        end_jobs(&mut state, &event, admission);
        for &id in state.runnable.iter().chain(&event.starts) {
            let job = &mut state.jobs[id as usize];
            job.old_end = Some(job.end);
        }
        admit(&mut state, &mut timeline, &event, admission);
        apply_plans(&mut state);
        start_pending(&mut state, admission);
        scale::use_spare_gpus(&mut state, &mut timeline);
        let next_change = place_all(&mut state, admission);
        state.look_at_ranks();
        state.books.n_rounds += 1;
        if admission == Admission::AllOrNothing
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
    for &id in &event.ends {
        if !state.shelves.holds(id) {
            continue;
        }
        state.shelves.release(id);
        let job = &state.jobs[id as usize];
        let judged = match admission {
            Admission::None => job.end,
            Admission::AllOrNothing => job.real_end.unwrap_or(job.end),
        };
        let is_late = judged > job.deadline;
        state.finish(id, is_late);
    }
}

fn admit(state: &mut State, timeline: &mut Timeline, event: &Event, admission: Admission) {
    let mut everybody = state.runnable.clone();
    everybody.extend(&event.starts);
    let are_all_in_time = plan_all(state, timeline, &mut everybody);
    if admission == Admission::None || are_all_in_time || event.starts.is_empty() {
        state.pending.extend(&event.starts);
        state.runnable = everybody;
        return;
    }
    State::by_deadline(&state.jobs, &mut state.runnable);
    for &id in &event.starts {
        if state.jobs[id as usize].is_best_effort {
            state.pending.push(id);
            state.runnable.push(id);
        } else {
            state.books.decline(id);
        }
    }
    let mut admitted = std::mem::take(&mut state.runnable);
    plan_all(state, timeline, &mut admitted);
    state.runnable = admitted;
}

/// Releases everybody and plans them in deadline order; says whether all are in time.
fn plan_all(state: &mut State, timeline: &mut Timeline, list: &mut [u32]) -> bool {
    let now = state.now;
    let grid = grid(state);
    timeline.reset(now);
    State::by_deadline(&state.jobs, list);
    let mut are_all_in_time = true;
    for &id in list.iter() {
        state.shelves.release(id);
        let job = &mut state.jobs[id as usize];
        job.plan = plans::fill(timeline, &grid, &job.need(), now);
        job.end = job.plan.end();
        job.real_end = Some(job.plan.finish());
        are_all_in_time &= job.plan.finish() <= job.deadline;
    }
    are_all_in_time
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
    if admission == Admission::AllOrNothing {
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
