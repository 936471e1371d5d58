//! What the head does with launches: orders to start, stop and resize them, and how they end.
//!
//! A record leads to commands, a command may end a launch, and the end of a launch is a record again. `end_of` therefore
//! returns its record, and the loop in `State::record` handles it.

use rota_core::allocation::Allocation;
use rota_core::event::{Command, StopCause};
use rota_core::ids::NodeId;
use rota_transport::message::{Attempt, KeepWork, Processes, Task};
use rota_transport::value::Wait;

use super::launches::{LaunchPhase, LiveLaunch, Rank};
use super::{Moment, State, launch_orders};
use crate::record::Record;

impl State {
    /// Orders the launches whose GPUs are free; called once for each batch of inputs.
    pub(crate) fn launch_what_can(&mut self, moment: Moment) {
        for attempt in self.launches.ready() {
            self.begin(moment, attempt);
        }
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
                self.fail(moment, attempt, error.to_string(), true);
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
            let is_other = live.allocation.n_gpus() != allocation.n_gpus();
            if live.phase != LaunchPhase::Running || attempt.incarnation.0 + 1 != incarnation.0 || !is_other {
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
            return None;
        }
        let was_failing = matches!(live.phase, LaunchPhase::Failing { .. });
        live.phase = LaunchPhase::Stopping;
        for node in live.alive_on() {
            if !was_failing {
                self.order_stop(moment, attempt, node, keep);
            }
        }
        self.end_of(attempt)
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
    pub(super) fn fail(&mut self, moment: Moment, attempt: Attempt, reason: String, is_failure: bool) {
        let Some(live) = self.launches.get_mut(attempt) else { return };
        if matches!(live.phase, LaunchPhase::Stopping | LaunchPhase::Failing { .. }) {
            return;
        }
        live.phase = LaunchPhase::Failing { reason, is_failure };
        for node in live.alive_on() {
            self.order_stop(moment, attempt, node, KeepWork::Yes);
        }
    }

    /// Stops everything that runs, after a checkpoint where jobs can write one.
    pub(crate) fn stop_everything(&mut self, moment: Moment, reason: &str) {
        for attempt in self.launches.attempts() {
            self.fail(moment, attempt, reason.to_owned(), false);
            self.conclude(moment, attempt);
        }
    }

    /// Records the end of a launch of which nothing is alive any more.
    pub(super) fn conclude(&mut self, moment: Moment, attempt: Attempt) {
        if let Some(record) = self.end_of(attempt) {
            self.record(moment, record);
        }
    }

    /// Removes a launch of which nothing is alive; returns how it ended, if its job has not ended already.
    fn end_of(&mut self, attempt: Attempt) -> Option<Record> {
        let live = self.launches.take_gone(attempt)?;
        let Attempt { job, incarnation } = attempt;
        self.cluster.job(job).filter(|job| !job.standing.is_over())?;
        let done = live.checkpointed + live.skipped;
        if live.is_done() {
            // It may have been launched again meanwhile; that launch has nothing left to do.
            let current = self.cluster.incarnation(job).unwrap_or(incarnation);
            self.launches.drop_waiting(job);
            let done = live.iterations + live.skipped;
            return Some(Record::JobFinished { job, incarnation: current, done });
        }
        match live.phase {
            LaunchPhase::Stopping => Some(Record::JobStopped { job, incarnation, done }),
            // Every node would say the same, and go on saying it.
            LaunchPhase::Failing { reason, .. } if live.is_refused => Some(Record::JobFailed { job, reason }),
            LaunchPhase::Failing { reason, is_failure } => {
                self.requeue_or_give_up(attempt, done, reason, is_failure)
            }
            _ => {
                let reason = "some ranks finished, others did not".into();
                self.requeue_or_give_up(attempt, done, reason, true)
            }
        }
    }

    fn requeue_or_give_up(
        &self,
        Attempt { job, incarnation }: Attempt,
        done: f64,
        reason: String,
        is_failure: bool,
    ) -> Option<Record> {
        let known = self.cluster.job(job)?;
        let most = known.request.start.most_failures;
        if is_failure && known.n_failures + 1 >= most.max(1) {
            let reason = format!("failed {} times, the last time {reason}", known.n_failures + 1);
            return Some(Record::JobFailed { job, reason });
        }
        Some(Record::JobRequeued { job, incarnation, done, reason, is_failure })
    }
}
