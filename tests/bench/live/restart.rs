//! A head with a thousand agents and ten thousand jobs: its memory, how long a submission of all of them takes, and how soon all
//! agents are back after it was killed. Connections and sessions are real; behind them are no GPUs and no processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::time::Time;
use rota_transport::identity::{Credentials, Role};
use rota_transport::message::{Attempt, AttemptInfo, AttemptState, Fact, Outcome, Task, ToAgent, ToHead};
use rota_transport::quic::{Channel, Connector};
use rota_transport::session::{AgentMemory, AgentOutput, AgentSession};
use rota_transport::value::Iterations;

use crate::cluster::Cluster;
use crate::memory::{identity, inventory};

const N_AGENTS: usize = 1_000;
const N_GPUS: u32 = 8;
const N_JOBS: usize = 10_000;

pub(crate) fn measure() {
    let mut cluster = Cluster::start(0, N_GPUS, &["--policy", "fifo", "--lease", "60s"]);
    let names: Vec<_> = (0..N_AGENTS).map(|index| format!("node{index}")).collect();
    let pki = cluster.path("pki");
    cluster.rota(&["pki", "issue", "--pki", &pki, "--agent", &names.join(",")]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("made");
    for name in &names {
        let folder = cluster.folder.path().join("pki/agents").join(name);
        let credentials = Credentials::load_for(&folder, Role::Agent).expect("credentials");
        runtime.spawn(live(credentials, Arc::from(cluster.address())));
    }
    let number = |cluster: &Cluster, key: &str| cluster.status()[key].as_u64();
    cluster.until("all are there", |cluster| number(cluster, "n_nodes_up") == Some(N_AGENTS as u64));
    let begun = Instant::now();
    let copies = (N_JOBS / 2).to_string();
    for _ in 0..2 {
        cluster.rota(&["submit", "--gpus", "1", "--time", "10h", "--array", &copies, "--", "/bin/true"]);
    }
    let submitted = begun.elapsed();
    let most = u64::from(N_GPUS) * N_AGENTS as u64;
    let n_running = |cluster: &Cluster| {
        let jobs = cluster.rota(&["jobs", "--json"]);
        jobs.matches("\"running\"").count() as u64
    };
    cluster.until("the GPUs are in use", |cluster| n_running(cluster) == most);
    let running = begun.elapsed();
    std::thread::sleep(Duration::from_secs(5));
    let here_mb = cluster.head_memory_mb();
    cluster.kill_head();
    let begun = Instant::now();
    cluster.start_head();
    let is_back = |cluster: &Cluster| {
        let nodes = cluster.nodes();
        nodes.len() == N_AGENTS && nodes.iter().all(|node| node["state"] == "up")
    };
    cluster.until("all are back", is_back);
    let back = begun.elapsed();
    let back_mb = cluster.head_memory_mb();
    assert_eq!(n_running(&cluster), most, "all that ran goes on");
    println!("\n**A large cluster**: {N_AGENTS} agents of {N_GPUS} GPUs, {N_JOBS} jobs of one GPU.\n");
    println!("| | |\n|---|---|");
    println!("| all submitted after | {:.1} s |", submitted.as_secs_f64());
    println!("| all GPUs in use after | {:.1} s |", running.as_secs_f64());
    println!("| memory | {here_mb:.0} MB |");
    println!("| all agents back after a kill of the head | {:.1} s |", back.as_secs_f64());
    println!("| memory then | {back_mb:.0} MB |");
    runtime.shutdown_background();
    cluster.kill_head();
}

/// An agent that runs in name only whatever it is told to, and comes back when the head does.
async fn live(credentials: Credentials, head: Arc<str>) {
    let begun = Instant::now();
    let now = || Time(begun.elapsed().as_micros() as i64);
    let connector = Connector::new(&credentials).expect("a connector");
    let mut session = AgentSession::new(identity(&credentials), AgentMemory::default());
    let mut launched = BTreeMap::new();
    loop {
        let connected = connector.connect(&head).await;
        let opened = match &connected {
            Ok(peer) => peer.open().await.ok(),
            Err(_) => None,
        };
        let Some(mut channel) = opened else {
            tokio::time::sleep(Duration::from_millis(500)).await;
            continue;
        };
        let mut out = Vec::new();
        session.connected(now(), &mut out);
        loop {
            if !carry_out(&mut session, &mut channel, &mut launched, now(), &mut out).await {
                break;
            }
            let due = session.timeout().map_or(1_000_000, |at| (at - now()).0.clamp(0, 1_000_000));
            let wait = Duration::from_micros(due as u64);
            match tokio::time::timeout(wait, channel.receiver.receive::<ToAgent>()).await {
                Ok(Ok(Some(message))) => session.handle(now(), message, &mut out).expect("in turn"),
                Ok(_) => break,
                Err(_) => session.tick(now(), &mut out),
            }
        }
        session.disconnected();
    }
}

/// Does what the session wants; false when the connection is of no more use.
async fn carry_out(
    session: &mut AgentSession,
    channel: &mut Channel,
    launched: &mut BTreeMap<Attempt, AttemptInfo>,
    now: Time,
    out: &mut Vec<AgentOutput>,
) -> bool {
    while !out.is_empty() {
        for output in std::mem::take(out) {
            match output {
                AgentOutput::Send(message) => {
                    let is_greeting = matches!(message, ToHead::Hello(_));
                    if channel.sender.send(&message).await.is_err() && !is_greeting {
                        return false;
                    }
                }
                AgentOutput::Welcomed(_) => {
                    channel.receiver.trust();
                    let mut has = inventory();
                    has.attempts = launched.values().cloned().collect();
                    session.inventory(has, out);
                }
                AgentOutput::Execute { order, task } => {
                    if let Task::Launch(launch) = task {
                        let info = AttemptInfo {
                            attempt: launch.attempt,
                            epoch: session.memory().epoch,
                            gpus: launch.gpus,
                            share: launch.share,
                            host: launch.host,
                            state: AttemptState::Running,
                            iterations: Iterations::NONE,
                            checkpointed: Iterations::NONE,
                            launch: launch.id,
                            n_nodes: 1,
                        };
                        launched.insert(launch.attempt, info);
                        session.report(now, Fact::Started(launch.attempt), out);
                    }
                    session.order_done(now, order, Outcome::Done, out);
                }
                AgentOutput::HangUp => return false,
                AgentOutput::LeaseOver | AgentOutput::Refused(_) => {}
            }
        }
    }
    true
}
