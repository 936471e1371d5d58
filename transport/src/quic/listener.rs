//! The head's endpoint: whose connections are accepted.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;

use super::settings::{self, SettingsError};
use super::{AGENTS_DOMAIN, Channel, ChannelError, JOIN_DOMAIN, Peer, USERS_DOMAIN};
use crate::identity::{
    Credentials, Identity, IdentityError, Role, UserRole, identity_of, user_role_of, validity_of,
};

/// The receive buffer the head asks for: with the usual 200 KiB, packets are lost when a thousand agents connect at once.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// With more handshakes than this under way, new peers must first prove that they own their address.
const MOST_UNPROVEN_ARRIVALS: usize = 64;

/// Why the head cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The socket cannot be bound.
    #[error("{address}: {error}")]
    Bind {
        /// The address that was configured.
        address: SocketAddr,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// TLS cannot be set up with them.
    #[error("TLS: {why}")]
    Tls {
        /// What rustls said.
        why: String,
    },
}

impl From<SettingsError> for ListenError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Identity(error) => ListenError::Identity(error),
            SettingsError::Tls { why } => ListenError::Tls { why },
        }
    }
}

/// Why a peer was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The handshake failed: no certificate, a wrong one, another protocol, or silence.
    #[error("{address}: {why}")]
    Handshake {
        /// Address of the peer.
        address: SocketAddr,
        /// What the handshake ended with.
        why: String,
    },
    /// A valid certificate with the server name of another role.
    #[error("{address}: a certificate of a {role} is not accepted at {door}")]
    WrongDoor {
        /// Address of the peer.
        address: SocketAddr,
        /// What the certificate is for.
        role: Role,
        /// The name it asked for.
        door: String,
    },
}

/// The head's endpoint.
#[derive(Debug)]
pub struct Listener {
    endpoint: quinn::Endpoint,
    credentials: Credentials,
    /// Whether parties without a certificate may ask for one.
    lets_join: bool,
    written_at: Mutex<Vec<Option<SystemTime>>>,
    was_replaced: AtomicBool,
    warning: Option<String>,
}

impl Listener {
    /// Listens at an address. Needs a tokio runtime.
    pub fn bind(address: SocketAddr, credentials: Credentials) -> Result<Self, ListenError> {
        Listener::bind_with(address, credentials, false)
    }

    /// The same; parties without a certificate may ask for one, if `lets_join`.
    pub fn bind_with(
        address: SocketAddr,
        credentials: Credentials,
        lets_join: bool,
    ) -> Result<Self, ListenError> {
        let failed = |error| ListenError::Bind { address, error };
        let written_at = Mutex::new(credentials.written_at());
        let config = settings::server(&credentials, lets_join)?;
        let (socket, warning) = bind_socket(address).map_err(failed)?;
        let runtime = quinn::default_runtime()
            .ok_or_else(|| failed(std::io::Error::other("no asynchronous runtime is running")))?;
        let endpoint = quinn::Endpoint::new(settings::endpoint(&credentials), Some(config), socket, runtime)
            .map_err(failed)?;
        let was_replaced = AtomicBool::new(false);
        Ok(Listener { endpoint, credentials, lets_join, written_at, was_replaced, warning })
    }

    /// A warning about the socket for the operator, if there is one.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.endpoint.local_addr().ok()
    }

    /// Waits for a peer; `None` when the listener is closed.
    pub async fn accept(&self) -> Option<Arrival> {
        loop {
            let incoming = self.endpoint.accept().await?;
            let is_crowded = self.endpoint.open_connections() > MOST_UNPROVEN_ARRIVALS;
            if is_crowded && !incoming.remote_address_validated() && incoming.may_retry() {
                // A peer that does not answer costs nothing more; an error means it is gone.
                let _ = incoming.retry();
                continue;
            }
            return Some(Arrival { incoming });
        }
    }

    /// Reads the head's certificate, the authorities' and the lists of revoked ones again if they were written since; true when
    /// they were. The caller should close open connections, so that their certificates are checked again.
    pub fn refresh(&self) -> Result<bool, ListenError> {
        let written = self.credentials.written_at();
        let Ok(mut known) = self.written_at.lock() else { return Ok(false) };
        if *known == written {
            return Ok(false);
        }
        let config = settings::server(&self.credentials.reload()?, self.lets_join)?;
        self.endpoint.set_server_config(Some(config));
        // The last of the files is the list of revoked certificates.
        let is_replaced = known.iter().zip(&written).rev().skip(1).any(|(before, now)| before != now);
        self.was_replaced.store(is_replaced, Ordering::Relaxed);
        *known = written;
        Ok(true)
    }

    /// Whether the last refresh brought other certificates, and not only another list of revoked ones.
    pub fn was_replaced(&self) -> bool {
        self.was_replaced.load(Ordering::Relaxed)
    }

    /// Closes every connection.
    pub fn close(&self, why: &str) {
        self.endpoint.close(quinn::VarInt::from_u32(0), why.as_bytes());
    }

    /// Waits until every peer knows.
    pub async fn closed(&self) {
        self.endpoint.wait_idle().await;
    }
}

/// A peer that wants to connect.
#[derive(Debug)]
pub struct Arrival {
    incoming: quinn::Incoming,
}

impl Arrival {
    /// Completes the handshake with a peer that has a certificate. Nothing that it sends is read before that was checked.
    pub async fn admit(self) -> Result<Peer, Refusal> {
        let address = self.incoming.remote_address();
        match self.admit_any().await? {
            Admitted::Known(peer) => Ok(peer),
            Admitted::Joiner(joiner) => {
                let why = "it asks for a certificate".to_owned();
                joiner.close(&why);
                Err(Refusal::Handshake { address, why })
            }
        }
    }

    /// The same; a peer that asks for a certificate need not have one.
    pub async fn admit_any(self) -> Result<Admitted, Refusal> {
        let address = self.incoming.remote_address();
        let refused = |why: String| Refusal::Handshake { address, why };
        let connection = self.incoming.await.map_err(|error| refused(error.to_string()))?;
        let certificate = connection
            .peer_identity()
            .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok())
            .and_then(|chain| chain.into_iter().next());
        let door = connection
            .handshake_data()
            .and_then(|data| data.downcast::<quinn::crypto::rustls::HandshakeData>().ok())
            .and_then(|data| data.server_name)
            .unwrap_or_default();
        if door == JOIN_DOMAIN {
            let holder = certificate.as_ref().and_then(|certificate| {
                let length_s = validity_of(certificate)?.length_s();
                Some((identity_of(certificate)?, user_role_of(certificate), length_s))
            });
            return Ok(Admitted::Joiner(Joiner { holder, connection }));
        }
        let Some((certificate, identity)) = certificate.and_then(|c| identity_of(&c).map(|who| (c, who)))
        else {
            let why = "no certificate with a name of ours";
            connection.close(quinn::VarInt::from_u32(2), why.as_bytes());
            return Err(refused(why.into()));
        };
        let is_right = match identity.role {
            Role::Agent => door == AGENTS_DOMAIN,
            Role::User => door == USERS_DOMAIN,
            Role::Head => false,
        };
        if !is_right {
            let refusal = Refusal::WrongDoor { address, role: identity.role, door };
            connection.close(quinn::VarInt::from_u32(2), refusal.to_string().as_bytes());
            return Err(refusal);
        }
        let (user_role, until) =
            (user_role_of(&certificate), validity_of(&certificate).map(|valid| valid.to));
        Ok(Admitted::Known(Peer { identity, user_role, until, connection }))
    }
}

/// A peer after the handshake.
#[derive(Debug)]
pub enum Admitted {
    /// An agent or a user, by a certificate.
    Known(Peer),
    /// Somebody who asks for a certificate.
    Joiner(Joiner),
}

/// A peer that asks for a certificate. Nothing else is known of it, unless it has one.
#[derive(Debug)]
pub struct Joiner {
    holder: Option<(Identity, UserRole, i64)>,
    connection: quinn::Connection,
}

impl Joiner {
    /// Who it is, the role, and for how many seconds its certificate was issued, if it has one.
    pub fn holder(&self) -> Option<&(Identity, UserRole, i64)> {
        self.holder.as_ref()
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// Waits for its only stream.
    pub async fn accept(&self) -> Result<Channel, ChannelError> {
        let (sender, receiver) = self.connection.accept_bi().await.map_err(super::closed)?;
        Ok(Channel::new(sender, receiver))
    }

    /// Closes the connection with a reason.
    pub fn close(&self, why: &str) {
        self.connection.close(quinn::VarInt::from_u32(1), why.as_bytes());
    }
}

/// A socket with a large receive buffer, and a warning if the system grants less.
fn bind_socket(address: SocketAddr) -> std::io::Result<(UdpSocket, Option<String>)> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, Some(socket2::Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    let granted = socket.recv_buffer_size()?;
    let warning = (granted < RECEIVE_BUFFER_BYTES).then(|| {
        format!(
            "the system grants a receive buffer of {granted} bytes, {RECEIVE_BUFFER_BYTES} were asked for: with many \
             agents run `sysctl -w net.core.rmem_max={RECEIVE_BUFFER_BYTES}`"
        )
    });
    socket.bind(&address.into())?;
    Ok((socket.into(), warning))
}
