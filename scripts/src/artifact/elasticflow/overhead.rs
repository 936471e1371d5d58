//! What starting costs in the original's simulation, and which starts it thinks are cached.

use std::collections::BTreeSet;

use rota_core::buddy::Shelves;
use rota_core::time::Span;

use super::{Case, Defect};

/// From so many GPUs on the original assumes a slower network.
const LARGE_CLUSTER_GPUS: u32 = 256;

/// Time lost by a job with `gpus` in one round.
pub(super) fn cost_s(gpus: u32, n_gpus: u32, is_restart: bool, is_cached: bool) -> f64 {
    let is_large = n_gpus >= LARGE_CLUSTER_GPUS;
    let base = if is_large { 7.0 } else { 2.0 };
    if is_cached {
        return base;
    }
    let restart = match (is_restart, is_large) {
        (false, _) => 0.0,
        (true, true) => 47.0,
        (true, false) => 27.0,
    };
    base + restart + (f64::from(gpus).ln() / 2.0_f64.ln() + 1.0) * 2.0
}

/// The same as a span; levels are powers of two, so it is whole seconds.
pub(super) fn cost(gpus: u32, n_gpus: u32, is_restart: bool, is_cached: bool) -> Span {
    Span::from_secs_f64(cost_s(gpus, n_gpus, is_restart, is_cached))
}

/// Counts rounds: every so many rounds as a slot has seconds, everything restarts ([`Defect::RestartBySlot`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct RestartCount {
    n_rounds: u64,
    every: u64,
}

impl RestartCount {
    pub(super) fn new(case: &Case) -> Self {
        let by_slot = (case.slot.as_secs_f64() as u64).max(1);
        RestartCount { n_rounds: 0, every: if case.has(Defect::RestartBySlot) { by_slot } else { u64::MAX } }
    }

    /// Whether this round is one, and counts it.
    pub(super) fn next(&mut self) -> bool {
        let is_restart = self.n_rounds > 0 && self.n_rounds.is_multiple_of(self.every);
        self.n_rounds += 1;
        is_restart
    }
}

/// Groups of consecutive GPUs that were used since the last restart; using one again is cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct RankCache(BTreeSet<(u32, u32)>);

impl RankCache {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Tells for every placed gang whether its group was used before, and remembers it. Gangs that fill nodes count
    /// from their first node on, even where their nodes are not neighbours.
    pub(super) fn look(
        &mut self,
        shelves: &Shelves,
        gpus_per_node: u32,
        gpus: impl Fn(u32) -> u32,
        mut tell: impl FnMut(u32, bool),
    ) {
        for home in shelves.homes() {
            let mut rank = home.first_node * gpus_per_node;
            let n_gangs = if home.shelf >= gpus_per_node { 1 } else { home.gangs.len() };
            for &gang in &home.gangs[..n_gangs.min(home.gangs.len())] {
                tell(gang, !self.0.insert((rank, gpus(gang))));
                rank += gpus(gang);
            }
        }
    }
}
