//! The papers' figures again: published numbers, the original's rules and the shipped policies side by side, with claims
//! that can fail.
//!
//! ```text
//! papers/        what each figure runs and needs, what is published about it, what is claimed about it
//! chronus/       every published trace of Chronus under it and its baselines
//! elasticflow/   functional  the original's own test: five schedulers, one server, ten jobs
//!                admission   the greedy admission compared with a model's
//! gpemu/         GPEmu's Synergy run on a live cluster of emulated agents, and what must hold of its completion times
//! rows ─▶ evidence ─▶ claims ─▶ reproduced (text, Markdown), page and plots, kept (claims.json)
//! ```
//!
//! How the originals behave is in `rota_scripts::artifact`, what the shipped policies decide in their scripts.

pub mod chronus;
pub mod claims;
pub mod elasticflow;
mod error;
pub mod evidence;
pub mod gpemu;
mod kept;
mod page;
pub mod papers;
mod plots;
pub mod quantity;
mod reproduced;
mod rows;

use rota_core::cluster::{Cluster, ClusterError, NodeGroup};
use rota_core::resources::Host;

pub use error::ReproduceError;
pub use kept::FILE;
pub use reproduced::{ALONE, DefectRow, NONE, Reproduced, SHIPPED, over_all_figures};
pub use rows::{at_of, rows, seed_of, with_baseline};

/// Servers of eight GPUs, as the originals' cluster files describe them: alike, below one switch, without storage.
fn servers(n_nodes: u32, gpu_type: &str, cpus: f64) -> Result<Cluster, ClusterError> {
    let group = NodeGroup {
        count: n_nodes,
        racks: 1,
        gpu_type: gpu_type.into(),
        n_gpus: 8,
        gpu_mem_bytes: 0,
        host: Host::from_units(cpus, 256.0, 0.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    Cluster::new(format!("n{n_nodes}g8"), &[group])
}
