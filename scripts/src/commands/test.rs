//! `test`: the scenarios written in a script's comments, or in the `.scn` file next to it.

use std::path::Path;

use crate::language::error::LoadError;
use crate::language::limits::Limits;
use crate::language::parameters::SetError;
use crate::policy::ScriptPolicy;
use crate::scenario::{self, Report, ScenarioError};

/// Scenarios that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// A file that cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// The path as it was given.
        path: String,
        /// What the system says.
        why: String,
    },
    /// Neither the comments nor the file next to it hold a scenario.
    #[error("{path}: no scenario: write one in its comments (see `rota policy new`) or in {neighbour}")]
    None {
        /// The script without scenarios.
        path: String,
        /// The `.scn` file that does not exist or holds none.
        neighbour: String,
    },
    /// A scenario that cannot be read.
    #[error("{path}: {error}")]
    Scenario {
        /// The script or the `.scn` file.
        path: String,
        /// The first line that cannot be read.
        error: ScenarioError,
    },
    /// The policy cannot be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A parameter cannot be set so.
    #[error(transparent)]
    Set(#[from] SetError),
}

/// Runs all scenarios of a script; those that name no policy are about the script alone.
pub fn test(path: &Path) -> Result<Vec<Report>, TestError> {
    let shown = path.display().to_string();
    let neighbour = path.with_extension("scn");
    let source = read(path)?;
    let mut found = parse(&shown, &scenario::of_script(&source))?;
    if neighbour.exists() {
        found.extend(parse(&neighbour.display().to_string(), &read(&neighbour)?)?);
    }
    if found.is_empty() {
        return Err(TestError::None { path: shown, neighbour: neighbour.display().to_string() });
    }
    let mut reports = Vec::new();
    for scenario in &found {
        let name = if scenario.policy.is_empty() { shown.as_str() } else { scenario.policy.as_str() };
        let mut policy = ScriptPolicy::load(name, Limits::default())?;
        for (key, value) in &scenario.set {
            policy.set(key, value)?;
        }
        reports.push(scenario::run(scenario, &mut policy));
    }
    Ok(reports)
}

fn read(path: &Path) -> Result<String, TestError> {
    let wrong = |error: std::io::Error| TestError::Unreadable {
        path: path.display().to_string(),
        why: error.to_string(),
    };
    std::fs::read_to_string(path).map_err(wrong)
}

fn parse(path: &str, text: &str) -> Result<Vec<scenario::Scenario>, TestError> {
    scenario::parse(text).map_err(|error| TestError::Scenario { path: path.to_owned(), error })
}
