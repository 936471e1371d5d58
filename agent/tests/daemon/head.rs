//! A head for tests: real QUIC, a real session, and a test that decides.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rota_agent::clock::now_ms;
use rota_core::allocation::GpuSet;
use rota_core::ids::{Incarnation, JobId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::identity::{Authority, Credentials, Identity, Role, Validity};
use rota_transport::message::*;
use rota_transport::quic::{Channel, Listener, Peer};
use rota_transport::session::{HeadOutput, HeadSession, SeenReports, Terms};
use rota_transport::value::*;

pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_rota-agent");
/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A cluster of one agent, and the head's end of it.
pub(crate) struct Head {
    pub(crate) folder: tempfile::TempDir,
    listener: Listener,
    pub(crate) session: HeadSession,
    link: Option<(Peer, Channel)>,
    heard: VecDeque<HeadOutput>,
    /// Starts that no test has waited for yet: they may come before the outcome of their order.
    starts: Vec<HeadOutput>,
    agent: Option<Child>,
    options: Vec<String>,
}

impl Head {
    /// A head with an agent that is being started.
    pub(crate) async fn new(options: &[&str], lease: Span) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pki = folder.path().join("pki");
        let authority = Authority::create(&pki, Validity::days(10)).expect("an authority");
        let who = |role, name| Identity { role, name: Name::new(name).expect("a name") };
        let head = authority.issue(&who(Role::Head, "head"), Validity::days(1)).expect("issued").folder;
        authority.issue(&who(Role::Agent, "node0"), Validity::days(1)).expect("issued");
        let credentials = Credentials::load(&head).expect("credentials");
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), credentials).expect("listens");
        let mut head = Head {
            session: session(Epoch(1), lease),
            folder,
            listener,
            link: None,
            heard: VecDeque::new(),
            starts: Vec::new(),
            agent: None,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        head.start_agent();
        head.meet().await;
        head
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.folder.path().join("r")
    }

    /// Starts the agent, again after it was killed.
    pub(crate) fn start_agent(&mut self) {
        let address = self.listener.address().expect("an address").to_string();
        let identity = self.folder.path().join("pki/agents/node0");
        let mut command = Command::new(AGENT);
        command.args(["--head", &address, "--retry-at-most", "200ms", "--identity"]).arg(identity);
        command.arg("--run-dir").arg(self.run_dir()).args(["--jobs-as", "self"]).args(&self.options);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.agent = Some(command.spawn().expect("the agent starts"));
    }

    /// Kills the agent without a word.
    pub(crate) fn kill_agent(&mut self) {
        let mut agent = self.agent.take().expect("an agent");
        agent.kill().expect("killed");
        agent.wait().expect("ended");
        self.session.disconnected();
        self.link = None;
    }

    /// Hangs up and does not answer until `meet`.
    pub(crate) fn cut(&mut self) {
        if let Some((peer, _)) = self.link.take() {
            peer.close("cut");
        }
        self.session.disconnected();
    }

    /// Becomes a head of another epoch that knows nothing.
    pub(crate) fn become_epoch(&mut self, epoch: u64, lease: Span) {
        self.cut();
        self.session = session(Epoch(epoch), lease);
    }

    /// Waits for the agent and its inventory.
    pub(crate) async fn meet(&mut self) -> Inventory {
        self.let_in().await;
        self.until("an inventory", |output| match output {
            HeadOutput::Inventory(inventory) => Some(*inventory.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the agent to connect and to open its stream.
    pub(crate) async fn let_in(&mut self) {
        let arrival =
            tokio::time::timeout(LIMIT, self.listener.accept()).await.expect("in time").expect("open");
        let peer = arrival.admit().await.expect("admitted");
        let channel = tokio::time::timeout(LIMIT, peer.accept()).await.expect("in time").expect("a stream");
        self.session.connected();
        self.link = Some((peer, channel));
    }

    /// The agent's first message, taken without the session.
    pub(crate) async fn hello(&mut self) -> Hello {
        let (_, channel) = self.link.as_mut().expect("a connection");
        match channel.receiver.receive().await {
            Ok(Some(ToHead::Hello(hello))) => hello,
            other => panic!("no greeting: {other:?}"),
        }
    }

    /// Sends messages that the session knows nothing of.
    pub(crate) async fn send_all(&mut self, messages: &[ToAgent]) {
        let (_, channel) = self.link.as_mut().expect("a connection");
        for message in messages {
            channel.sender.send(message).await.expect("sent");
        }
    }

    /// Waits until the agent hangs up.
    pub(crate) async fn until_hung_up(&mut self) {
        let (_, channel) = self.link.as_mut().expect("a connection");
        let gone = async { while let Ok(Some(_)) = channel.receiver.receive::<ToHead>().await {} };
        tokio::time::timeout(LIMIT, gone).await.expect("the agent hangs up");
    }

    /// Gives an order.
    pub(crate) async fn order(&mut self, task: Task) -> OrderId {
        let mut out = Vec::new();
        let order = self.session.order(now(), task, &mut out);
        self.take(out).await;
        order
    }

    /// Gives an order and waits for what becomes of it.
    pub(crate) async fn done(&mut self, task: Task) -> Outcome {
        let wanted = self.order(task).await;
        self.until(&format!("the outcome of {wanted}"), |output| match output {
            HeadOutput::OrderDone { order, outcome, .. } if *order == wanted => Some(outcome.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for a fact.
    pub(crate) async fn fact<T>(&mut self, what: &str, mut wanted: impl FnMut(&Fact) -> Option<T>) -> T {
        self.until(what, |output| match output {
            HeadOutput::Fact { fact, .. } => wanted(fact),
            _ => None,
        })
        .await
    }

    /// Waits for the end of a launch.
    pub(crate) async fn exited(&mut self, attempt: Attempt) -> Exited {
        self.fact(&format!("the end of {attempt}"), |fact| match fact {
            Fact::Exited(exited) if exited.attempt == attempt => Some(exited.clone()),
            _ => None,
        })
        .await
    }

    /// Listens until something wanted is heard; everything else is dropped, except starts.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&HeadOutput) -> Option<T>,
    ) -> T {
        let until = Instant::now() + LIMIT;
        if let Some((at, found)) =
            self.starts.iter().enumerate().find_map(|(at, start)| wanted(start).map(|found| (at, found)))
        {
            self.starts.remove(at);
            return found;
        }
        loop {
            while let Some(output) = self.heard.pop_front() {
                if let HeadOutput::Fact { seen, .. } = &output {
                    let mut out = Vec::new();
                    self.session.acknowledge(*seen, &mut out);
                    self.take(out).await;
                }
                if let Some(found) = wanted(&output) {
                    return found;
                }
                if matches!(output, HeadOutput::Fact { fact: Fact::Started(_), .. }) {
                    self.starts.push(output);
                }
            }
            let (_, channel) = self.link.as_mut().expect("a connection");
            let left = until.saturating_duration_since(Instant::now());
            let message = tokio::time::timeout(left, channel.receiver.receive::<ToHead>()).await;
            let message = message.unwrap_or_else(|_| panic!("timed out waiting for: {what}"));
            let message = message.expect("a good message").expect("not finished");
            let mut out = Vec::new();
            self.session.handle(now(), message, &mut out).expect("an agent that keeps to the rules");
            self.take(out).await;
        }
    }

    async fn take(&mut self, out: Vec<HeadOutput>) {
        for output in out {
            match (output, &mut self.link) {
                (HeadOutput::Send(message), Some((_, channel))) => {
                    channel.receiver.trust();
                    channel.sender.send(&message).await.expect("sent");
                }
                (HeadOutput::Send(_), None) => {}
                (output, _) => self.heard.push_back(output),
            }
        }
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        // Shims outlive their agent; those of a test end here.
        let attempts = std::fs::read_dir(self.run_dir().join("attempts")).into_iter().flatten().flatten();
        for entry in attempts {
            let dir = rota_agent::shim::record::AttemptDir::new(entry.path());
            if let Ok(Some(state)) = dir.state()
                && state.shim.is_alive()
                && let Some(pid) = rustix::process::Pid::from_raw(state.shim.pid)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn session(epoch: Epoch, lease: Span) -> HeadSession {
    let heartbeat = Span(lease.0 / 10);
    let terms = Terms { lease, heartbeat, ..Terms::default() };
    HeadSession::new(Name::new("node0").expect("a name"), epoch, terms, SeenReports::default(), None)
}

pub(crate) fn now() -> Time {
    Time(now_ms() as i64 * 1_000)
}

pub(crate) fn attempt(job: u32, incarnation: u32) -> Attempt {
    Attempt { job: JobId(job), incarnation: Incarnation(incarnation) }
}

/// A launch of one process with the first GPU.
pub(crate) fn launch(attempt: Attempt, argv: &[&str]) -> Launch {
    let text = |text: &str| Text::new(text).expect("a text");
    Launch {
        attempt,
        id: 77,
        name: text("test"),
        user: Name::new("ada").expect("a name"),
        launcher: Launcher::Process,
        argv: argv.iter().map(|word| text(word)).collect(),
        env: vec![(text("GREETING"), text("hello"))],
        working_directory: text(""),
        gpus: Gpus::new(GpuSet(1)).expect("a GPU"),
        share: GpuShare::WHOLE,
        host: HostAmount::new(Host::from_units(1.0, 1.0, 0.0)).expect("a share"),
        gang: Gang::ALONE,
        start: Start::AtOnce,
        work: Work {
            to_do: Iterations::new(100.0).expect("a count"),
            done: Iterations::NONE,
            rate: Rate::new(10.0).expect("a rate"),
            delay: Wait::NONE,
            checkpoint_every: Wait::NONE,
        },
        checkpoint_directory: text(""),
        on_head_lost: OnHeadLost::Stop,
        log: LogLimits { file_bytes: 1 << 20, n_files: 2 },
        grace: Wait::new(Span::from_secs(5)).expect("a time"),
        time_scale: TimeScale::REAL,
    }
}
