//! Deciding, away from the head's loop and process, so that no script and no solver can hold up or end the head.
//!
//! ```text
//!  engine ─ link ─┬─ deciding   rounds: the policy in use, its memory        ─┐
//!                 ├─ trials     policies before they are used; changed files  ├─ process ═ pipe ═ child
//!                 └─ what_ifs   what other policies would do                 ─┘
//! ```
//!
//! Policies run in children, processes of the head's own program with a limit on memory. A child that has not answered in
//! time is killed, and started again when it is needed. It is sent what has changed since it was last asked (`wire`), and
//! answers with a plan, which the head checks like any other. Rounds, trials and questions have children of their own, so they do not wait for
//! each other. A policy that passed its trial goes on in the child in which it did.
//!
//! `loaded` is a policy in this process, for replays; `scripts` is where texts come from.

mod child;
mod deciding;
mod link;
mod loaded;
mod process;
mod scripts;
mod trials;
mod what_ifs;
mod wire;

pub use child::serve_decisions;
pub(crate) use link::{DeciderLink, Waiting};
pub use loaded::{DecideError, PolicyUseError};
pub(crate) use loaded::{LoadedPolicy, PolicyChosen, load_script};
pub use process::ChildError;
pub(crate) use process::{ChildSettings, Program};
pub(crate) use scripts::{Scripts, is_file_name};
pub(crate) use wire::Effort;
pub use wire::PolicyFailure;

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rota_core::round::Decision;
use rota_core::snapshot::Snapshot;
use rota_transport::value::Name;

use crate::forecast::{Forecast, ForecastSettings};

/// Takes answers, in any thread but the engine's.
pub(crate) type Tell = Arc<dyn Fn(Answer) + Send + Sync>;

/// A request.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Decide a round.
    Decide { round: u64, snapshot: Snapshot },
    /// Restore the policy's memory from before a round, because its plan was overtaken by events.
    Forget { round: u64 },
    /// Change to another policy, if a dry run of it on the snapshot succeeds. Without a memory, it goes on with that of the
    /// policy in use.
    Choose {
        ticket: u64,
        policy: String,
        set: Vec<(String, String)>,
        memory: Option<String>,
        scripts: Scripts,
        snapshot: Option<Snapshot>,
    },
    /// Read the current policy's files again. Without a ticket, nobody asked.
    Reload { ticket: Option<u64>, snapshot: Option<Snapshot> },
    /// Say what another policy would do.
    WhatIf {
        ticket: u64,
        user: Name,
        policy: String,
        set: Vec<(String, String)>,
        scripts: Scripts,
        snapshot: Snapshot,
    },
    /// Look ahead under a policy.
    Foresee {
        ticket: u64,
        user: Name,
        policy: String,
        set: Vec<(String, String)>,
        scripts: Scripts,
        from: ForecastFrom,
    },
}

/// Where a forecast begins.
#[derive(Debug)]
pub(crate) struct ForecastFrom {
    pub(crate) snapshot: Snapshot,
    /// The policy's memory.
    pub(crate) memory: String,
    pub(crate) settings: ForecastSettings,
}

/// An answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A decision, and the policy's memory after it.
    Decided { round: u64, result: Result<(Decision, String), DecideError>, effort: Effort },
    /// Whether the policy was changed. Without a ticket, the cause was a changed file.
    Chosen { ticket: Option<u64>, result: Result<PolicyChosen, PolicyUseError> },
    /// Say what another policy would do.
    WhatIf { ticket: u64, result: Result<Decision, PolicyUseError> },
    /// What was foreseen, and how long that took.
    Foreseen { ticket: u64, result: Result<Box<Forecast>, PolicyUseError>, took: Duration },
}

/// The decider: its threads, which take requests.
pub(crate) struct Decider {
    tasks: mpsc::Sender<deciding::Task>,
    trials: mpsc::Sender<trials::Trial>,
    what_ifs: what_ifs::WhatIfs,
}

/// Starts the threads that answer requests. They end when the decider is dropped.
pub(crate) fn start(settings: ChildSettings, tell: Tell) -> io::Result<Decider> {
    let (tasks, to_do) = mpsc::channel();
    let (trials, to_try) = mpsc::channel();
    let last = deciding::LastSnapshot::default();
    let what_ifs = what_ifs::WhatIfs::new(settings.clone(), Arc::clone(&tell));
    let (for_trials, from_trials, seen) = (settings.clone(), tasks.clone(), Arc::clone(&last));
    thread::Builder::new()
        .name("trials".into())
        .spawn(move || trials::run(for_trials, &to_try, seen, from_trials))?;
    thread::Builder::new()
        .name("decider".into())
        .spawn(move || deciding::run(settings, &to_do, &last, &tell))?;
    Ok(Decider { tasks, trials, what_ifs })
}

impl Decider {
    /// There is no policy to start with: rounds are answered with that until one is chosen.
    fn begin_without(&self) {
        // Nobody is there to take it only when the head ends.
        let _ = self.tasks.send(deciding::Task::BeginWithout);
    }

    /// Whether somebody takes the request.
    fn send(&self, ask: Ask) -> bool {
        match ask {
            Ask::Decide { round, snapshot } => {
                self.tasks.send(deciding::Task::Decide { round, snapshot }).is_ok()
            }
            Ask::Forget { round } => self.tasks.send(deciding::Task::Forget { round }).is_ok(),
            Ask::Choose { ticket, policy, set, memory, scripts, snapshot } => {
                let wanted = trials::Wanted { policy, set, scripts };
                self.trials.send(trials::Trial::Choose { ticket, wanted, memory, snapshot }).is_ok()
            }
            Ask::Reload { ticket, snapshot } => {
                self.trials.send(trials::Trial::Reload { ticket, snapshot }).is_ok()
            }
            Ask::WhatIf { ticket, user, policy, set, scripts, snapshot } => {
                let wanted = trials::Wanted { policy, set, scripts };
                let question = what_ifs::Question::Decide(snapshot);
                self.what_ifs.ask(what_ifs::WhatIf { ticket, user, wanted, question });
                true
            }
            Ask::Foresee { ticket, user, policy, set, scripts, from } => {
                let wanted = trials::Wanted { policy, set, scripts };
                let question = what_ifs::Question::Foresee(Box::new(from));
                self.what_ifs.ask(what_ifs::WhatIf { ticket, user, wanted, question });
                true
            }
        }
    }
}
