//! A policy that cannot be tried.

use rota_core::check::PlanViolation;
use rota_core::policy::PolicyError;

use crate::language::error::LoadError;

/// Why `check` or `bench` could not try a policy.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    /// The policy does not compile, or there is none of that name.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The policy failed while it was timed.
    #[error(transparent)]
    Decide(#[from] PolicyError),
    /// The policy failed on one of the made-up instants.
    #[error("{instant}: {error}")]
    Failed {
        /// The instant in words, such as `half full`.
        instant: &'static str,
        /// The policy's error, with its position in the script.
        error: PolicyError,
    },
    /// The policy decided what no cluster can do.
    #[error("{instant}: the plan cannot be carried out: {violation}")]
    Impossible {
        /// The instant in words.
        instant: &'static str,
        /// The first rule that the plan breaks.
        violation: PlanViolation,
    },
}
