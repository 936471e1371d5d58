//! Messages on a stream.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frame::{self, FrameError, Reader};

/// A stream that was lost or must be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The connection is gone.
    #[error("the connection is gone: {why}")]
    Closed {
        /// What quinn said.
        why: String,
    },
    /// The peer sent something that is not a message.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Both directions of a stream.
#[derive(Debug)]
pub struct Channel {
    /// To the peer.
    pub sender: Sender,
    /// From the peer.
    pub receiver: Receiver,
}

impl Channel {
    pub(super) fn new(sender: quinn::SendStream, receiver: quinn::RecvStream) -> Self {
        Channel {
            sender: Sender { stream: sender },
            receiver: Receiver { stream: receiver, reader: Reader::new() },
        }
    }
}

/// The direction to the peer.
#[derive(Debug)]
pub struct Sender {
    stream: quinn::SendStream,
}

impl Sender {
    /// Sends a message; waits while the peer does not keep up.
    pub async fn send<M: Serialize>(&mut self, message: &M) -> Result<(), ChannelError> {
        self.send_raw(&frame::encode(message)?).await
    }

    /// Sends bytes as they are, for tests of how a peer handles bytes that are not a message.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.stream.write_all(bytes).await.map_err(|error| closed(&error))
    }

    /// Nothing more is sent; what was sent still arrives.
    pub fn finish(&mut self) {
        // An error means that the stream was finished or reset before: there is nothing left to do.
        let _ = self.stream.finish();
    }

    /// Waits until the peer has all of it, or does not want it.
    pub async fn finished(&mut self) {
        self.finish();
        let _ = self.stream.stopped().await;
    }
}

/// The direction from the peer.
#[derive(Debug)]
pub struct Receiver {
    stream: quinn::RecvStream,
    reader: Reader,
}

impl Receiver {
    /// The peer is known: longer messages are accepted from now on.
    pub fn trust(&mut self) {
        self.reader.trust();
    }

    /// The next message; `None` when the peer has finished. Dropping the future loses nothing.
    pub async fn receive<M: DeserializeOwned>(&mut self) -> Result<Option<M>, ChannelError> {
        loop {
            if let Some(message) = self.reader.take()? {
                return Ok(Some(message));
            }
            match self.stream.read_chunk(64 * 1024, true).await {
                Ok(Some(chunk)) => self.reader.feed(&chunk.bytes),
                Ok(None) => return self.reader.finish().map(|()| None).map_err(ChannelError::from),
                Err(error) => return Err(closed(&error)),
            }
        }
    }
}

/// Why a stream ended: if the connection was lost, its error says more than the stream's.
fn closed(error: &dyn std::error::Error) -> ChannelError {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    ChannelError::Closed { why }
}
