//! The model when every job has its best level: jobs that are alike are one class, and only how many of them run in
//! each lease is left to decide.
//!
//! `0 <= x[c,t] <= count_c`, `sum_t x[c,t] = need_c count_c`: dealt out in turn, lease by lease, every job of a class
//! gets its leases and none twice the same, so that nothing is lost against a variable for each job.

use std::collections::BTreeMap;

use super::{LeasePlan, LeaseProblem};
use crate::error::FormulationError;
use crate::model::{Model, Sense, Variable};
use crate::solution::Solution;

/// The model of the classes, and the way back.
pub(super) struct Classes {
    pub(super) model: Model,
    tops: Vec<usize>,
    classes: Vec<Class>,
}

/// Jobs that are alike.
struct Class {
    /// Places in `tops`.
    members: Vec<usize>,
    /// How many run, by lease.
    counts: Vec<Variable>,
}

impl Classes {
    /// The model of a problem whose jobs are all held to the rows `tops`.
    pub(super) fn of(problem: &LeaseProblem, tops: Vec<usize>) -> Result<Self, FormulationError> {
        let mut alike: BTreeMap<(u32, u32, i64), Vec<usize>> = BTreeMap::new();
        for (position, &j) in tops.iter().enumerate() {
            let row = &problem.rows[j];
            alike.entry((row.gpus, row.need, row.horizon)).or_default().push(position);
        }
        let mut model = Model::new(Sense::Maximize);
        let mut classes = Vec::with_capacity(alike.len());
        for (c, ((gpus, need, horizon), members)) in alike.into_iter().enumerate() {
            let count = members.len() as f64;
            let variable = |t| model.integer(&format!("x_{c}_{t}"), 0.0, count);
            let counts: Vec<Variable> =
                (0..usize::try_from(horizon).unwrap_or(0)).map(variable).collect::<Result<_, _>>()?;
            if let Some(&first) = counts.first() {
                model.set_cost(first, problem.sigma() * f64::from(gpus) / problem.largest_capacity())?;
            }
            let total = f64::from(need) * count;
            model.row(
                &format!("need_{c}"),
                total,
                total,
                counts.iter().map(|&x| (x, 1.0)).collect::<Vec<_>>(),
            )?;
            classes.push(Class { members, counts });
        }
        for (t, &capacity) in problem.capacity.iter().enumerate().take(problem.n_leases()) {
            let gpus = |class: &Class| f64::from(problem.rows[tops[class.members[0]]].gpus);
            let runs = classes.iter().filter_map(|class| class.counts.get(t).map(|&x| (x, gpus(class))));
            let terms: Vec<(Variable, f64)> = runs.collect();
            model.row(&format!("capacity_{t}"), f64::NEG_INFINITY, capacity as f64, terms)?;
        }
        Ok(Classes { model, tops, classes })
    }

    /// Values for a plan that holds all jobs to their best rows.
    pub(super) fn encode(&self, plan: &LeasePlan) -> Vec<f64> {
        let mut values = vec![0.0; self.model.n_variables()];
        for class in &self.classes {
            for (t, variable) in class.counts.iter().enumerate() {
                let runs = |position: &&usize| plan.leases[self.tops[**position]].get(t) == Some(&true);
                values[variable.index()] = class.members.iter().filter(runs).count() as f64;
            }
        }
        values
    }

    /// The plan a solution says, its leases dealt out in turn.
    pub(super) fn decode(&self, problem: &LeaseProblem, solution: &Solution) -> LeasePlan {
        let mut leases = vec![vec![false; problem.n_leases()]; self.tops.len()];
        for class in &self.classes {
            let mut turn = class.members.iter().cycle();
            for (t, variable) in class.counts.iter().enumerate() {
                let n_runs = solution.value(*variable).unwrap_or(0.0).round() as usize;
                for &position in turn.by_ref().take(n_runs) {
                    leases[position][t] = true;
                }
            }
        }
        problem.plan_at(&self.tops, leases)
    }
}
