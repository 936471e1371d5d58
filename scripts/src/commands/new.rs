//! `new`: a script to start from, which runs as it is: a commented starter, or a copy of a shipped script.

use std::io::Write as _;
use std::path::Path;

use crate::language::error::LoadError;
use crate::policy::compose;

/// What the starter says.
pub const STARTER: &str = include_str!("starter.rhai");

/// A script that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The file cannot be made.
    #[error("{path}: {why}")]
    File {
        /// The path as it was given.
        path: String,
        /// The operating system's message, or that the name is wrong.
        why: String,
    },
    /// There is no script of that name.
    #[error(transparent)]
    From(#[from] LoadError),
    /// A policy of several parts.
    #[error("{from} has several parts: copy one of them, and join yours with the others, as in `{example}`")]
    Several {
        /// What was asked for.
        from: String,
        /// The policy with the first part replaced by the new file.
        example: String,
    },
}

/// Writes the starter, or a copy of a shipped script under the file's name; a file that is there stays as it is.
pub fn new(path: &Path, from: Option<&str>) -> Result<(), NewError> {
    let wrong = |why: String| NewError::File { path: path.display().to_string(), why };
    if path.extension().is_none_or(|extension| extension != "rhai") {
        return Err(wrong("a script's name ends in .rhai".to_owned()));
    }
    let text = from.map_or_else(|| Ok(STARTER.to_owned()), |from| copy(path, from))?;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| wrong(error.to_string()))?;
    file.write_all(text.as_bytes()).map_err(|error| wrong(error.to_string()))
}

fn copy(path: &Path, from: &str) -> Result<String, NewError> {
    if let Some((_, others)) = from.split_once('+') {
        let example = format!("{}+{others}", path.display());
        return Err(NewError::Several { from: from.to_owned(), example });
    }
    let sources = compose::sources(from)?;
    let own = path.file_stem().map_or_else(|| "mine".to_owned(), |stem| stem.to_string_lossy().into_owned());
    // Admission by itself comes with the parts that keep its promises: they stay shipped ones.
    let others: String = sources.iter().skip(1).map(|part| format!("+{}", part.name)).collect();
    let joined = match others.is_empty() {
        true => String::new(),
        false => format!("// To be joined, as in {}{others}.\n", path.display()),
    };
    let text = sources.into_iter().next().map(|part| part.text).unwrap_or_default();
    Ok(format!("// {own}: a copy of {from}, to be changed. What follows is its header.\n{joined}{text}"))
}
