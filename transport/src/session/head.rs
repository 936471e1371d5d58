//! The head's side of the conversation with one agent. It outlives connections.

use std::collections::BTreeMap;

use rota_core::time::{Span, Time};

use super::SessionError;
use crate::message::{
    Attempt, BootId, Epoch, Fact, Hello, Inventory, KeepWork, Lineage, LogChunk, Order, OrderDone, OrderId,
    Origin, Outcome, PROTOCOL_VERSION, RecalledJob, Report, Sequence, StateMark, Task, ToAgent, ToHead,
    Welcome,
};
use crate::value::{Name, Text, Wait};

/// How many reports that arrived out of sequence are kept.
const MOST_EARLY_REPORTS: usize = 4096;

/// What head and agents agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Without an answer for this long, an agent's lease is over.
    pub lease: Span,
    /// Time between heartbeats.
    pub heartbeat: Span,
    /// An agent that sends nothing for this long counts as silent.
    pub silent_after: Span,
    /// The head waits this much longer than a lease before it treats the lease as over.
    pub margin: Span,
    /// Without an answer for this long, agents ask their launches to stop; none if launches go on without a head.
    pub stop_after: Option<Span>,
}

impl Terms {
    /// How long after an agent's last message none of its launches is alive, if they need at most this long to stop; none if
    /// they go on without a head.
    pub fn gone_after(&self, grace: Span) -> Option<Span> {
        // Clocks run at speeds that differ by less than a thousandth.
        self.stop_after.map(|stop| stop + grace + self.margin + Span((stop.0 + grace.0) / 1_000))
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            lease: Span::from_secs(20),
            heartbeat: Span::from_secs(2),
            silent_after: Span::from_secs(6),
            margin: Span::from_secs(2),
            stop_after: Some(Span::from_secs(20)),
        }
    }
}

/// The reports of an agent that are in the journal: what a head must still know after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenReports {
    /// The boot they are from.
    pub boot: BootId,
    /// The last one.
    pub last: Sequence,
}

/// What follows from a message, or from the passing of time.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadOutput {
    /// To be sent to the agent.
    Send(ToAgent),
    /// The agent is connected. If it was restarted, also the orders that it never answered: its inventory shows their
    /// outcome.
    Joined {
        /// What it said.
        hello: Box<Hello>,
        /// Orders of its last boot without an outcome.
        forgotten: Vec<Task>,
    },
    /// Jobs that ended on the node, and that a restored state may not know.
    Recalled(Vec<RecalledJob>),
    /// Where a launch of the next inventory comes from.
    Origin(Box<Origin>),
    /// What the node has and runs.
    Inventory(Box<Inventory>),
    /// An order was carried out or failed.
    OrderDone {
        /// The number that [`HeadSession`] gave it.
        order: OrderId,
        /// What it was.
        task: Task,
        /// What became of it.
        outcome: Outcome,
    },
    /// Something happened; to be recorded and then acknowledged.
    Fact {
        /// The number to acknowledge it by, once the fact is recorded.
        seen: SeenReports,
        /// What the agent reported.
        fact: Fact,
    },
    /// Output of a job.
    Log(LogChunk),
    /// The agent has sent nothing for a while.
    Silent,
    /// The agent's lease is over, even by the agent's clock: its jobs are being stopped there, or go on, as the terms say.
    LeaseOver,
}

/// The conversation with one agent.
#[derive(Debug)]
pub struct HeadSession {
    name: Name,
    epoch: Epoch,
    terms: Terms,
    /// The state of this head.
    mark: StateMark,
    /// The lineage that this head takes the place of for this agent.
    replaces: Lineage,
    phase: HeadPhase,
    seen: SeenReports,
    /// Reports that were handed out and are not yet in the journal.
    handed_out: Sequence,
    /// Reports that arrived out of sequence.
    early: BTreeMap<Sequence, Fact>,
    next_order: OrderId,
    /// Orders without an outcome, and whether the agent got them.
    outstanding: BTreeMap<OrderId, Outstanding>,
    /// The highest order the agent has said it expects.
    expected: OrderId,
    /// When the last message of the agent arrived; leases count from here.
    last_heard: Option<Time>,
    is_silent: bool,
    is_lease_over: bool,
}

#[derive(Debug)]
struct Outstanding {
    task: Task,
    sent: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPhase {
    /// No connection.
    Apart,
    /// Connected; `Hello` is awaited.
    Greeting,
    /// Greeted; orders and reports are exchanged.
    Open,
}

impl HeadSession {
    /// A conversation that has not begun. An agent that may hold a lease of an earlier head is given `heard_at`, the
    /// moment this head started: its lease is counted from there.
    pub fn new(name: Name, epoch: Epoch, terms: Terms, seen: SeenReports, heard_at: Option<Time>) -> Self {
        HeadSession {
            name,
            epoch,
            terms,
            mark: StateMark::default(),
            replaces: Lineage::NONE,
            phase: HeadPhase::Apart,
            seen,
            handed_out: seen.last,
            early: BTreeMap::new(),
            next_order: OrderId(1),
            outstanding: BTreeMap::new(),
            expected: OrderId(1),
            last_heard: heard_at,
            is_silent: false,
            is_lease_over: heard_at.is_none(),
        }
    }

    /// Whether the agent is connected and has sent its greeting.
    pub fn is_open(&self) -> bool {
        self.phase == HeadPhase::Open
    }

    /// When the head may treat the agent's lease as over; `None` when it is over already.
    pub fn lease_until(&self) -> Option<Time> {
        let until = self.last_heard.map(|heard| heard + self.terms.lease + self.terms.margin);
        until.filter(|_| !self.is_lease_over)
    }

    /// When the last message of the agent arrived; for one that may hold a lease of an earlier head, when this head started.
    pub fn last_heard(&self) -> Option<Time> {
        self.last_heard
    }

    /// Orders whose outcome is not known.
    pub fn n_outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Whether the launch of an attempt was ordered and has no outcome yet.
    pub fn awaits_launch(&self, attempt: Attempt) -> bool {
        let is_it = |task: &Task| matches!(task, Task::Launch(launch) if launch.attempt == attempt);
        self.outstanding.values().any(|outstanding| is_it(&outstanding.task))
    }

    /// A connection was made.
    pub fn connected(&mut self) {
        self.phase = HeadPhase::Greeting;
    }

    /// What the next greeting is answered with: the state of this head, and the lineage that it takes the place of for this
    /// agent.
    pub fn set_state(&mut self, mark: StateMark, replaces: Lineage) {
        (self.mark, self.replaces) = (mark, replaces);
    }

    /// The boot of the agent that last greeted, or that the journal names.
    pub fn boot(&self) -> BootId {
        self.seen.boot
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.phase = HeadPhase::Apart;
    }

    /// Gives an order. It is sent at once when the agent is there, and again until it has arrived.
    pub fn order(&mut self, now: Time, task: Task, out: &mut Vec<HeadOutput>) -> OrderId {
        let id = self.next_order;
        self.next_order = id.next();
        let sent = self.is_open().then_some(now);
        if sent.is_some() {
            out.push(HeadOutput::Send(self.to_order(id, &task)));
        }
        self.outstanding.insert(id, Outstanding { task, sent });
        id
    }

    /// Reports up to this one are in the journal.
    pub fn acknowledge(&mut self, seen: SeenReports, out: &mut Vec<HeadOutput>) {
        if seen.boot != self.seen.boot || seen.last <= self.seen.last {
            return;
        }
        self.seen = seen;
        if self.is_open() {
            out.push(HeadOutput::Send(ToAgent::Acknowledge(seen.last)));
        }
    }

    /// Takes in a message.
    pub fn handle(
        &mut self,
        now: Time,
        message: ToHead,
        out: &mut Vec<HeadOutput>,
    ) -> Result<(), SessionError> {
        let what = match &message {
            ToHead::Hello(_) => "a greeting",
            ToHead::Inventory(_) => "an inventory",
            ToHead::Heartbeat(_) => "a heartbeat",
            ToHead::OrderDone(_) => "an outcome",
            ToHead::Report(_) => "a report",
            ToHead::LogChunk(_) => "output",
            ToHead::Recalled(_) => "a list of ended jobs",
            ToHead::Origin(_) => "the origin of a launch",
        };
        match (self.phase, message) {
            (HeadPhase::Greeting, ToHead::Hello(hello)) => return self.greet(now, hello, out),
            // A repeated greeting is a duplicate made by the network, not a fault of the agent.
            (HeadPhase::Open, ToHead::Hello(hello)) if hello.boot == self.seen.boot => {}
            (HeadPhase::Open, ToHead::Inventory(inventory)) => {
                out.push(HeadOutput::Inventory(Box::new(inventory)));
            }
            (HeadPhase::Open, ToHead::Heartbeat(beat)) => {
                out.push(HeadOutput::Send(ToAgent::Renew {
                    beat: beat.beat,
                    settled_before: self.settled_before(),
                    journal: self.mark.journal,
                }));
                self.expected = self.expected.max(beat.next_order);
                self.send_again(now, out);
            }
            (HeadPhase::Open, ToHead::OrderDone(done)) => self.settle(done, out),
            (HeadPhase::Open, ToHead::Report(report)) => {
                self.take_report(report, out);
            }
            (HeadPhase::Open, ToHead::LogChunk(chunk)) if chunk.epoch == self.epoch => {
                out.push(HeadOutput::Log(chunk));
            }
            (HeadPhase::Open, ToHead::LogChunk(_)) => {}
            (HeadPhase::Open, ToHead::Recalled(jobs)) => out.push(HeadOutput::Recalled(jobs)),
            (HeadPhase::Open, ToHead::Origin(origin)) => out.push(HeadOutput::Origin(origin)),
            _ => return Err(SessionError::OutOfTurn { what }),
        }
        self.has_heard(now);
        Ok(())
    }

    fn take_report(&mut self, report: Report, out: &mut Vec<HeadOutput>) {
        if report.sequence <= self.seen.last {
            out.push(HeadOutput::Send(ToAgent::Acknowledge(self.seen.last)));
            return;
        }
        // A report that is dropped here is sent again.
        if report.sequence > self.handed_out && self.early.len() < MOST_EARLY_REPORTS {
            self.early.insert(report.sequence, report.fact);
        }
        while let Some(fact) = self.early.remove(&self.handed_out.next()) {
            self.handed_out = self.handed_out.next();
            let seen = SeenReports { last: self.handed_out, ..self.seen };
            out.push(HeadOutput::Fact { seen, fact });
        }
    }

    /// Lets time pass, and returns what follows from it.
    pub fn tick(&mut self, now: Time, out: &mut Vec<HeadOutput>) {
        let Some(heard) = self.last_heard else { return };
        if !self.is_silent && !self.is_lease_over && now - heard >= self.terms.silent_after {
            self.is_silent = true;
            out.push(HeadOutput::Silent);
        }
        if self.lease_until().is_some_and(|until| now >= until) {
            self.is_lease_over = true;
            // An agent that comes back after that sends its greeting and its inventory again.
            self.phase = HeadPhase::Apart;
            self.give_up_launches();
            out.push(HeadOutput::LeaseOver);
        }
    }

    /// When `tick` next has something to do, if no message arrives before.
    pub fn timeout(&self) -> Option<Time> {
        let silent = self.last_heard.map(|heard| heard + self.terms.silent_after);
        let silent = silent.filter(|_| !self.is_silent && !self.is_lease_over);
        [silent, self.lease_until()].into_iter().flatten().min()
    }

    fn has_heard(&mut self, now: Time) {
        (self.last_heard, self.is_silent, self.is_lease_over) = (Some(now), false, false);
    }

    fn greet(&mut self, now: Time, hello: Hello, out: &mut Vec<HeadOutput>) -> Result<(), SessionError> {
        if let Err(error) = self.check_greeting(&hello) {
            out.push(HeadOutput::Send(ToAgent::Refused(Text::cut(&refusal_text(&error)))));
            return Err(error);
        }
        self.phase = HeadPhase::Open;
        self.has_heard(now);
        let mut forgotten = Vec::new();
        if hello.boot != self.seen.boot {
            self.seen = SeenReports { boot: hello.boot, last: Sequence(0) };
            forgotten = std::mem::take(&mut self.outstanding).into_values().map(|o| o.task).collect();
            (self.next_order, self.expected) = (OrderId(1), OrderId(1));
            self.handed_out = Sequence(0);
            self.early.clear();
        }
        // Reports that an agent no longer keeps were acknowledged by a head whose later state is lost: they will not come.
        if hello.acknowledged > self.seen.last {
            self.seen.last = hello.acknowledged;
            self.handed_out = self.handed_out.max(hello.acknowledged);
            self.early = self.early.split_off(&hello.acknowledged.next());
        }
        out.push(HeadOutput::Send(ToAgent::Welcome(Welcome {
            epoch: self.epoch,
            lease: Wait::cut(self.terms.lease),
            heartbeat: Wait::cut(self.terms.heartbeat),
            reports_seen: self.seen.last,
            mark: self.mark,
            replaces: self.replaces,
            stop_after: self.terms.stop_after.map(Wait::cut),
        })));
        for outstanding in self.outstanding.values_mut() {
            outstanding.sent = None;
        }
        out.push(HeadOutput::Joined { hello: Box::new(hello), forgotten });
        self.send_again(now, out);
        Ok(())
    }

    fn check_greeting(&self, hello: &Hello) -> Result<(), SessionError> {
        if hello.protocol != PROTOCOL_VERSION {
            return Err(SessionError::VersionSkew { theirs: hello.protocol, ours: PROTOCOL_VERSION });
        }
        if hello.name != self.name {
            let (said, known) = (hello.name.to_string(), self.name.to_string());
            return Err(SessionError::WrongName { said, known });
        }
        let is_replaced = self.replaces != Lineage::NONE && self.replaces == hello.knows.mark.lineage;
        if hello.epoch > self.epoch && !is_replaced {
            return Err(SessionError::OldHead { theirs: self.epoch, seen: hello.epoch });
        }
        Ok(())
    }

    /// Sends again what the agent has not received: at once after a greeting, otherwise after two heartbeats.
    fn send_again(&mut self, now: Time, out: &mut Vec<HeadOutput>) {
        let (patience, expected, epoch) = (self.terms.heartbeat * 2, self.expected, self.epoch);
        let journal = self.mark.journal;
        for (id, outstanding) in self.outstanding.range_mut(expected..) {
            if outstanding.sent.is_none_or(|sent| now - sent >= patience) {
                outstanding.sent = Some(now);
                let order = Order { id: *id, epoch, task: outstanding.task.clone(), journal };
                out.push(HeadOutput::Send(ToAgent::Order(order)));
            }
        }
    }

    /// Launches that the agent has not confirmed are not to begin once their node counts as lost: the numbers of their orders
    /// go to orders to stop them.
    fn give_up_launches(&mut self) {
        for outstanding in self.outstanding.values_mut() {
            let attempt = match &outstanding.task {
                Task::Launch(launch) => launch.attempt,
                Task::Go { attempt, .. } => *attempt,
                _ => continue,
            };
            outstanding.task = Task::Stop { attempt, grace: Wait::NONE, keep_work: KeepWork::Yes };
        }
    }

    fn settle(&mut self, done: OrderDone, out: &mut Vec<HeadOutput>) {
        if done.epoch != self.epoch {
            return;
        }
        if let Some(outstanding) = self.outstanding.remove(&done.order) {
            self.expected = self.expected.max(done.order.next());
            let (order, task, outcome) = (done.order, outstanding.task, done.outcome);
            out.push(HeadOutput::OrderDone { order, task, outcome });
        }
    }

    fn settled_before(&self) -> OrderId {
        self.outstanding.first_key_value().map_or(self.next_order, |(id, _)| *id)
    }

    fn to_order(&self, id: OrderId, task: &Task) -> ToAgent {
        ToAgent::Order(Order { id, epoch: self.epoch, task: task.clone(), journal: self.mark.journal })
    }
}

/// The same refusal as the agent's operator reads it.
fn refusal_text(error: &SessionError) -> String {
    match error {
        SessionError::VersionSkew { theirs, ours } => {
            let advice = match theirs < ours {
                true => "update this agent",
                false => "update the head, or install the older agent",
            };
            format!("this agent speaks protocol {theirs}, the head {ours}: {advice}")
        }
        other => other.to_string(),
    }
}
