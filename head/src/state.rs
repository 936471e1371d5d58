//! The head between its inputs: sessions with agents, launches under way, and the books.
//!
//! No socket, disk or clock: times are arguments, and what shall happen outside is left in `writes` and `sends`. The engine writes first and sends afterwards, so that nobody hears of what could be forgotten.

use std::collections::BTreeMap;

use rota_core::allocation::GpuSet;
use rota_core::ids::NodeId;
use rota_core::time::Time;
use rota_transport::message::{
    Attempt, Epoch, Fact, Inventory, LogChunk, OnHeadLost, OrderId, Outcome, Task, ToAgent, ToHead,
};
use rota_transport::session::{HeadOutput, HeadSession, SeenReports, SessionError, Terms};
use rota_transport::value::{Name, Text, TimeScale};

use super::books::Books;
use super::copies::Copies;
use super::fleet::{Fleet, LaunchPhase, Live, Rank};
use super::record::{NodeHas, Record};
use super::store::Write;

/// Both times of a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The head's time: that of jobs, rounds and the journal.
    pub(super) now: Time,
    /// Real time since the head started: that of leases and heartbeats.
    pub(super) real: Time,
}

/// What the head knows of an agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) session: HeadSession,
    pub(super) node: Option<NodeId>,
    pub(super) address: Text,
    pub(super) version: Text,
    pub(super) is_silent: bool,
    /// Whether what it has and runs was heard since it connected.
    pub(super) is_known: bool,
    pub(super) since: Time,
    pub(super) reason: String,
}

/// The head's state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) epoch: Epoch,
    pub(super) terms: Terms,
    pub(super) time_scale: TimeScale,
    pub(super) books: Books,
    pub(super) fleet: Fleet,
    pub(super) copies: Copies,
    pub(super) agents: BTreeMap<Name, Agent>,
    /// To be written.
    pub(super) writes: Vec<Write>,
    /// To be sent once that is written.
    pub(super) sends: Vec<(Name, ToAgent)>,
    /// Output that arrived: the order that asked for it, and the piece.
    pub(super) logs: Vec<(Name, OrderId, LogChunk)>,
    /// Outcomes of orders for output, when there is none.
    pub(super) log_failures: Vec<(Name, OrderId, String)>,
}

impl State {
    /// The state after a start: books from the journal, agents that may hold a lease.
    pub(super) fn new(
        epoch: Epoch,
        terms: Terms,
        time_scale: TimeScale,
        books: Books,
        seen: Vec<(Name, SeenReports)>,
        moment: Moment,
    ) -> Self {
        let mut state = State {
            epoch,
            terms,
            time_scale,
            books,
            fleet: Fleet::default(),
            copies: Copies::default(),
            agents: BTreeMap::new(),
            writes: Vec::new(),
            sends: Vec::new(),
            logs: Vec::new(),
            log_failures: Vec::new(),
        };
        let seen: BTreeMap<_, _> = seen.into_iter().collect();
        for name in state.books.nodes.clone() {
            let Ok(name) = Name::new(name) else { continue };
            let seen = seen.get(&name).copied().unwrap_or_default();
            state.meet(&name, seen, Some(moment));
        }
        state.expect_what_ran();
        state
    }

    /// What the books say runs was ordered by an earlier head: the nodes' inventories will tell.
    fn expect_what_ran(&mut self) {
        let jobs = self.books.scheduler.jobs();
        for row in 0..jobs.len() {
            let allocation = jobs.allocation(row);
            if allocation.is_empty() {
                continue;
            }
            let mut live = Live::new(allocation.clone());
            live.phase = LaunchPhase::Starting;
            live.ranks.values_mut().for_each(|rank| *rank = Rank::Ordered);
            let attempt = Attempt { job: jobs.id(row), incarnation: jobs.incarnation(row) };
            let (kept, skipped) =
                self.books.job(attempt.job).map_or((0.0, 0.0), |job| (job.done, job.skipped));
            (live.checkpointed, live.iterations, live.begun, live.skipped) = (0.0, 0.0, kept, skipped);
            self.fleet.lives.insert(attempt, live);
        }
    }

    fn meet(&mut self, name: &Name, seen: SeenReports, moment: Option<Moment>) {
        let session =
            HeadSession::new(name.clone(), self.epoch, self.terms, seen, moment.map(|moment| moment.real));
        let agent = Agent {
            session,
            node: self.books.node(name.as_str()),
            address: Text::cut(""),
            version: Text::cut(""),
            is_silent: moment.is_some(),
            is_known: false,
            since: moment.map_or(Time::ZERO, |moment| moment.now),
            reason: "not heard of since the head started".into(),
        };
        self.agents.insert(name.clone(), agent);
    }

    /// Agents that are there and known.
    pub(super) fn n_agents_here(&self) -> usize {
        self.agents.values().filter(|agent| agent.session.is_open() && agent.is_known).count()
    }

    /// Writes a record down and makes it true.
    pub(super) fn record(&mut self, moment: Moment, record: Record) {
        let orders = self.books.apply(moment.now, &record).orders;
        self.writes.push(Write::Record(moment.now, record));
        self.announce_sizes(moment, &orders);
        for order in orders {
            self.carry_out(moment, order);
        }
    }

    /// An agent connected.
    pub(super) fn connected(&mut self, name: &Name) {
        if !self.agents.contains_key(name) {
            self.meet(name, SeenReports::default(), None);
        }
        if let Some(agent) = self.agents.get_mut(name) {
            agent.session.connected();
        }
    }

    /// An agent's connection is gone.
    pub(super) fn disconnected(&mut self, name: &Name) {
        if let Some(agent) = self.agents.get_mut(name) {
            agent.session.disconnected();
            agent.is_known = false;
        }
    }

    /// An agent said something.
    pub(super) fn heard(&mut self, moment: Moment, name: &Name, message: ToHead) -> Result<(), SessionError> {
        let Some(agent) = self.agents.get_mut(name) else { return Ok(()) };
        let mut out = Vec::new();
        let result = agent.session.handle(moment.real, message, &mut out);
        agent.is_silent = false;
        self.follow_up(moment, name, out);
        result
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, moment: Moment) {
        for name in self.agents.keys().cloned().collect::<Vec<_>>() {
            let mut out = Vec::new();
            if let Some(agent) = self.agents.get_mut(&name) {
                agent.session.tick(moment.real, &mut out);
            }
            self.follow_up(moment, &name, out);
        }
    }

    /// When `tick` has something to say, in real time.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.agents.values().filter_map(|agent| agent.session.timeout()).min()
    }

    /// Writes are on the disk: agents may forget what they reported.
    pub(super) fn written(&mut self, writes: &[Write]) {
        for write in writes {
            let Write::Seen(name, seen) = write else { continue };
            let Some(agent) = self.agents.get_mut(name) else { continue };
            let mut out = Vec::new();
            agent.session.acknowledge(*seen, &mut out);
            let sends = out.into_iter().filter_map(|output| match output {
                HeadOutput::Send(message) => Some((name.clone(), message)),
                _ => None,
            });
            self.sends.extend(sends);
        }
    }

    /// Gives an agent an order.
    pub(super) fn order(&mut self, moment: Moment, node: NodeId, task: Task) -> Option<(Name, OrderId)> {
        let (name, agent) = self.agents.iter_mut().find(|(_, agent)| agent.node == Some(node))?;
        let name = name.clone();
        let mut out = Vec::new();
        let id = agent.session.order(moment.real, task, &mut out);
        self.follow_up(moment, &name, out);
        Some((name, id))
    }

    fn follow_up(&mut self, moment: Moment, name: &Name, out: Vec<HeadOutput>) {
        for output in out {
            match output {
                HeadOutput::Send(message) => self.sends.push((name.clone(), message)),
                HeadOutput::Joined { hello, .. } => {
                    if let Some(agent) = self.agents.get_mut(name) {
                        (agent.address, agent.version) = (hello.address, hello.version);
                        (agent.since, agent.reason) = (moment.now, String::new());
                    }
                }
                HeadOutput::Inventory(inventory) => self.take_inventory(moment, name, &inventory),
                HeadOutput::OrderDone { order, task, outcome } => {
                    self.order_done(moment, name, order, &task, outcome);
                }
                HeadOutput::Fact { seen, fact } => {
                    self.take_fact(moment, name, fact);
                    self.writes.push(Write::Seen(name.clone(), seen));
                }
                HeadOutput::Log(chunk) => self.logs.push((name.clone(), chunk.order, chunk)),
                HeadOutput::Silent => {
                    if let Some(agent) = self.agents.get_mut(name) {
                        (agent.is_silent, agent.since) = (true, moment.now);
                        agent.reason = "no heartbeat; its lease is not over".into();
                    }
                }
                HeadOutput::LeaseOver => self.lose(moment, name),
            }
        }
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.books.scheduler.nodes().is_up.get(node.index()) == Some(&true)
    }

    fn node_of(&self, name: &Name) -> Option<NodeId> {
        self.agents.get(name).and_then(|agent| agent.node)
    }

    /// An agent's lease is over: what it ran is stopped, except what its owner wanted kept.
    fn lose(&mut self, moment: Moment, name: &Name) {
        let Some(agent) = self.agents.get_mut(name) else { return };
        agent.is_known = false;
        (agent.since, agent.reason) = (moment.now, "its lease is over".into());
        let Some(node) = agent.node else { return };
        for attempt in self.fleet.on_node(node) {
            let keeps = self.books.job(attempt.job).map(|job| job.request.start.on_head_lost);
            if keeps != Some(OnHeadLost::Keep) {
                self.rank_gone(attempt, node, false);
            }
        }
        if self.is_up(node) {
            let reason = format!("{name} was not heard of for its whole lease");
            self.record(moment, Record::NodeLost { node, reason });
        }
        self.copies_lost(moment, node);
        for attempt in self.fleet.lives.keys().copied().collect::<Vec<_>>() {
            self.conclude(moment, attempt);
        }
    }

    fn take_inventory(&mut self, moment: Moment, name: &Name, inventory: &Inventory) {
        let Some(node) = self.settle_node(moment, name, inventory) else { return };
        for info in &inventory.attempts {
            self.take_attempt(moment, node, info);
        }
        // What the node does not know of is gone, unless it was only just ordered.
        for attempt in self.fleet.on_node(node) {
            let is_there = inventory.attempts.iter().any(|info| info.attempt == attempt);
            let is_on_its_way =
                self.agents.get(name).is_some_and(|agent| agent.session.awaits_launch(attempt));
            if !is_there && !is_on_its_way {
                self.fail(moment, attempt, format!("{name} does not know of it any more"), false);
                self.rank_gone(attempt, node, false);
                self.conclude(moment, attempt);
            }
        }
    }

    /// A node as it presents itself: new, back, or other than it was.
    fn settle_node(&mut self, moment: Moment, name: &Name, inventory: &Inventory) -> Option<NodeId> {
        let first = inventory.gpus.first();
        let has = NodeHas {
            gpu_type: first.map_or_else(String::new, |gpu| gpu.model.to_string()),
            n_gpus: inventory.gpus.len() as u32,
            gpu_mem_bytes: first.map_or(0, |gpu| gpu.mem_bytes),
            host: inventory.host.map_or(rota_core::resources::Host::NONE, |host| host.host()),
        };
        let known = self.node_of(name);
        if known.is_none() && (1..=rota_core::cluster::MAX_GPUS_PER_NODE).contains(&has.n_gpus) {
            let node = NodeId::from(self.books.nodes.len());
            if let Some(agent) = self.agents.get_mut(name) {
                agent.node = Some(node);
            }
            let (name, rack) = (name.to_string(), inventory.rack);
            self.record(moment, Record::NodeJoined { node, name, rack, has: has.clone() });
        }
        let node = self.node_of(name);
        let expected =
            node.and_then(|node| self.books.scheduler.cluster().node(node)).map_or(0, |n| n.n_gpus);
        let agent = self.agents.get_mut(name)?;
        agent.is_known = true;
        if has.n_gpus != expected {
            let reason = format!("has {} GPUs, {expected} were expected", has.n_gpus);
            agent.reason.clone_from(&reason);
            if let Some(node) = node.filter(|node| self.is_up(*node)) {
                self.record(moment, Record::NodeLost { node, reason: format!("{name} {reason}") });
            }
            return node;
        }
        let node = node?;
        let is_up = self.is_up(node);
        if !is_up && !self.books.drained.contains(&node) {
            self.record(moment, Record::NodeReturned { node });
        }
        for (gpu, info) in (0..expected).zip(&inventory.gpus) {
            let reason = (!info.is_healthy).then_some("its agent says that it cannot be used");
            self.gpu_is(moment, name, node, gpu, reason);
        }
        Some(node)
    }

    /// A GPU is out of service for a reason, or in service; the books hear of a change.
    fn gpu_is(&mut self, moment: Moment, name: &Name, node: NodeId, gpu: u32, reason: Option<&str>) {
        let bad = self.books.scheduler.nodes().bad_gpus.get(&node);
        match (reason, bad.is_some_and(|bad| bad.contains(gpu))) {
            (Some(reason), false) => {
                let reason = reason.to_owned();
                self.record(moment, Record::GpuLost { node, gpu, reason });
            }
            (None, true) => self.record(moment, Record::GpuReturned { node, gpu }),
            _ => return,
        }
        let bad = self.books.scheduler.nodes().bad_gpus.get(&node).copied();
        let numbers: Vec<_> = bad.into_iter().flat_map(GpuSet::iter).map(|gpu| gpu.to_string()).collect();
        if let Some(agent) = self.agents.get_mut(name) {
            agent.reason = match (numbers.as_slice(), reason) {
                ([], _) => String::new(),
                ([one], Some(reason)) => format!("GPU {one} is out of service: {reason}"),
                _ => format!("GPUs {} are out of service", numbers.join(", ")),
            };
        }
    }

    fn order_done(&mut self, moment: Moment, name: &Name, order: OrderId, task: &Task, outcome: Outcome) {
        let Some(node) = self.node_of(name) else { return };
        match (task, outcome) {
            (Task::Launch(launch), Outcome::Prepared { port }) => {
                self.rank_is(moment, launch.attempt, node, Rank::Prepared(port));
            }
            (Task::Launch(launch), Outcome::Failed(why)) => {
                self.fail(moment, launch.attempt, format!("{name} could not start it: {why}"), true);
                self.rank_gone(launch.attempt, node, false);
                self.conclude(moment, launch.attempt);
            }
            (Task::Go { attempt, .. }, Outcome::Failed(why)) => {
                self.fail(moment, *attempt, format!("{name} could not start it: {why}"), true);
            }
            (Task::ReadLog { .. }, Outcome::Failed(why)) => {
                self.log_failures.push((name.clone(), order, why.to_string()));
            }
            (task, outcome) => self.copy_done(moment, name, task, outcome),
        }
    }

    fn take_fact(&mut self, moment: Moment, name: &Name, fact: Fact) {
        let Some(node) = self.node_of(name) else { return };
        match fact {
            Fact::Started(attempt) => self.rank_is(moment, attempt, node, Rank::Up),
            Fact::Progressed { attempt, iterations } => {
                if let Some(live) = self.fleet.lives.get_mut(&attempt) {
                    live.iterations = live.iterations.max(iterations.count());
                    live.progress = Some(live.iterations);
                }
            }
            Fact::Checkpointed { attempt, iterations } => {
                self.checkpointed(moment, attempt, iterations.count())
            }
            Fact::Exited(exited) => self.exited(moment, node, &exited),
            Fact::GpuUnhealthy { index, reason } => {
                self.gpu_is(moment, name, node, index, Some(reason.as_str()));
            }
            Fact::GpuHealthy { index } => self.gpu_is(moment, name, node, index, None),
            Fact::Warning(text) => {
                self.record(moment, Record::Noted { text: format!("{name}: {text}") });
            }
        }
    }

    /// Jobs that were held until the head was ready.
    pub(super) fn release_held(&mut self, moment: Moment) {
        let held: Vec<_> = self.books.held.iter().copied().collect();
        for job in held {
            self.record(moment, Record::JobSubmitted { job });
        }
    }
}
