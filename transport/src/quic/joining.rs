//! Getting a certificate from the head: the first one with a one-time token, and later ones with the one before.

use std::path::Path;
use std::time::Duration;

use super::{ChannelError, ConnectError, Connector};
use crate::identity::{Credentials, IdentityError, JoinToken, NewKey};
use crate::message::{FromJoiner, ToJoiner};

/// How long the head may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// No certificate was issued, or it could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The head cannot be reached, or is not the one of the token.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The conversation ended early.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Files that cannot be read or written.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The head said no.
    #[error("the head issues no certificate: {0}")]
    Refused(String),
    /// The head said nothing.
    #[error("the head at {0} does not answer")]
    NoAnswer(String),
}

/// Gets the first certificate with a one-time token, and fills a folder. The key is drawn here and stays here.
pub async fn join(head: &str, token: &JoinToken, folder: &Path) -> Result<Credentials, JoinError> {
    let key = NewKey::draw()?;
    let ask = FromJoiner::Join { secret: token.secret(), request: key.request()? };
    let (certificate, authority) = exchange(Connector::to_join(token.fingerprint())?, head, &ask).await?;
    Ok(key.store(folder, &certificate, &authority)?)
}

/// Gets a new certificate for the same key in the place of one that is still valid, and replaces it on the disk.
pub async fn renew(head: &str, credentials: &Credentials) -> Result<Credentials, JoinError> {
    let ask = FromJoiner::Renew { request: credentials.request()? };
    let (certificate, authority) = exchange(Connector::to_renew(credentials)?, head, &ask).await?;
    credentials.replace(&certificate, &authority)?;
    Ok(credentials.reload()?)
}

async fn exchange(connector: Connector, head: &str, ask: &FromJoiner) -> Result<(String, String), JoinError> {
    let talk = async {
        let peer = connector.connect(head).await?;
        let mut channel = peer.open().await?;
        channel.sender.send(ask).await?;
        channel.sender.finish();
        channel.receiver.trust();
        let answer = channel.receiver.receive::<ToJoiner>().await?;
        peer.close("done");
        // The head waits for this.
        let _ = tokio::time::timeout(Duration::from_secs(1), connector.closed()).await;
        Ok::<_, JoinError>(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, talk).await;
    match answer.map_err(|_| JoinError::NoAnswer(head.to_owned()))?? {
        Some(ToJoiner::Issued { certificate, authority }) => {
            Ok((certificate.to_string(), authority.to_string()))
        }
        Some(ToJoiner::Refused(why)) => Err(JoinError::Refused(why.to_string())),
        None => Err(JoinError::NoAnswer(head.to_owned())),
    }
}
