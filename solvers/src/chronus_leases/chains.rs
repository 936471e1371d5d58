//! The first lease made emptier along chains: a job of one GPU goes from the first lease to a later one, whose place
//! another one leaves for a lease that has room, over as many leases as it takes.
//!
//! These are augmenting paths: with the gangs where they are, no plan has fewer single GPUs in its first lease when no
//! chain is left. Packing backwards is short of that by a GPU or two where a gang came too late to fit.

use std::collections::VecDeque;

use super::{LeasePlan, LeaseProblem};

impl LeaseProblem {
    /// Empties the first lease by up to `n_gpus` jobs of one GPU.
    pub(super) fn push_along_chains(&self, plan: &mut LeasePlan, n_gpus: usize) {
        for _ in 0..n_gpus {
            let Some(chain) = self.shortest_chain(plan) else { return };
            for Step { row, from, to } in chain {
                plan.leases[row].swap(from, to);
            }
        }
    }

    /// Steps that lead from the first lease to one with room, none of them by the same job: whatever a job could leave
    /// for a lease is reached together, so the shortest chain needs it once.
    fn shortest_chain(&self, plan: &LeasePlan) -> Option<Vec<Step>> {
        let free = self.free(plan);
        let is_single = |j: &usize| plan.chosen[*j] && self.rows[*j].gpus == 1;
        let singles: Vec<usize> = (0..self.rows.len()).filter(is_single).collect();
        let mut open: VecDeque<usize> = (1..self.n_leases()).filter(|&lease| free[lease] > 0).collect();
        let mut is_reached: Vec<bool> = free.iter().map(|free| *free > 0).collect();
        let mut onward: Vec<Option<Step>> = vec![None; free.len()];
        while let Some(to) = open.pop_front() {
            let could_come = |j: &&usize| self.rows[**j].n_leases() > to && !plan.leases[**j][to];
            for &row in singles.iter().filter(could_come) {
                if plan.leases[row][0] {
                    return Some(follow(Step { row, from: 0, to }, &onward));
                }
                for from in (1..self.rows[row].n_leases()).filter(|&from| plan.leases[row][from]) {
                    if !std::mem::replace(&mut is_reached[from], true) {
                        onward[from] = Some(Step { row, from, to });
                        open.push_back(from);
                    }
                }
            }
        }
        None
    }
}

/// A job that leaves one lease for another.
#[derive(Clone, Copy)]
struct Step {
    row: usize,
    from: usize,
    to: usize,
}

fn follow(first: Step, onward: &[Option<Step>]) -> Vec<Step> {
    std::iter::successors(Some(first), |step| onward[step.to]).collect()
}

#[cfg(test)]
mod tests {
    use crate::chronus_leases::{LeaseGoal, LeasePlan, LeaseProblem, LeaseRow};

    #[test]
    fn a_chain_makes_room_where_no_single_move_does() {
        let row = |horizon| LeaseRow { gpus: 1, need: 1, horizon, value: 10.0, level: 0 };
        let rows = vec![row(2), row(3), row(4)];
        let problem = LeaseProblem { rows, capacity: vec![1; 4], goal: LeaseGoal::Minimize };
        // Only the last lease is free, and only the last job may wait for it.
        let at = |lease: usize| (0..4).map(|t| t == lease).collect();
        let mut plan = LeasePlan { chosen: vec![true; 3], leases: vec![at(0), at(1), at(2)] };
        problem.push_along_chains(&mut plan, 5);
        assert_eq!(plan.leases, [at(1), at(2), at(3)]);
        assert!(problem.holds(&plan));
    }
}
