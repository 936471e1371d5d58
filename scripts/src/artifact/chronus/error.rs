//! Where the original ends with a stack trace, this driver ends with a sentence.

use rota_solvers::FormulationError;

/// A run that the original cannot do, or gives up. Times are in units of the trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArtifactError {
    /// Ticks that miss the slots.
    #[error(
        "a tick every {check} misses slots of {slot}: the original aborts when a job is older than a slot at its \
         admission; take a divisor of {slot}"
    )]
    Ticks {
        /// Time between ticks.
        check: i64,
        /// Time between admissions.
        slot: i64,
    },
    /// A lease without a length.
    #[error("a lease of {lease}: the original needs one unit of time at least")]
    Lease {
        /// Its length in units of the trace.
        lease: i64,
    },
    /// Local search without speeds.
    #[error("local_search needs a profile: without one the original aborts at the first placement")]
    NoProfile,
    /// A cluster the original cannot describe.
    #[error("the original knows only like nodes: {why}")]
    Cluster {
        /// What is wrong with it.
        why: String,
    },
    /// A job the original cannot handle.
    #[error("job {name}: {why}")]
    Job {
        /// Its name in the trace.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// An assertion of the original.
    #[error("at {time}: {why}; the original aborts")]
    Aborts {
        /// When, in units of the trace.
        time: i64,
        /// What the assertion found, in words.
        why: String,
    },
    /// A model that cannot be built.
    #[error("at {time}: {error}")]
    Model {
        /// When, in units of the trace.
        time: i64,
        /// What is wrong with it.
        error: FormulationError,
    },
}
