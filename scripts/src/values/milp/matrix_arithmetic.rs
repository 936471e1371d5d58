//! Arithmetic and comparisons of matrices with matrices, columns and numbers.

use super::matrix::Matrix;
use super::shape::{Set, Sides};
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::Column;
use crate::values::operators::{operators, truth};

/// Two matrices into one; a side that one of them lacks is taken from the other.
fn zip(a: &Matrix, b: &Matrix, f: impl Fn(f64, f64) -> f64) -> Outcome<Matrix> {
    let Some(whole) = a.sides().with(b.sides()) else {
        return fail(format!("matrices of {} and of {} do not go together", a.sides(), b.sides()));
    };
    // Counted before the positions of a large product are walked.
    let at = |side: &Matrix, position: usize| side.values()[side.sides().position(&whole, position)];
    let numbers = (0..whole.len()).map(|position| f(at(a, position), at(b, position)));
    Matrix::compute(a.session(), whole.clone(), numbers)
}

fn map(a: Matrix, f: impl Fn(f64) -> f64) -> Outcome<Matrix> {
    Matrix::compute(a.session(), a.sides().clone(), a.values().iter().map(|value| f(*value)))
}

/// A column of jobs, the same along all columns of a matrix.
fn spread(column: &Column) -> Outcome<Matrix> {
    let sides = Sides { rows: Some(Set::Jobs(column.jobs.clone())), columns: None };
    Matrix::compute(&column.jobs.session, sides, column.values().iter().copied())
}

/// Registers an operator or function of two numbers for every mix of matrices, columns and numbers.
macro_rules! pairwise {
    ($engine:expr, $name:literal, $f:expr) => {
        $engine
            .register_fn($name, |a: Matrix, b: Matrix| zip(&a, &b, $f))
            .register_fn($name, |a: Matrix, b: Column| zip(&a, &spread(&b)?, $f))
            .register_fn($name, |a: Column, b: Matrix| zip(&spread(&a)?, &b, $f))
            .register_fn($name, |a: Matrix, b: f64| map(a, |x| ($f)(x, b)))
            .register_fn($name, |a: Matrix, b: i64| map(a, |x| ($f)(x, b as f64)))
            .register_fn($name, |a: f64, b: Matrix| map(b, |y| ($f)(a, y)))
            .register_fn($name, |a: i64, b: Matrix| map(b, |y| ($f)(a as f64, y)))
    };
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    operators!(
        registrar,
        Matrix,
        pairwise,
        arithmetic: "Number by number; either side may be a plain number, or a column along the same jobs. `-a` changes the sign.",
        comparison: "1 where it holds and 0 where it does not: `by_column(0..20) < by_row(jobs.deadline / 1200)`."
    );
    let engine =
        registrar.method("Matrix", "min(a, b), max(a, b) -> Matrix", "The smaller or larger of each pair.");
    pairwise!(engine, "min", f64::min);
    pairwise!(engine, "max", f64::max);
}
