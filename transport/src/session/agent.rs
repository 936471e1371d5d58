//! The agent's side of the conversation with the head. It outlives connections, not the agent.

use std::collections::{BTreeMap, VecDeque};

use rota_core::ids::{Incarnation, JobId};
use rota_core::time::{Span, Time};

use super::SessionError;
use crate::message::{
    Beat, BootId, Epoch, Fact, Heartbeat, Hello, InstanceId, Inventory, Knowledge, Lineage, LogChunk, Order,
    OrderDone, OrderId, Origin, Outcome, PROTOCOL_VERSION, RecalledJob, Report, Sequence, StartId, StateMark,
    Task, ToAgent, ToHead, Welcome,
};
use crate::value::{LogBytes, Name, Text, Wait};

/// How many orders that arrived out of sequence are kept.
const MOST_EARLY_ORDERS: usize = 4096;
/// Without an answer to its greeting for this long, an agent closes the connection and tries again.
const GREETING_PATIENCE: Span = Span::from_secs(5);

/// Without a message from the head for this many heartbeats, an agent closes the connection and tries again. The head
/// does the same.
const SILENT_BEATS: i64 = 3;

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentIdentity {
    /// Its name, which its certificate must carry.
    pub name: Name,
    /// The version of the program.
    pub version: Text,
    /// Where other nodes reach this one.
    pub address: Text,
    /// Drawn when it started.
    pub boot: BootId,
    /// Drawn when its run directory was made.
    pub instance: InstanceId,
}

/// What an agent must still know after a restart, so that it starts nothing twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentMemory {
    /// The highest epoch it has seen.
    pub epoch: Epoch,
    /// The highest launch of each job it has started.
    pub launched: BTreeMap<JobId, Incarnation>,
    /// The state it serves, as far as its head has described it.
    pub mark: StateMark,
}

/// What follows from a message, or from the passing of time.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentOutput {
    /// To be sent to the head.
    Send(ToHead),
    /// The head accepted the agent and wants an inventory. The epoch must be on disk before anything else is done.
    Welcomed(Welcome),
    /// The head refused this agent, with the reason.
    Refused(Text),
    /// To be carried out, once; `order_done` reports the outcome. A launch must be on disk before it is started.
    Execute {
        /// To be named in `order_done`.
        order: OrderId,
        /// What to do.
        task: Task,
    },
    /// The head has not answered for a whole lease. What launches do without it, and from when on, is `work_until`. The agent
    /// keeps trying to reach the head.
    LeaseOver,
    /// The head does not answer on this connection: make another.
    HangUp,
}

/// The conversation with the head.
#[derive(Debug)]
pub struct AgentSession {
    identity: AgentIdentity,
    memory: AgentMemory,
    phase: AgentPhase,
    /// The epoch of the head that orders are counted for.
    counted: Epoch,
    /// The start of that head.
    counted_start: StartId,
    expected: OrderId,
    early: BTreeMap<OrderId, Task>,
    /// Outcomes that the head may not have, and when they were last sent.
    outcomes: BTreeMap<OrderId, (Outcome, Option<Time>)>,
    reports: VecDeque<(Report, Option<Time>)>,
    next_sequence: Sequence,
    /// Reports up to this one are not kept any more.
    acknowledged: Sequence,
    heartbeat: Span,
    lease: Span,
    next_beat: Beat,
    /// When heartbeats without an answer were sent.
    beats: BTreeMap<Beat, Time>,
    last_beat: Option<Time>,
    /// When the last message of the head arrived on this connection.
    last_heard: Time,
    lease_until: Option<Time>,
    /// When the last message that the head has answered was sent.
    answered: Option<Time>,
    stop_after: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentPhase {
    /// No connection.
    Apart,
    /// `Hello` was sent at that time.
    Greeting(Time),
    /// The head's `Welcome` came; orders and reports are exchanged.
    Open,
}

impl AgentSession {
    /// A conversation that has not begun.
    pub fn new(identity: AgentIdentity, memory: AgentMemory) -> Self {
        AgentSession {
            identity,
            counted: memory.epoch,
            counted_start: memory.mark.start,
            memory,
            phase: AgentPhase::Apart,
            expected: OrderId(1),
            early: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            reports: VecDeque::new(),
            next_sequence: Sequence(1),
            acknowledged: Sequence(0),
            heartbeat: Span::from_secs(2),
            lease: Span::ZERO,
            next_beat: Beat(1),
            beats: BTreeMap::new(),
            last_beat: None,
            last_heard: Time::ZERO,
            lease_until: None,
            answered: None,
            stop_after: None,
        }
    }

    /// What must be on disk.
    pub fn memory(&self) -> &AgentMemory {
        &self.memory
    }

    /// Whether the head is connected and has answered the greeting.
    pub fn is_open(&self) -> bool {
        self.phase == AgentPhase::Open
    }

    /// Until when the lease lasts; `None` when there is no lease, or it is over.
    pub fn lease_until(&self) -> Option<Time> {
        self.lease_until
    }

    /// Whether a head has answered since the agent started: only then it is known what launches do without one.
    pub fn has_terms(&self) -> bool {
        self.answered.is_some()
    }

    /// When launches are to be asked to stop if the head does not answer before; none if they go on without it.
    pub fn work_until(&self) -> Option<Time> {
        Some(self.answered? + self.stop_after?)
    }

    /// Notes that jobs were found running after a restart: until the head answers, they have one lease of this length.
    pub fn adopt_lease(&mut self, now: Time, lease: Span) {
        (self.lease, self.lease_until) = (lease, Some(now + lease));
    }

    /// A connection was made: sends the greeting.
    pub fn connected(&mut self, now: Time, out: &mut Vec<AgentOutput>) {
        self.phase = AgentPhase::Greeting(now);
        out.push(AgentOutput::Send(ToHead::Hello(Hello {
            protocol: PROTOCOL_VERSION,
            name: self.identity.name.clone(),
            version: self.identity.version.clone(),
            boot: self.identity.boot,
            epoch: self.memory.epoch,
            address: self.identity.address.clone(),
            instance: self.identity.instance,
            knows: self.knowledge(),
            acknowledged: self.acknowledged,
        })));
    }

    /// The connection is gone; the lease goes on.
    pub fn disconnected(&mut self) {
        self.phase = AgentPhase::Apart;
    }

    /// Says what the node has and runs.
    pub fn inventory(&mut self, inventory: Inventory, out: &mut Vec<AgentOutput>) {
        if self.is_open() {
            out.push(AgentOutput::Send(ToHead::Inventory(inventory)));
        }
    }

    /// Says which jobs have ended here, to a head whose state was restored from an older copy; before the inventory.
    pub fn recall(&mut self, jobs: Vec<RecalledJob>, out: &mut Vec<AgentOutput>) {
        if self.is_open() {
            out.push(AgentOutput::Send(ToHead::Recalled(jobs)));
        }
    }

    /// Says where a launch comes from, to such a head; before the inventory.
    pub fn origin(&mut self, origin: Origin, out: &mut Vec<AgentOutput>) {
        if self.is_open() {
            out.push(AgentOutput::Send(ToHead::Origin(Box::new(origin))));
        }
    }

    /// Something happened; repeated until the head has it.
    pub fn report(&mut self, now: Time, fact: Fact, out: &mut Vec<AgentOutput>) {
        let report = Report { sequence: self.next_sequence, fact };
        self.next_sequence = report.sequence.next();
        let sent = self.is_open().then_some(now);
        if sent.is_some() {
            out.push(AgentOutput::Send(ToHead::Report(report.clone())));
        }
        self.reports.push_back((report, sent));
    }

    /// An order was carried out or failed; repeated until the head has it.
    pub fn order_done(&mut self, now: Time, order: OrderId, outcome: Outcome, out: &mut Vec<AgentOutput>) {
        let sent = self.is_open().then_some(now);
        if sent.is_some() {
            out.push(AgentOutput::Send(done(order, self.counted, outcome.clone())));
        }
        self.outcomes.insert(order, (outcome, sent));
    }

    /// Output that an order asked for. Not repeated: the reader asks again.
    pub fn log(
        &mut self,
        order: OrderId,
        offset: u64,
        bytes: LogBytes,
        is_end: bool,
        out: &mut Vec<AgentOutput>,
    ) {
        if self.is_open() {
            let chunk = LogChunk { order, epoch: self.counted, offset, bytes, is_end };
            out.push(AgentOutput::Send(ToHead::LogChunk(chunk)));
        }
    }

    /// Takes in a message.
    pub fn handle(
        &mut self,
        now: Time,
        message: ToAgent,
        out: &mut Vec<AgentOutput>,
    ) -> Result<(), SessionError> {
        self.last_heard = now;
        match (self.phase, message) {
            (AgentPhase::Greeting(sent), ToAgent::Welcome(welcome)) => self.welcome(now, sent, welcome, out),
            (AgentPhase::Greeting(_), ToAgent::Refused(text)) => {
                out.push(AgentOutput::Refused(text));
                Ok(())
            }
            (AgentPhase::Open, ToAgent::Order(order)) => self.take_order(now, order, out),
            (AgentPhase::Open, ToAgent::Acknowledge(last)) => {
                self.has_acknowledged(last);
                Ok(())
            }
            (AgentPhase::Open, ToAgent::Renew { beat, settled_before, journal }) => {
                self.renew(beat);
                self.has_seen(journal);
                self.outcomes = self.outcomes.split_off(&settled_before);
                Ok(())
            }
            // A welcome may arrive twice, and something else before it; what is dropped here is repeated.
            (AgentPhase::Open, ToAgent::Welcome(welcome)) if welcome.epoch == self.counted => Ok(()),
            (AgentPhase::Greeting(_), _) => Ok(()),
            (AgentPhase::Open, ToAgent::Refused(_) | ToAgent::Welcome(_)) => {
                Err(SessionError::OutOfTurn { what: "the answer to a greeting" })
            }
            (AgentPhase::Apart, _) => Err(SessionError::OutOfTurn { what: "a message without a connection" }),
        }
    }

    /// Lets time pass, and returns what follows from it.
    pub fn tick(&mut self, now: Time, out: &mut Vec<AgentOutput>) {
        if self.lease_until.is_some_and(|until| now >= until) {
            self.lease_until = None;
            out.push(AgentOutput::LeaseOver);
        }
        match self.phase {
            AgentPhase::Greeting(since) if now - since >= GREETING_PATIENCE => {
                self.phase = AgentPhase::Apart;
                out.push(AgentOutput::HangUp);
            }
            AgentPhase::Open if now - self.last_heard >= self.heartbeat * SILENT_BEATS => {
                self.phase = AgentPhase::Apart;
                out.push(AgentOutput::HangUp);
            }
            AgentPhase::Open if self.last_beat.is_none_or(|last| now - last >= self.heartbeat) => {
                self.send_again(now, out);
                self.beat(now, out);
            }
            _ => {}
        }
    }

    /// When `tick` next has something to do, if no message arrives before.
    pub fn timeout(&self) -> Option<Time> {
        let next = match self.phase {
            AgentPhase::Apart => None,
            AgentPhase::Greeting(since) => Some(since + GREETING_PATIENCE),
            AgentPhase::Open => Some(self.last_beat.map_or(Time(i64::MIN), |last| last + self.heartbeat)),
        };
        [next, self.lease_until].into_iter().flatten().min()
    }

    fn welcome(
        &mut self,
        now: Time,
        greeted: Time,
        welcome: Welcome,
        out: &mut Vec<AgentOutput>,
    ) -> Result<(), SessionError> {
        if let Err(error) = self.check_welcome(&welcome) {
            self.phase = AgentPhase::Apart;
            return Err(error);
        }
        self.phase = AgentPhase::Open;
        (self.lease, self.heartbeat) = (welcome.lease.span(), welcome.heartbeat.span());
        self.stop_after = welcome.stop_after.map(Wait::span);
        self.extend_lease(greeted);
        (self.memory.epoch, self.memory.mark) = (welcome.epoch, welcome.mark);
        if (welcome.epoch, welcome.mark.start) != (self.counted, self.counted_start) {
            (self.counted, self.counted_start) = (welcome.epoch, welcome.mark.start);
            self.expected = OrderId(1);
            self.early.clear();
            self.outcomes.clear();
        }
        self.has_acknowledged(welcome.reports_seen);
        out.push(AgentOutput::Welcomed(welcome));
        for (_, sent) in self.reports.iter_mut() {
            *sent = None;
        }
        for (_, sent) in self.outcomes.values_mut() {
            *sent = None;
        }
        self.send_again(now, out);
        self.beat(now, out);
        Ok(())
    }

    /// A head that goes on where the last one was, or takes its place by an operator's word.
    fn check_welcome(&self, welcome: &Welcome) -> Result<(), SessionError> {
        let (known, theirs) = (self.memory.mark, welcome.mark);
        if known.lineage != Lineage::NONE && theirs.lineage != known.lineage {
            return match welcome.replaces == known.lineage {
                true => Ok(()),
                false => Err(SessionError::OtherState { theirs: theirs.lineage, seen: known.lineage }),
            };
        }
        if welcome.epoch < self.memory.epoch {
            return Err(SessionError::OldHead { theirs: welcome.epoch, seen: self.memory.epoch });
        }
        let is_other_start = welcome.epoch == self.memory.epoch && theirs.start != known.start;
        if known.lineage != Lineage::NONE && (is_other_start || theirs.journal < known.journal) {
            return Err(SessionError::OldState { theirs: theirs.journal, seen: known.journal });
        }
        Ok(())
    }

    /// What the head is told about the state that is known here.
    fn knowledge(&self) -> Knowledge {
        let launched = &self.memory.launched;
        Knowledge {
            mark: self.memory.mark,
            n_jobs: launched.last_key_value().map_or(0, |(job, _)| job.0.saturating_add(1)),
            last_launch: launched.values().map(|launch| launch.0).max().unwrap_or(0),
        }
    }

    fn has_seen(&mut self, journal: u64) {
        self.memory.mark.journal = self.memory.mark.journal.max(journal);
    }

    fn has_acknowledged(&mut self, last: Sequence) {
        self.acknowledged = self.acknowledged.max(last);
        self.reports.retain(|(report, _)| report.sequence > last);
    }

    fn take_order(
        &mut self,
        now: Time,
        order: Order,
        out: &mut Vec<AgentOutput>,
    ) -> Result<(), SessionError> {
        if order.epoch != self.counted {
            return Err(SessionError::OldHead { theirs: order.epoch, seen: self.counted });
        }
        self.has_seen(order.journal);
        if order.id < self.expected {
            if let Some((outcome, sent)) = self.outcomes.get_mut(&order.id) {
                *sent = Some(now);
                out.push(AgentOutput::Send(done(order.id, self.counted, outcome.clone())));
            }
            return Ok(());
        }
        if self.early.len() >= MOST_EARLY_ORDERS {
            return Err(SessionError::TooFarAhead { order: order.id, expected: self.expected });
        }
        self.early.insert(order.id, order.task);
        while let Some(task) = self.early.remove(&self.expected) {
            let order = self.expected;
            self.expected = order.next();
            self.obey(now, order, task, out);
        }
        Ok(())
    }

    /// Hands out an order, unless it would start a launch that was started before.
    fn obey(&mut self, now: Time, order: OrderId, task: Task, out: &mut Vec<AgentOutput>) {
        if let Task::Launch(launch) = &task {
            let attempt = launch.attempt;
            if let Some(seen) = self.memory.launched.get(&attempt.job)
                && *seen >= attempt.incarnation
            {
                let text = format!("{attempt}: launch {seen} was seen here");
                self.order_done(now, order, Outcome::Failed(Text::cut(&text)), out);
                return;
            }
            self.memory.launched.insert(attempt.job, attempt.incarnation);
        }
        out.push(AgentOutput::Execute { order, task });
    }

    fn beat(&mut self, now: Time, out: &mut Vec<AgentOutput>) {
        let beat = self.next_beat;
        self.next_beat = beat.next();
        self.last_beat = Some(now);
        // An answer that arrives after the lease is over renews nothing.
        self.beats.retain(|_, sent| now - *sent < self.lease);
        self.beats.insert(beat, now);
        let n_unacknowledged = u32::try_from(self.reports.len()).unwrap_or(u32::MAX);
        let heartbeat = Heartbeat { beat, next_order: self.expected, n_unacknowledged };
        out.push(AgentOutput::Send(ToHead::Heartbeat(heartbeat)));
    }

    fn renew(&mut self, beat: Beat) {
        if let Some(sent) = self.beats.remove(&beat) {
            self.extend_lease(sent);
            self.beats = self.beats.split_off(&beat);
        }
    }

    fn extend_lease(&mut self, from: Time) {
        let until = from + self.lease;
        self.lease_until = Some(self.lease_until.map_or(until, |held| held.max(until)));
        self.answered = Some(self.answered.map_or(from, |before| before.max(from)));
    }

    /// Sends again what the head has not confirmed: at once after a greeting, otherwise after two heartbeats.
    fn send_again(&mut self, now: Time, out: &mut Vec<AgentOutput>) {
        let patience = self.heartbeat * 2;
        let is_due = |sent: &Option<Time>| sent.is_none_or(|sent| now - sent >= patience);
        for (report, sent) in self.reports.iter_mut().filter(|(_, sent)| is_due(sent)) {
            *sent = Some(now);
            out.push(AgentOutput::Send(ToHead::Report(report.clone())));
        }
        for (order, (outcome, sent)) in self.outcomes.iter_mut().filter(|(_, (_, sent))| is_due(sent)) {
            *sent = Some(now);
            out.push(AgentOutput::Send(done(*order, self.counted, outcome.clone())));
        }
    }
}

fn done(order: OrderId, epoch: Epoch, outcome: Outcome) -> ToHead {
    ToHead::OrderDone(OrderDone { order, epoch, outcome })
}
