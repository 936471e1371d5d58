//! The agents and the session with each: who is connected, who is silent, which node is whose.

use std::collections::{BTreeMap, VecDeque};

use rota_core::ids::NodeId;
use rota_core::time::Time;
use rota_transport::message::{
    Attempt, BootId, Epoch, Hello, InstanceId, Lineage, OrderId, StateMark, Task, ToHead,
};
use rota_transport::session::{HeadOutput, HeadSession, SeenReports, SessionError, Terms};
use rota_transport::value::{Name, Text};

use super::Moment;
use super::outbox::Outbox;

/// How many earlier boots of an agent are remembered.
const MOST_SUPERSEDED: usize = 16;

/// What the head knows of an agent.
#[derive(Debug)]
pub(crate) struct Agent {
    session: HeadSession,
    node: Option<NodeId>,
    address: Text,
    version: Text,
    is_silent: bool,
    /// Whether it has sent its inventory since it connected.
    is_known: bool,
    /// Whether its lease is over, and it is not lost yet.
    is_cut_off: bool,
    since: Time,
    reason: String,
    /// The run directory it is served from.
    instance: InstanceId,
    /// Boots that another one from the same run directory took the place of.
    superseded: VecDeque<BootId>,
    /// Whether it served a state that this head's took the place of.
    is_replaced: bool,
}

impl Agent {
    /// The node it keeps; none before it has joined.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node
    }

    pub(crate) fn version(&self) -> &Text {
        &self.version
    }

    /// Whether its heartbeats have stopped.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Whether it has said what it has and runs since it connected.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Until when its lease lasts, in real time; none when it is over.
    pub(super) fn lease_until(&self) -> Option<Time> {
        self.session.lease_until()
    }

    pub(super) fn instance(&self) -> InstanceId {
        self.instance
    }

    pub(super) fn is_superseded(&self, boot: BootId) -> bool {
        self.superseded.contains(&boot)
    }

    /// When its state last changed, in the head's time.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// What is wrong with it, for people; empty if nothing is.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn set_reason(&mut self, reason: String) {
        self.reason = reason;
    }

    pub(super) fn joined(&mut self, now: Time, hello: Hello) {
        (self.address, self.version) = (hello.address, hello.version);
        (self.since, self.reason) = (now, String::new());
        self.is_cut_off = false;
    }

    pub(super) fn gave_inventory(&mut self) {
        self.is_known = true;
    }

    pub(super) fn fell_silent(&mut self, now: Time) {
        (self.is_silent, self.since) = (true, now);
        self.reason = "no heartbeat; its lease is not over".into();
    }

    pub(super) fn lost_its_lease(&mut self, now: Time, reason: String) {
        (self.is_known, self.is_cut_off) = (false, true);
        (self.since, self.reason) = (now, reason);
    }

    /// Whether its lease is over, and it is not lost yet.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    pub(super) fn is_lost(&mut self, now: Time, reason: String) {
        self.is_cut_off = false;
        (self.since, self.reason) = (now, reason);
    }

    /// When its last message arrived, in real time.
    pub(super) fn last_heard(&self) -> Option<Time> {
        self.session.last_heard()
    }

    /// Whether it was ordered to launch this and has not answered.
    pub(super) fn awaits_launch(&self, attempt: Attempt) -> bool {
        self.session.awaits_launch(attempt)
    }
}

/// All agents that ever connected.
#[derive(Debug)]
pub(crate) struct Agents {
    epoch: Epoch,
    terms: Terms,
    by_name: BTreeMap<Name, Agent>,
}

impl Agents {
    pub(super) fn new(epoch: Epoch, terms: Terms) -> Self {
        Agents { epoch, terms, by_name: BTreeMap::new() }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &Agent)> {
        self.by_name.iter()
    }

    pub(crate) fn get(&self, name: &Name) -> Option<&Agent> {
        self.by_name.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &Name) -> Option<&mut Agent> {
        self.by_name.get_mut(name)
    }

    pub(super) fn names(&self) -> Vec<Name> {
        self.by_name.keys().cloned().collect()
    }

    /// Agents that are connected and have said what they have.
    pub(crate) fn n_here(&self) -> usize {
        self.by_name.values().filter(|agent| agent.session.is_open() && agent.is_known).count()
    }

    /// Whether a node's agent can be sent something now.
    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        self.by_name.values().any(|agent| agent.node == Some(node) && agent.session.is_open())
    }

    /// Whether a node's agent answers and has said what it runs.
    pub(super) fn answers(&self, node: NodeId) -> bool {
        self.by_name.values().any(|agent| agent.node == Some(node) && agent.is_known && !agent.is_silent)
    }

    /// Whether a node's agent has said what it has.
    pub(super) fn has_inventory_of(&self, node: NodeId) -> bool {
        self.by_name.values().any(|agent| agent.node == Some(node) && agent.is_known)
    }

    pub(super) fn has_orders(&self, node: NodeId) -> bool {
        self.by_name.values().any(|agent| agent.node == Some(node) && agent.session.n_outstanding() > 0)
    }

    /// Whether a node's agent served a state that this head's took the place of.
    pub(super) fn is_replaced(&self, node: NodeId) -> bool {
        self.by_name.values().any(|agent| agent.node == Some(node) && agent.is_replaced)
    }

    pub(super) fn node_of(&self, name: &Name) -> Option<NodeId> {
        self.by_name.get(name).and_then(|agent| agent.node)
    }

    /// Where other nodes reach a node; empty if its agent never said.
    pub(super) fn address_of(&self, node: Option<NodeId>) -> Text {
        let agent = self.by_name.values().find(|agent| agent.node == node);
        agent.map_or_else(|| Text::cut(""), |agent| agent.address.clone())
    }

    /// An agent that an earlier head knew: it may hold a lease until it connects again, or the lease is over.
    pub(super) fn expect(&mut self, name: &Name, node: Option<NodeId>, seen: SeenReports, moment: Moment) {
        self.insert(name, node, seen, Some(moment));
    }

    fn insert(&mut self, name: &Name, node: Option<NodeId>, seen: SeenReports, expected: Option<Moment>) {
        let lease_from = expected.map(|moment| moment.real);
        let agent = Agent {
            session: HeadSession::new(name.clone(), self.epoch, self.terms, seen, lease_from),
            node,
            address: Text::cut(""),
            version: Text::cut(""),
            is_silent: expected.is_some(),
            is_known: false,
            is_cut_off: false,
            since: expected.map_or(Time::ZERO, |moment| moment.now),
            reason: "not connected since the head started".into(),
            instance: InstanceId::default(),
            superseded: VecDeque::new(),
            is_replaced: false,
        };
        self.by_name.insert(name.clone(), agent);
    }

    pub(super) fn connected(&mut self, name: &Name, node: Option<NodeId>) {
        if !self.by_name.contains_key(name) {
            self.insert(name, node, SeenReports::default(), None);
        }
        if let Some(agent) = self.by_name.get_mut(name) {
            agent.session.connected();
        }
    }

    /// The run directory that the agent was last served from.
    pub(super) fn expect_instance(&mut self, name: &Name, instance: InstanceId) {
        if let Some(agent) = self.by_name.get_mut(name) {
            agent.instance = instance;
        }
    }

    /// An agent that greets takes up the session, possibly from an earlier boot of it. Returns the run directory of that.
    pub(super) fn take_over(
        &mut self,
        name: &Name,
        hello: &Hello,
        mark: StateMark,
        replaces: Lineage,
    ) -> InstanceId {
        let Some(agent) = self.by_name.get_mut(name) else { return hello.instance };
        let former = std::mem::replace(&mut agent.instance, hello.instance);
        let boot = agent.session.boot();
        if former != hello.instance {
            agent.superseded.clear();
        } else if boot != hello.boot {
            agent.superseded.push_front(boot);
            agent.superseded.truncate(MOST_SUPERSEDED);
        }
        agent.is_replaced = replaces != Lineage::NONE;
        agent.session.set_state(mark, replaces);
        former
    }

    pub(super) fn disconnected(&mut self, name: &Name) {
        if let Some(agent) = self.by_name.get_mut(name) {
            agent.session.disconnected();
            agent.is_known = false;
        }
    }

    pub(super) fn join(&mut self, name: &Name, node: NodeId) {
        if let Some(agent) = self.by_name.get_mut(name) {
            agent.node = Some(node);
        }
    }

    /// Takes a message; returns what follows from it, and whether the session can go on.
    pub(super) fn receive(
        &mut self,
        real: Time,
        name: &Name,
        message: ToHead,
    ) -> (Vec<HeadOutput>, Result<(), SessionError>) {
        let mut out = Vec::new();
        let Some(agent) = self.by_name.get_mut(name) else { return (out, Ok(())) };
        let result = agent.session.handle(real, message, &mut out);
        agent.is_silent = false;
        (out, result)
    }

    /// Lets time pass; returns what follows from it.
    pub(super) fn tick(&mut self, real: Time, name: &Name) -> Vec<HeadOutput> {
        let mut out = Vec::new();
        if let Some(agent) = self.by_name.get_mut(name) {
            agent.session.tick(real, &mut out);
        }
        out
    }

    /// When `tick` has something to do, in real time.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.by_name.values().filter_map(|agent| agent.session.timeout()).min()
    }

    /// Gives a node's agent an order; none if no agent keeps the node.
    pub(super) fn order(
        &mut self,
        real: Time,
        node: NodeId,
        task: Task,
        outbox: &mut Outbox,
    ) -> Option<(Name, OrderId)> {
        let (name, agent) = self.by_name.iter_mut().find(|(_, agent)| agent.node == Some(node))?;
        let mut out = Vec::new();
        let order = agent.session.order(real, task, &mut out);
        send_all(name, out, outbox);
        Some((name.clone(), order))
    }

    /// An agent's reports are on the disk: it may forget them.
    pub(super) fn acknowledge(&mut self, name: &Name, seen: SeenReports, outbox: &mut Outbox) {
        if let Some(agent) = self.by_name.get_mut(name) {
            let mut out = Vec::new();
            agent.session.acknowledge(seen, &mut out);
            send_all(name, out, outbox);
        }
    }
}

/// The messages that an order or an acknowledgement leads to; nothing else can follow from one.
fn send_all(name: &Name, outputs: Vec<HeadOutput>, outbox: &mut Outbox) {
    for output in outputs {
        if let HeadOutput::Send(message) = output {
            outbox.send(name, message);
        }
    }
}
