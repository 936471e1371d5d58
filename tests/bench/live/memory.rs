//! Memory of the head with many agents: real connections and sessions, no GPUs and no processes behind them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::resources::Host;
use rota_core::time::Time;
use rota_transport::identity::{Credentials, Role};
use rota_transport::message::{BootId, GpuInfo, InstanceId, Inventory, ToAgent};
use rota_transport::quic::{Channel, Connector};
use rota_transport::session::{AgentIdentity, AgentMemory, AgentOutput, AgentSession};
use rota_transport::value::{HostAmount, Text};

use crate::cluster::Cluster;

const N_AGENTS: usize = 200;
const N_GPUS: u32 = 8;

pub(crate) fn measure() {
    let mut cluster = Cluster::start(0, N_GPUS, &["--heartbeat", "2s"]);
    let alone_mb = cluster.head_memory_mb();
    let names: Vec<_> = (0..N_AGENTS).map(|index| format!("node{index}")).collect();
    let pki = cluster.path("pki");
    cluster.rota(&["pki", "issue", "--pki", &pki, "--agent", &names.join(",")]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("made");
    let begun = Instant::now();
    for name in &names {
        let folder = cluster.folder.path().join("pki/agents").join(name);
        let credentials = Credentials::load_for(&folder, Role::Agent).expect("credentials");
        runtime.spawn(live(credentials, Arc::from(cluster.address())));
    }
    let n_up = |cluster: &Cluster| cluster.status()["n_nodes_up"].as_u64();
    cluster.until("all are there", |cluster| n_up(cluster) == Some(N_AGENTS as u64));
    let all_here = begun.elapsed();
    let here_mb = cluster.head_memory_mb();
    let copies = (N_AGENTS * N_GPUS as usize).to_string();
    // No agent is real: jobs hold their GPUs in the cluster state, and make no progress.
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--array", &copies, "--", "/bin/true"]);
    std::thread::sleep(Duration::from_secs(10));
    let later_mb = cluster.head_memory_mb();
    assert_eq!(n_up(&cluster), Some(N_AGENTS as u64), "agents stayed");
    println!(
        "\n**Memory of the head**: resident, in megabytes; {N_AGENTS} agents of {N_GPUS} GPUs over connections of their own,"
    );
    println!("all there {:.1} s after the first knocked.\n", all_here.as_secs_f64());
    println!("| | MB |\n|---|---|");
    println!("| no agent | {alone_mb:.1} |\n| {N_AGENTS} agents | {here_mb:.1} |");
    println!("| the same, {copies} jobs submitted, ten seconds later | {later_mb:.1} |");
    runtime.shutdown_background();
    cluster.kill_head();
}

/// An agent that is there, renews its lease and does nothing it is told.
pub(crate) async fn live(credentials: Credentials, head: Arc<str>) {
    let begun = Instant::now();
    let now = || Time(begun.elapsed().as_micros() as i64);
    let connector = Connector::new(&credentials).expect("a connector");
    let peer = connector.connect(&head).await.expect("connected");
    let mut channel = peer.open().await.expect("a stream");
    let mut session = AgentSession::new(identity(&credentials), AgentMemory::default());
    let mut out = Vec::new();
    session.connected(now(), &mut out);
    loop {
        carry_out(&mut session, &mut channel, &mut out).await;
        let due = session.timeout().map_or(1_000_000, |at| (at - now()).0.clamp(0, 1_000_000));
        let wait = Duration::from_micros(due as u64);
        match tokio::time::timeout(wait, channel.receiver.receive::<ToAgent>()).await {
            Ok(Ok(Some(message))) => session.handle(now(), message, &mut out).expect("in turn"),
            Ok(_) => return,
            Err(_) => session.tick(now(), &mut out),
        }
    }
}

async fn carry_out(session: &mut AgentSession, channel: &mut Channel, out: &mut Vec<AgentOutput>) {
    while !out.is_empty() {
        for output in std::mem::take(out) {
            match output {
                // A head that is gone is noticed by who reads.
                AgentOutput::Send(message) => drop(channel.sender.send(&message).await),
                AgentOutput::Welcomed(_) => {
                    channel.receiver.trust();
                    session.inventory(inventory(), out);
                }
                _ => {}
            }
        }
    }
}

/// What an agent says it has.
pub(crate) fn inventory() -> Inventory {
    let gpu = |index| GpuInfo {
        index,
        uuid: Text::cut(&format!("GPU-{index}")),
        model: Text::cut("V100"),
        mem_bytes: 32 << 30,
        numa: 0,
        is_healthy: true,
    };
    let host = Host { cpu_micro: 24_000_000, mem_bytes: 500_000_000_000, storage_bps: 0 };
    Inventory {
        gpus: (0..N_GPUS).map(gpu).collect(),
        host: Some(HostAmount::new(host).expect("a host")),
        is_emulated: true,
        ..Inventory::default()
    }
}

/// How the agents of these benchmarks introduce themselves.
pub(crate) fn identity(credentials: &Credentials) -> AgentIdentity {
    AgentIdentity {
        name: credentials.identity().name.clone(),
        version: Text::cut("bench"),
        address: Text::cut("127.0.0.1"),
        boot: BootId(1),
        instance: InstanceId(1),
    }
}
