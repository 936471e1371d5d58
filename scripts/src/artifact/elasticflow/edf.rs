//! `edf` and `edf-accessctrl`: every job as wide as possible, in deadline order.

use std::cmp::Reverse;

use rota_core::time::{Span, Time};
use rota_core::timeline::{Grid, Timeline};

use super::deadlines::{Payers, State};
use super::job::{Job, Run};
use super::{ArtifactError, Machines, plans};

/// What the earliest plans say of each job of a list: GPUs now and its end, by job.
struct Draft {
    shares: Vec<(u32, Time)>,
    are_all_in_time: bool,
}

/// Plans a list in deadline order on an empty cluster.
fn draft(state: &State, timeline: &mut Timeline, list: &mut [u32]) -> Draft {
    let grid = Grid::even(state.now, state.slot, Span::from_secs(1));
    timeline.reset(state.now);
    State::by_deadline(&state.jobs, list);
    let mut draft = Draft { shares: vec![(0, Time::ZERO); state.jobs.len()], are_all_in_time: true };
    for &id in list.iter() {
        let job = &state.jobs[id as usize];
        let share = plans::earliest(timeline, &grid, &job.need(), state.now);
        draft.are_all_in_time &= share.1 <= job.deadline;
        draft.shares[id as usize] = share;
    }
    draft
}

impl Draft {
    fn apply(&self, job: &mut Job, id: u32) {
        let (gpus, end) = self.shares[id as usize];
        job.gpus = gpus;
        job.old_end = Some(job.end);
        job.end = end;
    }
}

/// `edf`: everybody enters, nobody pays for starting.
pub(super) fn run(jobs: Vec<Job>, machines: Machines, slot: Span) -> Result<Run, ArtifactError> {
    let mut timeline = Timeline::new(Time::ZERO, machines.n_gpus);
    let mut state = State::new(jobs, machines, slot);
    while let Some(time) = state.events.first() {
        state.progress();
        let event = state.events.get(time).cloned().unwrap_or_default();
        for &id in &event.ends {
            state.shelves.release(id);
            let is_late = state.jobs[id as usize].end > state.jobs[id as usize].deadline;
            state.finish(id, is_late);
        }
        let draft = if event.starts.is_empty() {
            let mut list = std::mem::take(&mut state.runnable);
            let draft = draft(&state, &mut timeline, &mut list);
            state.runnable = list;
            draft
        } else {
            let mut list = state.runnable.clone();
            list.extend(&event.starts);
            draft(&state, &mut timeline, &mut list)
        };
        state.pending.extend(&event.starts);
        state.runnable.extend(&event.starts);
        apply_to_all(&mut state, &draft);
        state.look_at_ranks();
        state.books.n_rounds += 1;
        state.events.take(time);
        if state.events.is_empty() {
            break;
        }
        state.charge(Payers::Nobody);
        if !state.advance() {
            break;
        }
    }
    Ok(state.close())
}

fn apply_to_all(state: &mut State, draft: &Draft) {
    for index in 0..state.running.len() {
        state.shelves.release(state.running[index]);
    }
    let mut holders = Vec::new();
    for id in state.runnable.clone() {
        draft.apply(state.job(id), id);
        if state.jobs[id as usize].gpus > 0 {
            holders.push(id);
        }
        if state.jobs[id as usize].is_running {
            state.move_end(id);
        } else if state.jobs[id as usize].gpus > 0 {
            state.start(id);
            let end = state.jobs[id as usize].end;
            state.events.end(id, end);
        }
    }
    holders.sort_by_key(|id| Reverse(state.jobs[*id as usize].gpus));
    for id in holders {
        state.place(id);
    }
}

/// `edf-accessctrl`: an arrival enters if every deadline holds with it. Where none did, a job that is left without
/// GPUs keeps its old end event, and is taken for done when it fires.
pub(super) fn run_with_admission(
    jobs: Vec<Job>,
    machines: Machines,
    slot: Span,
) -> Result<Run, ArtifactError> {
    let mut timeline = Timeline::new(Time::ZERO, machines.n_gpus);
    let mut state = State::new(jobs, machines, slot);
    while let Some(time) = state.events.first() {
        state.progress();
        let Some(time) = state.events.first().filter(|first| *first == time).or(state.events.first()) else {
            break;
        };
        for index in 0..state.runnable.len() {
            let id = state.runnable[index];
            state.shelves.release(id);
            let job = state.job(id);
            job.old_end = Some(job.end);
        }
        let event = state.events.get(time).cloned().unwrap_or_default();
        for &id in &event.ends {
            let is_late = state.jobs[id as usize].end > state.jobs[id as usize].deadline;
            state.finish(id, is_late);
        }
        let mut is_any_new = false;
        for &id in &event.starts {
            is_any_new |= try_arrival(&mut state, &mut timeline, id);
        }
        if is_any_new {
            place_holders(&mut state);
        } else {
            replan(&mut state, &mut timeline);
        }
        state.look_at_ranks();
        state.books.n_rounds += 1;
        state.events.take(time);
        if state.events.is_empty() {
            break;
        }
        state.charge(Payers::Running);
        if !state.advance() {
            break;
        }
    }
    Ok(state.close())
}

fn try_arrival(state: &mut State, timeline: &mut Timeline, arrival: u32) -> bool {
    let mut list = state.runnable.clone();
    list.push(arrival);
    let draft = draft(state, timeline, &mut list);
    if !draft.are_all_in_time {
        state.books.decline(arrival);
        return false;
    }
    state.pending.push(arrival);
    state.runnable.push(arrival);
    for index in 0..state.running.len() {
        let id = state.running[index];
        draft.apply(state.job(id), id);
        state.move_end(id);
    }
    let mut starting = Vec::new();
    for index in 0..state.pending.len() {
        let id = state.pending[index];
        draft.apply(state.job(id), id);
        if state.jobs[id as usize].gpus > 0 {
            starting.push(id);
        }
    }
    for id in starting {
        state.start(id);
        let end = state.jobs[id as usize].end;
        state.events.end(id, end);
    }
    true
}

fn place_holders(state: &mut State) {
    for id in state.runnable.clone() {
        if state.jobs[id as usize].gpus > 0 {
            state.place(id);
        }
    }
}

fn replan(state: &mut State, timeline: &mut Timeline) {
    let mut list = std::mem::take(&mut state.runnable);
    let draft = draft(state, timeline, &mut list);
    for &id in &list {
        let (gpus, end) = draft.shares[id as usize];
        state.job(id).gpus = gpus;
        if gpus == 0 {
            continue;
        }
        state.place(id);
        if !state.jobs[id as usize].is_running {
            state.start(id);
            let old = state.jobs[id as usize].end;
            state.events.end(id, old);
        }
        state.job(id).end = end;
        state.move_end(id);
    }
    state.runnable = list;
}
