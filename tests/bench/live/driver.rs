//! What all sections need: a user who submits over one connection, and a bell that jobs ring when they run.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rota_core::ids::JobId;
use rota_transport::identity::{Credentials, Role};
use rota_transport::message::{FromUser, JobRequest, Launcher, ToUser};
use rota_transport::quic::{Connector, Peer};
use rota_transport::value::{Iterations, Text};
use tokio::runtime::Runtime;

use crate::cluster::Cluster;

/// Longer than anything measured here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A user with one connection to the head, as a program that submits many jobs has.
pub(crate) struct User {
    runtime: Runtime,
    peer: Peer,
    _connector: Connector,
    next_key: u64,
}

impl User {
    pub(crate) fn connect(cluster: &Cluster) -> Self {
        let folder = cluster.folder.path().join("pki/users/ada");
        let credentials = Credentials::load_for(&folder, Role::User).expect("credentials");
        // With a thread of its own the connection stays alive while nobody asks.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (connector, peer) = runtime.block_on(async {
            let connector = Connector::new(&credentials).expect("a connector");
            let peer = connector.connect(cluster.address()).await.expect("connected");
            (connector, peer)
        });
        User { runtime, peer, _connector: connector, next_key: 1 }
    }

    /// Submits jobs; returns when the head says that they are written down.
    pub(crate) fn submit(&mut self, jobs: Vec<JobRequest>) -> Vec<JobId> {
        let request = FromUser::Submit { jobs, key: self.next_key };
        self.next_key += 1;
        let peer = &self.peer;
        self.runtime.block_on(async {
            let mut channel = peer.open().await.expect("a stream");
            channel.receiver.trust();
            channel.sender.send(&request).await.expect("sent");
            channel.sender.finish();
            let jobs = match channel.receiver.receive::<ToUser>().await.expect("an answer") {
                Some(ToUser::Submitted(jobs)) => jobs,
                other => panic!("not submitted: {other:?}"),
            };
            // A stream that is dropped before its end is an offence to the head.
            let end = channel.receiver.receive::<ToUser>().await.expect("an end");
            assert!(matches!(end, Some(ToUser::End)), "{end:?}");
            jobs
        })
    }
}

/// A job of one GPU that runs a command.
pub(crate) fn job(argv: &[String]) -> JobRequest {
    let mut job = JobRequest { work: Iterations::new(1.0).expect("a count"), ..JobRequest::emulated(1) };
    job.start.launcher = Launcher::Process;
    job.start.argv = argv.iter().map(|word| Text::new(word.as_str()).expect("short")).collect();
    job
}

/// A named pipe into which every job writes a line as the first thing it does.
pub(crate) struct Bell {
    path: PathBuf,
    rings: mpsc::Receiver<Instant>,
}

impl Bell {
    pub(crate) fn hang(folder: &Path) -> Self {
        let path = folder.join("bell");
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success(), "{}: mkfifo failed", path.display());
        // Opened for both, so that it stays open between two jobs.
        let pipe = File::options().read(true).write(true).open(&path).expect("opened");
        let (ring, rings) = mpsc::channel();
        std::thread::spawn(move || {
            for _line in BufReader::new(pipe).lines() {
                if ring.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
        Bell { path, rings }
    }

    /// The command that rings it: a shell, so that what is measured holds for anything that is started.
    pub(crate) fn command(&self) -> Vec<String> {
        ["/bin/sh", "-c", &format!("echo >{}", self.path.display())].map(str::to_owned).into()
    }

    /// When the next job rang.
    pub(crate) fn next(&self) -> Instant {
        self.rings.recv_timeout(PATIENCE).expect("a job rings before patience ends")
    }
}
