//! ElasticFlow (ASPLOS'23): its functional test, and how far its admission is from the optimum. Its figures are studies.

mod admission;
mod error;
mod functional;

use rota_core::cluster::{Cluster, ClusterError, NodeGroup};
use rota_core::resources::Host;
use rota_scripts::artifact::elasticflow::Scheduler;

pub use admission::{admission, n_runs};
pub use error::ReproduceError;
pub use functional::{FunctionalReport, FunctionalRun, README, TEN_JOBS, functional};

/// A scheduler of the paper under both its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The shipped policy.
    pub policy: &'static str,
    /// What the original calls it.
    pub original: &'static str,
    /// The original's scheduler.
    pub scheduler: Scheduler,
}

/// The five schedulers of the artifact's scripts, ElasticFlow first; every table has them in this order.
pub const CONTENDERS: [Contender; 5] = [
    Contender { policy: "elasticflow", original: "ef-accessctrl", scheduler: Scheduler::ElasticFlow },
    Contender { policy: "edf", original: "edf", scheduler: Scheduler::Edf },
    Contender { policy: "gandiva", original: "gandiva", scheduler: Scheduler::Gandiva },
    Contender { policy: "tiresias", original: "dlas-gpu", scheduler: Scheduler::Tiresias },
    Contender { policy: "themis", original: "themis", scheduler: Scheduler::Themis },
];

/// Servers of eight A100 GPUs, as the artifact's cluster files describe them.
fn servers(n_nodes: u32) -> Result<Cluster, ClusterError> {
    let group = NodeGroup {
        count: n_nodes,
        racks: 1,
        gpu_type: "A100".into(),
        n_gpus: 8,
        gpu_mem_bytes: 0,
        host: Host::from_units(64.0, 256.0, 0.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    Cluster::new(format!("n{n_nodes}g8"), &[group])
}
