//! What becomes of launches: orders to start and stop them, what nodes say of them, and how they end in the books.

use rota_core::allocation::{Allocation, Slice, WHOLE_GPU};
use rota_core::event::{Command, StopCause};
use rota_core::ids::NodeId;
use rota_transport::message::{
    Attempt, AttemptInfo, AttemptState, ExitCause, ExitHow, Exited, KeepWork, Processes, Rendezvous, Task,
};
use rota_transport::value::{LongText, Text, Wait};

use super::books::Standing;
use super::fleet::{LaunchPhase, Live, Rank};
use super::launch;
use super::record::Record;
use super::state::{Moment, State};

impl State {
    pub(super) fn is_gang(&self, attempt: Attempt) -> bool {
        self.fleet.lives.get(&attempt).is_some_and(|live| live.ranks.len() > 1)
    }

    pub(super) fn exited(&mut self, moment: Moment, node: NodeId, exited: &Exited) {
        let attempt = exited.attempt;
        let Some(live) = self.fleet.lives.get_mut(&attempt) else {
            self.order(moment, node, Task::Forget { attempt });
            return;
        };
        live.iterations = live.iterations.max(exited.iterations.count());
        live.checkpointed = live.checkpointed.max(exited.checkpointed.count());
        let is_done = exited.exit.how == ExitHow::Code(0) && exited.exit.cause == ExitCause::Itself;
        let was_ordered = matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. });
        if !is_done && !was_ordered {
            let node_name = self.books.nodes.get(node.index()).cloned().unwrap_or_default();
            let is_failure = matches!(exited.exit.cause, ExitCause::Itself | ExitCause::OverLimit);
            self.fail(moment, attempt, format!("on {node_name} it {}", exit_text(exited)), is_failure);
        }
        self.rank_gone(attempt, node, is_done);
        self.order(moment, node, Task::Forget { attempt });
        self.conclude(moment, attempt);
    }

    pub(super) fn checkpointed(&mut self, moment: Moment, attempt: Attempt, done: f64) {
        let Some(live) = self.fleet.lives.get_mut(&attempt).filter(|live| live.checkpointed < done) else {
            return;
        };
        live.checkpointed = done;
        let done = done + live.skipped;
        let Attempt { job, incarnation } = attempt;
        self.record(moment, Record::JobCheckpointed { job, incarnation, done });
    }

    pub(super) fn rank_gone(&mut self, attempt: Attempt, node: NodeId, is_done: bool) {
        if let Some(rank) = self.fleet.lives.get_mut(&attempt).and_then(|live| live.ranks.get_mut(&node)) {
            *rank = Rank::Exited { is_done };
        }
    }

    pub(super) fn rank_is(&mut self, moment: Moment, attempt: Attempt, node: NodeId, is: Rank) {
        let Some(live) = self.fleet.lives.get_mut(&attempt) else { return };
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
    pub(super) fn go(&mut self, moment: Moment, attempt: Attempt) {
        let Some(live) = self.fleet.lives.get_mut(&attempt) else { return };
        let nodes: Vec<_> = live.ranks.keys().copied().collect();
        let first = live.allocation.slices.first().map(|slice| slice.node);
        let port = match first.and_then(|node| live.ranks.get(&node)) {
            Some(Rank::Prepared(port)) => *port,
            _ => 0,
        };
        live.ranks.values_mut().for_each(|rank| *rank = Rank::Going);
        let address =
            self.agents.values().find(|agent| agent.node == first).map(|agent| agent.address.clone());
        let rendezvous = Rendezvous { address: address.unwrap_or_else(|| Text::cut("")), port };
        for node in nodes {
            self.order(moment, node, Task::Go { attempt, rendezvous: rendezvous.clone() });
        }
    }

    pub(super) fn carry_out(&mut self, moment: Moment, command: Command) {
        match command {
            Command::Admit { .. } | Command::Decline { .. } => {}
            Command::Start { job, incarnation, allocation } => {
                self.fleet.lives.insert(Attempt { job, incarnation }, Live::new(allocation));
            }
            Command::Stop { job, incarnation, cause } => {
                let keep = if cause == StopCause::Cancelled { KeepWork::No } else { KeepWork::Yes };
                self.stop(moment, Attempt { job, incarnation }, keep);
            }
            Command::Resize { job, incarnation, allocation } => {
                self.resize(moment, Attempt { job, incarnation }, allocation);
            }
        }
    }

    /// Jobs that are stopped to go on at another size hear of it first.
    pub(super) fn announce_sizes(&mut self, moment: Moment, orders: &[Command]) {
        for order in orders {
            let Command::Start { job, incarnation, allocation } = order else { continue };
            let Some((attempt, live)) = self.fleet.newest(*job) else { continue };
            let is_other = live.allocation.n_gpus() != allocation.n_gpus();
            if live.phase != LaunchPhase::Running || attempt.incarnation.0 + 1 != incarnation.0 || !is_other {
                continue;
            }
            let (attempt, nodes) = (*attempt, live.alive_on());
            let per_node = self.books.job(*job).map(|job| job.request.start.processes);
            let n_gpus = allocation.n_gpus();
            let world_size = match per_node {
                Some(Processes::PerGpu) => n_gpus,
                _ => allocation.slices.len() as u32,
            };
            for node in nodes {
                self.order(moment, node, Task::Rescale { attempt, n_gpus, world_size });
            }
        }
    }

    pub(super) fn stop(&mut self, moment: Moment, attempt: Attempt, keep: KeepWork) {
        let Some(live) = self.fleet.lives.get_mut(&attempt) else { return };
        // Nobody was told of it: there is no end to wait for.
        if matches!(live.phase, LaunchPhase::Waiting | LaunchPhase::Fetching) {
            self.fleet.lives.remove(&attempt);
            return;
        }
        let was_failing = matches!(live.phase, LaunchPhase::Failing { .. });
        live.phase = LaunchPhase::Stopping;
        for node in live.alive_on() {
            if !was_failing {
                self.order_stop(moment, attempt, node, keep);
            }
        }
        self.conclude(moment, attempt);
    }

    pub(super) fn order_stop(&mut self, moment: Moment, attempt: Attempt, node: NodeId, keep_work: KeepWork) {
        let grace = self.books.job(attempt.job).map_or(Wait::NONE, |job| job.request.start.grace);
        self.order(moment, node, Task::Stop { attempt, grace, keep_work });
    }

    /// Something is wrong with a launch: what is left of it is stopped.
    pub(super) fn fail(&mut self, moment: Moment, attempt: Attempt, reason: String, is_failure: bool) {
        let Some(live) = self.fleet.lives.get_mut(&attempt) else { return };
        if matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. }) {
            return;
        }
        live.phase = LaunchPhase::Failing { reason, is_failure };
        for node in live.alive_on() {
            self.order_stop(moment, attempt, node, KeepWork::Yes);
        }
    }

    pub(super) fn resize(&mut self, moment: Moment, attempt: Attempt, allocation: Allocation) {
        let Some(job) = self.books.job(attempt.job) else { return };
        let Ok(rate) = launch::rate(job, &allocation, self.books.scheduler.cluster()) else { return };
        let Some(live) = self.fleet.lives.get_mut(&attempt) else { return };
        live.allocation = allocation.clone();
        if matches!(live.phase, LaunchPhase::Waiting | LaunchPhase::Fetching) {
            return;
        }
        for slice in &allocation.slices {
            let Ok(host) = launch::amount(&slice.host) else { continue };
            self.order(moment, slice.node, Task::Resize { attempt, host, rate });
        }
    }

    /// A launch of which nothing is left: the books hear how it ended.
    pub(super) fn conclude(&mut self, moment: Moment, attempt: Attempt) {
        let Some(live) = self.fleet.lives.get(&attempt).filter(|live| live.is_gone()) else { return };
        if matches!(live.phase, LaunchPhase::Waiting | LaunchPhase::Fetching) {
            return;
        }
        let live = live.clone();
        self.fleet.lives.remove(&attempt);
        let Attempt { job, incarnation } = attempt;
        let is_known = self.books.job(job).is_some_and(|job| job.standing == Standing::Active);
        if !is_known {
            return;
        }
        let done = live.checkpointed + live.skipped;
        if live.is_done() {
            // It may have been launched anew meanwhile; that launch has nothing left to do.
            let current = self.books.incarnation(job).unwrap_or(incarnation);
            self.fleet.lives.retain(|other, live| other.job != job || live.phase != LaunchPhase::Waiting);
            let done = live.iterations + live.skipped;
            return self.record(moment, Record::JobFinished { job, incarnation: current, done });
        }
        match live.phase {
            LaunchPhase::Stopping => self.record(moment, Record::JobStopped { job, incarnation, done }),
            LaunchPhase::Failing { reason, is_failure } => {
                self.requeue(moment, attempt, done, reason, is_failure)
            }
            _ => self.requeue(moment, attempt, done, "it ended in parts".into(), true),
        }
    }

    pub(super) fn requeue(
        &mut self,
        moment: Moment,
        attempt: Attempt,
        done: f64,
        reason: String,
        is_failure: bool,
    ) {
        let Attempt { job, incarnation } = attempt;
        let Some(known) = self.books.job(job) else { return };
        let most = known.request.start.most_failures;
        if is_failure && known.n_failures + 1 >= most.max(1) {
            let reason = format!("failed {} times, the last time {reason}", known.n_failures + 1);
            return self.record(moment, Record::JobFailed { job, reason });
        }
        self.record(moment, Record::JobRequeued { job, incarnation, done, reason, is_failure });
    }

    /// Orders what nothing hinders any more; once for all that arrived together.
    pub(super) fn launch_what_can(&mut self, moment: Moment) {
        for attempt in self.fleet.ready() {
            self.begin(moment, attempt);
        }
    }

    fn begin(&mut self, moment: Moment, attempt: Attempt) {
        let is_waiting =
            self.fleet.lives.get(&attempt).is_some_and(|live| live.phase == LaunchPhase::Waiting);
        if is_waiting && !self.fetch_checkpoint(moment, attempt) {
            self.start(moment, attempt);
        }
    }

    /// Orders a launch that has everything it needs.
    pub(super) fn start(&mut self, moment: Moment, attempt: Attempt) {
        let Some(job) = self.books.job(attempt.job) else { return };
        let Some(live) = self.fleet.lives.get(&attempt) else { return };
        let done = job.done;
        let cluster = self.books.scheduler.cluster();
        let launches = launch::launches(attempt, job, done, &live.allocation, cluster, self.time_scale);
        if let Some(live) = self.fleet.lives.get_mut(&attempt) {
            live.phase = LaunchPhase::Starting;
            (live.checkpointed, live.iterations, live.begun) = (done, done, done);
        }
        match launches {
            Ok(launches) => {
                for (node, launch) in launches {
                    if let Some(live) = self.fleet.lives.get_mut(&attempt) {
                        live.ranks.insert(node, Rank::Ordered);
                    }
                    self.order(moment, node, Task::Launch(Box::new(launch)));
                }
            }
            Err(error) => {
                self.fail(moment, attempt, error.to_string(), true);
                self.conclude(moment, attempt);
            }
        }
    }

    /// A launch that a node says it has.
    pub(super) fn take_attempt(&mut self, moment: Moment, node: NodeId, info: &AttemptInfo) {
        let attempt = info.attempt;
        let is_ours = self.fleet.lives.get(&attempt).is_some_and(|live| live.ranks.contains_key(&node));
        if !is_ours {
            // Unknown to the books, or of a job that goes on elsewhere: it must end, and its end be heard.
            let slice = Slice {
                node,
                gpus: info.gpus.set(),
                share: info.share.thousandths(),
                host: info.host.host(),
            };
            let live = self.fleet.lives.entry(attempt).or_insert_with(|| Live::new(Default::default()));
            live.phase = LaunchPhase::Stopping;
            live.allocation.slices.push(slice);
            live.ranks.insert(node, Rank::Up);
            if !matches!(info.state, AttemptState::Exited(_)) {
                self.order_stop(moment, attempt, node, KeepWork::Yes);
            }
        }
        if let Some(live) = self.fleet.lives.get_mut(&attempt) {
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
            // An earlier head prepared it, and nobody remembers for when.
            AttemptState::Prepared if is_ours && info.epoch < self.epoch && self.is_gang(attempt) => {
                self.fail(moment, attempt, "was prepared by an earlier head".into(), false);
            }
            AttemptState::Running | AttemptState::Stopping | AttemptState::Prepared => {}
        }
    }

    /// What jobs reported since the last round, for the policy to see.
    pub(super) fn note_progress(&mut self, moment: Moment) {
        let mut reported = Vec::new();
        for (attempt, live) in &mut self.fleet.lives {
            if let Some(done) = live.progress.take() {
                reported.push((*attempt, done + live.skipped));
            }
        }
        for (attempt @ Attempt { job, incarnation }, done) in reported {
            if self.books.incarnation(job) == Some(incarnation) {
                self.record(moment, Record::JobProgressed { job, incarnation, done });
                self.note_pace(moment, attempt, done);
            }
        }
    }

    /// Compares what a job reports with what its profile says, and corrects what policies believe of it.
    fn note_pace(&mut self, moment: Moment, Attempt { job, incarnation }: Attempt, done: f64) {
        let (jobs, cluster) = (self.books.scheduler.jobs(), self.books.scheduler.cluster());
        let Some((row, known)) = jobs.row(job).zip(self.books.job(job)) else { return };
        // A share of a GPU is not what profiles are about, and a job without one counts in seconds.
        let allocation = jobs.allocation(row);
        let is_whole = allocation.slices.iter().all(|slice| slice.share == WHOLE_GPU)
            && !known.request.model.as_str().is_empty();
        let expected = known.spec.rate(allocation, cluster) / known.pace;
        let pace = known.pace;
        let Some(live) = self.fleet.lives.get_mut(&Attempt { job, incarnation }).filter(|_| is_whole) else {
            return;
        };
        if let Some(pace) = live.pace.heard(moment.now, done, expected, pace) {
            self.record(moment, Record::JobPaced { job, pace });
        }
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
    }
}
