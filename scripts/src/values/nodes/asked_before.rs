//! The last placement that `place_by` was given: as long as its closure captured the same numbers and texts, it would write the
//! same formula again, which is most of the work in a round in which little changes.

use rhai::{Array, Dynamic, ImmutableString, Map};

use crate::language::limits::Meter;
use crate::language::session::{Closure, Outcome};
use crate::values::Placement;

/// A closure with what it captured, and the placement that it returned.
#[derive(Debug)]
pub(crate) struct AskedBefore {
    closure: Closure,
    captured: Vec<Dynamic>,
    placement: Placement,
}

impl AskedBefore {
    /// What to keep; nothing where the answer may depend on more than plain values, such as a view.
    pub(crate) fn new(closure: &Closure, placement: &Placement) -> Option<AskedBefore> {
        let captured = closure.captured().iter().map(plain).collect::<Option<Vec<Dynamic>>>()?;
        let (closure, placement) = (closure.without_captured(), placement.clone());
        placement.is_lasting().then_some(AskedBefore { closure, captured, placement })
    }

    /// The placement, if this closure would return the same.
    pub(crate) fn answer(&self, meter: &Meter, closure: &Closure) -> Outcome<Option<Placement>> {
        let captured = closure.captured();
        if !self.closure.is_same_function(closure) || captured.len() != self.captured.len() {
            return Ok(None);
        }
        let mut n_looks = 0;
        let is_same = self.captured.iter().zip(captured).all(|(a, b)| is_same(a, b, &mut n_looks));
        meter.charge(n_looks)?;
        Ok(is_same.then(|| self.placement.clone()))
    }
}

/// A copy that shares nothing; `None` for anything but numbers, texts, truths, arrays and maps.
fn plain(value: &Dynamic) -> Option<Dynamic> {
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(plain).collect::<Option<Array>>().map(Dynamic::from);
    }
    if let Some(map) = value.read_lock::<Map>() {
        let copy = map.iter().map(|(key, value)| Some((key.clone(), plain(value)?))).collect::<Option<Map>>();
        return copy.map(Dynamic::from);
    }
    let flat = value.flatten_clone();
    (flat.is_unit() || flat.is_bool() || flat.is_int() || flat.is_float() || flat.is_string()).then_some(flat)
}

fn is_same(a: &Dynamic, b: &Dynamic, n_looks: &mut usize) -> bool {
    *n_looks += 1;
    if let (Some(a), Some(b)) = (a.read_lock::<Array>(), b.read_lock::<Array>()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_same(a, b, n_looks));
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Map>(), b.read_lock::<Map>()) {
        let mut pairs = a.iter().zip(b.iter());
        return a.len() == b.len()
            && pairs.all(|((key, a), (other, b))| key == other && is_same(a, b, n_looks));
    }
    if let (Some(a), Some(b)) = (a.read_lock::<ImmutableString>(), b.read_lock::<ImmutableString>()) {
        return *a == *b;
    }
    match (a.as_float(), b.as_float()) {
        (Ok(a), Ok(b)) => a.to_bits() == b.to_bits(),
        (Err(_), Err(_)) => {
            let is_same_int = a.as_int().is_ok_and(|a| b.as_int() == Ok(a));
            let is_same_bool = a.as_bool().is_ok_and(|a| b.as_bool() == Ok(a));
            is_same_int || is_same_bool || (a.is_unit() && b.is_unit())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        let engine = rhai::Engine::new();
        let value = |text: &str| engine.eval::<Dynamic>(text).expect("a value");
        is_same(&value(a), &value(b), &mut 0)
    }

    #[test]
    fn plain_values_are_the_same_if_all_their_parts_are() {
        for text in ["1", "1.5", "true", "()", "\"a\"", "[1, [2.0, \"b\"]]", "#{ a: 1, b: [#{ c: 2.5 }] }"] {
            assert!(same(text, text), "{text}");
        }
        for (a, b) in [
            ("1", "2"),
            ("1", "1.0"),
            ("0.0", "-0.0"),
            ("true", "false"),
            ("()", "false"),
            ("[1, 2]", "[1]"),
            ("[1, 2]", "[1, 3]"),
            ("#{ a: 1 }", "#{ b: 1 }"),
            ("#{ a: 1 }", "#{ a: 2 }"),
            ("#{ a: 1 }", "#{ a: 1, b: 1 }"),
            ("\"a\"", "\"b\""),
        ] {
            assert!(!same(a, b) && !same(b, a), "{a} and {b}");
        }
    }

    #[test]
    fn what_is_not_plain_is_not_kept() {
        assert!(plain(&Dynamic::from(vec![Dynamic::from(std::time::Duration::ZERO)])).is_none());
        let shared = Dynamic::from(3_i64).into_shared();
        let copy = plain(&shared).expect("a number");
        *shared.clone().write_lock::<i64>().expect("a number") = 4;
        assert_eq!(copy.as_int(), Ok(3), "a copy does not change with what it was made from");
    }
}
