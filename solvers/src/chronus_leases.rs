//! Chronus' lease MILP (SoCC'21): which deadline level each job is held to, and in which
//! leases it runs.
//!
//! A row is one job at one deadline level; the rows of a job are adjacent, the first has level 0.
//! ```text
//!  max  sum value_j S_j  +  sigma * sum gpus_j / C * X[j,0]
//!  s.t. sum_{t < h_j} X[j,t] = need_j S_j      each row       sum_j gpus_j X[j,t] <= capacity_t    each lease
//!       sum_{rows of a job} S_j = 1            each job
//! ```
//! Leases at or after the horizon have no variable at all, where the original sums them to zero in a row of
//! their own; a negative horizon counts as 0 (the original's index slips into the row before).

mod bound;
mod chains;
mod classes;
mod pack;
mod polish;
mod settle;

pub use pack::{Backwards, Shelf, greedy, pack, pack_backwards, packs};
pub use settle::{Settled, Settlement, Unsettled, settle};

use std::fmt::Write;

use crate::error::FormulationError;
use crate::model::{Model, Sense, Variable};
use crate::solution::Solution;

/// One job at one deadline level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaseRow {
    /// GPUs, already rounded up the way the caller counts them.
    pub gpus: u32,
    /// Leases still needed.
    pub need: u32,
    /// Whole leases before the deadline; below 0 counts as 0.
    pub horizon: i64,
    /// What meeting this deadline is worth.
    pub value: f64,
    /// The deadline level; 0 begins a new job.
    pub level: u32,
}

/// What is optimised besides the deadlines met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseGoal {
    /// Few GPUs in the first lease: leaves room for jobs that hold no promise.
    Minimize,
    /// Many GPUs in the first lease.
    Maximize,
    /// Any feasible plan (the original's "random": only the first row's value counts).
    Random,
}

/// Rows to plan, and the GPUs there are in each lease.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseProblem {
    /// Jobs at their deadline levels; the rows of a job follow each other.
    pub rows: Vec<LeaseRow>,
    /// GPUs per lease, at least up to the farthest horizon.
    pub capacity: Vec<i64>,
    /// What is best.
    pub goal: LeaseGoal,
}

/// The answer: per row whether it is chosen, and the leases it runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasePlan {
    /// S: whether the row's deadline level is the one held.
    pub chosen: Vec<bool>,
    /// X: per row one flag per lease, up to the farthest horizon; what is left out is not run in.
    pub leases: Vec<Vec<bool>>,
}

/// The model of a [`LeaseProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct LeaseModel {
    /// What a solver is given.
    pub model: Model,
    /// Per row, X for the leases before its horizon.
    leases: Vec<Vec<Variable>>,
    chosen: Vec<Variable>,
    n_leases: usize,
}

impl LeaseProblem {
    /// The farthest horizon: how many leases are planned.
    pub fn n_leases(&self) -> usize {
        self.rows.iter().map(LeaseRow::n_leases).max().unwrap_or(0)
    }

    /// Builds the model.
    pub fn model(&self) -> Result<LeaseModel, FormulationError> {
        let n_leases = self.n_leases();
        if self.capacity.len() < n_leases {
            let what = "leases with a capacity".into();
            return Err(FormulationError::Shape { what, found: self.capacity.len(), expected: n_leases });
        }
        let mut model = Model::new(Sense::Maximize);
        let mut leases = Vec::with_capacity(self.rows.len());
        let mut name = String::new();
        for (j, row) in self.rows.iter().enumerate() {
            let variables: Result<Vec<Variable>, _> = (0..row.n_leases())
                .map(|t| {
                    name.clear();
                    // Writing to a string cannot fail.
                    let _ = write!(name, "x_{j}_{t}");
                    model.binary(&name)
                })
                .collect();
            leases.push(variables?);
        }
        let chosen: Result<Vec<Variable>, _> =
            (0..self.rows.len()).map(|j| model.binary(&format!("s_{j}"))).collect();
        let lease_model = LeaseModel { model, leases, chosen: chosen?, n_leases };
        self.with_rows(self.with_objective(lease_model)?)
    }

    /// What GPUs of the first lease are measured by.
    fn largest_capacity(&self) -> f64 {
        self.capacity.iter().copied().max().unwrap_or(0).max(1) as f64
    }

    /// Whether GPUs of the first lease count for or against a plan.
    fn sigma(&self) -> f64 {
        match self.goal {
            LeaseGoal::Minimize => -1.0,
            LeaseGoal::Maximize => 1.0,
            LeaseGoal::Random => 0.0,
        }
    }

    fn with_objective(&self, mut m: LeaseModel) -> Result<LeaseModel, FormulationError> {
        let (largest, sigma) = (self.largest_capacity(), self.sigma());
        for (j, row) in self.rows.iter().enumerate() {
            if j == 0 || self.goal != LeaseGoal::Random {
                m.model.set_cost(m.chosen[j], row.value)?;
            }
            if let Some(&first) = m.leases[j].first() {
                m.model.set_cost(first, sigma * f64::from(row.gpus) / largest)?;
            }
        }
        Ok(m)
    }

    fn with_rows(&self, mut m: LeaseModel) -> Result<LeaseModel, FormulationError> {
        for (j, row) in self.rows.iter().enumerate() {
            let runs = m.leases[j].iter().map(|&x| (x, 1.0));
            let terms: Vec<_> = runs.chain([(m.chosen[j], -f64::from(row.need))]).collect();
            m.model.row(&format!("need_{j}"), 0.0, 0.0, terms)?;
        }
        for (t, &capacity) in self.capacity.iter().enumerate().take(m.n_leases) {
            let runs = |j: usize| m.leases[j].get(t).map(|&x| (x, f64::from(self.rows[j].gpus)));
            let terms: Vec<_> = (0..self.rows.len()).filter_map(runs).collect();
            m.model.row(&format!("capacity_{t}"), f64::NEG_INFINITY, capacity as f64, terms)?;
        }
        let mut begin = 0;
        while begin < self.rows.len() {
            let n_levels = 1 + self.rows[begin + 1..].iter().take_while(|row| row.level != 0).count();
            let group = m.chosen[begin..begin + n_levels].iter().map(|&s| (s, 1.0));
            let terms: Vec<_> = group.collect();
            m.model.row(&format!("one_{begin}"), 1.0, 1.0, terms)?;
            begin += n_levels;
        }
        Ok(m)
    }
}

impl LeaseRow {
    fn n_leases(&self) -> usize {
        usize::try_from(self.horizon).unwrap_or(0)
    }

    /// Leases it could wait; below 0 it cannot make its deadline.
    pub fn slack(&self) -> i64 {
        self.horizon.saturating_sub(i64::from(self.need))
    }
}

impl LeaseModel {
    /// The plan a solution says.
    pub fn decode(&self, solution: &Solution) -> Result<LeasePlan, FormulationError> {
        if !solution.status.has_values() {
            return Err(FormulationError::NoValues { status: solution.status.to_string() });
        }
        let is_one = |&variable: &Variable| solution.value(variable) == Some(1.0);
        let chosen = self.chosen.iter().map(is_one).collect();
        let padded = |variables: &Vec<Variable>| {
            let mut flags: Vec<bool> = variables.iter().map(is_one).collect();
            flags.resize(self.n_leases, false);
            flags
        };
        Ok(LeasePlan { chosen, leases: self.leases.iter().map(padded).collect() })
    }

    /// Values for a plan: a start, or a recorded answer. `None` if it runs a row at or after its horizon.
    pub fn encode(&self, plan: &LeasePlan) -> Option<Vec<f64>> {
        if plan.chosen.len() != self.chosen.len() || plan.leases.len() != self.leases.len() {
            return None;
        }
        let mut values = vec![0.0; self.model.n_variables()];
        for (variable, &is_chosen) in self.chosen.iter().zip(&plan.chosen) {
            values[variable.index()] = f64::from(u8::from(is_chosen));
        }
        for (variables, flags) in self.leases.iter().zip(&plan.leases) {
            if flags.iter().skip(variables.len()).any(|&runs| runs) {
                return None;
            }
            for (variable, &runs) in variables.iter().zip(flags) {
                values[variable.index()] = f64::from(u8::from(runs));
            }
        }
        Some(values)
    }
}
