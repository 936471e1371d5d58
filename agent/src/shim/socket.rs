//! A Unix socket of a shim and the peers connected to it.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::lines::Lines;

/// More connections than this are closed at once: a job has no use for them.
const MOST_CLIENTS: usize = 256;

/// A socket with the peers connected to it.
pub(super) struct ClientSocket {
    pub(super) listener: UnixListener,
    pub(super) clients: Vec<Client>,
}

/// A peer that has connected: an agent, or a rank of the job.
pub(super) struct Client {
    pub(super) lines: Lines,
    /// The rank that its `hello` names.
    pub(super) rank: Option<u32>,
    /// Whether it ends by itself when asked to stop.
    pub(super) stops: bool,
}

impl ClientSocket {
    /// Opens a socket at a path.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Left by an earlier shim of this launch, which is gone: the lock says so.
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(ClientSocket { listener, clients: Vec::new() })
    }

    /// Accepts waiting connections; true when there was at least one.
    pub(super) fn admit(&mut self) -> bool {
        let before = self.clients.len();
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MOST_CLIENTS {
                self.clients.extend(Lines::new(stream).map(|lines| Client {
                    lines,
                    rank: None,
                    stops: false,
                }));
            }
        }
        self.clients.len() > before
    }

    /// Sends a message to all peers.
    pub(super) fn send<M: serde::Serialize>(&mut self, message: &M) {
        self.clients.iter_mut().for_each(|client| client.lines.send(message));
    }

    /// Sends what waits and drops peers that have gone.
    pub(super) fn tidy(&mut self) {
        self.clients.iter_mut().for_each(|client| client.lines.flush());
        self.clients.retain(|client| client.lines.is_open());
    }
}
