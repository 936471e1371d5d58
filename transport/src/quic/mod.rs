//! QUIC endpoints: the only module that knows quinn, rustls and sockets.
//!
//! TLS 1.3 with certificates on both sides, one ALPN, no early data (it could be replayed), limits on streams and
//! buffers. A peer is identified before the first byte it sends is read: its certificate must be signed by the
//! authority, be valid now, not be revoked, and have the role that belongs to the server name it asked for (`AGENTS_DOMAIN`
//! or `USERS_DOMAIN`); otherwise it never gets a stream. There is one exception, if the head lets others join: at `JOIN_DOMAIN`
//! a peer without a certificate may send one short message.

mod channel;
mod connector;
mod joining;
mod listener;
mod settings;

pub use channel::{Channel, ChannelError, Receiver, Sender};
pub use connector::{ConnectError, Connector};
pub use joining::{JoinError, join, renew};
pub use listener::{Admitted, Arrival, Joiner, ListenError, Listener, Refusal};

use std::net::SocketAddr;

use crate::identity::{Identity, UserRole};

/// The protocol, as peers agree on it in the handshake.
pub const ALPN: &[u8] = b"rota/2";
/// The name under which agents look for the head.
pub const AGENTS_DOMAIN: &str = "agents.rota";
/// The name under which users look for the head.
pub const USERS_DOMAIN: &str = "users.rota";
/// The name under which those look for the head who need a certificate.
pub const JOIN_DOMAIN: &str = "join.rota";

/// Why the head closes connections when its certificates were replaced.
pub const CERTIFICATES_REPLACED: &str = "certificates were replaced: renew yours and connect again";

/// The wall clock is looked at again after at most this time.
const LOOK_AT_CLOCK: std::time::Duration = std::time::Duration::from_secs(30);

/// A connection to a peer whose certificate was checked.
#[derive(Clone, Debug)]
pub struct Peer {
    identity: Identity,
    user_role: UserRole,
    /// Until when its certificate is valid.
    until: Option<time::OffsetDateTime>,
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

    /// Waits until its certificate is no longer valid, by the wall clock.
    pub async fn expired(&self) {
        let Some(until) = self.until else { return std::future::pending().await };
        loop {
            let left = until - time::OffsetDateTime::now_utc();
            if !left.is_positive() {
                return;
            }
            // A clock that is set, or a machine that slept, must not make it longer.
            tokio::time::sleep(left.unsigned_abs().min(LOOK_AT_CLOCK)).await;
        }
    }

    /// For how long its certificate is still valid, by the wall clock.
    pub fn valid_for(&self) -> std::time::Duration {
        let left = self.until.map(|until| until - time::OffsetDateTime::now_utc());
        left.map_or(std::time::Duration::MAX, |left| left.try_into().unwrap_or_default())
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
