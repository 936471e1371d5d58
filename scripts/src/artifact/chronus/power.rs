//! Nodes off at night: from midnight on, the leases to come give up what no plan needs.

use super::simulator::Simulator;
use super::{Defect, PowerSaving};

/// Units of time in a day, and when in it nodes come back: the original counts in minutes.
const DAY: i64 = 1440;
const MORNING: i64 = 480;

/// Leases that the original looks ahead, however long they are.
const NIGHT_LEASES: i64 = 8;

/// Nodes that always stay.
const FEWEST_NODES: i64 = 10;

impl Simulator<'_> {
    pub(super) fn switch_power(&mut self, now: i64) {
        if now % DAY == 0 {
            self.plan_night();
        }
        if now % DAY == MORNING {
            self.machines.turn_off_first(0);
            self.is_full_power = true;
        }
        if now % self.settings.lease == 0 && !self.is_full_power {
            let per_node = i64::from(self.machines.gpus_per_node);
            let n_off = i64::from(self.machines.n_nodes()) - self.capacity_of(0) / per_node;
            self.machines.turn_off_first(usize::try_from(n_off).unwrap_or(0));
        }
    }

    fn plan_night(&mut self) {
        let per_node = i64::from(self.machines.gpus_per_node);
        let n_nodes = i64::from(self.machines.n_nodes());
        let mut free = vec![n_nodes * per_node; self.n_night_leases()];
        for &job in self.pending.iter().chain(&self.running) {
            self.reserve_night(job, &mut free);
        }
        if free.iter().any(|free| *free <= 0) {
            return;
        }
        let left = |free: i64| (n_nodes - (free / per_node).min(n_nodes - FEWEST_NODES).max(0)) * per_node;
        self.capacity = free.into_iter().map(left).collect();
        self.is_full_power = false;
    }

    fn n_night_leases(&self) -> usize {
        let until_morning = (MORNING + self.settings.lease - 1) / self.settings.lease;
        let n_leases = if self.settings.has(Defect::NightLeases) { NIGHT_LEASES } else { until_morning };
        usize::try_from(n_leases).unwrap_or(0)
    }

    fn reserve_night(&self, job: usize, free: &mut [i64]) {
        let it = &self.jobs[job];
        let gpus = i64::from(it.gpus);
        let n_night = free.len();
        let throughout = |n_leases: usize, free: &mut [i64]| {
            free.iter_mut().take(n_leases).for_each(|free| *free -= gpus);
        };
        match &it.plan {
            None => {
                let horizon = it.horizon(self.settings.lease, self.index);
                throughout(usize::try_from(horizon).unwrap_or(0), free);
            }
            Some(plan) => {
                let n_planned = plan.iter().filter(|runs| **runs).count();
                if self.settings.power == PowerSaving::Conservative && n_planned >= n_night {
                    return throughout(n_night, free);
                }
                let planned = free.iter_mut().zip(plan).filter(|(_, runs)| **runs);
                planned.for_each(|(free, _)| *free -= gpus);
            }
        }
    }
}
