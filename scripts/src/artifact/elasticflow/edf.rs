//! `edf` and `edf-accessctrl`: every job as wide as possible, in deadline order.

use std::cmp::Reverse;

use rota_core::time::{Span, Time};
use rota_core::timeline::{Grid, Timeline};

use super::deadlines::{Payers, State};
use super::events::Event;
use super::job::{Job, Run};
use super::{ArtifactError, Case, Defect, plans};

/// What the earliest plans say of each job of a list: GPUs now and its end, by job.
struct Draft {
    shares: Vec<(u32, Time)>,
    late: Vec<u32>,
}

/// Plans a list in deadline order on an empty cluster.
fn draft(state: &State, timeline: &mut Timeline, list: &mut [u32]) -> Draft {
    let grid = Grid::even(state.now, state.slot, Span::from_secs(1));
    timeline.reset(state.now);
    State::by_deadline(&state.jobs, list);
    let earliest =
        if state.has(Defect::EdfFreeCount) { plans::earliest_overwriting } else { plans::earliest };
    let mut draft = Draft { shares: vec![(0, Time::ZERO); state.jobs.len()], late: Vec::new() };
    for &id in list.iter() {
        let job = &state.jobs[id as usize];
        let (gpus, end) = earliest(timeline, &grid, &job.need(), state.now);
        // A rest of work below the clock's precision ends now by the plan: an event at a time that is being handled.
        let end = if state.has(Defect::PlannedEnd) { end } else { end.max(state.now + Span::from_secs(1)) };
        let by = if job.is_admitted { job.deadline } else { state.target(id) };
        if end > by {
            draft.late.push(id);
        }
        draft.shares[id as usize] = (gpus, end);
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

/// `edf`: all jobs enter, and starting may cost nothing.
pub(super) fn run(case: Case) -> Result<Run, ArtifactError> {
    let mut timeline = Timeline::new(Time::ZERO, case.machines.n_gpus);
    let has_stale_ends = case.has(Defect::StaleEnd);
    let payers = if case.has(Defect::StartsFree) { Payers::None } else { Payers::Running };
    let mut state = State::new(case);
    while let Some(time) = state.events.first() {
        state.progress();
        let event = state.events.get(time).cloned().unwrap_or_default();
        end_jobs(&mut state, &event, has_stale_ends);
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
        state.take_in(&event.starts);
        state.runnable.extend(&event.starts);
        apply_to_all(&mut state, &draft);
        state.close_round();
        state.events.take(time);
        if state.events.is_empty() {
            break;
        }
        state.charge(payers);
        if !state.advance() {
            break;
        }
    }
    Ok(state.close())
}

/// Ends whose time has come; `stopped_too` ends jobs without GPUs as well when their end event fires.
fn end_jobs(state: &mut State, event: &Event, stopped_too: bool) {
    let has_gpus = |id: u32| state.jobs[id as usize].gpus > 0;
    let mut ended = state.ended(event, |id| stopped_too || has_gpus(id));
    if stopped_too {
        let stopped = |id: &u32| !has_gpus(*id) && !ended.contains(id) && state.runnable.contains(id);
        let stopped: Vec<u32> = event.ends.iter().copied().filter(stopped).collect();
        ended.extend(stopped);
    }
    for id in ended {
        state.shelves.release(id);
        let is_late = state.is_late(id, state.jobs[id as usize].end);
        state.finish(id, is_late);
    }
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
pub(super) fn run_with_admission(case: Case) -> Result<Run, ArtifactError> {
    let mut timeline = Timeline::new(Time::ZERO, case.machines.n_gpus);
    let has_stale_ends = case.has(Defect::StaleEnd);
    let mut state = State::new(case);
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
        end_jobs(&mut state, &event, has_stale_ends);
        let mut is_any_new = false;
        for &id in &event.starts {
            is_any_new |= try_arrival(&mut state, &mut timeline, id);
        }
        if is_any_new {
            place_holders(&mut state);
        } else {
            replan(&mut state, &mut timeline);
        }
        state.close_round();
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
    let late_anyway = if state.has(Defect::LateJobBlocks) {
        Vec::new()
    } else {
        draft(state, timeline, &mut state.runnable.clone()).late
    };
    let draft = draft(state, timeline, &mut list);
    if !draft.late.iter().all(|id| late_anyway.contains(id)) {
        state.accounts.decline(arrival);
        return false;
    }
    state.take_in(&[arrival]);
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
            if state.jobs[id as usize].is_running && !state.has(Defect::StaleEnd) {
                state.job(id).end = end;
                state.move_end(id);
            }
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
