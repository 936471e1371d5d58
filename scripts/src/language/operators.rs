//! Comparison and division as a policy needs them, in place of Rhai's own.
//!
//! Rhai's comparisons answer `false` for values that cannot be compared (a number and a text), take an infinite number
//! for neither equal to nor larger than anything, and every number below 2e-16 for 0; its `/` drops the remainder of
//! whole numbers, so that `job.gpus / 8` and `jobs.gpus / 8` differ. Here numbers compare exactly, what cannot be compared
//! is an error, and `/` gives a float. Rhai looks at its own operators before registered functions unless an operator is
//! switched off and defined anew, which is what [`register`] does.

use rhai::{Dynamic, Engine, ImmutableString};

use crate::language::session::{Outcome, fail};
use crate::values::{number, type_label};

/// The operators that are defined anew, each with Rhai's precedence for it.
const REPLACED: [(&str, u8); 7] =
    [("==", 90), ("!=", 90), ("<", 130), ("<=", 130), (">", 130), (">=", 130), ("/", 180)];

pub(crate) fn register(engine: &mut Engine) {
    for (operator, precedence) in REPLACED {
        engine.disable_symbol(operator);
        engine.register_custom_operator(operator, precedence).expect("a symbol that is switched off");
    }
    // Of whole numbers it would drop the remainder, and it cannot be defined anew.
    engine.disable_symbol("/=");
    compare(engine);
    divide(engine);
    // Rhai's own makes 0 of what is not a number.
    engine.register_fn("to_int", |number: f64| -> Outcome<i64> {
        match number.is_finite() && number.abs() < 9.2e18 {
            true => Ok(number.trunc() as i64),
            false => fail(format!("to_int: {number} is not a whole number of 64 bits")),
        }
    });
    let refuse = |number: String, text: &str| {
        fail(format!(
            "{number} + \"{text}\": a number and a text do not add up; for a text write `${{number}}{text}`"
        ))
    };
    engine.register_fn("+", move |a: i64, b: ImmutableString| -> Outcome<Dynamic> {
        refuse(a.to_string(), &b)
    });
    engine.register_fn("+", move |a: f64, b: ImmutableString| -> Outcome<Dynamic> {
        refuse(a.to_string(), &b)
    });
}

/// Registers one comparison for each pair of types that has an answer; every other pair goes to `otherwise`.
macro_rules! comparison {
    ($engine:expr, $name:literal, $operator:tt) => {
        $engine
            .register_fn($name, |a: i64, b: i64| a $operator b)
            .register_fn($name, |a: f64, b: f64| a $operator b)
            .register_fn($name, |a: i64, b: f64| (a as f64) $operator b)
            .register_fn($name, |a: f64, b: i64| a $operator (b as f64))
            .register_fn($name, |a: ImmutableString, b: ImmutableString| a.as_str() $operator b.as_str())
    };
}

fn compare(engine: &mut Engine) {
    comparison!(engine, "==", ==).register_fn("==", |a: bool, b: bool| a == b);
    comparison!(engine, "!=", !=).register_fn("!=", |a: bool, b: bool| a != b);
    comparison!(engine, "<", <).register_fn("<", |a: Dynamic, b: Dynamic| unordered("<", &a, &b));
    comparison!(engine, "<=", <=).register_fn("<=", |a: Dynamic, b: Dynamic| unordered("<=", &a, &b));
    comparison!(engine, ">", >).register_fn(">", |a: Dynamic, b: Dynamic| unordered(">", &a, &b));
    comparison!(engine, ">=", >=).register_fn(">=", |a: Dynamic, b: Dynamic| unordered(">=", &a, &b));
    engine.register_fn("==", |a: Dynamic, b: Dynamic| is_equal("==", &a, &b));
    engine.register_fn("!=", |a: Dynamic, b: Dynamic| is_equal("!=", &a, &b).map(|is_equal| !is_equal));
}

/// Whether values of other types are equal: nothing, `()`, equals only itself, a character is a short text.
fn is_equal(operator: &str, a: &Dynamic, b: &Dynamic) -> Outcome<bool> {
    if a.is_unit() || b.is_unit() {
        return Ok(a.is_unit() && b.is_unit());
    }
    let is_text = |value: &Dynamic| value.is_char() || value.is_string();
    match is_text(a) && is_text(b) {
        true => Ok(a.to_string() == b.to_string()),
        false => unordered(operator, a, b),
    }
}

fn unordered(operator: &str, a: &Dynamic, b: &Dynamic) -> Outcome<bool> {
    let hint = match (a.is_string(), b.is_string()) {
        (true, _) if number(b).is_some() => ": a text is made a number by `parse_float(text)`",
        (_, true) if number(a).is_some() => ": a text is made a number by `parse_float(text)`",
        _ if a.is_unit() || b.is_unit() => ": write `value ?? 0` for a value that may be missing",
        _ => "",
    };
    fail(format!("`{operator}` of {} and {}{hint}", type_label(a), type_label(b)))
}

fn divide(engine: &mut Engine) {
    engine.register_fn("/", |a: i64, b: i64| -> Outcome<f64> { quotient(a as f64, b as f64, b == 0) });
    engine.register_fn("/", |a: f64, b: i64| a / b as f64);
    engine.register_fn("/", |a: i64, b: f64| a as f64 / b);
    engine.register_fn("/", |a: f64, b: f64| a / b);
}

fn quotient(a: f64, b: f64, is_by_zero: bool) -> Outcome<f64> {
    if is_by_zero { fail(format!("{a} / 0")) } else { Ok(a / b) }
}
