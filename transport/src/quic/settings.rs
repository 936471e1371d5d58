//! TLS and QUIC settings of both sides.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ring::hmac;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::{ALPN, USERS_DOMAIN};
use crate::identity::{Credentials, Fingerprint, IdentityError, Role, identity_of};

/// Streams that a peer may have open at once.
const MOST_STREAMS: u32 = 64;

/// What a peer may have sent to the head on all streams of a connection and nobody has read: two of the longest messages.
const MOST_UNREAD_BYTES: u32 = 2 << 20;

/// Bytes of a connection's id.
const CONNECTION_ID_BYTES: usize = 8;
/// After a restart a thousand agents learn within a second that their connections are gone.
const LEAST_BETWEEN_RESETS: Duration = Duration::from_millis(1);
/// The round-trip time assumed before one was measured: a lost first packet is repeated after three of them.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// Why the settings cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("TLS: {why}")]
    Tls { why: String },
}

fn tls(error: impl std::fmt::Display) -> SettingsError {
    SettingsError::Tls { why: error.to_string() }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(credentials: &Credentials) -> Result<Arc<RootCertStore>, SettingsError> {
    root_store(&credentials.authorities)
}

fn root_store(authorities: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, SettingsError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(tls)?;
    }
    Ok(Arc::new(roots))
}

/// The head's side. If it lets others join, a peer may come without a certificate, and is shown the authority's.
pub(super) fn server(
    credentials: &Credentials,
    lets_join: bool,
) -> Result<quinn::ServerConfig, SettingsError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(credentials)?, provider())
        .with_crls(credentials.revoked()?)
        .only_check_end_entity_revocation()
        .build()
        .map_err(tls)?;
    let mut chain = vec![credentials.certificate.clone()];
    if lets_join {
        chain.extend(credentials.authorities.iter().cloned());
    }
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_client_cert_verifier(Arc::new(KnownRole { signed: verifier, is_mandatory: !lets_join }))
        .with_single_cert(chain, credentials.key.clone_key())
        .map_err(tls)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Early data can be replayed by anyone who recorded it.
    config.max_early_data_size = 0;
    config.send_tls13_tickets = 0;
    let quic = QuicServerConfig::try_from(config).map_err(tls)?;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(quic));
    let mut transport = transport();
    transport.receive_window(MOST_UNREAD_BYTES.into());
    server.transport_config(Arc::new(transport));
    Ok(server)
}

/// The head's endpoint. A peer that writes to a connection of an earlier head is told at once that it is gone, without
/// waiting for a timeout: the reset token is derived from the head's key, so a restarted head can compute it.
pub(super) fn endpoint(credentials: &Credentials) -> quinn::EndpointConfig {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, credentials.key.secret_der());
    let token_key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, b"rota reset tokens").as_ref());
    let mut config = quinn::EndpointConfig::new(Arc::new(token_key));
    config.cid_generator(|| Box::new(RandomIds)).min_reset_interval(LEAST_BETWEEN_RESETS);
    config
}

/// Connection ids that a restarted head with the same key recognises as its own. Those of quinn carry a secret of the
/// process, so a new head would not answer to the ids of its predecessor.
struct RandomIds;

impl quinn::ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> quinn::ConnectionId {
        quinn::ConnectionId::new(&rand::random::<[u8; CONNECTION_ID_BYTES]>())
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The side of a party without a certificate.
pub(super) fn joining_client(fingerprint: Fingerprint) -> Result<quinn::ClientConfig, SettingsError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(HeadOf { trust: Trust::Pinned(fingerprint) }))
        .with_no_client_auth();
    client_of(config)
}

/// The side of a party whose certificate ends soon.
pub(super) fn renewing_client(credentials: &Credentials) -> Result<quinn::ClientConfig, SettingsError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(HeadOf { trust: Trust::Known(roots(credentials)?) }))
        .with_client_auth_cert(vec![credentials.certificate.clone()], credentials.key.clone_key())
        .map_err(tls)?;
    client_of(config)
}

/// The side of agents and users.
pub(super) fn client(credentials: &Credentials) -> Result<quinn::ClientConfig, SettingsError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_root_certificates(roots(credentials)?)
        .with_client_auth_cert(vec![credentials.certificate.clone()], credentials.key.clone_key())
        .map_err(tls)?;
    client_of(config)
}

fn client_of(mut config: ClientConfig) -> Result<quinn::ClientConfig, SettingsError> {
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_early_data = false;
    let quic = QuicClientConfig::try_from(config).map_err(tls)?;
    let mut client = quinn::ClientConfig::new(Arc::new(quic));
    client.transport_config(Arc::new(transport()));
    Ok(client)
}

fn transport() -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport
        .keep_alive_interval(Some(Duration::from_secs(2)))
        .initial_rtt(FIRST_ROUND_TRIP)
        .max_idle_timeout(Some(quinn::IdleTimeout::from(quinn::VarInt::from_u32(8_000))))
        .max_concurrent_bidi_streams(MOST_STREAMS.into())
        .max_concurrent_uni_streams(0_u32.into())
        .datagram_receive_buffer_size(None);
    transport
}

/// Accepts agents and users of the authority alone, during the handshake.
#[derive(Debug)]
struct KnownRole {
    signed: Arc<dyn ClientCertVerifier>,
    is_mandatory: bool,
}

impl ClientCertVerifier for KnownRole {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.signed.verify_client_cert(end_entity, intermediates, now)?;
        match identity_of(end_entity).map(|identity| identity.role) {
            Some(Role::Agent | Role::User) => Ok(verified),
            Some(Role::Head) | None => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// How a party recognises the head when it asks for a certificate.
#[derive(Debug)]
enum Trust {
    /// By the authorities that it trusts already.
    Known(Arc<RootCertStore>),
    /// By an authority of this fingerprint, whose certificate the head shows.
    Pinned(Fingerprint),
}

/// Accepts the head of a cluster by the name that every head's certificate has, whatever door was asked for: certificates of
/// earlier versions do not name the door for joining.
#[derive(Debug)]
struct HeadOf {
    trust: Trust,
}

impl HeadOf {
    fn roots(&self, shown: &[CertificateDer<'_>]) -> Option<Arc<RootCertStore>> {
        match &self.trust {
            Trust::Known(roots) => Some(roots.clone()),
            Trust::Pinned(fingerprint) => {
                let pinned = shown.iter().find(|certificate| Fingerprint::of(certificate) == *fingerprint)?;
                root_store(&[pinned.clone().into_owned()]).ok()
            }
        }
    }
}

impl ServerCertVerifier for HeadOf {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let refused = || rustls::Error::from(CertificateError::UnknownIssuer);
        let roots = self.roots(intermediates).ok_or_else(refused)?;
        let checked = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let name = ServerName::try_from(USERS_DOMAIN).map_err(|_| refused())?;
        checked.map_err(|_| refused())?.verify_server_cert(
            end_entity,
            intermediates,
            &name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let provider = provider();
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            dss,
            &provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
