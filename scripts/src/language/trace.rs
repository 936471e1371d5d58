//! Where a script was when a limit stopped it. Rhai's limit errors carry no position, so the decision is run once
//! more by a copy of the policy that is watched step by step, for a bounded number of operations.
//!
//! An endless loop is in its loop long before the limit, so the last step of the shorter run names the right line.

use std::sync::{Arc, Mutex, PoisonError};

use rhai::debugger::{DebuggerCommand, DebuggerEvent};
use rhai::{Engine, Position};
use rota_core::snapshot::Snapshot;

use crate::language::error::ScriptError;
use crate::language::limits::Limits;
use crate::policy::ScriptPolicy;
use crate::policy::compose::Source;

/// Operations of the second run: enough to be where it went wrong, few enough to end in some ten milliseconds.
const MAX_OPERATIONS: u64 = 100_000;

/// The last step of a watched run.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Option<(String, Position)>>);

impl Trace {
    /// Notes every step of an engine.
    #[expect(
        deprecated,
        reason = "not deprecated: Rhai marks unstable interfaces so, and the version is pinned"
    )]
    pub(crate) fn watch(self: &Arc<Self>, engine: &mut Engine) {
        let trace = Arc::clone(self);
        engine.register_debugger(
            |_, debugger| debugger,
            move |_, event, _, source, position| {
                // Leaving a function is an event too, at its closing brace: an error there would help no one.
                if matches!(event, DebuggerEvent::Step) && !position.is_none() {
                    let mut last = trace.0.lock().unwrap_or_else(PoisonError::into_inner);
                    *last = Some((source.unwrap_or_default().to_owned(), position));
                }
                Ok(DebuggerCommand::StepInto)
            },
        );
    }

    fn last(&self) -> Option<(String, Position)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The error with the position that the script had reached, as far as a second run can tell.
pub(crate) fn locate(policy: &ScriptPolicy, snapshot: &Snapshot, error: ScriptError) -> ScriptError {
    let part = |part: &crate::policy::part::Part| Source {
        name: part.name.clone(),
        file: part.file.clone(),
        text: part.source.to_string(),
    };
    let sources: Vec<Source> = policy.parts.iter().map(part).collect();
    let limits = policy.shared.meter.limits();
    let limits = Limits { operations: limits.operations.min(MAX_OPERATIONS), ..limits.clone() };
    let trace = Arc::new(Trace::default());
    let Ok(mut copy) = ScriptPolicy::compile(policy.name(), &sources, limits, Some(Arc::clone(&trace)))
    else {
        return error;
    };
    copy.shared.call_state().parameters = policy.shared.call_state().parameters.clone();
    copy.memories.clone_from(&policy.memories);
    match copy.decide_or_explain(snapshot) {
        Err(again) if again.stage == error.stage => match trace.last() {
            // A closure called by the host has no file of its own; the error knows which it is.
            Some((file, position)) if file.is_empty() => {
                let file = error.file.clone();
                error.moved_to(&policy.parts, &file, position)
            }
            Some((file, position)) => error.moved_to(&policy.parts, &file, position),
            None => error,
        },
        _ => error,
    }
}
