//! What can keep a figure from being reproduced.

use rota_core::cluster::ClusterError;
use rota_core::simulation::SimulationError;
use rota_core::workload::WorkloadError;
use rota_scripts::LoadError;
use rota_scripts::artifact::{chronus, elasticflow};
use rota_traces::error::InputError;

/// A figure that cannot be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A trace cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A trace with jobs that are not valid.
    #[error("{file}: {error}")]
    Workload {
        /// The file of the trace.
        file: &'static str,
        /// What is wrong with it.
        error: WorkloadError,
    },
    /// A cluster that is not valid.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A shipped policy does not compile.
    #[error(transparent)]
    Policy(#[from] LoadError),
    /// A run had to stop.
    #[error("{policy} on {trace}: {error}")]
    Run {
        /// The policy that was run.
        policy: &'static str,
        /// Name of the trace.
        trace: &'static str,
        /// What went wrong.
        error: SimulationError,
    },
    /// The driver of ElasticFlow's program refused.
    #[error("{policy} on {trace}: {error}")]
    Elasticflow {
        /// The scheduler, by the original's name.
        policy: &'static str,
        /// Name of the trace.
        trace: &'static str,
        /// What went wrong.
        error: elasticflow::ArtifactError,
    },
    /// The driver of Chronus' program refused.
    #[error("chronus on {trace}: {error}")]
    Chronus {
        /// Name of the trace.
        trace: &'static str,
        /// What went wrong.
        error: chronus::ArtifactError,
    },
}
