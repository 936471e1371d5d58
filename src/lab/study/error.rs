//! What can keep a study from being run.

use std::path::PathBuf;

use crate::report::ReportError;
use crate::results::ResultsError;

/// A run of a study that was refused or failed. The reason is kept as text, since that is what scripts, tables and pages
/// show of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct RunError {
    /// The reason, in one line.
    pub why: String,
}

/// A study that cannot be run or written.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A folder that holds something else.
    #[error("{} holds `{found}` and no study: not writing into it, choose another --out", dir.display())]
    NotOurs {
        /// Folder that was named on the command line.
        dir: PathBuf,
        /// Name of an entry that no study writes.
        found: String,
    },
    /// A folder to be merged that does not hold a study.
    #[error("{} does not hold a study: it has no `cache`", dir.display())]
    NoCache {
        /// Folder that was named on the command line.
        dir: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb that completes "cannot …".
        action: &'static str,
        /// File or folder it was tried with.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A text that is not a shard.
    #[error("`{0}` is not a shard: write I/N with I from 1 to N, as in 2/4")]
    Shard(String),
    /// The library that writes Parquet gave up.
    #[error("parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A table cannot be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The page cannot be drawn.
    #[error(transparent)]
    Report(#[from] ReportError),
}
