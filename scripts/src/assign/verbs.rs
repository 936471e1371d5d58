//! What rules can use besides the language: numbers drawn at random, and turns.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Map};

use super::Luck;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::number;

pub(super) fn register(registrar: &mut Registrar<'_>, luck: &Arc<Luck>) {
    draws(registrar, luck);
    turns(registrar, luck);
}

fn draws(registrar: &mut Registrar<'_>, luck: &Arc<Luck>) {
    let at = Arc::clone(luck);
    registrar
        .function(
            "random() -> float",
            "A number from 0 to 1, drawn for this job: the same seed gives the same.",
        )
        .register_fn("random", move || at.next());
    let at = Arc::clone(luck);
    let engine =
        registrar.function("between(low, high) -> float", "A number from low to high, all alike likely.");
    engine.register_fn("between", move |low: Dynamic, high: Dynamic| -> Outcome<f64> {
        match (number(&low), number(&high)) {
            (Some(low), Some(high)) if low <= high => Ok(low + (high - low) * at.next()),
            _ => fail("between: two ascending numbers are expected"),
        }
    });
    let at = Arc::clone(luck);
    registrar
        .function("normal(mean, deviation) -> float", "A number of the normal distribution.")
        .register_fn("normal", move |mean: Dynamic, deviation: Dynamic| -> Outcome<f64> {
            match (number(&mean), number(&deviation)) {
                (Some(mean), Some(deviation)) => Ok(mean + deviation * gauss(&at)),
                _ => fail("normal: two numbers are expected"),
            }
        });
    let at = Arc::clone(luck);
    registrar
        .function("exponential(mean) -> float", "A number of the exponential distribution.")
        .register_fn("exponential", move |mean: Dynamic| -> Outcome<f64> {
            match number(&mean) {
                Some(mean) => Ok(-mean * (1.0 - at.next()).ln()),
                None => fail("exponential: a number is expected"),
            }
        });
    let at = Arc::clone(luck);
    registrar.function("pick(array) -> value", "An element of an array, all alike likely.").register_fn(
        "pick",
        move |array: Array| -> Outcome<Dynamic> {
            let place = (at.next() * array.len() as f64) as usize;
            array.get(place).cloned().map_or_else(|| fail("pick: the array is empty"), Ok)
        },
    );
    let at = Arc::clone(luck);
    registrar
        .function(
            "pick_by(shares) -> String",
            "A key of a map of shares, each as likely as its share: `pick_by(#{ vision: 20, language: 70, speech: 10 })`. Shares need not add up to anything.",
        )
        .register_fn("pick_by", move |shares: Map| -> Outcome<ImmutableString> {
            let (keys, total) = checked(&shares)?;
            let mut left = at.next() * total;
            for (key, share) in &keys {
                left -= share;
                if left < 0.0 {
                    return Ok((*key).into());
                }
            }
            // The last one with a share takes what rounding leaves.
            match keys.iter().rev().find(|(_, share)| *share > 0.0) {
                Some((key, _)) => Ok((*key).into()),
                None => fail("pick_by: no key has a share"),
            }
        });
}

fn turns(registrar: &mut Registrar<'_>, luck: &Arc<Luck>) {
    let at = Arc::clone(luck);
    registrar
        .function(
            "by_turns(array, name) -> value",
            "The elements of an array one after another, job by job, and again from the front; each name has turns of its own.",
        )
        .register_fn("by_turns", move |array: Array, name: ImmutableString| -> Outcome<Dynamic> {
            let turn = at.turn(|counts| {
                let count = counts.entry(format!("list {name}")).or_default();
                *count += 1;
                *count - 1
            });
            match array.len() as u64 {
                0 => fail("by_turns: the array is empty"),
                n => Ok(array[(turn % n) as usize].clone()),
            }
        });
    let at = Arc::clone(luck);
    registrar
        .function(
            "by_shares(pairs) -> String",
            "Of an array of [key, share], the key that is furthest behind its share so far, the first of equal ones: no chance, and never far off.",
        )
        .register_fn("by_shares", move |pairs: Array| -> Outcome<ImmutableString> {
            let pairs = pairs.iter().map(pair).collect::<Option<Vec<_>>>();
            let Some(pairs) = pairs.filter(|pairs| pairs.iter().any(|(_, share)| *share > 0.0)) else {
                return fail("by_shares: an array of [key, share] with shares that are not all 0 is expected");
            };
            let whole: f64 = pairs.iter().map(|(_, share)| share).sum();
            Ok(at.turn(|counts| {
                let given = |key: &ImmutableString| counts.get(&format!("share {key}")).copied().unwrap_or(0);
                let total: u64 = pairs.iter().map(|(key, _)| given(key)).sum();
                let behind = |(key, share): &(ImmutableString, f64)| match total {
                    0 => 0.0,
                    total => share / whole - given(key) as f64 / total as f64,
                };
                let mut furthest = 0;
                for at in 1..pairs.len() {
                    if behind(&pairs[at]) > behind(&pairs[furthest]) {
                        furthest = at;
                    }
                }
                let key = pairs[furthest].0.clone();
                *counts.entry(format!("share {key}")).or_default() += 1;
                key
            }))
        });
}

fn pair(value: &Dynamic) -> Option<(ImmutableString, f64)> {
    let pair = value.read_lock::<Array>()?;
    match pair.as_slice() {
        [key, share] => {
            let share = number(share).filter(|share| share.is_finite() && *share >= 0.0)?;
            Some((key.clone().into_immutable_string().ok()?, share))
        }
        _ => None,
    }
}

/// Keys with their shares, and the sum of these.
fn checked(shares: &Map) -> Outcome<(Vec<(&str, f64)>, f64)> {
    let one = |(key, value): (&'_ rhai::Identifier, &Dynamic)| {
        let share = number(value).filter(|share| share.is_finite() && *share >= 0.0);
        share.map(|share| (key.as_str().to_owned(), share))
    };
    let all: Option<Vec<(String, f64)>> = shares.iter().map(one).collect();
    match all {
        Some(all) => {
            let total = all.iter().map(|(_, share)| share).sum();
            let keys = shares.keys().map(rhai::Identifier::as_str);
            Ok((keys.zip(all.into_iter().map(|(_, share)| share)).collect(), total))
        }
        None => fail("pick_by: shares are numbers, not negative"),
    }
}

/// A number of the standard normal distribution (Box and Muller).
fn gauss(luck: &Luck) -> f64 {
    let (radius, turn) = (luck.next(), luck.next());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}
