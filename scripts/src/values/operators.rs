//! Operators that types of many numbers share: columns and matrices apply them number by number.

/// A condition as a number.
pub(super) fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// Registers the operators of a type. The file that uses it has `pairwise!`, which registers an operator of two numbers for
/// every mix of types, and `map`, which computes each number anew. A macro, not a table of functions: each operator is compiled
/// into its own loop.
macro_rules! operators {
    ($registrar:expr, $owner:ident, $pairwise:ident, arithmetic: $arithmetic:expr, comparison: $comparison:expr) => {
        let owner = stringify!($owner);
        let signature = concat!("a + b, a - b, a * b, a / b -> ", stringify!($owner));
        let engine = $registrar.method(owner, signature, $arithmetic);
        $pairwise!(engine, "+", |x, y| x + y);
        $pairwise!(engine, "-", |x, y| x - y);
        $pairwise!(engine, "*", |x, y| x * y);
        $pairwise!(engine, "/", |x, y| x / y);
        engine.register_fn("-", |a: $owner| map(a, |x| -x));
        let signature = concat!("a < b, <=, >, >=, ==, != -> ", stringify!($owner));
        let engine = $registrar.method(owner, signature, $comparison);
        $pairwise!(engine, "<", |x, y| truth(x < y));
        $pairwise!(engine, "<=", |x, y| truth(x <= y));
        $pairwise!(engine, ">", |x, y| truth(x > y));
        $pairwise!(engine, ">=", |x, y| truth(x >= y));
        $pairwise!(engine, "==", |x, y| truth(x == y));
        $pairwise!(engine, "!=", |x, y| truth(x != y));
        let signature = concat!("a & b, a | b, !a -> ", stringify!($owner));
        let engine = $registrar.method(owner, signature, "And, or, not of conditions; 0 is false.");
        $pairwise!(engine, "&", |x, y| truth(x != 0.0 && y != 0.0));
        $pairwise!(engine, "|", |x, y| truth(x != 0.0 || y != 0.0));
        engine.register_fn("!", |a: $owner| map(a, |x| truth(x == 0.0)));
    };
}
pub(super) use operators;
