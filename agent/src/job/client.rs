//! The job protocol from a job's side, for jobs in Rust; `agent/python/rota_job.py` is the same for Python.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::protocol::{FromJob, PROTOCOL, ToJob};
use crate::clock::monotonic_s;
use crate::shim::lines::Lines;

/// A job's connection to its node.
pub struct JobClient {
    lines: Lines,
}

impl JobClient {
    /// Connects to the socket that `ROTA_JOB_SOCKET` names; none when the job runs on its own.
    pub fn from_environment(rank: u32) -> io::Result<Option<Self>> {
        match std::env::var_os("ROTA_JOB_SOCKET") {
            Some(path) => JobClient::connect(Path::new(&path), rank).map(Some),
            None => Ok(None),
        }
    }

    /// Connects and sends `hello` as a job that ends by itself when asked to stop.
    pub fn connect(path: &Path, rank: u32) -> io::Result<Self> {
        let mut client = JobClient { lines: Lines::new(UnixStream::connect(path)?)? };
        client.lines.send(&FromJob::Hello { protocol: PROTOCOL, rank, stops: true });
        Ok(client)
    }

    /// Reports iterations done, those of earlier launches included.
    pub fn progress(&mut self, iterations: f64) {
        self.progress_at(iterations, monotonic_s());
    }

    /// The same, done at a time of `clock::monotonic_s`.
    pub fn progress_at(&mut self, iterations: f64, at_s: f64) {
        self.lines.send(&FromJob::Progress { iterations, at_s: Some(at_s) });
    }

    /// Reports a checkpoint that is safely written, with the iterations in it.
    pub fn checkpointed(&mut self, iterations: f64) {
        self.lines.send(&FromJob::Checkpointed { iterations });
    }

    /// Asks how long the lease lasts; the answer comes as `Lease`.
    pub fn renew(&mut self) {
        self.lines.send(&FromJob::Renew);
    }

    /// Says that all work is done and its results are written: however the job ends now, it is not run again.
    pub fn done(&mut self) {
        self.lines.send(&FromJob::Done);
    }

    /// Whether the node still listens.
    pub fn is_open(&self) -> bool {
        self.lines.is_open()
    }

    /// Waits until messages arrive, at most for this time. Lines that are not understood are ignored: a newer agent may
    /// send other messages.
    pub fn receive(&mut self, most: Duration) -> Vec<ToJob> {
        let until = Instant::now() + most;
        loop {
            self.lines.flush();
            let heard: Vec<_> = self.lines.receive().into_iter().flatten().collect();
            let left = until.saturating_duration_since(Instant::now());
            if !heard.is_empty() || left.is_zero() {
                return heard;
            }
            if !self.lines.is_open() {
                std::thread::sleep(left);
                return heard;
            }
            let timeout = left.try_into().ok();
            let events = if self.lines.has_unsent() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            // An interrupted wait only ends early.
            let _ = poll(&mut [PollFd::new(&self.lines, events)], timeout.as_ref());
        }
    }
}
