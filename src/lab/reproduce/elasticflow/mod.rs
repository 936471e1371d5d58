//! ElasticFlow (ASPLOS'23): its functional test, and how far its admission is from the optimum. Its figures are studies.

mod admission;
mod functional;

use rota_core::cluster::{Cluster, ClusterError};
use rota_scripts::artifact::elasticflow::Scheduler;

pub use admission::{admission, n_runs};
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

/// Servers of A100 GPUs with the CPUs that the artifact's cluster files give them.
fn servers(n_nodes: u32) -> Result<Cluster, ClusterError> {
    super::servers(n_nodes, "A100", 64.0)
}
