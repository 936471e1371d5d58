//! The endpoint of agents and users, which connects to the head.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::settings::{self, SettingsError};
use super::{AGENTS_DOMAIN, JOIN_DOMAIN, Peer, USERS_DOMAIN};
use crate::identity::{Credentials, Fingerprint, Identity, IdentityError, Role, UserRole};
use crate::value::Name;

/// A connection that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// TLS cannot be set up with them.
    #[error("TLS: {why}")]
    Tls {
        /// What rustls said.
        why: String,
    },
    /// No socket could be opened.
    #[error("no socket could be opened: {0}")]
    Socket(std::io::Error),
    /// A host name that cannot be resolved.
    #[error("{head}: {why}")]
    NotFound {
        /// What was asked for.
        head: String,
        /// What the resolver said.
        why: String,
    },
    /// The head does not answer, or refuses the connection.
    #[error("the head at {address} cannot be reached: {why}")]
    Refused {
        /// The address that was tried.
        address: SocketAddr,
        /// What quinn said, or that time ran out.
        why: String,
    },
}

impl From<SettingsError> for ConnectError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Identity(error) => ConnectError::Identity(error),
            SettingsError::Tls { why } => ConnectError::Tls { why },
        }
    }
}

/// The longest time that leaving takes.
const LEAVE_AT_MOST: Duration = Duration::from_millis(2);

/// Connects to the head with the certificate of an agent or a user.
#[derive(Debug)]
pub struct Connector {
    endpoint: quinn::Endpoint,
    domain: &'static str,
}

impl Connector {
    /// Needs a tokio runtime.
    pub fn new(credentials: &Credentials) -> Result<Self, ConnectError> {
        let domain = match credentials.identity().role {
            Role::Agent => AGENTS_DOMAIN,
            Role::User | Role::Head => USERS_DOMAIN,
        };
        Connector::for_door(credentials, domain)
    }

    /// The same, asking for a server name of one's choice: the head accepts only the one for the role.
    pub fn for_door(credentials: &Credentials, domain: &'static str) -> Result<Self, ConnectError> {
        Connector::with(settings::client(credentials)?, domain)
    }

    fn with(config: quinn::ClientConfig, domain: &'static str) -> Result<Self, ConnectError> {
        let any: SocketAddr = (Ipv6Addr::UNSPECIFIED, 0).into();
        let endpoint = quinn::Endpoint::client(any)
            .or_else(|_| quinn::Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()));
        let mut endpoint = endpoint.map_err(ConnectError::Socket)?;
        endpoint.set_default_client_config(config);
        Ok(Connector { endpoint, domain })
    }

    /// Connects to `host:port`.
    pub async fn connect(&self, head: &str) -> Result<Peer, ConnectError> {
        let not_found = |why: String| ConnectError::NotFound { head: head.to_owned(), why };
        let mut addresses =
            tokio::net::lookup_host(head).await.map_err(|error| not_found(error.to_string()))?;
        let address = addresses.next().ok_or_else(|| not_found("no address".into()))?;
        self.connect_to(address).await
    }

    /// Connects to an address.
    pub async fn connect_to(&self, address: SocketAddr) -> Result<Peer, ConnectError> {
        let refused = |why: String| ConnectError::Refused { address, why };
        let connecting =
            self.endpoint.connect(address, self.domain).map_err(|error| refused(error.to_string()))?;
        let connection = connecting.await.map_err(|error| refused(explained(&error)))?;
        let name = Name::new("head").map_err(|error| refused(error.to_string()))?;
        let identity = Identity { role: Role::Head, name };
        Ok(Peer { identity, user_role: UserRole::default(), until: None, connection })
    }

    /// For asking for a first certificate: the head is recognised by the fingerprint of its authority.
    pub fn to_join(fingerprint: Fingerprint) -> Result<Self, ConnectError> {
        Connector::with(settings::joining_client(fingerprint)?, JOIN_DOMAIN)
    }

    /// For asking for a new certificate in the place of this one.
    pub fn to_renew(credentials: &Credentials) -> Result<Self, ConnectError> {
        Connector::with(settings::renewing_client(credentials)?, JOIN_DOMAIN)
    }

    /// Waits until the head knows that we are gone, and until no late packet can be for us any more.
    pub async fn closed(&self) {
        self.endpoint.close(quinn::VarInt::from_u32(0), b"done");
        self.endpoint.wait_idle().await;
    }

    /// Tells the head that we are gone, without waiting for late packets: three timeouts for packets are 80 ms even on loopback.
    /// If the message is lost, the head notices by itself.
    pub async fn leave(&self) {
        self.endpoint.close(quinn::VarInt::from_u32(0), b"done");
        // The message leaves when the connection's task runs next.
        let _ = tokio::time::timeout(LEAVE_AT_MOST, self.endpoint.wait_idle()).await;
    }
}

/// A failed connection, with advice on what to check.
fn explained(error: &quinn::ConnectionError) -> String {
    match error {
        quinn::ConnectionError::TimedOut => "no answer; is it running, and is UDP let through?".into(),
        quinn::ConnectionError::TransportError(error) => {
            format!("{error}; are both certificates from the same authority, and valid now?")
        }
        other => other.to_string(),
    }
}
