//! The policy laboratory in the browser: a page on this machine that runs a policy while it is edited.
//!
//! ```text
//! browser ─ text of the policy, choices ─▶ api ─▶ session ─▶ diagnose ─▶ run (once for each policy and seed)
//!         ◀──── lines of JSON ──── answer ◀──────────────────────────────┘
//! ```
//!
//! | file | what lives there |
//! |---|---|
//! | `access` | who may ask: token, cookie, host and origin; what a page may load |
//! | `assets` | the page itself, built from `web/` |
//! | `bench` | what is run on what: the trait behind which the command line resolves inputs |
//! | `parts` | the texts of a policy: shipped ones by name, files that were named at the start |
//! | `diagnose` | what is wrong with a text, at its line |
//! | `run` | one run that can be cancelled, and the results kept for the next key press |
//! | `answer` | results as the page draws them: table, figures, comparisons over seeds |
//! | `timeline` | who ran where, as numbers for a canvas |
//! | `explain` | why a job fared as it did, and where two runs part |
//! | `rounds` | one decision: the queue with its keys, who got what, and what the others lacked |
//! | `refusal` | why a question has no answer |
//! | `take` | what is shown as files to keep: report page, result folder |
//! | `session`, `api` | what requests share; one function for each request |
//!
//! Nothing that the browser sends is executed except scripts, in their sandbox, and no file is read or written but those that
//! were named on the command line.

mod access;
mod answer;
mod api;
mod assets;
mod bench;
mod diagnose;
mod explain;
mod kept;
mod parts;
mod refusal;
mod rounds;
mod run;
mod session;
mod take;
mod timeline;

use std::net::{Ipv4Addr, SocketAddr};

pub use assets::page;
pub use bench::{Bench, Choices, Menus, Prepared, Upload};
pub use refusal::Unresolved;
use session::Session;

/// What the laboratory begins with.
pub struct Play {
    /// The policy in the editor, by its name.
    pub policy: String,
    /// What it is compared with.
    pub against: Vec<String>,
    /// What runs are made of.
    pub bench: Box<dyn Bench>,
    /// Port to listen on; 0 for any that is free.
    pub port: u16,
}

/// A laboratory that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A policy that cannot be read.
    #[error(transparent)]
    Policy(#[from] rota_scripts::LoadError),
    /// The port is taken, or there is no loopback.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port that was asked for.
        port: u16,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// The page cannot be served any more.
    #[error("cannot serve: {0}")]
    Serve(#[source] std::io::Error),
}

/// Serves the page on 127.0.0.1 until the process is stopped; `announce` is told its address, which works once.
pub fn serve(play: Play, announce: impl FnOnce(&str)) -> Result<(), PlayError> {
    let session = Session::open(play.policy, play.against, play.bench)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_io()
        .enable_time()
        .build()
        .map_err(PlayError::Serve)?;
    runtime.block_on(async {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, play.port));
        let refused = |source| PlayError::Listen { port: play.port, source };
        let listener = tokio::net::TcpListener::bind(wanted).await.map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let access = access::Access::new(port);
        announce(&access.address());
        axum::serve(listener, api::router(session, access)).await.map_err(PlayError::Serve)
    })
}
