//! From a script's map to the settings of runs: types are translated here, and `sweep` multiplied out.

use rhai::{Array, Dynamic, Map};

use super::{Setting, Settings};
use crate::language::session::{Outcome, fail};
use crate::values::type_label;

/// Runs that one sweep may describe.
const MAX_RUNS: usize = 1_000_000;

/// The settings of one run.
pub(super) fn settings(map: Map) -> Outcome<Settings> {
    let mut settings = Vec::with_capacity(map.len());
    for (name, value) in map {
        settings.push((name.to_string(), setting(&name, value)?));
    }
    Ok(settings)
}

/// Every combination of the values that a map lists; the last name varies fastest.
pub(super) fn combinations(map: Map) -> Outcome<Vec<Settings>> {
    let mut all: Vec<Settings> = vec![Vec::new()];
    for (name, value) in map {
        let values = several(&name, value)?;
        if all.len().saturating_mul(values.len()) > MAX_RUNS {
            return fail(format!("sweep: more than {MAX_RUNS} runs"));
        }
        let with = |so_far: &Settings, value: &Setting| {
            let mut more = so_far.clone();
            more.push((name.to_string(), value.clone()));
            more
        };
        all = all.iter().flat_map(|so_far| values.iter().map(|value| with(so_far, value))).collect();
    }
    Ok(all)
}

/// The values of one name: the elements of an array, the numbers of a range, every combination of what a map lists, or the
/// one that it is.
fn several(name: &str, value: Dynamic) -> Outcome<Vec<Setting>> {
    if let Some(range) = value.clone().try_cast::<std::ops::Range<i64>>() {
        return whole_numbers(name, range.start, range.end);
    }
    if let Some(range) = value.clone().try_cast::<std::ops::RangeInclusive<i64>>() {
        return whole_numbers(name, *range.start(), range.end().saturating_add(1));
    }
    match value.try_cast_result::<Array>() {
        Ok(values) if values.is_empty() => fail(format!("sweep: {name}: no value")),
        Ok(values) => values.into_iter().map(|value| setting(name, value)).collect(),
        Err(value) => match value.try_cast_result::<Map>() {
            Ok(map) => Ok(combinations(map)?.into_iter().map(Setting::Pairs).collect()),
            Err(value) => Ok(vec![setting(name, value)?]),
        },
    }
}

fn whole_numbers(name: &str, from: i64, to: i64) -> Outcome<Vec<Setting>> {
    match usize::try_from(to.saturating_sub(from)) {
        Ok(n) if (1..=MAX_RUNS).contains(&n) => Ok((from..to).map(Setting::Whole).collect()),
        _ => fail(format!("sweep: {name}: {from}..{to} holds no number, or too many")),
    }
}

fn setting(name: &str, value: Dynamic) -> Outcome<Setting> {
    if let Ok(flag) = value.as_bool() {
        return Ok(Setting::Flag(flag));
    }
    if let Ok(whole) = value.as_int() {
        return Ok(Setting::Whole(whole));
    }
    if let Ok(number) = value.as_float() {
        return if number.is_finite() {
            Ok(Setting::Number(number))
        } else {
            fail(format!("{name}: {number} is not a finite number"))
        };
    }
    if value.is_string() {
        return Ok(Setting::Text(value.to_string()));
    }
    match value.clone().try_cast::<Array>() {
        Some(values) => {
            let values: Outcome<Vec<Setting>> =
                values.into_iter().map(|value| setting(name, value)).collect();
            Ok(Setting::List(values?))
        }
        None => match value.clone().try_cast::<Map>() {
            Some(map) => Ok(Setting::Pairs(settings(map)?)),
            None => fail(format!("{name}: {} cannot be a setting", type_label(&value))),
        },
    }
}
