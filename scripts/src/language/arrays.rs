//! Functions of arrays and maps that take a function, in place of Rhai's own, which swallow errors: a comparison that
//! fails or gives no whole number leaves the order as it is, and a condition that is not true or false counts as false.
//! Here each of these is an error with its line.

use std::cmp::Ordering;
use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, FnPtr, Map, NativeCallContext};

use crate::language::session::{Outcome, Shared, fail};
use crate::values::{number, type_label};

pub(crate) fn register(engine: &mut Engine, shared: &Arc<Shared>) {
    sorting(engine, shared);
    filtering(engine);
    maps(engine);
    engine.register_fn("set", |array: &mut Array, index: i64, value: Dynamic| -> Outcome<()> {
        let n_items = array.len();
        let from_end = if index < 0 { index + n_items as i64 } else { index };
        match usize::try_from(from_end).ok().and_then(|place| array.get_mut(place)) {
            Some(item) => {
                *item = value;
                Ok(())
            }
            None => fail(format!("set: index {index} is outside of an array of {n_items}")),
        }
    });
}

fn sorting(engine: &mut Engine, shared: &Arc<Shared>) {
    for name in ["sort", "sort_by"] {
        let host = Arc::clone(shared);
        engine.register_fn(
            name,
            move |ctx: NativeCallContext, array: &mut Array, by: FnPtr| -> Outcome<()> {
                *array = sorted(&ctx, &host, name, array, &by)?;
                Ok(())
            },
        );
    }
    for name in ["order", "order_by"] {
        let host = Arc::clone(shared);
        engine.register_fn(name, move |ctx: NativeCallContext, array: &mut Array, by: FnPtr| {
            sorted(&ctx, &host, name, array, &by)
        });
    }
    for (name, is_descending) in [("sort", false), ("sort_desc", true)] {
        let host = Arc::clone(shared);
        engine.register_fn(name, move |array: &mut Array| -> Outcome<()> {
            *array = by_themselves(&host, name, array, is_descending)?;
            Ok(())
        });
    }
    for (name, is_descending) in [("order", false), ("order_desc", true)] {
        let host = Arc::clone(shared);
        engine.register_fn(name, move |array: &mut Array| by_themselves(&host, name, array, is_descending));
    }
}

/// The items in the order of a key, which a function of one item gives, or of a comparison of two items.
fn sorted(ctx: &NativeCallContext, shared: &Shared, name: &str, array: &Array, by: &FnPtr) -> Outcome<Array> {
    charge(shared, array.len())?;
    if n_arguments(ctx, by) == Some(1) {
        let keys = array.iter().map(|item| {
            let key = by.call_raw(ctx, None, [item.clone()])?;
            Key::of(name, &key).map(|key| (key, item.clone()))
        });
        return by_key(name, keys.collect::<Outcome<_>>()?);
    }
    let mut compare = |a: &Dynamic, b: &Dynamic| {
        let answer = by.call_raw(ctx, None, [a.clone(), b.clone()])?;
        match answer.as_int() {
            Ok(whole) => Ok(whole.cmp(&0)),
            Err(_) => fail(format!(
                "{name}: a comparison of two must return a whole number (below 0, 0, above 0), got {} ({answer}); to sort by \
                 a number write `sort_by(|x| number)`",
                type_label(&answer)
            )),
        }
    };
    merge_sort(array.clone(), &mut compare)
}

fn by_themselves(shared: &Shared, name: &str, array: &Array, is_descending: bool) -> Outcome<Array> {
    charge(shared, array.len())?;
    let keys = array.iter().map(|item| Key::of(name, item).map(|key| (key, item.clone())));
    let mut items = by_key(name, keys.collect::<Outcome<_>>()?)?;
    if is_descending {
        items.reverse();
    }
    Ok(items)
}

fn charge(shared: &Shared, n_items: usize) -> Outcome<()> {
    let n_compared = n_items * (usize::BITS - n_items.leading_zeros()) as usize;
    shared.meter.charge(n_compared * 4)
}

/// How many arguments a function takes besides those it has captured; `None` for one that is not written in a script.
fn n_arguments(ctx: &NativeCallContext, pointer: &FnPtr) -> Option<usize> {
    let modules = ctx.global_runtime_state().lib.iter();
    let mut written = modules.flat_map(|module| module.iter_script_fn_info());
    let found = written.find(|(_, _, name, ..)| *name == pointer.fn_name());
    found.map(|(_, _, _, n_parameters, _)| n_parameters.saturating_sub(pointer.curry().len()))
}

/// What items are sorted by.
struct Key(Vec<Piece>);

enum Piece {
    Number(f64),
    Text(String),
}

impl Key {
    fn of(name: &str, value: &Dynamic) -> Outcome<Key> {
        match value.read_lock::<Array>() {
            Some(items) => items.iter().map(|item| piece(name, item)).collect::<Outcome<_>>().map(Key),
            None => piece(name, value).map(|piece| Key(vec![piece])),
        }
    }

    fn compare(&self, other: &Key, name: &str) -> Outcome<Ordering> {
        for pair in self.0.iter().zip(&other.0) {
            let order = match pair {
                (Piece::Number(a), Piece::Number(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
                (Piece::Text(a), Piece::Text(b)) => a.cmp(b),
                _ => return fail(format!("{name}: some keys are numbers and some are texts")),
            };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(self.0.len().cmp(&other.0.len()))
    }
}

fn piece(name: &str, value: &Dynamic) -> Outcome<Piece> {
    match number(value) {
        Some(number) if number.is_nan() => fail(format!("{name}: a key is not a number (NaN)")),
        Some(number) => Ok(Piece::Number(number)),
        None if value.is_string() || value.is_char() => Ok(Piece::Text(value.to_string())),
        None => fail(format!(
            "{name}: items are sorted by numbers, texts or arrays of these, got {}; give a key, as in \
             `sort_by(|job| job.deadline)`",
            type_label(value)
        )),
    }
}

fn by_key(name: &str, items: Vec<(Key, Dynamic)>) -> Outcome<Array> {
    let sorted = merge_sort(items, &mut |a: &(Key, Dynamic), b| a.0.compare(&b.0, name))?;
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}

/// A stable sort whose comparison may fail, and may contradict itself without a panic.
fn merge_sort<T>(items: Vec<T>, compare: &mut impl FnMut(&T, &T) -> Outcome<Ordering>) -> Outcome<Vec<T>> {
    let mut runs: Vec<Vec<T>> = items.into_iter().map(|item| vec![item]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut left_over = runs.into_iter();
        while let Some(left) = left_over.next() {
            merged.push(match left_over.next() {
                Some(right) => merge(left, right, compare)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge<T>(
    left: Vec<T>,
    right: Vec<T>,
    compare: &mut impl FnMut(&T, &T) -> Outcome<Ordering>,
) -> Outcome<Vec<T>> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let takes_right = compare(a, b)?.is_gt();
        merged.extend(if takes_right { right.next() } else { left.next() });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

fn filtering(engine: &mut Engine) {
    engine.register_fn("filter", |ctx: NativeCallContext, array: &mut Array, condition: FnPtr| {
        split(&ctx, "filter", array, &condition).map(|(meeting, _)| meeting)
    });
    engine.register_fn(
        "retain",
        |ctx: NativeCallContext, array: &mut Array, condition: FnPtr| -> Outcome<Array> {
            let (meeting, others) = split(&ctx, "retain", array, &condition)?;
            *array = meeting;
            Ok(others)
        },
    );
    engine.register_fn(
        "drain",
        |ctx: NativeCallContext, array: &mut Array, condition: FnPtr| -> Outcome<Array> {
            let (meeting, others) = split(&ctx, "drain", array, &condition)?;
            *array = others;
            Ok(meeting)
        },
    );
    engine.register_fn("some", |ctx: NativeCallContext, array: &mut Array, condition: FnPtr| {
        position(&ctx, "some", array, 0, &condition, true).map(|found| found.is_some())
    });
    engine.register_fn("all", |ctx: NativeCallContext, array: &mut Array, condition: FnPtr| {
        position(&ctx, "all", array, 0, &condition, false).map(|found| found.is_none())
    });
    for name in ["find", "index_of"] {
        let answer = move |array: &Array, found: Option<usize>| match (name, found) {
            ("find", Some(place)) => array[place].clone(),
            ("find", None) => Dynamic::UNIT,
            (_, found) => Dynamic::from(found.map_or(-1, |place| place as i64)),
        };
        engine.register_fn(name, move |ctx: NativeCallContext, array: &mut Array, condition: FnPtr| {
            position(&ctx, name, array, 0, &condition, true).map(|found| answer(array, found))
        });
        engine.register_fn(
            name,
            move |ctx: NativeCallContext, array: &mut Array, condition: FnPtr, start: i64| {
                let from_end = if start < 0 { start + array.len() as i64 } else { start };
                let start = usize::try_from(from_end).unwrap_or(0);
                position(&ctx, name, array, start, &condition, true).map(|found| answer(array, found))
            },
        );
    }
    engine.register_fn("dedup", |ctx: NativeCallContext, array: &mut Array| {
        dedup(array, |a, b| {
            let answer = ctx.call_native_fn_raw("==", true, &mut [&mut a.clone(), &mut b.clone()])?;
            truth("dedup", &answer)
        })
    });
    engine.register_fn("dedup", |ctx: NativeCallContext, array: &mut Array, is_same: FnPtr| {
        dedup(array, |a, b| truth("dedup", &is_same.call_raw(&ctx, None, [a.clone(), b.clone()])?))
    });
}

fn truth(name: &str, answer: &Dynamic) -> Outcome<bool> {
    match answer.as_bool() {
        Ok(is_so) => Ok(is_so),
        Err(_) => fail(format!("{name}: the function must return true or false, got {}", type_label(answer))),
    }
}

fn holds(
    ctx: &NativeCallContext,
    name: &str,
    condition: &FnPtr,
    item: &mut Dynamic,
    index: usize,
) -> Outcome<bool> {
    let index = [Dynamic::from(index as i64)];
    truth(name, &condition.call_raw_with_extra_args(name, ctx, Some(item), [], index, Some(0))?)
}

/// The items that meet a condition, and the others.
fn split(ctx: &NativeCallContext, name: &str, array: &Array, condition: &FnPtr) -> Outcome<(Array, Array)> {
    let (mut meeting, mut others) = (Array::new(), Array::new());
    for (index, item) in array.iter().enumerate() {
        let mut item = item.clone();
        let is_met = holds(ctx, name, condition, &mut item, index)?;
        if is_met { meeting.push(item) } else { others.push(item) }
    }
    Ok((meeting, others))
}

/// The first place from `start` on where a condition is, or is not, met.
fn position(
    ctx: &NativeCallContext,
    name: &str,
    array: &Array,
    start: usize,
    condition: &FnPtr,
    wanted: bool,
) -> Outcome<Option<usize>> {
    for (index, item) in array.iter().enumerate().skip(start) {
        if holds(ctx, name, condition, &mut item.clone(), index)? == wanted {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Drops items that are the same as the one kept before them.
fn dedup(array: &mut Array, mut is_same: impl FnMut(&Dynamic, &Dynamic) -> Outcome<bool>) -> Outcome<()> {
    let mut kept = Array::with_capacity(array.len());
    for item in array.iter() {
        let is_repeated = match kept.last() {
            Some(last) => is_same(last, item)?,
            None => false,
        };
        if !is_repeated {
            kept.push(item.clone());
        }
    }
    *array = kept;
    Ok(())
}

fn maps(engine: &mut Engine) {
    engine.register_fn("filter", |ctx: NativeCallContext, map: &mut Map, condition: FnPtr| {
        split_map(&ctx, "filter", map, &condition).map(|(meeting, _)| meeting)
    });
    engine.register_fn("retain", |ctx: NativeCallContext, map: &mut Map, condition: FnPtr| -> Outcome<Map> {
        let (meeting, others) = split_map(&ctx, "retain", map, &condition)?;
        *map = meeting;
        Ok(others)
    });
    engine.register_fn("drain", |ctx: NativeCallContext, map: &mut Map, condition: FnPtr| -> Outcome<Map> {
        let (meeting, others) = split_map(&ctx, "drain", map, &condition)?;
        *map = others;
        Ok(meeting)
    });
    // Job numbers and other whole numbers as keys, as in `map[job.id]`.
    engine.register_fn("contains", |map: &mut Map, key: i64| map.contains_key(key.to_string().as_str()));
    engine.register_fn("get", |map: &mut Map, key: i64| {
        map.get(key.to_string().as_str()).cloned().unwrap_or(Dynamic::UNIT)
    });
    engine.register_fn("set", |map: &mut Map, key: i64, value: Dynamic| {
        map.insert(key.to_string().into(), value);
    });
    engine.register_fn("remove", |map: &mut Map, key: i64| {
        map.remove(key.to_string().as_str()).unwrap_or(Dynamic::UNIT)
    });
}

/// The entries that meet a condition on their key (and value), and the others.
fn split_map(ctx: &NativeCallContext, name: &str, map: &Map, condition: &FnPtr) -> Outcome<(Map, Map)> {
    let (mut meeting, mut others) = (Map::new(), Map::new());
    for (key, value) in map {
        let mut value = value.clone();
        let key_argument = [Dynamic::from(key.to_string())];
        let answer =
            condition.call_raw_with_extra_args(name, ctx, Some(&mut value), key_argument, [], Some(1))?;
        let side = if truth(name, &answer)? { &mut meeting } else { &mut others };
        side.insert(key.clone(), value);
    }
    Ok((meeting, others))
}
