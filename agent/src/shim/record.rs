//! What a shim records on disk, so that the end of its launch is known whatever happens to the agent.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub use rota_transport::message::{Exit, ExitCause, ExitHow};
use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launch::spec::LaunchSpec;
use crate::launch::survivors;

/// The state of a launch, as its shim knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its phase, from preparing to ended.
    pub phase: ShimPhase,
    /// The shim that watches it.
    pub shim: ProcessMark,
    /// A free port of this node, where ranks can find each other.
    pub port: u16,
    /// Iterations done in all, as far as known.
    pub iterations: f64,
    /// Iterations at the last checkpoint.
    pub checkpointed: f64,
    /// Whether the job reports through the job protocol.
    pub speaks: bool,
    /// Whether it has said that its work is done.
    #[serde(default)]
    pub said_done: bool,
    /// What an operator should know.
    pub warnings: Vec<String>,
}

impl State {
    /// The state of a launch of which nothing has started yet; earlier launches have done so many iterations.
    pub fn before_start(done: f64, shim: ProcessMark, port: u16) -> Self {
        State {
            phase: ShimPhase::Preparing,
            shim,
            port,
            iterations: done,
            checkpointed: done,
            speaks: false,
            said_done: false,
            warnings: Vec::new(),
        }
    }

    /// The same, before its shim has reported.
    pub fn without_shim(done: f64) -> Self {
        State::before_start(done, ProcessMark { pid: 0, start_ticks: 0 }, 0)
    }
}

/// The phases of a launch on its node, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimPhase {
    /// Directories and images are being made ready.
    Preparing,
    /// Ready, waiting for `ToShim::Go`.
    Prepared,
    /// Its processes run.
    Running,
    /// Its processes were asked to stop.
    Stopping,
    /// Nothing of it is left.
    Ended(Exit),
}

/// A process that cannot be mistaken for a later one with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    /// The kernel's number for the process, which it may reuse.
    pub pid: i32,
    /// When it was started, in ticks since the machine was.
    pub start_ticks: u64,
}

impl ProcessMark {
    /// The mark of this process.
    pub fn own() -> Self {
        ProcessMark::of(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// The mark of a process that is there, or was and is not yet waited for.
    pub fn of(pid: i32) -> Self {
        let start_ticks = Pid::from_raw(pid).and_then(survivors::start_time).unwrap_or(0);
        ProcessMark { pid, start_ticks }
    }

    /// Whether exactly this process is alive.
    pub fn is_alive(&self) -> bool {
        Pid::from_raw(self.pid).is_some_and(|pid| survivors::is_alive(pid, self.start_ticks))
    }
}

/// A record that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file of the attempt cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file that was tried.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file that cannot be understood.
        path: PathBuf,
        /// The parser's error, with line and column.
        source: serde_json::Error,
    },
}

/// The directory of one launch and the files in it.
#[derive(Clone, Debug)]
pub struct AttemptDir(PathBuf);

impl AttemptDir {
    /// Names the directory; nothing is made.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        AttemptDir(path.into())
    }

    /// The attempt's directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The socket for messages between agent and shim.
    pub fn control_socket(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    /// What the job wrote, the newest file of it.
    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Errors of the shims themselves, those of all shims of an agent in one file because there are few.
    pub fn shim_log(&self) -> PathBuf {
        let run_dir = self.0.parent().and_then(Path::parent).unwrap_or(&self.0);
        run_dir.join("shims.log")
    }

    /// What is to be run. Never replaced: the shim keeps it locked as long as it lives.
    pub fn lock(&self) -> PathBuf {
        self.launch_file()
    }

    fn launch_file(&self) -> PathBuf {
        self.0.join("launch.json")
    }

    /// Reports of progress with their times, where they are kept.
    pub fn progress(&self) -> PathBuf {
        self.0.join("progress.jsonl")
    }

    /// Records a report of progress: `[seconds of the monotonic clock, iterations]`.
    pub fn add_progress(&self, at_s: f64, iterations: f64) -> Result<(), RecordError> {
        let path = self.progress();
        let wrong = |source| RecordError::File { path: path.clone(), source };
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).map_err(wrong)?;
        file.write_all(format!("[{at_s},{iterations}]\n").as_bytes()).map_err(wrong)
    }

    /// What is to be run.
    pub fn launch(&self) -> Result<LaunchSpec, RecordError> {
        read(&self.launch_file())
    }

    /// Records what is to be run.
    pub fn set_launch(&self, spec: &LaunchSpec) -> Result<(), RecordError> {
        let path = self.launch_file();
        let text =
            serde_json::to_vec(spec).map_err(|source| RecordError::Content { path: path.clone(), source })?;
        write_private(&path, &text).map_err(|source| RecordError::File { path, source })
    }

    /// The last state that the shim recorded; none if it recorded none.
    pub fn state(&self) -> Result<Option<State>, RecordError> {
        let path = self.states();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| RecordError::File { path: path.clone(), source })?,
        };
        // A line without a line end was being written when the shim died.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let last = whole.lines().next_back().map(serde_json::from_str).transpose();
        last.map_err(|source| RecordError::Content { path, source })
    }

    /// Appends the launch's new state to those before: replacing a file costs milliseconds on slow disks, and a launch has
    /// a handful of states.
    pub fn set_state(&self, state: &State) -> Result<(), RecordError> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.states();
        let wrong = |source| RecordError::File { path: path.clone(), source };
        let mut line = serde_json::to_vec(state)
            .map_err(|source| RecordError::Content { path: path.clone(), source })?;
        line.push(b'\n');
        let mut options = fs::OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).open(&path).map_err(wrong)?;
        file.write_all(&line).map_err(wrong)
    }

    fn states(&self) -> PathBuf {
        self.0.join("states.jsonl")
    }
}

/// Reads a record from a JSON file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    let text = fs::read(path).map_err(|source| RecordError::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| RecordError::Content { path: path.to_owned(), source })
}

/// Replaces a file of lines at once: a reader sees the old one or the new one. Only its owner may read it.
pub fn write_lines<T: Serialize>(path: &Path, lines: impl Iterator<Item = T>) -> Result<(), RecordError> {
    let wrong = |source| RecordError::File { path: path.to_owned(), source };
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, &line)
            .map_err(|source| RecordError::Content { path: path.to_owned(), source })?;
        text.push(b'\n');
    }
    let new = path.with_extension("new");
    write_private(&new, &text).map_err(wrong)?;
    fs::rename(&new, path).map_err(wrong)
}

fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again_and_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let dir = AttemptDir::new(folder.path());
        assert!(dir.state().expect("no error").is_none());
        let state = State {
            phase: ShimPhase::Ended(Exit { how: ExitHow::Signal(9), cause: ExitCause::LeaseOver }),
            shim: ProcessMark::own(),
            port: 5,
            iterations: 2.5,
            checkpointed: 2.0,
            speaks: true,
            said_done: false,
            warnings: vec![],
        };
        dir.set_state(&state).expect("written");
        assert_eq!(dir.state().expect("read"), Some(state));
        let mode = fs::metadata(folder.path().join("states.jsonl")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_torn_state_does_not_count_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("states.jsonl");
        fs::write(&file, "{\"phase\":").expect("written");
        assert_eq!(AttemptDir::new(folder.path()).state().expect("none"), None);
        fs::write(&file, "{\"phase\":\n").expect("written");
        let error = AttemptDir::new(folder.path()).state().expect_err("damaged").to_string();
        assert!(error.contains("states.jsonl"), "{error}");
    }

    #[test]
    fn this_process_is_alive_and_its_namesake_is_not() {
        let own = ProcessMark::own();
        assert!(own.is_alive());
        assert!(!ProcessMark { start_ticks: own.start_ticks + 1, ..own }.is_alive());
    }
}
