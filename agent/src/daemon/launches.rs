//! The launches of this node, and how much of each the head already knows.

use std::collections::BTreeMap;

use rota_transport::message::{AttemptInfo, Fact, OrderId, Outcome};
use rota_transport::value::Text;
use tokio::sync::mpsc::UnboundedSender;

use super::translate;
use crate::launch::spec::{Attempt, LaunchSpec};
use crate::probe::Node;
use crate::shim::control::ToShim;
use crate::shim::record::{ShimPhase, State};

/// Progress of one launch is reported at most this often.
const TELL_EVERY_MS: u64 = 1_000;

/// All launches that were not forgotten.
#[derive(Default)]
pub(super) struct Launches(BTreeMap<Attempt, LiveLaunch>);

/// A launch on this node, and how much of it the head already knows.
pub(super) struct LiveLaunch {
    pub(super) spec: LaunchSpec,
    state: State,
    words: UnboundedSender<ToShim>,
    /// The order that waits for it to be prepared.
    preparing: Option<OrderId>,
    /// Orders that wait for its end.
    stopping: Vec<OrderId>,
    was_started: bool,
    told_at_ms: u64,
    n_warnings_told: usize,
}

/// What is reported to the head after a launch's state changed.
#[derive(Default)]
pub(super) struct Consequences {
    pub(super) facts: Vec<Fact>,
    pub(super) outcomes: Vec<(OrderId, Outcome)>,
    pub(super) has_ended: bool,
}

impl Launches {
    /// Adds a launch, new or found after a restart.
    pub(super) fn add(&mut self, spec: LaunchSpec, state: State, words: UnboundedSender<ToShim>) {
        let was_started = matches!(state.phase, ShimPhase::Running | ShimPhase::Stopping);
        let live = LiveLaunch {
            state,
            words,
            preparing: None,
            stopping: Vec::new(),
            was_started,
            told_at_ms: 0,
            n_warnings_told: 0,
            spec,
        };
        self.0.insert(live.spec.attempt, live);
    }

    pub(super) fn get_mut(&mut self, attempt: Attempt) -> Option<&mut LiveLaunch> {
        self.0.get_mut(&attempt)
    }

    /// Drops one that was forgotten.
    pub(super) fn remove(&mut self, attempt: Attempt) {
        self.0.remove(&attempt);
    }

    /// Whether a launch of a job is known.
    pub(super) fn has_job(&self, job: u32) -> bool {
        self.0.keys().any(|attempt| attempt.job == job)
    }

    /// How many have not ended.
    pub(super) fn n_live(&self) -> usize {
        self.0.values().filter(|live| !live.has_ended()).count()
    }

    /// Sends a message to the shims of all launches that have not ended.
    pub(super) fn tell_all(&self, word: &ToShim) {
        self.0.values().filter(|live| !live.has_ended()).for_each(|live| live.tell(word.clone()));
    }

    /// All launches as an inventory shows them.
    pub(super) fn infos(&self, node: &Node) -> Vec<AttemptInfo> {
        self.0.values().filter_map(|live| translate::attempt_info(&live.spec, &live.state, node)).collect()
    }
}

impl LiveLaunch {
    /// Whether nothing of it runs any more.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state.phase, ShimPhase::Ended(_))
    }

    /// Sends a message to its shim.
    pub(super) fn tell(&self, word: ToShim) {
        // A shim that is gone needs no message; its watcher reports how the launch ended.
        let _ = self.words.send(word);
    }

    /// An order waits until it is prepared.
    pub(super) fn answer_when_prepared(&mut self, order: OrderId) {
        self.preparing = Some(order);
    }

    /// An order waits for its end.
    pub(super) fn answer_when_ended(&mut self, order: OrderId) {
        self.stopping.push(order);
    }

    /// Takes over a new state, and returns what the head must learn from it.
    pub(super) fn update(&mut self, state: State, log: &std::path::Path, now_ms: u64) -> Consequences {
        let mut consequences = Consequences::default();
        if self.has_ended() {
            return consequences;
        }
        let attempt = translate::to_wire(self.spec.attempt);
        let before = std::mem::replace(&mut self.state, state);
        let state = &self.state;
        let is_prepared = state.phase == ShimPhase::Prepared;
        if let Some(order) = self.preparing.filter(|_| is_prepared) {
            self.preparing = None;
            consequences.outcomes.push((order, Outcome::Prepared { port: state.port }));
        }
        if state.phase == ShimPhase::Running && !self.was_started {
            self.was_started = true;
            consequences.facts.push(Fact::Started(attempt));
        }
        if state.checkpointed > before.checkpointed {
            let iterations = translate::iterations(state.checkpointed);
            consequences.facts.push(Fact::Checkpointed { attempt, iterations });
        }
        for warning in state.warnings.iter().skip(self.n_warnings_told) {
            consequences.facts.push(Fact::Warning(Text::cut(&format!("{attempt}: {warning}"))));
        }
        self.n_warnings_told = state.warnings.len();
        if let ShimPhase::Ended(end) = &state.phase {
            consequences.has_ended = true;
            consequences.facts.push(Fact::Exited(translate::exited(self.spec.attempt, state, end, log)));
            let failed = |order| (order, Outcome::Failed(Text::cut(&format!("it ended: {:?}", end.how))));
            consequences.outcomes.extend(self.preparing.take().map(failed));
            consequences.outcomes.extend(self.stopping.drain(..).map(|order| (order, Outcome::Done)));
        } else if state.iterations != before.iterations && now_ms >= self.told_at_ms + TELL_EVERY_MS {
            self.told_at_ms = now_ms;
            let iterations = translate::iterations(state.iterations);
            consequences.facts.push(Fact::Progressed { attempt, iterations });
        }
        consequences
    }
}
