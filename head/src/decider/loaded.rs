//! A policy in this process, for replays, and what can be wrong with a policy.

use std::time::Duration;

use rota_core::policy::{Policy as _, PolicyError};
use rota_core::round::{self, Decision, RoundError};
use rota_core::snapshot::Snapshot;
use rota_scripts::{Limits, LoadError, ScriptPolicy, SetError, Source};
use sha2::{Digest as _, Sha256};

use super::process::ChildError;
use super::scripts::{Scripts, Texts};
use super::wire::PolicyFailure;

/// A decision that could not be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// The policy failed, or its plan breaks a rule.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// A fault in the program, not in the script.
    #[error("the policy panicked")]
    Panicked,
    /// It took too long, or its process ended.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// It was accepted once, and cannot be loaded into a new process.
    #[error("the policy cannot be loaded again: {0}")]
    Reload(PolicyFailure),
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
    /// It does not compile, or cannot have its parameters or its memory: as its process says.
    #[error(transparent)]
    Script(PolicyFailure),
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
    /// Somebody asks more than is answered.
    #[error("{0} of your questions wait already: ask again when one of them was answered")]
    TooManyQuestions(usize),
    /// A changed file was not used.
    #[error("{0}; the old text stays in use")]
    OldTextStays(Box<PolicyUseError>),
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

/// A checksum of a policy's own scripts.
pub(super) fn digest(scripts: &Scripts, texts: &Texts) -> String {
    let mut hasher = Sha256::new();
    scripts.sent.iter().map(|(_, text)| text).for_each(|text| hasher.update(text));
    texts.files.iter().for_each(|file| hasher.update(&file.text));
    format!("{:x}", hasher.finalize())
}

/// A policy that decides in this process.
pub(crate) struct LoadedPolicy(ScriptPolicy);

impl LoadedPolicy {
    /// A policy with its parameters and memory.
    pub(crate) fn load(
        policy: &str,
        set: &[(String, String)],
        memory: &str,
        scripts: &Scripts,
    ) -> Result<Self, PolicyUseError> {
        let mut script = load_script(policy, set, scripts)?;
        script.restore_memory(memory)?;
        Ok(LoadedPolicy(script))
    }

    /// Its private memory as text.
    pub(crate) fn memory(&self) -> String {
        self.0.memory()
    }

    /// Decides a round. A decision that fails does not change the memory.
    pub(crate) fn decide(&mut self, snapshot: &Snapshot) -> Result<Decision, DecideError> {
        let before = self.0.memory();
        let decided = decide_safely(&mut self.0, snapshot);
        if decided.is_err()
            && let Err(error) = self.0.restore_memory(&before)
        {
            // The policy wrote this text itself, so this is a fault of the program; the policy keeps the memory it has.
            tracing::error!("the policy's memory cannot be restored: {error}");
        }
        decided
    }
}

/// A policy with its parameters, compiled.
pub(crate) fn load_script(
    policy: &str,
    set: &[(String, String)],
    scripts: &Scripts,
) -> Result<ScriptPolicy, PolicyUseError> {
    compile(policy, set, &scripts.texts(policy)?.sources, None)
}

/// The same from texts, with a limit on the time of a decision.
pub(super) fn compile(
    policy: &str,
    set: &[(String, String)],
    sources: &[Source],
    alarm: Option<Duration>,
) -> Result<ScriptPolicy, PolicyUseError> {
    let limits = Limits { alarm, ..Limits::default() };
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
fn decide_safely(script: &mut ScriptPolicy, snapshot: &Snapshot) -> Result<Decision, DecideError> {
    let decided = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| round::decide(snapshot, script)));
    Ok(decided.map_err(|_| DecideError::Panicked)??)
}
