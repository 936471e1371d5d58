//! What the head does with launches: orders to start, stop and resize them, and how they end.
//!
//! A record leads to commands, a command may end a launch, and the end of a launch is a record again. `end_of` therefore
//! returns its record, and the loop in `State::record` handles it.

use rota_core::allocation::Allocation;
use rota_core::event::{Command, StopCause};
use rota_core::ids::NodeId;
use rota_core::time::Span;
use rota_transport::message::{Attempt, KeepWork, Processes, Task};
use rota_transport::value::Wait;

use super::launches::{Blame, LaunchPhase, LiveLaunch, Rank};
use super::{Moment, State, launch_orders};
use crate::record::Record;

/// How often nodes may fail to run a job before it is given up.
const MOST_TROUBLES: u32 = 5;
/// The wait before a job is tried again for the first time; each further one is twice as long.
const FIRST_RETRY_WAIT: Span = Span::from_secs(10);
/// The longest of these waits.
const LONGEST_RETRY_WAIT: Span = Span::from_secs(600);

/// How long a job waits after it has failed so many times.
fn wait_before_retry(n_failures: u32) -> Span {
    let doubled = FIRST_RETRY_WAIT.0.saturating_mul(1 << (n_failures.clamp(1, 30) - 1));
    Span(doubled).min(LONGEST_RETRY_WAIT)
}

impl State {
    /// Orders the launches whose GPUs are free; called once for each batch of inputs.
    pub(crate) fn launch_what_can(&mut self, moment: Moment) {
        for attempt in self.launches.ready() {
            if self.is_within_reach(attempt) {
                self.begin(moment, attempt);
            }
        }
    }

    /// Whether all nodes of a launch answer and have said what they run. Others are waited for: something that this head
    /// does not know of may run there, and an order that is on its way for long may be carried out too late.
    fn is_within_reach(&self, attempt: Attempt) -> bool {
        let nodes = self.launches.get(attempt).into_iter().flat_map(|live| &live.allocation.slices);
        nodes.into_iter().all(|slice| self.agents.answers(slice.node))
    }

    fn begin(&mut self, moment: Moment, attempt: Attempt) {
        let is_waiting = self.launches.get(attempt).is_some_and(|live| live.phase == LaunchPhase::Waiting);
        if is_waiting && !self.fetch_checkpoint(moment, attempt) {
            self.start(moment, attempt);
        }
    }

    /// Orders a launch that has everything it needs.
    pub(super) fn start(&mut self, moment: Moment, attempt: Attempt) {
        let Some(job) = self.cluster.job(attempt.job) else { return };
        let Some(live) = self.launches.get(attempt) else { return };
        let done = job.done;
        let cluster = self.cluster.scheduler().cluster();
        let launches =
            launch_orders::launches(attempt, job, done, &live.allocation, cluster, self.time_scale);
        if let Some(live) = self.launches.get_mut(attempt) {
            live.phase = LaunchPhase::Starting;
            (live.checkpointed, live.iterations, live.begun) = (done, done, done);
        }
        match launches {
            Ok(launches) => {
                for (node, launch) in launches {
                    if let Some(live) = self.launches.get_mut(attempt) {
                        live.ranks.insert(node, Rank::Ordered);
                    }
                    self.order(moment, node, Task::Launch(Box::new(launch)));
                }
            }
            Err(error) => {
                self.fail(moment, attempt, error.to_string(), Blame::Job);
                self.conclude(moment, attempt);
            }
        }
    }

    /// Carries out a command. If a launch ends by it, returns the record of that end.
    pub(super) fn carry_out(&mut self, moment: Moment, command: Command) -> Option<Record> {
        match command {
            Command::Admit { .. } | Command::Decline { .. } => None,
            Command::Start { job, incarnation, allocation } => {
                self.launches.insert(Attempt { job, incarnation }, LiveLaunch::new(allocation));
                None
            }
            Command::Stop { job, incarnation, cause } => {
                let keep = if cause == StopCause::Cancelled { KeepWork::No } else { KeepWork::Yes };
                self.stop(moment, Attempt { job, incarnation }, keep)
            }
            Command::Resize { job, incarnation, allocation } => {
                self.resize(moment, Attempt { job, incarnation }, allocation);
                None
            }
        }
    }

    /// Tells jobs that are about to be stopped for a resize what their new size is.
    pub(super) fn announce_sizes(&mut self, moment: Moment, orders: &[Command]) {
        for order in orders {
            let Command::Start { job, incarnation, allocation } = order else { continue };
            let Some((attempt, live)) = self.launches.newest(*job) else { continue };
            let jobs = self.cluster.scheduler().jobs();
            let is_other = live.allocation.n_gpus() != allocation.n_gpus();
            if live.phase != LaunchPhase::Running
                || jobs.launch_after(attempt.incarnation) != *incarnation
                || !is_other
            {
                continue;
            }
            let (attempt, nodes) = (*attempt, live.alive_on());
            let per_node = self.cluster.job(*job).map(|job| job.request.start.processes);
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

    /// Orders a launch to stop; returns its end if no rank of it is alive any more.
    pub(super) fn stop(&mut self, moment: Moment, attempt: Attempt, keep: KeepWork) -> Option<Record> {
        let live = self.launches.get_mut(attempt)?;
        // No node knows of it: there is no end to wait for.
        if live.is_unordered() {
            self.launches.remove(attempt);
            let Attempt { job, incarnation } = attempt;
            let known = self.cluster.job(job).filter(|job| !job.standing.is_over())?;
            return Some(Record::JobStopped { job, incarnation, done: known.done });
        }
        let was_failing = matches!(live.phase, LaunchPhase::Failing { .. });
        live.phase = LaunchPhase::Stopping;
        for node in live.alive_on() {
            if !was_failing {
                self.order_stop(moment, attempt, node, keep);
            }
        }
        self.end_of(moment, attempt)
    }

    /// Orders one node to stop its part of a launch.
    pub(super) fn order_stop(&mut self, moment: Moment, attempt: Attempt, node: NodeId, keep_work: KeepWork) {
        let grace = self.cluster.job(attempt.job).map_or(Wait::NONE, |job| job.request.start.grace);
        self.order(moment, node, Task::Stop { attempt, grace, keep_work });
    }

    fn resize(&mut self, moment: Moment, attempt: Attempt, allocation: Allocation) {
        let Some(job) = self.cluster.job(attempt.job) else { return };
        let Ok(rate) = launch_orders::rate(job, &allocation, self.cluster.scheduler().cluster()) else {
            return;
        };
        let Some(live) = self.launches.get_mut(attempt) else { return };
        live.allocation = allocation.clone();
        if live.is_unordered() {
            return;
        }
        for slice in &allocation.slices {
            let Ok(host) = launch_orders::amount(&slice.host) else { continue };
            self.order(moment, slice.node, Task::Resize { attempt, host, rate });
        }
    }

    /// Notes that a launch has failed, and stops what is left of it.
    pub(super) fn fail(&mut self, moment: Moment, attempt: Attempt, reason: String, blame: Blame) {
        let Some(live) = self.launches.get_mut(attempt) else { return };
        if matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. }) {
            return;
        }
        live.phase = LaunchPhase::Failing { reason, blame };
        for node in live.alive_on() {
            self.order_stop(moment, attempt, node, KeepWork::Yes);
        }
    }

    /// Stops everything that runs, after a checkpoint where jobs can write one.
    pub(crate) fn stop_everything(&mut self, moment: Moment, reason: &str) {
        for attempt in self.launches.attempts() {
            self.fail(moment, attempt, reason.to_owned(), Blame::Nobody);
            self.conclude(moment, attempt);
        }
    }

    /// Records the end of a launch of which nothing is alive any more.
    pub(super) fn conclude(&mut self, moment: Moment, attempt: Attempt) {
        if let Some(record) = self.end_of(moment, attempt) {
            self.record(moment, record);
        }
    }

    /// Removes a launch of which nothing is alive; returns how it ended, if its job has not ended already.
    fn end_of(&mut self, moment: Moment, attempt: Attempt) -> Option<Record> {
        let live = self.launches.take_gone(attempt)?;
        let Attempt { job, incarnation } = attempt;
        self.cluster.job(job).filter(|job| !job.standing.is_over())?;
        let done = live.checkpointed + live.skipped;
        if live.is_done() {
            // It may have been launched again meanwhile, if its node was away: that launch has nothing left to do.
            let current = self.cluster.incarnation(job).unwrap_or(incarnation);
            for other in self.launches.drop_unordered(job) {
                self.withdraw(moment, other);
            }
            let done = live.iterations + live.skipped;
            return Some(Record::JobFinished { job, incarnation: current, done });
        }
        match live.phase {
            LaunchPhase::Stopping => Some(Record::JobStopped { job, incarnation, done }),
            // Every node would say the same, and go on saying it.
            LaunchPhase::Failing { reason, .. } if live.is_refused => Some(Record::JobFailed { job, reason }),
            LaunchPhase::Failing { reason, blame } => {
                self.requeue_or_give_up(moment, attempt, done, reason, blame)
            }
            _ => {
                let reason = "some ranks finished, others did not".into();
                self.requeue_or_give_up(moment, attempt, done, reason, Blame::Job)
            }
        }
    }

    /// Stops a launch whose job has ended.
    fn withdraw(&mut self, moment: Moment, attempt: Attempt) {
        let Some(live) = self.launches.get_mut(attempt) else { return };
        let was_stopping = matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. });
        live.phase = LaunchPhase::Stopping;
        for node in live.alive_on() {
            if !was_stopping {
                self.order_stop(moment, attempt, node, KeepWork::No);
            }
        }
    }

    /// A job that fails is tried again as often as its owner asked for; one that nodes fail to run, a few times.
    fn requeue_or_give_up(
        &self,
        moment: Moment,
        Attempt { job, incarnation }: Attempt,
        done: f64,
        reason: String,
        blame: Blame,
    ) -> Option<Record> {
        let known = self.cluster.job(job)?;
        let (count, most) = match blame {
            Blame::Job => (known.n_failures + 1, known.request.start.most_failures.max(1)),
            Blame::Node => (known.n_troubles + 1, MOST_TROUBLES),
            Blame::Nobody => (0, u32::MAX),
        };
        if count >= most {
            let reason = match count {
                1 => reason,
                count => format!("failed {count} times, the last time {reason}"),
            };
            return Some(Record::JobFailed { job, reason });
        }
        let not_before = (count > 0).then(|| moment.now + wait_before_retry(count));
        let is_failure = blame == Blame::Job;
        Some(Record::JobRequeued { job, incarnation, done, reason, is_failure, not_before })
    }
}
