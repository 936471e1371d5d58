//! The thread in which policies are tried before they decide, each in a child of its own, so that rounds go on meanwhile. It also
//! watches the scripts' files.

use std::path::PathBuf;
use std::sync::{PoisonError, mpsc};
use std::time::Duration;

use rota_core::round::{self, RoundError};
use rota_core::snapshot::Snapshot;
use rota_scripts::sample::{self, Size};

use super::deciding::{LastSnapshot, Task, Tried};
use super::loaded::{DecideError, PolicyChosen, PolicyUseError, digest};
use super::process::{Asked, Child, ChildSettings};
use super::scripts::{ScriptFile, Scripts, Texts};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The ticket of the head itself, for the policy it starts with.
const HEADS_OWN: u64 = 0;

/// The made-up instant that a policy is tried on while there are no jobs: half of them run, the others have just arrived.
const TRIAL: Size = Size { n_nodes: 4, n_old: 8, n_new: 8 };

/// A policy to try.
pub(super) enum Trial {
    Choose { ticket: u64, wanted: Wanted, memory: Option<String>, snapshot: Option<Snapshot> },
    Reload { ticket: Option<u64>, snapshot: Option<Snapshot> },
}

/// A policy, its parameters, and where its texts come from.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) policy: String,
    pub(super) set: Vec<(String, String)>,
    pub(super) scripts: Scripts,
}

impl Wanted {
    /// Whether a text was kept of one of its scripts.
    fn has_kept(&self) -> bool {
        !self.scripts.kept.is_empty()
    }
}

/// Tries policies until there is nobody left who asks.
pub(super) fn run(
    settings: ChildSettings,
    trials: &mpsc::Receiver<Trial>,
    last: LastSnapshot,
    tasks: mpsc::Sender<Task>,
) {
    let mut trier = Trier { settings, last, in_use: None };
    loop {
        let found = match trials.recv_timeout(LOOK_EVERY) {
            Ok(trial) => Some(trier.answer(trial)),
            Err(mpsc::RecvTimeoutError::Timeout) => trier.reload_if_changed().map(|result| (None, result)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        if let Some((ticket, result)) = found
            && tasks.send(Task::Use { ticket, result: result.map(Box::new) }).is_err()
        {
            return;
        }
    }
}

/// The policy that was last found good, and the files it came from with what they last said.
struct InUse {
    wanted: Wanted,
    files: Vec<(PathBuf, Option<String>)>,
}

struct Trier {
    settings: ChildSettings,
    last: LastSnapshot,
    in_use: Option<InUse>,
}

impl Trier {
    fn answer(&mut self, trial: Trial) -> (Option<u64>, Result<Tried, PolicyUseError>) {
        match trial {
            Trial::Choose { ticket, wanted, memory, snapshot } => {
                let snapshot = snapshot.or_else(|| self.last_snapshot());
                let tried = match self.try_out(&wanted, memory.clone(), snapshot.as_ref(), true) {
                    Err(error) if ticket == HEADS_OWN => self.try_for_start(wanted, &memory, error),
                    tried => tried,
                };
                (Some(ticket), tried)
            }
            Trial::Reload { ticket, snapshot } => {
                let snapshot = snapshot.or_else(|| self.last_snapshot());
                (ticket, self.reload(snapshot.as_ref()))
            }
        }
    }

    /// A head must come up with the policy it had, and what is wrong with it is told at once. A text that fails its trial does not
    /// come into force by a restart if there is one that decided before; without one, it is used all the same.
    fn try_for_start(
        &mut self,
        wanted: Wanted,
        memory: &Option<String>,
        error: PolicyUseError,
    ) -> Result<Tried, PolicyUseError> {
        let before = Wanted { scripts: wanted.scripts.preferring_kept(), ..wanted.clone() };
        let ways = [(&before, true), (&wanted, false), (&before, false)];
        let mut ways = ways.into_iter().filter(|(way, _)| !way.scripts.prefers_kept || way.has_kept());
        let tried =
            ways.find_map(|(way, has_dry_run)| self.try_out(way, memory.clone(), None, has_dry_run).ok());
        match tried {
            Some(mut tried) => {
                tried.chosen.trouble = Some(error.to_string());
                Ok(tried)
            }
            None => Err(error),
        }
    }

    fn last_snapshot(&self) -> Option<Snapshot> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reload(&mut self, snapshot: Option<&Snapshot>) -> Result<Tried, PolicyUseError> {
        let wanted = self.in_use.as_ref().ok_or(PolicyUseError::NoPolicy)?.wanted.clone();
        let tried = self.try_out(&wanted, None, snapshot, true);
        tried.map_err(|error| PolicyUseError::OldTextStays(Box::new(error)))
    }

    /// A file changed: the new text decides from now on if it compiles and passes a dry run.
    fn reload_if_changed(&mut self) -> Option<Result<Tried, PolicyUseError>> {
        if !self.in_use.as_mut()?.notice_changed_files() {
            return None;
        }
        let last = self.last_snapshot();
        Some(self.reload(last.as_ref()))
    }

    /// Compiles a policy in a child of its own and, unless told otherwise, has it decide there once: on the present state, or on
    /// made-up jobs while there are none. So an error in a script is found when the script is loaded, not at the first round
    /// that has something to decide.
    fn try_out(
        &mut self,
        wanted: &Wanted,
        memory: Option<String>,
        snapshot: Option<&Snapshot>,
        has_dry_run: bool,
    ) -> Result<Tried, PolicyUseError> {
        let Wanted { policy, set, scripts } = wanted;
        let texts = scripts.texts(policy)?;
        let digest = digest(scripts, &texts);
        let limit = self.settings.limit;
        let child = |error| PolicyUseError::Decide(DecideError::Child(error));
        let mut tried_in = Child::start(&self.settings, false).map_err(child)?;
        let Texts { sources, files } = texts;
        tried_in.load(policy, set, &sources, limit).map_err(child)?.map_err(PolicyUseError::Script)?;
        if has_dry_run {
            self.dry_run(&mut tried_in, snapshot)?;
        }
        if let Some(memory) = &memory {
            tried_in.remember(memory, limit).map_err(child)?.map_err(PolicyUseError::Script)?;
        }
        let chosen = PolicyChosen {
            policy: policy.clone(),
            set: set.clone(),
            digest,
            texts: scripts.sent.clone(),
            why_kept: files.iter().find_map(ScriptFile::why_kept),
            files: files.iter().map(|file| (file.name.clone(), file.text.clone())).collect(),
            trouble: None,
        };
        let files = files.into_iter().map(|file| (file.path, file.in_file)).collect();
        // From now on only the files themselves count: one that is mended is read.
        let wanted = Wanted { scripts: scripts.without_kept(), ..wanted.clone() };
        self.in_use = Some(InUse { wanted, files });
        Ok(Tried { chosen, sources, child: tried_in, memory })
    }

    fn dry_run(&self, child: &mut Child, snapshot: Option<&Snapshot>) -> Result<(), PolicyUseError> {
        let mut asked = Asked::new(child, self.settings.limit);
        let present = snapshot.filter(|snapshot| !snapshot.jobs.is_empty());
        let decided = match present {
            Some(snapshot) => round::decide(snapshot, &mut asked).map(drop),
            // A policy may be written for the jobs of its cluster: a plan that made-up jobs cannot follow proves nothing.
            None => match round::decide(&sample::snapshot(TRIAL), &mut asked) {
                Ok(_) | Err(RoundError::Violation(_)) => Ok(()),
                Err(error) => Err(error),
            },
        };
        let decided = match asked.failure {
            Some(failure) => Err(DecideError::Child(failure)),
            None => decided.map_err(DecideError::Round),
        };
        match present {
            Some(_) => decided.map_err(PolicyUseError::DryRun),
            None => decided.map_err(PolicyUseError::Trial),
        }
    }
}

impl InUse {
    /// Whether files changed since the last look. Each change is noticed once, whether the new text is good or bad. Texts are
    /// compared, not times: a file that is written while its former text is being tried is not missed.
    fn notice_changed_files(&mut self) -> bool {
        let mut is_changed = false;
        for (file, known) in &mut self.files {
            let now = std::fs::read_to_string(file).ok();
            is_changed |= now != *known;
            *known = now;
        }
        is_changed
    }
}
