//! A policy that was loaded: its script, its memory, and the files it came from.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rota_core::policy::{Policy as _, PolicyError};
use rota_core::round::{self, Decision, RoundError};
use rota_core::snapshot::Snapshot;
use rota_scripts::sample::{self, Size};
use rota_scripts::{Limits, LoadError, ScriptPolicy, SetError, Source};
use sha2::{Digest as _, Sha256};

use super::Scripts;
use super::scripts::ScriptFile;

/// How long a decision may take.
const DECISION_ALARM: Duration = Duration::from_secs(60);

/// The made-up instant that a policy is tried on while there are no jobs: half of them run, the others have just arrived.
const TRIAL: Size = Size { n_nodes: 4, n_old: 8, n_new: 8 };

/// A decision that could not be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// The policy failed, or its plan breaks a rule.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// A fault in the program, not in the script.
    #[error("the policy panicked")]
    Panicked,
    /// The head has just started, and no policy has been chosen yet.
    #[error("there is no policy")]
    NoPolicy,
}

/// A policy that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyUseError {
    /// It cannot be found, or does not compile.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A parameter does not exist, or cannot have the value.
    #[error("{key}={value}: {error}")]
    Set {
        /// The parameter's name.
        key: String,
        /// The value as the user wrote it.
        value: String,
        /// What is wrong with it.
        error: Box<SetError>,
    },
    /// Its memory cannot be read back.
    #[error(transparent)]
    Memory(#[from] PolicyError),
    /// It was tried on the present state, and failed.
    #[error("a dry run failed: {0}")]
    DryRun(DecideError),
    /// There were no jobs to try it on; it was tried on made-up ones, and failed.
    #[error("a dry run with made-up jobs failed: {0}")]
    Trial(DecideError),
    /// It was asked what it would do, and failed.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// A policy was to be reloaded, but none is loaded.
    #[error("there is no policy")]
    NoPolicy,
    /// A changed file was not used.
    #[error("{0}; the old text stays in use")]
    OldTextStays(Box<PolicyUseError>),
}

/// What a policy is tried on before it decides.
#[derive(Clone, Copy)]
pub(crate) enum DryRun<'a> {
    /// Nothing.
    Skipped,
    /// The present state, or made-up jobs while there are none: so an error in a script is found when the script is loaded,
    /// not at the first round that has something to decide.
    On(Option<&'a Snapshot>),
}

impl DryRun<'_> {
    fn of(self, script: &mut ScriptPolicy) -> Result<(), PolicyUseError> {
        let DryRun::On(snapshot) = self else { return Ok(()) };
        match snapshot.filter(|snapshot| !snapshot.jobs.is_empty()) {
            Some(snapshot) => decide_safely(script, snapshot).map(drop).map_err(PolicyUseError::DryRun),
            // A policy may be written for the jobs of its cluster: a plan that made-up jobs cannot follow proves nothing.
            None => match decide_safely(script, &sample::snapshot(TRIAL)) {
                Ok(_) | Err(DecideError::Round(RoundError::Violation(_))) => Ok(()),
                Err(error) => Err(PolicyUseError::Trial(error)),
            },
        }
    }
}

/// Which policy was chosen.
#[derive(Clone, Debug)]
pub(crate) struct PolicyChosen {
    pub(crate) policy: String,
    pub(crate) set: Vec<(String, String)>,
    /// A checksum of its scripts' texts.
    pub(crate) digest: String,
    /// Names and texts of its scripts that came with the request.
    pub(crate) texts: Vec<(String, String)>,
    /// Names and texts of its scripts that come from files.
    pub(crate) files: Vec<(String, String)>,
    /// Why a file's text is not used, but the one that was kept of it.
    pub(crate) why_kept: Option<String>,
    /// What a dry run found wrong with a policy that is used all the same, because the head starts with it.
    pub(crate) trouble: Option<String>,
}

/// A policy that decides.
pub(crate) struct LoadedPolicy {
    chosen: PolicyChosen,
    script: ScriptPolicy,
    scripts: Scripts,
    files: Vec<(PathBuf, Option<SystemTime>)>,
    /// The last round it decided, and its memory before.
    before: Option<(u64, String)>,
}

impl LoadedPolicy {
    /// A policy with its parameters and memory, after the dry run that is asked for.
    pub(crate) fn load(
        policy: &str,
        set: &[(String, String)],
        memory: &str,
        scripts: &Scripts,
        dry_run: DryRun<'_>,
    ) -> Result<Self, PolicyUseError> {
        let texts = scripts.texts(policy)?;
        let mut script = compile(policy, set, &texts.sources)?;
        dry_run.of(&mut script)?;
        // Even if it is empty, because the dry run left a memory of its own.
        script.restore_memory(memory)?;
        let mut hasher = Sha256::new();
        scripts.sent.iter().map(|(_, text)| text).for_each(|text| hasher.update(text));
        texts.files.iter().for_each(|file| hasher.update(&file.text));
        let digest = format!("{:x}", hasher.finalize());
        let why = |file: &ScriptFile| {
            let why = file.why_kept.as_ref()?;
            Some(format!("{}: {why}; the text in the journal is used", file.path.display()))
        };
        let chosen = PolicyChosen {
            policy: policy.to_owned(),
            set: set.to_vec(),
            digest,
            texts: scripts.sent.clone(),
            why_kept: texts.files.iter().find_map(why),
            files: texts.files.iter().map(|file| (file.name.clone(), file.text.clone())).collect(),
            trouble: None,
        };
        let files = texts.files.into_iter().map(|file| (file.path.clone(), modified(&file.path))).collect();
        // From now on only the files themselves count: one that is mended is read.
        Ok(LoadedPolicy { chosen, script, scripts: scripts.without_kept(), files, before: None })
    }

    /// The same policy, read again from its files. Its memory is kept, and so is the memory to go back to.
    pub(crate) fn load_again(&self, dry_run: DryRun<'_>) -> Result<Self, PolicyUseError> {
        let PolicyChosen { policy, set, .. } = &self.chosen;
        let again = Self::load(policy, set, &self.script.memory(), &self.scripts, dry_run)?;
        Ok(LoadedPolicy { before: self.before.clone(), ..again })
    }

    /// Goes on where another one of the same name and parameters is.
    #[must_use]
    pub(crate) fn continuing(self, other: &LoadedPolicy) -> Self {
        LoadedPolicy { before: other.before.clone(), ..self }
    }

    /// Whether it has this name and these parameters.
    pub(crate) fn is(&self, policy: &str, set: &[(String, String)]) -> bool {
        self.chosen.policy == policy && self.chosen.set == set
    }

    /// Says what a dry run found wrong with it.
    pub(crate) fn warn(&mut self, trouble: String) {
        self.chosen.trouble = Some(trouble);
    }

    pub(crate) fn chosen(&self) -> &PolicyChosen {
        &self.chosen
    }

    /// Its private memory as text.
    pub(crate) fn memory(&self) -> String {
        self.script.memory()
    }

    /// Decides a round and returns the memory after it. A decision that fails does not change the memory.
    pub(crate) fn decide(
        &mut self,
        round: u64,
        snapshot: &Snapshot,
    ) -> Result<(Decision, String), DecideError> {
        self.before = Some((round, self.script.memory()));
        match decide_safely(&mut self.script, snapshot) {
            Ok(decision) => Ok((decision, self.script.memory())),
            Err(error) => {
                self.forget(round);
                Err(error)
            }
        }
    }

    /// Restores the memory from before a round, if that was the last one decided.
    pub(crate) fn forget(&mut self, round: u64) {
        if let Some((_, memory)) = self.before.take_if(|(last, _)| *last == round)
            && let Err(error) = self.script.restore_memory(&memory)
        {
            // The policy wrote this text itself, so this is a fault of the program; the policy keeps the memory it has.
            tracing::error!("the policy's memory before round {round} cannot be restored: {error}");
        }
    }

    /// Whether files changed since the last look. Each change is noticed once, whether the new text is good or bad.
    pub(crate) fn notice_changed_files(&mut self) -> bool {
        let mut is_changed = false;
        for (file, known) in &mut self.files {
            let now = modified(file);
            is_changed |= now != *known;
            *known = now;
        }
        is_changed
    }
}

fn modified(file: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|meta| meta.modified()).ok()
}

/// A policy with its parameters, compiled.
pub(crate) fn load_script(
    policy: &str,
    set: &[(String, String)],
    scripts: &Scripts,
) -> Result<ScriptPolicy, PolicyUseError> {
    compile(policy, set, &scripts.texts(policy)?.sources)
}

fn compile(
    policy: &str,
    set: &[(String, String)],
    sources: &[Source],
) -> Result<ScriptPolicy, PolicyUseError> {
    let limits = Limits { alarm: Some(DECISION_ALARM), ..Limits::default() };
    let mut script = ScriptPolicy::from_sources(policy, sources, limits)?;
    for (key, value) in set {
        script.set(key, value).map_err(|error| {
            let (key, value) = (key.clone(), value.clone());
            PolicyUseError::Set { key, value, error: Box::new(error) }
        })?;
    }
    Ok(script)
}

/// A round's decision; a panic is a failure like any other.
pub(crate) fn decide_safely(script: &mut ScriptPolicy, snapshot: &Snapshot) -> Result<Decision, DecideError> {
    let decided = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| round::decide(snapshot, script)));
    Ok(decided.map_err(|_| DecideError::Panicked)??)
}
