//! Gavel's models (OSDI'20): which part of the time each job runs on each type of GPU.
//!
//! ```text
//!  x[r,t] in [0, 1]   the part of the time that row r runs on type t; a row is a job, or two that share GPUs
//!  sum_r gpus_r x[r,t] <= capacity_t            each type
//!  sum over the rows of i and all t of x <= 1   each job i
//!  speed_i(x) = sum of rate[r,i,t] x[r,t]       work of job i in a second
//! ```
//! The goals differ: the largest smallest speed (`max_min`), the largest sum (`max_sum`), speeds that are given
//! (`meets`), the smallest worst finish-time ratio and the shortest makespan (`bisect`), the max-min of the max-min and so
//! on (`fill`), the largest product (`product`). The optimum is rarely unique in x; its value is.

mod bisect;
mod fill;
mod product;

pub use bisect::{FinishTimes, Makespan};

use crate::error::FormulationError;
use crate::model::{Model, Sense, Variable};
use crate::solution::{Limits, SolveStatus, Solver, Start};

/// Speeds are met if they are but for this part.
const ENOUGH: f64 = 1e-9;

/// Jobs that share GPUs of several types in time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeShares {
    /// GPUs of each type.
    pub capacity: Vec<f64>,
    /// How many jobs there are.
    pub n_jobs: usize,
    /// Who can run, alone or with another.
    pub rows: Vec<TimeRow>,
}

/// A job, or two that share the same GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeRow {
    /// GPUs that it takes while it runs.
    pub gpus: f64,
    /// Who runs.
    pub members: Vec<TimeMember>,
}

/// A job in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeMember {
    /// Which job.
    pub job: usize,
    /// Its work in a second on each type.
    pub rates: Vec<f64>,
}

/// An answer: the objective, and the part of the time of each row on each type.
#[derive(Clone, Debug, PartialEq)]
pub struct TimePlan {
    /// What was asked to be largest or smallest.
    pub objective: f64,
    /// Row by row, type by type; from 0 to 1.
    pub parts: Vec<Vec<f64>>,
}

/// A model under construction: the constraints that every goal has.
struct Base {
    model: Model,
    /// Row by row, type by type; none where nobody in the row does anything.
    parts: Vec<Vec<Option<Variable>>>,
    /// For each job, what adds up to its speed.
    speed: Vec<Vec<(Variable, f64)>>,
}

impl TimeShares {
    /// The largest smallest `factors[i] * speed_i`. Jobs whose factor is 0 do not count.
    pub fn max_min(
        &self,
        factors: &[f64],
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<TimePlan, FormulationError> {
        self.check_length("factors", factors.len())?;
        let mut base = self.base(Sense::Maximize)?;
        let level = base.model.continuous("level", f64::NEG_INFINITY, f64::INFINITY)?;
        base.model.set_cost(level, 1.0)?;
        for (job, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor > 0.0) {
            base.speed_row(&format!("job_{job}"), job, *factor, 0.0, &[(level, -1.0)])?;
        }
        base.solve(solver, limits)
    }

    /// The largest sum of all speeds, each divided by the price of the type; `least` are speeds that must be reached.
    /// Nothing if they cannot be.
    pub fn max_sum(
        &self,
        prices: &[f64],
        least: &[f64],
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<Option<TimePlan>, FormulationError> {
        self.check_length("least speeds", least.len())?;
        let mut base = self.base(Sense::Maximize)?;
        for (row, parts) in self.rows.iter().zip(&base.parts) {
            for (t, part) in parts.iter().enumerate() {
                let rate: f64 = row.members.iter().map(|member| member.rates[t]).sum();
                if let Some(part) = part {
                    base.model.set_cost(*part, rate / prices[t])?;
                }
            }
        }
        base.require(least)?;
        base.solve_if_feasible(solver, limits)
    }

    /// Any plan in which every job has at least the given speed.
    pub fn meets(
        &self,
        least: &[f64],
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<Option<TimePlan>, FormulationError> {
        self.check_length("least speeds", least.len())?;
        // A job's parts add up to one at most. A solver would stumble over needs far beyond that.
        let is_beyond = |(least, most): (&f64, f64)| *least > most * (1.0 + ENOUGH);
        if least.iter().zip(self.fastest()).any(is_beyond) {
            return Ok(None);
        }
        // The largest part of all needs that can be met is always a solvable question; whether all of them can, at the very
        // edge, is one that a solver answers by its tolerances.
        let mut base = self.base(Sense::Maximize)?;
        let met = base.model.continuous("met", 0.0, 2.0)?;
        base.model.set_cost(met, 1.0)?;
        for (job, least) in least.iter().enumerate().filter(|(_, least)| **least > 0.0) {
            base.speed_row(&format!("least_{job}"), job, 1.0 / least, 0.0, &[(met, -1.0)])?;
        }
        let plan = base.solve(solver, limits)?;
        Ok((plan.objective >= 1.0 - ENOUGH).then_some(plan))
    }

    /// Each job's speed on the type and in the row in which it is fastest.
    fn fastest(&self) -> Vec<f64> {
        let mut fastest = vec![0.0; self.n_jobs];
        for member in self.rows.iter().flat_map(|row| &row.members) {
            fastest[member.job] = member.rates.iter().copied().fold(fastest[member.job], f64::max);
        }
        fastest
    }

    /// Without the speeds of rows of two on types where these are no faster together than in turns: their jobs alone do the same
    /// with less, so no goal is missed by it, and most pairs are gone.
    #[must_use]
    pub fn without_slow_pairs(mut self) -> Self {
        let mut alone = vec![vec![0.0; self.capacity.len()]; self.n_jobs];
        for row in self.rows.iter().filter(|row| row.members.len() == 1) {
            alone[row.members[0].job].clone_from(&row.members[0].rates);
        }
        for row in self.rows.iter_mut().filter(|row| row.members.len() > 1) {
            for t in 0..self.capacity.len() {
                let part = |member: &TimeMember| match (member.rates[t], alone[member.job][t]) {
                    (rate, alone) if rate > 0.0 => rate / alone,
                    _ => 0.0,
                };
                if row.members.iter().map(part).sum::<f64>() <= 1.0 {
                    row.members.iter_mut().for_each(|member| member.rates[t] = 0.0);
                }
            }
        }
        self
    }

    /// Each job's speed in a plan.
    #[must_use]
    pub fn speeds(&self, parts: &[Vec<f64>]) -> Vec<f64> {
        let mut speeds = vec![0.0; self.n_jobs];
        for (row, parts) in self.rows.iter().zip(parts) {
            for member in &row.members {
                speeds[member.job] +=
                    member.rates.iter().zip(parts).map(|(rate, part)| rate * part).sum::<f64>();
            }
        }
        speeds
    }

    fn base(&self, sense: Sense) -> Result<Base, FormulationError> {
        self.check()?;
        let mut model = Model::new(sense);
        let mut parts = Vec::with_capacity(self.rows.len());
        for (r, row) in self.rows.iter().enumerate() {
            let mut parts_of = Vec::with_capacity(self.capacity.len());
            for t in 0..self.capacity.len() {
                let runs = row.members.iter().any(|member| member.rates[t] > 0.0);
                parts_of.push(match runs {
                    true => Some(model.continuous(&format!("x_{r}_{t}"), 0.0, f64::INFINITY)?),
                    false => None,
                });
            }
            parts.push(parts_of);
        }
        for (t, capacity) in self.capacity.iter().enumerate() {
            let terms = self.rows.iter().zip(&parts);
            let terms =
                terms.filter_map(|(row, parts): (_, &Vec<Option<Variable>>)| Some((parts[t]?, row.gpus)));
            model.row(&format!("gpus_{t}"), f64::NEG_INFINITY, *capacity, terms)?;
        }
        let mut speed = vec![Vec::new(); self.n_jobs];
        let mut time = vec![Vec::new(); self.n_jobs];
        for (row, parts) in self.rows.iter().zip(&parts) {
            for member in &row.members {
                let rated = parts.iter().zip(&member.rates).filter(|(_, rate)| **rate != 0.0);
                speed[member.job].extend(rated.filter_map(|(part, rate)| Some(((*part)?, *rate))));
                time[member.job].extend(parts.iter().flatten().map(|part| (*part, 1.0)));
            }
        }
        for (job, terms) in time.into_iter().enumerate() {
            model.row(&format!("time_{job}"), f64::NEG_INFINITY, 1.0, terms)?;
        }
        Ok(Base { model, parts, speed })
    }

    fn check(&self) -> Result<(), FormulationError> {
        let number = |location: String, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(FormulationError::BadInput { location, value, expected: "a number of at least 0" }),
        };
        for (t, capacity) in self.capacity.iter().enumerate() {
            number(format!("capacity of type {t}"), *capacity)?;
        }
        for (r, row) in self.rows.iter().enumerate() {
            number(format!("GPUs of row {r}"), row.gpus)?;
            for member in &row.members {
                if member.job >= self.n_jobs {
                    let what = format!("jobs, for row {r}");
                    return Err(FormulationError::Shape {
                        what,
                        found: self.n_jobs,
                        expected: member.job + 1,
                    });
                }
                if member.rates.len() != self.capacity.len() {
                    let (what, found) = (format!("rates of row {r}"), member.rates.len());
                    return Err(FormulationError::Shape { what, found, expected: self.capacity.len() });
                }
                member.rates.iter().try_for_each(|rate| number(format!("rate of row {r}"), *rate))?;
            }
        }
        Ok(())
    }

    fn check_length(&self, what: &str, found: usize) -> Result<(), FormulationError> {
        match found == self.n_jobs {
            true => Ok(()),
            false => Err(FormulationError::Shape { what: what.into(), found, expected: self.n_jobs }),
        }
    }
}

impl Base {
    /// `factor * speed_job + others >= least`.
    fn speed_row(
        &mut self,
        name: &str,
        job: usize,
        factor: f64,
        least: f64,
        others: &[(Variable, f64)],
    ) -> Result<(), FormulationError> {
        let terms = self.speed[job].iter().map(|(part, rate)| (*part, rate * factor));
        let terms: Vec<_> = terms.chain(others.iter().copied()).collect();
        self.model.row(name, least, f64::INFINITY, terms)?;
        Ok(())
    }

    /// A least speed for each job, in parts of it, so that tolerances mean the same for every job.
    fn require(&mut self, least: &[f64]) -> Result<(), FormulationError> {
        for (job, least) in least.iter().enumerate().filter(|(_, least)| **least > 0.0) {
            self.speed_row(&format!("least_{job}"), job, 1.0 / least, 1.0, &[])?;
        }
        Ok(())
    }

    fn solve(self, solver: &mut dyn Solver, limits: &Limits) -> Result<TimePlan, FormulationError> {
        let found = self.solve_if_feasible(solver, limits)?;
        found.ok_or_else(|| FormulationError::NoValues { status: SolveStatus::Infeasible.to_string() })
    }

    fn solve_if_feasible(
        &self,
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<Option<TimePlan>, FormulationError> {
        let solution = solver.solve(&self.model, limits, Start::Cold);
        if solution.status == SolveStatus::Infeasible {
            return Ok(None);
        }
        let none = || FormulationError::NoValues { status: solution.status.to_string() };
        let objective = solution.objective.ok_or_else(none)?;
        let value = |variable: Variable| solution.value(variable);
        let part = |variable: &Option<Variable>| variable.and_then(value).unwrap_or(0.0).clamp(0.0, 1.0);
        let parts = self.parts.iter().map(|row| row.iter().map(part).collect()).collect();
        Ok(Some(TimePlan { objective, parts }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Highs;

    /// Two jobs and two types; the first gains three times as much from the fast one.
    pub(super) fn two() -> TimeShares {
        let row = |job, rates: [f64; 2]| TimeRow {
            gpus: 1.0,
            members: vec![TimeMember { job, rates: rates.into() }],
        };
        TimeShares { capacity: vec![1.0, 1.0], n_jobs: 2, rows: vec![row(0, [3.0, 1.0]), row(1, [2.0, 2.0])] }
    }

    #[test]
    fn each_job_gets_the_type_it_gains_most_from() {
        let plan = two().max_sum(&[1.0, 1.0], &[0.0, 0.0], &mut Highs, &Limits::default()).expect("solved");
        let plan = plan.expect("feasible");
        assert!((plan.objective - 5.0).abs() < 1e-9);
        assert_eq!(plan.parts, [[1.0, 0.0], [0.0, 1.0]]);
        assert_eq!(two().speeds(&plan.parts), [3.0, 2.0]);
    }

    #[test]
    fn the_smallest_speed_is_as_large_as_it_can_be() {
        // Both at 2 would leave a third of the fast type to nobody; the first is at most 3, the second at most 2.
        let plan = two().max_min(&[1.0, 1.0], &mut Highs, &Limits::default()).expect("solved");
        assert!((plan.objective - 2.0).abs() < 1e-9, "{plan:?}");
    }

    #[test]
    fn speeds_that_cannot_be_met_are_said_to_be() {
        let meets =
            |least: [f64; 2]| two().meets(&least, &mut Highs, &Limits::default()).expect("solved").is_some();
        assert!(meets([3.0, 2.0]) && meets([0.0, 0.0]));
        assert!(!meets([3.0, 2.1]) && !meets([3.1, 0.0]));
    }

    #[test]
    fn two_that_share_a_gpu_take_it_once() {
        let mut shares = two();
        shares.capacity = vec![1.0, 0.0];
        let together = [(0, 2.0), (1, 1.5)].map(|(job, rate)| TimeMember { job, rates: vec![rate, 0.0] });
        shares.rows.push(TimeRow { gpus: 1.0, members: together.into() });
        let sum = |shares: &TimeShares| {
            let plan = shares.max_sum(&[1.0, 1.0], &[0.0, 0.0], &mut Highs, &Limits::default());
            plan.expect("solved").expect("feasible").objective
        };
        assert!((sum(&shares) - 3.5).abs() < 1e-9, "3 alone, 3.5 together");
        assert!((sum(&shares.clone().without_slow_pairs()) - 3.5).abs() < 1e-9, "worth it");
        shares.rows[2].members[1].rates[0] = 0.6;
        let pruned = shares.without_slow_pairs();
        assert_eq!(
            pruned.rows[2].members[0].rates,
            [0.0, 0.0],
            "two thirds and a third: no better than in turns"
        );
    }

    #[test]
    fn numbers_that_make_no_problem_are_named() {
        let mut shares = two();
        shares.rows[1].members[0].rates[0] = f64::NAN;
        let error = shares.max_min(&[1.0, 1.0], &mut Highs, &Limits::default()).expect_err("not a number");
        assert_eq!(error.to_string(), "rate of row 1: NaN is not a number of at least 0");
        let error = two().max_min(&[1.0], &mut Highs, &Limits::default()).expect_err("too few");
        assert_eq!(error.to_string(), "factors: 1 given, 2 needed");
    }
}
