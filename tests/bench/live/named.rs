//! Agents in name only: connections and sessions are real, behind them are no GPUs and no processes.

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
use tokio::runtime::Runtime;

use crate::cluster::Cluster;
use crate::memory::{identity, inventory};

/// As often as a real agent reports the progress of each of its jobs.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// What the agents see of the head.
#[derive(Default)]
pub(crate) struct Seen {
    /// Milliseconds from a heartbeat to its answer.
    pub(crate) beats_ms: Mutex<Vec<f64>>,
    pub(crate) n_welcomed: AtomicUsize,
    pub(crate) n_reports: AtomicUsize,
}

/// Starts so many agents, whose jobs end after about this time if it is given.
pub(crate) fn start(cluster: &Cluster, n_agents: usize, lasts: Option<Duration>) -> (Runtime, Arc<Seen>) {
    let names: Vec<_> = (0..n_agents).map(|index| format!("node{index}")).collect();
    let pki = cluster.path("pki");
    cluster.rota(&["pki", "issue", "--pki", &pki, "--agent", &names.join(",")]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("made");
    let seen = Arc::new(Seen::default());
    for name in &names {
        let folder = cluster.folder.path().join("pki/agents").join(name);
        let credentials = Credentials::load_for(&folder, Role::Agent).expect("credentials");
        runtime.spawn(live(credentials, Arc::from(cluster.address()), Arc::clone(&seen), lasts));
    }
    (runtime, seen)
}

/// An agent that runs in name only whatever it is told to, and comes back when the head does.
async fn live(credentials: Credentials, head: Arc<str>, seen: Arc<Seen>, lasts: Option<Duration>) {
    let begun = Instant::now();
    let now = || Time(begun.elapsed().as_micros() as i64);
    let connector = Connector::new(&credentials).expect("a connector");
    let mut session = AgentSession::new(identity(&credentials), AgentMemory::default());
    let mut agent = Running { launched: BTreeMap::new(), ends: BTreeMap::new(), lasts, seen, beat: None };
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
    /// When they end by themselves.
    ends: BTreeMap<Attempt, Instant>,
    /// How long they last.
    lasts: Option<Duration>,
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

    /// Every job has done as many iterations as seconds have passed, or is done.
    fn report(&mut self, session: &mut AgentSession, now: Time, out: &mut Vec<AgentOutput>) {
        let at = Instant::now();
        let over: Vec<Attempt> =
            self.ends.iter().filter(|(_, end)| **end <= at).map(|(attempt, _)| *attempt).collect();
        for attempt in over {
            self.ends.remove(&attempt);
            self.launched.remove(&attempt);
            session.report(now, exited(attempt, ExitCause::Itself), out);
        }
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
                if let Some(lasts) = self.lasts {
                    // Not all at once.
                    let part = 0.5 + f64::from(launch.attempt.job.0 % 97) / 97.0;
                    self.ends.insert(launch.attempt, Instant::now() + lasts.mul_f64(part));
                }
                session.report(now, Fact::Started(launch.attempt), out);
            }
            Task::Stop { attempt, .. } if self.launched.remove(&attempt).is_some() => {
                self.ends.remove(&attempt);
                session.report(now, exited(attempt, ExitCause::Ordered), out);
            }
            _ => {}
        }
    }
}

fn exited(attempt: Attempt, cause: ExitCause) -> Fact {
    Fact::Exited(Exited {
        attempt,
        exit: Exit { how: ExitHow::Code(0), cause },
        iterations: Iterations::NONE,
        checkpointed: Iterations::NONE,
        tail: LongText::cut(""),
    })
}
