//! How a party gets its certificate: one request and one answer, on a connection of their own.

use serde::{Deserialize, Serialize};

use crate::identity::KeyRequest;
use crate::value::{LongText, Text};

/// What is asked at the head's door for those without a certificate, or with one that ends soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromJoiner {
    /// The first certificate of a party that holds a one-time token.
    Join {
        /// The token's secret.
        secret: [u8; 16],
        /// The key, and the proof that the sender holds it.
        request: KeyRequest,
    },
    /// A new certificate in the place of the one that the connection was made with.
    Renew {
        /// The key, and the proof that the sender holds it.
        request: KeyRequest,
    },
}

/// What the head answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToJoiner {
    /// The certificate, and whom to trust from now on.
    Issued {
        /// The certificate as PEM.
        certificate: LongText,
        /// The authorities' certificates as PEM.
        authority: LongText,
    },
    /// No certificate, and why.
    Refused(Text),
}
