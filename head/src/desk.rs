//! The desk at which the policy decides: a thread of its own, so that heartbeats are answered while a script or a
//! solver takes its time. It also watches the scripts' files, and tries other policies on the last view.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use rota_core::check::check;
use rota_core::guards;
use rota_core::plan::Plan;
use rota_core::policy::Policy as _;
use rota_core::snapshot::Snapshot;
use rota_scripts::{Limits, ScriptPolicy};
use sha2::{Digest as _, Sha256};

/// How long a decision may take.
const DECISION_ALARM: Duration = Duration::from_secs(60);
/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the desk is asked.
#[derive(Debug)]
pub(super) enum Ask {
    /// To decide.
    Decide { round: u64, snapshot: Snapshot },
    /// To take another policy, if it decides on the snapshot without a fault.
    Take {
        ticket: u64,
        policy: String,
        set: Vec<(String, String)>,
        memory: String,
        snapshot: Option<Snapshot>,
    },
    /// To read the present policy's files again.
    Reload { ticket: u64, snapshot: Option<Snapshot> },
    /// What another policy would do.
    WhatIf { ticket: u64, policy: String, set: Vec<(String, String)>, snapshot: Snapshot },
}

/// What the desk answers.
#[derive(Debug)]
pub(super) enum Answer {
    Decided {
        round: u64,
        result: Result<(Plan, String), String>,
    },
    /// A policy was taken, or not; nobody asked where there is no ticket.
    Taken {
        ticket: Option<u64>,
        result: Result<Taken, String>,
    },
    WhatIf {
        ticket: u64,
        result: Result<Plan, String>,
    },
}

/// A policy that was taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) policy: String,
    pub(super) set: Vec<(String, String)>,
    pub(super) digest: String,
}

/// Sits at the desk until nobody asks any more.
pub(super) fn sit(asks: &mpsc::Receiver<Ask>, answer: impl Fn(Answer)) {
    let mut desk = Desk { seat: None, last: None };
    loop {
        match asks.recv_timeout(LOOK_EVERY) {
            Ok(ask) => answer(desk.answer(ask)),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(result) = desk.look() {
                    answer(Answer::Taken { ticket: None, result });
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Desk {
    seat: Option<Seat>,
    last: Option<Snapshot>,
}

/// A policy that decides.
struct Seat {
    taken: Taken,
    script: ScriptPolicy,
    files: Vec<(PathBuf, Option<SystemTime>)>,
}

impl Desk {
    fn answer(&mut self, ask: Ask) -> Answer {
        match ask {
            Ask::Decide { round, snapshot } => {
                let result = match &mut self.seat {
                    Some(seat) => decide(&mut seat.script, &snapshot),
                    None => Err("there is no policy".into()),
                };
                self.last = Some(snapshot);
                Answer::Decided { round, result }
            }
            Ask::Take { ticket, policy, set, memory, snapshot } => {
                let snapshot = snapshot.or_else(|| self.last.clone());
                let result = self.take(&policy, &set, &memory, snapshot.as_ref());
                Answer::Taken { ticket: Some(ticket), result: result.map_err(|error| format!("{error:#}")) }
            }
            Ask::Reload { ticket, snapshot } => {
                let result = self.reload(snapshot.as_ref());
                Answer::Taken { ticket: Some(ticket), result: result.map_err(|error| format!("{error:#}")) }
            }
            Ask::WhatIf { ticket, policy, set, snapshot } => {
                let result = load(&policy, &set)
                    .map_err(|error| format!("{error:#}"))
                    .and_then(|mut script| decide(&mut script, &snapshot))
                    .map(|(plan, _)| plan);
                Answer::WhatIf { ticket, result }
            }
        }
    }

    /// A file changed: the new text is taken if it compiles and decides, else the old one stays.
    fn look(&mut self) -> Option<Result<Taken, String>> {
        let seat = self.seat.as_mut()?;
        let is_changed = seat.files.iter().any(|(file, known)| modified(file) != *known);
        if !is_changed {
            return None;
        }
        // Looked at once, good or bad: a bad file is complained about once.
        for (file, known) in &mut seat.files {
            *known = modified(file);
        }
        let last = self.last.clone();
        Some(self.reload(last.as_ref()).map_err(|error| format!("{error:#}; the old text decides on")))
    }

    fn reload(&mut self, snapshot: Option<&Snapshot>) -> Result<Taken> {
        let seat = self.seat.as_ref().ok_or_else(|| anyhow!("there is no policy"))?;
        let (taken, memory) = (seat.taken.clone(), seat.script.memory());
        self.take(&taken.policy, &taken.set, &memory, snapshot)
    }

    fn take(
        &mut self,
        policy: &str,
        set: &[(String, String)],
        memory: &str,
        snapshot: Option<&Snapshot>,
    ) -> Result<Taken> {
        let mut script = load(policy, set)?;
        if let Some(snapshot) = snapshot {
            decide(&mut script, snapshot).map_err(|why| anyhow!("{why}")).context("a dry run failed")?;
            // The dry run left traces in its memory: the policy that decides begins without them.
            script = load(policy, set)?;
        }
        if !memory.is_empty() {
            script.restore_memory(memory)?;
        }
        let mut hasher = Sha256::new();
        let mut files = Vec::new();
        for (_, file, _) in script.stages() {
            let path = PathBuf::from(file);
            if let Ok(text) = std::fs::read(&path) {
                hasher.update(&text);
                let at = modified(&path);
                files.push((path, at));
            }
        }
        let digest = format!("{:x}", hasher.finalize());
        let taken = Taken { policy: policy.to_owned(), set: set.to_vec(), digest };
        self.seat = Some(Seat { taken: taken.clone(), script, files });
        Ok(taken)
    }
}

fn modified(file: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|meta| meta.modified()).ok()
}

/// A policy with its parameters.
pub(super) fn load(policy: &str, set: &[(String, String)]) -> Result<ScriptPolicy> {
    let limits = Limits { alarm: Some(DECISION_ALARM), ..Limits::default() };
    let mut script = ScriptPolicy::load(policy, limits)?;
    for (key, value) in set {
        script.set(key, value).with_context(|| format!("{key}={value}"))?;
    }
    Ok(script)
}

/// One decision that can be carried out; a panic is a failure like any other.
fn decide(script: &mut ScriptPolicy, snapshot: &Snapshot) -> Result<(Plan, String), String> {
    let decided = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut plan = script.decide(snapshot).map_err(|error| error.to_string())?;
        guards::mend(snapshot, &mut plan);
        check(snapshot, plan.clone()).map_err(|violation| format!("its plan cannot be: {violation}"))?;
        Ok((plan, script.memory()))
    }));
    decided.unwrap_or_else(|_| Err("the policy panicked".into()))
}
