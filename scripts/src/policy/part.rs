//! One script: compiled once, its stages known, its declarations read.

use std::sync::Arc;

use rhai::{AST, Engine, Position, Scope};

use crate::language::error::{Explainer, LoadError, at};
use crate::language::parameters::{Declarations, Parameter};
use crate::language::reference::Entry;
use crate::language::session::Shared;

/// A question of a decision that a script can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Which jobs are admitted.
    Admit,
    /// In which order jobs are served.
    Order,
    /// How much each job gets.
    Allocate,
    /// On which GPUs jobs run.
    Place,
    /// Order, allocation and placement at once.
    Decide,
    /// Which CPU and memory levels jobs get: asked by the verb `optimum`.
    LevelModel,
    /// Which jobs hold which leases: asked by the verb `term` of a book of leases.
    LeaseModel,
}

/// How stages are written, for messages.
pub(crate) const STAGE_SIGNATURES: &str =
    "fn admit(job, view), fn order(jobs, now), fn allocate(view), fn place(job, nodes), fn decide(view)";

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 7] = [
        Stage::Admit,
        Stage::Order,
        Stage::Allocate,
        Stage::Place,
        Stage::Decide,
        Stage::LevelModel,
        Stage::LeaseModel,
    ];

    /// The name of its function.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Admit => "admit",
            Stage::Order => "order",
            Stage::Allocate => "allocate",
            Stage::Place => "place",
            Stage::Decide => "decide",
            Stage::LevelModel => "level_model",
            Stage::LeaseModel => "lease_model",
        }
    }

    /// The arguments of its function, in each form that it may be written in.
    pub const fn forms(self) -> &'static [&'static [&'static str]] {
        match self {
            Stage::Admit => &[&["job", "view"]],
            Stage::Order => &[&["jobs", "now"]],
            Stage::Place => &[&["job", "nodes"], &["view"]],
            Stage::Allocate | Stage::Decide => &[&["view"]],
            Stage::LevelModel | Stage::LeaseModel => &[&["problem"]],
        }
    }

    /// The verb that asks for it, of stages that a verb asks for: what it is called on, and its name.
    pub(crate) const fn asked_by(self) -> Option<(&'static str, &'static str)> {
        match self {
            Stage::LevelModel => Some(("View", "optimum")),
            Stage::LeaseModel => Some(("Leases", "term")),
            _ => None,
        }
    }

    /// The form with so many arguments.
    pub fn form(self, n_arguments: usize) -> Option<&'static [&'static str]> {
        self.forms().iter().find(|form| form.len() == n_arguments).copied()
    }
}

/// A compiled script.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The name in the policy's name.
    pub(crate) name: String,
    /// The file, or the path of a shipped script.
    pub(crate) file: String,
    pub(crate) source: Arc<str>,
    /// The comment at its head, without the slashes.
    pub(crate) header: String,
    pub(crate) script: Arc<AST>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) is_steady: bool,
    /// Whether it says that jobs that run go on until they end.
    pub(crate) keeps_running: bool,
    /// Whether its top level defines constants, which stages see only when it runs before them.
    pub(crate) has_constants: bool,
}

impl Part {
    /// A script that is no part of a policy, not yet compiled.
    pub(crate) fn alone(file: &str, source: &str) -> Part {
        Part {
            name: file.to_owned(),
            file: file.to_owned(),
            source: Arc::from(source),
            header: header(source),
            script: Arc::default(),
            stages: Vec::new(),
            is_steady: false,
            keeps_running: false,
            has_constants: false,
        }
    }

    /// Compiles a script, sees which stages it has, and runs its top level once for its declarations.
    pub(crate) fn compile(
        engine: &Engine,
        shared: &Shared,
        entries: &[Entry],
        name: &str,
        file: &str,
        source: &str,
    ) -> Result<(Part, Vec<Parameter>), LoadError> {
        let mut part = Part { name: name.to_owned(), ..Part::alone(file, source) };
        let explainer = Explainer { parts: &[], entries, meter: &shared.meter };
        let mut script = engine
            .compile(source)
            .map_err(|error| explainer.explain(error.into(), &part, None))
            .map_err(LoadError::Script)?;
        script.set_source(file);
        part.stages = part.find_stages(&script)?;
        part.script = Arc::new(script);
        shared.call_state().declarations = Some(Declarations::default());
        shared.meter.start();
        let mut scope = Scope::new();
        let ran = engine.run_ast_with_scope(&mut scope, &part.script);
        let declared = shared.call_state().declarations.take().unwrap_or_default();
        ran.map_err(|error| explainer.explain(*error, &part, None))?;
        if let Some(variant) = &declared.variant {
            return variant.compile(engine, shared, entries, &part, &declared);
        }
        if part.stages.is_empty() && !declared.keeps_running {
            return Err(LoadError::NoStage { file: part.file });
        }
        part.is_steady = declared.is_steady;
        part.keeps_running = declared.keeps_running;
        part.has_constants = !scope.is_empty();
        Ok((part, declared.parameters))
    }

    fn find_stages(&self, script: &AST) -> Result<Vec<Stage>, LoadError> {
        let mut stages = Vec::new();
        for stage in Stage::ALL {
            let written = script.iter_functions().filter(|f| f.name == stage.name());
            let written: Vec<_> = written.collect();
            let counts: Vec<usize> = written.iter().map(|f| f.params.len()).collect();
            if let Some(form) = written.iter().find_map(|f| swapped(stage, &f.params)) {
                let message = format!(
                    "the arguments of a stage in another order: write `fn {}({})`",
                    stage.name(),
                    form.join(", ")
                );
                return Err(at(self, self.position_of(stage), message, None, None).into());
            }
            let forms = counts.iter().filter(|count| stage.form(**count).is_some()).count();
            if forms == 1 {
                stages.push(stage);
            } else if !counts.is_empty() {
                let form = |form: &&[&str]| format!("`fn {}({})`", stage.name(), form.join(", "));
                let wanted = stage.forms().iter().map(form).collect::<Vec<_>>().join(" or ");
                let message = match forms {
                    0 => format!("a stage with the wrong number of arguments: write {wanted}"),
                    _ => format!("a stage that is written twice: write {wanted}"),
                };
                return Err(at(self, self.position_of(stage), message, None, None).into());
            }
        }
        Ok(stages)
    }

    /// Whether its placement is written with columns of nodes.
    pub(crate) fn places_by_nodes(&self) -> bool {
        self.script.iter_functions().any(|f| f.name == Stage::Place.name() && f.params.len() == 2)
    }

    /// Where a stage's function is written.
    pub(crate) fn position_of(&self, stage: Stage) -> Position {
        self.position_of_text(&format!("fn {}(", stage.name()))
    }

    /// The position of the first occurrence of a text.
    pub(crate) fn position_of_text(&self, wanted: &str) -> Position {
        let place = self.source.lines().enumerate().find_map(|(line, text)| Some((line, text.find(wanted)?)));
        place.map_or(Position::NONE, |(line, column)| {
            Position::new(u16::try_from(line + 1).unwrap_or(u16::MAX), u16::try_from(column + 1).unwrap_or(1))
        })
    }

    /// Names of the functions written in it.
    pub(crate) fn functions(&self) -> Vec<String> {
        let named = self.script.iter_functions().filter(|f| !f.name.starts_with("anon$"));
        named.map(|f| f.name.to_owned()).collect()
    }
}

/// The form of a stage whose arguments stand in another order: the values go by their places, whatever the names say.
fn swapped(stage: Stage, written: &[&str]) -> Option<&'static [&'static str]> {
    let form = stage.form(written.len())?;
    let is_swapped = |(index, name): (usize, &&str)| {
        form.iter().position(|known| known == name).is_some_and(|place| place != index)
    };
    written.iter().enumerate().any(is_swapped).then_some(form)
}

/// The comment at the head of a script, without the slashes.
pub(crate) fn header(source: &str) -> String {
    let lines = source.lines().take_while(|line| line.starts_with("//"));
    let lines: Vec<&str> = lines.map(|line| line.trim_start_matches('/').trim()).collect();
    lines.join("\n").trim().to_owned()
}
