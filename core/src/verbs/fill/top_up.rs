//! What is left on a node goes to the jobs there that can use it.

use super::{Fill, Granted};
use crate::allocation::Slice;

impl Fill<'_> {
    /// Deals what is left on each node to the jobs there that are below their demand, first in order first.
    pub(super) fn top_up(&mut self, in_order: &[u32]) {
        for &index in in_order {
            if self.is_short(&self.granted[index as usize]) {
                self.raise_by_what_is_free(index);
            }
        }
    }

    /// Raises a job as far as the node with the least to spare allows, each GPU by the same.
    fn raise_by_what_is_free(&mut self, index: u32) {
        let mut level = *self.snapshot.jobs.demand_per_gpu(self.granted[index as usize].row as usize);
        let granted = &mut self.granted[index as usize];
        for slice in &granted.slices {
            let free = self.room.free_on(slice.node).1;
            let most = slice.host.checked_add(&free).unwrap_or(slice.host);
            level = level.min(&most.per(slice.gpus.len()));
        }
        for slice in &mut granted.slices {
            let raised = slice.host.max(&level.times(slice.gpus.len()));
            self.room.take_host(slice.node, &raised.saturating_sub(&slice.host));
            slice.host = raised;
        }
        self.settle(index);
    }

    /// Whether a job has less of anything than it could use.
    pub(super) fn is_short(&self, granted: &Granted) -> bool {
        let demand = self.snapshot.jobs.demand_per_gpu(granted.row as usize);
        granted.slices.iter().any(|s| !demand.times(s.gpus.len()).fits_in(&s.host))
    }

    /// Notes whether a job stays where it is, and with what it has.
    pub(super) fn settle(&mut self, index: u32) {
        let granted = &mut self.granted[index as usize];
        let held = &self.snapshot.jobs.allocation(granted.row as usize).slices;
        let same = |a: &Slice, b: &Slice| (a.node, a.gpus, a.share) == (b.node, b.gpus, b.share);
        granted.is_kept =
            held.len() == granted.slices.len() && held.iter().zip(&granted.slices).all(|(a, b)| same(a, b));
        granted.is_unchanged = *held == granted.slices;
    }
}
