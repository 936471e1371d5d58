//! A lease problem settled the cheap way where that is as good: packed plans whose objective reaches a bound that
//! needs no solver are optimal, and only the others become models, small ones where every job can have its best level.
//!
//! Deadlines are promised by packing, so that packed plans nearly always exist; what is left to decide is who runs in
//! the first lease. All of it counts for 1 at most, so that no job gives a level up for it unless levels are closer.

use std::cmp::Reverse;

use super::classes::Classes;
use super::pack::{Shelf, greedy, pack_backwards};
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
    /// The plan.
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
    /// Neither packing nor the solver found one.
    #[error("no plan: row {row} fits at no level, and the solve ended {status}")]
    NoPlan {
        /// The first row of the job that did not fit.
        row: usize,
        /// How the solve ended.
        status: SolveStatus,
    },
}

/// Settles a problem; `solver` is asked only where no packed plan is proved optimal.
pub fn settle(
    problem: &LeaseProblem,
    solver: &mut dyn Solver,
    limits: &Limits,
) -> Result<Settled, Unsettled> {
    let (bound, packed) = (problem.bound(), problem.packed());
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
    /// Whether every job packs at its best level, so that settling needs no large model.
    pub fn packs_at_best_levels(&self) -> bool {
        let tops = self.tops().filter(|_| self.levels_are_apart());
        let rows = tops.map(|tops| tops.iter().map(|&j| self.rows[j]).collect::<Vec<_>>());
        rows.is_some_and(|rows| pack_backwards(&rows, &self.capacity).is_some())
    }

    /// What a plan is worth.
    pub fn objective(&self, plan: &LeasePlan) -> f64 {
        let rows = self.rows.iter().zip(&plan.chosen).zip(&plan.leases).enumerate();
        let worth = |(j, ((row, &is_chosen), leases)): (usize, ((&LeaseRow, &bool), &Vec<bool>))| {
            let counts = j == 0 || self.goal != LeaseGoal::Random;
            let value = if is_chosen && counts { row.value } else { 0.0 };
            let runs_first = leases.first() == Some(&true);
            value
                + if runs_first { self.sigma() * f64::from(row.gpus) / self.largest_capacity() } else { 0.0 }
        };
        rows.map(worth).sum()
    }

    /// What no plan exceeds, without a solve.
    pub fn bound(&self) -> f64 {
        if self.goal == LeaseGoal::Random {
            return self.rows.first().map_or(0.0, |row| row.value.max(0.0));
        }
        let values: f64 = self.jobs().filter_map(|(_, rows)| top(rows)).map(|(_, row)| row.value).sum();
        match self.goal {
            LeaseGoal::Maximize => values + self.fullest_first_lease() as f64 / self.largest_capacity(),
            _ if self.levels_are_apart() => {
                values - self.emptiest_first_lease() as f64 / self.largest_capacity()
            }
            _ => values,
        }
    }

    fn proved(&self, plan: &LeasePlan, bound: f64) -> Option<Settled> {
        let objective = self.objective(plan);
        let is_optimal = objective >= bound - SAME * bound.abs().max(1.0);
        is_optimal.then(|| Settled { plan: plan.clone(), objective, bound, how: Settlement::Proved })
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

    /// The best of what packing finds. Each job at its best level, backwards; where a full first lease is wanted, that
    /// first; and where not all can have their best level, by value.
    fn packed(&self) -> Result<LeasePlan, usize> {
        let by_value = || greedy(&self.rows, Shelf::new(self.capacity.clone()));
        let Some(tops) = self.tops() else { return by_value() };
        let rows: Vec<LeaseRow> = tops.iter().map(|&j| self.rows[j]).collect();
        let full = (self.goal == LeaseGoal::Maximize).then(|| self.first_lease_full(&rows)).flatten();
        match full.or_else(|| pack_backwards(&rows, &self.capacity)) {
            Some(leases) => Ok(self.plan_at(&tops, leases)),
            None => by_value(),
        }
    }

    /// Fills the first lease, after those that cannot wait with the widest gangs first and of these the most urgent;
    /// then packs what is left into the later leases.
    fn first_lease_full(&self, rows: &[LeaseRow]) -> Option<Vec<Vec<bool>>> {
        let mut left = *self.capacity.first()?;
        let mut order: Vec<usize> = (0..rows.len()).filter(|&j| rows[j].need > 0).collect();
        order.sort_by_key(|&j| (rows[j].slack() > 0, Reverse(rows[j].gpus), rows[j].slack(), j));
        let mut runs_first = vec![false; rows.len()];
        for j in order {
            if i64::from(rows[j].gpus) <= left {
                runs_first[j] = true;
                left -= i64::from(rows[j].gpus);
            }
        }
        let later = |(row, runs_first): (&LeaseRow, &bool)| LeaseRow {
            need: row.need - u32::from(*runs_first),
            horizon: row.horizon - 1,
            ..*row
        };
        let later: Vec<LeaseRow> = rows.iter().zip(&runs_first).map(later).collect();
        let mut leases = pack_backwards(&later, &self.capacity[1..])?;
        leases.iter_mut().zip(runs_first).for_each(|(leases, runs_first)| leases.insert(0, runs_first));
        Some(leases)
    }

    /// A plan that holds every job to one row.
    pub(super) fn plan_at(&self, tops: &[usize], leases: Vec<Vec<bool>>) -> LeasePlan {
        let n_leases = self.n_leases();
        let mut plan = LeasePlan {
            chosen: vec![false; self.rows.len()],
            leases: vec![vec![false; n_leases]; self.rows.len()],
        };
        for (&j, mut leases) in tops.iter().zip(leases) {
            leases.resize(n_leases, false);
            plan.chosen[j] = true;
            plan.leases[j] = leases;
        }
        plan
    }

    /// The best row of each job; `None` if a job has none that is possible.
    fn tops(&self) -> Option<Vec<usize>> {
        self.jobs().map(|(first, rows)| top(rows).map(|(place, _)| first + place)).collect()
    }

    /// Whether a lesser level costs every job at least what the whole first lease is worth.
    fn levels_are_apart(&self) -> bool {
        let is_apart = |rows: &[LeaseRow]| {
            let most = top(rows).map_or(0.0, |(_, row)| row.value);
            let others = rows.iter().filter(|row| row.slack() >= 0 && row.value != most);
            others.map(|row| most - row.value).all(|distance| distance >= 1.0)
        };
        self.jobs().all(|(_, rows)| is_apart(rows))
    }

    /// The largest sum of gangs that fits into the first lease.
    fn fullest_first_lease(&self) -> usize {
        let capacity = usize::try_from(self.capacity.first().copied().unwrap_or(0)).unwrap_or(0);
        let mut is_reached = vec![false; capacity + 1];
        is_reached[0] = true;
        let mut most = 0;
        for (_, rows) in self.jobs() {
            let Some(row) = rows.iter().find(|row| row.n_leases() > 0 && row.need > 0) else { continue };
            let gpus = row.gpus as usize;
            if most == capacity || gpus == 0 {
                continue;
            }
            for sum in (gpus..=capacity.min(most + gpus)).rev() {
                if is_reached[sum - gpus] && !is_reached[sum] {
                    is_reached[sum] = true;
                    most = most.max(sum);
                }
            }
        }
        most
    }

    /// GPUs of the first lease that no plan at the best levels does without: of jobs that cannot wait, or because the
    /// later leases up to some horizon do not hold all that is due by then.
    fn emptiest_first_lease(&self) -> i64 {
        let mut rows: Vec<&LeaseRow> =
            self.jobs().filter_map(|(_, rows)| top(rows)).map(|(_, row)| row).collect();
        rows.sort_by_key(|row| row.horizon);
        let is_forced = |row: &LeaseRow| row.slack() == 0 && row.need > 0;
        let forced: i64 = rows.iter().filter(|row| is_forced(row)).map(|row| i64::from(row.gpus)).sum();
        let (mut least, mut demand, mut forced_so_far, mut later, mut lease) =
            (forced, 0_i64, 0_i64, 0_i64, 1);
        for due in rows.chunk_by(|a, b| a.horizon == b.horizon) {
            demand += due.iter().map(|row| i64::from(row.gpus) * i64::from(row.need)).sum::<i64>();
            forced_so_far +=
                due.iter().filter(|row| is_forced(row)).map(|row| i64::from(row.gpus)).sum::<i64>();
            while lease < due[0].n_leases() {
                later += self.capacity.get(lease).copied().unwrap_or(0);
                lease += 1;
            }
            least = least.max(demand - later + forced - forced_so_far);
        }
        least
    }

    /// Rows of each job, with the place of its first.
    fn jobs(&self) -> impl Iterator<Item = (usize, &[LeaseRow])> {
        let mut first = 0;
        self.rows.chunk_by(|_, next| next.level != 0).map(move |rows| {
            let place = first;
            first += rows.len();
            (place, rows)
        })
    }
}

/// The possible row of most value, of equals the one with the farthest horizon, with its place among these.
fn top(rows: &[LeaseRow]) -> Option<(usize, &LeaseRow)> {
    let possible = rows.iter().enumerate().filter(|(_, row)| row.slack() >= 0);
    possible
        .max_by(|(i, a), (j, b)| a.value.total_cmp(&b.value).then(a.horizon.cmp(&b.horizon)).then(j.cmp(i)))
}
