//! One head, one agent, the network between them, and the records that show whether promises were kept.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_core::ids::{Incarnation, JobId};
use rota_core::time::{Span, Time};
use rota_transport::message::{
    Attempt, BootId, Epoch, Fact, Inventory, OrderId, Outcome, Task, ToAgent, ToHead,
};
use rota_transport::session::{
    AgentIdentity, AgentMemory, AgentOutput, AgentSession, HeadOutput, HeadSession, SeenReports, Terms,
};
use rota_transport::value::{Iterations, Name, Text};

const STEP: Span = Span(50_000);
const TROUBLE: Time = Time(120_000_000);
const END: Time = Time(300_000_000);

/// What goes wrong.
#[derive(Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) doubling: f64,
    pub(crate) most_delay_ms: i64,
    pub(crate) cuts: bool,
    pub(crate) crashes: bool,
}

enum Letter {
    ToHead(ToHead),
    ToAgent(ToAgent),
}

pub(crate) struct World {
    seed: u64,
    faults: Faults,
    random: StdRng,
    now: Time,
    /// Letters under way: when they arrive, on which connection.
    letters: Vec<(Time, u64, Letter)>,
    connection: u64,
    is_connected: bool,
    cut_until: Time,
    head: HeadSession,
    epoch: Epoch,
    /// Reports in the head's journal: boot and number of the fact.
    written: Vec<(BootId, u32)>,
    /// Reports handed to the head and not yet in its journal.
    to_write: Vec<(Time, SeenReports, u32)>,
    seen: SeenReports,
    agent: AgentSession,
    boot: BootId,
    /// The agent's clock runs that many times as fast as the head's.
    drift: f64,
    /// Orders given in this epoch to this boot, by their marks, and those carried out.
    given: Vec<u32>,
    carried_out: Vec<u32>,
    all_carried_out: BTreeSet<(Epoch, BootId, OrderId)>,
    settled: BTreeSet<u32>,
    /// Facts of this boot.
    said: Vec<u32>,
    next_mark: u32,
    n_leases_over: usize,
}

fn mark(job: u32) -> Attempt {
    Attempt { job: JobId(job), incarnation: Incarnation(1) }
}

fn order(job: u32) -> Task {
    Task::Checkpoint { attempt: mark(job) }
}

fn agent(boot: BootId, memory: AgentMemory) -> AgentSession {
    let text = |text| Text::new(text).expect("short");
    let name = Name::new("node0").expect("a name");
    let instance = rota_transport::message::InstanceId(1);
    AgentSession::new(
        AgentIdentity { name, version: text("1"), address: text("here"), boot, instance },
        memory,
    )
}

fn head(epoch: Epoch, seen: SeenReports, heard_at: Option<Time>) -> HeadSession {
    HeadSession::new(Name::new("node0").expect("a name"), epoch, Terms::default(), seen, heard_at)
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let drift = random.random_range(0.98..1.02);
        let (boot, epoch) = (BootId(1), Epoch(1));
        World {
            seed,
            faults,
            random,
            now: Time::ZERO,
            letters: Vec::new(),
            connection: 0,
            is_connected: false,
            cut_until: Time::ZERO,
            head: head(epoch, SeenReports::default(), None),
            epoch,
            written: Vec::new(),
            to_write: Vec::new(),
            seen: SeenReports::default(),
            agent: agent(boot, AgentMemory::default()),
            boot,
            drift,
            given: Vec::new(),
            carried_out: Vec::new(),
            all_carried_out: BTreeSet::new(),
            settled: BTreeSet::new(),
            said: Vec::new(),
            next_mark: 0,
            n_leases_over: 0,
        }
    }

    /// Runs through the trouble and a calm time after it; how many leases were over on the way.
    pub(crate) fn run(mut self) -> usize {
        while self.now < END {
            if self.now < TROUBLE {
                self.make_trouble();
                self.make_work();
            }
            self.deliver();
            self.write_down();
            self.tick();
            self.now = self.now + STEP;
        }
        self.assert_settled();
        self.n_leases_over
    }

    fn agent_time(&self) -> Time {
        Time((self.now.0 as f64 * self.drift) as i64)
    }

    fn make_trouble(&mut self) {
        if self.faults.cuts && self.random.random_bool(0.002) {
            let seconds = if self.random.random_bool(0.5) { 1..10 } else { 15..40 };
            self.cut_until = self.now + Span::from_secs(self.random.random_range(seconds));
        }
        // QUIC gives a silent connection up; here it happens at any moment.
        if self.is_connected && self.random.random_bool(0.005) {
            self.hang_up();
        }
        if self.faults.crashes && self.random.random_bool(0.002) {
            self.hang_up();
            self.boot = BootId(self.boot.0 + 1);
            self.agent = agent(self.boot, self.agent.memory().clone());
            (self.given, self.carried_out, self.said) = Default::default();
        }
        if self.faults.crashes && self.random.random_bool(0.002) {
            self.hang_up();
            self.epoch = self.epoch.next();
            self.to_write.clear();
            self.head = head(self.epoch, self.seen, Some(self.now));
            (self.given, self.carried_out) = Default::default();
        }
    }

    fn make_work(&mut self) {
        if self.random.random_bool(0.05) {
            self.next_mark += 1;
            let mut out = Vec::new();
            self.given.push(self.next_mark);
            self.head.order(self.now, order(self.next_mark), &mut out);
            self.head_says(out);
        }
        if self.random.random_bool(0.05) {
            self.next_mark += 1;
            let mut out = Vec::new();
            self.said.push(self.next_mark);
            let (now, iterations) = (self.agent_time(), Iterations::NONE);
            self.agent.report(now, Fact::Progressed { attempt: mark(self.next_mark), iterations }, &mut out);
            self.agent_says(out);
        }
    }

    fn hang_up(&mut self) {
        self.is_connected = false;
        self.head.disconnected();
        self.agent.disconnected();
    }

    fn send(&mut self, letter: impl Fn() -> Letter) {
        let (loss, doubling, most) = match self.now < TROUBLE {
            true => (self.faults.loss, self.faults.doubling, self.faults.most_delay_ms),
            false => (0.0, 0.0, 5),
        };
        let n_copies = 1 + usize::from(self.random.random_bool(doubling));
        for _ in 0..n_copies {
            let is_lost = self.now < self.cut_until || self.random.random_bool(loss);
            let arrives = self.now + Span(self.random.random_range(1..=most) * 1000);
            if !is_lost {
                self.letters.push((arrives, self.connection, letter()));
            }
        }
    }

    fn deliver(&mut self) {
        if !self.is_connected && self.now >= self.cut_until {
            (self.is_connected, self.connection) = (true, self.connection + 1);
            self.head.connected();
            let mut out = Vec::new();
            self.agent.connected(self.agent_time(), &mut out);
            self.agent_says(out);
        }
        let (due, later) = std::mem::take(&mut self.letters).into_iter().partition(|l| l.0 <= self.now);
        self.letters = later;
        let mut due: Vec<_> = due;
        due.sort_by_key(|(at, _, _)| *at);
        for (_, connection, letter) in due {
            // Old connections are dead, and nothing is read from a closed one.
            if connection != self.connection || !self.is_connected {
                continue;
            }
            match letter {
                Letter::ToHead(message) => {
                    let mut out = Vec::new();
                    let is_good = self.head.handle(self.now, message, &mut out).is_ok();
                    self.head_says(out);
                    if !is_good {
                        self.hang_up();
                    }
                }
                Letter::ToAgent(message) => {
                    let mut out = Vec::new();
                    let is_good = self.agent.handle(self.agent_time(), message, &mut out).is_ok();
                    self.agent_says(out);
                    if !is_good {
                        self.hang_up();
                    }
                }
            }
        }
    }

    /// The disk is slow: what is handed out is written some time later, in order.
    fn write_down(&mut self) {
        while self.to_write.first().is_some_and(|(at, _, _)| *at <= self.now) {
            let (_, seen, fact) = self.to_write.remove(0);
            self.written.push((seen.boot, fact));
            self.seen = seen;
            let mut out = Vec::new();
            self.head.acknowledge(seen, &mut out);
            self.head_says(out);
        }
    }

    fn tick(&mut self) {
        let mut out = Vec::new();
        self.head.tick(self.now, &mut out);
        self.head_says(out);
        let mut out = Vec::new();
        self.agent.tick(self.agent_time(), &mut out);
        self.agent_says(out);
    }

    fn head_says(&mut self, out: Vec<HeadOutput>) {
        for output in out {
            match output {
                HeadOutput::Send(message) => self.send(|| Letter::ToAgent(message.clone())),
                HeadOutput::OrderDone { task: Task::Checkpoint { attempt }, outcome, .. } => {
                    assert_eq!(outcome, Outcome::Done);
                    let is_new = self.settled.insert(attempt.job.0);
                    assert!(is_new, "seed {}: order {} was settled twice", self.seed, attempt.job);
                }
                HeadOutput::Fact { seen, fact: Fact::Progressed { attempt, .. } } => {
                    let at = self.now + Span(self.random.random_range(0..400_000));
                    let at = self.to_write.last().map_or(at, |(last, _, _)| at.max(*last));
                    self.to_write.push((at, seen, attempt.job.0));
                }
                HeadOutput::LeaseOver => {
                    self.n_leases_over += 1;
                    let held = self.agent.lease_until().filter(|until| *until > self.agent_time());
                    assert_eq!(held, None, "seed {}: the agent's lease outlives the head's", self.seed);
                    self.hang_up();
                }
                HeadOutput::Joined { forgotten, .. } => {
                    self.given.retain(|mark_given| !forgotten.contains(&order(*mark_given)));
                }
                HeadOutput::Inventory(_) | HeadOutput::Silent => {}
                other => panic!("seed {}: {other:?}", self.seed),
            }
        }
    }

    fn agent_says(&mut self, out: Vec<AgentOutput>) {
        for output in out {
            match output {
                AgentOutput::Send(message) => self.send(|| Letter::ToHead(message.clone())),
                AgentOutput::Welcomed(_) => {
                    let mut out = Vec::new();
                    self.agent.inventory(Inventory::default(), &mut out);
                    self.agent_says(out);
                }
                AgentOutput::Execute { order, task: Task::Checkpoint { attempt } } => {
                    let is_new = self.all_carried_out.insert((self.epoch, self.boot, order));
                    assert!(is_new, "seed {}: order {order} was carried out twice", self.seed);
                    self.carried_out.push(attempt.job.0);
                    let mut out = Vec::new();
                    self.agent.order_done(self.agent_time(), order, Outcome::Done, &mut out);
                    self.agent_says(out);
                }
                AgentOutput::HangUp => self.hang_up(),
                AgentOutput::LeaseOver => {}
                other => panic!("seed {}: {other:?}", self.seed),
            }
        }
    }

    /// After a calm time, all that was ordered is carried out, in order, and all that was said is written down.
    fn assert_settled(&self) {
        let seed = self.seed;
        assert_eq!(self.carried_out, self.given, "seed {seed}: orders carried out and given");
        assert_eq!(self.head.n_outstanding(), 0, "seed {seed}: orders without an outcome");
        let missing = self.given.iter().find(|order| !self.settled.contains(order));
        assert_eq!(missing, None, "seed {seed}: an order whose outcome nobody heard");
        let of_this_boot: Vec<_> =
            self.written.iter().filter(|(boot, _)| *boot == self.boot).map(|(_, fact)| *fact).collect();
        assert_eq!(of_this_boot, self.said, "seed {seed}: what was written and what was said");
        let all: BTreeSet<_> = self.written.iter().collect();
        assert_eq!(all.len(), self.written.len(), "seed {seed}: a report was written twice");
    }
}
