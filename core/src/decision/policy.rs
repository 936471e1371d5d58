//! The one decision interface: from a view of an instant to the state that is wanted.

use crate::plan::Plan;
use crate::snapshot::Snapshot;

/// Decides a round. Scripts, native twins for benchmarks and recorded answers all stand behind this.
pub trait Policy {
    /// What shall be, given what is. Everything random or timed must be in the policy's own state.
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError>;

    /// Private memory between rounds as text, for the journal; empty when there is none.
    fn memory(&self) -> String {
        String::new()
    }
}

/// A decision that could not be made; the message is complete and made for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PolicyError {
    /// What went wrong, with file, line and a hint where a script is to blame.
    pub message: String,
}
