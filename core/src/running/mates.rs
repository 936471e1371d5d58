//! Jobs that have the same GPUs at the same time, as the world sees them: who is whose mate.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::allocation::Allocation;
use crate::ids::{JobId, NodeId};

/// The first node of a gang and its GPUs there: mates have the same GPUs everywhere, so this tells them apart from others.
type Place = (NodeId, u64);

/// Every running job that may have a mate, and where.
#[derive(Debug, Default)]
pub(super) struct Mates {
    at: BTreeMap<Place, SmallVec<[JobId; 2]>>,
    held: BTreeMap<JobId, Allocation>,
}

impl Mates {
    /// The other job on a job's GPUs.
    pub(super) fn of(&self, job: JobId) -> Option<JobId> {
        let there = self.at.get(&place(self.held.get(&job)?)?)?;
        there.iter().copied().find(|other| *other != job)
    }

    /// What a job holds that may have a mate.
    pub(super) fn held(&self, job: JobId) -> Option<&Allocation> {
        self.held.get(&job)
    }

    /// A job has these GPUs from now on; returns its mate. Nothing happens if no other job may have them.
    pub(super) fn join(&mut self, job: JobId, allocation: &Allocation) -> Option<JobId> {
        let place = place(allocation).filter(|_| allocation.is_beside())?;
        self.at.entry(place).or_default().push(job);
        self.held.insert(job, allocation.clone());
        self.of(job)
    }

    /// A job no longer has its GPUs; returns the mate that stays.
    pub(super) fn leave(&mut self, job: JobId) -> Option<JobId> {
        let mate = self.of(job);
        let place = place(&self.held.remove(&job)?)?;
        if let Some(there) = self.at.get_mut(&place) {
            there.retain(|other| *other != job);
            if there.is_empty() {
                self.at.remove(&place);
            }
        }
        mate
    }
}

fn place(allocation: &Allocation) -> Option<Place> {
    allocation.slices.first().map(|slice| (slice.node, slice.gpus.0))
}
