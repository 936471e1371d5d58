//! The shim: one small process for each launch, which starts its ranks, keeps their output, end and lease, and outlives
//! the agent that started it.
//!
//! ```text
//! agent ── control.sock ─▶ shim ── job.sock ◀── ranks (children)
//!                           ├── log, log.1 …    what they wrote
//!                           └── states.jsonl    the launch's states, its end included
//! ```
//! The lease is kept here and not in the agent: whatever happens to the agent, a launch whose lease is over stops.
//! It has one thread and no runtime, and so the `nursery` makes one in a fraction of a millisecond. What to launch and
//! when to stop is decided by the agent.

pub mod control;
pub mod lines;
pub mod log;
pub mod nursery;
pub mod record;
mod socket;
mod stopping;
mod watch;

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::launch::{self, Workplace};
use record::{AttemptDir, RecordError, ShimPhase, State};
use socket::ClientSocket;
use watch::Watch;

/// A shim that cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// A record that cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Another shim watches this launch.
    #[error("{}: another shim holds this launch", .0.display())]
    Held(PathBuf),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What the shim was about to do.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Whether a shim starts its ranks or finds them running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// The shim starts the ranks.
    Fresh,
    /// An earlier shim started them.
    Adopted,
}

/// Runs the launch that is described in a directory until nothing of it is left.
pub fn run(dir: &Path, beginning: Beginning) -> Result<(), ShimError> {
    Claim::take(AttemptDir::new(dir))?.run(beginning)
}

/// A launch that no other shim watches, and the socket on which its agent reaches this one.
pub(crate) struct Claim {
    attempt: AttemptDir,
    agents: ClientSocket,
    /// Held as long as the shim lives.
    _lock: File,
}

impl Claim {
    /// Takes the lock and opens the socket, in this order: the socket of a shim that lives is not to be replaced.
    fn take(attempt: AttemptDir) -> Result<Self, ShimError> {
        let lock = lock(&attempt)?;
        let agents = ClientSocket::open(&attempt.control_socket())
            .map_err(|source| ShimError::System { what: "opening the control socket", source })?;
        Ok(Claim { attempt, agents, _lock: lock })
    }

    fn run(self, beginning: Beginning) -> Result<(), ShimError> {
        if matches!(self.attempt.state()?, Some(State { phase: ShimPhase::Ended(_), .. })) {
            return Ok(());
        }
        let spec = self.attempt.launch()?;
        // It is no error if the shim leads its own session already.
        let _ = rustix::process::setsid();
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))
            .map_err(|error| ShimError::System { what: "becoming the reaper", source: error.into() })?;
        let dir = self.attempt.path().to_owned();
        let run_dir = dir.parent().and_then(Path::parent).unwrap_or(&dir).to_owned();
        let place = Workplace { run_dir, dir };
        let launcher = launch::launcher(&spec, &place);
        Watch::new(self.attempt, self.agents, spec, launcher, &place)?.run(beginning)
    }
}

/// Takes the lock that a shim holds as long as it lives.
pub(crate) fn lock(attempt: &AttemptDir) -> Result<File, ShimError> {
    let path = attempt.lock();
    let file = File::open(&path).map_err(|source| RecordError::File { path: path.clone(), source })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(ShimError::Held(path)),
    }
}
