//! Which jobs grow: free GPUs are handed out one level at a time, each to the job for which the next level is worth most.
//!
//! The caller says what a step is worth. That does not depend on what other jobs get, so it is asked for all possible steps
//! at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Ahead, Planned};
use crate::time::Time;

/// A job that may grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ladder<'l> {
    /// GPU counts it can use with their speeds, ascending.
    pub levels: &'l [(u32, f64)],
    /// GPUs it has.
    pub gpus: u32,
    /// Of steps worth the same, that of the job with the earlier deadline is taken; then that of the earlier ladder.
    pub deadline: Time,
}

/// How far jobs may grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// GPUs that may be handed out.
    pub take: u32,
    /// A step worth less is not taken; `None` takes any.
    pub stop_below: Option<f64>,
}

/// One more level for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The job's ladder.
    pub index: usize,
    /// GPUs before the step.
    pub at: u32,
    /// GPUs after it.
    pub next: u32,
    /// Iterations per second before the step.
    pub rate: f64,
    /// Iterations per second after it.
    pub next_rate: f64,
}

/// Jobs that grow.
#[derive(Clone, Debug)]
pub struct Growth<'l> {
    ladders: Vec<Ladder<'l>>,
    take: u32,
    /// All steps that could be taken, each ladder's from the bottom.
    steps: Vec<Step>,
    /// Where each ladder's steps begin, and at the end where the last ones end.
    first: Vec<usize>,
}

/// A step that a job would take next.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    worth: f64,
    deadline: Time,
    /// The job's ladder.
    index: usize,
    step: usize,
}

impl Eq for Offer {}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let rest = (Reverse(self.deadline), Reverse(self.index));
        self.worth.total_cmp(&other.worth).then(rest.cmp(&(Reverse(other.deadline), Reverse(other.index))))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<'l> Growth<'l> {
    /// Jobs that may grow by so many GPUs in all; the order breaks ties.
    pub fn new(ladders: Vec<Ladder<'l>>, take: u32) -> Self {
        let mut steps = Vec::with_capacity(ladders.len());
        let mut first = Vec::with_capacity(ladders.len() + 1);
        for (index, &Ladder { levels, gpus, .. }) in ladders.iter().enumerate() {
            first.push(steps.len());
            let above = levels.partition_point(|level| level.0 <= gpus);
            let known = above.checked_sub(1).map(|below| levels[below]).filter(|level| level.0 == gpus);
            let (mut at, mut rate) = known.unwrap_or((gpus, 0.0));
            for &(next, next_rate) in levels[above..].iter().take_while(|level| level.0 - gpus <= take) {
                steps.push(Step { index, at, next, rate, next_rate });
                (at, rate) = (next, next_rate);
            }
        }
        first.push(steps.len());
        Growth { ladders, take, steps, first }
    }

    /// All steps that could be taken.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Hands out GPUs and says how many each job has in the end. `worths` has a number for each of [`steps`](Self::steps); a
    /// step worth less than `stop_below` is not taken.
    pub fn run(self, worths: &[f64], stop_below: Option<f64>) -> Vec<u32> {
        let mut free = self.take;
        let mut held: Vec<u32> = self.ladders.iter().map(|ladder| ladder.gpus).collect();
        let offer = |index: usize, step: usize| {
            let is_there = step < self.first[index + 1];
            is_there.then(|| Offer {
                worth: worths[step],
                deadline: self.ladders[index].deadline,
                index,
                step,
            })
        };
        let mut offers: BinaryHeap<Offer> =
            (0..held.len()).filter_map(|index| offer(index, self.first[index])).collect();
        while free > 0
            && let Some(best) = offers.pop()
            && stop_below.is_none_or(|least| best.worth >= least)
        {
            let Step { at, next, .. } = self.steps[best.step];
            if next - at <= free {
                free -= next - at;
                held[best.index] = next;
                offers.extend(offer(best.index, best.step + 1));
            }
        }
        held
    }
}

impl Ahead {
    /// GPUs that are free now and not yet handed out.
    pub fn free_now(&self) -> u32 {
        let grown: u32 = self.planned.iter().map(|planned| planned.gpus - planned.plan.first_share()).sum();
        let free_now = self.timeline.free_at(self.timeline.begin());
        u32::try_from(free_now).unwrap_or(0).saturating_sub(grown)
    }

    /// All planned jobs, ready to grow, in the order of planning.
    pub fn ladders(&self) -> Vec<Ladder<'_>> {
        self.planned.iter().map(Planned::ladder).collect()
    }

    /// Hands out GPUs by a rule that needs nothing but the plans.
    pub fn grow(&mut self, limits: Limits, worth: impl Fn(&Planned, u32, u32) -> f64) {
        let growth = Growth::new(self.ladders(), limits.take);
        let worth = |step: &Step| worth(&self.planned[step.index], step.at, step.next);
        let worths: Vec<f64> = growth.steps().iter().map(worth).collect();
        let gpus = growth.run(&worths, limits.stop_below);
        self.grow_to(&gpus);
    }

    /// Gives planned jobs these numbers of GPUs now, in the order of planning.
    pub fn grow_to(&mut self, gpus: &[u32]) {
        self.planned.iter_mut().zip(gpus).for_each(|(planned, gpus)| planned.gpus = *gpus);
    }
}

impl Planned {
    fn ladder(&self) -> Ladder<'_> {
        // A job that could run nowhere has no level that its work could be done with.
        let levels = if self.later_level().0 > 0 { self.speeds.levels() } else { &[] };
        Ladder { levels, gpus: self.gpus, deadline: self.deadline }
    }

    /// GPU time that more GPUs now save, per GPU-second; negative where they cost more. Doing work now that was planned
    /// for later saves what it would have cost there; a job that keeps the GPUs it holds saves its restart.
    pub fn gpu_time_saved(&self, at: u32, next: u32) -> f64 {
        let gain = (self.speeds.rate(next) - self.speeds.rate(at)) / f64::from(next.saturating_sub(at));
        let (later, rate) = self.later_level();
        let saving = gain * f64::from(later) / rate - 1.0;
        saving + if next <= self.held { self.change_cost } else { 0.0 }
    }

    /// Seconds of run time that more GPUs save, for each GPU; infinite for the first.
    pub fn time_saved(&self, at: u32, next: u32) -> f64 {
        let seconds = |gpus: u32| self.work / self.speeds.rate(gpus);
        (seconds(at) - seconds(next)) / f64::from(next.saturating_sub(at))
    }
}
