//! The launches of this node, and how much of each the head already knows.

use std::collections::BTreeMap;

use rota_core::resources::Host;
use rota_transport::message::{AttemptInfo, Fact, OrderId, Origin, Outcome};
use rota_transport::value::Text;
use tokio::sync::mpsc::UnboundedSender;

use super::translate;
use crate::launch::spec::{Attempt, LaunchSpec, LauncherKind};
use crate::probe::Node;
use crate::ranges::Ranges;
use crate::shim::control::ToShim;
use crate::shim::record::{ShimPhase, State};

/// Progress of one launch is reported at most this often.
const TELL_EVERY_MS: u64 = 1_000;

/// All launches that were not forgotten.
#[derive(Default)]
pub(super) struct Launches(BTreeMap<Attempt, LiveLaunch>);

/// A launch on this node, and how much of it the head already knows.
pub(super) struct LiveLaunch {
    pub(super) launch: KnownLaunch,
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

/// What the agent itself needs to know of a launch; the rest of its record is for the shim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownLaunch {
    pub(super) attempt: Attempt,
    /// The head's own number for it; 0 if it is not known.
    pub(super) launch_id: u64,
    /// The epoch of the head that ordered it.
    pub(super) epoch: u64,
    /// On how many nodes the job runs.
    pub(super) n_nodes: u32,
    /// By the driver's numbers.
    pub(super) gpus: Ranges,
    pub(super) gpu_share_milli: u16,
    pub(super) host: Host,
    /// CPUs that no other launch is bound to.
    pub(super) pinned: Ranges,
    /// Whether it outlives its shim, as containers do.
    pub(super) is_container: bool,
    /// Iterations that earlier launches of the job have done.
    pub(super) done: f64,
    pub(super) origin: Option<Box<Origin>>,
}

impl From<LaunchSpec> for KnownLaunch {
    fn from(spec: LaunchSpec) -> Self {
        let grant = spec.grant;
        let (cpu_micro, mem_bytes, storage_bps) = (grant.cpu_micro, grant.mem_bytes, grant.storage_bps);
        KnownLaunch {
            attempt: spec.attempt,
            launch_id: spec.launch_id,
            epoch: spec.epoch,
            n_nodes: spec.gang.n_nodes,
            gpus: grant.gpus,
            gpu_share_milli: grant.gpu_share_milli,
            host: Host { cpu_micro, mem_bytes, storage_bps },
            pinned: grant.pinned,
            is_container: matches!(spec.launcher, LauncherKind::Container(_)),
            done: spec.work.done,
            origin: spec.origin,
        }
    }
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
    pub(super) fn add(&mut self, launch: KnownLaunch, state: State, words: UnboundedSender<ToShim>) {
        let was_started = matches!(state.phase, ShimPhase::Running | ShimPhase::Stopping);
        let live = LiveLaunch {
            state,
            words,
            preparing: None,
            stopping: Vec::new(),
            was_started,
            told_at_ms: 0,
            n_warnings_told: 0,
            launch,
        };
        self.0.insert(live.launch.attempt, live);
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

    /// GPUs that are held, by the driver's numbers.
    pub(super) fn gpus(&self) -> Ranges {
        let alive = self.0.values().filter(|live| !live.has_ended());
        alive.flat_map(|live| live.launch.gpus.as_slice().iter().copied()).collect()
    }

    /// Where they come from, as far as their records say.
    pub(super) fn origins(&self) -> Vec<Origin> {
        self.0.values().filter_map(|live| live.launch.origin.as_deref().cloned()).collect()
    }

    /// All launches as an inventory shows them.
    pub(super) fn infos(&self, node: &Node) -> Vec<AttemptInfo> {
        self.0.values().filter_map(|live| translate::attempt_info(&live.launch, &live.state, node)).collect()
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
        let attempt = translate::to_wire(self.launch.attempt);
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
            consequences.facts.push(Fact::Exited(translate::exited(self.launch.attempt, state, end, log)));
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
