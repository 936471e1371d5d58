//! What follows from a state that was restored from an older copy and accepted by an operator: launches that it does not know
//! are adopted, or named and stopped, and jobs that ended since the copy was made are not run again.
//!
//! Agents that served the lost state say before their inventory which jobs ended on their nodes, and where their launches come
//! from. Nothing is decided before every lease of the lost state is over or its agent has reported.

use std::collections::BTreeMap;

use rota_core::allocation::Allocation;
use rota_core::check::PlanViolation;
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::time::Time;
use rota_transport::message::{
    Attempt, AttemptInfo, AttemptState, JobEnd, KeepWork, Origin, RecalledJob, Task,
};
use rota_transport::value::is_plain;

use super::launches::{LaunchPhase, Rank};
use super::{Moment, State};
use crate::cluster_state::Standing;
use crate::record::Record;

/// The most launches whose origin is kept until they are settled.
const MOST_ORIGINS: usize = 100_000;

/// Why a launch that runs is not taken over, as the journal says it.
#[derive(Debug, thiserror::Error)]
enum NotAdopted {
    #[error("it has ended")]
    LaunchEnded,
    #[error("it does not run everywhere")]
    RunsNotEverywhere,
    #[error("it runs on {n_running} of its {n_nodes} nodes")]
    NodesMissing { n_running: usize, n_nodes: u32 },
    #[error("its job is not known, and its node does not remember what was asked for")]
    JobUnknown,
    #[error("its job has ended")]
    JobEnded,
    #[error("what its node remembers of it is no valid request")]
    BadRequest,
    #[error("{0}")]
    DoesNotFit(#[from] PlanViolation),
}

/// What agents have said about a lost state, and until when the head waits for them.
#[derive(Debug, Default)]
pub(crate) struct Restoring {
    /// Nothing is decided before, in real time.
    until: Option<Time>,
    /// Launches that run and that this state does not know, with how far each is on each node.
    unknown: BTreeMap<Attempt, BTreeMap<NodeId, AttemptState>>,
    origins: BTreeMap<Attempt, Origin>,
    ended: BTreeMap<JobId, RecalledJob>,
    /// Ranks of launches that are gone, and have done their work.
    n_done: BTreeMap<Attempt, u32>,
}

impl Restoring {
    /// Waits until a time.
    pub(super) fn until(until: Time) -> Self {
        Restoring { until: Some(until), ..Restoring::default() }
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        self.until
    }

    /// Takes jobs that ended on a node.
    pub(super) fn recall(&mut self, jobs: Vec<RecalledJob>) {
        for job in jobs.into_iter().filter(|job| job.end != JobEnd::None) {
            self.ended.insert(job.job, job);
        }
    }

    /// Takes the origin of a launch.
    pub(super) fn originates(&mut self, origin: Origin) {
        if self.origins.len() < MOST_ORIGINS {
            self.origins.insert(origin.attempt, origin);
        }
    }

    /// Whether it is not decided yet what becomes of a launch.
    pub(super) fn is_unsettled(&self, attempt: Attempt) -> bool {
        self.unknown.contains_key(&attempt)
    }

    /// A launch runs on a node, and is not known.
    pub(super) fn found(&mut self, attempt: Attempt, node: NodeId, state: AttemptState) {
        self.unknown.entry(attempt).or_default().insert(node, state);
    }
}

impl State {
    /// Whether the head still waits for agents that may know more than it does.
    pub(crate) fn is_waiting_for_leases(&self) -> bool {
        self.restoring.until.is_some()
    }

    /// Ends the wait when it is over.
    pub(super) fn restore_if_due(&mut self, moment: Moment) {
        if self.restoring.until.is_some_and(|until| moment.real >= until) {
            self.restoring.until = None;
            tracing::info!(
                "every lease of the state before is over or its agent has reported: decisions begin"
            );
            self.settle_restored(moment);
        }
    }

    /// A launch that a lost state had ordered ended before its agent came back: its job is over, or waits again.
    pub(super) fn recall_exit(&mut self, moment: Moment, node: NodeId, info: &AttemptInfo, is_done: bool) {
        let attempt = info.attempt;
        let origin = self.restoring.origins.get(&attempt).cloned();
        let n_nodes = origin.as_ref().map_or(1, |origin| origin.n_nodes);
        let mut end = JobEnd::None;
        match self.take_job_in(moment, attempt, origin) {
            Ok(()) if is_done => {
                let n_done = self.restoring.n_done.entry(attempt).or_default();
                *n_done += 1;
                if *n_done == n_nodes {
                    end = JobEnd::Finished;
                    let launch = attempt.incarnation.0;
                    self.restoring.ended.insert(attempt.job, RecalledJob { job: attempt.job, launch, end });
                }
            }
            Ok(()) => {
                let (job, incarnation, done) = (attempt.job, attempt.incarnation, info.checkpointed.count());
                if self.cluster.job(job).is_some_and(|known| known.done < done) {
                    self.record(moment, Record::JobCheckpointed { job, incarnation, done });
                }
            }
            Err(why) if self.cluster.job(attempt.job).is_none() => {
                let name = self.cluster.node_name(node).to_owned();
                let text = format!("{attempt} has ended on {name} and cannot be taken over: {why}");
                tracing::warn!("{text}");
                self.record(moment, Record::Noted { text });
            }
            Err(_) => {}
        }
        self.order(moment, node, Task::Forget { attempt, end });
    }

    /// Decides about all that agents have reported and this state does not know. Once the wait is over, after every
    /// inventory: agents may come back late.
    pub(super) fn settle_restored(&mut self, moment: Moment) {
        if self.is_waiting_for_leases() {
            return;
        }
        let unknown = std::mem::take(&mut self.restoring.unknown);
        for recalled in std::mem::take(&mut self.restoring.ended).into_values() {
            self.end_recalled(moment, recalled);
        }
        for (attempt, ranks) in unknown {
            if let Err(why) = self.adopt(moment, attempt, &ranks) {
                self.stop_unknown(moment, attempt, ranks.keys().copied(), why.to_string());
            }
        }
        self.restoring.origins.clear();
        self.restoring.n_done.clear();
    }

    /// A job that ended since the copy was made is over.
    fn end_recalled(&mut self, moment: Moment, recalled: RecalledJob) {
        let RecalledJob { job, launch, end } = recalled;
        let runs_later = self.launches.newest(job).is_some_and(|(attempt, _)| attempt.incarnation.0 > launch);
        let is_open = self.cluster.job(job).is_some_and(|known| !known.standing.is_over());
        if is_open && !runs_later {
            self.record(moment, Record::JobRecalled { job, incarnation: Incarnation(launch), end });
        }
    }

    /// Takes over a launch that runs completely and whose job is known, or can be; otherwise the reason why not.
    fn adopt(
        &mut self,
        moment: Moment,
        attempt: Attempt,
        ranks: &BTreeMap<NodeId, AttemptState>,
    ) -> Result<(), NotAdopted> {
        let origin = self.restoring.origins.remove(&attempt);
        let live = self.launches.get(attempt).ok_or(NotAdopted::LaunchEnded)?;
        if ranks.values().any(|state| *state != AttemptState::Running) {
            return Err(NotAdopted::RunsNotEverywhere);
        }
        if let Some(origin) = origin.as_ref().filter(|origin| origin.n_nodes as usize != ranks.len()) {
            return Err(NotAdopted::NodesMissing { n_running: ranks.len(), n_nodes: origin.n_nodes });
        }
        let mut slices = live.allocation.slices.clone();
        slices.sort_by_key(|slice| slice.node);
        let allocation = Allocation { slices };
        self.take_job_in(moment, attempt, origin)?;
        let Attempt { job, incarnation } = attempt;
        let record = Record::JobAdopted { job, incarnation, allocation: allocation.clone() };
        let applied = self.cluster.apply(moment.now, &record);
        if let Some(violation) = applied.refused {
            return Err(violation.into());
        }
        self.outbox.record(moment.now, record);
        let Some(live) = self.launches.get_mut(attempt) else { return Ok(()) };
        (live.phase, live.allocation) = (LaunchPhase::Running, allocation);
        live.ranks.values_mut().for_each(|rank| *rank = Rank::Up);
        live.has_done(live.iterations);
        let (begun, done) = (live.iterations, live.checkpointed);
        live.begun = begun;
        self.record(moment, Record::JobStarted { job, incarnation });
        if self.cluster.job(job).is_some_and(|known| known.done < done) {
            self.record(moment, Record::JobCheckpointed { job, incarnation, done });
        }
        Ok(())
    }

    /// Makes sure that the scheduler knows the job of a launch, if need be from what its node remembers of it.
    fn take_job_in(
        &mut self,
        moment: Moment,
        attempt: Attempt,
        origin: Option<Origin>,
    ) -> Result<(), NotAdopted> {
        let job = attempt.job;
        if self.cluster.job(job).is_none() {
            let origin = origin.ok_or(NotAdopted::JobUnknown)?;
            if !self.cluster.may_be_lost(job) {
                return Err(NotAdopted::JobEnded);
            }
            let request = origin.request;
            let ascends = request.levels.windows(2).all(|pair| pair.first() < pair.last());
            let texts = [&request.name, &request.tenant, &request.model, &request.gpu_type];
            if request.gpus == 0 || !ascends || !texts.iter().all(|text| is_plain(text.as_str())) {
                return Err(NotAdopted::BadRequest);
            }
            let key = u64::from(job.0) << 32 | u64::from(attempt.incarnation.0);
            let (user, request) = (origin.user.to_string(), Box::new(request));
            self.record(moment, Record::JobReceived { job, user, key, request });
        }
        match self.cluster.job(job).map(|known| known.standing) {
            Some(Standing::Held) => self.record(moment, Record::JobSubmitted { job }),
            Some(Standing::Active) => {}
            _ => return Err(NotAdopted::JobEnded),
        }
        Ok(())
    }

    /// Stops a launch that nobody knows, and says so.
    pub(super) fn stop_unknown(
        &mut self,
        moment: Moment,
        attempt: Attempt,
        nodes: impl Iterator<Item = NodeId>,
        why: String,
    ) {
        let nodes: Vec<_> = nodes.collect();
        let names: Vec<_> = nodes.iter().map(|node| self.cluster.node_name(*node).to_owned()).collect();
        let text =
            format!("{attempt} runs on {} and is not known: it is stopped, because {why}", names.join(", "));
        tracing::warn!("{text}");
        self.record(moment, Record::Noted { text });
        for node in nodes {
            self.order_stop(moment, attempt, node, KeepWork::Yes);
        }
    }
}
