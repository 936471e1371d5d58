//! Errors: where in which script, what, and what to do about it.

use std::fmt;

use rhai::{EvalAltResult, LexError, ParseErrorType, Position};

use crate::language::limits::{Meter, Reached};
use crate::language::nearest;
use crate::language::reference::{self, Entry, UnknownField};
use crate::policy::compose::FindTextError;
use crate::policy::part::{Part, Stage};
use crate::values::{label, script_type, without_rust_paths};

/// Why a policy could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No script of that name.
    #[error("no policy part `{name}`{hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Nearest names, or how to find them.
        hint: String,
    },
    /// A script of one's own whose text is not there.
    #[error("{path}: {why}")]
    NoText {
        /// The path as it was given.
        path: String,
        /// What whoever looked for it says.
        #[source]
        why: FindTextError,
    },
    /// Two parts that define the same stage.
    #[error("stage `{stage}` is defined by both {first} and {second}: a policy has one of each")]
    DefinedTwice {
        /// The name of the stage's function.
        stage: &'static str,
        /// The file of the part that comes first in the policy's name.
        first: String,
        /// The file of the later part.
        second: String,
    },
    /// `decide` together with a stage it replaces.
    #[error(
        "{decider} defines `decide`, which takes all at once, and {other} defines `{stage}`: leave one out"
    )]
    DecidesAlready {
        /// The file with `decide`.
        decider: String,
        /// The file with a stage that `decide` replaces.
        other: String,
        /// The stage that `decide` replaces.
        stage: &'static str,
    },
    /// A file without a stage.
    #[error("{file}: defines no stage: write at least one of {}", crate::policy::part::STAGE_SIGNATURES)]
    NoStage {
        /// The path, or the name of a shipped script.
        file: String,
    },
    /// A stage that was asked for by name and is not there.
    #[error("{file}: defines no stage `{stage}`: it has {stages}")]
    LacksStage {
        /// The path, or the name of a shipped script.
        file: String,
        /// The stage that was asked for.
        stage: &'static str,
        /// Those it has.
        stages: String,
    },
    /// A model that no part of the policy asks for.
    #[error(
        "{file}: `{stage}` is never asked for: only `{verb}` of {owner} does, and no part of this policy calls it"
    )]
    NotAsked {
        /// The path, or the name of a shipped script.
        file: String,
        /// The stage that nothing asks for.
        stage: &'static str,
        /// What the verb is called on.
        owner: &'static str,
        /// The verb that asks for it.
        verb: &'static str,
    },
    /// A script that does not compile or whose top level fails.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// What went wrong in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file, or the name of a shipped script.
    pub file: String,
    /// Line and column, from 1, where they are known.
    pub position: Option<(u16, u16)>,
    /// The text of that line; empty where the position is not known.
    pub line_text: String,
    /// The message, one line in lower case.
    pub message: String,
    /// A sentence that may help, such as the nearest names.
    pub hint: Option<String>,
    /// The stage that was running; `None` at the top level.
    pub stage: Option<&'static str>,
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => {
                writeln!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
                let margin = " ".repeat(line.to_string().len());
                let shown = self.line_text.trim_end();
                // A tab counts one column to Rhai; the caret's line repeats it so that both are as wide.
                let before: String = shown
                    .chars()
                    .take(usize::from(column).saturating_sub(1))
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                write!(f, "{margin} |\n{line} | {shown}\n{margin} | {before}^")?;
            }
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        if let Some(stage) = self.stage {
            write!(f, "\n  in stage `{stage}`")?;
        }
        Ok(())
    }
}

impl ScriptError {
    /// The same error at a position found out later; the file must be one of the parts.
    pub(crate) fn moved_to(self, parts: &[Part], file: &str, position: Position) -> ScriptError {
        match parts.iter().find(|part| part.file == file) {
            Some(part) => at(part, position, self.message, self.hint, self.stage),
            None => self,
        }
    }
}

/// What is needed to explain an error of Rhai's.
pub(crate) struct Explainer<'a> {
    pub(crate) parts: &'a [Part],
    pub(crate) entries: &'a [Entry],
    pub(crate) meter: &'a Meter,
}

impl Explainer<'_> {
    /// An error of a stage of `part`.
    pub(crate) fn explain(
        &self,
        error: EvalAltResult,
        part: &Part,
        stage: Option<&'static str>,
    ) -> ScriptError {
        let (error, file, position) = innermost(error);
        let part = self.parts.iter().find(|p| Some(&p.file) == file.as_ref()).unwrap_or(part);
        let is_field = matches!(&error, EvalAltResult::ErrorRuntime(value, _) if value.is::<UnknownField>());
        let (message, hint) = self.words(error, part, stage);
        let mut explained = at(part, position, message, hint, stage);
        if let (true, Some((_, column))) = (is_field, &mut explained.position) {
            // Rhai points at the dot before a field.
            *column += u16::from(explained.line_text.chars().nth(usize::from(*column) - 1) == Some('.'));
        }
        explained
    }

    fn words(
        &self,
        error: EvalAltResult,
        part: &Part,
        stage: Option<&'static str>,
    ) -> (String, Option<String>) {
        match error {
            EvalAltResult::ErrorRuntime(value, _) => match value.clone().try_cast::<UnknownField>() {
                Some(UnknownField { owner, name }) => (
                    format!("{owner} has no field `{name}`"),
                    reference::field_hint(self.entries, owner, &name),
                ),
                None if value.is_string() => (value.to_string(), None),
                None => (format!("thrown: {value}"), None),
            },
            EvalAltResult::ErrorFunctionNotFound(signature, _) => self.unknown_function(&signature, part),
            EvalAltResult::ErrorVariableNotFound(name, _) => unknown_variable(&name, part),
            EvalAltResult::ErrorParsing(ParseErrorType::VariableUndefined(name), _) => {
                unknown_variable(&name, part)
            }
            EvalAltResult::ErrorParsing(kind, _) => syntax(&kind),
            EvalAltResult::ErrorTerminated(..) => (self.limit(), None),
            EvalAltResult::ErrorStackOverflow(_) => {
                (format!("functions call each other more than {} deep", self.meter.limits().call_depth), None)
            }
            EvalAltResult::ErrorTooManyVariables(_) => {
                (format!("more than {} variables at a time", self.meter.limits().variables), None)
            }
            EvalAltResult::ErrorDotExpr(text, _) => {
                let in_our_words = unwritable(&text).or_else(|| unreadable(&text));
                let is_of_one = ["of Job cannot be set", "of Node cannot be set"];
                let compares = in_our_words.as_ref().is_some_and(|text| is_of_one.iter().any(|end| text.ends_with(end)));
                let hint = compares.then(|| "`=` sets, `==` compares".to_owned());
                (in_our_words.unwrap_or_else(|| without_rust_paths(&lower(&text))), hint)
            }
            EvalAltResult::ErrorDataRace(..) => (
                "a closure uses the variable its verb is called on".to_owned(),
                Some("copy it first: `let all = jobs;`, and use the copy in the closure".to_owned()),
            ),
            EvalAltResult::ErrorUnboundThis(_) => unbound(part, stage),
            EvalAltResult::ErrorIndexingType(what, _) => unindexed(&without_rust_paths(&what)),
            EvalAltResult::ErrorFor(_) => (
                "a loop over what is no array, no range, no jobs and no queue".to_owned(),
                Some("numbers of a column are read by `column.of(job)` in `for job in jobs { … }`, a map by `map.keys()`".to_owned()),
            ),
            EvalAltResult::ErrorMismatchDataType(expected, actual, _) => mismatch(&expected, &actual),
            EvalAltResult::ErrorDataTooLarge(what, _) => (self.too_large(&what), None),
            mut other => {
                let _ = other.take_position();
                (without_rust_paths(&lower(&other.to_string())), None)
            }
        }
    }

    fn unknown_function(&self, signature: &str, part: &Part) -> (String, Option<String>) {
        let (name, arguments) = signature.split_once(" (").unwrap_or((signature, ")"));
        let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
        let arguments: Vec<&str> = arguments.split(", ").map(script_type).collect();
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return unknown_operation(name, &arguments);
        }
        let owner = arguments.first().copied().unwrap_or_default();
        let written: Vec<String> = part.functions();
        let of_type: Vec<&str> = reference::names_of(self.entries, owner).collect();
        let functions: Vec<&str> =
            reference::functions(self.entries).chain(written.iter().map(String::as_str)).collect();
        let is_known = of_type.contains(&name) || functions.contains(&name);
        let message = format!("no function `{name}` for ({})", arguments.join(", "));
        if let Some(hint) = reference::is_field(self.entries, owner, name) {
            return (message, Some(hint));
        }
        if is_known {
            let forms =
                self.entries.iter().filter(|e| e.name() == name && (e.owner == owner || e.owner.is_empty()));
            let forms: Vec<String> = forms.map(|e| format!("`{}`", e.signature)).collect();
            return (message, (!forms.is_empty()).then(|| format!("it is {}", forms.join(" or "))));
        }
        (message, nearest::hint(name, of_type.into_iter().chain(functions)))
    }

    fn limit(&self) -> String {
        let limits = self.meter.limits();
        match self.meter.reached() {
            Some(Reached::Alarm) => {
                let alarm = limits.alarm.unwrap_or_default();
                format!("ran for longer than {} ms", alarm.as_millis())
            }
            Some(Reached::Columns) => format!("columns take more than {} MB", limits.column_bytes >> 20),
            Some(Reached::Memory) => format!("uses more than {} MB of memory", limits.memory_bytes >> 20),
            Some(Reached::Copies) => format!(
                "copied more than {} MB: a large array or map is copied wherever it is read as a whole",
                limits.copied_bytes >> 20
            ),
            Some(Reached::Nesting) => "closures call verbs that call closures, too deep".to_owned(),
            Some(Reached::Operations) | None => format!("used more than {} operations", limits.operations),
        }
    }

    fn too_large(&self, what: &str) -> String {
        let limits = self.meter.limits();
        match what {
            w if w.contains("string") => format!("a string grew beyond {} bytes", limits.string_bytes),
            w if w.contains("array") => format!("an array grew beyond {} elements", limits.array_items),
            w if w.contains("map") => format!("a map grew beyond {} entries", limits.map_entries),
            other => format!("a value grew too large: {}", lower(other)),
        }
    }
}

/// An error of a part at a position.
pub(crate) fn at(
    part: &Part,
    position: Position,
    message: String,
    hint: Option<String>,
    stage: Option<&'static str>,
) -> ScriptError {
    let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let at = position.line().map(|line| (narrow(line), narrow(position.position().unwrap_or(1))));
    let text = position.line().and_then(|line| part.source.lines().nth(line - 1));
    let line_text = text.unwrap_or_default().to_owned();
    ScriptError { file: part.file.clone(), position: at, line_text, message, hint, stage }
}

/// The error at the bottom of the calls, the file it is in, and the innermost position known.
fn innermost(error: EvalAltResult) -> (EvalAltResult, Option<String>, Position) {
    let mut error = error;
    let mut file = None;
    let mut position = error.position();
    loop {
        match error {
            EvalAltResult::ErrorInFunctionCall(_, source, inner, _) => {
                if !source.is_empty() {
                    file = Some(source);
                }
                if !inner.position().is_none() {
                    position = inner.position();
                }
                error = *inner;
            }
            other => return (other, file, position),
        }
    }
}

/// `this` where there is none.
fn unbound(part: &Part, stage: Option<&'static str>) -> (String, Option<String>) {
    let hint = if stage == Some(Stage::Place.name()) && part.places_by_nodes() {
        "`fn place(job, nodes)` is asked once and remembers nothing; `fn place(view)` is asked in every round"
    } else {
        "a closure does not see `this`: copy what it needs first, as in `let kept = this.kept;`; a function sees it if it is \
         called as `this.name(…)`"
    };
    ("`this` is not kept here".to_owned(), Some(hint.to_owned()))
}

/// Brackets behind what has none: `Column [int]`, with `= float` where something was to be set.
fn unindexed(what: &str) -> (String, Option<String>) {
    let hint = match what.split(' ').next().unwrap_or_default() {
        "Column" | "Texts" if what.contains('=') => {
            "a column cannot be changed: `where(jobs.id == job.id, new, column)` makes another; or keep numbers in a map, \
             `map.set(job.id, number)`, of which `jobs.recall(map, 0.0)` makes a column"
        }
        "Column" | "Texts" => "what it has for one job is `column.of(job)`",
        "Nodes" | "NodeColumn" => {
            "nodes cannot be looked at one by one here: rank all of them by columns, as in `rank(-nodes.free_gpus)`; \
             `by_score(|node, job| …)` in `fn place(view)` looks at each"
        }
        _ => return (format!("no brackets for {what}"), None),
    };
    (format!("no brackets for {what}"), Some(hint.to_owned()))
}

/// An operator for which there is no rule with these types.
fn unknown_operation(operator: &str, arguments: &[&str]) -> (String, Option<String>) {
    let labels: Vec<&str> = arguments.iter().map(|name| label(name)).collect();
    let hint = match (operator, arguments) {
        (_, names) if names.contains(&"()") => Some("write `value ?? 0` for a value that may be missing"),
        (".." | "..=", names) if names.contains(&"float") => {
            Some("a range takes whole numbers: `.to_int()` drops what is behind the point; `/` gives a float")
        }
        (_, names) if names.contains(&"bool") => {
            Some("true and false are no numbers: write `if condition { 1 } else { 0 }`")
        }
        _ => None,
    };
    (format!("`{operator}` of {}", labels.join(" and ")), hint.map(str::to_owned))
}

/// Rhai's words for setting a field that cannot be set, in ours.
fn unwritable(text: &str) -> Option<String> {
    let mut quoted = text.strip_prefix("No writable property ")?.split('\'').skip(1).step_by(2);
    let (field, owner) = (quoted.next()?, quoted.next()?);
    Some(format!("`{field}` of {owner} cannot be set"))
}

/// Rhai's words for a field that a type without fields of ours does not have.
fn unreadable(text: &str) -> Option<String> {
    let mut quoted = text.strip_prefix("Unknown property ")?.split('\'').skip(1).step_by(2);
    let (field, owner) = (quoted.next()?, quoted.next()?);
    Some(format!("{} has no field `{field}`", script_type(owner)))
}

fn syntax(kind: &ParseErrorType) -> (String, Option<String>) {
    match kind {
        ParseErrorType::UnknownOperator(operator) | ParseErrorType::Reserved(operator)
            if operator == "/=" =>
        {
            ("syntax: there is no `/=`".to_owned(), Some("write `x = x / y`".to_owned()))
        }
        ParseErrorType::MismatchedType(expected, actual) => mismatch(expected, actual),
        ParseErrorType::MissingToken(_, what) if what.contains("object map literal") => (
            format!("syntax: {}", lower(&kind.to_string())),
            Some(
                "keys of a map are names or texts: `#{ ann: 3.0, \"1\": 2.0 }`; `map.get(1)` finds `\"1\"`"
                    .to_owned(),
            ),
        ),
        ParseErrorType::Reserved(word) if is_a_name(word) => (
            format!("syntax: {}", lower(&kind.to_string())),
            Some(format!("the language keeps `{word}` for itself: take another name")),
        ),
        ParseErrorType::BadInput(LexError::MalformedChar(text)) => (
            format!("syntax: '{text}' is more than one character"),
            Some(format!("a text stands in double quotes: \"{text}\"")),
        ),
        _ => (format!("syntax: {}", without_rust_paths(&lower(&kind.to_string()))), None),
    }
}

/// Whether a word that Rhai keeps for itself is one that an author would give to something.
fn is_a_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic()) && !matches!(word, "import" | "export" | "eval")
}

/// A value of one type where another is needed.
fn mismatch(expected: &str, actual: &str) -> (String, Option<String>) {
    let (expected, actual) = (script_type(expected), script_type(actual));
    let hint = match (expected, actual) {
        ("bool", "Column") => Some(
            "it holds one number for each job: choose job by job with `where(condition, a, b)`, join conditions with `&`, `|` \
             and `!`, or ask about all jobs with `.sum()`, `.least()` or `.most()`",
        ),
        ("bool", "NodeColumn") => Some(
            "it holds one number for each node: choose node by node with `where(condition, a, b)`, join conditions with `&`, \
             `|` and `!`",
        ),
        ("bool", "Constraint" | "Linear") => {
            Some("variables have values only after `solve`: `answer.value(…)`")
        }
        ("bool", "int" | "float") => Some("write what it is compared with, such as `!= 0`"),
        ("String", "int") => Some(
            "keys of a map are texts: for a number write `map.get(number)`, `map.set(number, value)` or `map[`${number}`]`",
        ),
        ("int", "float") => Some("`.to_int()` drops what is behind the point; `/` gives a float"),
        _ => None,
    };
    let expected = if expected == "bool" { "true or false" } else { expected };
    (format!("expected {expected}, got {actual}"), hint.map(str::to_owned))
}

fn unknown_variable(name: &str, part: &Part) -> (String, Option<String>) {
    let is_above = |line: &str| {
        let rest = line.strip_prefix("let ").or_else(|| line.strip_prefix("const "));
        let declared = rest.and_then(|rest| rest.trim_start().strip_prefix(name));
        declared.is_some_and(|rest| rest.starts_with([' ', '=', ';', ':']))
    };
    if part.source.lines().any(is_above) {
        let hint = format!(
            "functions see no variables and constants of the top level: write `param(\"{}\", …)` there, or a function that returns \
             it, `fn {}() {{ … }}`",
            name.to_lowercase(),
            name.to_lowercase()
        );
        return (format!("unknown variable `{name}`"), Some(hint));
    }
    if let "view" | "jobs" | "job" | "nodes" | "now" = name {
        let hint = "a function sees its own arguments only: those of a stage stand in its first line; `jobs` has `cluster`, \
                    `room` and `round`, as `view` has";
        return (format!("unknown variable `{name}`"), Some(hint.to_owned()));
    }
    let words = part.source.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let names = words.filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    (format!("unknown variable `{name}`"), nearest::hint(name, names))
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
