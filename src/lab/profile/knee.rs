//! Where more resources stop helping: what a job should ask for.

use std::collections::BTreeMap;

/// What a job should ask for, for each GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// CPUs in millionths.
    pub cpu_micro: u64,
    /// Memory in bytes.
    pub mem_bytes: u64,
    /// Storage rate in bytes per second; 0 when unknown.
    pub storage_bps: u64,
    /// The GPU count from which more do not help, by batch.
    pub most_gpus: BTreeMap<u32, u32>,
}

/// The lowest level whose speed is within a fraction `flat` of the best.
pub fn knee(points: &[(u64, f64)], flat: f64) -> Option<u64> {
    let best = points.iter().map(|point| point.1).fold(0.0, f64::max);
    points.iter().find(|point| point.1 >= (1.0 - flat) * best).map(|point| point.0)
}

/// The last level reached by growing: each next one is faster by more than `flat`.
pub fn last_growth(points: &[(u64, f64)], flat: f64) -> Option<u64> {
    let n_steps = points.windows(2).take_while(|pair| pair[1].1 > pair[0].1 * (1.0 + flat)).count();
    points.get(n_steps).map(|point| point.0)
}
