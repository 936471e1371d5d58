//! How a head runs, as its options say.

use std::net::SocketAddr;
use std::path::PathBuf;

use rota_core::time::Span;
use rota_transport::session::Terms;

use crate::rules::Rules;
use crate::store::images::KeepJournal;
use crate::web::WebSettings;

/// What a person who does not operate the cluster may ask for at most, so that no one uses it up for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonLimits {
    /// Jobs that have not ended; operators may have more.
    pub jobs: usize,
    /// The time that a job gets to end when it is told to stop; nobody's jobs get more.
    pub grace: Span,
}

impl Default for PersonLimits {
    fn default() -> Self {
        PersonLimits { jobs: 20_000, grace: Span::from_secs(3_600) }
    }
}

/// What `rota head` gives a head; the rules in it are also written to the journal.
#[derive(Clone, Debug)]
pub struct HeadSettings {
    /// Address and port of its UDP socket.
    pub listen: SocketAddr,
    /// Its state directory; made if it is not there.
    pub state: PathBuf,
    /// The folder with its key and certificate.
    pub credentials: PathBuf,
    /// A file that adds to or narrows what people's certificates say.
    pub roles: Option<PathBuf>,
    /// Folder of the authority, if the head issues certificates to holders of tokens and of certificates that end soon.
    pub pki: Option<PathBuf>,
    /// The folder of scripts that people may choose by name.
    pub policies: Option<PathBuf>,
    /// The most memory that a process may use in which a policy decides.
    pub policy_memory_bytes: u64,
    /// The policy of a new state directory, or a change of it: name and parameters.
    pub policy: Option<(String, Vec<(String, String)>)>,
    /// What decisions depend on; written to the journal at every start.
    pub rules: Rules,
    /// The least real time between the beginnings of two rounds.
    pub least_gap: Span,
    /// Agents that must be there before the first round.
    pub wait_for: usize,
    /// Lease and heartbeat that it gives its agents.
    pub terms: Terms,
    /// What one person may ask for at most.
    pub limits: PersonLimits,
    /// Whether an operator accepts that the state was restored from an older copy, or is another one than agents know.
    pub accepts_restore: bool,
    /// Whether checkpoints are copied to the node that a job moves to.
    pub copies_checkpoints: bool,
    /// How much of the journal is kept.
    pub keep: KeepJournal,
    /// How the page is served, if it is.
    pub web: Option<WebSettings>,
}
