//! Where the original ends with a stack trace, this driver ends with a sentence.

use rota_core::policy::PolicyError;
use rota_core::time::Time;

use crate::language::error::LoadError;

/// A run that the original cannot do, or gives up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// The original has one kind of server.
    #[error(
        "compat=artifact: node {node} differs from node 0, but the original knows only clusters of like servers"
    )]
    MixedCluster {
        /// The first that differs.
        node: u32,
    },
    /// The original has profiles for these counts alone.
    #[error("job {job}: asks {gpus} GPUs, the original knows 1, 2, 4, 8 and 16 only")]
    OddCount {
        /// Its name in the trace.
        job: String,
        /// GPUs that it asks for.
        gpus: u32,
    },
    /// The speed of the model in the original is not known.
    #[error("job {job}: model {model} has no iteration time or ideal speedup, which the original needs")]
    UnknownModel {
        /// Its name in the trace.
        job: String,
        /// The name of its model.
        model: String,
    },
    /// The original divides by zero here.
    #[error(
        "job {job}: its demand is cut to one server although its ideal CPUs are its proportional share; \
         the original divides by zero there and aborts"
    )]
    NoSlope {
        /// Its name in the trace.
        job: String,
    },
    /// The original's tuner exits when even taking back does not help.
    #[error(
        "at {now} s: job {job} does not fit even at its proportional share; the original exits with FAILURE"
    )]
    GaveUp {
        /// Simulated time.
        now: Time,
        /// Its name in the trace.
        job: String,
    },
    /// The original's OPT runs with two orders only.
    #[error("policy {scheme}: the original's opt crashes with every order but fifo and srtf")]
    OptOrder {
        /// The scheme in Rota's words.
        scheme: String,
    },
    /// The original's model has no answer.
    #[error("at {now} s: the original's model of {n_jobs} jobs: {why}")]
    Model {
        /// Simulated time.
        now: Time,
        /// Jobs of the round.
        n_jobs: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The script that orders cannot be used.
    #[error(transparent)]
    Script(#[from] LoadError),
    /// The script that orders failed.
    #[error("at {now} s: {error}")]
    Order {
        /// Simulated time.
        now: Time,
        /// The script's error.
        error: PolicyError,
    },
}

/// A name that is not a scheduler of the original.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy `{name}`: `{part}` is {why}")]
pub struct SchemeError {
    /// The policy's name as it was given.
    pub name: String,
    /// The part of it that is wrong.
    pub part: String,
    /// The end of the message, such as `not an order of the original`.
    pub why: &'static str,
}
