//! Future events of the simulated world, earliest first; ties by the order they were put in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::JobId;
use crate::time::Time;

/// Expected ends of jobs. An end that a change of speed made obsolete stays in the heap and is ignored.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<(Time, u64, JobId, u32)>>,
    pushed: u64,
}

impl EventQueue {
    /// Job `job` will end at `time` unless its `version` changes.
    pub fn push(&mut self, time: Time, job: JobId, version: u32) {
        self.pushed += 1;
        self.heap.push(Reverse((time, self.pushed, job, version)));
    }

    /// The earliest end that is still valid according to `is_current`.
    pub fn peek(&mut self, is_current: impl Fn(JobId, u32) -> bool) -> Option<(Time, JobId)> {
        while let Some(Reverse((time, _, job, version))) = self.heap.peek() {
            if is_current(*job, *version) {
                return Some((*time, *job));
            }
            self.heap.pop();
        }
        None
    }

    /// Takes out the earliest entry.
    pub fn pop(&mut self) {
        self.heap.pop();
    }
}
