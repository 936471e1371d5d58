//! The head's door for browsers and programs: a page, REST, a stream of changes, metrics.
//!
//! ```text
//! browser, program ─▶ door (TCP, TLS) ─▶ guard (who, from where, how often) ─▶ api ─▶ ask ─▶ engine
//! viewers ◀─────────────────────────────────────── stream ◀─ board ◀─ what has changed ◀─┘
//! ```
//!
//! | file | what lives there |
//! |---|---|
//! | `door` | where connections are accepted; TLS by the cluster's authority |
//! | `sessions` | links that work once, browsers that are signed in, tokens of programs |
//! | `guard` | whether a request may go on; what a page may load; limits |
//! | `ask` | requests to the engine: those of the wire, and looks |
//! | `shapes` | what goes out and comes in, as JSON |
//! | `api` | one function for each request; the OpenAPI document is made from them |
//! | `stream` | server-sent events |
//! | `metrics` | figures for Prometheus |
//! | `error` | what a request that is not carried out is answered with |
//!
//! Nothing here decides who may what: requests go to the engine as people's requests over QUIC do, and are judged there by the
//! same rules.

mod api;
mod ask;
mod door;
mod error;
mod guard;
mod metrics;
mod sessions;
pub(crate) mod shapes;
mod stream;

pub(crate) use sessions::{Sessions, Whereabouts};

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::{mpsc, watch};

use crate::engine::Input;
use crate::engine::sights::{Changes, Watch};
use ask::Asking;
use door::Listening;
pub use door::WebError;
use guard::Limits;
use stream::Hub;

/// A file of the page: its content type and its bytes.
pub type PageFile = (&'static str, Cow<'static, [u8]>);

/// How the page is served.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Address and port of its TCP socket.
    pub address: SocketAddr,
    /// The folder with its certificate and key; none serves without TLS, on loopback only.
    pub credentials: Option<PathBuf>,
    /// The name that people open; empty for the address at which they reach the head.
    pub host: String,
    /// A file with a token that lets its holder read the metrics, and nothing else.
    pub metrics_token: Option<PathBuf>,
    /// The files of the page, by their paths.
    pub page: fn(&str) -> Option<PageFile>,
}

/// A door that listens and does not answer yet.
pub(crate) struct Web {
    listening: Listening,
    sessions: Arc<Sessions>,
    settings: WebSettings,
    metrics_token: Option<String>,
    n_viewers: Arc<AtomicUsize>,
    changes: mpsc::Receiver<Changes>,
}

/// What requests share.
pub(crate) struct Shared {
    asking: Asking,
    sessions: Arc<Sessions>,
    limits: Limits,
    hub: Hub,
    is_tls: bool,
    port: u16,
    metrics_token: Option<String>,
    page: fn(&str) -> Option<PageFile>,
}

impl Web {
    /// Listens. Needs a tokio runtime.
    pub(crate) fn open(settings: &WebSettings) -> Result<(Self, Watch), WebError> {
        let listening = Listening::bind(settings.address, settings.credentials.as_deref())?;
        let metrics_token = settings.metrics_token.as_deref().map(door::read_token).transpose()?;
        let whereabouts = Whereabouts {
            is_tls: listening.is_tls(),
            host: settings.host.clone(),
            port: listening.address().port(),
        };
        let (out, changes) = mpsc::channel(2);
        let n_viewers = Arc::new(AtomicUsize::new(0));
        let watch = Watch::new(out, Arc::clone(&n_viewers));
        let sessions = Arc::new(Sessions::new(whereabouts));
        let settings = settings.clone();
        Ok((Web { listening, sessions, settings, metrics_token, n_viewers, changes }, watch))
    }

    /// Who is signed in.
    pub(crate) fn sessions(&self) -> Arc<Sessions> {
        Arc::clone(&self.sessions)
    }

    /// Answers until the head ends.
    pub(crate) async fn serve(self, inputs: mpsc::Sender<Input>, is_ready: watch::Receiver<bool>) {
        let address = self.listening.address();
        let scheme = if self.listening.is_tls() { "https" } else { "http" };
        tracing::info!("the page is at {scheme}://{address}; `rota web login` signs in");
        let hub = Hub::start(self.changes, self.n_viewers, Arc::clone(&self.sessions));
        let shared = Arc::new(Shared {
            asking: Asking::new(inputs, is_ready),
            sessions: self.sessions,
            limits: Limits::default(),
            hub,
            is_tls: self.listening.is_tls(),
            port: address.port(),
            metrics_token: self.metrics_token,
            page: self.settings.page,
        });
        self.listening.serve(api::router(shared)).await;
    }
}
