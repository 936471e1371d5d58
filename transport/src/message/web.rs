//! Signing in to the head's page, and when jobs are expected to start.

use rota_core::ids::JobId;
use rota_core::time::Time;
use serde::{Deserialize, Serialize};

use crate::value::Text;

/// How a person or a program wants to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignInBy {
    /// A link that works once.
    Link,
    /// A token that a program sends with its requests.
    Token,
}

/// Where the page is, and the secret that opens it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// Whether it is served over TLS.
    pub is_tls: bool,
    /// The name or address to open, as the head's operator gave it; empty for the one at which the head was asked.
    pub host: Text,
    /// Its port.
    pub port: u16,
    /// What opens it: the end of a link that works once, or a token.
    pub secret: Text,
    /// For how many seconds it is good.
    pub valid_s: u64,
}

/// When a job is expected to start, by the head's forecast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedStart {
    /// The job.
    pub job: JobId,
    /// As often earlier as later.
    pub median: Time,
    /// Seldom earlier.
    pub low: Time,
    /// Seldom later; none if it may be beyond the forecast's end.
    pub high: Option<Time>,
}
