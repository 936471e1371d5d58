//! What can go wrong with a result folder.

use std::path::{Path, PathBuf};

/// A result folder that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
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
    /// A folder with other files in it would be overwritten.
    #[error("{} is not a Rota result folder (it holds `{found}`): not overwriting it, choose another --out", dir.display())]
    NotOurs {
        /// Folder that was named on the command line.
        dir: PathBuf,
        /// Something in it that Rota did not write.
        found: String,
    },
    /// A folder with results that would be lost.
    #[error("{} holds results of another run: choose another --out, or replace them with --overwrite", dir.display())]
    OtherResults {
        /// Folder that was named on the command line.
        dir: PathBuf,
    },
    /// A folder that another command fills.
    #[error("{} holds results of `rota {there}`: choose another --out, or replace them with --overwrite", dir.display())]
    MadeByOther {
        /// Folder that was named on the command line.
        dir: PathBuf,
        /// The command whose results it holds.
        there: String,
    },
    /// The path names a file.
    #[error("{} is a file, a result needs a folder", path.display())]
    IsFile {
        /// Path that was named on the command line.
        path: PathBuf,
    },
    /// A folder without `summary.json`.
    #[error("{} is not a Rota result folder: it has no summary.json", dir.display())]
    NoSummary {
        /// Folder that was named on the command line.
        dir: PathBuf,
    },
    /// Written by a newer program.
    #[error("{}: format {found}, this program reads up to {}", path.display(), super::FORMAT)]
    Format {
        /// File that was being read.
        path: PathBuf,
        /// Version that the file names.
        found: u64,
    },
    /// A file that cannot be understood as a whole.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// File that was being read.
        path: PathBuf,
        /// Message of the parser.
        why: String,
    },
    /// A value in a table.
    #[error("{}: line {line}, column {column}: `{value}` is not a {expected}", path.display())]
    Value {
        /// File that was being read.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// Name of the column.
        column: &'static str,
        /// Text that was found.
        value: String,
        /// What belongs there, such as "a number of seconds".
        expected: &'static str,
    },
}

impl ResultsError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| ResultsError::Io { action, path, source }
    }

    pub(super) fn malformed(path: &Path, why: impl ToString) -> Self {
        ResultsError::Malformed { path: path.to_owned(), why: why.to_string() }
    }
}
