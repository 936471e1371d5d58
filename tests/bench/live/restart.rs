//! A head with a thousand agents and ten thousand jobs: its memory, how long a submission of all of them takes, how soon heartbeats
//! are answered and rounds decided while every job reports its progress, and how soon all agents are back after the head was
//! killed. Connections and sessions are real; behind them are no GPUs and no processes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rota_core::time::Time;
use rota_transport::identity::{Credentials, Role};
use rota_transport::message::{
    Attempt, AttemptInfo, AttemptState, Exit, ExitCause, ExitHow, Exited, Fact, Outcome, Task, ToAgent,
    ToHead,
};
use rota_transport::quic::{Channel, Connector};
use rota_transport::session::{AgentMemory, AgentOutput, AgentSession};
use rota_transport::value::{Iterations, LongText};

use crate::cluster::Cluster;
use crate::measure::quantile;
use crate::memory::{identity, inventory};
use crate::rounds;

const N_AGENTS: usize = 1_000;
const N_GPUS: u32 = 8;
const N_JOBS: usize = 10_000;
/// As often as a real agent reports the progress of each of its jobs.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// How long heartbeats and rounds are watched.
const WATCHED: Duration = Duration::from_secs(60);

/// What the agents see of the head.
#[derive(Default)]
struct Seen {
    /// Milliseconds from a heartbeat to its answer.
    beats_ms: Mutex<Vec<f64>>,
    n_welcomed: AtomicUsize,
    n_reports: AtomicUsize,
}

pub(crate) fn measure() {
    let settings = ["--policy", "srtf+tune", "--round", "10s", "--log", "info,rota_head=debug"];
    let mut cluster = Cluster::start(0, N_GPUS, &settings);
    let names: Vec<_> = (0..N_AGENTS).map(|index| format!("node{index}")).collect();
    let pki = cluster.path("pki");
    cluster.rota(&["pki", "issue", "--pki", &pki, "--agent", &names.join(",")]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("made");
    let seen = Arc::new(Seen::default());
    let begun = Instant::now();
    for name in &names {
        let folder = cluster.folder.path().join("pki/agents").join(name);
        let credentials = Credentials::load_for(&folder, Role::Agent).expect("credentials");
        runtime.spawn(live(credentials, Arc::from(cluster.address()), Arc::clone(&seen)));
    }
    let number = |cluster: &Cluster, key: &str| cluster.status()[key].as_u64();
    cluster.until("all are there", |cluster| number(cluster, "n_nodes_up") == Some(N_AGENTS as u64));
    let joined = begun.elapsed();
    let begun = Instant::now();
    let copies = (N_JOBS / 2).to_string();
    for _ in 0..2 {
        cluster.rota(&["submit", "--gpus", "1", "--time", "10h", "--array", &copies, "--", "/bin/true"]);
    }
    let submitted = begun.elapsed();
    let most = u64::from(N_GPUS) * N_AGENTS as u64;
    cluster.until("the GPUs are in use", |cluster| number(cluster, "n_running") == Some(most));
    let running = begun.elapsed();
    let watched = watch(&cluster, &seen);
    let here_mb = (cluster.head_memory_mb(), most_memory_mb(&cluster));
    cluster.kill_head();
    seen.n_welcomed.store(0, Ordering::Relaxed);
    let begun = Instant::now();
    cluster.start_head();
    cluster.until("all leases are renewed", |_| seen.n_welcomed.load(Ordering::Relaxed) >= N_AGENTS);
    let renewed = begun.elapsed();
    cluster.until("all are back", |cluster| number(cluster, "n_nodes_up") == Some(N_AGENTS as u64));
    let back = begun.elapsed();
    cluster.until("all that ran goes on", |cluster| number(cluster, "n_running") == Some(most));
    std::thread::sleep(Duration::from_secs(10));
    let back_mb = most_memory_mb(&cluster);
    let jobs = cluster.jobs();
    let n_first = jobs.iter().filter(|job| job["state"] == "running" && job["incarnation"] == 1).count();
    assert_eq!(n_first as u64, most, "nothing was started again");
    println!(
        "\n**A large cluster**: {N_AGENTS} agents of {N_GPUS} GPUs, {N_JOBS} jobs of one GPU, srtf+tune in rounds of 10 s; every job"
    );
    println!("that runs reports its progress once a second.\n");
    println!("| | |\n|---|---|");
    println!("| all agents there after | {:.1} s |", joined.as_secs_f64());
    println!("| all jobs submitted after | {:.1} s |", submitted.as_secs_f64());
    println!("| all GPUs in use after | {:.1} s |", running.as_secs_f64());
    println!("{watched}");
    println!("| memory of the head now, and its most | {:.0} MB, {:.0} MB |", here_mb.0, here_mb.1);
    println!("| every lease renewed after a kill of the head | {:.1} s |", renewed.as_secs_f64());
    println!("| all agents back after it | {:.1} s |", back.as_secs_f64());
    println!("| the most memory then | {back_mb:.0} MB |");
    runtime.shutdown_background();
    cluster.kill_head();
}

/// The most memory that the head has had, in megabytes.
fn most_memory_mb(cluster: &Cluster) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", cluster.head_id())).expect("it lives");
    let line = text.lines().find(|line| line.starts_with("VmHWM")).expect("a line for the memory");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("kilobytes") / 1e3
}

/// CPU time that the head itself has used, in seconds.
fn cpu_s(cluster: &Cluster) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", cluster.head_id())).expect("it lives");
    // User and system time, which Linux counts in hundredths of a second, are the twelfth and thirteenth after the name.
    let (_, rest) = text.rsplit_once(')').expect("a name");
    let ticks = rest.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>().expect("ticks"));
    ticks.sum::<f64>() / 100.0
}

/// Watches heartbeats and rounds for a while: rows of the table.
fn watch(cluster: &Cluster, seen: &Seen) -> String {
    seen.beats_ms.lock().expect("nobody panics").clear();
    let (n_before, log_before) = (seen.n_reports.load(Ordering::Relaxed), cluster.head_log().len());
    let cpu_before = cpu_s(cluster);
    std::thread::sleep(WATCHED);
    let cpu = (cpu_s(cluster) - cpu_before) / WATCHED.as_secs_f64();
    let n_reports = seen.n_reports.load(Ordering::Relaxed) - n_before;
    let mut beats = std::mem::take(&mut *seen.beats_ms.lock().expect("nobody panics"));
    beats.sort_unstable_by(f64::total_cmp);
    let rounds = rounds::decided(cluster.head_log().get(log_before..).unwrap_or_default(), N_JOBS);
    assert!(!beats.is_empty() && !rounds.is_empty(), "{} heartbeats, {} rounds", beats.len(), rounds.len());
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|q| quantile(&beats, q));
    let sorted = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        (quantile(&values, 0.5), quantile(&values, 1.0))
    };
    let (all, policy) = (sorted(|round| round.0), sorted(|round| round.1));
    format!(
        "| reports taken in | {:.0} per second |\n\
         | {} heartbeats answered within: p50, p99, most | {p50:.1} ms, {p99:.1} ms, {most:.1} ms |\n\
         | {} rounds decided within: p50, most | {:.1} ms, {:.1} ms |\n\
         | of which the policy itself | {:.1} ms, {:.1} ms |\n\
         | CPUs that the head keeps busy | {cpu:.2} |",
        n_reports as f64 / WATCHED.as_secs_f64(),
        beats.len(),
        rounds.len(),
        all.0,
        all.1,
        policy.0,
        policy.1,
    )
}

/// An agent that runs in name only whatever it is told to, and comes back when the head does.
async fn live(credentials: Credentials, head: Arc<str>, seen: Arc<Seen>) {
    let begun = Instant::now();
    let now = || Time(begun.elapsed().as_micros() as i64);
    let connector = Connector::new(&credentials).expect("a connector");
    let mut session = AgentSession::new(identity(&credentials), AgentMemory::default());
    let mut agent = Running { launched: BTreeMap::new(), seen, beat: None };
    let mut next_report = Instant::now();
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
            if session.is_open() && next_report <= Instant::now() {
                next_report = Instant::now() + REPORT_EVERY;
                agent.report(&mut session, now(), &mut out);
            }
            if !agent.carry_out(&mut session, &mut channel, now(), &mut out).await {
                break;
            }
            let due = session.timeout().map_or(1_000_000, |at| (at - now()).0.clamp(0, 1_000_000));
            let wait = Duration::from_micros(due as u64);
            let wait = wait.min(next_report.saturating_duration_since(Instant::now()));
            match tokio::time::timeout(wait, channel.receiver.receive::<ToAgent>()).await {
                Ok(Ok(Some(message))) => {
                    agent.hear(&message);
                    session.handle(now(), message, &mut out).expect("in turn");
                }
                Ok(_) => break,
                Err(_) => session.tick(now(), &mut out),
            }
        }
        session.disconnected();
    }
}

/// What an agent has in its name.
struct Running {
    launched: BTreeMap<Attempt, AttemptInfo>,
    seen: Arc<Seen>,
    /// When the heartbeat was sent that is not answered yet.
    beat: Option<Instant>,
}

impl Running {
    fn hear(&mut self, message: &ToAgent) {
        if let ToAgent::Renew { .. } = message
            && let Some(sent) = self.beat.take()
        {
            let took_ms = sent.elapsed().as_secs_f64() * 1e3;
            self.seen.beats_ms.lock().expect("nobody panics").push(took_ms);
        }
    }

    /// Every job has done as many iterations as seconds have passed.
    fn report(&mut self, session: &mut AgentSession, now: Time, out: &mut Vec<AgentOutput>) {
        for attempt in self.launched.keys() {
            let iterations = Iterations::new(now.as_secs_f64()).expect("a count");
            session.report(now, Fact::Progressed { attempt: *attempt, iterations }, out);
        }
        self.seen.n_reports.fetch_add(self.launched.len(), Ordering::Relaxed);
    }

    /// Does what the session wants; false when the connection is of no more use.
    async fn carry_out(
        &mut self,
        session: &mut AgentSession,
        channel: &mut Channel,
        now: Time,
        out: &mut Vec<AgentOutput>,
    ) -> bool {
        while !out.is_empty() {
            for output in std::mem::take(out) {
                match output {
                    AgentOutput::Send(message) => {
                        let is_greeting = matches!(message, ToHead::Hello(_));
                        if matches!(message, ToHead::Heartbeat(_)) {
                            self.beat = Some(Instant::now());
                        }
                        if channel.sender.send(&message).await.is_err() && !is_greeting {
                            return false;
                        }
                    }
                    AgentOutput::Welcomed(_) => {
                        channel.receiver.trust();
                        self.seen.n_welcomed.fetch_add(1, Ordering::Relaxed);
                        let mut has = inventory();
                        has.attempts = self.launched.values().cloned().collect();
                        session.inventory(has, out);
                    }
                    AgentOutput::Execute { order, task } => {
                        self.execute(task, session, now, out);
                        session.order_done(now, order, Outcome::Done, out);
                    }
                    AgentOutput::HangUp => return false,
                    AgentOutput::LeaseOver | AgentOutput::Refused(_) => {}
                }
            }
        }
        true
    }

    fn execute(&mut self, task: Task, session: &mut AgentSession, now: Time, out: &mut Vec<AgentOutput>) {
        match task {
            Task::Launch(launch) => {
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
                self.launched.insert(launch.attempt, info);
                session.report(now, Fact::Started(launch.attempt), out);
            }
            Task::Stop { attempt, .. } if self.launched.remove(&attempt).is_some() => {
                let exited = Exited {
                    attempt,
                    exit: Exit { how: ExitHow::Code(0), cause: ExitCause::Ordered },
                    iterations: Iterations::NONE,
                    checkpointed: Iterations::NONE,
                    tail: LongText::cut(""),
                };
                session.report(now, Fact::Exited(exited), out);
            }
            _ => {}
        }
    }
}
