//! What is kept of a job, and how a request becomes one.

use std::sync::Arc;

use rota_core::ids::{Incarnation, JobId, NodeId, TenantId};
use rota_core::job::{Costs, Deadline, GpuRequest, JobSpec};
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_traces::profile::ProfileSet;
use rota_transport::message::JobRequest;
use serde::{Deserialize, Serialize};

use super::ClusterState;
use super::life::{JobLife, OnHold};
use crate::rules::Rules;

/// Seconds that a job without a time limit is assumed to run when its request does not say how long.
const UNKNOWN_WORK_S: f64 = 86_400.0;
const HOUR: Span = Span::from_secs(3600);
/// How long the answer to a submission is kept for a sender that asks again.
const ANSWERS_KEPT: Span = Span::from_secs(24 * 3600);

/// A job from its reception on.
#[derive(Clone, Debug)]
pub struct JobRecord {
    /// The name in the sender's certificate.
    pub user: String,
    /// As the user asked for it.
    pub request: Arc<JobRequest>,
    /// As the scheduler sees it; its speed is corrected by what it reports.
    pub spec: Arc<JobSpec>,
    /// How far it has come.
    pub standing: Standing,
    /// Why it waits, was declined or has ended, for people; empty if there is nothing to add.
    pub reason: String,
    /// When it first held GPUs with every rank up.
    pub started: Option<Time>,
    /// When it finished or was declined, cancelled or given up.
    pub ended: Option<Time>,
    /// Launches that failed because of the job itself.
    pub n_failures: u32,
    /// Launches that failed because of a node.
    pub n_troubles: u32,
    /// It is not tried again before.
    pub not_before: Option<Time>,
    /// Launches that were ordered to stop and whose end is not known, with their nodes.
    pub leaving: Vec<(Incarnation, Vec<NodeId>)>,
    /// Times it was stopped in favour of others or because a node was lost.
    pub n_preemptions: u32,
    /// Iterations that are saved in a checkpoint; all of them once the job has finished.
    pub done: f64,
    /// Its measured speed as a multiple of its profile's; 1 until it was measured.
    pub pace: f64,
    /// Its last launch and the nodes that it was on.
    pub last_launch: (Incarnation, Vec<NodeId>),
    /// The first node of the last launch that ran: its checkpoints are there, where nodes share no path for them.
    pub ran_on: Option<NodeId>,
    /// Iterations that its last launch was credited with when time was skipped.
    pub skipped: f64,
    /// How long it has run, who holds it, what it waits for.
    pub life: JobLife,
    /// GPU time it received, in GPU-seconds; counted when it ends.
    pub gpu_s: f64,
}

impl JobRecord {
    /// Why it waits, was declined or has ended, and in how long it is tried again.
    pub fn reason_at(&self, now: Time) -> String {
        match self.not_before.filter(|_| !self.standing.is_over()) {
            Some(at) => {
                let left_s = (at - now).as_secs_f64().max(0.0);
                format!("{}; it is tried again in {left_s:.0} s", self.reason)
            }
            None => self.reason.clone(),
        }
    }
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Taken in, or taken out of the queue: the scheduler does not know it.
    Held,
    /// The scheduler knows it: it asks, waits or runs.
    Active,
    /// Its work is done.
    Finished,
    /// Refused by the policy, or larger than the cluster.
    Declined,
    /// Cancelled by a user.
    Cancelled,
    /// Given up after too many failures.
    Failed,
    /// Stopped because it had run for as long as it may.
    TimeLimit,
}

impl Standing {
    /// Whether it has ended.
    pub fn is_over(self) -> bool {
        !matches!(self, Standing::Held | Standing::Active)
    }

    /// Its name in the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::Held => "held",
            Standing::Active => "active",
            Standing::Finished => "finished",
            Standing::Declined => "declined",
            Standing::Cancelled => "cancelled",
            Standing::Failed => "failed",
            Standing::TimeLimit => "time-limit",
        }
    }

    /// The standing with a name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [
            Standing::Held,
            Standing::Active,
            Standing::Finished,
            Standing::Declined,
            Standing::Cancelled,
            Standing::Failed,
            Standing::TimeLimit,
        ];
        all.into_iter().find(|standing| standing.as_str() == name)
    }
}

/// When a request was answered, and with which jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) at: Time,
    pub(super) jobs: Vec<JobId>,
}

impl Answered {
    fn at(at: Time) -> Self {
        Answered { at, jobs: Vec::new() }
    }
}

/// The profile of a model. The iterations of a job without one are seconds. Its demand for host resources is unknown: it is
/// given `demand_per_gpu`, the share of its GPUs, even by policies that allocate by demand.
pub(super) fn base_profile(profiles: &ProfileSet, model: &str, demand_per_gpu: Host) -> Arc<Profile> {
    let plain = || Arc::new(Profile { demand_per_gpu, ..Profile::plain(model, 1.0) });
    profiles.get(model).cloned().unwrap_or_else(plain)
}

/// A profile at a job's own pace.
pub(super) fn paced(base: &Arc<Profile>, pace: f64) -> Arc<Profile> {
    if pace == 1.0 { Arc::clone(base) } else { Arc::new(base.at_pace(pace)) }
}

fn costs(request: &JobRequest, profile: &Profile) -> Costs {
    Costs {
        restart: request.start.restart.span().max(profile.restart),
        checkpoint: profile.checkpoint,
        checkpoint_every: request.start.checkpoint_every.span(),
    }
}

impl ClusterState {
    /// Takes a job in.
    pub(super) fn receive(&mut self, now: Time, job: JobId, user: &str, key: u64, request: &JobRequest) {
        let spec = Arc::new(self.spec(now, job, user, request));
        self.forget_answers(now);
        self.answered.entry((user.to_owned(), key)).or_insert_with(|| Answered::at(now)).jobs.push(job);
        self.held.insert(job);
        self.next_job = self.next_job.max(JobId(job.0.saturating_add(1)));
        let record = JobRecord {
            user: user.to_owned(),
            request: Arc::new(request.clone()),
            spec,
            standing: Standing::Held,
            reason: String::new(),
            started: None,
            ended: None,
            n_failures: 0,
            n_troubles: 0,
            not_before: None,
            leaving: Vec::new(),
            n_preemptions: 0,
            done: 0.0,
            pace: 1.0,
            last_launch: (Incarnation(0), Vec::new()),
            ran_on: None,
            skipped: 0.0,
            life: JobLife {
                key,
                unmet: request.conditions.after.clone(),
                hold: request
                    .conditions
                    .is_held
                    .then(|| OnHold { user: user.to_owned(), by_operator: false }),
                ..JobLife::default()
            },
            gpu_s: 0.0,
        };
        self.jobs.insert(job, Arc::new(record));
    }

    /// Answers that nobody asks for again are forgotten, once an hour.
    fn forget_answers(&mut self, now: Time) {
        let hour = now.0.div_euclid(HOUR.0);
        if std::mem::replace(&mut self.answered_hour, hour) != hour {
            self.answered.retain(|_, known| now - known.at < ANSWERS_KEPT);
        }
    }

    /// What is known of all jobs changes with the rules: their tenants' numbers and their models' speed.
    pub(super) fn take_rules(&mut self, now: Time, rules: &Rules) {
        if let Ok(profiles) = rules.profile_set() {
            self.profiles = profiles;
        }
        let before = std::mem::take(&mut self.tenants);
        self.tenants = rules.quotas.iter().map(|(tenant, _)| tenant.clone()).collect();
        let others: Vec<_> = before.iter().filter(|name| !self.tenants.contains(name)).cloned().collect();
        self.tenants.extend(others);
        let number = |old: TenantId| {
            let name = before.get(old.index());
            name.and_then(|name| self.tenants.iter().position(|known| known == name)).map(TenantId::from)
        };
        for job in self.jobs.values_mut().filter(|job| !job.standing.is_over()) {
            let base =
                base_profile(&self.profiles, job.request.model.as_str(), job.spec.profile.demand_per_gpu);
            let costs = Some(costs(&job.request, &base));
            let tenant = number(job.spec.tenant).unwrap_or(job.spec.tenant);
            let profile = paced(&base, job.pace);
            let spec = JobSpec { tenant, costs, profile, ..JobSpec::clone(&job.spec) };
            Arc::make_mut(job).spec = Arc::new(spec);
        }
        self.scheduler.name_tenants(&self.tenants);
        let jobs = &self.jobs;
        let spec_of = |job: JobId| jobs.get(&job).map(|job| Arc::clone(&job.spec));
        self.scheduler.revise(now, rules.guards(), rules.round, spec_of);
        self.rules = Arc::new(rules.clone());
    }

    /// A job as the scheduler sees it.
    fn spec(&mut self, now: Time, id: JobId, user: &str, request: &JobRequest) -> JobSpec {
        let tenant = match request.tenant.as_str() {
            "" => user,
            named => named,
        };
        let known = self.tenants.iter().position(|known| known == tenant);
        let tenant = known.unwrap_or_else(|| {
            self.tenants.push(tenant.to_owned());
            self.scheduler.name_tenants(&self.tenants);
            self.tenants.len() - 1
        });
        let profile = base_profile(&self.profiles, request.model.as_str(), self.least_share());
        let gpu_type = self.scheduler.cluster().gpu_type_id(request.gpu_type.as_str());
        let unknown = request.conditions.time_limit.map_or(UNKNOWN_WORK_S, |most| most.span().as_secs_f64());
        JobSpec {
            id,
            name: request.name.as_str().into(),
            tenant: TenantId::from(tenant),
            priority: request.priority,
            batch: request.batch,
            gpus: GpuRequest { asked: request.gpus, levels: request.levels.clone().into() },
            gpu_type,
            estimated_work: if request.work.count() > 0.0 { request.work.count() } else { unknown },
            arrival: now,
            deadline: request.deadline.map_or(Deadline::None, |wait| Deadline::Strict(now + wait.span())),
            dataset: None,
            costs: Some(costs(request, &profile)),
            profile,
        }
    }

    /// The share of a host that every node has for each of its GPUs.
    fn least_share(&self) -> Host {
        let shares = self.scheduler.cluster().nodes().iter().map(rota_core::cluster::Node::share_per_gpu);
        shares.reduce(|a, b| a.min(&b)).unwrap_or(Host::NONE)
    }
}
