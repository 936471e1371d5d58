//! A policy that cannot be tried.

use rota_core::check::PlanViolation;
use rota_core::policy::PolicyError;

use crate::language::error::{LoadError, ScriptError};

/// Why `check`, `bench` or `profile` could not try a policy.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    /// The policy does not compile, or there is none of that name.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The policy failed while it was timed.
    #[error(transparent)]
    Decide(#[from] PolicyError),
    /// Names that do not exist.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Names(Vec<ScriptError>),
    /// The policy failed on one of the made-up instants.
    #[error("{error}\n  on {instant}{setting}")]
    Failed {
        /// The instant in words, such as `a half full one`.
        instant: &'static str,
        /// The parameter that was set, in words; empty when none was.
        setting: String,
        /// The policy's error, with its position in the script.
        error: PolicyError,
    },
    /// The policy decided what no cluster can do.
    #[error("the plan cannot be carried out: {violation}\n  on {instant}{setting}")]
    Impossible {
        /// The instant in words.
        instant: &'static str,
        /// The parameter that was set, in words; empty when none was.
        setting: String,
        /// The first rule that the plan breaks.
        violation: PlanViolation,
    },
}
