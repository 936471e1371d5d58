//! Why an original cannot run.

use rota_core::time::Span;
use rota_scripts::artifact::elasticflow::Scheduler;
use rota_scripts::artifact::{chronus, elasticflow, synergy};

use super::ParameterError;

/// A run of an original that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum OriginalError {
    /// A policy that no original has.
    #[error("compat=artifact: {0}; ElasticFlow's original has {names}; Chronus' is chronus", names = names())]
    Policy(#[from] synergy::SchemeError),
    /// A parameter that Chronus' program cannot have.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Synergy's program cannot run this.
    #[error(transparent)]
    Synergy(#[from] synergy::ArtifactError),
    /// ElasticFlow's program cannot run this.
    #[error("compat=artifact: {0}")]
    Elasticflow(#[from] elasticflow::ArtifactError),
    /// Chronus' program cannot run this.
    #[error("compat=artifact, leases of {lease} s: {error}")]
    Chronus {
        /// Length of a lease, on which many of its errors depend.
        lease: Span,
        /// What its driver says.
        error: chronus::ArtifactError,
    },
}

/// The schedulers of ElasticFlow's program.
fn names() -> String {
    Scheduler::ALL.map(|(name, _)| name).join(", ")
}
