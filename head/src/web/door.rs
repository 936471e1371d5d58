//! Where connections are accepted: TCP, on other addresses than loopback with TLS; each connection in a task of its own.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rota_transport::https::{HttpsAcceptor, HttpsError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time.
const MOST_CONNECTIONS: usize = 1_024;
/// How long a handshake, and the head of a request, may take.
const FIRST_WORD: Duration = Duration::from_secs(15);
/// After the system refused a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest file with a token.
const MOST_TOKEN_BYTES: u64 = 4_096;

/// A page that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The socket cannot be bound.
    #[error("--web {address}: {error}")]
    Bind {
        /// The address that was configured.
        address: SocketAddr,
        /// What the operating system said.
        error: io::Error,
    },
    /// Everybody on the way would read along.
    #[error(
        "--web {address}: addresses other than loopback are served with TLS only: run `rota pki web --name HOST`, and start the head with --web-credentials DIR"
    )]
    NeedsTls {
        /// The address that was configured.
        address: SocketAddr,
    },
    /// Its certificate or key cannot be used.
    #[error("--web-credentials: {0}")]
    Credentials(#[from] HttpsError),
    /// The file with the token for metrics.
    #[error("--metrics-token {}: {why}", path.display())]
    Token {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// A socket that listens.
pub(crate) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<HttpsAcceptor>>,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

impl Listening {
    /// Binds the socket. Needs a tokio runtime.
    pub(crate) fn bind(address: SocketAddr, credentials: Option<&Path>) -> Result<Self, WebError> {
        if credentials.is_none() && !address.ip().is_loopback() {
            return Err(WebError::NeedsTls { address });
        }
        let tls = credentials.map(HttpsAcceptor::load).transpose()?.map(Arc::new);
        let failed = |error| WebError::Bind { address, error };
        let socket = std::net::TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(socket).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listening { listener, address, tls })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Accepts connections for ever.
    pub(crate) async fn serve(self, router: Router) {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            // With all of them taken, new ones wait in the system's queue.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (stream, peer) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!("a connection to the page was not accepted: {error}");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let (router, tls) = (router.clone(), self.tls.clone());
            tokio::spawn(async move {
                let _permit = permit;
                match tls {
                    None => converse(stream, peer, router).await,
                    Some(tls) => match tokio::time::timeout(FIRST_WORD, tls.accept(stream)).await {
                        Ok(Ok(stream)) => converse(stream, peer, router).await,
                        Ok(Err(error)) => tracing::debug!("{peer}: {error}"),
                        Err(_) => tracing::debug!("{peer}: no handshake in time"),
                    },
                }
            });
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    router: Router,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(peer));
        router.call(request)
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(FIRST_WORD)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = conversation.await {
        tracing::debug!("{peer}: {error}");
    }
}

/// The token in a file that only its owner and group may read.
pub(crate) fn read_token(path: &Path) -> Result<String, WebError> {
    use std::os::unix::fs::PermissionsExt as _;
    let wrong = |why: String| WebError::Token { path: path.to_owned(), why };
    let meta = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(wrong(format!("mode {mode:03o} lets others read it; run `chmod o-rwx`")));
    }
    if meta.len() > MOST_TOKEN_BYTES {
        return Err(wrong(format!("{} bytes: at most {MOST_TOKEN_BYTES} are read", meta.len())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let token = text.trim().to_owned();
    if token.len() < 16 {
        return Err(wrong(
            "a token has at least 16 characters, such as those of `openssl rand -hex 32`".into(),
        ));
    }
    Ok(token)
}
