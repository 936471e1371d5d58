//! A plan for one job: how many GPUs it holds when, and when it is done.

use smallvec::SmallVec;

use crate::time::{Span, Time};

/// GPUs over time for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    steps: SmallVec<[(Time, u32); 4]>,
    end: Time,
    finish: Time,
}

impl Reservation {
    /// Holds nothing, from `from` on.
    pub fn none(from: Time) -> Self {
        Reservation { steps: SmallVec::from_slice(&[(from, 0)]), end: from, finish: from }
    }

    /// Holds `gpus` over `[from, end)` and is done at `finish`.
    pub fn flat(from: Time, gpus: u32, end: Time, finish: Time) -> Self {
        Reservation { steps: SmallVec::from_slice(&[(from, gpus)]), end, finish }
    }

    /// From `from` on, `gpus` are held. Times must ascend; a step like the last is merged with it.
    pub fn push(&mut self, from: Time, gpus: u32) {
        if self.steps.last().is_some_and(|last| last.0 == from) {
            self.steps.pop();
        }
        debug_assert!(
            self.steps.last().is_none_or(|last| last.0 < from),
            "{from} s is not after {:?}",
            self.steps
        );
        if self.steps.last().is_none_or(|last| last.1 != gpus) {
            self.steps.push((from, gpus));
        }
    }

    /// GPUs are held until `end`; the job is done at `finish`.
    pub fn close(mut self, end: Time, finish: Time) -> Self {
        self.end = end;
        self.finish = finish;
        self
    }

    /// (since when, how many GPUs), ascending; the last until [`end`](Self::end).
    pub fn steps(&self) -> &[(Time, u32)] {
        &self.steps
    }

    /// Until when GPUs are held: the end of a slot.
    pub fn end(&self) -> Time {
        self.end
    }

    /// When the job is done: not after `end`.
    pub fn finish(&self) -> Time {
        self.finish
    }

    /// GPUs held at the beginning.
    pub fn first_share(&self) -> u32 {
        self.steps.first().map_or(0, |s| s.1)
    }

    /// GPUs held at a time.
    pub fn held_at(&self, time: Time) -> u32 {
        let step = self.steps.iter().rev().find(|step| step.0 <= time).filter(|_| time < self.end);
        step.map_or(0, |step| step.1)
    }

    /// When it first holds a GPU.
    pub fn start(&self) -> Option<Time> {
        self.steps.iter().find(|s| s.1 > 0).map(|s| s.0)
    }

    /// The first change after `time`, if there is one before the end.
    pub fn next_change(&self, time: Time) -> Option<Time> {
        self.steps.iter().map(|s| s.0).find(|t| *t > time)
    }

    /// GPUs times time, in GPU-microseconds.
    pub fn gpu_time(&self) -> Span {
        let ends = self.steps[1..].iter().map(|s| s.0).chain([self.end]);
        let held = self.steps.iter().zip(ends).map(|(step, end)| (end - step.0) * i64::from(step.1));
        held.fold(Span::ZERO, |sum, part| sum + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_time_counts_each_step_until_the_next() {
        let mut plan = Reservation::none(Time(10));
        plan.push(Time(10), 2);
        plan.push(Time(20), 2);
        plan.push(Time(30), 0);
        plan.push(Time(40), 4);
        let plan = plan.close(Time(50), Time(45));
        assert_eq!(plan.steps(), [(Time(10), 2), (Time(30), 0), (Time(40), 4)]);
        assert_eq!(plan.gpu_time(), Span(20 * 2 + 10 * 4));
        assert_eq!([5, 10, 29, 30, 49, 50].map(|t| plan.held_at(Time(t))), [0, 2, 2, 0, 4, 0]);
        assert_eq!(
            (plan.first_share(), plan.start(), plan.next_change(Time(30))),
            (2, Some(Time(10)), Some(Time(40)))
        );
    }
}
