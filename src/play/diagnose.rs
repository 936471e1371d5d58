//! What is wrong with a text, at its line, in the words of the command line; and what its user can set.

use rota_scripts::commands::diagnose;
use rota_scripts::{
    Domain, Limits, LoadError, Parameter, ScriptError, ScriptPolicy, SetError, Source, Value,
};

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Diagnostic {
    /// Which part it is in, where that is known.
    part: Option<usize>,
    /// Line and column, from 1.
    line: Option<u16>,
    column: Option<u16>,
    message: String,
    hint: Option<String>,
    /// The stage that was running.
    stage: Option<&'static str>,
}

/// A parameter as the page shows it.
#[derive(Debug, serde::Serialize)]
pub(crate) struct ParameterView {
    /// How it is set: `part.name`.
    key: String,
    part: String,
    name: String,
    about: String,
    kind: &'static str,
    value: String,
    default: String,
    low: Option<f64>,
    high: Option<f64>,
    words: Vec<String>,
}

/// A policy from texts with parameters set, or its mistakes. Settings of parameters that a text no longer declares, or declares
/// with another range, do not count: they were made for an earlier text.
pub(crate) fn policy(
    name: &str,
    sources: &[Source],
    set: &[(String, String)],
) -> Result<ScriptPolicy, Vec<Diagnostic>> {
    let mut policy = diagnose(name, sources, Limits::default())
        .map_err(|errors| errors.into_iter().map(|error| of_load(error, sources)).collect::<Vec<_>>())?;
    for (key, value) in set {
        match policy.set(key, value) {
            Ok(()) | Err(SetError::Unknown { .. } | SetError::Ambiguous { .. } | SetError::Wrong { .. }) => {}
        }
    }
    Ok(policy)
}

/// A mistake that only running it showed.
pub(crate) fn of_script(error: ScriptError, sources: &[Source]) -> Diagnostic {
    Diagnostic {
        part: sources.iter().position(|source| source.file == error.file),
        line: error.position.map(|(line, _)| line),
        column: error.position.map(|(_, column)| column),
        message: error.message,
        hint: error.hint,
        stage: error.stage,
    }
}

/// A mistake that has no place in a text.
pub(crate) fn plain(message: String) -> Diagnostic {
    Diagnostic { part: None, line: None, column: None, message, hint: None, stage: None }
}

pub(crate) fn of_load(error: LoadError, sources: &[Source]) -> Diagnostic {
    let file = match &error {
        LoadError::Script(error) => return of_script(error.clone(), sources),
        LoadError::DefinedTwice { second, .. } => Some(second),
        LoadError::DecidesAlready { other, .. } => Some(other),
        LoadError::NoStage { file }
        | LoadError::LacksStage { file, .. }
        | LoadError::NotAsked { file, .. } => Some(file),
        LoadError::Unknown { .. } | LoadError::NoText { .. } => None,
    };
    let part = file.and_then(|file| sources.iter().position(|source| source.file == *file));
    Diagnostic { part, line: part.map(|_| 1), column: part.map(|_| 1), ..plain(error.to_string()) }
}

/// What can be set.
pub(crate) fn parameters(policy: &ScriptPolicy) -> Vec<ParameterView> {
    policy.params().into_iter().map(|(part, parameter)| view(part, parameter)).collect()
}

fn view(part: String, parameter: Parameter) -> ParameterView {
    let (low, high, words) = match parameter.domain {
        Domain::Between(low, high) => (Some(low), Some(high), Vec::new()),
        Domain::OneOf(words) => (None, None, words),
        Domain::Switch | Domain::Text => (None, None, Vec::new()),
    };
    let kind = match (&parameter.default, words.is_empty()) {
        (Value::Switch(_), _) => "switch",
        (Value::Whole(_), _) => "whole",
        (Value::Number(_), _) => "number",
        (Value::Word(_), false) => "word",
        (Value::Word(_), true) | (Value::Numbers(_), _) => "text",
    };
    ParameterView {
        key: format!("{part}.{}", parameter.name),
        part,
        kind,
        value: parameter.value.to_string(),
        default: parameter.default.to_string(),
        name: parameter.name,
        about: parameter.about,
        low,
        high,
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() }
    }

    fn mistakes(text: &str) -> Vec<Diagnostic> {
        policy("mine.rhai", &[source(text)], &[]).err().unwrap_or_default()
    }

    #[test]
    fn a_mistake_is_at_its_line_with_the_hint_of_the_command_line() {
        let found = mistakes("fn order(jobs, now) {\n    rank(jobs.atained)\n}");
        assert_eq!((found[0].part, found[0].line), (Some(0), Some(2)), "{found:?}");
        assert!(found[0].hint.as_deref().is_some_and(|hint| hint.contains("attained")), "{found:?}");
        let found = mistakes("fn order(jobs, now) {\n    rank(jobs.gpus\n}");
        assert_eq!((found.len(), found[0].part), (1, Some(0)), "{found:?}");
        assert!(found[0].line.is_some(), "{found:?}");
    }

    #[test]
    fn a_text_without_a_stage_is_said_at_its_beginning() {
        let found = mistakes("// nothing");
        assert_eq!((found[0].part, found[0].line), (Some(0), Some(1)), "{found:?}");
    }

    #[test]
    fn settings_of_an_earlier_text_do_not_count() {
        let text = "param(\"limit\", 3, 1..=10, \"how many\");\nfn order(jobs, now) { rank(jobs.gpus * param(\"limit\")) }";
        let set = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            parameters(&policy("mine.rhai", &[source(text)], &pairs).expect("a policy")).remove(0).value
        };
        assert_eq!(set(&[("mine.limit", "7")]), "7");
        assert_eq!(set(&[("mine.limit", "70"), ("mine.gone", "1")]), "3");
    }
}
