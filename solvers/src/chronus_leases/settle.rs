//! A lease problem settled the cheap way where that is as good: packed plans whose objective reaches a bound that
//! needs no solver are optimal, and only the others become models, small ones where every job can have its best level.
//!
//! Deadlines are promised by packing, so that packed plans nearly always exist; what is left to decide is who runs in
//! the first lease. All of it counts for 1 at most, so that no job gives a level up for it unless levels are closer.

use super::classes::Classes;
use super::pack::{Backwards, Shelf, greedy, pack_backwards};
use super::{LeaseGoal, LeasePlan, LeaseProblem, LeaseRow};
use crate::error::FormulationError;
use crate::solution::{Limits, SolveStatus, Solver, Start};

/// Objectives closer than this are the same: values are whole numbers, and GPUs of a lease at least 1e-7 of all.
const SAME: f64 = 1e-9;

/// How a problem came to its plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// A packed plan that reaches the bound: optimal, without a solve.
    Proved,
    /// The solver's plan.
    Solved(SolveStatus),
    /// The packed plan, because the solve ended without one.
    FellBack(SolveStatus),
}

/// A plan and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// Which rows run in which leases.
    pub plan: LeasePlan,
    /// Its objective.
    pub objective: f64,
    /// What no plan exceeds.
    pub bound: f64,
    /// How it was found.
    pub how: Settlement,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unsettled {
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] FormulationError),
    /// Somebody must have less than its best level, and the model of all levels has too many rows to be solved.
    #[error("a model of {rows} rows is too large")]
    TooLarge {
        /// Its rows.
        rows: usize,
    },
    /// Neither packing nor the solver found one.
    #[error("no plan: row {row} fits at no level, and the solve ended {status}")]
    NoPlan {
        /// The first row of the job that did not fit.
        row: usize,
        /// How the solve ended.
        status: SolveStatus,
    },
}

/// Settles a problem; `solver` is asked only where no packed plan is proved optimal. A plan that is `known` to hold, such
/// as the one of the lease before, is used where packing finds none or a lesser one. Of the model of all levels no more than
/// `most_rows` are solved.
pub fn settle(
    problem: &LeaseProblem,
    known: &dyn Fn() -> Option<LeasePlan>,
    most_rows: usize,
    solver: &mut dyn Solver,
    limits: &Limits,
) -> Result<Settled, Unsettled> {
    let bound = problem.bound();
    let packed = problem.packed(known, bound);
    if let Some(settled) = packed.as_ref().ok().and_then(|plan| problem.proved(plan, bound)) {
        return Ok(settled);
    }
    let tops = problem.tops().filter(|_| problem.levels_are_apart());
    if let (Ok(plan), Some(tops)) = (&packed, tops)
        && tops.iter().all(|&j| plan.chosen[j])
    {
        let classes = Classes::of(problem, tops)?;
        let start = classes.encode(plan);
        let solution = solver.solve(&classes.model, limits, Start::Values(&start));
        return Ok(problem.settled(
            solution.status.has_values().then(|| classes.decode(problem, &solution)),
            plan,
            solution.status,
        ));
    }
    if problem.rows.len() > most_rows {
        return Err(Unsettled::TooLarge { rows: problem.rows.len() });
    }
    let built = problem.model()?;
    let start = packed.as_ref().ok().and_then(|plan| built.encode(plan));
    let solution = solver.solve(&built.model, limits, start.as_deref().map_or(Start::Cold, Start::Values));
    match (solution.status.has_values().then(|| built.decode(&solution)).transpose()?, packed) {
        (Some(plan), _) => Ok(problem.settled(Some(plan.clone()), &plan, solution.status)),
        (None, Ok(plan)) => Ok(problem.settled(None, &plan, solution.status)),
        (None, Err(row)) => Err(Unsettled::NoPlan { row, status: solution.status }),
    }
}

impl LeaseProblem {
    /// What a plan is worth.
    pub fn objective(&self, plan: &LeasePlan) -> f64 {
        let rows = self.rows.iter().zip(&plan.chosen).zip(&plan.leases).enumerate();
        let (largest, sigma) = (self.largest_capacity(), self.sigma());
        let worth = |(j, ((row, &is_chosen), leases)): (usize, ((&LeaseRow, &bool), &Vec<bool>))| {
            let counts = j == 0 || self.goal != LeaseGoal::Random;
            let value = if is_chosen && counts { row.value } else { 0.0 };
            let runs_first = leases.first() == Some(&true);
            value + if runs_first { sigma * f64::from(row.gpus) / largest } else { 0.0 }
        };
        rows.map(worth).sum()
    }

    fn proved(&self, plan: &LeasePlan, bound: f64) -> Option<Settled> {
        let settled = || {
            let objective = self.objective(plan);
            Settled { plan: plan.clone(), objective, bound, how: Settlement::Proved }
        };
        self.reaches(plan, bound).then(settled)
    }

    fn reaches(&self, plan: &LeasePlan, bound: f64) -> bool {
        self.objective(plan) >= bound - SAME * bound.abs().max(1.0)
    }

    /// The solver's plan, or without one the packed plan.
    fn settled(&self, solved: Option<LeasePlan>, packed: &LeasePlan, status: SolveStatus) -> Settled {
        let is_optimal = status == SolveStatus::Optimal;
        let bound =
            solved.as_ref().filter(|_| is_optimal).map_or_else(|| self.bound(), |plan| self.objective(plan));
        let (plan, how) = match solved {
            Some(plan) => (plan, Settlement::Solved(status)),
            None => (packed.clone(), Settlement::FellBack(status)),
        };
        Settled { objective: self.objective(&plan), bound, plan, how }
    }

    /// The best of what is found without a solve: each job at its best level, packed backwards; what is known already;
    /// and where that is nothing, packed by value.
    fn packed(&self, known: &dyn Fn() -> Option<LeasePlan>, bound: f64) -> Result<LeasePlan, usize> {
        let tops = self.tops();
        let backwards = |who| {
            let tops = tops.as_ref()?;
            let rows: Vec<LeaseRow> = tops.iter().map(|&j| self.rows[j]).collect();
            Some(self.plan_at(tops, pack_backwards(&rows, &self.capacity, who)?))
        };
        let mut best: Option<LeasePlan> = None;
        let ways: [&dyn Fn() -> Option<LeasePlan>; 3] =
            [&|| backwards(Backwards::NeediestFirst), &|| backwards(Backwards::GangsFirst), &|| {
                known().filter(|plan| self.holds(plan))
            }];
        for find in ways {
            let Some(mut plan) = find() else { continue };
            self.polish(&mut plan, bound);
            if best.as_ref().is_none_or(|best| self.objective(&plan) > self.objective(best)) {
                best = Some(plan);
            }
            if best.as_ref().is_some_and(|best| self.reaches(best, bound)) {
                break;
            }
        }
        best.map_or_else(|| greedy(&self.rows, Shelf::new(self.capacity.clone())), Ok)
    }

    /// A plan that holds every job to one row.
    pub(super) fn plan_at(&self, tops: &[usize], leases: Vec<Vec<bool>>) -> LeasePlan {
        let n_leases = self.n_leases();
        let mut plan =
            LeasePlan { chosen: vec![false; self.rows.len()], leases: vec![Vec::new(); self.rows.len()] };
        for (&j, mut leases) in tops.iter().zip(leases) {
            leases.resize(n_leases, false);
            plan.chosen[j] = true;
            plan.leases[j] = leases;
        }
        plan
    }

    /// The best row of each job; `None` if a job has none that is possible.
    pub(super) fn tops(&self) -> Option<Vec<usize>> {
        self.jobs().map(|(first, rows)| top(rows).map(|(position, _)| first + position)).collect()
    }

    /// Whether a lesser level costs every job at least what the whole first lease is worth.
    pub(super) fn levels_are_apart(&self) -> bool {
        let is_apart = |rows: &[LeaseRow]| {
            let most = top(rows).map_or(0.0, |(_, row)| row.value);
            let others = rows.iter().filter(|row| row.slack() >= 0 && row.value != most);
            others.map(|row| most - row.value).all(|distance| distance >= 1.0)
        };
        self.jobs().all(|(_, rows)| is_apart(rows))
    }

    /// Rows of each job, with the position of its first.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (usize, &[LeaseRow])> {
        let mut first = 0;
        self.rows.chunk_by(|_, next| next.level != 0).map(move |rows| {
            let position = first;
            first += rows.len();
            (position, rows)
        })
    }
}

/// The possible row of most value, of equals the one with the farthest horizon, with its position among these.
pub(super) fn top(rows: &[LeaseRow]) -> Option<(usize, &LeaseRow)> {
    let possible = rows.iter().enumerate().filter(|(_, row)| row.slack() >= 0);
    possible
        .max_by(|(i, a), (j, b)| a.value.total_cmp(&b.value).then(a.horizon.cmp(&b.horizon)).then(j.cmp(i)))
}
