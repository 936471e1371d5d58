//! Studies as scripts: a script describes runs, and may choose the next ones by the results so far.
//!
//! ```text
//! script ── run(#{…}) ──▶ Batch::submit      returns at once, the run is under way
//!        ── r.avg_jct_s ─▶ Batch::figure     waits for that run alone
//! ```
//!
//! So a script reads as if runs took no time: a plain loop keeps every core busy, and one that looks at a figure
//! before it goes on waits exactly for what it looks at. What runs, keeps and tabulates them is behind [`Batch`]; nothing
//! here knows a simulator, a clock or a file.

mod settings;
mod verbs;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rhai::Engine;

use crate::language::engine::{add_packages, replace_builtins, set_limits};
use crate::language::error::{Explainer, ScriptError};
use crate::language::limits::Limits;
use crate::language::nearest::hint;
use crate::language::reference::{Entry, Registrar};
use crate::language::session::Shared;
use crate::policy::part::Part;

/// One setting of a run, in the words of the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// An option without a value, given or not.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
    /// Several, where an option takes several.
    List(Vec<Setting>),
    /// Names with values, as `set` takes them.
    Pairs(Vec<(String, Setting)>),
}

/// The settings of a run by name, in the order of their names.
pub type Settings = Vec<(String, Setting)>;

/// The mean of several values, and how certain it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// How many values it is computed from.
    pub n: usize,
    /// The mean of the values.
    pub mean: f64,
    /// The lower end of the confidence interval of the mean.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Two lists of values, compared pair by pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The differences, the second less the first.
    pub difference: Interval,
    /// The second mean over the first, with its interval.
    pub ratio: Interval,
    /// Pairs in which the second is smaller.
    pub n_smaller: usize,
}

/// What runs the runs that a study asks for.
pub trait Batch: Send + Sync {
    /// Starts a run without waiting for it; refuses settings that make no sense. Equal settings are one run.
    fn submit(&self, settings: Settings) -> Result<usize, RunRefused>;
    /// A figure of a run, once it is done; `None` when it has none, as a run without deadlines has no ratio.
    fn figure(&self, run: usize, name: &str) -> Result<Option<f64>, FigureError>;
    /// Why a run failed, once it is over; `None` when it did not.
    fn failure(&self, run: usize) -> Option<String>;
    /// The confidence interval of a mean; `None` for no values.
    fn interval(&self, values: &[f64]) -> Option<Interval>;
    /// A paired comparison.
    fn compare(&self, baseline: &[f64], other: &[f64]) -> Option<Comparison>;
    /// The heading of the study.
    fn title(&self, text: &str);
    /// A line to be shown at once and kept for the report.
    fn say(&self, line: &str);
}

/// Settings that a batch does not take on, with the reason in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RunRefused(pub String);

/// A figure that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    /// Runs have no figure of that name.
    #[error("a run has no figure `{name}`{}", nearby(name, known))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The run came to no end.
    #[error("run {number} failed: {why}; ask for `ok` before its figures")]
    Failed {
        /// The number of the run, from 1.
        number: usize,
        /// The error of the run.
        why: String,
    },
    /// The run belongs to a shard that another process runs.
    #[error("run {number} is of another shard")]
    Elsewhere {
        /// The number of the run, from 1.
        number: usize,
    },
}

/// The figures nearest to a name, or where all are listed.
fn nearby(name: &str, known: &[String]) -> String {
    // A name is often right but for its unit, which is too far for a count of letters.
    let begun = known.iter().map(String::as_str).filter(|known| known.starts_with(name));
    let begun: Vec<&str> = begun.take(3).collect();
    match hint(name, known.iter().map(String::as_str)) {
        _ if !begun.is_empty() => format!(": did you mean `{}`?", begun.join("` or `")),
        Some(hint) => format!(": {hint}"),
        None => ": summary.json, and `rota simulate --json`, show all that there are".to_owned(),
    }
}

/// A parameter was set that the study has not declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--set {key}: this study has {known}")]
pub(crate) struct UnknownParameter {
    key: String,
    known: String,
}

/// How a study is run.
#[derive(Clone, Debug, Default)]
pub struct StudyOptions {
    /// Whether a small form is asked for; the script decides what that is.
    pub is_quick: bool,
    /// Parameters that the user has set.
    pub set: BTreeMap<String, String>,
}

/// What a study script may use up: it may wait for hours, but not fill the memory with what it describes.
const LIMITS: Limits = Limits {
    operations: 1_000_000_000,
    alarm: None,
    call_depth: 32,
    variables: 512,
    string_bytes: 1 << 20,
    array_items: 1_000_000,
    map_entries: 1_000_000,
    column_bytes: 64 << 20,
    memory_bytes: 1 << 30,
    copied_bytes: u64::MAX,
    note_lines: 0,
    memory_text_bytes: 0,
};

/// What verbs share while a script runs.
pub(crate) struct StudyHost {
    pub(crate) batch: Arc<dyn Batch>,
    pub(crate) options: StudyOptions,
    /// Parameters that the script has declared so far, with what they are.
    pub(crate) declared: Mutex<Vec<String>>,
}

impl StudyHost {
    /// Before the first run: a parameter that the study has not declared is a typing error.
    pub(crate) fn refuse_unknown_parameters(&self) -> Result<(), UnknownParameter> {
        let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = self.options.set.keys().find(|key| !declared.contains(key));
        match (unknown, declared.is_empty()) {
            (None, _) => Ok(()),
            (Some(key), true) => {
                Err(UnknownParameter { key: key.clone(), known: "no parameters".to_owned() })
            }
            (Some(key), false) => Err(UnknownParameter { key: key.clone(), known: declared.join(", ") }),
        }
    }
}

/// Runs a study's script to its end; the batch may then still be busy.
pub fn run(
    file: &str,
    source: &str,
    batch: Arc<dyn Batch>,
    options: StudyOptions,
) -> Result<(), ScriptError> {
    let host = Arc::new(StudyHost { batch, options, declared: Mutex::default() });
    let (engine, shared, entries) = build(&host);
    let mut part = Part::alone(file, source);
    let explain = |error, part: &Part| {
        Explainer { parts: &[], entries: &entries, meter: &shared.meter }.explain(error, part, None)
    };
    let script = engine.compile(source).map_err(|error| explain(error.into(), &part))?;
    part.script = Arc::new(script);
    shared.meter.start();
    engine.run_ast(&part.script).map_err(|error| explain(*error, &part))?;
    host.refuse_unknown_parameters().map_err(|error| ScriptError {
        file: file.to_owned(),
        position: None,
        line_text: String::new(),
        message: error.to_string(),
        hint: None,
        stage: None,
    })
}

/// Everything a study can use, for the documentation.
pub fn entries() -> Vec<Entry> {
    let host =
        StudyHost { batch: Arc::new(Nothing), options: StudyOptions::default(), declared: Mutex::default() };
    build(&Arc::new(host)).2
}

fn build(host: &Arc<StudyHost>) -> (Engine, Arc<Shared>, Vec<Entry>) {
    let shared = Shared::new(LIMITS);
    let mut engine = Engine::new_raw();
    add_packages(&mut engine);
    replace_builtins(&mut engine, &shared);
    set_limits(&mut engine, &shared);
    let mut registrar = Registrar::new(&mut engine);
    verbs::register(&mut registrar, host);
    let entries = registrar.into_entries();
    (engine, shared, entries)
}

/// A batch that takes nothing on, to ask an engine what it offers.
struct Nothing;

impl Batch for Nothing {
    fn submit(&self, _: Settings) -> Result<usize, RunRefused> {
        Err(RunRefused("this batch runs nothing".to_owned()))
    }
    fn figure(&self, _: usize, _: &str) -> Result<Option<f64>, FigureError> {
        Ok(None)
    }
    fn failure(&self, _: usize) -> Option<String> {
        None
    }
    fn interval(&self, _: &[f64]) -> Option<Interval> {
        None
    }
    fn compare(&self, _: &[f64], _: &[f64]) -> Option<Comparison> {
        None
    }
    fn title(&self, _: &str) {}
    fn say(&self, _: &str) {}
}

#[cfg(test)]
mod tests;
