//! What can keep a study from being run.

use std::path::PathBuf;

use crate::report::ReportError;
use crate::results::ResultsError;

/// A study that cannot be run or written.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A folder that holds something else.
    #[error("{} holds `{found}` and no study: not writing into it, choose another --out", dir.display())]
    NotOurs {
        /// The folder.
        dir: PathBuf,
        /// Something in it.
        found: String,
    },
    /// A folder to be merged that is no study's.
    #[error("{} is no study's folder: it has no `cache`", dir.display())]
    NoCache {
        /// The folder.
        dir: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A shard that cannot be.
    #[error("`{0}` is no shard: write I/N with I from 1 to N, as in 2/4")]
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
