//! QUIC endpoints: the only module that knows quinn, rustls and sockets.
//!
//! TLS 1.3 with certificates on both sides, one ALPN, no early data (it could be replayed), limits on streams and
//! buffers. A peer is identified before the first byte it sends is read: its certificate must be signed by the
//! authority, be valid now, not be revoked, and have the role that belongs to the server name it asked for (`AGENTS_DOMAIN`
//! or `USERS_DOMAIN`); otherwise it never gets a stream.

mod channel;
mod connector;
mod listener;
mod settings;

pub use channel::{Channel, ChannelError, Receiver, Sender};
pub use connector::{ConnectError, Connector};
pub use listener::{Arrival, ListenError, Listener, Refusal};

use std::net::SocketAddr;

use crate::identity::{Identity, UserRole};

/// The protocol, as peers agree on it in the handshake.
pub const ALPN: &[u8] = b"rota/2";
/// The name under which agents look for the head.
pub const AGENTS_DOMAIN: &str = "agents.rota";
/// The name under which users look for the head.
pub const USERS_DOMAIN: &str = "users.rota";

/// A connection to a peer whose certificate was checked.
#[derive(Clone, Debug)]
pub struct Peer {
    identity: Identity,
    user_role: UserRole,
    connection: quinn::Connection,
}

impl Peer {
    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What its certificate lets it do, if it is a person's.
    pub fn user_role(&self) -> UserRole {
        self.user_role
    }

    /// Where it is now.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// The local address that this peer reaches, if the system reports it.
    pub fn local_address(&self) -> Option<std::net::IpAddr> {
        self.connection.local_ip()
    }

    /// Opens a stream to it.
    pub async fn open(&self) -> Result<Channel, ChannelError> {
        let (sender, receiver) = self.connection.open_bi().await.map_err(closed)?;
        Ok(Channel::new(sender, receiver))
    }

    /// Waits for a stream from it.
    pub async fn accept(&self) -> Result<Channel, ChannelError> {
        let (sender, receiver) = self.connection.accept_bi().await.map_err(closed)?;
        Ok(Channel::new(sender, receiver))
    }

    /// Waits until the connection is gone, and says why.
    pub async fn closed(&self) -> String {
        self.connection.closed().await.to_string()
    }

    /// Closes the connection with a reason.
    pub fn close(&self, why: &str) {
        self.connection.close(quinn::VarInt::from_u32(1), why.as_bytes());
    }
}

fn closed(error: quinn::ConnectionError) -> ChannelError {
    ChannelError::Closed { why: error.to_string() }
}
