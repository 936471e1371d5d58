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

/// Finds the text of a script that is not shipped by what its part is called: the file as messages name it, and its text.
pub type FindText<'a> = &'a dyn Fn(&str) -> Result<(String, String), FindTextError>;

/// Why there is no text of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindTextError {
    /// Its file cannot be read.
    #[error("{message}")]
    Unreadable {
        /// What kind of failure it was.
        kind: std::io::ErrorKind,
        /// The operating system's message.
        message: String,
    },
    /// Whoever was asked does not hand it out.
    #[error("{reason}")]
    Refused {
        /// Why, and what to do about it.
        reason: String,
    },
}

impl From<std::io::Error> for FindTextError {
    fn from(error: std::io::Error) -> Self {
        FindTextError::Unreadable { kind: error.kind(), message: error.to_string() }
    }
}

impl From<String> for FindTextError {
    fn from(reason: String) -> Self {
        FindTextError::Refused { reason }
    }
}

/// The texts of a policy's parts, from files of this machine.
pub(crate) fn sources(name: &str) -> Result<Vec<Source>, LoadError> {
    sources_from(name, &|path| Ok((path.to_owned(), std::fs::read_to_string(path)?)))
}

/// The texts of a policy's parts. Admission by itself is joined to the allocation that keeps what it promises.
pub(crate) fn sources_from(name: &str, find: FindText<'_>) -> Result<Vec<Source>, LoadError> {
    let mut sources: Vec<Source> =
        name.split('+').map(|part| find_source(part.trim(), find)).collect::<Result<_, _>>()?;
    if let [alone] = sources.as_slice()
        && let Some(rest) = shipped::rest_of(&alone.name)
    {
        sources.extend(rest.iter().map(|part| find_source(part, find)).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(sources)
}

/// A part's name and the only stage that is taken of it: `elasticflow:admit` is the admission of `elasticflow`.
pub(crate) fn name_and_stage(name: &str) -> Result<(&str, Option<Stage>), LoadError> {
    // A path may have a colon too: what follows the last one is a stage only without a separator in it.
    let Some((part, word)) = name.rsplit_once(':').filter(|(_, word)| !word.contains(['/', '\\', '.']))
    else {
        return Ok((name, None));
    };
    match Stage::ALL.into_iter().find(|stage| stage.name() == word) {
        Some(stage) => Ok((part, Some(stage))),
        None => {
            let hint = nearest::hint(word, Stage::ALL.map(Stage::name))
                .unwrap_or_else(|| format!("stages are {}", Stage::ALL.map(Stage::name).join(", ")));
            Err(LoadError::Unknown {
                name: name.to_owned(),
                hint: format!(": `{word}` is not a stage: {hint}"),
            })
        }
    }
}

fn find_source(written: &str, find: FindText<'_>) -> Result<Source, LoadError> {
    let (name, stage) = name_and_stage(written)?;
    let named =
        |name: &str| stage.map_or_else(|| name.to_owned(), |stage| format!("{name}:{}", stage.name()));
    let is_path = name.ends_with(".rhai") || name.contains(std::path::MAIN_SEPARATOR);
    if is_path {
        let (file, text) = find(name).map_err(|why| LoadError::NoText { path: name.to_owned(), why })?;
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        return Ok(Source { name: named(stem), file, text });
    }
    match shipped::find(name) {
        Some(script) => {
            Ok(Source { name: named(script.name), file: script.file.into(), text: script.source.into() })
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

/// Leaves a part with the one stage that its name asks for.
pub(crate) fn restrict(part: &mut Part) -> Result<(), LoadError> {
    let (_, Some(stage)) = name_and_stage(&part.name)? else { return Ok(()) };
    if !part.stages.contains(&stage) {
        let stages: Vec<&str> = part.stages.iter().map(|stage| stage.name()).collect();
        return Err(LoadError::LacksStage {
            file: part.file.clone(),
            stage: stage.name(),
            stages: stages.join(", "),
        });
    }
    part.stages = vec![stage];
    Ok(())
}

/// An error when two parts define the same stage, one decides what another would, or a model is asked for by none.
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
    for stage in Stage::ALL {
        let Some((owner, verb)) = stage.asked_by() else { continue };
        let is_asked = || parts.iter().any(|part| part.source.contains(&format!(".{verb}(")));
        if let Some(part) = parts.iter().find(|part| part.stages.contains(&stage)).filter(|_| !is_asked()) {
            let (file, stage) = (part.file.clone(), stage.name());
            return Err(LoadError::NotAsked { file, stage, owner, verb });
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
