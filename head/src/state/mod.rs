//! The state of a running head: the cluster's state, sessions with agents, live launches.
//!
//! No socket, disk or clock: times are arguments, and what is to be written or sent goes to the outbox. The engine writes
//! first and sends afterwards, so that nothing leaves the head that a crash could make it forget.
//!
//! `admission` says who may take up a session, `restoring` what follows from a state that was restored from an older copy.
//! `agents` are the sessions, `launches` what may be alive on nodes, `outbox` what leaves. `nodes`, `reports` and
//! `progress` take in what agents say; `launching` and `copies` give orders, which `launch_orders` builds.

mod admission;
mod agents;
mod conditions;
mod copies;
#[cfg(test)]
mod hostile_agents;
pub(crate) mod launch_orders;
mod launches;
mod launching;
mod nodes;
mod outbox;
mod progress;
mod reports;
mod restoring;

pub(crate) use agents::{Agent, Agents};
pub(crate) use launches::{Blame, LaunchPhase, Launches, LiveLaunch};
pub(crate) use outbox::Outbox;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rota_core::allocation::Allocation;
use rota_core::event::Command;
use rota_core::ids::{JobId, NodeId};
use rota_core::round::Decision;
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_transport::message::{Attempt, Epoch, InstanceId, KeepWork, OrderId, Task, ToHead};
use rota_transport::session::{HeadOutput, SeenReports, SessionError, Terms};
use rota_transport::value::{Name, TimeScale};

use crate::ancestry::Ancestry;
use crate::cluster_state::ClusterState;
use crate::record::Record;
use crate::store::Write;
use crate::store::history::EndedJob;
use copies::Copies;
use launches::Rank;
use restoring::Restoring;

/// A moment, in the head's time and in real time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The head's time: that of jobs, rounds and the journal.
    pub(crate) now: Time,
    /// Real time since the head started: that of leases and heartbeats.
    pub(crate) real: Time,
}

/// What a state is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateSettings {
    pub(crate) epoch: Epoch,
    pub(crate) terms: Terms,
    pub(crate) time_scale: TimeScale,
    pub(crate) copies_checkpoints: bool,
}

/// Where a state comes from.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) ancestry: Ancestry,
    /// The run directories from which agents were served.
    pub(crate) instances: BTreeMap<Name, InstanceId>,
}

#[cfg(test)]
impl Past {
    /// Of a state that nothing came before.
    pub(crate) fn of_test() -> Self {
        Past { ancestry: Ancestry::of_test(), instances: BTreeMap::new() }
    }
}

/// The head's state.
#[derive(Debug)]
pub(crate) struct State {
    time_scale: TimeScale,
    cluster: ClusterState,
    launches: Launches,
    copies: Copies,
    agents: Agents,
    outbox: Outbox,
    ancestry: Ancestry,
    restoring: Restoring,
    /// Why no orders are given.
    later_state: Option<String>,
    /// What agents that were refused were last told.
    refused: BTreeMap<Name, String>,
}

impl State {
    /// The state after a start: the cluster as the journal has it, and agents that may hold a lease.
    pub(crate) fn new(
        settings: StateSettings,
        cluster: ClusterState,
        seen: Vec<(Name, SeenReports)>,
        moment: Moment,
        past: Past,
    ) -> Self {
        let mut agents = Agents::new(settings.epoch, settings.terms);
        let seen: BTreeMap<_, _> = seen.into_iter().collect();
        for (index, name) in cluster.nodes().iter().enumerate() {
            let Ok(name) = Name::new(name.as_str()) else { continue };
            let seen = seen.get(&name).copied().unwrap_or_default();
            agents.expect(&name, Some(NodeId::from(index)), seen, moment);
            if let Some(instance) = past.instances.get(&name) {
                agents.expect_instance(&name, *instance);
            }
        }
        let must_wait = past.ancestry.accepts() || past.ancestry.is_copy();
        let until = moment.real + settings.terms.lease + settings.terms.margin;
        let restoring = if must_wait { Restoring::until(until) } else { Restoring::default() };
        let launches = expected_launches(&cluster);
        State {
            time_scale: settings.time_scale,
            cluster,
            launches,
            copies: Copies::new(settings.copies_checkpoints),
            agents,
            outbox: Outbox::default(),
            ancestry: past.ancestry,
            restoring,
            later_state: None,
            refused: BTreeMap::new(),
        }
    }

    pub(crate) fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    pub(crate) fn agents(&self) -> &Agents {
        &self.agents
    }

    pub(crate) fn launches(&self) -> &Launches {
        &self.launches
    }

    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    pub(crate) fn time_scale(&self) -> TimeScale {
        self.time_scale
    }

    /// What a policy sees at this moment.
    pub(crate) fn snapshot(&mut self, moment: Moment) -> Snapshot {
        self.cluster.snapshot(moment.now)
    }

    /// Applies a record, queues it for the journal, and carries out the commands that follow from it.
    pub(crate) fn record(&mut self, moment: Moment, record: Record) {
        let applied = self.cluster.apply(moment.now, &record);
        self.outbox.record(moment.now, record);
        self.note_ended(&applied.ended);
        self.follow(moment, applied.orders);
    }

    /// Forgets jobs that have ended and of which nothing is alive: the history has them.
    pub(crate) fn retire_ended(&mut self) {
        let alive: BTreeSet<_> = self.launches.iter().map(|(attempt, _)| attempt.job).collect();
        self.cluster.retire(|job| alive.contains(&job));
    }

    /// Jobs have ended: the history gets a row for each.
    fn note_ended(&mut self, ended: &[JobId]) {
        for id in ended {
            let row = self.cluster.job(*id).and_then(|job| EndedJob::of(*id, job, &self.cluster));
            row.into_iter().for_each(|row| self.outbox.ended(row));
        }
    }

    /// The same for a record that is in the journal already.
    pub(crate) fn follow_record(&mut self, moment: Moment, record: &Record) {
        let applied = self.cluster.apply(moment.now, record);
        self.note_ended(&applied.ended);
        self.follow(moment, applied.orders);
    }

    /// The same for a plan that was accepted at this moment.
    pub(crate) fn plan(&mut self, moment: Moment, round: u64, decision: Decision, memory: String) {
        let (record, applied) = self.cluster.plan(moment.now, round, decision, memory);
        self.outbox.record(moment.now, record);
        self.note_ended(&applied.ended);
        self.follow(moment, applied.orders);
    }

    /// Carries out commands. A command may end a launch, which is a record, from which more commands may follow: this loop
    /// goes on until none is left.
    fn follow(&mut self, moment: Moment, mut orders: Vec<Command>) {
        let mut records = VecDeque::new();
        loop {
            self.announce_sizes(moment, &orders);
            for order in orders {
                records.extend(self.carry_out(moment, order));
            }
            let Some(record) = records.pop_front() else { return };
            let applied = self.cluster.apply(moment.now, &record);
            self.outbox.record(moment.now, record);
            self.note_ended(&applied.ended);
            orders = applied.orders;
        }
    }

    /// An agent connected, and may speak for its node.
    fn connected(&mut self, name: &Name) {
        self.agents.connected(name, self.cluster.node(name.as_str()));
    }

    /// An agent's connection is gone.
    pub(crate) fn disconnected(&mut self, name: &Name) {
        self.agents.disconnected(name);
    }

    /// A message arrived from an agent.
    pub(crate) fn receive(
        &mut self,
        moment: Moment,
        name: &Name,
        message: ToHead,
    ) -> Result<(), SessionError> {
        let (outputs, result) = self.agents.receive(moment.real, name, message);
        self.take_outputs(moment, name, outputs);
        result
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, moment: Moment) {
        for job in self.cluster.resumable(moment.now) {
            self.record(moment, Record::JobResumed { job });
        }
        for name in self.agents.names() {
            let outputs = self.agents.tick(moment.real, &name);
            self.take_outputs(moment, &name, outputs);
            self.lose_if_over(moment, &name);
        }
        self.restore_if_due(moment);
    }

    /// When `tick` has something to do, in real time.
    pub(crate) fn timeout(&self) -> Option<Time> {
        [self.agents.timeout(), self.restoring.timeout()].into_iter().flatten().min()
    }

    /// Writes are on the disk: agents may forget what they reported.
    pub(crate) fn written(&mut self, writes: &[Write]) {
        for write in writes {
            if let Write::Seen(name, seen) = write {
                self.agents.acknowledge(name, *seen, &mut self.outbox);
            }
        }
    }

    /// Whether a node's agent has orders that it has not answered.
    pub(crate) fn has_orders(&self, node: NodeId) -> bool {
        self.agents.has_orders(node)
    }

    /// Gives a node's agent an order; none if no agent keeps the node, or this head must not give any.
    pub(crate) fn order(&mut self, moment: Moment, node: NodeId, task: Task) -> Option<(Name, OrderId)> {
        // An older copy of a state would stop what it does not know.
        if self.later_state.is_some() {
            return None;
        }
        self.agents.order(moment.real, node, task, &mut self.outbox)
    }

    /// Credits launches with iterations for time that was skipped; those whose work is done end here.
    pub(crate) fn credit(&mut self, moment: Moment, user: &Name, credited: Vec<(Attempt, f64)>) {
        let jobs = credited.iter().map(|(attempt, done)| (attempt.job, attempt.incarnation, *done)).collect();
        self.record(moment, Record::TimeJumped { jobs, user: user.to_string() });
        for (attempt, done) in credited {
            let Some(live) = self.launches.get_mut(attempt) else { continue };
            live.credit(done);
            let in_all = live.iterations + live.skipped;
            let Some(job) = self.cluster.job(attempt.job) else { continue };
            let work = job.spec.estimated_work;
            // Sums of fractions differ from the work in the last digits.
            if in_all >= work * (1.0 - 1e-9) {
                let Attempt { job, incarnation } = attempt;
                self.record(moment, Record::JobFinished { job, incarnation, done: work });
                if let Some(end) = self.stop(moment, attempt, KeepWork::No) {
                    self.record(moment, end);
                }
            }
        }
    }

    fn take_outputs(&mut self, moment: Moment, name: &Name, outputs: Vec<HeadOutput>) {
        for output in outputs {
            match output {
                HeadOutput::Send(message) => self.outbox.send(name, message),
                HeadOutput::Joined { hello, .. } => {
                    if let Some(agent) = self.agents.get_mut(name) {
                        agent.joined(moment.now, *hello);
                    }
                }
                HeadOutput::Recalled(jobs) => self.restoring.recall(jobs),
                HeadOutput::Origin(origin) => self.restoring.originates(*origin),
                HeadOutput::Inventory(inventory) => {
                    self.take_inventory(moment, name, &inventory);
                    self.settle_restored(moment);
                }
                HeadOutput::OrderDone { order, task, outcome } => {
                    self.order_done(moment, name, order, &task, outcome);
                }
                HeadOutput::Fact { seen, fact } => {
                    self.take_fact(moment, name, fact);
                    self.outbox.seen(name, seen);
                }
                HeadOutput::Log(chunk) => self.outbox.log(name, chunk.order, Ok(chunk)),
                HeadOutput::Silent => {
                    if let Some(agent) = self.agents.get_mut(name) {
                        agent.fell_silent(moment.now);
                    }
                }
                HeadOutput::LeaseOver => self.cut_off(moment, name),
            }
        }
    }
}

/// Launches that run according to the journal were ordered by an earlier head: the nodes' inventories will show which of
/// them are alive.
fn expected_launches(cluster: &ClusterState) -> Launches {
    let mut launches = Launches::default();
    let jobs = cluster.scheduler().jobs();
    for row in 0..jobs.len() {
        let allocation = jobs.allocation(row);
        if allocation.is_empty() {
            continue;
        }
        let mut live = LiveLaunch::new(allocation.clone());
        live.phase = LaunchPhase::Starting;
        live.ranks.values_mut().for_each(|rank| *rank = Rank::Ordered);
        let attempt = Attempt { job: jobs.id(row), incarnation: jobs.incarnation(row) };
        (live.begun, live.skipped) =
            cluster.job(attempt.job).map_or((0.0, 0.0), |job| (job.done, job.skipped));
        launches.insert(attempt, live);
    }
    // Those that were ordered to stop may not have got the order, or may end with success.
    for (id, job) in cluster.jobs().iter().filter(|(_, job)| !job.standing.is_over()) {
        for (incarnation, nodes) in &job.leaving {
            let mut live = LiveLaunch::new(Allocation::default());
            live.phase = LaunchPhase::Stopping;
            live.ranks = nodes.iter().map(|node| (*node, Rank::Ordered)).collect();
            (live.begun, live.checkpointed) = (job.done, job.done);
            launches.insert(Attempt { job: *id, incarnation: *incarnation }, live);
        }
    }
    launches
}
