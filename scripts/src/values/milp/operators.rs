//! Operators on linear expressions, element by element, with numbers, columns, arrays and matrices on either side. Comparing
//! two makes a constraint.

use rhai::{Array, Dynamic, ImmutableString};

use super::linear::{Building, Constraint, Linear, Relation};
use super::matrix::Matrix;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, JobValue, Jobs};

/// `a + sign * b`, element by element.
pub(super) fn combine(a: &Linear, b: &Linear, sign: f64) -> Outcome<Linear> {
    if !a.is_of(b.cell()) {
        return fail("expressions of two different models");
    }
    let shape = a.shape().with(b.shape())?;
    let n_terms = a.n_terms() * a.shape().repeats(&shape) + b.n_terms() * b.shape().repeats(&shape);
    let mut body = Building::new(a.cell(), shape.len(), n_terms)?;
    for position in 0..shape.len() {
        let (p, q) = (a.shape().position(&shape, position), b.shape().position(&shape, position));
        body.terms.extend_from_slice(a.terms(p));
        body.terms.extend(b.terms(q).iter().map(|(variable, factor)| (*variable, sign * factor)));
        body.close(a.number(p) + sign * b.number(q));
    }
    Ok(body.done(shape))
}

/// `a * b` or `a / b`, where only one side has variables.
fn scale(a: &Linear, b: &Linear, divides: bool) -> Outcome<Linear> {
    let (linear, factor) = match (a.n_terms(), b.n_terms()) {
        (_, 0) => (a, b),
        (0, _) if !divides => (b, a),
        _ if divides => return fail("a division by variables is not linear"),
        _ => return fail("a product of two expressions with variables is not linear"),
    };
    let shape = a.shape().with(b.shape())?;
    let n_terms = linear.n_terms() * linear.shape().repeats(&shape);
    let mut body = Building::new(a.cell(), shape.len(), n_terms)?;
    for position in 0..shape.len() {
        let p = linear.shape().position(&shape, position);
        let q = factor.shape().position(&shape, position);
        let factor = if divides { 1.0 / factor.number(q) } else { factor.number(q) };
        body.terms.extend(linear.terms(p).iter().map(|(variable, by)| (*variable, by * factor)));
        body.close(linear.number(p) * factor);
    }
    Ok(body.done(shape))
}

fn compare(a: &Linear, b: &Linear, relation: Relation) -> Outcome<Constraint> {
    Ok(Constraint { linear: combine(a, b, -1.0)?, relation })
}

fn strict(_: &Linear, _: &Linear) -> Outcome<Constraint> {
    fail("constraints are written with <=, >= or ==")
}

/// Registers an operator for expressions with expressions, numbers, columns, arrays and matrices, on either side.
macro_rules! operator {
    ($engine:expr, $name:literal, $f:expr) => {
        $engine.register_fn($name, |a: Linear, b: Linear| ($f)(&a, &b));
        operator!(@mixed $engine, $name, $f, f64, i64, Column, Array, Matrix);
    };
    (@mixed $engine:expr, $name:literal, $f:expr, $($other:ty),*) => {
        $($engine.register_fn($name, |a: Linear, b: $other| {
            let b = Linear::constant(a.cell(), &Dynamic::from(b))?;
            ($f)(&a, &b)
        });
        $engine.register_fn($name, |a: $other, b: Linear| {
            let a = Linear::constant(b.cell(), &Dynamic::from(a))?;
            ($f)(&a, &b)
        });)*
    };
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Linear";
    registrar.class::<Linear>(
        OWNER,
        "A linear expression over a model's variables, or one for each member of a set, or for each pair of two sets.",
    );
    let engine = registrar.method(
        OWNER,
        "a + b, a - b, a * b, a / b -> Linear",
        "Element by element; the other side may be an expression, a number, a column, an array of numbers or a matrix. A \
         product may have variables on one side only. Next to expressions over jobs and something else, a column goes along \
         the jobs; of an array, `by_row` or `by_column` says along what.",
    );
    operator!(engine, "+", |a: &Linear, b: &Linear| combine(a, b, 1.0));
    operator!(engine, "-", |a: &Linear, b: &Linear| combine(a, b, -1.0));
    operator!(engine, "*", |a: &Linear, b: &Linear| scale(a, b, false));
    operator!(engine, "/", |a: &Linear, b: &Linear| scale(a, b, true));
    engine.register_fn("-", |a: Linear| {
        let minus = Linear::constant(a.cell(), &Dynamic::from(-1.0))?;
        scale(&a, &minus, false)
    });
    let engine =
        registrar.method(OWNER, "a <= b, a >= b, a == b -> Constraint", "A constraint, for `m.add`.");
    operator!(engine, "<=", |a: &Linear, b: &Linear| compare(a, b, Relation::AtMost));
    operator!(engine, ">=", |a: &Linear, b: &Linear| compare(a, b, Relation::AtLeast));
    operator!(engine, "==", |a: &Linear, b: &Linear| compare(a, b, Relation::Equal));
    operator!(engine, "<", strict);
    operator!(engine, ">", strict);
    operator!(engine, "!=", strict);
    registrar
        .function("sum(expressions: Linear) -> Linear", "All expressions added up to one.")
        .register_fn("sum", |linear: Linear| linear.sum());
    parts(registrar);
    registrar.class::<Constraint>(
        "Constraint",
        "What must hold: a comparison of expressions, or one for each job.",
    );
}

fn parts(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Linear";
    let engine = registrar.method(
        OWNER,
        "[job] -> Linear",
        "The expression of one job, or at an index (jobs by ascending id).",
    );
    engine.register_indexer_get(|linear: &mut Linear, index: i64| linear.at_index(index));
    engine.register_indexer_get(|linear: &mut Linear, job: JobValue| linear.of_job(&job));
    let engine = registrar.method(OWNER, "of(jobs: Jobs) -> Linear", "The expressions of some of the jobs.");
    engine.register_fn("of", |linear: Linear, jobs: Jobs| linear.of_jobs(jobs));
    let engine = registrar.field(OWNER, "len: int", "How many expressions.");
    engine.register_get("len", |linear: &mut Linear| linear.shape().len() as i64);
    registrar.unknown_field::<Linear>(OWNER);
    registrar.engine().register_fn("to_string", |linear: &mut Linear| {
        ImmutableString::from(format!("expression over {}, {} terms", linear.shape(), linear.n_terms()))
    });
}
