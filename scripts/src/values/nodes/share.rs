//! Shares: CPUs, memory and storage rate, as a demand or as what a job holds.

use rhai::ImmutableString;
use rota_core::resources::Host;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::number;

/// A share from what a script wrote; every amount must be a number, not negative and not absurd.
pub(crate) fn checked(cpus: f64, mem_gb: f64, storage_mb_per_s: f64) -> Outcome<Host> {
    const MOST: f64 = 1e9;
    for (what, amount) in [("CPUs", cpus), ("GB of memory", mem_gb), ("MB/s of storage", storage_mb_per_s)] {
        if !(0.0..=MOST).contains(&amount) {
            return fail(format!("a share of {amount} {what}: amounts go from 0 to {MOST}"));
        }
    }
    Ok(Host::from_units(cpus, mem_gb, storage_mb_per_s))
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Share";
    registrar.class::<Host>(OWNER, "CPUs, memory and storage rate: what a job asks for or holds, in all.");
    registrar.field(OWNER, "cpus: float", "CPUs.").register_get("cpus", |share: &mut Host| share.cpus());
    registrar
        .field(OWNER, "mem_gb: float", "Memory in gigabytes.")
        .register_get("mem_gb", |share: &mut Host| share.mem_gb());
    registrar
        .field(OWNER, "storage: float", "Storage rate in megabytes per second.")
        .register_get("storage", |share: &mut Host| share.storage_mb_per_s());
    registrar
        .function(
            "share(cpus: float, mem_gb: float, storage: float) -> Share",
            "A share of so much; numbers may be whole.",
        )
        .register_fn(
            "share",
            |cpus: rhai::Dynamic, mem_gb: rhai::Dynamic, storage: rhai::Dynamic| -> Outcome<Host> {
                match (number(&cpus), number(&mem_gb), number(&storage)) {
                    (Some(cpus), Some(mem_gb), Some(storage)) => checked(cpus, mem_gb, storage),
                    _ => fail("share: takes three numbers (CPUs, gigabytes, megabytes per second)"),
                }
            },
        );
    registrar
        .function("min(a: Share, b: Share) -> Share", "The smaller of each amount.")
        .register_fn("min", |a: Host, b: Host| a.min(&b));
    registrar
        .function("max(a: Share, b: Share) -> Share", "The larger of each amount.")
        .register_fn("max", |a: Host, b: Host| a.max(&b));
    let engine = registrar.method(
        OWNER,
        "share * factor -> Share",
        "Every amount times a number that is not negative.",
    );
    engine.register_fn("*", |share: Host, factor: f64| scaled(&share, factor));
    engine.register_fn("*", |share: Host, factor: i64| times(&share, factor));
    let engine = registrar.method(
        OWNER,
        "a + b -> Share",
        "Both together. `a - b` is what is left, nothing of an amount where `b` has more.",
    );
    engine.register_fn("+", |a: Host, b: Host| match a.checked_add(&b) {
        Some(sum) => Ok(sum),
        None => fail(format!("{a} and {b} add up to more than can be counted")),
    });
    engine.register_fn("-", |a: Host, b: Host| a.saturating_sub(&b));
    let engine = registrar.method(
        OWNER,
        "share / count -> Share",
        "The part of one of so many, each amount rounded down, so that all parts together never exceed the whole.",
    );
    engine.register_fn("/", |share: Host, count: i64| match u32::try_from(count) {
        Ok(count) if count > 0 => Ok(share.per(count)),
        _ => fail(format!("a share cannot be divided by {count}")),
    });
    registrar
        .method(OWNER, "a == b, a != b -> bool", "Whether all amounts are the same.")
        .register_fn("==", |a: Host, b: Host| a == b)
        .register_fn("!=", |a: Host, b: Host| a != b);
    registrar
        .method(OWNER, "fits_in(other: Share) -> bool", "Whether no amount is larger than the other's.")
        .register_fn("fits_in", |share: Host, other: Host| share.fits_in(&other));
    registrar.unknown_field::<Host>(OWNER);
    registrar.engine().register_fn("to_string", |share: &mut Host| ImmutableString::from(share.to_string()));
}

/// Exact, as many GPUs need so many times what one needs.
fn times(share: &Host, factor: i64) -> Outcome<Host> {
    match u32::try_from(factor) {
        Ok(count) => {
            let all = share.times(count);
            checked(all.cpus(), all.mem_gb(), all.storage_mb_per_s()).map(|_| all)
        }
        Err(_) => scaled(share, factor as f64),
    }
}

fn scaled(share: &Host, factor: f64) -> Outcome<Host> {
    checked(share.cpus() * factor, share.mem_gb() * factor, share.storage_mb_per_s() * factor)
}
