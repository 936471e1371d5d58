//! Accepts connections, and carries messages between them and the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_transport::identity::Role;
use rota_transport::message::{FromUser, ToAgent, ToHead};
use rota_transport::quic::{Admitted, CERTIFICATES_REPLACED, Channel, ChannelError, Joiner, Listener, Peer};
use tokio::sync::{mpsc, watch};

use crate::engine::{Input, failed};
use crate::joining::JoinDesk;
use crate::roles::RolesFile;

/// How many messages to one agent may be queued.
const MOST_WAITING: usize = 8_192;
/// How many answers to one user may be queued.
const MOST_ANSWERS: usize = 100_000;
/// A peer that sends nothing for this long after it connected is disconnected.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// Why connections are closed when somebody's certificate was revoked.
const REVOKED: &str = "certificates were revoked: connect again";
/// Why a connection is closed whose certificate has ended.
const EXPIRED: &str = "the certificate has expired";

/// Serves until the listener is closed.
pub(crate) async fn serve(
    listener: Arc<Listener>,
    mut roles: RolesFile,
    desk: Option<Arc<JoinDesk>>,
    engine: mpsc::Sender<Input>,
) {
    let links = Arc::new(AtomicU64::new(0));
    // What people are told when certificates were revoked or replaced.
    let (revocations, _) = watch::channel("");
    let mut look = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            arrival = listener.accept() => {
                let Some(arrival) = arrival else { return };
                let (engine, links, revoked) = (engine.clone(), Arc::clone(&links), revocations.subscribe());
                let desk = desk.clone();
                tokio::spawn(async move {
                    match arrival.admit_any().await {
                        Ok(Admitted::Known(peer)) => attend(peer, engine, &links, revoked).await,
                        Ok(Admitted::Joiner(joiner)) => issue(&joiner, desk.as_deref(), &engine).await,
                        Err(refusal) => tracing::warn!("refused {refusal}"),
                    }
                });
            }
            _ = look.tick() => {
                match listener.refresh() {
                    Ok(true) => {
                        let why = if listener.was_replaced() { CERTIFICATES_REPLACED } else { REVOKED };
                        tracing::info!("certificates and the list of revoked ones were read again");
                        revocations.send_replace(why);
                        let _ = engine.send(Input::CertificatesChanged { why }).await;
                    }
                    Ok(false) => {}
                    Err(error) => tracing::error!("certificates or the list of revoked ones cannot be read, the old ones stay in force: {error}"),
                }
                if let Some(found) = roles.refresh() {
                    let _ = engine.send(Input::RolesChanged(found)).await;
                }
            }
        }
    }
}

/// Somebody asks for a certificate.
async fn issue(joiner: &Joiner, desk: Option<&JoinDesk>, engine: &mpsc::Sender<Input>) {
    let Some(desk) = desk else {
        return joiner.close("this head issues no certificates: it was started without --pki");
    };
    desk.attend(joiner, engine).await;
}

/// Talks with a peer until it is gone or its certificate is no longer valid, to the second.
async fn attend(
    peer: Peer,
    engine: mpsc::Sender<Input>,
    links: &AtomicU64,
    revoked: watch::Receiver<&'static str>,
) {
    match peer.identity().role {
        Role::Agent => {
            let link = links.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                ended = attend_agent(&peer, link, &engine) => {
                    if let Err(error) = ended {
                        peer.close(&error.to_string());
                    }
                }
                () = peer.expired() => peer.close(EXPIRED),
            }
            let name = peer.identity().name.clone();
            let _ = engine.send(Input::AgentGone { name, link }).await;
        }
        Role::User => tokio::select! {
            () = attend_person(&peer, &engine, revoked) => {}
            () = peer.expired() => peer.close(EXPIRED),
        },
        Role::Head => peer.close("heads do not connect to each other"),
    }
}

/// Answers a person's requests, each on a stream of its own. When certificates are revoked, the person has to connect again
/// like everybody else, so that their certificate is checked again.
async fn attend_person(
    peer: &Peer,
    engine: &mpsc::Sender<Input>,
    mut revoked: watch::Receiver<&'static str>,
) {
    loop {
        let channel = tokio::select! {
            channel = peer.accept() => channel,
            _ = revoked.changed() => return peer.close(*revoked.borrow()),
        };
        let Ok(channel) = channel else { return };
        let (peer, engine) = (peer.clone(), engine.clone());
        tokio::spawn(async move {
            if let Err(error) = attend_user(&peer, channel, &engine).await {
                peer.close(&error.to_string());
            }
        });
    }
}

async fn attend_agent(peer: &Peer, link: u64, engine: &mpsc::Sender<Input>) -> Result<(), ChannelError> {
    let gone = |_| ChannelError::Closed { why: "it sent nothing".into() };
    let mut channel = tokio::time::timeout(FIRST_WORD, peer.accept()).await.map_err(gone)??;
    let name = peer.identity().name.clone();
    let first =
        tokio::time::timeout(FIRST_WORD, channel.receiver.receive::<ToHead>()).await.map_err(gone)??;
    let Some(first) = first else { return Ok(()) };
    channel.receiver.trust();
    let (sender, messages) = mpsc::channel::<ToAgent>(MOST_WAITING);
    let connected = Input::AgentConnected { name: name.clone(), link, sender, peer: peer.clone(), first };
    if engine.send(connected).await.is_err() {
        return Ok(());
    }
    let writing = tokio::spawn(write(channel.sender, messages, peer.clone()));
    let result = loop {
        match channel.receiver.receive::<ToHead>().await {
            Ok(Some(message)) => {
                let input = Input::FromAgent { name: name.clone(), link, message };
                if engine.send(input).await.is_err() {
                    break Ok(());
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    writing.abort();
    result
}

/// Sends until the engine drops its end, then closes the connection.
async fn write(mut sender: rota_transport::quic::Sender, mut messages: mpsc::Receiver<ToAgent>, peer: Peer) {
    while let Some(message) = messages.recv().await {
        if sender.send(&message).await.is_err() {
            return;
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(2), sender.finished()).await;
    peer.close("the head ended the conversation");
}

async fn attend_user(
    peer: &Peer,
    mut channel: Channel,
    engine: &mpsc::Sender<Input>,
) -> Result<(), ChannelError> {
    channel.receiver.trust();
    let Some(request) = channel.receiver.receive::<FromUser>().await? else { return Ok(()) };
    let (reply, mut answers) = mpsc::channel(MOST_ANSWERS);
    let (user, role) = (peer.identity().name.clone(), peer.user_role());
    let input = Input::User { user, role, request, reply };
    if engine.send(input).await.is_err() {
        channel.sender.send(&failed("the head is ending")).await?;
    }
    while let Some(answer) = answers.recv().await {
        channel.sender.send(&answer).await?;
    }
    channel.sender.finish();
    Ok(())
}
