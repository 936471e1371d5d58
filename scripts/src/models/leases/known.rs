//! The plan that is known before a term is solved: what was planned at the last boundary, and behind it the newcomers as
//! they were packed when they were promised their deadlines. Promises were given because it exists.

use rota_solvers::chronus_leases::{LeasePlan, LeaseProblem, LeaseRow, Shelf, pack};

use super::book::LeaseBook;
use super::term::Rows;

impl LeaseBook {
    /// The plan that all jobs were promised, for the rows of a term; `None` if it does not hold any more.
    pub(super) fn known_plan(&self, rows: &Rows, problem: &LeaseProblem) -> Option<LeasePlan> {
        let n_leases = problem.n_leases();
        let mut known =
            LeasePlan { chosen: vec![false; rows.rows.len()], leases: vec![Vec::new(); rows.rows.len()] };
        let mut shelf = Shelf::new(problem.capacity.clone());
        let mut unplanned = Vec::new();
        for (j, (job, level)) in rows.owners.iter().enumerate() {
            let promise = self.promises.get(job)?;
            if promise.level != *level {
                continue;
            }
            known.chosen[j] = true;
            match &promise.plan {
                None => unplanned.push(j),
                Some(plan) => {
                    known.leases[j] = latest(plan, rows.rows[j].need);
                    shelf.take(&known.leases[j], rows.rows[j].gpus);
                }
            }
        }
        let newcomers: Vec<LeaseRow> =
            unplanned.iter().map(|&j| LeaseRow { level: 0, ..rows.rows[j] }).collect();
        for (j, leases) in unplanned.into_iter().zip(pack(&newcomers, shelf).ok()?) {
            known.leases[j] = leases;
        }
        let chosen = known.leases.iter_mut().zip(&known.chosen).filter(|(_, chosen)| **chosen);
        chosen.for_each(|(leases, _)| leases.resize(n_leases, false));
        Some(known)
    }
}

/// A plan without its earliest leases when there are more than are needed.
fn latest(plan: &[bool], need: u32) -> Vec<bool> {
    let mut n_left = need;
    let mut kept: Vec<bool> = plan
        .iter()
        .rev()
        .map(|runs| {
            let keeps = *runs && n_left > 0;
            n_left -= u32::from(keeps);
            keeps
        })
        .collect();
    kept.reverse();
    kept
}
