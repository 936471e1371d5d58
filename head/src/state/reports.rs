//! What nodes report about launches (prepared, running, checkpoint, end), and how orders were answered.

use rota_core::allocation::Slice;
use rota_core::ids::{JobId, NodeId};
use rota_transport::message::{
    Attempt, AttemptInfo, AttemptState, Exit, ExitCause, ExitHow, Exited, Fact, JobEnd, KeepWork, OrderId,
    Outcome, Rendezvous, Task,
};
use rota_transport::value::{LongText, Name};

use super::launches::{Blame, LaunchPhase, LiveLaunch, Rank};
use super::{Moment, State};
use crate::cluster_state::Standing;
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
                self.fail(moment, launch.attempt, format!("{name} could not start it: {why}"), Blame::Node);
                self.rank_gone(launch.attempt, node, false);
                self.conclude(moment, launch.attempt);
            }
            (Task::Go { attempt, .. }, Outcome::Failed(why)) => {
                self.fail(moment, *attempt, format!("{name} could not start it: {why}"), Blame::Node);
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
            // Its order was given up, and it was carried out all the same.
            Fact::Started(attempt) if self.launches.get(attempt).is_none() => {
                let why = "its order was given up when the node was lost".into();
                self.stop_unknown(moment, attempt, std::iter::once(node), why);
            }
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
        let is_known = self.launches.get(attempt).is_some();
        let is_ours = self.launches.get(attempt).is_some_and(|live| live.ranks.contains_key(&node));
        if !is_ours
            && self.agents.is_replaced(node)
            && let AttemptState::Exited(exit) = &info.state
        {
            return self.recall_exit(moment, node, info, is_success(exit));
        }
        let live = self.launches.entry(attempt);
        if !is_ours {
            // Unknown here, or its job runs elsewhere: it has to end, and its end be reported.
            live.phase = LaunchPhase::Stopping;
            live.ranks.insert(node, Rank::Up);
        }
        // What it holds is known only now if it was being stopped when this head started.
        if live.slice(node).is_none() {
            let (gpus, share) = (info.gpus.set(), info.share.thousandths());
            live.allocation.slices.push(Slice { node, gpus, share, host: info.host.host() });
        }
        if !is_ours {
            let is_alive = !matches!(info.state, AttemptState::Exited(_));
            if is_alive && self.agents.is_replaced(node) {
                self.restoring.found(attempt, node, info.state.clone());
            } else if is_alive {
                self.stop_unknown(
                    moment,
                    attempt,
                    std::iter::once(node),
                    "this state has not ordered it".into(),
                );
            }
        }
        if let Some(live) = self.launches.get_mut(attempt) {
            live.iterations = live.iterations.max(info.iterations.count());
            live.checkpointed = live.checkpointed.max(info.checkpointed.count());
        }
        match &info.state {
            AttemptState::Exited(exit) => {
                let mut exit = exit.clone();
                // The success of one node says nothing of a launch whose other nodes are not known any more.
                if !is_known && !self.may_finish(attempt, info.n_nodes) {
                    exit.cause = ExitCause::Ordered;
                }
                let (iterations, checkpointed, tail) =
                    (info.iterations, info.checkpointed, LongText::cut(""));
                self.exited(moment, node, &Exited { attempt, exit, iterations, checkpointed, tail });
            }
            AttemptState::Running if is_ours => {
                self.rank_is(moment, attempt, node, Rank::Up);
                self.stop_again(moment, attempt, node);
            }
            // An earlier head prepared it, and it is no longer known when it was to start.
            AttemptState::Prepared
                if is_ours && info.epoch < self.agents.epoch() && self.is_gang(attempt) =>
            {
                self.fail(moment, attempt, "was prepared by an earlier head".into(), Blame::Nobody);
            }
            AttemptState::Prepared if is_ours => self.stop_again(moment, attempt, node),
            AttemptState::Running | AttemptState::Stopping | AttemptState::Prepared => {}
        }
    }

    /// The order to stop a launch may have been lost with its agent's last boot: it is given again.
    fn stop_again(&mut self, moment: Moment, attempt: Attempt, node: NodeId) {
        let is_stopping =
            |live: &LiveLaunch| matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. });
        let is_stopped = self.launches.get(attempt).is_some_and(is_stopping);
        if is_stopped && !self.restoring.is_unsettled(attempt) {
            self.order_stop(moment, attempt, node, KeepWork::Yes);
        }
    }

    /// How a job has ended, as its agents are told.
    fn job_end(&self, job: JobId) -> JobEnd {
        match self.cluster.job(job).map(|job| job.standing) {
            Some(Standing::Finished) => JobEnd::Finished,
            Some(Standing::Cancelled) => JobEnd::Cancelled,
            Some(Standing::Failed | Standing::TimeLimit) => JobEnd::Failed,
            Some(Standing::Held | Standing::Active | Standing::Declined) | None => JobEnd::None,
        }
    }

    /// A rank has ended.
    pub(super) fn exited(&mut self, moment: Moment, node: NodeId, exited: &Exited) {
        let attempt = exited.attempt;
        let Some(live) = self.launches.get_mut(attempt) else {
            let end = self.job_end(attempt.job);
            self.order(moment, node, Task::Forget { attempt, end });
            return;
        };
        live.iterations = live.iterations.max(exited.iterations.count());
        live.checkpointed = live.checkpointed.max(exited.checkpointed.count());
        live.is_refused |= exited.exit.cause == ExitCause::Refused;
        let is_done = is_success(&exited.exit);
        let was_ordered = matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. });
        if !is_done && !was_ordered {
            let node_name = self.cluster.node_name(node);
            let blame = match (&exited.exit.cause, &exited.exit.how) {
                (ExitCause::Itself | ExitCause::OverLimit, ExitHow::Unknown(_)) => Blame::Node,
                (ExitCause::Itself | ExitCause::OverLimit | ExitCause::Refused, _) => Blame::Job,
                _ => Blame::Nobody,
            };
            let reason = format!("on {node_name} it {}", exit_text(exited));
            self.fail(moment, attempt, reason, blame);
        }
        if let Some(code) = exit_code(&exited.exit).filter(|_| !is_done && !was_ordered) {
            let Attempt { job, incarnation } = attempt;
            self.record(moment, Record::JobExited { job, incarnation, code });
        }
        self.rank_gone(attempt, node, is_done);
        self.conclude(moment, attempt);
        let end = self.job_end(attempt.job);
        self.order(moment, node, Task::Forget { attempt, end });
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

    /// Whether a launch that is not known any more was one of its job's, on one node: if it ended with success while its
    /// node was away, the job is finished.
    fn may_finish(&self, attempt: Attempt, n_nodes: u32) -> bool {
        let launched = self.cluster.job(attempt.job).map_or(0, |job| job.last_launch.0.0);
        n_nodes == 1 && (1..=launched).contains(&attempt.incarnation.0)
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

/// Whether a rank has done its work.
fn is_success(exit: &Exit) -> bool {
    match exit.cause {
        ExitCause::Done => true,
        ExitCause::Itself => exit.how == ExitHow::Code(0),
        _ => false,
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
        ExitCause::Itself | ExitCause::Ordered | ExitCause::Done => how,
        ExitCause::LeaseOver => format!("{how}, when the agent's lease was over"),
        ExitCause::GangBroken => format!("{how}, because another rank died"),
        ExitCause::OverLimit => format!("{how}, because it used more than it was given"),
        ExitCause::Refused => how,
    }
}
