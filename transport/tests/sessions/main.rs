//! Head and agent over a network that loses, doubles, delays and cuts, with crashes of both, on a virtual clock.
//!
//! A failure prints its seed; `ROTA_SEED=N` runs that one alone.

mod rules;
mod world;

use world::{Faults, World};

const CALM: Faults = Faults { loss: 0.0, doubling: 0.0, most_delay_ms: 5, cuts: false, crashes: false };

fn seeds(n: u64) -> impl Iterator<Item = u64> {
    let one = std::env::var("ROTA_SEED").ok().and_then(|text| text.parse().ok());
    let all = if one.is_some() { 0..0 } else { 0..n };
    all.chain(one)
}

#[test]
fn nothing_is_lost_or_doubled_on_a_good_network() {
    for seed in seeds(20) {
        World::new(seed, CALM).run();
    }
}

#[test]
fn orders_are_carried_out_once_over_loss_doubling_and_disorder() {
    for seed in seeds(300) {
        let faults = Faults { loss: 0.2, doubling: 0.2, most_delay_ms: 900, ..CALM };
        World::new(seed, faults).run();
    }
}

#[test]
fn cuts_shorter_and_longer_than_the_lease_keep_every_promise() {
    let mut n_leases_over = 0;
    for seed in seeds(300) {
        let faults = Faults { loss: 0.05, doubling: 0.05, most_delay_ms: 300, cuts: true, crashes: false };
        n_leases_over += World::new(seed, faults).run();
    }
    assert!(
        n_leases_over > 50 || std::env::var_os("ROTA_SEED").is_some(),
        "cuts longer than a lease were tried"
    );
}

#[test]
fn crashes_of_head_and_agent_keep_every_promise() {
    for seed in seeds(300) {
        let faults = Faults { loss: 0.1, doubling: 0.1, most_delay_ms: 300, cuts: true, crashes: true };
        World::new(seed, faults).run();
    }
}
