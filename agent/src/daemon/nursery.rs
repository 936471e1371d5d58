//! How the daemon gets shims: from a process that forks them, started when the first is needed and again when it is gone.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tracing::error;

use crate::shim::Beginning;
use crate::shim::nursery::{ShimAnswer, ShimRequest};
use crate::shim::record::{AttemptDir, ProcessMark};

/// Time between two checks whether a process is gone.
const LOOK: Duration = Duration::from_millis(5);

/// Why a launch has no shim.
#[derive(Debug, thiserror::Error)]
pub(super) enum NurseryError {
    #[error("{0}")]
    NotStarted(String),
    #[error("the agent ends")]
    AgentEnds,
}

/// The connection to the nursery.
#[derive(Clone)]
pub(super) struct Nursery {
    asks: mpsc::UnboundedSender<(ShimRequest, oneshot::Sender<ShimAnswer>)>,
}

impl Nursery {
    /// The nursery itself is started when the first shim is needed. Needs a tokio runtime.
    pub(super) fn new() -> Self {
        let (asks, asked) = mpsc::unbounded_channel();
        tokio::spawn(tend(asked));
        Nursery { asks }
    }

    /// A shim for a launch; none when another one watches it.
    pub(super) async fn shim(
        &self,
        dir: &AttemptDir,
        beginning: Beginning,
    ) -> Result<Option<ShimProcess>, NurseryError> {
        let (reply, answer) = oneshot::channel();
        let request = ShimRequest { dir: dir.path().to_owned(), beginning };
        // An agent that ends drops both channels.
        let _ = self.asks.send((request, reply));
        match answer.await {
            Ok(ShimAnswer::Started(mark)) => Ok(Some(ShimProcess(mark))),
            Ok(ShimAnswer::Held) => Ok(None),
            Ok(ShimAnswer::Failed(why)) => Err(NurseryError::NotStarted(why)),
            Err(_) => Err(NurseryError::AgentEnds),
        }
    }
}

/// Passes requests and answers; a nursery that is gone is replaced.
async fn tend(mut asked: mpsc::UnboundedReceiver<(ShimRequest, oneshot::Sender<ShimAnswer>)>) {
    let mut line: Option<Line> = None;
    while let Some((request, reply)) = asked.recv().await {
        let mut answer = Err(io::Error::other("not asked"));
        // A second time with a new nursery; a shim that the old one made meanwhile holds its launch.
        for _ in 0..2 {
            if line.is_none() {
                line =
                    Line::open().inspect_err(|error| error!("the nursery cannot be started: {error}")).ok();
            }
            let Some(open) = &mut line else { break };
            answer = open.ask(&request).await;
            if answer.is_ok() {
                break;
            }
            line = None;
        }
        // A watcher that is gone needs no shim.
        let _ =
            reply.send(answer.unwrap_or_else(|error| ShimAnswer::Failed(format!("the nursery: {error}"))));
    }
}

/// A nursery and the connection to it.
struct Line {
    stream: BufReader<UnixStream>,
    _process: Child,
}

impl Line {
    fn open() -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(own_program());
        command
            .arg("nursery")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .process_group(0);
        let process = command.spawn()?;
        Ok(Line { stream: BufReader::new(UnixStream::from_std(ours)?), _process: process })
    }

    async fn ask(&mut self, request: &ShimRequest) -> io::Result<ShimAnswer> {
        let line = serde_json::to_string(request)? + "\n";
        self.stream.get_mut().write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        match self.stream.read_line(&mut answer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(serde_json::from_str(&answer)?),
        }
    }
}

/// A shim's process, which is not a child of the agent.
pub(super) struct ShimProcess(ProcessMark);

impl ShimProcess {
    /// Whether it is gone.
    pub(super) fn is_gone(&self) -> bool {
        !self.0.is_alive()
    }

    /// Waits until it is gone. Its end is noticed on its socket first, so this need not be quick.
    pub(super) async fn gone(&self) {
        while !self.is_gone() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// This program, even if its file was replaced by a newer one meanwhile.
fn own_program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    std::fs::read_link(own).ok().filter(|path| path.exists()).unwrap_or_else(|| own.to_owned())
}
