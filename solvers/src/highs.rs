//! HiGHS behind the [`Solver`] seam. No HiGHS type leaves this file.
//!
//! One call builds the column-wise problem, runs it single-threaded and seeded unless told otherwise, takes
//! the dust off the values, and re-checks them with [`check`](crate::check()). An answer that does not survive is
//! repaired once (integers fixed, the rest solved again with tight tolerances; then all of it with tight
//! tolerances) and is [`SolveStatus::Failed`] if that does not help either.
//!
//! HiGHS can overrun its time limit inside presolve. A caller that cannot wait runs this in a process that can
//! be killed ([`crate::exchange`] carries model and answer).

use std::time::{Duration, Instant};

use ::highs::{ColProblem, HighsModelStatus, HighsSolutionStatus, Integrality, SolvedModel};

use crate::check::{Violation, check, without_dust};
use crate::model::{Kind, Model, Sense};
use crate::range::Range;
use crate::solution::{Limits, Solution, SolveStatus, Solver, Start, is_better, relative_gap};

/// Distance of objective and bound up to which a finished search counts as proof: what HiGHS' own
/// feasibility tolerances (1e-6, 1e-7) can leave between the two.
const PROOF_TOLERANCE: f64 = 1e-6;

/// The smallest feasibility tolerance HiGHS accepts is 1e-10; this is a tenth of what the re-check forgives.
const TIGHT: f64 = 1e-10;

/// Why HiGHS gives no answer that can be used. Callers see it as the reason of [`SolveStatus::Failed`].
#[derive(Debug, thiserror::Error)]
enum HighsError {
    #[error("the start has {n_values} values for {n_variables} variables")]
    StartLength { n_values: usize, n_variables: usize },
    #[error("the start has a value that is not finite")]
    StartNotFinite,
    #[error("HiGHS refuses the model (a coefficient beyond 1e15?)")]
    Model,
    #[error("HiGHS refuses an option")]
    Option,
    #[error("HiGHS refuses the offset {offset}")]
    Offset { offset: f64 },
    #[error("HiGHS refuses the start")]
    Start,
    #[error("HiGHS ended with an error")]
    Solve,
    #[error("the answer fails the re-check: {violation}")]
    Recheck { violation: Violation },
}

/// The HiGHS solver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Highs;

impl Solver for Highs {
    fn solve(&mut self, model: &Model, limits: &Limits, start: Start<'_>) -> Solution {
        let started = Instant::now();
        let mut solution = if limits.threads == 1 {
            answer(model, limits, start, started)
        } else {
            on_a_thread_of_its_own(|| answer(model, limits, start, started))
        };
        solution.wall = started.elapsed();
        solution
    }
}

/// HiGHS keeps one task executor per calling thread, fixed to the number of threads of its first solve; a
/// new thread gets a new executor.
fn on_a_thread_of_its_own(work: impl FnOnce() -> Solution + Send) -> Solution {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Solution::failed("the solver thread panicked", Duration::ZERO))
}

fn answer(model: &Model, limits: &Limits, start: Start<'_>, started: Instant) -> Solution {
    if limits.gap.is_nan() || limits.gap < 0.0 {
        return Solution::failed(format!("a gap of {} cannot be asked for", limits.gap), Duration::ZERO);
    }
    if model.n_variables() == 0 {
        return without_variables(model);
    }
    let start = match usable_start(model, start) {
        Ok(start) => start,
        Err(error) => return Solution::failed(error.to_string(), Duration::ZERO),
    };
    let session = Session { model, limits, started };
    let task = Task { start: start.map(|(values, _)| values), ..Task::default() };
    let known = start.and_then(|(values, objective)| Some((values, objective?)));
    match session.run(&task) {
        Err(error) => session.keep_start(Solution::failed(error.to_string(), Duration::ZERO), known),
        Ok(raw) => session.settle(raw, known),
    }
}

/// A model of constants only: HiGHS calls it empty, we can say whether its rows hold.
fn without_variables(model: &Model) -> Solution {
    match check(model, &[]) {
        Ok(objective) => Solution {
            objective: Some(objective),
            bound: Some(objective),
            ..Solution::without_values(SolveStatus::Optimal, Duration::ZERO)
        },
        Err(_) => Solution::without_values(SolveStatus::Infeasible, Duration::ZERO),
    }
}

/// The start and, if it is feasible, its objective.
type CheckedStart<'a> = Option<(&'a [f64], Option<f64>)>;

fn usable_start<'a>(model: &Model, start: Start<'a>) -> Result<CheckedStart<'a>, HighsError> {
    match start {
        Start::Cold => Ok(None),
        Start::Values(values) if values.len() != model.n_variables() => {
            Err(HighsError::StartLength { n_values: values.len(), n_variables: model.n_variables() })
        }
        Start::Values(values) if values.iter().any(|value| !value.is_finite()) => {
            Err(HighsError::StartNotFinite)
        }
        Start::Values(values) => Ok(Some((values, check(model, values).ok()))),
    }
}

/// One variation of the model to run.
#[derive(Default)]
struct Task<'a> {
    /// Values handed to HiGHS as a first incumbent.
    start: Option<&'a [f64]>,
    /// Integers fixed at these values, so that an LP is left.
    fixed: Option<&'a [f64]>,
    /// Any feasible values will do.
    ignores_objective: bool,
    /// Feasibility tolerances of [`TIGHT`] instead of HiGHS' own.
    is_tight: bool,
}

/// How HiGHS itself ended.
enum Ending {
    Finished,
    Limit,
    Infeasible,
    /// Unbounded, or unbounded or infeasible: HiGHS does not always say which.
    NoFiniteOptimum,
    GaveUp(String),
}

/// What HiGHS said, unchecked.
struct Raw {
    ending: Ending,
    values: Option<Vec<f64>>,
    bound: Option<f64>,
    nodes: Option<u64>,
}

/// One solve: everything its runs share.
struct Session<'a> {
    model: &'a Model,
    limits: &'a Limits,
    started: Instant,
}

impl Session<'_> {
    /// From what HiGHS said to what we say.
    fn settle(&self, raw: Raw, start: Option<(&[f64], f64)>) -> Solution {
        let nodes = raw.nodes;
        let mut solution = match raw.ending {
            Ending::Infeasible if start.is_some() => {
                Solution::failed("HiGHS says infeasible, but the start is feasible", Duration::ZERO)
            }
            Ending::Infeasible => Solution::without_values(SolveStatus::Infeasible, Duration::ZERO),
            Ending::NoFiniteOptimum => self.unbounded_or_infeasible(start.is_some()),
            Ending::GaveUp(reason) => self.keep_start(Solution::failed(reason, Duration::ZERO), start),
            Ending::Finished | Ending::Limit => {
                let checked = self.checked_values(&raw);
                self.keep_start(self.with_values(&raw, checked), start)
            }
        };
        solution.nodes = nodes;
        solution
    }

    /// Whether anything is feasible decides between the two; the objective is left out to find out.
    fn unbounded_or_infeasible(&self, is_feasible: bool) -> Solution {
        let status = if is_feasible {
            SolveStatus::Unbounded
        } else {
            match self.run(&Task { ignores_objective: true, ..Task::default() }) {
                Ok(Raw { ending: Ending::Infeasible, .. }) => SolveStatus::Infeasible,
                Ok(raw) if raw.values.is_some() => SolveStatus::Unbounded,
                _ => SolveStatus::Failed {
                    reason: "unbounded or infeasible: not decided within the limits".into(),
                },
            }
        };
        Solution::without_values(status, Duration::ZERO)
    }

    fn with_values(&self, raw: &Raw, checked: Option<Result<Vec<f64>, HighsError>>) -> Solution {
        let values = match checked {
            None => {
                let mut solution = Solution::without_values(SolveStatus::LimitWithout, Duration::ZERO);
                solution.bound = raw.bound;
                return solution;
            }
            Some(Err(error)) => return Solution::failed(error.to_string(), Duration::ZERO),
            Some(Ok(values)) => values,
        };
        let objective = self.model.objective_at(&values);
        let bound = raw.bound;
        let status = self.status(&raw.ending, objective, bound);
        Solution { status, objective: Some(objective), bound, nodes: None, wall: Duration::ZERO, values }
    }

    /// The status of feasible values; the gap is computed from our own objective.
    fn status(&self, ending: &Ending, objective: f64, bound: Option<f64>) -> SolveStatus {
        let gap = bound.and_then(|bound| relative_gap(objective, bound)).unwrap_or(f64::INFINITY);
        let distance = bound.map_or(f64::INFINITY, |bound| (objective - bound).abs());
        let is_finished = matches!(ending, Ending::Finished);
        let is_proof = distance <= PROOF_TOLERANCE * objective.abs().max(1.0);
        if gap == 0.0 || (is_finished && is_proof && self.limits.gap == 0.0) {
            SolveStatus::Optimal
        } else if gap <= self.limits.gap {
            SolveStatus::GapReached
        } else {
            SolveStatus::LimitWithIncumbent
        }
    }

    /// A feasible start is never lost: it replaces an answer that is worse or has no values.
    fn keep_start(&self, mut solution: Solution, start: Option<(&[f64], f64)>) -> Solution {
        let Some((values, objective)) = start else { return solution };
        let loses = match solution.objective {
            Some(found) => is_better(self.model.sense(), objective, found),
            None => !matches!(solution.status, SolveStatus::Infeasible | SolveStatus::Unbounded),
        };
        if loses {
            solution.status = self.status(&Ending::Limit, objective, solution.bound);
            solution.objective = Some(objective);
            solution.values = values.to_vec();
        }
        solution
    }

    /// HiGHS' values without dust, re-checked, repaired if need be. `None` if it found none.
    fn checked_values(&self, raw: &Raw) -> Option<Result<Vec<f64>, HighsError>> {
        let values = without_dust(self.model, raw.values.clone()?);
        let violation = match check(self.model, &values) {
            Ok(_) => return Some(Ok(values)),
            Err(violation) => violation,
        };
        let n_integers = self.model.n_integers();
        let repairs = [
            (n_integers < self.model.n_variables()).then(|| Task {
                fixed: Some(&values),
                is_tight: true,
                ..Task::default()
            }),
            (n_integers > 0).then(|| Task { is_tight: true, ..Task::default() }),
        ];
        let repaired = repairs.into_iter().flatten().find_map(|task| {
            let values = without_dust(self.model, self.run(&task).ok()?.values?);
            check(self.model, &values).is_ok().then_some(values)
        });
        Some(repaired.ok_or(HighsError::Recheck { violation }))
    }

    /// Hands one variation of the model to HiGHS.
    fn run(&self, task: &Task<'_>) -> Result<Raw, HighsError> {
        let sense = match self.model.sense() {
            Sense::Minimize => ::highs::Sense::Minimise,
            Sense::Maximize => ::highs::Sense::Maximise,
        };
        let mut problem =
            column_problem(self.model, task).try_optimise(sense).map_err(|_| HighsError::Model)?;
        self.set_options(&mut problem, task).map_err(|_| HighsError::Option)?;
        if !task.ignores_objective {
            ffi::set_offset(&mut problem, self.model.offset())?;
        }
        let is_mixed = task.fixed.is_none() && self.model.n_integers() > 0;
        if let (Some(start), true) = (task.start, is_mixed) {
            problem.try_set_solution(Some(start), None, None, None).map_err(|_| HighsError::Start)?;
        }
        let solved = problem.try_solve().map_err(|_| HighsError::Solve)?;
        Ok(read_answer(&solved, is_mixed))
    }

    fn set_options(
        &self,
        problem: &mut ::highs::Model,
        task: &Task<'_>,
    ) -> Result<(), ::highs::TrySetOptionError> {
        let limits = self.limits;
        let wall = limits.wall.saturating_sub(self.started.elapsed());
        problem.try_set_option("threads", clamped(limits.threads.into()))?;
        problem.try_set_option("parallel", if limits.threads == 1 { "off" } else { "on" })?;
        problem.try_set_option("random_seed", clamped(limits.seed.into()))?;
        problem.try_set_option("mip_max_nodes", clamped(limits.nodes))?;
        problem.try_set_option("mip_rel_gap", limits.gap)?;
        problem.try_set_option("mip_abs_gap", 1e-9)?;
        problem.try_set_option("time_limit", wall.as_secs_f64())?;
        if task.is_tight {
            problem.try_set_option("primal_feasibility_tolerance", TIGHT)?;
            problem.try_set_option("mip_feasibility_tolerance", TIGHT)?;
        }
        Ok(())
    }
}

fn column_problem(model: &Model, task: &Task<'_>) -> ColProblem {
    let mut problem = ColProblem::new();
    let rows: Vec<::highs::Row> = model
        .rows()
        .map(|row| {
            let Range { lower, upper } = model.row_range(row);
            problem.add_row(lower..=upper)
        })
        .collect();
    let columns = model.by_column();
    for variable in model.variables() {
        let mut range = model.range(variable);
        let mut integrality = match model.kind(variable) {
            Kind::Continuous => Integrality::Continuous,
            Kind::Integer => Integrality::Integer,
        };
        if let (Some(values), Integrality::Integer) = (task.fixed, integrality) {
            range = Range { lower: values[variable.index()], upper: values[variable.index()] };
            integrality = Integrality::Continuous;
        }
        let cost = if task.ignores_objective { 0.0 } else { model.cost(variable) };
        let entries = columns.of(variable).iter().map(|&(row, value)| (rows[row.index()], value));
        problem.add_column_with_integrality_kind(cost, range.lower..=range.upper, entries, integrality);
    }
    problem
}

fn read_answer(solved: &SolvedModel, is_mixed: bool) -> Raw {
    let ending = match solved.status() {
        HighsModelStatus::Optimal => Ending::Finished,
        HighsModelStatus::Infeasible => Ending::Infeasible,
        HighsModelStatus::Unbounded | HighsModelStatus::UnboundedOrInfeasible => Ending::NoFiniteOptimum,
        HighsModelStatus::ReachedTimeLimit
        | HighsModelStatus::ReachedIterationLimit
        | HighsModelStatus::ReachedSolutionLimit
        | HighsModelStatus::ReachedMemoryLimit
        | HighsModelStatus::ReachedInterrupt
        | HighsModelStatus::ObjectiveBound
        | HighsModelStatus::ObjectiveTarget => Ending::Limit,
        other => Ending::GaveUp(format!("HiGHS gave up: {other:?}")),
    };
    let is_feasible = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
    let values = is_feasible.then(|| solved.get_solution().columns().to_vec());
    let bound = match (is_mixed, &ending) {
        (true, _) => solved.double_info_value(c"mip_dual_bound").ok().filter(|bound| bound.is_finite()),
        (false, Ending::Finished) => Some(solved.objective_value()),
        (false, _) => None,
    };
    let nodes = if is_mixed { ffi::node_count(solved) } else { Some(0) };
    Raw { ending, values, bound, nodes }
}

fn clamped(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// The two calls the safe binding has no name for.
#[expect(unsafe_code, reason = "the highs crate offers neither the objective offset nor 64-bit info values")]
mod ffi {
    use super::HighsError;

    /// Sets the constant of the objective, so that HiGHS' relative gap is ours.
    pub(super) fn set_offset(problem: &mut ::highs::Model, offset: f64) -> Result<(), HighsError> {
        // SAFETY: the pointer is that of a live HiGHS instance, borrowed mutably for the call.
        let status = unsafe { highs_sys::Highs_changeObjectiveOffset(problem.as_mut_ptr(), offset) };
        if status == highs_sys::STATUS_OK { Ok(()) } else { Err(HighsError::Offset { offset }) }
    }

    /// Branch-and-bound nodes of the last run.
    pub(super) fn node_count(solved: &::highs::SolvedModel) -> Option<u64> {
        let mut count: i64 = -1;
        // SAFETY: the instance is live and only read, the name ends with NUL, `count` outlives the call.
        let status = unsafe {
            highs_sys::Highs_getInt64InfoValue(solved.as_ptr(), c"mip_node_count".as_ptr(), &mut count)
        };
        if status == highs_sys::STATUS_OK { u64::try_from(count).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `settle` makes of values HiGHS might have claimed.
    fn settled(model: &Model, values: &[f64], bound: f64) -> Solution {
        let limits = Limits::default();
        let session = Session { model, limits: &limits, started: Instant::now() };
        let raw = Raw {
            ending: Ending::Finished,
            values: Some(values.to_vec()),
            bound: Some(bound),
            nodes: Some(0),
        };
        session.settle(raw, None)
    }

    /// Maximise 2x + y: x binary, y at most 1.5 and at most x.
    fn switch() -> Model {
        let mut model = Model::new(Sense::Maximize);
        let x = model.binary("x").unwrap();
        let y = model.continuous("y", 0.0, 1.5).unwrap();
        model.set_cost(x, 2.0).unwrap();
        model.set_cost(y, 1.0).unwrap();
        model.row("switch", f64::NEG_INFINITY, 0.0, [(y, 1.0), (x, -1.0)]).unwrap();
        model
    }

    #[test]
    fn dust_on_a_right_answer_is_taken_off() {
        let solution = settled(&switch(), &[1.0 - 1e-9, 1.0], 3.0);
        assert_eq!((solution.status, solution.values), (SolveStatus::Optimal, vec![1.0, 1.0]));
    }

    #[test]
    fn continuous_values_that_are_off_are_solved_again() {
        let solution = settled(&switch(), &[1.0, 1.0 + 1e-7], 3.0);
        assert_eq!((solution.status, solution.values), (SolveStatus::Optimal, vec![1.0, 1.0]));
    }

    #[test]
    fn integers_that_are_off_are_solved_again() {
        let solution = settled(&switch(), &[0.4, 0.4], 3.0);
        assert_eq!((solution.status, solution.values), (SolveStatus::Optimal, vec![1.0, 1.0]));
    }

    #[test]
    fn an_answer_beyond_repair_fails_with_the_row_it_breaks() {
        let mut model = Model::new(Sense::Maximize);
        let x = model.binary("x").unwrap();
        model.row("never", 2.0, 3.0, [(x, 1.0)]).unwrap();
        assert_eq!(
            settled(&model, &[1.0], 1.0).status.to_string(),
            "failed: the answer fails the re-check: row never is 1, outside 2 to 3 by more than 0"
        );
    }

    #[test]
    fn a_finished_solve_far_from_its_bound_is_not_called_optimal() {
        let solution = settled(&switch(), &[1.0, 1.0], 3.5);
        assert_eq!(solution.status, SolveStatus::LimitWithIncumbent);
    }

    #[test]
    fn infeasible_is_not_believed_against_a_feasible_start() {
        let (model, limits) = (switch(), Limits::default());
        let session = Session { model: &model, limits: &limits, started: Instant::now() };
        let raw = Raw { ending: Ending::Infeasible, values: None, bound: None, nodes: None };
        let solution = session.settle(raw, Some((&[0.0, 0.0], 0.0)));
        assert!(matches!(solution.status, SolveStatus::Failed { .. }));
    }
}
