//! What tenants may still be given while a policy chooses: the quotas of the guards, counted as the guard counts them.
//!
//! A policy that chooses with this gives the GPUs that a tenant may not have to others; the guard, which comes after the
//! policy, could only leave them idle.

use std::collections::BTreeMap;

use crate::ids::TenantId;
use crate::snapshot::Snapshot;

/// GPUs left of each quota. Jobs that may not be stopped are counted from the start, with what they hold; no quota stops
/// them.
pub struct Quotas<'a> {
    snapshot: &'a Snapshot,
    left: BTreeMap<TenantId, u32>,
}

impl<'a> Quotas<'a> {
    /// All quotas, without what protected jobs hold.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut left = snapshot.guards.quota_gpus.clone();
        if !left.is_empty() && snapshot.may_protect() {
            for row in (0..snapshot.jobs.len()).filter(|row| snapshot.is_protected(*row)) {
                if let Some(quota) = left.get_mut(&snapshot.jobs.spec(row).tenant) {
                    *quota = quota.saturating_sub(snapshot.jobs.allocation(row).n_gpus());
                }
            }
        }
        Quotas { snapshot, left }
    }

    /// Whether no tenant has a quota.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether a job's tenant may have so many more GPUs.
    pub fn allows(&self, row: usize, gpus: u32) -> bool {
        self.is_empty()
            || self.left.get(&self.snapshot.jobs.spec(row).tenant).is_none_or(|left| *left >= gpus)
            || self.snapshot.is_protected(row)
    }

    /// Counts GPUs that a job is given, if its tenant may have them; says whether it may.
    #[inline]
    pub fn take(&mut self, row: usize, gpus: u32) -> bool {
        let is_allowed = self.allows(row, gpus);
        if is_allowed && let Some(left) = self.of(row) {
            *left -= gpus;
        }
        is_allowed
    }

    /// Takes back what was counted for a job that is not given it after all.
    #[inline]
    pub fn give(&mut self, row: usize, gpus: u32) {
        if let Some(left) = self.of(row) {
            *left += gpus;
        }
    }

    /// What is left of the quota that a job is counted against while the policy chooses.
    #[inline]
    fn of(&mut self, row: usize) -> Option<&mut u32> {
        match self.left.is_empty() || self.snapshot.is_protected(row) {
            true => None,
            false => self.left.get_mut(&self.snapshot.jobs.spec(row).tenant),
        }
    }
}
