//! What can be wrong with a scenario, each in the words that its author reads.

use rota_core::cluster::ClusterError;
use rota_core::profile::CurveError;
use rota_core::time::SpanError;
use rota_core::workload::WorkloadError;

/// A scenario that cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: `{text}`: {why}")]
pub struct ScenarioError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The line as it is written, without the space around it.
    pub text: String,
    /// What is wrong with the line.
    pub why: LineError,
}

/// What is wrong with one line of a scenario.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LineError {
    /// A line before the first scenario.
    #[error("a scenario begins with `scenario: what it shows`")]
    NotBegun,
    /// The first word is none of those that a line can begin with.
    #[error("lines are `cluster`, `data`, `job`, `policy`, `set`, `round`, `rounds`, then `----`")]
    UnknownLine,
    /// A line that does not have the form of its kind.
    #[error("write `{0}`")]
    Form(&'static str),
    /// A piece of a line that does not have its form.
    #[error("`{text}`: write {form}")]
    Piece {
        /// The piece as it is written.
        text: String,
        /// The form it should have.
        form: &'static str,
    },
    /// A number of rounds that is not a whole number.
    #[error("how many rounds? write `rounds 3`")]
    Rounds,
    /// A job line without words.
    #[error("a job needs a name")]
    NoName,
    /// A job's priority that is not a whole number.
    #[error("`{0}` is not a priority")]
    Priority(String),
    /// A job names a data set that no `data` line before it declares.
    #[error("no data set `{0}`")]
    UnknownDataset(String),
    /// A property that jobs do not have.
    #[error(
        "`{0}`: a job has gpus, speeds, work, at, cpus, mem, spread, restart, tenant, priority, deadline, data"
    )]
    UnknownProperty(String),
    /// A unit that a cluster line does not have.
    #[error("`{0}`: a cluster has nodes, racks, gpus, cpus, GB and `GB cache`")]
    UnknownUnit(String),
    /// A speed of zero where a job must make progress.
    #[error("a job of speed 0 never ends")]
    NeverEnds,
    /// Text where a finite number of at least 0 is expected.
    #[error("`{0}` is not an amount")]
    NotAnAmount(String),
    /// A length of time that cannot be read.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// Speeds by CPUs and memory that do not make a grid.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// Cluster lines that do not make a cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Jobs that do not make a workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}
