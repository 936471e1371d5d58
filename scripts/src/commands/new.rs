//! `new`: a commented script to start from, which runs as it is.

use std::io::Write as _;
use std::path::Path;

/// What the starter says.
pub const STARTER: &str = include_str!("starter.rhai");

/// A starter that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct NewError {
    /// The path as it was given.
    pub path: String,
    /// The operating system's message, or that the name is wrong.
    pub why: String,
}

/// Writes the starter; a file that is there stays as it is.
pub fn new(path: &Path) -> Result<(), NewError> {
    let wrong = |why: String| NewError { path: path.display().to_string(), why };
    if path.extension().is_none_or(|extension| extension != "rhai") {
        return Err(wrong("a script's name ends in .rhai".to_owned()));
    }
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| wrong(error.to_string()))?;
    file.write_all(STARTER.as_bytes()).map_err(|error| wrong(error.to_string()))
}
