//! TLS for the head's page: a certificate for the names that people open, issued by the cluster's authority. Browsers show no
//! certificate of their own; who they are is proven by a link that a certificate was good for.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::identity::{IdentityError, read_certificates, read_secret};

/// A connection over TLS.
pub type HttpsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HttpsError {
    /// They cannot be read.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// They do not fit each other, or TLS does not take them.
    #[error("{}: {why}", folder.display())]
    Tls {
        /// The folder that they are in.
        folder: PathBuf,
        /// What rustls said.
        why: String,
    },
}

/// Accepts connections with the certificate and key of a folder, which are read again when they change.
pub struct HttpsAcceptor {
    folder: PathBuf,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    written_at: Option<SystemTime>,
    looked_at: Instant,
}

impl HttpsAcceptor {
    /// Reads `cert.pem` and `key.pem` of a folder.
    pub fn load(folder: &Path) -> Result<Self, HttpsError> {
        let config = Arc::new(config(folder)?);
        let current = Current { config, written_at: written_at(folder), looked_at: Instant::now() };
        Ok(HttpsAcceptor { folder: folder.to_owned(), current: Mutex::new(current) })
    }

    /// Completes the handshake of a connection.
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<HttpsStream> {
        TlsAcceptor::from(self.config()).accept(stream).await
    }

    fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked_at.elapsed() < LOOK_EVERY {
            return Arc::clone(&current.config);
        }
        current.looked_at = Instant::now();
        let now = written_at(&self.folder);
        if current.written_at != now {
            current.written_at = now;
            match config(&self.folder) {
                Ok(config) => current.config = Arc::new(config),
                Err(error) => tracing::error!("the page's certificate stays the old one: {error}"),
            }
        }
        Arc::clone(&current.config)
    }
}

fn written_at(folder: &Path) -> Option<SystemTime> {
    let at = |name| std::fs::metadata(folder.join(name)).and_then(|meta| meta.modified()).ok();
    at("cert.pem").max(at("key.pem"))
}

fn config(folder: &Path) -> Result<ServerConfig, HttpsError> {
    let tls =
        |error: &dyn std::fmt::Display| HttpsError::Tls { folder: folder.to_owned(), why: error.to_string() };
    let chain = read_certificates(&folder.join("cert.pem"))?;
    let key =
        PrivateKeyDer::from_pem_slice(&read_secret(&folder.join("key.pem"))?).map_err(|error| tls(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| tls(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| tls(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Early data can be replayed by anyone who recorded it.
    config.max_early_data_size = 0;
    Ok(config)
}
