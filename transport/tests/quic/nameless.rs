//! Guests that Rota's own connector cannot be: without a certificate, or speaking another protocol.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use rota_transport::quic::{AGENTS_DOMAIN, ALPN};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Cluster, PATIENCE};

/// What a guest shows at the door.
enum Shows {
    Nothing,
    ItsCertificate,
}

/// Knocks as said; whether the head let it in.
async fn knock(cluster: &Cluster, shows: Shows, protocol: &[u8]) -> bool {
    let folder = cluster.issue(rota_transport::identity::Role::Agent, "node0", crate::a_day());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("ca.pem")).expect("a certificate")).expect("added");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots);
    let mut config = match shows {
        Shows::Nothing => config.with_no_client_auth(),
        Shows::ItsCertificate => {
            let chain = vec![CertificateDer::from_pem_file(folder.join("cert.pem")).expect("a certificate")];
            let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).expect("a key");
            config.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).expect("QUIC")));
    let (listener, address): (_, SocketAddr) = cluster.listen();
    let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
    endpoint.set_default_client_config(client);
    let guest = endpoint.connect(address, AGENTS_DOMAIN).expect("it tries");
    let host = async { listener.accept().await.expect("open").admit().await.is_ok() };
    let (is_let_in, _) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(host, guest) }).await.expect("in time");
    is_let_in
}

#[tokio::test]
async fn a_guest_without_a_certificate_or_with_another_protocol_is_refused() {
    let cluster = Cluster::new();
    assert!(knock(&cluster, Shows::ItsCertificate, ALPN).await, "this is how it should be");
    assert!(!knock(&cluster, Shows::Nothing, ALPN).await, "without a certificate");
    assert!(!knock(&cluster, Shows::ItsCertificate, b"h3").await, "with another protocol");
}
