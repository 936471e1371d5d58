//! The interface of policies: from a snapshot to the state that is wanted.

use crate::plan::Plan;
use crate::snapshot::Snapshot;

/// Decides a round. Implemented by scripts, by native twins for benchmarks and by recorded answers.
pub trait Policy {
    /// The wanted state, given the present one. Everything random or timed must be in the policy's own state.
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError>;

    /// Private memory between rounds as text, for the journal; empty when there is none.
    fn memory(&self) -> String {
        String::new()
    }
}

/// A decision that could not be made; the message is complete, and users read it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PolicyError {
    /// What went wrong; for an error in a script, with file, line and a hint.
    pub message: String,
}
