//! The thread that has rounds decided: it holds the policy in use, its memory, and the child in which it decides.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

use rota_core::round::{self, Decision};
use rota_core::snapshot::Snapshot;
use rota_scripts::Source;

use super::loaded::{DecideError, PolicyChosen, PolicyUseError};
use super::process::{Asked, Child, ChildError, ChildSettings};
use super::wire::Effort;
use super::{Answer, Tell};

/// The snapshot of the last round, for dry runs of changed files.
pub(super) type LastSnapshot = Arc<Mutex<Option<Snapshot>>>;

/// What the thread is given to do, in this order.
pub(super) enum Task {
    Decide {
        round: u64,
        snapshot: Snapshot,
    },
    Forget {
        round: u64,
    },
    /// There is no policy to start with.
    BeginWithout,
    /// A policy was tried: use it from now on, or say why not.
    Use {
        ticket: Option<u64>,
        result: Result<Box<Tried>, PolicyUseError>,
    },
}

/// A policy that passed its trial, in the child in which it did.
pub(super) struct Tried {
    pub(super) chosen: PolicyChosen,
    pub(super) sources: Vec<Source>,
    pub(super) child: Child,
    /// The memory to begin with; none goes on with that of the policy in use.
    pub(super) memory: Option<String>,
}

/// Works until all senders of tasks are gone.
pub(super) fn run(settings: ChildSettings, tasks: &mpsc::Receiver<Task>, last: &LastSnapshot, tell: &Tell) {
    let (mut policy, mut early): (Option<InUse>, _) = (None, None);
    let mut is_first_tried = false;
    while let Ok(task) = tasks.recv() {
        match task {
            Task::Decide { round, snapshot } => {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.clone());
                match &mut policy {
                    Some(policy) => tell(policy.answer(round, &snapshot)),
                    // The policy to start with is still being tried.
                    None if !is_first_tried => early = Some((round, snapshot)),
                    None => tell(without_policy(round)),
                }
            }
            Task::Forget { round } => policy.iter_mut().for_each(|policy| policy.forget(round)),
            Task::BeginWithout => is_first_tried = true,
            Task::Use { ticket, result } => {
                is_first_tried = true;
                let result = result.map(|tried| {
                    let chosen = tried.chosen.clone();
                    policy = Some(InUse::new(settings.clone(), *tried, policy.take()));
                    chosen
                });
                tell(Answer::Chosen { ticket, result });
                if let Some((round, snapshot)) = early.take() {
                    tell(match &mut policy {
                        Some(policy) => policy.answer(round, &snapshot),
                        None => without_policy(round),
                    });
                }
            }
        }
    }
}

fn without_policy(round: u64) -> Answer {
    Answer::Decided { round, result: Err(DecideError::NoPolicy), effort: Effort::default() }
}

/// The policy in use.
struct InUse {
    settings: ChildSettings,
    chosen: PolicyChosen,
    sources: Vec<Source>,
    /// None after it was killed, until the next round.
    child: Option<Child>,
    /// Whether the child's memory is the one below.
    child_remembers: bool,
    /// After the last decision that counts.
    memory: String,
    /// The last round, and the memory before it.
    before: Option<(u64, String)>,
    /// What the last decision took.
    effort: Effort,
}

impl InUse {
    fn new(settings: ChildSettings, tried: Tried, last: Option<InUse>) -> Self {
        let Tried { chosen, sources, child, memory } = tried;
        let (known, before) = last.map_or_else(Default::default, |last| (last.memory, last.before));
        let before = if memory.is_none() { before } else { None };
        let memory = memory.unwrap_or(known);
        InUse {
            settings,
            chosen,
            sources,
            child: Some(child),
            child_remembers: false,
            memory,
            before,
            effort: Effort::default(),
        }
    }

    fn answer(&mut self, round: u64, snapshot: &Snapshot) -> Answer {
        let result = self.decide(round, snapshot);
        Answer::Decided { round, result, effort: std::mem::take(&mut self.effort) }
    }

    /// Decides a round and returns the memory after it. A decision that fails does not change the memory.
    fn decide(&mut self, round: u64, snapshot: &Snapshot) -> Result<(Decision, String), DecideError> {
        self.before = Some((round, self.memory.clone()));
        let result = match self.ask(snapshot) {
            // Not by its own doing: a new child is asked, once.
            Err(DecideError::Child(ChildError::Ended { how, is_killed: true, .. })) => {
                tracing::warn!(
                    "the process in which the policy decides was killed ({how}) and is started again"
                );
                self.ask(snapshot)
            }
            result => result,
        };
        self.child_remembers = result.is_ok();
        if let Ok((_, memory)) = &result {
            self.memory.clone_from(memory);
        }
        result
    }

    fn ask(&mut self, snapshot: &Snapshot) -> Result<(Decision, String), DecideError> {
        let limit = self.settings.limit;
        let mut child = match self.child.take() {
            Some(child) => child,
            None => {
                let mut child = Child::start(&self.settings, false)?;
                let PolicyChosen { policy, set, .. } = &self.chosen;
                child.load(policy, set, &self.sources, limit)?.map_err(DecideError::Reload)?;
                self.child_remembers = false;
                child
            }
        };
        if !self.child_remembers {
            child.remember(&self.memory, limit)?.map_err(DecideError::Reload)?;
        }
        let began = Instant::now();
        let mut asked = Asked::new(&mut child, limit);
        let decided = round::decide(snapshot, &mut asked);
        let Asked { memory, failure, .. } = asked;
        self.effort = child.effort;
        let (n_jobs, took) = (snapshot.jobs.len(), child.effort.took);
        tracing::debug!("{n_jobs} jobs: decided in {:?}, the policy took {took:?}", began.elapsed());
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        self.child = Some(child);
        Ok((decided?, memory.unwrap_or_default()))
    }

    /// Restores the memory from before a round, if that was the last one decided.
    fn forget(&mut self, round: u64) {
        if let Some((_, memory)) = self.before.take_if(|(last, _)| *last == round) {
            self.memory = memory;
            self.child_remembers = false;
        }
    }
}
