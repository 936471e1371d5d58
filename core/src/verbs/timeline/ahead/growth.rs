//! Who grows: free GPUs are handed out one level at a time, each to the job for which the next level is worth most.
//!
//! What a level is worth is the caller's to say, and is asked for many jobs at once: first for the step that each would
//! take first, then, when a job has taken that one, for the second step of all, and so on. Few jobs climb far, so most
//! steps are never asked about.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

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

/// Jobs that grow.
#[derive(Clone, Debug)]
pub struct Growth<'l> {
    ladders: Vec<Ladder<'l>>,
    /// Index of the first level above what each has.
    first: Vec<usize>,
}

/// One more level for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    worth: f64,
    deadline: Time,
    index: usize,
    n_taken: usize,
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
    /// Jobs that may grow; the order breaks ties.
    pub fn new(ladders: Vec<Ladder<'l>>) -> Self {
        let first = ladders.iter().map(|l| l.levels.partition_point(|level| level.0 <= l.gpus)).collect();
        Growth { ladders, first }
    }

    /// GPUs of a job after so many steps; what it has left at the top.
    fn after(&self, index: usize, n_steps: usize) -> u32 {
        let Ladder { levels, gpus, .. } = self.ladders[index];
        let end = (self.first[index] + n_steps).min(levels.len());
        if end == self.first[index] { gpus } else { levels[end - 1].0 }
    }

    /// Hands out GPUs and says how many each job has in the end. `worth` is given, for each job, its GPUs before and after a
    /// step (the same where there is none), and says what the step is worth, in the same order.
    pub fn run<E>(
        self,
        limits: Limits,
        mut worth: impl FnMut(&[u32], &[u32]) -> Result<Vec<f64>, E>,
    ) -> Result<Vec<u32>, E> {
        let mut free = limits.take;
        let mut held: Vec<u32> = self.ladders.iter().map(|ladder| ladder.gpus).collect();
        let mut worths: Vec<Vec<f64>> = Vec::new();
        let mut offers = BinaryHeap::new();
        // Free GPUs only become fewer: what does not fit now never will.
        let step = |index: usize, n_taken: usize| self.after(index, n_taken + 1) - self.after(index, n_taken);
        let mut open: Vec<(usize, usize)> = (0..self.ladders.len()).map(|index| (index, 0)).collect();
        loop {
            for (index, n_taken) in open.drain(..) {
                if !(1..=free).contains(&step(index, n_taken)) {
                    continue;
                }
                if worths.len() == n_taken {
                    let at =
                        |n_steps| (0..held.len()).map(|index| self.after(index, n_steps)).collect::<Vec<_>>();
                    worths.push(worth(&at(n_taken), &at(n_taken + 1))?);
                }
                let (worth, deadline) = (worths[n_taken][index], self.ladders[index].deadline);
                offers.push(Offer { worth, deadline, index, n_taken });
            }
            let Some(offer) = offers.pop() else { return Ok(held) };
            if free == 0 || limits.stop_below.is_some_and(|least| offer.worth < least) {
                return Ok(held);
            }
            let gpus = step(offer.index, offer.n_taken);
            if gpus <= free {
                free -= gpus;
                held[offer.index] += gpus;
                open.push((offer.index, offer.n_taken + 1));
            }
        }
    }
}

impl Ahead {
    /// GPUs that are free now and not yet handed out.
    pub fn free_now(&self) -> u32 {
        let grown: u32 = self.planned.iter().map(|planned| planned.gpus - planned.plan.first_share()).sum();
        let free_now = self.timeline.free_at(self.timeline.begin());
        u32::try_from(free_now).unwrap_or(0).saturating_sub(grown)
    }

    /// Everybody planned, ready to grow, in the order of planning.
    pub fn ladders(&self) -> Vec<Ladder<'_>> {
        self.planned.iter().map(Planned::ladder).collect()
    }

    /// Hands out GPUs by a rule that needs nothing but the plans.
    pub fn grow(&mut self, limits: Limits, worth: impl Fn(&Planned, u32, u32) -> f64) {
        let of_all = |at: &[u32], next: &[u32]| {
            let steps = self.planned.iter().zip(at.iter().zip(next));
            Ok::<_, Infallible>(steps.map(|(planned, (at, next))| worth(planned, *at, *next)).collect())
        };
        let Ok(gpus) = Growth::new(self.ladders()).run(limits, of_all);
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
        let levels = if self.later_gpus().is_some() { self.speeds.levels() } else { &[] };
        Ladder { levels, gpus: self.gpus, deadline: self.deadline }
    }

    /// GPU time that more GPUs now save, per GPU-second; negative where they cost more. Doing work now that was planned
    /// for later saves what it would have cost there; a job that keeps the GPUs it holds saves its restart.
    pub fn gpu_time_saved(&self, at: u32, next: u32) -> f64 {
        let gain = (self.speeds.rate(next) - self.speeds.rate(at)) / f64::from(next.saturating_sub(at));
        let later = self.later_gpus().unwrap_or(0);
        let saving = gain * f64::from(later) / self.speeds.rate(later) - 1.0;
        saving + if next <= self.held { self.change_cost } else { 0.0 }
    }

    /// Seconds of run time that more GPUs save, for each GPU; infinite for the first.
    pub fn time_saved(&self, at: u32, next: u32) -> f64 {
        let seconds = |gpus: u32| self.work / self.speeds.rate(gpus);
        (seconds(at) - seconds(next)) / f64::from(next.saturating_sub(at))
    }
}
