//! The thread in which the policy decides, so that heartbeats are answered while a script or a solver takes its time. It
//! also watches the scripts' files, and tries other policies on a snapshot.
//!
//! `loaded` is a policy with its memory and files, `scripts` where its texts come from, `link` the engine's end of the
//! conversation.

mod link;
mod loaded;
mod scripts;

pub(crate) use link::{DeciderLink, Waiting};
pub use loaded::DecideError;
pub use loaded::PolicyUseError;
pub(crate) use loaded::{DryRun, LoadedPolicy, PolicyChosen, decide_safely, load_script};
pub(crate) use scripts::{Scripts, is_file_name};

use std::sync::mpsc;
use std::time::Duration;

use rota_core::round::Decision;
use rota_core::snapshot::Snapshot;

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The ticket of the head itself, for the policy it starts with.
const HEADS_OWN: u64 = 0;

/// A request to the decider.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Decide a round.
    Decide { round: u64, snapshot: Snapshot },
    /// Restore the policy's memory from before a round, because its plan was overtaken by events.
    Forget { round: u64 },
    /// Change to another policy, if a dry run of it on the snapshot succeeds.
    Choose {
        ticket: u64,
        policy: String,
        set: Vec<(String, String)>,
        memory: String,
        scripts: Scripts,
        snapshot: Option<Snapshot>,
    },
    /// Read the current policy's files again.
    Reload { ticket: u64, snapshot: Option<Snapshot> },
    /// Say what another policy would do.
    WhatIf { ticket: u64, policy: String, set: Vec<(String, String)>, scripts: Scripts, snapshot: Snapshot },
}

/// An answer of the decider.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A decision, and the policy's memory after it.
    Decided { round: u64, result: Result<(Decision, String), DecideError> },
    /// Whether the policy was changed. Without a ticket, the cause was a changed file.
    Chosen { ticket: Option<u64>, result: Result<PolicyChosen, PolicyUseError> },
    /// Say what another policy would do.
    WhatIf { ticket: u64, result: Result<Decision, PolicyUseError> },
}

/// Answers requests until all their senders are gone.
pub(crate) fn run(asks: &mpsc::Receiver<Ask>, answer: impl Fn(Answer)) {
    let mut decider = Decider { policy: None, last: None };
    loop {
        match asks.recv_timeout(LOOK_EVERY) {
            Ok(ask) => {
                if let Some(found) = decider.answer(ask) {
                    answer(found);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(result) = decider.reload_if_changed() {
                    answer(Answer::Chosen { ticket: None, result });
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Decider {
    policy: Option<LoadedPolicy>,
    /// The snapshot of the last round, for dry runs of changed files.
    last: Option<Snapshot>,
}

impl Decider {
    fn answer(&mut self, ask: Ask) -> Option<Answer> {
        Some(match ask {
            Ask::Decide { round, snapshot } => {
                let result = match &mut self.policy {
                    Some(policy) => policy.decide(round, &snapshot),
                    None => Err(DecideError::NoPolicy),
                };
                self.last = Some(snapshot);
                Answer::Decided { round, result }
            }
            Ask::Forget { round } => {
                if let Some(policy) = &mut self.policy {
                    policy.forget(round);
                }
                return None;
            }
            Ask::Choose { ticket, policy, set, memory, scripts, snapshot } => {
                let snapshot = snapshot.or_else(|| self.last.clone());
                // The same policy keeps its memory, which may be newer than what the engine knew when it asked.
                let current = self.policy.as_ref().filter(|current| current.is(&policy, &set));
                let memory = current.map_or(memory, LoadedPolicy::memory);
                let load =
                    |scripts: &Scripts, dry_run| LoadedPolicy::load(&policy, &set, &memory, scripts, dry_run);
                let loaded = match load(&scripts, DryRun::On(snapshot.as_ref())) {
                    // A head must come up with the policy it had, if need be with the text it had; what is wrong with it is told
                    // at once.
                    Err(error) if ticket == HEADS_OWN => {
                        let loaded = load(&scripts, DryRun::Skipped);
                        let loaded = loaded.or_else(|_| load(&scripts.preferring_kept(), DryRun::Skipped));
                        loaded.map(|mut loaded| {
                            loaded.warn(error.to_string());
                            loaded
                        })
                    }
                    loaded => loaded,
                };
                let loaded = match current {
                    Some(current) => loaded.map(|loaded| loaded.continuing(current)),
                    None => loaded,
                };
                let result = loaded.map(|loaded| self.use_from_now_on(loaded));
                Answer::Chosen { ticket: Some(ticket), result }
            }
            Ask::Reload { ticket, snapshot } => {
                Answer::Chosen { ticket: Some(ticket), result: self.reload(snapshot.as_ref()) }
            }
            Ask::WhatIf { ticket, policy, set, scripts, snapshot } => {
                let decided = load_script(&policy, &set, &scripts)
                    .and_then(|mut script| Ok(decide_safely(&mut script, &snapshot)?));
                Answer::WhatIf { ticket, result: decided }
            }
        })
    }

    fn use_from_now_on(&mut self, loaded: LoadedPolicy) -> PolicyChosen {
        let chosen = loaded.chosen().clone();
        self.policy = Some(loaded);
        chosen
    }

    fn reload(&mut self, snapshot: Option<&Snapshot>) -> Result<PolicyChosen, PolicyUseError> {
        let policy = self.policy.as_ref().ok_or(PolicyUseError::NoPolicy)?;
        let loaded = policy.load_again(DryRun::On(snapshot))?;
        Ok(self.use_from_now_on(loaded))
    }

    /// A file changed: the new text decides from now on if it compiles and passes a dry run.
    fn reload_if_changed(&mut self) -> Option<Result<PolicyChosen, PolicyUseError>> {
        if !self.policy.as_mut()?.notice_changed_files() {
            return None;
        }
        let last = self.last.clone();
        Some(self.reload(last.as_ref()).map_err(|error| PolicyUseError::OldTextStays(Box::new(error))))
    }
}
