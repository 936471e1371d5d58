//! `bench`: time per decision on made-up instants of growing size.

use std::time::{Duration, Instant};

use rota_core::policy::Policy;

use crate::commands::sample::{Size, snapshot};
use crate::language::limits::Limits;
use crate::policy::ScriptPolicy;

/// Decisions timed for each size.
const N_DECISIONS: usize = 50;

/// How long decisions on one instant took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The instant.
    pub size: Size,
    /// Half took no longer.
    pub median: Duration,
    /// All but one in a hundred took no longer.
    pub p99: Duration,
    /// Operations of the last one.
    pub operations: u64,
}

/// Times a policy. The error is made for people.
pub fn bench(name: &str) -> Result<Vec<Timing>, String> {
    let sizes = [(16, 400, 20), (64, 2_000, 100), (1_000, 9_000, 1_000)];
    sizes.into_iter().map(|(n_nodes, n_old, n_new)| time(name, Size { n_nodes, n_old, n_new })).collect()
}

fn time(name: &str, size: Size) -> Result<Timing, String> {
    let mut policy = ScriptPolicy::load(name, Limits::default()).map_err(|error| error.to_string())?;
    let instant = snapshot(size);
    let mut took = Vec::with_capacity(N_DECISIONS);
    for _ in 0..N_DECISIONS {
        let start = Instant::now();
        policy.decide(&instant).map_err(|error| error.to_string())?;
        took.push(start.elapsed());
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share).ceil() as usize];
    Ok(Timing { size, median: at(0.5), p99: at(0.99), operations: policy.operations() })
}
