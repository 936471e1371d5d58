//! Real QUIC on loopback: who is let in, who is not, and what becomes of bad frames.

mod nameless;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rota_transport::frame::FrameError;
use rota_transport::identity::{Authority, Credentials, Identity, IdentityError, Role, Validity};
use rota_transport::message::{Beat, FromUser, Heartbeat, OrderId, ToHead};
use rota_transport::quic::{AGENTS_DOMAIN, ChannelError, Connector, Listener, Peer, Refusal, USERS_DOMAIN};
use rota_transport::value::Name;
use tempfile::TempDir;
use time::OffsetDateTime;

const PATIENCE: Duration = Duration::from_secs(30);

struct Cluster {
    folder: TempDir,
    authority: Authority,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::create(folder.path(), Validity::days(10)).expect("an authority");
        authority.issue(&who(Role::Head, "head"), Validity::days(10)).expect("issued");
        Cluster { folder, authority }
    }

    fn issue(&self, role: Role, name: &str, validity: Validity) -> PathBuf {
        self.authority.issue(&who(role, name), validity).expect("issued").folder
    }

    fn agent(&self) -> Credentials {
        load(&self.issue(Role::Agent, "node0", Validity::days(1)))
    }

    fn listen(&self) -> (Arc<Listener>, SocketAddr) {
        let listener = Listener::bind(loopback(), load(&self.folder.path().join("head"))).expect("listens");
        let address = listener.address().expect("an address");
        (Arc::new(listener), address)
    }
}

fn a_day() -> Validity {
    Validity::days(1)
}

fn who(role: Role, name: &str) -> Identity {
    Identity { role, name: Name::new(name).expect("a name") }
}

fn load(folder: &Path) -> Credentials {
    Credentials::load(folder).expect("credentials")
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Knocks once; what the head makes of it. The guest says something at once, to show that it is not listened to.
async fn knock(
    listener: &Arc<Listener>,
    address: SocketAddr,
    connector: &Connector,
) -> Result<Peer, Refusal> {
    let guest = async {
        let Ok(peer) = connector.connect_to(address).await else { return };
        if let Ok(mut channel) = peer.open().await {
            let _ = channel.sender.send(&ToHead::Heartbeat(beat())).await;
            let _ = channel.receiver.receive::<ToHead>().await;
        }
    };
    let host = async {
        let arrival = listener.accept().await.expect("open");
        arrival.admit().await
    };
    let race = async {
        tokio::select! {
            biased;
            result = host => result,
            () = async { guest.await; std::future::pending::<()>().await } => unreachable!("the host answers"),
        }
    };
    tokio::time::timeout(PATIENCE, race).await.expect("an answer in time")
}

fn beat() -> Heartbeat {
    Heartbeat { beat: Beat(1), next_order: OrderId(1), n_unacknowledged: 0 }
}

fn assert_refused(result: Result<Peer, Refusal>, word: &str) {
    let refusal = result.expect_err("must not be let in").to_string();
    assert!(refusal.to_lowercase().contains(word), "{refusal}");
}

#[tokio::test]
async fn an_agent_of_the_authority_is_let_in_under_its_name() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let connector = Connector::new(&cluster.agent()).expect("connector");
    let peer = knock(&listener, address, &connector).await.expect("let in");
    assert_eq!(peer.identity(), &who(Role::Agent, "node0"));
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let (listener, address) = Cluster::new().listen();
    let stranger = Cluster::new();
    // It trusts the head, so that it is the head that refuses.
    let ours = Cluster::new();
    let (listener_of_ours, address_of_ours) = ours.listen();
    let folder = stranger.issue(Role::Agent, "node0", Validity::days(1));
    std::fs::copy(ours.folder.path().join("ca.pem"), folder.join("ca.pem")).expect("copied");
    let connector = Connector::new(&load(&folder)).expect("connector");
    assert_refused(knock(&listener_of_ours, address_of_ours, &connector).await, "certificate");
    // And a head of another authority is refused by the agent.
    let agent = Connector::new(&ours.agent()).expect("connector");
    let knocking = tokio::spawn(async move { listener.accept().await.expect("open").admit().await.is_err() });
    let error = agent.connect_to(address).await.expect_err("refused");
    assert!(error.to_string().contains("same authority"), "{error}");
    assert!(knocking.await.expect("joined"));
}

#[tokio::test]
async fn expired_and_future_certificates_are_refused() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let now = OffsetDateTime::now_utc();
    let day = time::Duration::days(1);
    for validity in
        [Validity { from: now - 2 * day, to: now - day }, Validity { from: now + day, to: now + 2 * day }]
    {
        let folder = cluster.issue(Role::Agent, "node0", validity);
        let connector = Connector::new(&load(&folder)).expect("connector");
        assert_refused(knock(&listener, address, &connector).await, "certificate");
    }
}

#[tokio::test]
async fn a_revoked_certificate_is_refused_without_a_restart() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let connector = Connector::new(&cluster.agent()).expect("connector");
    let other =
        Connector::new(&load(&cluster.issue(Role::Agent, "node1", Validity::days(1)))).expect("other");
    knock(&listener, address, &connector).await.expect("let in before");
    assert!(!listener.refresh().expect("nothing changed"));
    assert_eq!(cluster.authority.revoke(&who(Role::Agent, "node0")).expect("revoked"), 1);
    assert!(listener.refresh().expect("read again"));
    assert_refused(knock(&listener, address, &connector).await, "revoked");
    knock(&listener, address, &other).await.expect("the other is let in");
}

#[tokio::test]
async fn agents_and_users_cannot_act_for_each_other() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let user = load(&cluster.issue(Role::User, "ada", Validity::days(1)));
    for (credentials, wrong_door) in [(cluster.agent(), USERS_DOMAIN), (user, AGENTS_DOMAIN)] {
        let connector = Connector::for_door(&credentials, wrong_door).expect("connector");
        assert_refused(knock(&listener, address, &connector).await, "is not accepted");
        let connector = Connector::new(&credentials).expect("connector");
        knock(&listener, address, &connector).await.expect("let in at the right door");
    }
}

#[tokio::test]
async fn the_heads_certificate_opens_no_session_and_an_agents_makes_no_head() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let head = load(&cluster.folder.path().join("head"));
    assert_refused(
        knock(&listener, address, &Connector::new(&head).expect("connector")).await,
        "certificate",
    );
    let folder = cluster.issue(Role::Agent, "node0", Validity::days(1));
    std::fs::copy(cluster.folder.path().join("revoked.pem"), folder.join("revoked.pem")).expect("copied");
    let imposter = Arc::new(Listener::bind(loopback(), load(&folder)).expect("listens"));
    let address = imposter.address().expect("an address");
    let waiting = tokio::spawn(async move { imposter.accept().await.expect("open").admit().await.is_err() });
    let agent = Connector::new(&cluster.agent()).expect("connector");
    assert!(agent.connect_to(address).await.is_err());
    assert!(waiting.await.expect("joined"));
}

#[tokio::test]
async fn bad_frames_end_the_stream_and_not_the_listener() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let connector = Connector::new(&cluster.agent()).expect("connector");
    for _ in 0..3 {
        let guest = async {
            let peer = connector.connect_to(address).await.expect("connected");
            let mut channel = peer.open().await.expect("a stream");
            channel.sender.send(&(7_u8, [255_u8; 32])).await.expect("sent");
            let _ = channel.receiver.receive::<ToHead>().await;
        };
        let host = async {
            let peer = listener.accept().await.expect("open").admit().await.expect("let in");
            let mut channel = peer.accept().await.expect("a stream");
            let result = channel.receiver.receive::<ToHead>().await;
            peer.close("no");
            result
        };
        let (result, ()) =
            tokio::time::timeout(PATIENCE, async { tokio::join!(host, guest) }).await.expect("in time");
        assert!(matches!(result, Err(ChannelError::Frame(FrameError::Malformed { .. }))), "{result:?}");
    }
}

#[tokio::test]
async fn messages_arrive_whole_and_in_order() {
    let cluster = Cluster::new();
    let (listener, address) = cluster.listen();
    let user = load(&cluster.issue(Role::User, "ada", Validity::days(1)));
    let connector = Connector::new(&user).expect("connector");
    let guest = async {
        let peer = connector.connect_to(address).await.expect("connected");
        let mut channel = peer.open().await.expect("a stream");
        for index in 0..500 {
            let request = FromUser::Events { from: index };
            channel.sender.send(&request).await.expect("sent");
        }
        channel.sender.finished().await;
    };
    let host = async {
        let peer = listener.accept().await.expect("open").admit().await.expect("let in");
        let mut channel = peer.accept().await.expect("a stream");
        let mut seen = Vec::new();
        while let Some(message) = channel.receiver.receive::<FromUser>().await.expect("good") {
            let FromUser::Events { from, .. } = message else { panic!("{message:?}") };
            seen.push(from);
        }
        seen
    };
    let (seen, ()) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(host, guest) }).await.expect("in time");
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
}

#[test]
fn keys_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let cluster = Cluster::new();
    let folder = cluster.issue(Role::Agent, "node0", Validity::days(1));
    let key = folder.join("key.pem");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(&cluster.folder.path().join("ca.key"))), (0o600, 0o600));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).expect("set");
    let error = Credentials::load(&folder).expect_err("refused");
    assert!(matches!(error, IdentityError::KeyTooOpen { mode: 0o640, .. }), "{error}");
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[test]
fn an_authority_is_not_overwritten_and_survives_reopening() {
    let cluster = Cluster::new();
    assert!(matches!(
        Authority::create(cluster.folder.path(), Validity::days(1)),
        Err(IdentityError::Exists { .. })
    ));
    let again = Authority::open(cluster.folder.path()).expect("opened");
    assert!(matches!(again.revoke(&who(Role::User, "eve")), Err(IdentityError::NeverIssued { .. })));
    let folder = again.issue(&who(Role::User, "ada"), Validity::days(1)).expect("issued").folder;
    assert_eq!(load(&folder).identity(), &who(Role::User, "ada"));
    let error = Credentials::load_for(&folder, Role::Agent).expect_err("wrong role");
    assert!(
        error.to_string().ends_with("is a certificate of user ada, one of role agent is needed"),
        "{error}"
    );
}
