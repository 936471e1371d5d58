//! The answer to a model, for scripts: a status, and the value of any expression.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString};
use rota_solvers::Solution;

use super::Cell;
use super::linear::Linear;
use super::matrix::Matrix;
use super::shape::{Set, Shape};
use super::starts::Began;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::Column;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct MilpAnswer {
    cell: Arc<Cell>,
    solution: Arc<Solution>,
    began: Began,
}

impl MilpAnswer {
    pub(super) fn new(cell: &Arc<Cell>, solution: Solution, began: Began) -> Self {
        MilpAnswer { cell: Arc::clone(cell), solution: Arc::new(solution), began }
    }

    /// What became of the start.
    pub(super) fn began(&self) -> String {
        self.began.text()
    }

    /// One line for the record of the round.
    pub(crate) fn note(&self) -> String {
        let gap = self.solution.gap().map_or("unknown".to_owned(), |gap| format!("{:.3} %", gap * 100.0));
        let mut note = match self.solution.objective {
            Some(objective) => format!("milp: {}, objective {objective}, gap {gap}", self.solution.status),
            None => format!("milp: {}", self.solution.status),
        };
        if let Began::Refused(_) = self.began {
            note.push_str(&format!(", start {}", self.began.text()));
        }
        note
    }

    fn value(&self, linear: &Linear) -> Outcome<Dynamic> {
        if !linear.is_of(&self.cell) {
            return fail("this expression belongs to another model");
        }
        if !self.solution.status.has_values() {
            let status = &self.solution.status;
            return fail(format!(
                "the solve ended `{status}`, so there are no values: look at `is_solved` first"
            ));
        }
        self.cell.session.meter().charge(linear.n_terms())?;
        let at = |position: usize| {
            let terms = linear.terms(position).iter();
            terms.fold(linear.number(position), |sum, (x, by)| {
                sum + by * self.solution.value(*x).unwrap_or(0.0)
            })
        };
        match linear.shape() {
            Shape::One => Ok(Dynamic::from(at(0))),
            Shape::Each(Set::Jobs(jobs)) => Column::compute(jobs, (0..jobs.len()).map(at)).map(Dynamic::from),
            Shape::Each(Set::Count(count)) => {
                Ok(Dynamic::from((0..*count).map(|i| Dynamic::from(at(i))).collect::<Array>()))
            }
            Shape::Pairs(sides) => {
                let numbers = (0..sides.len()).map(at);
                Matrix::compute(&self.cell.session, sides.clone(), numbers).map(Dynamic::from)
            }
        }
    }

    fn known(&self, what: &str, value: Option<f64>) -> Outcome<f64> {
        match value {
            Some(value) => Ok(value),
            None => fail(format!("the solve ended `{}`, so there is no {what}", self.solution.status)),
        }
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Answer";
    registrar.class::<MilpAnswer>(OWNER, "The result of solving a model.");
    let engine = registrar.field(
        OWNER,
        "status: String",
        "`optimal`, `gap_reached`, `limit_with_incumbent`, `limit_without`, `infeasible`, `unbounded` or `failed`.",
    );
    engine.register_get("status", |a: &mut MilpAnswer| ImmutableString::from(a.solution.status.word()));
    let engine = registrar.field(OWNER, "is_solved: bool", "Whether there are values, proven best or not.");
    engine.register_get("is_solved", |a: &mut MilpAnswer| a.solution.status.has_values());
    let engine = registrar.field(OWNER, "objective: float", "The objective reached.");
    engine.register_get("objective", |a: &mut MilpAnswer| a.known("objective", a.solution.objective));
    let engine = registrar.field(OWNER, "bound: float", "No objective can be better than this.");
    engine.register_get("bound", |a: &mut MilpAnswer| a.known("bound", a.solution.bound));
    let engine = registrar.field(OWNER, "gap: float", "The relative distance between objective and bound.");
    engine.register_get("gap", |a: &mut MilpAnswer| a.known("gap", a.solution.gap()));
    let engine = registrar.method(
        OWNER,
        "value(expression: Linear)",
        "The value of a variable or an expression: a number, a column for one over jobs, an array for one over a count, a matrix for one over \
         two sets.",
    );
    engine.register_fn("value", |a: MilpAnswer, linear: Linear| a.value(&linear));
    registrar.unknown_field::<MilpAnswer>(OWNER);
}
