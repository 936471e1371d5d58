//! `bench`: time per decision on made-up instants of growing size.

use std::time::{Duration, Instant};

use rota_core::policy::Policy;

use super::error::TryError;
use crate::commands::sample::{Size, snapshot};
use crate::language::limits::Limits;
use crate::policy::ScriptPolicy;

/// Decisions timed for each size.
const N_DECISIONS: usize = 50;

/// How long decisions on one instant took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How large the instant was.
    pub size: Size,
    /// Half took no longer.
    pub median: Duration,
    /// All but one in a hundred took no longer.
    pub p99: Duration,
    /// Operations of the last one.
    pub operations: u64,
}

/// Times a policy.
pub fn bench(name: &str) -> Result<Vec<Timing>, TryError> {
    let sizes = [(16, 400, 20), (64, 2_000, 100), (1_000, 9_000, 1_000)];
    sizes.into_iter().map(|(n_nodes, n_old, n_new)| time(name, Size { n_nodes, n_old, n_new })).collect()
}

fn time(name: &str, size: Size) -> Result<Timing, TryError> {
    let mut policy = ScriptPolicy::load(name, Limits::default())?;
    let instant = snapshot(size);
    let mut took = Vec::with_capacity(N_DECISIONS);
    for _ in 0..N_DECISIONS {
        let start = Instant::now();
        policy.decide(&instant)?;
        took.push(start.elapsed());
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share).ceil() as usize];
    Ok(Timing { size, median: at(0.5), p99: at(0.99), operations: policy.operations() })
}
