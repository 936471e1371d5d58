//! Where parties get certificates: the first one with a one-time token, later ones with the one before. What is
//! issued is the business of `rota_transport::identity`; here are the conversation, the journal's sentence about it, and the
//! limit on guessing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rota_transport::identity::{Authority, IdentityError, JoinFault, Signed};
use rota_transport::message::{FromJoiner, ToJoiner};
use rota_transport::quic::{ChannelError, Joiner};
use rota_transport::value::{LongText, Text};
use tokio::sync::mpsc;

use crate::engine::Input;

/// A peer that says nothing for this long is sent away.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time in which refused requests are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// An address with this many refused requests in that time is not listened to for the rest of it.
const MOST_OF_ADDRESS: u32 = 5;
/// The same for all addresses together: whoever has many of them does not guess faster.
const MOST_OF_ALL: u32 = 60;

/// A request for a certificate that is refused.
#[derive(Debug, thiserror::Error)]
enum JoinRefusal {
    #[error(transparent)]
    Fault(#[from] JoinFault),
    #[error("only somebody with a certificate can renew it")]
    NoCertificate,
}

/// Issues certificates in the name of the authority in a folder.
pub(crate) struct CertificateIssuer {
    folder: PathBuf,
    faults: Mutex<Faults>,
}

impl CertificateIssuer {
    /// The authority is opened for each request: it may be replaced while the head runs.
    pub(crate) fn new(folder: PathBuf) -> Result<Self, IdentityError> {
        Authority::open(&folder)?;
        Ok(CertificateIssuer { folder, faults: Mutex::new(Faults::new(Instant::now())) })
    }

    /// Answers one request; what an operator should know of it goes to the journal.
    pub(crate) async fn attend(&self, joiner: &Joiner, engine: &mpsc::Sender<Input>) {
        let address = joiner.address().ip();
        let is_open = self.faults.lock().is_ok_and(|mut faults| faults.is_open(address, Instant::now()));
        if !is_open {
            return joiner.close("too many refused requests for certificates: wait a minute");
        }
        if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, self.talk(joiner, engine)).await {
            tracing::warn!("a request for a certificate from {address} failed: {error}");
        }
        joiner.close("done");
    }

    async fn talk(&self, joiner: &Joiner, engine: &mpsc::Sender<Input>) -> Result<(), ChannelError> {
        let address = joiner.address().ip();
        let mut channel = joiner.accept().await?;
        let Some(asked) = channel.receiver.receive::<FromJoiner>().await? else { return Ok(()) };
        let is_renewal = matches!(asked, FromJoiner::Renew { .. });
        let (folder, holder) = (self.folder.clone(), joiner.holder().cloned());
        let issue = move || -> Result<Result<Signed, JoinRefusal>, IdentityError> {
            let authority = Authority::open(&folder)?;
            let answer = match (asked, holder) {
                (FromJoiner::Join { secret, request }, _) => authority.join(&secret, &request)?,
                (FromJoiner::Renew { request }, Some((identity, role, length_s))) => {
                    authority.renew(&identity, role, length_s, &request)?
                }
                (FromJoiner::Renew { .. }, None) => {
                    return Ok(Err(JoinRefusal::NoCertificate));
                }
            };
            Ok(answer.map_err(JoinRefusal::from))
        };
        let issued = tokio::task::spawn_blocking(issue).await;
        let (answer, note) = match issued {
            Ok(Ok(Ok(signed))) => {
                let what =
                    if is_renewal { "renewed its certificate" } else { "joined with a one-time token" };
                let note = format!("{} at {address} {what}", signed.identity);
                let texts = LongText::new(signed.certificate).and_then(|certificate| {
                    Ok(ToJoiner::Issued { certificate, authority: LongText::new(signed.authority)? })
                });
                (texts.unwrap_or_else(|error| refused(&error.to_string())), note)
            }
            Ok(Ok(Err(why))) => {
                self.count(address);
                (
                    refused(&why.to_string()),
                    format!("a request for a certificate from {address} was refused: {why}"),
                )
            }
            // What is wrong with the head's own files is not for strangers.
            Ok(Err(error)) => {
                tracing::error!("no certificate can be issued: {error}");
                let answer =
                    refused("the authority cannot be used; its operator finds the reason in the head's log");
                (answer, format!("no certificate could be issued to {address}: {error}"))
            }
            Err(_) => (refused("the head is ending"), "a request for a certificate was lost".to_owned()),
        };
        tracing::info!("{note}");
        // Before the answer: whoever has a certificate is in the journal, whatever becomes of the connection.
        let _ = engine.send(Input::Noted(note)).await;
        channel.sender.send(&answer).await?;
        channel.sender.finished().await;
        Ok(())
    }

    fn count(&self, address: IpAddr) {
        if let Ok(mut faults) = self.faults.lock() {
            faults.count(address);
        }
    }
}

fn refused(why: &str) -> ToJoiner {
    ToJoiner::Refused(Text::cut(why))
}

/// Refused requests since the window began.
struct Faults {
    since: Instant,
    by_address: BTreeMap<IpAddr, u32>,
    n_all: u32,
}

impl Faults {
    fn new(now: Instant) -> Self {
        Faults { since: now, by_address: BTreeMap::new(), n_all: 0 }
    }

    fn is_open(&mut self, address: IpAddr, now: Instant) -> bool {
        if now.duration_since(self.since) >= WINDOW {
            *self = Faults::new(now);
        }
        let n_own = self.by_address.get(&address).copied().unwrap_or(0);
        n_own < MOST_OF_ADDRESS && self.n_all < MOST_OF_ALL
    }

    /// No more addresses are kept than requests are counted.
    fn count(&mut self, address: IpAddr) {
        *self.by_address.entry(address).or_default() += 1;
        self.n_all += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_is_slowed_down_for_one_address_and_for_many() {
        let start = Instant::now();
        let mut faults = Faults::new(start);
        let address = |n: u8| IpAddr::from([10, 0, 0, n]);
        for _ in 0..MOST_OF_ADDRESS {
            assert!(faults.is_open(address(1), start));
            faults.count(address(1));
        }
        assert!(!faults.is_open(address(1), start) && faults.is_open(address(2), start));
        for n in 0..MOST_OF_ALL {
            faults.count(address((n % 200) as u8));
        }
        assert!(!faults.is_open(address(250), start));
        assert!(faults.is_open(address(1), start + WINDOW));
    }
}
