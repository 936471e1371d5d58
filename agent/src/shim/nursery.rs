//! The nursery: a small process that makes shims by forking itself.
//!
//! Loading the agent's program again for each launch takes longer than everything else a shim does. The nursery has
//! loaded it once, has one thread and next to no memory, and so forks in a fraction of that time. Before it forks it takes
//! the launch's lock and opens its control socket, both of which the shim inherits: when the agent is told of a shim, it
//! can connect to it. Shims live on when the nursery ends, which it does when its agent is gone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::WaitOptions;
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use super::lines::Lines;
use super::record::{AttemptDir, ProcessMark};
use super::{Beginning, Claim, ShimError};

/// Shims that have ended are reaped at least this often while there are any.
const REAP_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A request to the nursery: a shim for a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimRequest {
    /// The attempt's directory, with `launch.json` in it.
    pub dir: PathBuf,
    /// Whether its ranks run already.
    pub beginning: Beginning,
}

/// The nursery's answer, one for each request in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimAnswer {
    /// The shim is there, and so is its control socket.
    Started(ProcessMark),
    /// Another shim watches this launch.
    Held,
    /// No shim could be made, with the reason.
    Failed(String),
}

/// Makes shims for the agent at the other end of standard input, until that end is closed.
pub fn run() -> Result<(), ShimError> {
    let system = |what| move |source| ShimError::System { what, source };
    let n_threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    assert_eq!(n_threads, 1, "a process with several threads must not fork");
    let asks = io::stdin().as_fd().try_clone_to_owned().map_err(system("taking standard input"))?;
    let mut asks = Lines::new(UnixStream::from(asks)).map_err(system("taking standard input"))?;
    let mut n_shims = 0_usize;
    while asks.is_open() {
        for request in asks.receive() {
            let answer = match request {
                Ok(request) => match make(&request) {
                    Made::Shim(mark) => ShimAnswer::Started(mark),
                    Made::Nothing(answer) => answer,
                    Made::Own(claim) => {
                        // From here on this process is the shim.
                        drop(asks);
                        return claim.run(request.beginning);
                    }
                },
                Err(error) => ShimAnswer::Failed(error.to_string()),
            };
            n_shims += usize::from(matches!(answer, ShimAnswer::Started(_)));
            asks.send(&answer);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {
            n_shims = n_shims.saturating_sub(1);
        }
        let timeout = if n_shims > 0 { Some(&REAP_EVERY) } else { None };
        // An interrupted wait only ends early.
        let _ = poll(&mut [PollFd::new(&asks, PollFlags::IN)], timeout);
    }
    Ok(())
}

enum Made {
    /// In the nursery: its new child.
    Shim(ProcessMark),
    /// In the nursery: no child was made.
    Nothing(ShimAnswer),
    /// In the child.
    Own(Claim),
}

fn make(request: &ShimRequest) -> Made {
    let failed = |error: &dyn std::fmt::Display| Made::Nothing(ShimAnswer::Failed(error.to_string()));
    let attempt = AttemptDir::new(&request.dir);
    let log = match OpenOptions::new().create(true).append(true).open(attempt.shim_log()) {
        Ok(log) => log,
        Err(error) => return failed(&error),
    };
    let claim = match Claim::take(attempt) {
        Ok(claim) => claim,
        Err(ShimError::Held(_)) => return Made::Nothing(ShimAnswer::Held),
        Err(error) => return failed(&error),
    };
    match fork(&log) {
        Ok(Some(pid)) => Made::Shim(ProcessMark::of(pid)),
        Ok(None) => Made::Own(claim),
        Err(error) => failed(&error),
    }
}

/// Forks: returns the child's number in the parent and none in the child, whose standard error is the log.
#[expect(unsafe_code, reason = "the system calls that double a process have no safe form")]
fn fork(log: &File) -> io::Result<Option<i32>> {
    // SAFETY: this process has one thread, as was checked when it began: the child finds no lock held.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: both are open; no value in this program owns standard error.
            unsafe { libc::dup2(log.as_raw_fd(), libc::STDERR_FILENO) };
            Ok(None)
        }
        pid => Ok(Some(pid)),
    }
}
