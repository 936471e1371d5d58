//! The connection to the head. Attempts are repeated with growing, random waits: a thousand agents must not all
//! connect at the same moment.

use std::path::Path;
use std::time::Duration;

use rand::RngExt;
use rota_core::time::Span;
use rota_transport::identity::{Credentials, IdentityError, Role};
use rota_transport::message::{ToAgent, ToHead};
use rota_transport::quic::{ChannelError, ConnectError, Connector, Peer, Receiver};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::warn;

/// The first wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// A handshake without an answer is abandoned after this time and started again, because QUIC's own waits between its
/// repetitions have grown too long by then.
const KNOCK_PATIENCE: Duration = Duration::from_secs(3);
/// Messages that wait for the network; more, and the head is not keeping up.
const MOST_UNSENT: usize = 8_192;

/// Why there is no link to the head, or no longer.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the head at {0} does not answer")]
    NoAnswer(String),
    #[error("the head closed the connection")]
    HungUp,
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

/// A connection to the head.
pub(super) struct Link {
    pub(super) receiver: Receiver,
    sender: mpsc::Sender<ToHead>,
    peer: Peer,
    writer: JoinHandle<()>,
}

impl Link {
    /// Connects after a wait, however long it takes. Logs the reason of a failure once, and again when it changes.
    pub(super) async fn open(identity: &Path, head: &str, first_wait: Duration, most: Span) -> Self {
        let mut logged = String::new();
        let most = Duration::from_secs_f64(most.as_secs_f64().clamp(0.1, 3600.0));
        let mut wait = FIRST_WAIT;
        tokio::time::sleep(jittered(first_wait)).await;
        loop {
            let tried = tokio::time::timeout(KNOCK_PATIENCE, Link::try_open(identity, head)).await;
            match tried.unwrap_or_else(|_| Err(LinkError::NoAnswer(head.to_owned()))) {
                Ok(link) => return link,
                Err(error) => {
                    let why = error.to_string();
                    if why != logged {
                        warn!("{why}; trying again");
                        logged = why;
                    }
                }
            }
            tokio::time::sleep(jittered(wait)).await;
            wait = (wait * 2).min(most);
        }
    }

    /// Connects once, with the certificate that is on the disk now: it may have been renewed since the last time.
    pub(super) async fn try_open(identity: &Path, head: &str) -> Result<Self, LinkError> {
        let connector = Connector::new(&Credentials::load_for(identity, Role::Agent)?)?;
        let peer = connector.connect(head).await?;
        let channel = peer.open().await?;
        let (sender, mut unsent) = mpsc::channel::<ToHead>(MOST_UNSENT);
        let mut stream = channel.sender;
        let hung_up = peer.clone();
        let writer = tokio::spawn(async move {
            // Keeps the endpoint open while this task writes.
            let _connector = connector;
            while let Some(message) = unsent.recv().await {
                if let Err(error) = stream.send(&message).await {
                    hung_up.close(&error.to_string());
                    return;
                }
            }
            stream.finished().await;
        });
        Ok(Link { receiver: channel.receiver, sender, peer, writer })
    }

    /// Sends without waiting; if the head does not keep up, the connection is closed.
    pub(super) fn send(&self, message: ToHead) {
        if self.sender.try_send(message).is_err() {
            self.peer.close("the head does not keep up");
        }
    }

    /// The next message; an error says why the link is gone.
    pub(super) async fn receive(&mut self) -> Result<ToAgent, LinkError> {
        self.receiver.receive().await?.ok_or(LinkError::HungUp)
    }

    /// Closes the connection.
    pub(super) fn close(self, why: &str) {
        self.peer.close(why);
        self.writer.abort();
    }
}

fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.5..1.0))
}
