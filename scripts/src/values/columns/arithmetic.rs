//! Arithmetic and comparisons of columns with columns and numbers: one pass over the numbers each.

use rhai::Dynamic;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::operators::{operators, truth};
use crate::values::{Column, number, type_label};

/// Two columns into one; the buffer of either is reused when nothing else holds it.
fn zip(mut a: Column, mut b: Column, f: impl Fn(f64, f64) -> f64) -> Outcome<Column> {
    a.same_jobs(&b)?;
    if let Some(left) = a.values_mut() {
        b.jobs.session.meter().charge(left.len())?;
        left.iter_mut().zip(b.values()).for_each(|(x, y)| *x = f(*x, *y));
        return Ok(a);
    }
    if let Some(right) = b.values_mut() {
        a.jobs.session.meter().charge(right.len())?;
        right.iter_mut().zip(a.values()).for_each(|(y, x)| *y = f(*x, *y));
        return Ok(b);
    }
    Column::compute(&a.jobs, a.values().iter().zip(b.values()).map(|(x, y)| f(*x, *y)))
}

pub(super) fn map(mut a: Column, f: impl Fn(f64) -> f64) -> Outcome<Column> {
    if a.values_mut().is_some() {
        a.jobs.session.meter().charge(a.jobs.len())?;
        a.values_mut().into_iter().flatten().for_each(|x| *x = f(*x));
        return Ok(a);
    }
    Column::compute(&a.jobs, a.values().iter().map(|x| f(*x)))
}

/// Registers one operator or function of two numbers for every mix of columns and numbers.
macro_rules! pairwise {
    ($engine:expr, $name:literal, $f:expr) => {
        $engine
            .register_fn($name, |a: Column, b: Column| zip(a, b, $f))
            .register_fn($name, |a: Column, b: f64| map(a, |x| ($f)(x, b)))
            .register_fn($name, |a: Column, b: i64| map(a, |x| ($f)(x, b as f64)))
            .register_fn($name, |a: f64, b: Column| map(b, |y| ($f)(a, y)))
            .register_fn($name, |a: i64, b: Column| map(b, |y| ($f)(a as f64, y)))
    };
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    operators!(
        registrar,
        Column,
        pairwise,
        arithmetic: "Number by number; either side may be a plain number. `-a` changes the sign.",
        comparison: "1 where it holds and 0 where it does not; either side may be a plain number."
    );
    functions(registrar);
}

fn functions(registrar: &mut Registrar<'_>) {
    let engine =
        registrar.function("min(a, b) -> Column", "The smaller of each pair; numbers and columns mix.");
    pairwise!(engine, "min", f64::min);
    let engine =
        registrar.function("max(a, b) -> Column", "The larger of each pair; numbers and columns mix.");
    pairwise!(engine, "max", f64::max);
    registrar
        .function("log2(a: Column) -> Column", "Logarithm to base 2; of a number too.")
        .register_fn("log2", |a: Column| map(a, f64::log2))
        .register_fn("log2", f64::log2);
    powers(registrar);
    registrar
        .function("ceil(a: Column) -> Column", "Rounded up to whole numbers; of a number too.")
        .register_fn("ceil", |a: Column| map(a, f64::ceil))
        .register_fn("ceil", f64::ceil);
    registrar
        .function("floor(a: Column) -> Column", "Rounded down to whole numbers; of a number too.")
        .register_fn("floor", |a: Column| map(a, f64::floor));
    let engine = registrar.function(
        "clamp(a: Column, low: float, high: float) -> Column",
        "Kept between two numbers; of a number too.",
    );
    engine.register_fn("clamp", |a: Column, low: Dynamic, high: Dynamic| -> Outcome<Column> {
        let (low, high) = bounds(&low, &high)?;
        map(a, |x| x.max(low).min(high))
    });
    engine.register_fn("clamp", |a: f64, low: Dynamic, high: Dynamic| -> Outcome<f64> {
        let (low, high) = bounds(&low, &high)?;
        Ok(a.max(low).min(high))
    });
    engine.register_fn("clamp", |a: i64, low: Dynamic, high: Dynamic| -> Outcome<f64> {
        let (low, high) = bounds(&low, &high)?;
        Ok((a as f64).max(low).min(high))
    });
    select(registrar);
}

/// Two numbers, the first of which is not larger.
fn bounds(low: &Dynamic, high: &Dynamic) -> Outcome<(f64, f64)> {
    match (number(low), number(high)) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        (Some(low), Some(high)) => {
            fail(format!("clamp: the lower bound {low} is above the upper one, {high}"))
        }
        _ => fail(format!("clamp: bounds are numbers, got {} and {}", type_label(low), type_label(high))),
    }
}

/// Functions of one number that Rhai has for numbers, under the same names, and powers.
fn powers(registrar: &mut Registrar<'_>) {
    type Function = fn(f64) -> f64;
    let functions: [(&str, &str, Function); 5] = [
        ("abs", "The distance from 0.", f64::abs),
        ("sqrt", "The square root; of a negative number, not a number.", f64::sqrt),
        ("exp", "e to the power of each number.", f64::exp),
        ("ln", "The natural logarithm.", f64::ln),
        ("log", "The logarithm to base 10, as `log` of a number.", f64::log10),
    ];
    for (name, doc, function) in functions {
        registrar
            .function(&format!("{name}(a: Column) -> Column"), doc)
            .register_fn(name, move |a: Column| map(a, function));
    }
    let engine = registrar.function(
        "pow(a, b) -> Column",
        "Each number of `a` to the power of `b`, also written `a ** b`; numbers and columns mix.",
    );
    pairwise!(engine, "pow", f64::powf);
    pairwise!(engine, "**", f64::powf);
    engine.register_fn("pow", |a: f64, b: f64| a.powf(b));
    engine.register_fn("pow", |a: f64, b: i64| a.powf(b as f64));
    engine.register_fn("pow", |a: i64, b: f64| (a as f64).powf(b));
    engine.register_fn("pow", |a: i64, b: i64| (a as f64).powf(b as f64));
}

fn select(registrar: &mut Registrar<'_>) {
    let engine = registrar.function(
        "where(condition: Column, a, b) -> Column",
        "`a` where the condition is not 0, else `b`; both may be columns or numbers.",
    );
    engine.register_fn("where", |c: Column, a: Column, b: Column| -> Outcome<Column> {
        c.same_jobs(&a)?;
        c.same_jobs(&b)?;
        let rows = c.values().iter().zip(a.values()).zip(b.values());
        Column::compute(&c.jobs, rows.map(|((c, a), b)| if *c != 0.0 { *a } else { *b }))
    });
    engine
        .register_fn("where", |c: Column, a: Column, b: f64| zip(c, a, |c, a| if c != 0.0 { a } else { b }));
    engine.register_fn("where", |c: Column, a: Column, b: i64| {
        zip(c, a, |c, a| if c != 0.0 { a } else { b as f64 })
    });
    engine
        .register_fn("where", |c: Column, a: f64, b: Column| zip(c, b, |c, b| if c != 0.0 { a } else { b }));
    engine.register_fn("where", |c: Column, a: i64, b: Column| {
        zip(c, b, |c, b| if c != 0.0 { a as f64 } else { b })
    });
    engine.register_fn("where", |c: Column, a: f64, b: f64| map(c, |c| if c != 0.0 { a } else { b }));
    engine.register_fn("where", |c: Column, a: i64, b: i64| {
        map(c, |c| if c != 0.0 { a as f64 } else { b as f64 })
    });
    engine.register_fn("where", |c: Column, a: f64, b: i64| map(c, |c| if c != 0.0 { a } else { b as f64 }));
    engine.register_fn("where", |c: Column, a: i64, b: f64| map(c, |c| if c != 0.0 { a as f64 } else { b }));
}
