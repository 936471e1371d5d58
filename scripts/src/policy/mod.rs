//! A policy made of scripts: what can be asked of it and set, and one decision from beginning to end.

pub(crate) mod account;
pub(crate) mod asking;
pub(crate) mod compose;
pub(crate) mod part;
mod promises;
pub mod shipped;
pub(crate) mod solving;
mod stages;
pub(crate) mod variant;

use std::sync::Arc;

use rhai::Engine;
use rota_core::check::is_sound;
use rota_core::guards;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::room::Room;
use rota_core::snapshot::{Guards, Snapshot};

use crate::language::error::{LoadError, ScriptError};
use crate::language::limits::{Limits, Reached};
use crate::language::parameters::{Parameter, SetError};
use crate::language::private::{self, Private};
use crate::language::reference::Entry;
use crate::language::session::{Session, Shared};
use crate::language::trace::Trace;
use crate::language::{engine, trace};
use crate::policy::compose::{FindText, Source};
use crate::policy::part::{Part, Stage};
use crate::values::Placement;

/// A policy made of one or more scripts.
pub struct ScriptPolicy {
    name: String,
    pub(crate) engine: Engine,
    pub(crate) shared: Arc<Shared>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) parts: Vec<Part>,
    pub(crate) memories: Vec<Private>,
    room: Option<Room>,
    /// The placement, where its script was asked once and for all.
    lasting_placement: Option<Placement>,
    /// Set in the copy that runs a failed decision again to see where it was.
    trace: Option<Arc<Trace>>,
}

impl ScriptPolicy {
    /// A policy by its name: parts joined by `+`, each a shipped script (`las+tune`) or a path (`./mine.rhai+tune`).
    pub fn load(name: &str, limits: Limits) -> Result<Self, LoadError> {
        Self::from_sources(name, &compose::sources(name)?, limits)
    }

    /// The texts of a policy's parts, by its name; admission by itself with the parts it is joined to.
    pub fn sources_of(name: &str) -> Result<Vec<Source>, LoadError> {
        compose::sources(name)
    }

    /// The same with the texts of scripts that are not shipped from another place than the disk.
    pub fn sources_from(name: &str, find: FindText<'_>) -> Result<Vec<Source>, LoadError> {
        compose::sources_from(name, find)
    }

    /// A policy from texts.
    pub fn from_sources(name: &str, sources: &[Source], limits: Limits) -> Result<Self, LoadError> {
        Self::compile(name, sources, limits, None)
    }

    pub(crate) fn compile(
        name: &str,
        sources: &[Source],
        limits: Limits,
        trace: Option<Arc<Trace>>,
    ) -> Result<Self, LoadError> {
        let (mut engine, shared, entries) = engine::build(limits);
        if let Some(trace) = &trace {
            trace.watch(&mut engine, &shared);
        }
        let mut parts = Vec::new();
        for source in sources {
            let (mut part, parameters) =
                Part::compile(&engine, &shared, &entries, &source.name, &source.file, &source.text)?;
            compose::restrict(&mut part)?;
            let mut state = shared.call_state();
            state.scripts.push(Arc::clone(&part.script));
            state.parameters.push(parameters);
            state.learn_models(&part);
            drop(state);
            if let Some(trace) = &trace {
                trace.learn(&part);
            }
            parts.push(part);
        }
        compose::refuse_clashes(&parts)?;
        let memories = vec![Private::default(); parts.len()];
        Ok(ScriptPolicy {
            name: name.to_owned(),
            engine,
            shared,
            entries,
            parts,
            memories,
            room: None,
            lasting_placement: None,
            trace,
        })
    }

    /// The name it was loaded by, such as `las+tune`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters of all parts: (part, parameter).
    pub fn params(&self) -> Vec<(String, Parameter)> {
        let state = self.shared.call_state();
        let by_part = self.parts.iter().zip(&state.parameters);
        by_part.flat_map(|(part, list)| list.iter().map(|p| (part.name.clone(), p.clone()))).collect()
    }

    /// Sets a parameter: `key` is its name, or `part.name` where several parts have it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        self.lasting_placement = None;
        self.shared.keep_placement(None);
        let mut state = self.shared.call_state();
        let (wanted_part, name) = key.split_once('.').map_or((None, key), |(part, name)| (Some(part), name));
        let is_wanted = |part: &Part| wanted_part.is_none_or(|wanted| part.name == wanted);
        let mut found: Vec<(&str, &mut Parameter)> = Vec::new();
        for (part, list) in self.parts.iter().zip(&mut state.parameters).filter(|(part, _)| is_wanted(part)) {
            found.extend(list.iter_mut().filter(|p| p.name == name).map(|p| (part.name.as_str(), p)));
        }
        match found.as_mut_slice() {
            [(_, parameter)] => parameter.set(value),
            [] => {
                let names: Vec<&str> = state.parameters.iter().flatten().map(|p| p.name.as_str()).collect();
                Err(SetError::unknown(key, self.name.clone(), &names))
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
        self.parts.iter().map(|part| part.header.clone()).collect()
    }

    /// Whether all parts say that time alone changes nothing.
    pub fn is_steady(&self) -> bool {
        self.parts.iter().all(|part| part.is_steady)
    }

    /// Whether a part says that jobs that run go on until they end.
    pub(crate) fn keeps_running(&self) -> bool {
        self.parts.iter().any(|part| part.keeps_running)
    }

    /// The texts it was made of.
    pub(crate) fn texts(&self) -> Vec<Source> {
        let source = |part: &Part| Source {
            name: part.name.clone(),
            file: part.file.clone(),
            text: part.source.to_string(),
        };
        self.parts.iter().map(source).collect()
    }

    /// The same policy with its parameters and memory, watched step by step.
    pub(crate) fn watched_copy(&self, limits: Limits, trace: &Arc<Trace>) -> Result<Self, LoadError> {
        let mut copy = Self::compile(&self.name, &self.texts(), limits, Some(Arc::clone(trace)))?;
        copy.shared.call_state().parameters = self.shared.call_state().parameters.clone();
        copy.memories.clone_from(&self.memories);
        copy.shared.solving.announce_like(&self.shared.solving);
        Ok(copy)
    }

    /// Private memory as [`Policy::memory`] gave it, put back after a restart.
    pub fn restore_memory(&mut self, text: &str) -> Result<(), PolicyError> {
        self.memories = private::restore(&self.engine, self.parts.len(), text)
            .map_err(|error| PolicyError { message: error.to_string() })?;
        Ok(())
    }

    /// Operations the last decision took.
    pub fn operations(&self) -> u64 {
        self.shared.meter.operations()
    }
}

impl Policy for ScriptPolicy {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        self.decide_or_explain(snapshot).map_err(|error| PolicyError { message: error.to_string() })
    }

    fn memory(&self) -> String {
        private::text(&self.memories)
    }
}

impl ScriptPolicy {
    /// One decision; a script's error is returned with its parts instead of as text.
    pub fn decide_or_explain(&mut self, snapshot: &Snapshot) -> Result<Plan, ScriptError> {
        let session = self.begin(snapshot);
        let before = self.memories.iter().any(|memory| !memory.is_empty()).then(|| self.memories.clone());
        let result = self.stages_of(&session);
        let notes = self.end(&session);
        match result {
            Ok(mut plan) => {
                plan.notes = notes;
                // What cannot be carried out is refused as it is.
                if self.keeps_running() && is_sound(&session.snapshot, &plan) {
                    guards::mend(&session.snapshot, &mut plan);
                }
                Ok(plan)
            }
            Err(error) => {
                self.memories = before.unwrap_or_else(|| vec![Private::default(); self.parts.len()]);
                let is_vague =
                    error.position.is_none() || self.shared.meter.reached() == Some(Reached::Operations);
                match self.trace.is_none() && is_vague {
                    true => Err(trace::locate(self, snapshot, error)),
                    false => Err(error),
                }
            }
        }
    }

    fn begin(&mut self, snapshot: &Snapshot) -> Arc<Session> {
        let room = self.room.take().filter(|room| std::ptr::eq(room.cluster(), &*snapshot.cluster));
        let mut seen = snapshot.clone();
        if self.keeps_running() {
            seen.guards = Arc::new(Guards { min_run: Guards::NO_PREEMPTION, ..(*snapshot.guards).clone() });
        }
        let session = Session::new(&seen, &self.shared, room);
        self.shared.meter.start();
        let mut state = self.shared.call_state();
        state.session = Some(Arc::clone(&session));
        state.n_rank_calls = 0;
        state.notes.clear();
        session
    }

    fn end(&mut self, session: &Session) -> Vec<String> {
        // The strategy may hold closures that hold the session: a circle, unless it is cut here.
        let mut stage = session.stage();
        stage.placement = Placement::FirstFit;
        self.room = stage.room.take();
        let mut state = self.shared.call_state();
        state.session = None;
        std::mem::take(&mut state.notes)
    }
}
