//! From parts of long slots to plans in whole rounds: who runs when inside a slot.
//!
//! A model that deals out parts of slots leaves open when inside the slot they are spent. Here wide parts are laid down
//! first, each in one piece where there is room, like blocks that halve (GPU counts are mostly powers of two, so what wide
//! ones leave, narrow ones can use); what rounding and restarts cost is then mended with whatever is still free. The
//! outcome promises nothing: [`Ahead::follow`] says whether it holds.

use std::ops::Range;

use super::follow::Course;
use super::{Ahead, Planned};
use crate::time::{Span, Time};

/// A slot is cut into at most so many pieces of whole rounds.
const MOST_UNITS: i64 = 64;

/// Time to be spent at a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// In which slot.
    pub slot: usize,
    /// With how many GPUs.
    pub gpus: u32,
    /// For how long.
    pub seconds: f64,
}

impl Ahead {
    /// Courses for jobs from the parts a model gave them, in what the jobs planned here leave free. `slot_ends`
    /// ascend; the answer is in the order of the jobs. Jobs whose parts could not be arranged in time have a course
    /// nevertheless, as far as it goes.
    pub fn arrange(&self, slot_ends: &[Time], jobs: &[Planned], parts: &[Vec<Part>]) -> Vec<Course> {
        let mut board = Board::new(self, slot_ends, jobs);
        let mut pieces: Vec<(usize, Part)> = Vec::new();
        for (job, parts) in parts.iter().enumerate() {
            pieces.extend(parts.iter().map(|part| (job, *part)));
        }
        pieces.sort_by(|(a, x), (b, y)| {
            let wide_first = (x.slot, y.gpus).cmp(&(y.slot, x.gpus));
            wide_first.then(y.seconds.total_cmp(&x.seconds)).then(a.cmp(b))
        });
        for (job, part) in pieces {
            board.lay(job, &part);
        }
        let mut by_deadline: Vec<usize> = (0..jobs.len()).collect();
        by_deadline.sort_by_key(|job| (jobs[*job].deadline, *job));
        by_deadline.iter().for_each(|job| board.give_back(*job));
        by_deadline.iter().for_each(|job| board.mend(*job));
        (0..jobs.len()).map(|job| board.course(job)).collect()
    }
}

/// Whole rounds in a row.
#[derive(Clone, Copy, Debug)]
struct Unit {
    from: Time,
    to: Time,
}

struct Board<'a> {
    ahead: &'a Ahead,
    jobs: &'a [Planned],
    units: Vec<Unit>,
    of_slot: Vec<Range<usize>>,
    free: Vec<u32>,
    /// GPUs by job and unit.
    held: Vec<Vec<u32>>,
}

impl<'a> Board<'a> {
    fn new(ahead: &'a Ahead, slot_ends: &[Time], jobs: &'a [Planned]) -> Self {
        let round = ahead.grid.slot();
        let (mut units, mut of_slot) = (Vec::new(), Vec::new());
        let mut from = ahead.timeline.begin();
        for &end in slot_ends {
            let first = units.len();
            let n_rounds = ((end - from).0 + round.0 - 1) / round.0;
            let width = Span(round.0 * ((n_rounds + MOST_UNITS - 1) / MOST_UNITS).max(1));
            while from < end {
                let to = (from + width).min(end);
                units.push(Unit { from, to });
                from = to;
            }
            of_slot.push(first..units.len());
        }
        let free_in = |unit: &Unit| u32::try_from(ahead.timeline.least_free(unit.from, unit.to)).unwrap_or(0);
        let free = units.iter().map(free_in).collect();
        let held = vec![vec![0; units.len()]; jobs.len()];
        Board { ahead, jobs, units, of_slot, free, held }
    }

    /// Seconds of a unit before a job's deadline.
    fn usable_s(&self, job: usize, unit: usize) -> f64 {
        let Unit { from, to } = self.units[unit];
        (to.min(self.jobs[job].deadline) - from).as_secs_f64().max(0.0)
    }

    fn hold(&mut self, job: usize, unit: usize, gpus: u32) {
        self.free[unit] = self.free[unit] + self.held[job][unit] - gpus;
        self.held[job][unit] = gpus;
    }

    /// Lays a part down in the first gap that is long enough, else wherever there is room.
    fn lay(&mut self, job: usize, part: &Part) {
        let slot = self.of_slot[part.slot].clone();
        let has_room = |unit: &usize| {
            self.free[*unit] >= part.gpus && self.held[job][*unit] == 0 && self.usable_s(job, *unit) > 0.0
        };
        let open: Vec<usize> = slot.filter(has_room).collect();
        let mut chosen: &[usize] = &open;
        for gap in open.chunk_by(|a, b| a + 1 == *b) {
            if gap.iter().map(|unit| self.usable_s(job, *unit)).sum::<f64>() >= part.seconds {
                chosen = gap;
                break;
            }
        }
        let mut left_s = part.seconds;
        for unit in chosen.iter().copied() {
            // less than a thousandth of a round is left over by sums, not by the model
            if left_s <= 1e-3 * self.ahead.grid.slot().as_secs_f64() {
                break;
            }
            left_s -= self.usable_s(job, unit);
            self.hold(job, unit, part.gpus);
        }
    }

    fn course(&self, job: usize) -> Course {
        let mut course: Course = Vec::new();
        for (unit, &gpus) in self.units.iter().zip(&self.held[job]) {
            if course.last().is_none_or(|last| last.1 != gpus) {
                course.push((unit.from, gpus));
            }
        }
        course.extend(self.units.last().map(|unit| (unit.to, 0)));
        course
    }

    /// The end of a job's plan, or the work that it leaves undone.
    fn end_of(&self, job: usize) -> Result<Time, f64> {
        let now = self.ahead.timeline.begin();
        self.jobs[job].run(&self.course(job), &self.ahead.grid, now).map(|plan| plan.end())
    }

    /// Frees what a job holds after its work is done.
    fn give_back(&mut self, job: usize) {
        let Ok(end) = self.end_of(job) else { return };
        for unit in 0..self.units.len() {
            if self.units[unit].from >= end {
                self.hold(job, unit, 0);
            }
        }
    }

    /// Adds GPUs where they are free until the work is done in time: first next to what the job has, which costs no
    /// restart, then anywhere.
    fn mend(&mut self, job: usize) {
        while self.end_of(job).is_err() {
            let Some((unit, gpus)) = self.step_up(job) else { return };
            self.hold(job, unit, gpus);
        }
        self.give_back(job);
    }

    fn step_up(&self, job: usize) -> Option<(usize, u32)> {
        let held = &self.held[job];
        let rate = |gpus: u32| self.jobs[job].speeds.rate(gpus);
        let mut steps = Vec::new();
        for unit in (0..self.units.len()).take_while(|unit| self.usable_s(job, *unit) > 0.0) {
            let room = self.free[unit] + held[unit];
            let faster = self.jobs[job].levels().iter().map(|level| level.0);
            let faster = faster.filter(|gpus| *gpus <= room && rate(*gpus) > rate(held[unit]));
            steps.extend(faster.map(|gpus| (unit, gpus)));
        }
        let is_adjacent = |&(unit, gpus): &(usize, u32)| {
            let before = unit.checked_sub(1).is_some_and(|before| held[before] == gpus);
            before || held.get(unit + 1).is_some_and(|after| *after == gpus)
        };
        steps.iter().copied().find(is_adjacent).or_else(|| steps.first().copied())
    }
}
