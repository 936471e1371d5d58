//! Tests of the crate as its users see it. Facts about one function are next to the function.

mod chronus_leases;
mod elasticflow_shares;
mod formats;
mod golden_milp;
mod hostile_models;
mod random_models;
mod synergy_levels;
mod synergy_placement;
mod synergy_workloads;

use std::path::PathBuf;

/// A folder of golden cases, where the machine has them.
fn golden(folder: &str) -> Option<PathBuf> {
    rota_test_support::need::shared_path(&format!("golden/{folder}"))
}
