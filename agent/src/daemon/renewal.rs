//! Keeps the agent's certificate valid: a new one is asked for when a third of its time is left, or when the head says that the
//! cluster's certificates were replaced. Files that an operator replaced are taken, too. None of it disturbs a job.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rota_transport::identity::{Credentials, Role, Validity};
use rota_transport::quic;
use time::OffsetDateTime;
use tokio::sync::mpsc;
use tracing::{info, warn};

/// How often files and clock are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The longest wait after a renewal that failed.
const MOST_WAIT: Duration = Duration::from_secs(600);

/// The files of the agent's identity, and who is told when they have changed.
pub(super) struct Renewal {
    pub(super) identity: PathBuf,
    pub(super) head: String,
    /// Told when there is a new certificate to connect with.
    pub(super) changed: mpsc::Sender<()>,
    /// Says that a new certificate is needed now.
    pub(super) wanted: mpsc::Receiver<()>,
}

impl Renewal {
    /// Runs as long as the agent does.
    pub(super) async fn keep(mut self) {
        let mut seen = None;
        let (mut is_wanted, mut wait, mut next, mut logged) = (false, LOOK, Instant::now(), String::new());
        loop {
            if let Ok(credentials) = Credentials::load_for(&self.identity, Role::Agent) {
                let written = Some(credentials.written_at());
                if seen.is_some() && seen != written {
                    info!("the files of this agent's identity have changed; connecting again with them");
                    let _ = self.changed.send(()).await;
                }
                seen = written;
                let is_due = credentials
                    .validity()
                    .is_some_and(|validity| is_due(&validity, OffsetDateTime::now_utc()));
                if (is_due || is_wanted) && Instant::now() >= next {
                    match quic::renew(&self.head, &credentials).await {
                        Ok(renewed) => {
                            info!("the certificate was renewed");
                            (is_wanted, wait, seen) = (false, LOOK, Some(renewed.written_at()));
                            let _ = self.changed.send(()).await;
                        }
                        Err(error) => {
                            let why = error.to_string();
                            if why != logged {
                                warn!(
                                    "this agent's certificate cannot be renewed, and is tried again: {why}"
                                );
                                logged = why;
                            }
                            wait = (wait * 2).min(MOST_WAIT);
                        }
                    }
                    next = Instant::now() + wait;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                Some(()) = self.wanted.recv() => {
                    (is_wanted, wait, next) = (true, LOOK, Instant::now());
                }
            }
        }
    }
}

/// Whether a third of the time from the issue on is left, or less.
fn is_due(validity: &Validity, now: OffsetDateTime) -> bool {
    let left_s = (validity.to - now).whole_seconds();
    left_s > 0 && left_s <= validity.length_s() / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_is_due_in_the_last_third_and_not_once_the_certificate_has_ended() {
        let validity = Validity::seconds(90);
        let left = |seconds: i64| is_due(&validity, validity.to - Duration::from_secs(seconds as u64));
        assert!([90, 60, 31].iter().all(|seconds| !left(*seconds)), "two thirds are used first");
        assert!([30, 29, 1].iter().all(|seconds| left(*seconds)));
        assert!(!left(0), "the head would not listen");
    }
}
