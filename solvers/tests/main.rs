//! Tests of the crate as its users see it. Facts about one function stand beside the function.

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

/// A folder of the goldens, or `None` (said plainly) when the machine does not have it.
fn golden(folder: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("ROTA_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = shared.join("golden").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {} is absent (set ROTA_SHARED)", path.display());
    None
}
