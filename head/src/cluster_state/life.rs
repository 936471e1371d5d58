//! What is kept of a job besides its request and its standing: how long it has run, who holds it, what it waits for, how its last
//! launch failed. The records that change these are folded here.

use std::sync::Arc;

use rota_core::event::{Event, KeptJob};
use rota_core::ids::JobId;
use rota_core::job::JobSpec;
use rota_core::time::{Span, Time};
use rota_transport::message::{Dependency, Needs};
use serde::{Deserialize, Serialize};

use super::{ClusterState, JobRecord, Standing};
use crate::record::Record;

/// What happened to a job so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobLife {
    /// The sender's key: jobs of one user with one key were submitted together.
    pub key: u64,
    /// How long its launches ran that are over, with every rank up.
    pub ran: Span,
    /// Since when every rank of its launch has been up.
    pub runs_since: Option<Time>,
    /// Who holds it.
    pub hold: Option<OnHold>,
    /// Jobs that have to end before it may begin.
    pub unmet: Vec<Dependency>,
    /// Why it can never begin.
    pub broken: Option<String>,
    /// What the scheduler knew of it when it was taken out of the queue.
    pub kept: Option<KeptJob>,
    /// What its last launch that failed by itself ended with: its exit code, or 128 and the number of the signal.
    pub exit_code: Option<i32>,
}

/// Who keeps a job from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnHold {
    /// Their name.
    pub user: String,
    /// Whether only operators may release it: an operator held a job of somebody else.
    pub by_operator: bool,
}

impl JobRecord {
    /// When its time limit is reached, if it runs on.
    pub fn limit_at(&self) -> Option<Time> {
        let limit = self.request.conditions.time_limit?.span();
        Some(self.life.runs_since? + Span((limit.0 - self.life.ran.0).max(0)))
    }

    /// Why it is kept back, as users read it; none if nothing keeps it.
    pub fn kept_back(&self) -> Option<String> {
        if let Some(hold) = &self.life.hold {
            return Some(format!("on hold by {}", hold.user));
        }
        let first = self.life.unmet.first()?;
        let how = match first.needs {
            Needs::Ended => "to end",
            Needs::Finished => "to finish",
        };
        Some(match self.life.unmet.len() {
            1 => format!("waits for job {} {how}", first.job),
            n => format!("waits for job {} {how}, and for {} more jobs", first.job, n - 1),
        })
    }
}

impl ClusterState {
    /// The next time at which a running job reaches its time limit, and which.
    pub fn next_limit(&self) -> Option<(Time, JobId)> {
        self.limits.first().copied()
    }

    /// Jobs that the scheduler may be given now, and those that can never begin, with the reason.
    pub fn settled(&self) -> (Vec<JobId>, Vec<(JobId, String)>) {
        let (mut ready, mut broken) = (Vec::new(), Vec::new());
        for id in &self.held {
            let Some(job) = self.job(*id) else { continue };
            match &job.life.broken {
                Some(reason) => broken.push((*id, reason.clone())),
                None if job.kept_back().is_none() => ready.push(*id),
                None => {}
            }
        }
        (ready, broken)
    }

    /// A job that was kept back reaches the scheduler: for the first time, or again.
    pub(super) fn hand_over(&mut self, job: JobId) -> Option<Event> {
        self.held.remove(&job);
        let known = self.job_mut(job)?;
        known.standing = Standing::Active;
        let spec = Arc::clone(&known.spec);
        Some(match known.life.kept.take() {
            None => Event::JobSubmitted(spec),
            // Work that was not saved when its launch was stopped is lost.
            Some(kept) => Event::JobReturned { spec, kept: KeptJob { done: known.done, ..kept } },
        })
    }

    /// Takes a job out of the queue; if it runs, it is stopped.
    fn take_out(&mut self, now: Time, job: JobId) -> Option<Event> {
        let kept = self.scheduler.kept(now, job);
        let known = self.job_mut(job)?;
        if known.standing != Standing::Active {
            return None;
        }
        known.standing = Standing::Held;
        known.gpu_s = kept.map_or(known.gpu_s, |kept| kept.service_s);
        known.life.kept = kept;
        self.held.insert(job);
        Some(Event::JobWithdrawn { job })
    }

    /// What the records of this module's matters do.
    pub(super) fn fold_life(&mut self, now: Time, record: &Record) -> Option<Event> {
        match record {
            Record::JobTimedOut { job, ran } => {
                let reason = format!("reached its time limit after {:.0} s", ran.as_secs_f64());
                self.end(now, *job, Standing::TimeLimit, reason)?;
                Some(Event::JobWithdrawn { job: *job })
            }
            Record::JobDeclined { job, reason } => self.end(now, *job, Standing::Declined, reason.clone()),
            Record::JobExited { job, code, .. } => {
                self.job_mut(*job)?.life.exit_code = Some(*code);
                None
            }
            Record::JobHeld { job, user, by_operator } => {
                let hold = OnHold { user: user.clone(), by_operator: *by_operator };
                self.job_mut(*job)?.life.hold = Some(hold);
                self.take_out(now, *job)
            }
            Record::JobReleased { job, .. } => {
                self.job_mut(*job)?.life.hold = None;
                None
            }
            Record::JobSentBack { job, user } => {
                self.job_mut(*job)?.reason = format!("sent back to the queue by {user}");
                self.take_out(now, *job)
            }
            Record::JobPrioritized { job, priority, .. } => {
                let known = self.job_mut(*job)?;
                known.spec = Arc::new(JobSpec { priority: *priority, ..(*known.spec).clone() });
                let is_active = known.standing == Standing::Active;
                is_active.then(|| Event::JobCorrected(Arc::clone(&known.spec)))
            }
            Record::NodeClosed { node, reason, .. } => {
                self.closed.insert(*node);
                self.drain_reasons.insert(*node, reason.clone());
                Some(Event::NodeClosed { node: *node })
            }
            Record::NodeOpened { node, .. } => {
                self.drain_reasons.remove(node);
                if !self.closed.remove(node) {
                    return None;
                }
                Some(Event::NodeOpened { node: *node })
            }
            _ => None,
        }
    }

    /// Every rank of a job's launch is up: its time counts.
    pub(super) fn begins_to_run(&mut self, now: Time, job: JobId) {
        self.stops_running(now, job);
        let Some(known) = self.job_mut(job) else { return };
        known.life.runs_since = Some(now);
        if let Some(at) = known.limit_at() {
            self.limits.insert((at, job));
        }
    }

    /// A job's launch is over: its time no longer counts.
    pub(super) fn stops_running(&mut self, now: Time, job: JobId) {
        let Some(known) = self.job_mut(job) else { return };
        let at = known.limit_at();
        if let Some(since) = known.life.runs_since.take() {
            known.life.ran += (now - since).max(Span::ZERO);
        }
        if let Some(at) = at {
            self.limits.remove(&(at, job));
        }
    }

    /// A job has ended: jobs that waited for it may begin, or never will.
    pub(super) fn tell_dependents(&mut self, ended: JobId, standing: Standing) {
        let is_about = |dependency: &Dependency| dependency.job == ended;
        let waits = |id: &&JobId| self.job(**id).is_some_and(|job| job.life.unmet.iter().any(is_about));
        let waiting: Vec<JobId> = self.held.iter().filter(waits).copied().collect();
        for id in waiting {
            let Some(job) = self.job_mut(id) else { continue };
            let Some(met) = job.life.unmet.iter().find(|d| is_about(d)).copied() else { continue };
            if met.needs == Needs::Finished && standing != Standing::Finished {
                let how = match standing {
                    Standing::Cancelled => "was cancelled",
                    Standing::Declined => "was declined",
                    Standing::TimeLimit => "reached its time limit",
                    _ => "failed",
                };
                job.life.broken = Some(format!("job {ended}, which had to finish first, {how}"));
            }
            job.life.unmet.retain(|dependency| !is_about(dependency));
        }
    }
}
