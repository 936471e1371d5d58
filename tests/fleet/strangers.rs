//! Guests that a running head must survive: certificates that open nothing, agents that pretend to be another, bytes that
//! are no message, lengths and numbers that cannot be.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rota_core::ids::{Incarnation, JobId};
use rota_transport::identity::{Authority, Credentials, Identity, Role, Validity};
use rota_transport::message::{
    Attempt, BootId, Epoch, Exit, ExitCause, ExitHow, Exited, Fact, GpuInfo, Hello, InstanceId, Inventory,
    Knowledge, OrderDone, OrderId, Outcome, PROTOCOL_VERSION, Report, Sequence, ToAgent, ToHead, ToUser,
};
use rota_transport::quic::{AGENTS_DOMAIN, Channel, Connector, Peer, USERS_DOMAIN};
use rota_transport::value::{Iterations, LongText, Name, Text};

use crate::cluster::Cluster;

const PATIENCE: Duration = Duration::from_secs(60);
/// What a bad guest may cost the head for good.
const MOST_GROWTH_MB: f64 = 16.0;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn name(name: &str) -> Name {
    Name::new(name).expect("a name")
}

fn agent_folder(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.folder.path().join("pki/agents").join(name)
}

/// Knocks; whether a stream was opened and something heard on it, which only those have who were let in.
async fn is_let_in(cluster: &Cluster, folder: &Path, door: &'static str) -> bool {
    let credentials = Credentials::load(folder).expect("credentials");
    let connector = Connector::for_door(&credentials, door).expect("a connector");
    let Ok(peer) = connector.connect(cluster.address()).await else { return false };
    let Ok(mut channel) = peer.open().await else { return false };
    let said = channel.sender.send(&ToHead::Hello(hello("node0"))).await;
    said.is_ok() && matches!(channel.receiver.receive::<ToAgent>().await, Ok(Some(ToAgent::Welcome(_))))
}

fn hello(said: &str) -> Hello {
    Hello {
        protocol: PROTOCOL_VERSION,
        name: name(said),
        version: Text::cut("1"),
        boot: BootId(1),
        epoch: Epoch(0),
        address: Text::cut("here"),
        instance: InstanceId(1),
        knows: Knowledge::default(),
        acknowledged: Sequence(0),
    }
}

/// An agent's connection whose greeting was sent.
async fn greet(cluster: &Cluster, certificate: &str, said: &str) -> (Connector, Peer, Channel) {
    let credentials = Credentials::load(&agent_folder(cluster, certificate)).expect("credentials");
    let connector = Connector::new(&credentials).expect("a connector");
    let peer = connector.connect(cluster.address()).await.expect("connected");
    let mut channel = peer.open().await.expect("a stream");
    channel.receiver.trust();
    channel.sender.send(&ToHead::Hello(hello(said))).await.expect("sent");
    (connector, peer, channel)
}

/// Listens until the head hangs up; whether it ever welcomed.
async fn until_hung_up(channel: &mut Channel) -> bool {
    let mut was_welcomed = false;
    let listening = async {
        while let Ok(Some(message)) = channel.receiver.receive::<ToAgent>().await {
            was_welcomed |= matches!(message, ToAgent::Welcome(_));
        }
    };
    tokio::time::timeout(PATIENCE, listening).await.expect("the head hangs up");
    was_welcomed
}

/// A head without agents, and certificates for two.
fn lonely_head() -> Cluster {
    let cluster = Cluster::start(0, 1, &[]);
    cluster.rota(&["pki", "issue", "--pki", &cluster.path("pki"), "--agent", "node0,node1"]);
    cluster
}

#[test]
fn only_an_agent_of_the_authority_opens_a_session_for_agents() {
    let cluster = lonely_head();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let stranger = Authority::create(elsewhere.path(), Validity::days(1)).expect("an authority");
    let who = Identity { role: Role::Agent, name: name("node0") };
    let strange = stranger.issue(&who, Validity::days(1)).expect("issued").folder;
    // It trusts our head, so that it is the head that refuses.
    std::fs::copy(cluster.folder.path().join("pki/ca.pem"), strange.join("ca.pem")).expect("copied");
    let (ours, user) = (agent_folder(&cluster, "node0"), cluster.folder.path().join("pki/users/ada"));
    runtime().block_on(async {
        assert!(!is_let_in(&cluster, &strange, AGENTS_DOMAIN).await, "another authority");
        assert!(!is_let_in(&cluster, &user, AGENTS_DOMAIN).await, "a user at the agents' door");
        assert!(!is_let_in(&cluster, &ours, USERS_DOMAIN).await, "an agent at the users' door");
        assert!(is_let_in(&cluster, &ours, AGENTS_DOMAIN).await, "an agent at its door");
    });
    cluster.rota(&["pki", "revoke", "--pki", &cluster.path("pki"), "--agent", "node0"]);
    let runtime = runtime();
    cluster.until("the revoked one is refused", |cluster| {
        !runtime.block_on(is_let_in(cluster, &ours, AGENTS_DOMAIN))
    });
    assert_eq!(cluster.status()["n_nodes"], 0, "nobody became a node");
}

#[test]
fn an_agent_that_calls_itself_by_anothers_name_is_sent_away() {
    let cluster = lonely_head();
    runtime().block_on(async {
        let (_connector, _peer, mut channel) = greet(&cluster, "node1", "node0").await;
        assert!(!until_hung_up(&mut channel).await, "it was welcomed");
    });
    let events = cluster.rota(&["events"]);
    assert!(events.contains("calls itself node0, its certificate says node1"), "{events}");
    assert_eq!(cluster.status()["n_nodes"], 0);
}

#[test]
fn noise_and_bytes_that_are_no_message_cost_a_connection_and_not_the_head() {
    let cluster = lonely_head();
    let before_mb = cluster.head_memory_mb();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for length in [0_usize, 1, 20, 1_200, 1_400] {
        for first in 0..=255_u8 {
            let noise: Vec<u8> = (0..length).map(|at| first.wrapping_mul(at as u8 | 1)).collect();
            socket.send_to(&noise, cluster.address()).expect("sent");
        }
    }
    // A length of four gigabytes, a message of the other direction, numbers without an end, and silence within a frame.
    let frames: [&[u8]; 4] = [
        &[0xff, 0xff, 0xff, 0xff, 1, 2, 3],
        &[2, 0, 0, 0, 0xee, 0xee],
        &[11, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[200, 0, 0, 0, 1],
    ];
    runtime().block_on(async {
        for frame in frames {
            let (_connector, _peer, mut channel) = greet(&cluster, "node0", "node0").await;
            channel.sender.send_raw(frame).await.expect("sent");
            channel.sender.finish();
            until_hung_up(&mut channel).await;
        }
    });
    let status = cluster.status();
    assert_eq!(status["epoch"], 1, "it was never restarted: {status}");
    let growth_mb = cluster.head_memory_mb() - before_mb;
    assert!(growth_mb < MOST_GROWTH_MB, "the head grew by {growth_mb} MB");
}

/// Messages that are well formed and absurd.
fn absurdities() -> Vec<ToHead> {
    let attempt = Attempt { job: JobId(u32::MAX), incarnation: Incarnation(u32::MAX) };
    let gpu = |index| GpuInfo {
        index,
        uuid: Text::cut(""),
        model: Text::cut(""),
        mem_bytes: u64::MAX,
        numa: u32::MAX,
        is_healthy: index % 2 == 0,
    };
    let inventory = |n_gpus: u32| {
        ToHead::Inventory(Inventory {
            gpus: (0..n_gpus).map(gpu).collect(),
            rack: u32::MAX,
            ..Inventory::default()
        })
    };
    let report = |sequence, fact| ToHead::Report(Report { sequence: Sequence(sequence), fact });
    let exit = Exit { how: ExitHow::Code(i32::MIN), cause: ExitCause::OverLimit };
    let exited = Exited {
        attempt,
        exit,
        iterations: Iterations::new(1e15).expect("a count"),
        checkpointed: Iterations::NONE,
        tail: LongText::cut(""),
    };
    vec![
        inventory(0),
        inventory(5_000),
        inventory(64),
        report(1, Fact::Started(attempt)),
        report(2, Fact::Exited(exited)),
        report(3, Fact::GpuUnhealthy { index: u32::MAX, reason: Text::cut("") }),
        report(4, Fact::GpuHealthy { index: u32::MAX }),
        report(u64::MAX, Fact::Started(attempt)),
        ToHead::OrderDone(OrderDone {
            order: OrderId(u64::MAX),
            epoch: Epoch(u64::MAX),
            outcome: Outcome::Prepared { port: 0 },
        }),
        ToHead::Hello(hello("node0")),
    ]
}

#[test]
fn absurd_numbers_in_well_formed_messages_do_not_harm_the_head() {
    let cluster = lonely_head();
    runtime().block_on(async {
        for absurdity in absurdities() {
            let (_connector, peer, mut channel) = greet(&cluster, "node0", "node0").await;
            let welcomed = channel.receiver.receive::<ToAgent>().await;
            assert!(matches!(welcomed, Ok(Some(ToAgent::Welcome(_)))), "{welcomed:?}");
            // The head may hang up before all of it is said.
            let _ = channel.sender.send(&absurdity).await;
            peer.close("done");
        }
    });
    // It still works for others.
    let user = runtime();
    let answers = user.block_on(async {
        let credentials =
            Credentials::load(&cluster.folder.path().join("pki/users/ada")).expect("credentials");
        let connector = Connector::new(&credentials).expect("a connector");
        let peer = connector.connect(cluster.address()).await.expect("connected");
        let mut channel = peer.open().await.expect("a stream");
        channel.sender.send_raw(&[1, 0, 0, 0, 0xff]).await.expect("sent");
        channel.sender.finish();
        channel.receiver.receive::<ToUser>().await
    });
    assert!(!matches!(answers, Ok(Some(ToUser::Status(_)))), "{answers:?}");
    assert_eq!(cluster.status()["epoch"], 1);
}
