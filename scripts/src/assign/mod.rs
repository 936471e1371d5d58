//! Rules that give the jobs of a trace what it lacks: models, batch sizes, deadlines, GPU counts that elastic jobs may have.
//!
//! A script of rules is asked once for each job, in the order of arrival: `fn assign(job, models)` returns a map whose names are
//! columns of Rota's own trace. What the cells mean is not known here: they become text, and the reader of traces judges them.
//! Every job has random numbers of its own, which the caller hands in, so equal seeds give equal answers.

mod cells;
mod verbs;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rhai::{Array, CallFnOptions, Dynamic, Engine, Map, Scope};

use crate::language::engine::{add_packages, replace_builtins, set_limits};
use crate::language::error::{Explainer, ScriptError, at};
use crate::language::limits::Limits;
use crate::language::parameters::{self, Declarations, Parameter, SetError};
use crate::language::reference::{Entry, Registrar};
use crate::language::session::Shared;
use crate::policy::part::Part;

/// What a rule is told of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFacts {
    /// Its place in the order of arrival, from 0.
    pub number: usize,
    /// Its name in the trace.
    pub name: String,
    /// Who pays for it.
    pub tenant: String,
    /// When it arrives, in seconds.
    pub arrival_s: f64,
    /// How long it takes at the proportional share with the GPUs it asks for, in seconds.
    pub duration_s: f64,
    /// GPUs it asks for.
    pub gpus: u32,
    /// The model that the trace names, or that was drawn.
    pub model: String,
    /// Its batch size; 0 where the trace has none.
    pub batch: u32,
    /// How it ended where it was recorded: `passed`, `failed`, `killed` or nothing.
    pub ended: String,
    /// Its deadline in seconds, if it has one; of soft ones the first.
    pub deadline_s: Option<f64>,
}

/// What a rule is told of a model of the profile set.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// Its name in the profile set.
    pub name: String,
    /// Its class, such as `vision`.
    pub class: String,
    /// Batch sizes it was measured with on the cluster; none when any will do.
    pub batches: Vec<u32>,
    /// GPU counts that pay off for it, by batch size; none when it is not elastic.
    pub levels: Vec<(u32, Vec<u32>)>,
    /// How many times as fast as at the proportional share it is with all the CPUs that it can use.
    pub cpu_gain: f64,
    /// The same with all the memory.
    pub mem_gain: f64,
    /// GPU memory of one worker in bytes; 0 when it is not known.
    pub gpu_mem_bytes: u64,
}

/// Cells of one job by the names of their columns; an empty one removes what the trace says.
pub type Cells = BTreeMap<String, String>;

/// Numbers from 0 to 1 without 1, one after another.
pub type Numbers = Box<dyn FnMut() -> f64 + Send>;

/// A script of rules, ready to be asked.
pub struct Rules {
    engine: Engine,
    shared: Arc<Shared>,
    entries: Vec<Entry>,
    part: Part,
    luck: Arc<Luck>,
    models: Dynamic,
    columns: &'static [&'static str],
}

/// What verbs share while a script runs.
pub(crate) struct Luck {
    numbers: Mutex<Option<Numbers>>,
    /// How often each key of each table of shares was given, and how often each list was gone through.
    turns: Mutex<BTreeMap<String, u64>>,
}

/// Rules that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// The script is wrong, or stopped.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A parameter that it has not, or a value that this may not have.
    #[error(transparent)]
    Set(#[from] SetError),
}

const STAGE: &str = "assign";

/// What the rules of one job may use up.
const LIMITS: Limits = Limits {
    operations: 1_000_000,
    alarm: None,
    call_depth: 32,
    variables: 128,
    string_bytes: 64 << 10,
    array_items: 10_000,
    map_entries: 10_000,
    column_bytes: 1 << 20,
    memory_bytes: 64 << 20,
    copied_bytes: 1 << 30,
    note_lines: 0,
    memory_text_bytes: 0,
};

impl Rules {
    /// Compiles a script and sets its parameters. `columns` are the names that the map of a job may have.
    pub fn load(
        file: &str,
        source: &str,
        set: &[(String, String)],
        models: &[ModelFacts],
        columns: &'static [&'static str],
    ) -> Result<Self, RulesError> {
        let luck = Arc::new(Luck { numbers: Mutex::default(), turns: Mutex::default() });
        let (engine, shared, entries) = build(&luck);
        let mut part = Part::alone(file, source);
        let explain = |error, part: &Part| {
            Explainer { parts: &[], entries: &entries, meter: &shared.meter }.explain(error, part, None)
        };
        let mut script = engine.compile(source).map_err(|error| explain(error.into(), &part))?;
        script.set_source(file);
        let counts: Vec<usize> =
            script.iter_functions().filter(|f| f.name == STAGE).map(|f| f.params.len()).collect();
        if counts != [2] {
            let position = part.position_of_text("fn assign(");
            let message = "rules are one function `fn assign(job, models)`".to_owned();
            return Err(at(&part, position, message, None, None).into());
        }
        part.script = Arc::new(script);
        shared.call_state().declarations = Some(Declarations::default());
        shared.meter.start();
        let mut scope = Scope::new();
        let ran = engine.run_ast_with_scope(&mut scope, &part.script);
        let declared = shared.call_state().declarations.take().unwrap_or_default();
        ran.map_err(|error| explain(*error, &part))?;
        part.has_constants = !scope.is_empty();
        let mut parameters = declared.parameters;
        set_parameters(&mut parameters, set, file)?;
        shared.call_state().parameters = vec![parameters];
        let models = Dynamic::from(models.iter().map(cells::model).collect::<Array>());
        Ok(Rules { engine, shared, entries, part, luck, models, columns })
    }

    /// Its parameters with their values.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.shared.call_state().parameters.first().cloned().unwrap_or_default()
    }

    /// What the rules say of one job; nothing when they leave it as it is.
    pub fn assign(&mut self, job: &JobFacts, numbers: Numbers) -> Result<Cells, ScriptError> {
        *self.luck.numbers.lock().unwrap_or_else(PoisonError::into_inner) = Some(numbers);
        self.shared.meter.start();
        self.shared.call_state().part = 0;
        let options = CallFnOptions::new().eval_ast(self.part.has_constants);
        let arguments = (cells::job(job), self.models.clone());
        let answer: Result<Dynamic, _> =
            self.engine.call_fn_with_options(options, &mut Scope::new(), &self.part.script, STAGE, arguments);
        let value = answer.map_err(|error| {
            let explainer = Explainer { parts: &[], entries: &self.entries, meter: &self.shared.meter };
            self.of_job(explainer.explain(*error, &self.part, None), job)
        })?;
        if value.is_unit() {
            return Ok(Cells::new());
        }
        let wrong = |message: String, hint: Option<String>| {
            let position = self.part.position_of_text("fn assign(");
            self.of_job(at(&self.part, position, message, hint, None), job)
        };
        match value.try_cast_result::<Map>() {
            Ok(map) => cells::cells(map, self.columns)
                .map_err(|wrong_cell| wrong(wrong_cell.to_string(), wrong_cell.hint())),
            Err(other) => {
                let label = crate::values::type_label(&other);
                Err(wrong(format!("`assign` returned {label}, not a Map of columns"), None))
            }
        }
    }

    /// The same error with the job it came up with.
    fn of_job(&self, error: ScriptError, job: &JobFacts) -> ScriptError {
        ScriptError { message: format!("{} (job {})", error.message, job.name), ..error }
    }
}

/// Everything that rules can use, for the documentation.
pub fn entries() -> Vec<Entry> {
    let luck = Luck { numbers: Mutex::default(), turns: Mutex::default() };
    build(&Arc::new(luck)).2
}

fn build(luck: &Arc<Luck>) -> (Engine, Arc<Shared>, Vec<Entry>) {
    let shared = Shared::new(LIMITS);
    let mut engine = Engine::new_raw();
    add_packages(&mut engine);
    replace_builtins(&mut engine, &shared);
    set_limits(&mut engine, &shared);
    engine.set_fail_on_invalid_map_property(true);
    let mut registrar = Registrar::new(&mut engine);
    parameters::register(&mut registrar, &shared);
    verbs::register(&mut registrar, luck);
    let entries = registrar.into_entries();
    (engine, shared, entries)
}

fn set_parameters(
    parameters: &mut [Parameter],
    set: &[(String, String)],
    file: &str,
) -> Result<(), SetError> {
    for (key, value) in set {
        let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let unknown = SetError::unknown(key, file.to_owned(), &known);
        parameters.iter_mut().find(|parameter| parameter.name == *key).ok_or(unknown)?.set(value)?;
    }
    Ok(())
}

impl Luck {
    /// The next number, or half where none is handed in (at the top level).
    fn next(&self) -> f64 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.as_mut().map_or(0.5, |next| next())
    }

    /// Changes the counts of what goes by turns.
    fn turn<T>(&self, change: impl FnOnce(&mut BTreeMap<String, u64>) -> T) -> T {
        change(&mut self.turns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
