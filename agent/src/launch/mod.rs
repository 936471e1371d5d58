//! Ways to start a job and to make sure that it is gone: processes and containers behind one interface.
//!
//! Launchers live in the shim, one shim for each launch. When to start and stop is not decided here.

pub mod account;
mod bpf;
pub mod cgroup;
mod container;
pub mod devices;
pub mod environment;
pub mod gpu_flag;
mod process;
pub mod spec;
pub mod survivors;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, WaitStatus};

use crate::shim::record::ExitHow;
use account::{Account, RunAs};
use spec::{LaunchSpec, LauncherKind, Rendezvous};

pub use container::Container;
pub use process::Process;

/// A way to start the ranks of a launch, to stop them and to make sure that nothing is left.
pub trait Launcher {
    /// The account that ranks run as, before anything else; without one they run as the agent's user.
    fn run_as(&mut self, account: Account);

    /// Everything that may take long or fail before ranks start: directories, images, control groups.
    fn prepare(&mut self) -> Result<(), LaunchError>;

    /// Starts all ranks; their output goes to `output`.
    fn start(&mut self, rendezvous: &Rendezvous, output: BorrowedFd<'_>) -> Result<Vec<Rank>, LaunchError>;

    /// Takes over ranks whose shim is gone, where that can be done.
    fn adopt(&mut self, output: BorrowedFd<'_>) -> Result<Vec<Rank>, LaunchError>;

    /// Asks ranks to end.
    fn ask_to_stop(&mut self, ranks: &[Rank]);

    /// Ends ranks. To be repeated until they are gone.
    fn kill(&mut self, ranks: &[Rank]);

    /// How a rank ended, derived from the exit status of its process on this node.
    fn exit_of(&self, rank: &Rank, status: WaitStatus) -> ExitHow;

    /// Whether the kernel ended something for using too much memory.
    fn was_over_limit(&self) -> bool;

    /// Changes CPUs and memory of the running launch; an error names what cannot be changed.
    fn resize(&mut self, cpu_micro: u64, mem_bytes: u64) -> Result<(), LaunchError>;

    /// Removes everything but output: whatever still runs, control groups, containers.
    fn clear(&mut self);
}

/// A child process of the shim that represents a rank.
#[derive(Debug)]
pub struct Rank {
    /// Its number among the ranks of the launch here, from 0.
    pub local: u32,
    /// The process itself, or the attached client of a container.
    pub pid: Pid,
    /// Readable when the process has ended; kernels before 5.3 have none.
    pub ended: Option<OwnedFd>,
}

/// A launch that could not be started, changed or ended.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No program was named.
    #[error("the command is empty")]
    NoCommand,
    /// A program that does not start.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// The program as the command names it.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file or directory that cannot be made.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder that was tried.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A folder that the job's account cannot use.
    #[error("{}: cannot be used as `{account}` on this node: {source}", path.display())]
    Folder {
        /// The folder that was named.
        path: PathBuf,
        /// The account that may not use the folder.
        account: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A folder whose name cannot be part of a mount.
    #[error("{}: a container cannot be given a folder with `:` in its path", .0.display())]
    Mount(PathBuf),
    /// A variable that a container cannot be given.
    #[error("`{0}` is not the name of a variable: it is empty, or has a blank, `=`, `#` or `*` in it")]
    Variable(String),
    /// The container client reported a failure.
    #[error("`{command}` failed: {why}")]
    Client {
        /// What was asked of it.
        command: String,
        /// Its error output.
        why: String,
    },
    /// A control group cannot be created or changed.
    #[error("control group {name}: {why}")]
    Cgroup {
        /// The group's name.
        name: String,
        /// The error with its causes.
        why: String,
    },
    /// Processes of a shim that is gone end with it.
    #[error("the shim of a process launch is gone, and its processes with it")]
    NothingToAdopt,
}

/// Where a launcher finds things: the attempt's directory within the agent's.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// The agent's run directory, shared by all launches.
    pub run_dir: PathBuf,
    /// The directory of this attempt, below the run directory.
    pub dir: PathBuf,
}

impl Workplace {
    /// The socket of the job protocol. A job with an account of its own cannot look into the attempt's directory.
    pub fn job_socket(&self, run_as: &RunAs) -> PathBuf {
        match run_as {
            RunAs::Agent => self.dir.join("job.sock"),
            RunAs::Account { .. } | RunAs::Nobody { .. } => {
                let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
                self.run_dir.join("sockets").join(format!("{name}.sock"))
            }
        }
    }
}

/// Makes the folders of a launch, and gives an account those that are the agent's.
fn make_folders(spec: &LaunchSpec, account: Option<&Account>) -> Result<(), LaunchError> {
    let Some(account) = account else {
        make_dir(&spec.directory)?;
        return make_dir(&spec.checkpoint_dir);
    };
    match spec.makes_directory {
        true => account.give_folder(&spec.directory)?,
        false => account.check_folder(&spec.directory)?,
    }
    match spec.makes_checkpoint_dir {
        true => account.give_folder(&spec.checkpoint_dir),
        false => account.make_folder(&spec.checkpoint_dir),
    }
}

/// The launcher a spec asks for.
pub fn launcher(spec: &LaunchSpec, place: &Workplace) -> Box<dyn Launcher> {
    match &spec.launcher {
        LauncherKind::Process => Box::new(Process::new(spec.clone(), place.clone())),
        LauncherKind::Container(container) => {
            Box::new(Container::new(spec.clone(), container.clone(), place.clone()))
        }
    }
}

/// Makes a directory and all above it.
fn make_dir(path: &Path) -> Result<(), LaunchError> {
    std::fs::create_dir_all(path).map_err(|source| LaunchError::File { path: path.to_owned(), source })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::account::RunAs;
    use super::spec::*;
    use std::path::PathBuf;

    pub(crate) static RENDEZVOUS: Rendezvous = Rendezvous { address: String::new(), port: 1 };

    /// A launch of two ranks with two GPUs that does nothing.
    pub(crate) fn spec() -> LaunchSpec {
        LaunchSpec {
            attempt: Attempt { job: 7, incarnation: 1 },
            launch_id: 1,
            epoch: 1,
            command: vec!["true".to_owned()],
            environment: Default::default(),
            directory: PathBuf::from("/"),
            gang: Gang { node: 0, n_nodes: 1, first_rank: 0, n_ranks: 2, world_size: 2 },
            grant: Grant {
                gpus: [0, 1].into_iter().collect(),
                gpu_share_milli: 1000,
                gpu_type: "V100".to_owned(),
                gpu_mem_bytes: 0,
                cpu_micro: 4_000_000,
                pinned: Default::default(),
                mem_bytes: 0,
                storage_bps: 0,
                limits: Limits::Told,
                hidden: Vec::new(),
            },
            work: Work { iterations: 100.0, done: 0.0, rate: 1.0, delay_s: 0.0, time_scale: 1.0 },
            checkpoint_dir: PathBuf::from("/tmp"),
            data_dir: PathBuf::from("/tmp"),
            launcher: LauncherKind::Process,
            on_head_lost: OnHeadLost::Stop,
            lease_until_ms: None,
            grace_ms: 1_000,
            waits_for_go: false,
            keeps_progress: false,
            run_as: RunAs::Agent,
            makes_directory: false,
            makes_checkpoint_dir: false,
            log: LogCaps::default(),
            origin: None,
        }
    }
}
