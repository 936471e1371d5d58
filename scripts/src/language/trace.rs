//! Where a script was when a limit stopped it, and where its operations went. Rhai's limit errors carry no position, so
//! the decision is run once more by a copy of the policy that is watched step by step, for a bounded number of operations.
//!
//! An endless loop is in its loop long before the limit, so the last step of the shorter run names the right line.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhai::debugger::{DebuggerCommand, DebuggerEvent};
use rhai::{Engine, Position};
use rota_core::snapshot::Snapshot;

use crate::language::error::ScriptError;
use crate::language::limits::{Limits, Reached};
use crate::language::session::Shared;
use crate::language::tally::Tally;
use crate::policy::ScriptPolicy;
use crate::policy::part::Part;

/// Operations of the second run: enough to be where it went wrong, few enough to end in some hundred milliseconds.
const MAX_OPERATIONS: u64 = 200_000;

/// What a watched run has done.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Watched>);

#[derive(Debug, Default)]
pub(crate) struct Watched {
    last: Option<(String, Position)>,
    /// The stack of the last step that was not in a closure called by the host, which begins a stack of its own.
    outer: Vec<String>,
    pub(crate) tally: Tally,
}

impl Trace {
    /// Notes every step of an engine.
    #[expect(
        deprecated,
        reason = "not deprecated: Rhai marks unstable interfaces so, and the version is pinned"
    )]
    pub(crate) fn watch(self: &Arc<Self>, engine: &mut Engine, shared: &Arc<Shared>) {
        let (trace, shared) = (Arc::clone(self), Arc::clone(shared));
        engine.register_debugger(
            |_, debugger| debugger,
            move |context, event, _, source, position| {
                // Leaving a function is an event too, at its closing brace: an error there would help no one.
                if matches!(event, DebuggerEvent::Step) && !position.is_none() {
                    let frames = context.global_runtime_state().debugger().call_stack();
                    let stack = frames.iter().map(|frame| frame_name(&frame.fn_name)).collect();
                    trace.step(source.unwrap_or_default(), position, stack, shared.meter.operations());
                }
                Ok(DebuggerCommand::StepInto)
            },
        );
    }

    /// Reads a compiled part, so that steps are known by the calls they are in.
    pub(crate) fn learn(&self, part: &Part) {
        self.watched().tally.learn(&part.file, &part.script);
    }

    fn step(&self, file: &str, position: Position, mut stack: Vec<String>, operations: u64) {
        let mut watched = self.watched();
        if stack.first().is_some_and(|name| name == CLOSURE) {
            stack.splice(0..0, watched.outer.iter().cloned());
        } else {
            watched.outer.clone_from(&stack);
        }
        // A closure called by the host has no file of its own: it is in the file of the step before.
        let file = if file.is_empty() { watched.tally.file().to_owned() } else { file.to_owned() };
        watched.tally.step(&file, position, stack, operations);
        watched.last = Some((file, position));
    }

    pub(crate) fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const CLOSURE: &str = "closure";

fn frame_name(function: &str) -> String {
    if function.starts_with("anon$") { CLOSURE.to_owned() } else { function.to_owned() }
}

/// The error with the position that the script had reached, as far as a second run can tell, and for the limit on
/// operations with what they went to.
pub(crate) fn locate(policy: &ScriptPolicy, snapshot: &Snapshot, error: ScriptError) -> ScriptError {
    let limits = policy.shared.meter.limits();
    let limits = Limits { operations: limits.operations.min(MAX_OPERATIONS), ..limits.clone() };
    let trace = Arc::new(Trace::default());
    let Ok(mut copy) = policy.watched_copy(limits, &trace) else { return error };
    let Err(again) = copy.decide_or_explain(snapshot) else { return error };
    if again.stage != error.stage {
        return error;
    }
    let mut watched = trace.watched();
    watched.tally.end(copy.operations());
    let mut error = match watched.last.take() {
        Some((file, position)) if error.position.is_none() => error.moved_to(&policy.parts, &file, position),
        _ => error,
    };
    if policy.shared.meter.reached() == Some(Reached::Operations) {
        error.hint = watched.tally.sentence().or(error.hint);
    }
    error
}
