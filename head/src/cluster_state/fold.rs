//! What each record does to the cluster's state.

use std::sync::Arc;

use rota_core::event::{Command, Event, StopCause};
use rota_core::ids::{Incarnation, JobId};
use rota_core::job::JobSpec;
use rota_core::scheduler::Impact;
use rota_core::time::Time;
use rota_transport::message::JobEnd;

use super::{ClusterState, CurrentPolicy, Standing, base_profile, paced};
use crate::pace::bounded;
use crate::record::Record;

impl ClusterState {
    /// What a record changes outside the scheduler; the event for the scheduler, if the record is one.
    pub(super) fn fold(&mut self, now: Time, record: &Record) -> Option<Event> {
        match record {
            Record::JobReceived { job, user, key, request } => {
                self.receive(now, *job, user, *key, request);
                None
            }
            Record::JobSubmitted { job } => self.hand_over(*job),
            Record::JobStarted { job, incarnation } => {
                self.begins_to_run(now, *job);
                let known = self.job_mut(*job)?;
                known.started.get_or_insert(now);
                if known.last_launch.0 == *incarnation {
                    known.ran_on = known.last_launch.1.first().copied();
                }
                None
            }
            Record::JobProgressed { job, incarnation, done } => {
                Some(Event::JobProgressed { job: *job, incarnation: *incarnation, done: *done })
            }
            Record::JobPaced { job, pace } => {
                let profiles = Arc::clone(&self.profiles);
                let known = self.job_mut(*job)?;
                known.pace = bounded(*pace);
                let (model, demand_per_gpu) =
                    (known.request.model.as_str(), known.spec.profile.demand_per_gpu);
                let profile = paced(&base_profile(&profiles, model, demand_per_gpu), known.pace);
                known.spec = Arc::new(JobSpec { profile, ..(*known.spec).clone() });
                Some(Event::JobCorrected(Arc::clone(&known.spec)))
            }
            Record::JobCheckpointed { job, done, .. } => {
                self.keep(*job, *done)?;
                None
            }
            Record::JobStopped { job, incarnation, done } => {
                self.stops_running(now, *job);
                let done = self.keep(*job, *done)?;
                self.has_left(*job, *incarnation);
                Some(Event::JobStopped { job: *job, incarnation: *incarnation, done })
            }
            Record::JobRequeued { job, incarnation, done, reason, is_failure, not_before } => {
                self.stops_running(now, *job);
                let done = self.keep(*job, *done)?;
                self.has_left(*job, *incarnation);
                let known = self.job_mut(*job)?;
                known.n_failures += u32::from(*is_failure);
                known.n_troubles += u32::from(!is_failure && not_before.is_some());
                known.not_before = *not_before;
                known.reason.clone_from(reason);
                Some(Event::JobRequeued { job: *job, incarnation: *incarnation, done })
            }
            Record::JobFinished { job, incarnation, done } => {
                self.stops_running(now, *job);
                self.held.remove(job);
                self.tell_dependents(*job, Standing::Finished);
                let known = self.job_mut(*job)?;
                (known.standing, known.ended, known.done) = (Standing::Finished, Some(now), *done);
                known.reason.clear();
                known.leaving.clear();
                Some(Event::JobFinished { job: *job, incarnation: *incarnation })
            }
            Record::JobCancelled { job, user } => {
                self.end(now, *job, Standing::Cancelled, format!("cancelled by {user}"))
            }
            Record::JobFailed { job, reason } => self.end(now, *job, Standing::Failed, reason.clone()),
            Record::NodeJoined { name, rack, has, .. } => {
                self.nodes.push(name.clone());
                let group = Arc::new(has.to_group());
                Some(Event::NodeJoined { name: name.as_str().into(), rack: *rack, group })
            }
            Record::NodeLost { node, .. } => Some(Event::NodeLost { node: *node }),
            Record::NodeReturned { node } => Some(Event::NodeReturned { node: *node }),
            Record::GpuLost { node, gpu, .. } => Some(Event::GpuLost { node: *node, gpu: *gpu }),
            Record::GpuReturned { node, gpu } => Some(Event::GpuReturned { node: *node, gpu: *gpu }),
            Record::NodeDrained { node, is_drained, reason, .. } => {
                self.drained.retain(|known| known != node);
                self.drain_reasons.remove(node);
                if *is_drained {
                    self.drained.push(*node);
                    self.drain_reasons.insert(*node, reason.clone());
                    return Some(Event::NodeLost { node: *node });
                }
                None
            }
            Record::PolicySet { policy, set, texts, files, .. } => {
                // The same policy with a new text keeps its memory.
                if (&self.policy.name, &self.policy.set) != (policy, set) {
                    let (name, set) = (policy.clone(), set.clone());
                    self.policy = CurrentPolicy { name, set, ..CurrentPolicy::default() };
                }
                self.policy.texts.clone_from(texts);
                self.policy.files.clone_from(files);
                self.policy.refused.clear();
                self.wake(now)
            }
            Record::RoundBegan { round, protects } => {
                self.n_rounds = *round;
                if let Some(span) = protects {
                    self.scheduler.set_min_run(*span);
                }
                (self.changed, self.is_woken) = (None, false);
                None
            }
            Record::TimeJumped { jobs, .. } => {
                for (job, incarnation, done) in jobs {
                    let known = self.job_mut(*job);
                    if let Some(known) = known.filter(|known| known.last_launch.0 == *incarnation) {
                        known.skipped += done;
                    }
                }
                None
            }
            Record::Progressed { jobs } => {
                for (job, incarnation, done) in jobs {
                    let event = Event::JobProgressed { job: *job, incarnation: *incarnation, done: *done };
                    // Progress changes no set of jobs, and nothing is ordered for it.
                    self.scheduler.handle(now, &event, &mut Vec::new());
                }
                None
            }
            Record::HeadStarted { rules: Some(rules), .. } => {
                if **rules != *self.rules {
                    self.take_rules(now, rules);
                }
                None
            }
            Record::PolicyRefused { reason } => {
                self.policy.refused.clone_from(reason);
                None
            }
            // The policy is asked again at once, with the memory of its last accepted plan.
            Record::PlanOvertaken { .. } => self.wake(now),
            Record::NumbersSkipped { first_job, first_launch } => {
                if *first_job > self.next_job {
                    self.skipped_jobs.push((self.next_job, *first_job));
                    self.next_job = *first_job;
                }
                self.scheduler.skip_launches(*first_launch);
                None
            }
            Record::JobRecalled { job, end, .. } => {
                let standing = match end {
                    JobEnd::None => return None,
                    JobEnd::Finished => Standing::Finished,
                    JobEnd::Cancelled => Standing::Cancelled,
                    JobEnd::Failed => Standing::Failed,
                };
                let known = self.job_mut(*job).filter(|known| !known.standing.is_over())?;
                if standing == Standing::Finished {
                    known.done = known.done.max(known.spec.estimated_work);
                }
                self.end(now, *job, standing, "ended before the state was restored".into())
            }
            Record::HeadStarted { .. }
            | Record::RestoreAccepted { .. }
            | Record::JobAdopted { .. }
            | Record::PolicyFailed { .. }
            | Record::Planned { .. }
            | Record::Acted { .. }
            | Record::Image { .. }
            | Record::Noted { .. }
            | Record::JobResumed { .. }
            | Record::NodeCutOff { .. } => None,
            Record::JobTimedOut { .. }
            | Record::JobDeclined { .. }
            | Record::JobExited { .. }
            | Record::JobHeld { .. }
            | Record::JobReleased { .. }
            | Record::JobSentBack { .. }
            | Record::JobPrioritized { .. }
            | Record::NodeClosed { .. }
            | Record::NodeOpened { .. } => self.fold_life(now, record),
        }
    }

    /// What a record does to the scheduler that is not an event of a simulation: a job is put aside or taken back, a node is
    /// cut off.
    pub(super) fn set_aside(&mut self, now: Time, record: &Record) {
        let impact = match record {
            Record::JobRequeued { job, not_before: Some(_), .. } => self.scheduler.park(*job),
            Record::JobResumed { job } => {
                if let Some(known) = self.job_mut(*job) {
                    known.not_before = None;
                }
                self.scheduler.resume(*job)
            }
            Record::NodeCutOff { node, .. } => self.scheduler.cut_off(*node),
            _ => Impact::Same,
        };
        if impact == Impact::Changed {
            self.wake(now);
        }
    }

    /// A launch that was ordered to stop is gone.
    fn has_left(&mut self, job: JobId, incarnation: Incarnation) {
        if let Some(known) = self.job_mut(job) {
            known.leaving.retain(|(launch, _)| *launch != incarnation);
        }
    }

    /// Makes a round due as soon as one may be held.
    fn wake(&mut self, now: Time) -> Option<Event> {
        self.changed.get_or_insert(now);
        self.is_woken = true;
        None
    }

    /// Saved work only grows: a late report of an older launch does not reduce it.
    fn keep(&mut self, job: JobId, done: f64) -> Option<f64> {
        let known = self.job_mut(job)?;
        known.done = known.done.max(done);
        Some(known.done)
    }

    pub(super) fn end(&mut self, now: Time, job: JobId, standing: Standing, reason: String) -> Option<Event> {
        self.stops_running(now, job);
        self.tell_dependents(job, standing);
        let was_held = self.held.remove(&job);
        let known = self.job_mut(job)?;
        (known.standing, known.ended, known.reason) = (standing, Some(now), reason);
        known.leaving.clear();
        (!was_held).then_some(Event::JobCancelled { job })
    }

    /// Notes at each job what the scheduler ordered for it.
    pub(super) fn note_orders(&mut self, now: Time, orders: &[Command]) {
        orders.iter().for_each(|order| self.note_order(now, order));
    }

    fn note_order(&mut self, now: Time, order: &Command) {
        match order {
            Command::Decline { job, reason } => {
                self.tell_dependents(*job, Standing::Declined);
                if let Some(known) = self.job_mut(*job) {
                    (known.standing, known.ended) = (Standing::Declined, Some(now));
                    known.reason.clone_from(reason);
                }
            }
            Command::Start { job, incarnation, allocation } => {
                if let Some(known) = self.job_mut(*job) {
                    let nodes = allocation.slices.iter().map(|slice| slice.node).collect();
                    known.last_launch = (*incarnation, nodes);
                    known.skipped = 0.0;
                    known.reason.clear();
                }
            }
            Command::Stop { job, incarnation, cause } if *cause != StopCause::Cancelled => {
                if let Some(known) = self.job_mut(*job) {
                    known.n_preemptions += u32::from(*cause != StopCause::Withdrawn);
                    if known.last_launch.0 == *incarnation {
                        known.leaving.push(known.last_launch.clone());
                    }
                }
            }
            Command::Stop { .. } | Command::Admit { .. } | Command::Resize { .. } => {}
        }
    }
}
