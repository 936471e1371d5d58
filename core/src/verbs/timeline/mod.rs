//! Free GPUs over future time: what deadline policies plan on.
//!
//! A [`Timeline`] is a step function from time to free GPUs. Plans for single jobs ([`Reservation`]s) are made
//! against it and then reserved, so that the next job sees what is left. Here live the function and its
//! arithmetic; the ways to plan a job are in `share` (the least share that meets a deadline, ElasticFlow) and
//! `earliest` (as soon and as wide as possible, EDF), why a job does not fit is in `shortfall`, and plans for all jobs
//! of an instant are in `ahead`. Which job is planned first, and where GPUs are, is decided elsewhere.

mod ahead;
mod earliest;
mod grid;
mod reservation;
mod share;
mod shortfall;
mod speeds;

pub use ahead::{
    Ahead, Course, Growth, GrowthStep, Judgement, Ladder, Limits, Part, PieceError, PlanOrder, Planned,
    Refusal, ShareNeeded, SpeedTable, Way,
};
pub use grid::Grid;
pub use reservation::Reservation;
pub use share::Need;
pub use shortfall::Shortfall;
pub use speeds::{Speeds, SpeedsError};

use crate::time::Time;

/// From some time on, so many GPUs are free. Negative where more was promised than there is, as after a loss of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The first moment of the step; it lasts until the next one begins.
    pub from: Time,
    /// Free GPUs; negative where too much was promised.
    pub free: i32,
}

/// Free GPUs as a step function over future time.
///
/// Invariant: never empty, ascending in time, and neighbouring steps differ, so that equal functions are equal
/// values. The last step holds for ever; as every reservation ends, all GPUs are free there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    steps: Vec<Step>,
    n_gpus: u32,
}

/// A stretch of time over which as many GPUs are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Beginning, inclusive.
    pub from: Time,
    /// Until when; `None` lasts for ever.
    pub to: Option<Time>,
    /// Free GPUs; negative where too much was promised.
    pub free: i32,
}

impl Timeline {
    /// Everything free from `now` on.
    pub fn new(now: Time, n_gpus: u32) -> Self {
        Timeline { steps: vec![Step { from: now, free: n_gpus as i32 }], n_gpus }
    }

    /// Forgets all reservations.
    pub fn reset(&mut self, now: Time) {
        self.steps.clear();
        self.steps.push(Step { from: now, free: self.n_gpus as i32 });
    }

    /// Takes over the reservations of another timeline, without allocating where there is room.
    pub fn copy_from(&mut self, other: &Timeline) {
        self.steps.clone_from(&other.steps);
        self.n_gpus = other.n_gpus;
    }

    /// GPUs in all.
    pub fn n_gpus(&self) -> u32 {
        self.n_gpus
    }

    /// When it begins.
    pub fn begin(&self) -> Time {
        self.steps[0].from
    }

    /// The function, step by step.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// From here on everything is free.
    pub fn horizon(&self) -> Time {
        self.steps[self.steps.len() - 1].from
    }

    /// Free GPUs at a time; before the beginning, those at the beginning.
    pub fn free_at(&self, time: Time) -> i32 {
        self.steps[self.index_at(time)].free
    }

    /// The fewest free GPUs anywhere in `[from, to)`.
    pub fn least_free(&self, from: Time, to: Time) -> i32 {
        let first = self.index_at(from);
        let later = self.steps[first + 1..].iter().take_while(|s| s.from < to);
        later.map(|s| s.free).fold(self.steps[first].free, i32::min)
    }

    /// The first time after `time` at which the number of free GPUs changes.
    pub fn next_change(&self, time: Time) -> Option<Time> {
        let after = self.steps.partition_point(|s| s.from <= time);
        self.steps.get(after).map(|s| s.from)
    }

    /// Takes what a plan holds.
    pub fn reserve(&mut self, plan: &Reservation) {
        self.change(plan, -1);
    }

    /// Gives back what a plan held.
    pub fn release(&mut self, plan: &Reservation) {
        self.change(plan, 1);
    }

    /// For [`OverwriteTimeline`](crate::artifact::OverwriteTimeline).
    pub(crate) fn overwrite_free(&mut self, from: Time, to: Option<Time>, free: i32) {
        let from = from.max(self.begin());
        if to.is_some_and(|to| to <= from) {
            return;
        }
        let first = self.cut(from);
        let after = to.map_or(self.steps.len(), |to| self.cut(to));
        self.steps[first].free = free;
        self.steps.drain(first + 1..after);
        if first + 1 < self.steps.len() {
            self.join(first + 1);
        }
        self.join(first);
    }

    fn change(&mut self, plan: &Reservation, sign: i32) {
        let begin = self.begin();
        let ends = plan.steps().iter().skip(1).map(|step| step.0).chain([plan.end()]);
        for (&(from, gpus), to) in plan.steps().iter().zip(ends) {
            let (from, to) = (from.max(begin), to.min(plan.end()));
            if gpus > 0 && from < to {
                self.add(from, to, sign * gpus as i32);
            }
        }
    }

    /// Adds to the values over `[from, to)`. Neighbours inside go on to differ, so only the ends can need joining.
    fn add(&mut self, from: Time, to: Time, amount: i32) {
        let first = self.cut(from);
        let after = self.cut(to);
        for step in &mut self.steps[first..after] {
            step.free += amount;
        }
        self.join(after);
        self.join(first);
    }

    /// The step that begins at `time`, made if there is none; not before the beginning.
    fn cut(&mut self, time: Time) -> usize {
        let at = self.index_at(time);
        if self.steps[at].from == time {
            return at;
        }
        self.steps.insert(at + 1, Step { from: time, free: self.steps[at].free });
        at + 1
    }

    /// Makes one step of this and the one before, if they are alike.
    fn join(&mut self, at: usize) {
        if at > 0 && self.steps[at].free == self.steps[at - 1].free {
            self.steps.remove(at);
        }
    }

    fn index_at(&self, time: Time) -> usize {
        self.steps.partition_point(|s| s.from <= time).saturating_sub(1)
    }

    /// The stretches that overlap `[from, to)`, cut to it, ascending; can be walked from both ends.
    pub fn window(&self, from: Time, to: Time) -> impl DoubleEndedIterator<Item = (Time, Time, i32)> + '_ {
        let from = from.max(self.begin());
        let first = self.index_at(from);
        let after = self.steps.partition_point(|s| s.from < to).max(first);
        (first..after).map(move |index| {
            let step = self.steps[index];
            let next = self.steps.get(index + 1).map_or(to, |s| s.from.min(to));
            (step.from.max(from), next, step.free)
        })
    }

    /// All stretches from `from` on; on the last one everything is free.
    pub fn stretches(&self, from: Time) -> impl Iterator<Item = Stretch> + '_ {
        let first = self.index_at(from);
        self.steps[first..].iter().enumerate().map(move |(i, step)| {
            let to = self.steps.get(first + i + 1).map(|s| s.from);
            let free = if to.is_none() { self.n_gpus as i32 } else { step.free };
            Stretch { from: step.from.max(from), to, free }
        })
    }

    /// Panics when the invariant of the type is broken.
    pub fn assert_sane(&self) {
        assert!(!self.steps.is_empty(), "a timeline without a step");
        for pair in self.steps.windows(2) {
            assert!(pair[0].from < pair[1].from && pair[0].free != pair[1].free, "{pair:?} are no two steps");
        }
    }
}

#[cfg(test)]
mod tests;
