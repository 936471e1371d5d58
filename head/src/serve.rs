//! Accepts connections, and carries messages between them and the engine. While the head reads its journal there is no engine:
//! agents wait in the lobby, where their leases are renewed, and people are asked to wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_core::time::Time;
use rota_transport::identity::Role;
use rota_transport::message::{
    FromUser, InstanceId, Lineage, PROTOCOL_VERSION, ToAgent, ToHead, ToUser, WhichJobs,
};
use rota_transport::quic::{Admitted, CERTIFICATES_REPLACED, Channel, ChannelError, Joiner, Listener, Peer};
use rota_transport::session::{HeadOutput, HeadSession, SeenReports, Terms};
use rota_transport::value::{LongText, Name};
use tokio::sync::{mpsc, watch};

use crate::ancestry::{Ancestry, Kinship};
use crate::crowd::Crowd;
use crate::engine::Input;
use crate::joining::CertificateIssuer;
use crate::roles::RolesFile;

/// How many messages to one agent may be queued.
const MOST_WAITING: usize = 8_192;
/// How many messages of one agent may be queued for the engine.
const MOST_HEARD: usize = 64;
/// How many answers to one user may be queued.
const MOST_ANSWERS: usize = 100_000;
/// A peer that sends nothing for this long after it connected is disconnected.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// The most connections of one person.
const MOST_CONNECTIONS: usize = 64;
/// A request that has not arrived after this time is given up, and the connection with it.
const REQUEST_AT_MOST: Duration = Duration::from_secs(30);
/// How long a person waits for a head that reads its journal.
const LOBBY_PATIENCE: Duration = Duration::from_secs(20);
/// How many answers of a long one may be queued: the thread that reads them waits for the network.
const MOST_OF_STREAM: usize = 16;

/// What agents and people are told before there is an engine.
#[derive(Debug)]
pub(crate) struct Lobby {
    pub(crate) ancestry: Ancestry,
    /// The run directories from which agents were served.
    pub(crate) instances: BTreeMap<Name, InstanceId>,
    pub(crate) terms: Terms,
    /// Reports of agents that are in the journal.
    pub(crate) seen: BTreeMap<Name, SeenReports>,
    /// Whether the engine is there.
    pub(crate) is_ready: watch::Receiver<bool>,
}
/// Why connections are closed when somebody's certificate was revoked.
const REVOKED: &str = "certificates were revoked: connect again";
/// Why a connection is closed whose certificate has ended.
const EXPIRED: &str = "the certificate has expired";

/// Serves until the listener is closed.
pub(crate) async fn serve(
    listener: Arc<Listener>,
    mut roles: RolesFile,
    issuer: Option<Arc<CertificateIssuer>>,
    engine: mpsc::Sender<Input>,
    lobby: Arc<Lobby>,
) {
    let links = Arc::new(AtomicU64::new(0));
    let crowd = Arc::new(Crowd::new(MOST_CONNECTIONS));
    // What people are told when certificates were revoked or replaced.
    let (revocations, _) = watch::channel("");
    let mut look = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            arrival = listener.accept() => {
                let Some(arrival) = arrival else { return };
                let (engine, links, revoked) = (engine.clone(), Arc::clone(&links), revocations.subscribe());
                let (issuer, lobby, crowd) = (issuer.clone(), Arc::clone(&lobby), Arc::clone(&crowd));
                tokio::spawn(async move {
                    match arrival.admit_any().await {
                        Ok(Admitted::Known(peer)) => attend(peer, engine, &links, revoked, &lobby, &crowd).await,
                        Ok(Admitted::Joiner(joiner)) => issue(&joiner, issuer.as_deref(), &engine).await,
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
async fn issue(joiner: &Joiner, issuer: Option<&CertificateIssuer>, engine: &mpsc::Sender<Input>) {
    let Some(issuer) = issuer else {
        return joiner.close("this head issues no certificates: it was started without --pki");
    };
    issuer.attend(joiner, engine).await;
}

/// Talks with a peer until it is gone or its certificate is no longer valid, to the second.
async fn attend(
    peer: Peer,
    engine: mpsc::Sender<Input>,
    links: &AtomicU64,
    revoked: watch::Receiver<&'static str>,
    lobby: &Arc<Lobby>,
    crowd: &Arc<Crowd>,
) {
    match peer.identity().role {
        Role::Agent => {
            let link = links.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                ended = attend_agent(&peer, link, &engine, lobby) => {
                    if let Err(error) = ended {
                        peer.close(&error.to_string());
                    }
                }
                () = peer.expired() => peer.close(EXPIRED),
            }
            let name = peer.identity().name.clone();
            let _ = engine.send(Input::AgentGone { name, link }).await;
        }
        Role::User => {
            let Some(_permit) = crowd.enter(&peer.identity().name) else {
                let name = &peer.identity().name;
                tracing::warn!("{name} has {MOST_CONNECTIONS} connections, one more is refused");
                return peer.close(&format!("{name} has {MOST_CONNECTIONS} connections already"));
            };
            tokio::select! {
                () = attend_person(&peer, &engine, revoked, lobby) => {}
                () = peer.expired() => peer.close(EXPIRED),
            }
        }
        Role::Head => peer.close("heads do not connect to each other"),
    }
}

/// Answers a person's requests, each on a stream of its own. When certificates are revoked, the person has to connect again
/// like everybody else, so that their certificate is checked again.
async fn attend_person(
    peer: &Peer,
    engine: &mpsc::Sender<Input>,
    mut revoked: watch::Receiver<&'static str>,
    lobby: &Arc<Lobby>,
) {
    loop {
        let channel = tokio::select! {
            channel = peer.accept() => channel,
            _ = revoked.changed() => return peer.close(*revoked.borrow()),
        };
        let Ok(channel) = channel else { return };
        let (peer, engine, lobby) = (peer.clone(), engine.clone(), Arc::clone(lobby));
        tokio::spawn(async move {
            if let Err(error) = attend_user(&peer, channel, &engine, &lobby).await {
                peer.close(&error.to_string());
            }
        });
    }
}

async fn attend_agent(
    peer: &Peer,
    link: u64,
    engine: &mpsc::Sender<Input>,
    lobby: &Lobby,
) -> Result<(), ChannelError> {
    let gone = |_| ChannelError::Closed { why: "it sent nothing".into() };
    let mut channel = tokio::time::timeout(FIRST_WORD, peer.accept()).await.map_err(gone)??;
    let name = peer.identity().name.clone();
    let first =
        tokio::time::timeout(FIRST_WORD, channel.receiver.receive::<ToHead>()).await.map_err(gone)??;
    let Some(first) = first else { return Ok(()) };
    channel.receiver.trust();
    let (sender, messages) = mpsc::channel::<ToAgent>(MOST_WAITING);
    let (heard, mut hears) = mpsc::channel(MOST_HEARD);
    let reading = tokio::spawn(read(channel.receiver, heard));
    let writing = tokio::spawn(write(channel.sender, messages, peer.clone()));
    let result = async {
        let waited = lobby.wait(&name, &first, &mut hears, &sender).await?;
        let Waited::Ready { inventory } = waited else { return Ok(()) };
        let connected = Input::AgentConnected { name: name.clone(), link, sender, peer: peer.clone(), first };
        if engine.send(connected).await.is_err() {
            return Ok(());
        }
        if let Some(message) = inventory {
            let input = Input::FromAgent { name: name.clone(), link, message };
            if engine.send(input).await.is_err() {
                return Ok(());
            }
        }
        while let Some(message) = hears.recv().await {
            let input = Input::FromAgent { name: name.clone(), link, message: message? };
            if engine.send(input).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    };
    let result = result.await;
    reading.abort();
    writing.abort();
    result
}

/// Receives until the agent is gone.
async fn read(
    mut receiver: rota_transport::quic::Receiver,
    heard: mpsc::Sender<Result<ToHead, ChannelError>>,
) {
    loop {
        let message = match receiver.receive::<ToHead>().await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = message.is_err();
        if heard.send(message).await.is_err() || is_last {
            return;
        }
    }
}

/// How an agent's wait in the lobby ended.
enum Waited {
    /// There is an engine. With the greeting, the inventory is what it has to be told; all else is repeated by the agent, since
    /// nobody acknowledged it.
    Ready { inventory: Option<ToHead> },
    /// The agent has gone, or the head ends.
    Gone,
}

impl Lobby {
    /// Keeps an agent until there is an engine, and renews its lease meanwhile.
    async fn wait(
        &self,
        name: &Name,
        first: &ToHead,
        hears: &mut mpsc::Receiver<Result<ToHead, ChannelError>>,
        sender: &mpsc::Sender<ToAgent>,
    ) -> Result<Waited, ChannelError> {
        let mut is_ready = self.is_ready.clone();
        if *is_ready.borrow() {
            return Ok(Waited::Ready { inventory: None });
        }
        let mut session = self.session(name, first);
        let begun = std::time::Instant::now();
        let (mut message, mut inventory) = (first.clone(), None);
        loop {
            if let Some(session) = &mut session {
                let mut out = Vec::new();
                let now = Time(begun.elapsed().as_micros() as i64);
                let handled = session.handle(now, message, &mut out);
                for output in out {
                    if let HeadOutput::Send(answer) = output {
                        let _ = sender.send(answer).await;
                    }
                }
                if let Err(error) = handled {
                    return Err(ChannelError::Closed { why: error.to_string() });
                }
            }
            message = tokio::select! {
                next = hears.recv() => match next {
                    Some(next) => next?,
                    None => return Ok(Waited::Gone),
                },
                changed = is_ready.wait_for(|is_ready| *is_ready) => {
                    return Ok(if changed.is_ok() { Waited::Ready { inventory } } else { Waited::Gone });
                }
            };
            if matches!(message, ToHead::Inventory(_)) {
                inventory = Some(message.clone());
            }
        }
    }

    /// A session with an agent whose lease may be renewed before the journal is read: one that served this state, from the same
    /// run directory. About any other the engine decides, and until then it is not answered.
    fn session(&self, name: &Name, first: &ToHead) -> Option<HeadSession> {
        let ToHead::Hello(hello) = first else { return None };
        let is_own = hello.protocol == PROTOCOL_VERSION
            && hello.name == *name
            && matches!(self.ancestry.judge(hello), Ok(Kinship::Own))
            && self.instances.get(name).is_none_or(|known| *known == hello.instance);
        if !is_own {
            tracing::info!("{name} connected, and is answered when the journal has been read");
            return None;
        }
        tracing::info!("{name} connected; the journal is being read");
        let seen = self.seen.get(name).copied().unwrap_or_default();
        let mut session = HeadSession::new(name.clone(), self.ancestry.epoch(), self.terms, seen, None);
        session.set_state(self.ancestry.mark(), Lineage::NONE);
        session.connected();
        Some(session)
    }
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

fn failed(why: &str) -> ToUser {
    ToUser::Failed(LongText::cut(why))
}

async fn attend_user(
    peer: &Peer,
    mut channel: Channel,
    engine: &mpsc::Sender<Input>,
    lobby: &Lobby,
) -> Result<(), ChannelError> {
    channel.receiver.trust();
    let late = |_| ChannelError::Closed { why: "its request did not arrive in time".into() };
    let request = tokio::time::timeout(REQUEST_AT_MOST, channel.receiver.receive::<FromUser>()).await;
    let Some(request) = request.map_err(late)?? else { return Ok(()) };
    let mut is_ready = lobby.is_ready.clone();
    if tokio::time::timeout(LOBBY_PATIENCE, is_ready.wait_for(|is_ready| *is_ready)).await.is_err() {
        channel.sender.send(&failed("the head is still reading its journal: ask again later")).await?;
        channel.sender.finish();
        return Ok(());
    }
    let is_long = matches!(
        request,
        FromUser::Journal | FromUser::Events { .. } | FromUser::Jobs { which: WhichJobs::All }
    );
    let (reply, mut answers) = mpsc::channel(if is_long { MOST_OF_STREAM } else { MOST_ANSWERS });
    let (user, role) = (peer.identity().name.clone(), peer.user_role());
    let left = Some(peer.valid_for());
    let input = Input::User { user, role, left, request, reply };
    if engine.send(input).await.is_err() {
        channel.sender.send(&failed("the head is ending")).await?;
    }
    loop {
        // Nobody waits any more for what comes late.
        let answer = tokio::select! {
            answer = answers.recv() => answer,
            _ = peer.closed() => return Ok(()),
        };
        let Some(answer) = answer else { break };
        channel.sender.send(&answer.into_message()).await?;
    }
    channel.sender.finish();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rota_core::time::Span;
    use rota_transport::identity::{Authority, Credentials, Identity, Validity};
    use rota_transport::message::{BootId, Epoch, Inventory, StartId, StateMark};
    use rota_transport::quic::Connector;
    use rota_transport::session::{AgentIdentity, AgentMemory, AgentOutput, AgentSession};
    use rota_transport::value::Text;

    use super::*;

    fn credentials(authority: &Authority, role: Role, name: &str) -> Credentials {
        let identity = Identity { role, name: Name::new(name).expect("a name") };
        let issued = authority.issue(&identity, Validity::days(1)).expect("issued");
        Credentials::load_for(&issued.folder, role).expect("credentials")
    }

    #[test]
    fn an_agent_that_knows_a_later_state_or_has_another_run_directory_is_not_answered_before_the_engine() {
        let name = Name::new("node0").expect("a name");
        let (_, is_ready) = watch::channel(false);
        let lobby = Lobby {
            ancestry: Ancestry::of_test(),
            instances: [(name.clone(), InstanceId(1))].into(),
            terms: Terms::default(),
            seen: BTreeMap::new(),
            is_ready,
        };
        let own = Ancestry::of_test().mark();
        let hello = |instance: u64, mark: StateMark| {
            let identity = AgentIdentity {
                name: name.clone(),
                version: Text::cut("1"),
                address: Text::cut("here"),
                boot: BootId(1),
                instance: InstanceId(instance),
            };
            let memory = AgentMemory { epoch: Epoch(1), mark, ..AgentMemory::default() };
            let mut out = Vec::new();
            AgentSession::new(identity, memory).connected(Time::ZERO, &mut out);
            match out.pop() {
                Some(AgentOutput::Send(message)) => message,
                other => panic!("{other:?}"),
            }
        };
        let is_answered = |message: ToHead| lobby.session(&name, &message).is_some();
        assert!(is_answered(hello(1, own)));
        assert!(!is_answered(hello(2, own)), "another run directory");
        assert!(!is_answered(hello(1, StateMark { start: StartId(2), ..own })), "a later start");
        assert!(!is_answered(hello(1, StateMark { lineage: Lineage(9), ..own })), "another lineage");
        assert!(!is_answered(ToHead::Inventory(Inventory::default())), "no greeting");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn leases_are_renewed_while_the_journal_is_read_and_the_engine_is_told_what_was_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::create(folder.path(), Validity::days(1)).expect("an authority");
        let head = credentials(&authority, Role::Head, "head");
        let agent = credentials(&authority, Role::Agent, "node0");
        let listener = Arc::new(Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), head).expect("listens"));
        let address = listener.address().expect("an address");
        let (engine, mut inputs) = mpsc::channel(99);
        let (ready, is_ready) = watch::channel(false);
        let terms = Terms { heartbeat: Span(100_000), ..Terms::default() };
        let (ancestry, instances) = (Ancestry::of_test(), BTreeMap::new());
        let lobby = Lobby { ancestry, instances, terms, seen: BTreeMap::new(), is_ready };
        let (roles, _) = RolesFile::open(None).expect("no file");
        tokio::spawn(serve(Arc::clone(&listener), roles, None, engine, Arc::new(lobby)));
        let connector = Connector::new(&agent).expect("a connector");
        let peer = connector.connect_to(address).await.expect("connected");
        let mut channel = peer.open().await.expect("a stream");
        let identity = AgentIdentity {
            name: Name::new("node0").expect("a name"),
            version: Text::cut("1"),
            address: Text::cut("here"),
            boot: BootId(1),
            instance: InstanceId(1),
        };
        let mut session = AgentSession::new(identity, AgentMemory::default());
        let (begun, mut out, mut n_renewed) = (std::time::Instant::now(), Vec::new(), 0);
        let now = || Time(begun.elapsed().as_micros() as i64);
        session.connected(now(), &mut out);
        while n_renewed < 3 {
            for output in std::mem::take(&mut out) {
                match output {
                    AgentOutput::Send(message) => channel.sender.send(&message).await.expect("sent"),
                    AgentOutput::Welcomed(welcome) => {
                        assert_eq!((welcome.epoch, welcome.mark), (Epoch(1), Ancestry::of_test().mark()));
                        session.inventory(Inventory::default(), &mut out);
                    }
                    other => panic!("{other:?}"),
                }
            }
            let wait = Duration::from_millis(10);
            match tokio::time::timeout(wait, channel.receiver.receive::<ToAgent>()).await {
                Ok(message) => {
                    let message = message.expect("open").expect("a message");
                    n_renewed += u32::from(matches!(message, ToAgent::Renew { .. }));
                    session.handle(now(), message, &mut out).expect("in turn");
                }
                Err(_) => session.tick(now(), &mut out),
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no answer: renewed {n_renewed} times");
        }
        assert!(session.lease_until().is_some() && inputs.try_recv().is_err(), "there is no engine yet");
        ready.send(true).expect("somebody waits");
        let mut told = Vec::new();
        for _ in 0..2 {
            let patience = Duration::from_secs(60);
            told.push(tokio::time::timeout(patience, inputs.recv()).await.expect("in time").expect("open"));
        }
        assert!(
            matches!(&told[0], Input::AgentConnected { name, first: ToHead::Hello(_), .. } if name.as_str() == "node0"),
            "{told:?}"
        );
        assert!(matches!(&told[1], Input::FromAgent { message: ToHead::Inventory(_), .. }), "{told:?}");
    }
}
