//! Which jobs run, by GPUs alone: those whose GPUs fit together, and those of them that stay where they are.

use smallvec::SmallVec;

use super::{Counts, Fill, Quotas};
use crate::allocation::{Slice, WHOLE_GPU};
use crate::ids::GpuTypeId;
use crate::room::Room;
use crate::snapshot::Snapshot;
use crate::table::JobPhase;

impl Fill<'_> {
    /// The jobs whose GPUs fit together, chosen in order; one that does not fit is skipped. Quotas apply, and
    /// a job that may not be stopped yet is chosen before all others.
    pub fn select(&self, order: &[u32], counts: &Counts) -> Vec<u32> {
        let mut selected = Vec::with_capacity(order.len().min(self.room.free_gpus() as usize));
        let mut pool = GpuPool::new(self.snapshot, self.room);
        let protects = self.snapshot.may_protect();
        if protects {
            let is_protected = |row: &&u32| self.snapshot.is_protected(**row as usize);
            selected.extend(
                order
                    .iter()
                    .filter(is_protected)
                    .filter(|row| pool.take(**row as usize, self.gpus_of(**row as usize, counts))),
            );
        }
        for &row in order {
            if pool.is_empty() {
                break;
            }
            if protects && self.snapshot.is_protected(row as usize) {
                continue;
            }
            if pool.take(row as usize, self.gpus_of(row as usize, counts)) {
                selected.push(row);
            }
        }
        selected
    }

    #[inline]
    pub(super) fn gpus_of(&self, row: usize, counts: &Counts) -> u32 {
        match counts {
            Counts::Asked => self.snapshot.jobs.gpus()[row],
            Counts::PerRow(counts) => counts.get(row).copied().unwrap_or(0),
        }
    }

    /// Sets aside the GPUs of selected jobs that run with the count they are to have; returns which, by row. Goes
    /// through the rows in memory order, because the order makes no difference here.
    pub(super) fn set_aside(&mut self, selected: &[u32], counts: &Counts) -> Vec<bool> {
        let mut kept = vec![false; self.snapshot.jobs.len()];
        for &row in selected {
            kept[row as usize] = self.snapshot.jobs.phase(row as usize) == JobPhase::Running;
        }
        for (row, is_kept) in kept.iter_mut().enumerate().filter(|(_, is_kept)| **is_kept) {
            *is_kept = self.take_own_gpus(row, self.gpus_of(row, counts));
        }
        kept
    }

    /// Takes the GPUs that a job runs on for it again, if it is to have as many and all are free.
    pub(super) fn take_own_gpus(&mut self, row: usize, gpus: u32) -> bool {
        let jobs = &self.snapshot.jobs;
        if jobs.phase(row) != JobPhase::Running {
            return false;
        }
        let held = jobs.allocation(row);
        let is_whole = |s: &Slice| s.share == WHOLE_GPU || s.is_beside();
        let is_free = |s: &Slice| is_whole(s) && s.gpus.is_within(self.room.free_on(s.node).0);
        let can_stay = held.n_gpus() == gpus && held.slices.iter().all(is_free);
        if can_stay {
            for slice in &held.slices {
                self.room.take_gpus(slice.node, slice.gpus);
            }
        }
        can_stay
    }

    pub(super) fn give_own_gpus(&mut self, row: usize) {
        for slice in &self.snapshot.jobs.allocation(row).slices {
            self.room.give_gpus(slice.node, slice.gpus);
        }
    }
}

/// GPUs left while jobs are chosen by count alone.
struct GpuPool<'a> {
    snapshot: &'a Snapshot,
    left: u32,
    by_type: SmallVec<[u32; 4]>,
    quotas: Quotas<'a>,
}

impl<'a> GpuPool<'a> {
    fn new(snapshot: &'a Snapshot, room: &Room) -> Self {
        let types = snapshot.cluster.gpu_types().len();
        GpuPool {
            snapshot,
            left: room.free_gpus(),
            by_type: (0..types).map(|t| room.free_gpus_of(GpuTypeId::from(t))).collect(),
            quotas: Quotas::new(snapshot),
        }
    }

    fn is_empty(&self) -> bool {
        self.left == 0
    }

    #[inline]
    fn take(&mut self, row: usize, gpus: u32) -> bool {
        if gpus == 0 || gpus > self.left || !self.quotas.allows(row, gpus) {
            return false;
        }
        if self.by_type.len() > 1 && !self.take_type(row, gpus) {
            return false;
        }
        self.quotas.take(row, gpus);
        self.left -= gpus;
        true
    }

    /// A gang stays on one type: its own, that of the GPUs it holds, or the first with enough.
    fn take_type(&mut self, row: usize, gpus: u32) -> bool {
        let jobs = &self.snapshot.jobs;
        let held = jobs.allocation(row).slices.first().map(|s| self.snapshot.cluster.gpu_type_of(s.node));
        let bound = jobs.spec(row).gpu_type.or(held);
        let index = match bound {
            Some(gpu_type) => Some(gpu_type.index()).filter(|t| self.by_type[*t] >= gpus),
            None => self.by_type.iter().position(|left| *left >= gpus),
        };
        if let Some(index) = index {
            self.by_type[index] -= gpus;
        }
        index.is_some()
    }
}
