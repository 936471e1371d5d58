//! What an agent must still know after a restart, kept in its run directory: the highest epoch it has seen, the highest
//! forgotten launch of every job, and the launches that are still there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rota_core::ids::{Incarnation, JobId};
use rota_core::time::Span;
use rota_transport::message::Epoch;
use rota_transport::private;
use rota_transport::session::AgentMemory;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::launch::spec::Attempt;
use crate::shim::record::{self, AttemptDir, RecordError};

/// The most bytes of a run directory's path: paths of sockets must be short.
const MOST_PATH_BYTES: usize = 70;
/// Forgotten launches whose output is kept.
const MOST_OLD_LOGS: usize = 1_000;

/// A run directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// A record of the run directory cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A directory that cannot be made.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The file or folder that was tried.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another agent has locked the run directory.
    #[error("{}: another agent runs here; two agents of one host need a --run-dir each", .0.display())]
    Held(PathBuf),
    /// Its path does not leave room for the names of sockets.
    #[error("{}: a path of {n_bytes} bytes is too long for sockets in it; choose one of at most {MOST_PATH_BYTES} with --run-dir", path.display())]
    TooLong {
        /// The run directory.
        path: PathBuf,
        /// Bytes of its path.
        n_bytes: usize,
    },
}

/// Old output is looked for once in this many times, because looking costs time.
const PRUNE_EVERY: u32 = 50;

/// What must survive a restart, kept as appended lines: replacing a file costs milliseconds on slow disks.
#[derive(Default)]
struct Fence {
    epoch: u64,
    lease_us: i64,
    forgotten: BTreeMap<u32, u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Terms { epoch: u64, lease_us: i64 },
    Forgot { job: u32, incarnation: u32 },
}

impl Fence {
    /// A line without a line end was being written when the agent died.
    fn read(text: &str, path: &Path) -> Result<Self, RecordError> {
        let mut fence = Fence::default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            let line = serde_json::from_str(line)
                .map_err(|source| RecordError::Content { path: path.to_owned(), source })?;
            fence.take(&line);
        }
        Ok(fence)
    }

    fn take(&mut self, line: &Line) {
        match *line {
            Line::Terms { epoch, lease_us } => (self.epoch, self.lease_us) = (epoch, lease_us),
            Line::Forgot { job, incarnation } => {
                let highest = self.forgotten.entry(job).or_default();
                *highest = incarnation.max(*highest);
            }
        }
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        let terms = Line::Terms { epoch: self.epoch, lease_us: self.lease_us };
        let forgotten = self.forgotten.iter();
        std::iter::once(terms)
            .chain(forgotten.map(|(job, incarnation)| Line::Forgot { job: *job, incarnation: *incarnation }))
    }
}

/// The run directory of an agent, held as long as this lives.
pub struct RunDir {
    run_dir: PathBuf,
    fence: Fence,
    fence_file: File,
    n_forgotten: u32,
    _lock: File,
}

impl RunDir {
    /// Makes the directory if it is not there, and locks it. With accounts of their own, jobs must be able to pass through it to
    /// their folders and sockets; all else stays the agent's.
    pub fn open(run_dir: &Path, have_accounts: bool) -> Result<Self, RunDirError> {
        let wrong = |path: &Path| {
            let path = path.to_owned();
            move |source| RunDirError::Directory { path, source }
        };
        // Only the agent's user may look inside: jobs' commands and environments are there.
        let mended = if have_accounts { private::passage(run_dir) } else { private::folder(run_dir) };
        for path in mended.map_err(wrong(run_dir))? {
            warn!("{}: others could read it; now only its owner can", path.display());
        }
        let run_dir = fs::canonicalize(run_dir).map_err(wrong(run_dir))?;
        let n_bytes = run_dir.as_os_str().len();
        if n_bytes > MOST_PATH_BYTES {
            return Err(RunDirError::TooLong { path: run_dir, n_bytes });
        }
        for name in ["attempts", "logs"] {
            private::folder(&run_dir.join(name)).map_err(wrong(&run_dir))?;
        }
        if have_accounts {
            private::passage(&run_dir.join("sockets")).map_err(wrong(&run_dir))?;
        }
        let path = run_dir.join("agent.lock");
        let lock = private::file(&path).map_err(wrong(&path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| RunDirError::Held(run_dir.clone()))?;
        let path = run_dir.join("fence.jsonl");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(wrong(&path))?,
        };
        let fence = Fence::read(&text, &path)?;
        record::write_lines(&path, fence.lines())?;
        let fence_file = fs::OpenOptions::new().append(true).open(&path).map_err(wrong(&path))?;
        Ok(RunDir { run_dir, fence, fence_file, n_forgotten: 0, _lock: lock })
    }

    /// The run directory itself.
    pub fn path(&self) -> &Path {
        &self.run_dir
    }

    /// What a new session must know.
    pub fn memory(&self) -> AgentMemory {
        let mut launched: BTreeMap<JobId, Incarnation> =
            self.fence.forgotten.iter().map(|(job, launch)| (JobId(*job), Incarnation(*launch))).collect();
        for attempt in self.attempts() {
            let highest = launched.entry(JobId(attempt.job)).or_default();
            *highest = (*highest).max(Incarnation(attempt.incarnation));
        }
        AgentMemory { epoch: Epoch(self.fence.epoch), launched }
    }

    /// The length of the lease under which adopted jobs run.
    pub fn lease(&self) -> Span {
        Span(self.fence.lease_us)
    }

    /// Records the terms of a head before any of its orders is carried out.
    pub fn set_terms(&mut self, epoch: Epoch, lease: Span) -> Result<(), RunDirError> {
        if (self.fence.epoch, self.fence.lease_us) == (epoch.0, lease.0) {
            return Ok(());
        }
        self.note(&Line::Terms { epoch: epoch.0, lease_us: lease.0 })
    }

    /// Launches that are there and not forgotten, by number.
    pub fn attempts(&self) -> Vec<Attempt> {
        let entries = fs::read_dir(self.run_dir.join("attempts")).into_iter().flatten().flatten();
        let mut attempts: Vec<Attempt> =
            entries.filter_map(|entry| Attempt::parse(entry.file_name().to_str()?)).collect();
        attempts.sort_unstable();
        attempts
    }

    /// The directory of a launch.
    pub fn attempt_dir(&self, attempt: Attempt) -> AttemptDir {
        AttemptDir::new(self.run_dir.join("attempts").join(attempt.to_string()))
    }

    /// Where a launch's output is, forgotten or not.
    pub fn log(&self, attempt: Attempt) -> PathBuf {
        let live = self.attempt_dir(attempt).log();
        if live.exists() { live } else { self.run_dir.join("logs").join(attempt.to_string()).join("log") }
    }

    /// Forgets a launch that has ended. Its output stays, until there are too many.
    pub fn forget(&mut self, attempt: Attempt) -> Result<(), RunDirError> {
        self.note(&Line::Forgot { job: attempt.job, incarnation: attempt.incarnation })?;
        let (from, to) = (self.attempt_dir(attempt), self.run_dir.join("logs").join(attempt.to_string()));
        match fs::rename(from.path(), &to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(RunDirError::Directory { path: to, source: error });
            }
            _ => {}
        }
        self.n_forgotten += 1;
        if self.n_forgotten.is_multiple_of(PRUNE_EVERY) {
            self.prune_logs();
        }
        Ok(())
    }

    fn prune_logs(&self) {
        let entries = fs::read_dir(self.run_dir.join("logs")).into_iter().flatten().flatten();
        let mut old: Vec<_> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        old.sort_unstable();
        let n_too_many = old.len().saturating_sub(MOST_OLD_LOGS);
        for (_, path) in old.into_iter().take(n_too_many) {
            // What cannot be removed now is tried again next time.
            let _ = fs::remove_dir_all(path);
        }
    }

    fn note(&mut self, line: &Line) -> Result<(), RunDirError> {
        self.fence.take(line);
        let text = serde_json::to_string(line).unwrap_or_default() + "\n";
        let path = self.run_dir.join("fence.jsonl");
        self.fence_file.write_all(text.as_bytes()).map_err(|source| RunDirError::Directory { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_agents_user_can_look_into_the_run_directory_whatever_its_mode_was() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        fs::create_dir(&path).expect("made");
        fs::write(path.join("fence.jsonl"), "").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let set =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        set(&path, 0o755);
        set(&path.join("fence.jsonl"), 0o644);
        let _open = RunDir::open(&path, false).expect("opened");
        let files = ["fence.jsonl", "agent.lock"].map(|name| mode(&path.join(name)));
        assert_eq!((mode(&path), files), (0o700, [0o600; 2]));
    }

    #[test]
    fn epochs_and_launches_are_known_again_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut run_dir = RunDir::open(folder.path(), false).expect("opened");
        run_dir.set_terms(Epoch(7), Span::from_secs(30)).expect("written");
        for attempt in [Attempt { job: 1, incarnation: 3 }, Attempt { job: 2, incarnation: 1 }] {
            fs::create_dir(run_dir.attempt_dir(attempt).path()).expect("made");
        }
        run_dir.forget(Attempt { job: 1, incarnation: 3 }).expect("forgotten");
        drop(run_dir);
        // A line that was not finished is ignored.
        let mut file =
            fs::OpenOptions::new().append(true).open(folder.path().join("fence.jsonl")).expect("there");
        file.write_all(b"{\"forgot\":{\"job\":9,").expect("written");
        let run_dir = RunDir::open(folder.path(), false).expect("opened");
        let memory = run_dir.memory();
        assert_eq!((memory.epoch, run_dir.lease()), (Epoch(7), Span::from_secs(30)));
        let launched: Vec<_> = memory.launched.into_iter().map(|(job, launch)| (job.0, launch.0)).collect();
        assert_eq!(launched, [(1, 3), (2, 1)]);
        assert_eq!(run_dir.attempts(), [Attempt { job: 2, incarnation: 1 }]);
    }

    #[test]
    fn two_agents_cannot_share_a_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = RunDir::open(folder.path(), false).expect("opened");
        let second = RunDir::open(folder.path(), false).err().expect("held").to_string();
        assert!(second.contains("another agent runs here"), "{second}");
        drop(first);
        RunDir::open(folder.path(), false).expect("free again");
    }

    #[test]
    fn a_path_too_long_for_sockets_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let error =
            RunDir::open(&folder.path().join("x".repeat(80)), false).err().expect("too long").to_string();
        assert!(error.contains("--run-dir"), "{error}");
    }
}
