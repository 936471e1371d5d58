//! From a policy's name to its parts: shipped scripts by name, others by path, and which go together.

use std::path::Path;

use crate::language::error::LoadError;
use crate::language::nearest;
use crate::policy::part::{Part, Stage};
use crate::policy::shipped;

/// The text of a part.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in the policy's name.
    pub name: String,
    /// The file, for messages.
    pub file: String,
    /// The Rhai source.
    pub text: String,
}

/// The texts of a policy's parts.
pub(crate) fn sources(name: &str) -> Result<Vec<Source>, LoadError> {
    name.split('+').map(|part| find_source(part.trim())).collect()
}

fn find_source(name: &str) -> Result<Source, LoadError> {
    let is_path = name.ends_with(".rhai") || name.contains(std::path::MAIN_SEPARATOR);
    if is_path {
        let text = std::fs::read_to_string(name)
            .map_err(|error| LoadError::Unreadable { path: name.to_owned(), why: error.to_string() })?;
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        return Ok(Source { name: stem.to_owned(), file: name.to_owned(), text });
    }
    match shipped::find(name) {
        Some(script) => {
            Ok(Source { name: script.name.into(), file: script.file.into(), text: script.source.into() })
        }
        None => {
            let hint = nearest::hint(name, shipped::ALL.iter().map(|s| s.name));
            let hint = hint.unwrap_or_else(|| {
                "`rota policy list` shows all; a file of your own ends in .rhai".to_owned()
            });
            Err(LoadError::Unknown { name: name.to_owned(), hint: format!(": {hint}") })
        }
    }
}

/// An error when two parts define the same stage, or one decides what another would.
pub(crate) fn refuse_clashes(parts: &[Part]) -> Result<(), LoadError> {
    for stage in Stage::ALL {
        let mut having = parts.iter().filter(|part| part.stages.contains(&stage));
        if let (Some(first), Some(second)) = (having.next(), having.next()) {
            return Err(LoadError::DefinedTwice {
                stage: stage.name(),
                first: first.file.clone(),
                second: second.file.clone(),
            });
        }
    }
    let Some(decider) = parts.iter().find(|part| part.stages.contains(&Stage::Decide)) else { return Ok(()) };
    for stage in [Stage::Order, Stage::Allocate, Stage::Place] {
        if let Some(other) = parts.iter().find(|part| part.stages.contains(&stage)) {
            let (decider, other) = (decider.file.clone(), other.file.clone());
            return Err(LoadError::DecidesAlready { decider, other, stage: stage.name() });
        }
    }
    Ok(())
}
