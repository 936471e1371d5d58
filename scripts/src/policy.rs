//! A policy made of scripts: the stages of one decision, in order, each by the part that defines it.

use std::path::Path;
use std::sync::Arc;

use rhai::{CallFnOptions, Dynamic, Engine, FuncArgs, Scope};
use rota_core::plan::{Plan, Verdict, Wake};
use rota_core::policy::{Policy, PolicyError};
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_core::table::Phase;
use rota_core::time::{Span, Time};

use crate::error::{Explainer, LoadError, ScriptError, at};
use crate::limits::Limits;
use crate::parameters::{Parameter, SetError};
use crate::part::{Part, Stage};
use crate::private::{self, Private};
use crate::reference::Entry;
use crate::session::{Session, Shared};
use crate::values::{FillValue, JobValue, Jobs, Placement, PlanValue, Queue, Rows, VerdictValue, View};
use crate::{engine, nearest, rank, shipped};

/// A policy made of one or more scripts.
pub struct ScriptPolicy {
    name: String,
    engine: Engine,
    shared: Arc<Shared>,
    entries: Vec<Entry>,
    parts: Vec<Part>,
    memories: Vec<Private>,
    room: Option<Room>,
}

/// The text of a part.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in the policy's name.
    pub name: String,
    /// The file, for messages.
    pub file: String,
    /// The script.
    pub text: String,
}

impl ScriptPolicy {
    /// A policy by its name: parts joined by `+`, each a shipped script (`las+tune`) or a path (`./mine.rhai+tune`).
    pub fn load(name: &str, limits: Limits) -> Result<Self, LoadError> {
        let sources = name.split('+').map(|part| find_source(part.trim())).collect::<Result<Vec<_>, _>>()?;
        Self::from_sources(name, &sources, limits)
    }

    /// A policy from texts.
    pub fn from_sources(name: &str, sources: &[Source], limits: Limits) -> Result<Self, LoadError> {
        let (engine, shared, entries) = engine::build(limits);
        let mut parts = Vec::new();
        for source in sources {
            let (part, parameters) =
                Part::compile(&engine, &shared, &entries, &source.name, &source.file, &source.text)?;
            let mut live = shared.live();
            live.scripts.push(Arc::clone(&part.script));
            live.parameters.push(parameters);
            drop(live);
            parts.push(part);
        }
        refuse_clashes(&parts)?;
        let memories = vec![Private::default(); parts.len()];
        Ok(ScriptPolicy { name: name.to_owned(), engine, shared, entries, parts, memories, room: None })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters of all parts: (part, parameter).
    pub fn params(&self) -> Vec<(String, Parameter)> {
        let live = self.shared.live();
        let by_part = self.parts.iter().zip(&live.parameters);
        by_part.flat_map(|(part, list)| list.iter().map(|p| (part.name.clone(), p.clone()))).collect()
    }

    /// Sets a parameter: `key` is its name, or `part.name` where several parts have it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        let mut live = self.shared.live();
        let (wanted_part, name) = key.split_once('.').map_or((None, key), |(part, name)| (Some(part), name));
        let is_wanted = |part: &Part| wanted_part.is_none_or(|wanted| part.name == wanted);
        let mut found: Vec<(&str, &mut Parameter)> = Vec::new();
        for (part, list) in self.parts.iter().zip(&mut live.parameters).filter(|(part, _)| is_wanted(part)) {
            found.extend(list.iter_mut().filter(|p| p.name == name).map(|p| (part.name.as_str(), p)));
        }
        match found.as_mut_slice() {
            [(_, parameter)] => parameter.set(value),
            [] => {
                let names: Vec<&str> = live.parameters.iter().flatten().map(|p| p.name.as_str()).collect();
                let hint = match (nearest::hint(name, names.iter().copied()), names.is_empty()) {
                    (Some(hint), _) => format!(": {hint}"),
                    (None, true) => ", which has none".to_owned(),
                    (None, false) => format!(", which has {}", names.join(", ")),
                };
                Err(SetError::Unknown { name: key.to_owned(), policy: self.name.clone(), hint })
            }
            several => {
                let parts: Vec<&str> = several.iter().map(|(part, _)| *part).collect();
                let example = format!("{}.{name}", parts[0]);
                Err(SetError::Ambiguous { name: name.to_owned(), parts: parts.join(" and "), example })
            }
        }
    }

    /// The stages of each part: (part, file, stages).
    pub fn stages(&self) -> Vec<(String, String, Vec<Stage>)> {
        self.parts.iter().map(|p| (p.name.clone(), p.file.clone(), p.stages.clone())).collect()
    }

    /// The header of each part.
    pub fn headers(&self) -> Vec<String> {
        self.parts.iter().map(Part::header).collect()
    }

    /// Whether all parts say that time alone changes nothing.
    pub fn is_steady(&self) -> bool {
        self.parts.iter().all(|part| part.is_steady)
    }

    /// Private memory as [`Policy::memory`] gave it, put back after a restart.
    pub fn restore_memory(&mut self, text: &str) -> Result<(), PolicyError> {
        self.memories = private::restore(&self.engine, self.parts.len(), text)
            .map_err(|message| PolicyError { message })?;
        Ok(())
    }

    /// Operations the last decision took.
    pub fn operations(&self) -> u64 {
        self.shared.meter.operations()
    }

    fn part_of(&self, stage: Stage) -> Option<usize> {
        self.parts.iter().position(|part| part.stages.contains(&stage))
    }

    /// All stages of one decision.
    fn stages_of(&mut self, session: &Arc<Session>) -> Result<Plan, ScriptError> {
        let verdicts = self.admission(session)?;
        let mut value = match self.part_of(Stage::Decide) {
            Some(part) => self.planned(session, part, Stage::Decide)?,
            None => {
                let queue = self.order(session)?;
                session.stage().queue = Some(queue.rows.clone());
                session.stage().placement = self.placement(session)?;
                match self.part_of(Stage::Allocate) {
                    Some(part) => self.planned(session, part, Stage::Allocate)?,
                    None => FillValue::new(queue)
                        .fair_share()
                        .run(&self.engine)
                        .map_err(|e| self.explain(*e, 0, Stage::Allocate))?,
                }
            }
        };
        merge_verdicts(&mut value, verdicts);
        let has_wake = value.has_wake;
        let mut plan = value.plan;
        if !has_wake && self.is_steady() {
            plan.wake = steady_wake(&session.snapshot);
        }
        Ok(plan)
    }

    /// Who of those that ask may enter. Without a script for it, everybody, at no cost.
    fn admission(&mut self, session: &Arc<Session>) -> Result<Vec<(u32, VerdictValue)>, ScriptError> {
        if session.snapshot.jobs.n_asking() == 0 {
            return Ok(Vec::new());
        }
        let asking = session.rows_in(Phase::Asking);
        let Some(part) = self.part_of(Stage::Admit) else {
            return Ok(asking.into_iter().map(|row| (row, VerdictValue::Accept)).collect());
        };
        let jobs = &session.snapshot.jobs;
        let mut admitted: Vec<u32> = session.rows_by_id().to_vec();
        admitted.retain(|row| jobs.phase(*row as usize) != Phase::Asking);
        session.stage().admitted = Rows::Some(Arc::new(admitted.clone()));
        let mut verdicts = Vec::with_capacity(asking.len());
        for row in asking {
            let args = (JobValue::new(session, row), View(Arc::clone(session)));
            let value = self.call(part, Stage::Admit, args)?;
            let Some(verdict) = value.clone().try_cast::<VerdictValue>() else {
                return Err(self.wrong_type(
                    part,
                    Stage::Admit,
                    "accept(), decline(\"why\") or wait()",
                    &value,
                ));
            };
            if verdict == VerdictValue::Accept {
                let place = admitted.partition_point(|r| jobs.id(*r as usize) < jobs.id(row as usize));
                admitted.insert(place, row);
                session.stage().admitted = Rows::Some(Arc::new(admitted.clone()));
            }
            verdicts.push((row, verdict));
        }
        if admitted.len() == jobs.len() {
            session.stage().admitted = Rows::All;
        }
        Ok(verdicts)
    }

    fn order(&mut self, session: &Arc<Session>) -> Result<Queue, ScriptError> {
        let jobs: Jobs = View(Arc::clone(session)).jobs();
        match self.part_of(Stage::Order) {
            None => Ok(rank::by_arrival(&self.shared, &jobs)),
            Some(part) => {
                let now = session.snapshot.now.as_secs_f64();
                let value = self.call(part, Stage::Order, (jobs, now))?;
                Queue::from_value(session, value).map_err(|error| self.returned(*error, part, Stage::Order))
            }
        }
    }

    fn placement(&mut self, session: &Arc<Session>) -> Result<Placement, ScriptError> {
        let Some(part) = self.part_of(Stage::Place) else { return Ok(Placement::FirstFit) };
        let value = self.call(part, Stage::Place, (View(Arc::clone(session)),))?;
        value
            .clone()
            .try_cast::<Placement>()
            .ok_or_else(|| self.wrong_type(part, Stage::Place, "a Placement, such as first_fit()", &value))
    }

    /// Calls a stage that ends in a plan, or in a walk that makes one.
    fn planned(
        &mut self,
        session: &Arc<Session>,
        part: usize,
        stage: Stage,
    ) -> Result<PlanValue, ScriptError> {
        let value = self.call(part, stage, (View(Arc::clone(session)),))?;
        if let Some(fill) = value.read_lock::<FillValue>() {
            return fill.run(&self.engine).map_err(|error| self.explain(*error, part, stage));
        }
        match value.clone().try_cast::<PlanValue>() {
            Some(plan) => Ok(plan),
            None => Err(self.wrong_type(part, stage, "a Fill (from `view.fill`) or a Plan", &value)),
        }
    }

    fn call(&mut self, part: usize, stage: Stage, args: impl FuncArgs) -> Result<Dynamic, ScriptError> {
        self.shared.live().part = part;
        let script = &self.parts[part];
        let memory = &mut self.memories[part];
        let options = CallFnOptions::new().eval_ast(script.has_constants).bind_this_ptr(memory.value());
        let result: Result<Dynamic, _> =
            self.engine.call_fn_with_options(options, &mut Scope::new(), &script.script, stage.name(), args);
        let checked = memory.check(self.shared.meter.limits().memory_text_bytes);
        let value = result.map_err(|error| self.explain(*error, part, stage))?;
        match checked {
            Ok(()) => Ok(value),
            Err(message) => Err(at(script, script.position_of(stage), message, None, Some(stage.name()))),
        }
    }

    fn explain(&self, error: rhai::EvalAltResult, part: usize, stage: Stage) -> ScriptError {
        let explainer = Explainer { parts: &self.parts, entries: &self.entries, meter: &self.shared.meter };
        explainer.explain(error, &self.parts[part], Some(stage.name()))
    }

    /// An error about what a stage returned: it stands at the stage's function.
    fn returned(&self, error: rhai::EvalAltResult, part: usize, stage: Stage) -> ScriptError {
        let mut explained = self.explain(error, part, stage);
        if explained.place.is_none() {
            let part = &self.parts[part];
            explained = at(part, part.position_of(stage), explained.message, explained.hint, explained.stage);
        }
        explained
    }

    fn wrong_type(&self, part: usize, stage: Stage, expected: &str, value: &Dynamic) -> ScriptError {
        let part = &self.parts[part];
        let got = match value.is_unit() {
            true => "nothing".to_owned(),
            false => self.engine.map_type_name(value.type_name()).to_owned(),
        };
        let message = format!("`{}` must return {expected}, got {got}", stage.name());
        let hint =
            value.is_unit().then(|| "a function returns its last expression if no `;` follows it".to_owned());
        at(part, part.position_of(stage), message, hint, Some(stage.name()))
    }
}

impl Policy for ScriptPolicy {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let room = self.room.take().filter(|room| std::ptr::eq(room.cluster(), &*snapshot.cluster));
        let session = Session::new(snapshot, &self.shared, room);
        self.shared.meter.start();
        {
            let mut live = self.shared.live();
            live.session = Some(Arc::clone(&session));
            live.n_rank_calls = 0;
            live.notes.clear();
        }
        let before = self.memories.iter().any(|m| !m.is_empty()).then(|| self.memories.clone());
        let result = self.stages_of(&session);
        let notes = {
            let mut live = self.shared.live();
            live.session = None;
            std::mem::take(&mut live.notes)
        };
        // The strategy may hold closures that hold the session: a circle, unless it is cut here.
        let mut stage = session.stage();
        stage.placement = Placement::FirstFit;
        self.room = stage.room.take();
        drop(stage);
        match result {
            Ok(mut plan) => {
                plan.notes = notes;
                Ok(plan)
            }
            Err(error) => {
                self.memories = before.unwrap_or_else(|| vec![Private::default(); self.parts.len()]);
                Err(PolicyError { message: error.to_string() })
            }
        }
    }

    fn memory(&self) -> String {
        private::text(&self.memories)
    }
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

fn refuse_clashes(parts: &[Part]) -> Result<(), LoadError> {
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

/// The admission stage's verdicts, except for jobs on which the plan itself has a word.
fn merge_verdicts(value: &mut PlanValue, verdicts: Vec<(u32, VerdictValue)>) {
    for (row, verdict) in verdicts {
        let id = value.session().snapshot.jobs.id(row as usize);
        let is_settled = value.wait.contains(&id) || value.plan.verdicts.iter().any(|(job, _)| *job == id);
        match verdict {
            _ if is_settled => {}
            VerdictValue::Accept => value.plan.verdicts.push((id, Verdict::Admit)),
            VerdictValue::Decline(reason) => value.plan.verdicts.push((id, Verdict::Decline(reason))),
            VerdictValue::Wait => {}
        }
    }
}

/// A steady answer holds until something changes, or until a job that may not be stopped yet may be.
fn steady_wake(snapshot: &Snapshot) -> Wake {
    if snapshot.guards.min_run == Span::ZERO {
        return Wake::OnChange;
    }
    let protected = (0..snapshot.jobs.len()).filter(|row| snapshot.is_protected(*row));
    let first: Option<Time> = protected.map(|row| snapshot.jobs.since(row) + snapshot.guards.min_run).min();
    first.map_or(Wake::OnChange, Wake::AtOrOnChange)
}
