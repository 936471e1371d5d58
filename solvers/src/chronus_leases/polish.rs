//! Plans made better without a solve: leases are moved into the first one where it shall be full, and out of it where it
//! shall be empty. What was feasible stays so, and every job keeps its level.

use std::cmp::Reverse;

use super::{LeaseGoal, LeasePlan, LeaseProblem};

impl LeaseProblem {
    /// Moves leases of a feasible plan as the goal has it, until it is as good as `bound` or nothing helps.
    pub(super) fn polish(&self, plan: &mut LeasePlan, bound: f64) {
        match self.goal {
            LeaseGoal::Maximize => self.pull_forward(plan),
            LeaseGoal::Minimize => {
                self.push_back(plan);
                let too_many = (bound - self.objective(plan)) * self.largest_capacity();
                self.push_along_chains(plan, too_many.round() as usize);
            }
            LeaseGoal::Random => (),
        }
    }

    /// Whether a plan keeps to every row of the model.
    pub fn holds(&self, plan: &LeasePlan) -> bool {
        if plan.chosen.len() != self.rows.len() || plan.leases.len() != self.rows.len() {
            return false;
        }
        let runs_enough =
            self.rows.iter().zip(&plan.chosen).zip(&plan.leases).all(|((row, chosen), leases)| {
                let n_runs = leases.iter().filter(|runs| **runs).count();
                let runs_late = leases.iter().skip(row.n_leases()).any(|runs| *runs);
                let expected = if *chosen { row.need as usize } else { 0 };
                let is_whole = !*chosen || leases.len() >= row.n_leases();
                is_whole && n_runs == expected && !runs_late
            });
        let is_one_each = self.jobs().all(|(first, rows)| {
            plan.chosen[first..first + rows.len()].iter().filter(|chosen| **chosen).count() == 1
        });
        runs_enough && is_one_each && self.free(plan).iter().all(|free| *free >= 0)
    }

    /// Fills the first lease with jobs planned later, the widest first and of these the most urgent.
    fn pull_forward(&self, plan: &mut LeasePlan) {
        let mut free = self.free(plan).first().copied().unwrap_or(0);
        let waits =
            |j: &usize| self.rows[*j].need > 0 && plan.chosen[*j] && plan.leases[*j].first() == Some(&false);
        let mut order: Vec<usize> = (0..self.rows.len()).filter(waits).collect();
        order.sort_by_key(|&j| (Reverse(self.rows[j].gpus), self.rows[j].slack(), j));
        for j in order {
            let gpus = i64::from(self.rows[j].gpus);
            let planned = plan.leases[j].iter().position(|runs| *runs).filter(|_| gpus <= free);
            if let Some(lease) = planned {
                plan.leases[j].swap(0, lease);
                free -= gpus;
            }
        }
    }

    /// Empties the first lease of jobs that find room in a later one, the widest first, each as late as it may be.
    fn push_back(&self, plan: &mut LeasePlan) {
        let mut free = self.free(plan);
        let runs_first = |j: &usize| plan.leases[*j].first() == Some(&true) && self.rows[*j].slack() > 0;
        let mut order: Vec<usize> = (0..self.rows.len()).filter(runs_first).collect();
        order.sort_by_key(|&j| (Reverse(self.rows[j].gpus), j));
        for j in order {
            let (row, leases) = (&self.rows[j], &mut plan.leases[j]);
            let gpus = i64::from(row.gpus);
            let later = (1..row.n_leases()).rev().find(|&lease| !leases[lease] && free[lease] >= gpus);
            if let Some(lease) = later {
                leases.swap(0, lease);
                free[lease] -= gpus;
            }
        }
    }

    /// GPUs that a plan leaves, by lease.
    pub(super) fn free(&self, plan: &LeasePlan) -> Vec<i64> {
        let mut free = self.capacity.clone();
        for (row, leases) in self.rows.iter().zip(&plan.leases) {
            let taken = free.iter_mut().zip(leases).filter(|(_, runs)| **runs);
            taken.for_each(|(free, _)| *free -= i64::from(row.gpus));
        }
        free
    }
}
