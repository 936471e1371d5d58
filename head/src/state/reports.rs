//! What nodes report about launches (prepared, running, checkpoint, end), and how orders were answered.

use rota_core::allocation::Slice;
use rota_core::ids::NodeId;
use rota_transport::message::{
    Attempt, AttemptInfo, AttemptState, Exit, ExitCause, ExitHow, Exited, Fact, KeepWork, OrderId, Outcome,
    Rendezvous, Task,
};
use rota_transport::value::{LongText, Name};

use super::launches::{LaunchPhase, Rank};
use super::{Moment, State};
use crate::record::Record;

impl State {
    /// Takes an agent's answer to an order.
    pub(super) fn order_done(
        &mut self,
        moment: Moment,
        name: &Name,
        order: OrderId,
        task: &Task,
        outcome: Outcome,
    ) {
        let Some(node) = self.agents.node_of(name) else { return };
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
                self.outbox.log(name, order, Err(why));
            }
            (task, outcome) => self.copy_done(moment, name, task, outcome),
        }
    }

    /// Takes a report of an agent.
    pub(super) fn take_fact(&mut self, moment: Moment, name: &Name, fact: Fact) {
        let Some(node) = self.agents.node_of(name) else { return };
        match fact {
            Fact::Started(attempt) => self.rank_is(moment, attempt, node, Rank::Up),
            Fact::Progressed { attempt, iterations } => {
                if let Some(live) = self.launches.get_mut(attempt) {
                    live.has_done(iterations.count());
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

    /// Takes a launch that a node says it has.
    pub(super) fn take_attempt(&mut self, moment: Moment, node: NodeId, info: &AttemptInfo) {
        let attempt = info.attempt;
        let is_ours = self.launches.get(attempt).is_some_and(|live| live.ranks.contains_key(&node));
        if !is_ours {
            // Unknown here, or its job runs elsewhere: it has to end, and its end be reported.
            let slice = Slice {
                node,
                gpus: info.gpus.set(),
                share: info.share.thousandths(),
                host: info.host.host(),
            };
            let live = self.launches.entry(attempt);
            live.phase = LaunchPhase::Stopping;
            live.allocation.slices.push(slice);
            live.ranks.insert(node, Rank::Up);
            if !matches!(info.state, AttemptState::Exited(_)) {
                self.order_stop(moment, attempt, node, KeepWork::Yes);
            }
        }
        if let Some(live) = self.launches.get_mut(attempt) {
            live.iterations = live.iterations.max(info.iterations.count());
            live.checkpointed = live.checkpointed.max(info.checkpointed.count());
        }
        match &info.state {
            AttemptState::Exited(exit) => self.exited(
                moment,
                node,
                &Exited {
                    attempt,
                    exit: exit.clone(),
                    iterations: info.iterations,
                    checkpointed: info.checkpointed,
                    tail: LongText::cut(""),
                },
            ),
            AttemptState::Running if is_ours => self.rank_is(moment, attempt, node, Rank::Up),
            // An earlier head prepared it, and it is no longer known when it was to start.
            AttemptState::Prepared
                if is_ours && info.epoch < self.agents.epoch() && self.is_gang(attempt) =>
            {
                self.fail(moment, attempt, "was prepared by an earlier head".into(), false);
            }
            AttemptState::Running | AttemptState::Stopping | AttemptState::Prepared => {}
        }
    }

    /// A rank has ended.
    pub(super) fn exited(&mut self, moment: Moment, node: NodeId, exited: &Exited) {
        let attempt = exited.attempt;
        let Some(live) = self.launches.get_mut(attempt) else {
            self.order(moment, node, Task::Forget { attempt });
            return;
        };
        live.iterations = live.iterations.max(exited.iterations.count());
        live.checkpointed = live.checkpointed.max(exited.checkpointed.count());
        live.is_refused |= exited.exit.cause == ExitCause::Refused;
        let is_done = exited.exit.how == ExitHow::Code(0) && exited.exit.cause == ExitCause::Itself;
        let was_ordered = matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. });
        if !is_done && !was_ordered {
            let node_name = self.cluster.node_name(node);
            let cause = exited.exit.cause;
            let is_failure = matches!(cause, ExitCause::Itself | ExitCause::OverLimit | ExitCause::Refused);
            let reason = format!("on {node_name} it {}", exit_text(exited));
            self.fail(moment, attempt, reason, is_failure);
        }
        if let Some(code) = exit_code(&exited.exit).filter(|_| !is_done && !was_ordered) {
            let Attempt { job, incarnation } = attempt;
            self.record(moment, Record::JobExited { job, incarnation, code });
        }
        self.rank_gone(attempt, node, is_done);
        self.order(moment, node, Task::Forget { attempt });
        self.conclude(moment, attempt);
    }

    /// A launch has written a checkpoint.
    fn checkpointed(&mut self, moment: Moment, attempt: Attempt, done: f64) {
        let Some(live) = self.launches.get_mut(attempt).filter(|live| live.checkpointed < done) else {
            return;
        };
        live.checkpointed = done;
        let done = done + live.skipped;
        let Attempt { job, incarnation } = attempt;
        self.record(moment, Record::JobCheckpointed { job, incarnation, done });
    }

    /// Moves a rank to a later phase, unless it is there already.
    pub(super) fn rank_is(&mut self, moment: Moment, attempt: Attempt, node: NodeId, is: Rank) {
        let Some(live) = self.launches.get_mut(attempt) else { return };
        let Some(rank) = live.ranks.get_mut(&node) else { return };
        let is_later = match is {
            Rank::Prepared(_) => matches!(rank, Rank::Unordered | Rank::Ordered),
            _ => !matches!(rank, Rank::Exited { .. }),
        };
        if is_later {
            *rank = is;
        }
        if live.phase != LaunchPhase::Starting {
            return;
        }
        if live.ranks.values().all(|rank| matches!(rank, Rank::Prepared(_))) {
            self.go(moment, attempt);
        } else if live.ranks.values().all(|rank| *rank == Rank::Up) {
            live.phase = LaunchPhase::Running;
            let Attempt { job, incarnation } = attempt;
            self.record(moment, Record::JobStarted { job, incarnation });
        }
    }

    /// Every rank is prepared: they start together, and meet at the first node.
    fn go(&mut self, moment: Moment, attempt: Attempt) {
        let Some(live) = self.launches.get_mut(attempt) else { return };
        let nodes: Vec<_> = live.ranks.keys().copied().collect();
        let first = live.allocation.slices.first().map(|slice| slice.node);
        let port = match first.and_then(|node| live.ranks.get(&node)) {
            Some(Rank::Prepared(port)) => *port,
            _ => 0,
        };
        live.ranks.values_mut().for_each(|rank| *rank = Rank::Going);
        let rendezvous = Rendezvous { address: self.agents.address_of(first), port };
        for node in nodes {
            self.order(moment, node, Task::Go { attempt, rendezvous: rendezvous.clone() });
        }
    }

    /// A rank is not alive any more.
    pub(super) fn rank_gone(&mut self, attempt: Attempt, node: NodeId, is_done: bool) {
        if let Some(rank) = self.launches.get_mut(attempt).and_then(|live| live.ranks.get_mut(&node)) {
            *rank = Rank::Exited { is_done };
        }
    }

    fn is_gang(&self, attempt: Attempt) -> bool {
        self.launches.get(attempt).is_some_and(|live| live.ranks.len() > 1)
    }
}

/// What a shell would call the exit code of a rank that failed by itself.
fn exit_code(exit: &Exit) -> Option<i32> {
    let is_own = matches!(exit.cause, ExitCause::Itself | ExitCause::OverLimit);
    match &exit.how {
        ExitHow::Code(code) if is_own => Some(*code),
        ExitHow::Signal(signal) if is_own => Some(signal.saturating_add(128)),
        _ => None,
    }
}

fn exit_text(exited: &Exited) -> String {
    let how = match &exited.exit.how {
        ExitHow::Code(code) => format!("ended with code {code}"),
        ExitHow::Signal(signal) => format!("was ended by signal {signal}"),
        ExitHow::NotStarted(why) => format!("was not started: {why}"),
        ExitHow::Unknown(why) => format!("is gone: {why}"),
    };
    match exited.exit.cause {
        ExitCause::Itself | ExitCause::Ordered => how,
        ExitCause::LeaseOver => format!("{how}, when the agent's lease was over"),
        ExitCause::GangBroken => format!("{how}, because another rank died"),
        ExitCause::OverLimit => format!("{how}, because it used more than it was given"),
        ExitCause::Refused => how,
    }
}
