//! The daemon: carries out the head's orders, watches launches, reports. It decides nothing.
//!
//! ```text
//! head ◀─ Link ─▶ AgentSession ─ orders ─▶ Daemon ─ ToShim ─▶ Watcher (one for each launch) ─▶ shim
//!                      ▲                     │ ▲                  │
//!                      └────── facts ────────┘ └───── News ───────┘
//! ```
//! One task owns all state; watchers and the link only pass messages. A daemon that ends leaves its launches running, and one
//! that starts finds them again.

mod checkpoints;
mod launches;
mod link;
mod memory;
mod nursery;
mod orders;
mod renewal;
mod translate;
mod unreadable;
mod watcher;

use std::time::Duration;

use rota_core::time::Time;
use rota_transport::identity::{Credentials, IdentityError, JoinToken, Role};
use rota_transport::message::{BootId, Fact, Lineage, OrderId, Outcome, ToAgent, Welcome};
use rota_transport::quic::{self, CERTIFICATES_REPLACED, JoinError};
use rota_transport::session::{AgentIdentity, AgentOutput, AgentSession};
use rota_transport::value::Text;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use crate::accounts::{Accounts, AccountsError};
use crate::clock::now_ms;
use crate::launch::spec::Limits;
use crate::launch::{cgroup, devices, gpu_flag};
use crate::options::{AccountOptions, HeadOptions, LaunchOptions, LimitOption, NodeOptions, PlaceOptions};
use crate::probe::machines::MachinesError;
use crate::probe::{self, CpuPool, Node, ProbeError};
use crate::shim::control::ToShim;

use launches::Launches;
use link::{Link, LinkError};
pub use memory::{RunDir, RunDirError};
use nursery::Nursery;
use renewal::Renewal;
use watcher::News;

/// How long to wait before connecting again after a connection was lost: random, and less than this.
const LOST_WAIT: Duration = Duration::from_millis(500);
/// The same after the head refused the agent: longer, because an operator has to act first.
const REFUSED_WAIT: Duration = Duration::from_secs(5);
/// How long the agent's end may wait for its last message to leave.
const GOODBYE: Duration = Duration::from_millis(20);
/// How often the length of the head's journal is put on disk, if no launch does it before.
const KEEP_JOURNAL_EVERY_MS: u64 = 10_000;
/// The most ended jobs in one message.
const MOST_RECALLED: usize = 5_000;

/// All options of the agent.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The head and the certificate to reach it with.
    pub head: HeadOptions,
    /// What it gives to jobs.
    pub node: NodeOptions,
    /// The directories the agent uses.
    pub places: PlaceOptions,
    /// Container client, limits, and what else starting a job depends on.
    pub launch: LaunchOptions,
    /// Who jobs run as.
    pub accounts: AccountOptions,
}

/// An agent that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// No head was named.
    #[error("no head is given; name it with --head HOST:PORT")]
    NoHead,
    /// The agent's certificate or key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// No certificate was to be had with the token.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A run directory that cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// A table of accounts that cannot be used.
    #[error("the table of accounts: {0}")]
    Accounts(#[from] AccountsError),
    /// A machine list that cannot be used.
    #[error("the machine list: {0}")]
    Machines(#[from] MachinesError),
    /// GPUs or CPUs that are not there.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Limits were required, and cannot be enforced.
    #[error("limits cannot be enforced: {0}; `--limits auto` runs without where it must")]
    Limits(crate::launch::LaunchError),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What the agent was about to do.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Serves a head until a signal ends it; launches go on without the agent.
pub async fn run(mut options: DaemonOptions) -> Result<(), DaemonError> {
    let head = options.head.head.clone().ok_or(DaemonError::NoHead)?;
    let credentials = credentials(&options.head, &head).await?;
    let accounts = Accounts::open(&options.accounts)?;
    if accounts.differ() {
        // Others may pass through the run directory: what is made in it is for its owner alone, unless it says otherwise.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    }
    let run_dir = RunDir::open(&options.places.run_dir, accounts.differ())?;
    run_dir.path().clone_into(&mut options.places.run_dir);
    let listed = options.node.take_machine()?.map(|address| address.to_string());
    let node = probe::node(&options.node)?;
    let limits = limits(options.launch.limits, &node)?;
    let way = gpu_flag::find(&options.launch, node.is_emulated);
    info!("containers are given GPUs {}", way.how);
    options.launch.container_gpu_flag = way.flag;
    let name = credentials.identity().name.clone();
    info!("rota-agent {} is {name}: {}", env!("CARGO_PKG_VERSION"), summary(&node));
    match accounts.is_doubtful() {
        true => warn!("{}", accounts.text()),
        false => info!("{}", accounts.text()),
    }
    let address = options.launch.address.clone().or(listed).unwrap_or_else(host_name);
    let identity = AgentIdentity {
        name,
        version: Text::cut(env!("CARGO_PKG_VERSION")),
        address: Text::cut(&address),
        boot: BootId(rand::random()),
        instance: run_dir.instance(),
    };
    let (news, arrivals) = mpsc::unbounded_channel();
    let (finished, outcomes) = mpsc::unbounded_channel();
    let mut daemon = Daemon::new(options, accounts, run_dir, node, limits, identity, news, finished);
    daemon.find_launches();
    daemon.serve(&head, arrivals, outcomes).await
}

/// The agent's certificate: the one that is there, or one that it gets with its token.
async fn credentials(options: &HeadOptions, head: &str) -> Result<Credentials, DaemonError> {
    let identity = &options.identity;
    match &options.token {
        Some(token) if !identity.join("cert.pem").exists() => {
            let joined = quic::join(head, &JoinToken::parse(token)?, identity).await?;
            info!(
                "joined the cluster as {}; the certificate is in {}",
                joined.identity(),
                identity.display()
            );
            Ok(Credentials::load_for(identity, Role::Agent)?)
        }
        _ => Ok(Credentials::load_for(identity, Role::Agent)?),
    }
}

/// The agent's state.
struct Daemon {
    options: DaemonOptions,
    accounts: Accounts,
    run_dir: RunDir,
    node: Node,
    limits: Limits,
    /// Whether launches cannot open the devices of GPUs that they were not given.
    hides_devices: bool,
    session: AgentSession,
    launches: Launches,
    cpus: CpuPool,
    news: mpsc::UnboundedSender<News>,
    /// Results of orders that are carried out in their own tasks, on their way back to the main loop.
    finished: mpsc::UnboundedSender<(OrderId, Outcome)>,
    nursery: Nursery,
    link: Option<Link>,
    /// Asks for a new certificate.
    renew: Option<mpsc::Sender<()>>,
    /// A link is to be made after this wait.
    wants_link: Option<Duration>,
    /// Until when launches may run without a head, as the shims were last told; the inner none is for ever.
    told_until: Option<Option<Time>>,
    /// When the length of the head's journal was last put on disk.
    journal_kept_ms: u64,
}

impl Daemon {
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a part that was opened before, and there is one caller"
    )]
    fn new(
        options: DaemonOptions,
        accounts: Accounts,
        run_dir: RunDir,
        node: Node,
        limits: Limits,
        identity: AgentIdentity,
        news: mpsc::UnboundedSender<News>,
        finished: mpsc::UnboundedSender<(OrderId, Outcome)>,
    ) -> Self {
        let session = AgentSession::new(identity, run_dir.memory());
        let cpus = CpuPool::new(&node.cpus, &node.topology, options.node.cpu_order);
        let launches = Launches::default();
        let hides_devices = hides_devices(options.launch.limits, &node);
        Daemon {
            options,
            accounts,
            run_dir,
            node,
            limits,
            hides_devices,
            session,
            launches,
            cpus,
            news,
            finished,
            nursery: Nursery::new(),
            link: None,
            renew: None,
            wants_link: None,
            told_until: None,
            journal_kept_ms: 0,
        }
    }

    async fn serve(
        &mut self,
        head: &str,
        mut arrivals: mpsc::UnboundedReceiver<News>,
        mut outcomes: mpsc::UnboundedReceiver<(OrderId, Outcome)>,
    ) -> Result<(), DaemonError> {
        let catch =
            |kind| signal(kind).map_err(|source| DaemonError::System { what: "catching signals", source });
        let (mut terminate, mut interrupt) =
            (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
        let every_s = self.options.node.health_every.as_secs_f64().clamp(0.1, 3600.0);
        let mut health = tokio::time::interval(Duration::from_secs_f64(every_s));
        let (opened, mut links) = mpsc::channel(1);
        let most = self.options.head.retry_at_most;
        let identity = self.options.head.identity.clone();
        let open = |wait: Duration| {
            let (identity, head, opened) = (identity.clone(), head.to_owned(), opened.clone());
            tokio::spawn(async move {
                // If the receiver is gone, the agent is ending.
                let _ = opened.send(Link::open(&identity, &head, wait, most).await).await;
            });
        };
        let (changed, mut certificates) = mpsc::channel(1);
        let (renew, wanted) = mpsc::channel(1);
        self.renew = Some(renew);
        let renewal = Renewal { identity: identity.clone(), head: head.to_owned(), changed, wanted };
        tokio::spawn(renewal.keep());
        open(Duration::ZERO);
        loop {
            let due = self.session.timeout().map_or(Duration::from_secs(1), from_now);
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                Some(link) = links.recv() => self.connected(link),
                message = receive(&mut self.link) => match message {
                    Ok(message) => self.take_message(message),
                    Err(error) => self.disconnected(&error.to_string()),
                },
                Some(news) = arrivals.recv() => self.take_news(news),
                Some((order, outcome)) = outcomes.recv() => {
                    self.act(|session, now, out| session.order_done(now, order, outcome, out));
                }
                Some(()) = certificates.recv() => self.hang_up("a new certificate", Duration::ZERO),
                _ = health.tick() => self.look_at_gpus(),
                () = tokio::time::sleep(due) => self.act(|session, now, out| session.tick(now, out)),
            }
            if let Some(wait) = self.wants_link.take() {
                open(wait);
            }
        }
        self.leave().await;
        Ok(())
    }

    fn connected(&mut self, link: Link) {
        self.link = Some(link);
        self.act(|session, now, out| session.connected(now, out));
    }

    fn disconnected(&mut self, why: &str) {
        warn!("{why}; connecting again");
        if why.contains(CERTIFICATES_REPLACED)
            && let Some(renew) = &self.renew
        {
            // If it is full, a renewal is already asked for.
            let _ = renew.try_send(());
        }
        self.hang_up(why, LOST_WAIT);
    }

    fn hang_up(&mut self, why: &str, wait: Duration) {
        self.session.disconnected();
        if let Some(link) = self.link.take() {
            link.close(why);
            self.wants_link = Some(wait);
        }
    }

    /// Ends; launches go on, and the next agent finds them.
    async fn leave(&mut self) {
        info!("leaving; {} launches keep running", self.launches.n_live());
        if let Some(link) = self.link.take() {
            link.close("the agent ends");
            // The message leaves when the connection's task runs next; without it the head would wait for heartbeats.
            tokio::time::sleep(GOODBYE).await;
        }
    }

    fn take_message(&mut self, message: ToAgent) {
        let mut out = Vec::new();
        match self.session.handle(now(), message, &mut out) {
            Ok(()) => self.carry_out(out),
            Err(error) => {
                error!("{error}");
                self.hang_up(&error.to_string(), REFUSED_WAIT);
            }
        }
    }

    /// Runs a step of the session, and carries out what follows from it.
    fn act(&mut self, act: impl FnOnce(&mut AgentSession, Time, &mut Vec<AgentOutput>)) {
        let mut out = Vec::new();
        act(&mut self.session, now(), &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: Vec<AgentOutput>) {
        for output in out {
            match output {
                AgentOutput::Send(message) => {
                    if let Some(link) = &self.link {
                        link.send(message);
                    }
                }
                AgentOutput::Welcomed(welcome) => self.welcomed(welcome),
                AgentOutput::Refused(text) => {
                    error!("the head refuses this agent: {text}");
                    self.hang_up("refused", REFUSED_WAIT);
                }
                AgentOutput::Execute { order, task } => self.execute(order, task),
                AgentOutput::LeaseOver => {
                    let left_s = self.session.work_until().map(|until| (until - now()).as_secs_f64());
                    match left_s {
                        Some(left_s) if left_s > 0.0 => {
                            warn!("the lease has expired; launches go on for {left_s:.0} s without the head");
                        }
                        Some(_) => {
                            warn!("the lease has expired; launches that do not ask to be kept are stopped")
                        }
                        None => warn!("the lease has expired; launches go on without the head"),
                    }
                }
                AgentOutput::HangUp => self.disconnected("the head does not answer"),
            }
        }
        self.pass_on_lease();
        self.keep_journal(now_ms(), KEEP_JOURNAL_EVERY_MS);
    }

    fn welcomed(&mut self, welcome: Welcome) {
        // On disk before any order is carried out: from now on, heads of a lower epoch are refused.
        if let Err(error) = self.run_dir.set_terms(welcome.epoch, welcome.lease.span(), welcome.mark) {
            error!("{error}");
            return self.hang_up(&error.to_string(), REFUSED_WAIT);
        }
        if let Some(link) = &mut self.link {
            link.receiver.trust();
        }
        info!(epoch = %welcome.epoch, "connected to the head");
        if welcome.replaces != Lineage::NONE {
            warn!("an operator has accepted a restored state: the head is told what it may not know");
            self.tell_history();
        }
        self.send_inventory();
    }

    /// Tells a head with a restored state which jobs have ended here, and where what runs comes from.
    fn tell_history(&mut self) {
        for jobs in self.run_dir.recalled().chunks(MOST_RECALLED) {
            let jobs = jobs.to_vec();
            self.act(|session, _, out| session.recall(jobs, out));
        }
        for origin in self.launches.origins() {
            self.act(|session, _, out| session.origin(origin, out));
        }
    }

    /// How far the head's journal is, as far as the disk shall know: an agent that is started again must recognise an older
    /// copy of the head's state.
    fn keep_journal(&mut self, now_ms: u64, most_age_ms: u64) {
        if now_ms < self.journal_kept_ms + most_age_ms {
            return;
        }
        self.journal_kept_ms = now_ms;
        if let Err(error) = self.run_dir.set_journal(self.session.memory().mark.journal) {
            warn!("{error}");
        }
    }

    fn send_inventory(&mut self) {
        let attempts = self.launches.infos(&self.node);
        let inventory = translate::inventory(&self.node, self.options.node.rack, attempts);
        self.act(|session, _, out| session.inventory(inventory, out));
    }

    /// Shims stop launches that may run no longer by themselves: agent and head may both be gone by then. They only need to
    /// know when. Before a head has answered, what an earlier agent told them holds.
    fn pass_on_lease(&mut self) {
        let until = self.session.work_until();
        if self.session.has_terms() && self.told_until != Some(until) {
            self.told_until = Some(until);
            self.launches.tell_all(&ToShim::Lease(until.map(millis_of)));
        }
    }

    fn report(&mut self, fact: Fact) {
        self.act(|session, now, out| session.report(now, fact, out));
    }

    fn look_at_gpus(&mut self) {
        let trouble = match self.node.is_emulated {
            true => probe::pretended_trouble(&self.run_dir.path().join(probe::BAD_GPUS_FILE)),
            false => match probe::trouble() {
                Ok(trouble) => trouble,
                Err(_) => return,
            },
        };
        let mut facts = Vec::new();
        for (index, gpu) in self.node.gpus.iter_mut().enumerate() {
            let now = trouble.iter().find(|(number, _)| *number == gpu.number).map(|(_, why)| why.clone());
            let index = index as u32;
            match (&gpu.trouble, &now) {
                (None, Some(why)) => facts.push(Fact::GpuUnhealthy { index, reason: Text::cut(why) }),
                (Some(_), None) => facts.push(Fact::GpuHealthy { index }),
                _ => {}
            }
            gpu.trouble = now;
        }
        facts.into_iter().for_each(|fact| self.report(fact));
    }
}

/// The next message; waits for ever without a link.
async fn receive(link: &mut Option<Link>) -> Result<ToAgent, LinkError> {
    match link {
        Some(link) => link.receive().await,
        None => std::future::pending().await,
    }
}

/// The session's clock.
fn now() -> Time {
    Time(i64::try_from(now_ms()).unwrap_or(i64::MAX / 1_000) * 1_000)
}

fn millis_of(time: Time) -> u64 {
    u64::try_from(time.0 / 1_000).unwrap_or(0)
}

fn from_now(time: Time) -> Duration {
    Duration::from_micros(u64::try_from((time - now()).0).unwrap_or(0))
}

fn limits(option: LimitOption, node: &Node) -> Result<Limits, DaemonError> {
    let is_pretended = node.cpus.is_empty();
    match (option, cgroup::support()) {
        (LimitOption::Never, _) => Ok(Limits::Told),
        (LimitOption::Auto, _) if is_pretended => Ok(Limits::Told),
        (_, Ok(_)) => Ok(Limits::Enforced),
        (LimitOption::Always, Err(error)) => Err(DaemonError::Limits(error)),
        (LimitOption::Auto, Err(error)) => {
            warn!("CPU and memory limits are not enforced on this node: {error}");
            Ok(Limits::Told)
        }
    }
}

/// Whether other GPUs' devices are hidden from launches; emulated GPUs have no devices.
fn hides_devices(option: LimitOption, node: &Node) -> bool {
    if node.is_emulated || option == LimitOption::Never {
        return false;
    }
    match devices::support() {
        Ok(_) => true,
        Err(error) => {
            warn!("jobs can open the devices of GPUs that they were not given: {error}");
            false
        }
    }
}

fn summary(node: &Node) -> String {
    let kind = if node.is_emulated { "emulated " } else { "" };
    let model = node.gpus.first().map_or("none", |gpu| gpu.model.as_str());
    format!("{} {kind}GPUs ({model}), {}", node.gpus.len(), node.host)
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
