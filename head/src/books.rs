//! The head's books: the scheduler, every job ever taken in, and which policy decides.
//!
//! They change by records alone (`Books::apply`), so that a restart and a replay arrive where the live head was. Nothing
//! here talks to an agent, a user, a disk or a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rota_core::check::check;
use rota_core::cluster::Cluster;
use rota_core::event::{Command, Event, StopCause};
use rota_core::ids::{Incarnation, JobId, NodeId, TenantId};
use rota_core::job::{Costs, Deadline, GpuRequest, JobSpec};
use rota_core::plan::Plan;
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::scheduler::{Impact, Scheduler};
use rota_core::time::Time;
use rota_traces::error::InputError;
use rota_traces::profile::ProfileSet;
use rota_transport::message::JobRequest;

use super::record::Record;
use super::rules::Rules;
use crate::pace::bounded;

/// Seconds that a job is thought to run which does not say how long.
const UNKNOWN_WORK_S: f64 = 86_400.0;

/// A job from its reception on.
#[derive(Clone, Debug)]
pub struct JobRecord {
    /// Who sent it.
    pub user: String,
    /// What was asked.
    pub request: Arc<JobRequest>,
    /// As the scheduler sees it.
    pub spec: Arc<JobSpec>,
    /// Where it stands.
    pub standing: Standing,
    /// Why, where there is something to say.
    pub reason: String,
    /// When it first held GPUs with every rank up.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// Failures it is to blame for.
    pub n_failures: u32,
    /// Times it was stopped for others.
    pub n_preemptions: u32,
    /// Iterations that survive whatever happens; all of them once it has finished.
    pub done: f64,
    /// How many times as fast as its profile it has shown itself to be; 1 until it has shown anything.
    pub pace: f64,
    /// Its last launch, and the nodes of it.
    pub last_launch: (Incarnation, Vec<NodeId>),
    /// The first node of the last launch that ran: its checkpoints are there, where nodes share no path for them.
    pub ran_on: Option<NodeId>,
    /// Iterations that its last launch was credited with when time was passed over.
    pub skipped: f64,
}

/// Where a job stands, as far as the books know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Taken in, not yet before the scheduler.
    Held,
    /// Before the scheduler.
    Active,
    /// Its work is done.
    Finished,
    /// Refused.
    Declined,
    /// Withdrawn.
    Cancelled,
    /// Given up.
    Failed,
}

impl Standing {
    /// Whether it has ended.
    pub fn is_over(self) -> bool {
        !matches!(self, Standing::Held | Standing::Active)
    }
}

/// What came of a record.
#[derive(Debug)]
pub struct Applied {
    /// What the scheduler heard, if something.
    pub event: Option<Event>,
    /// What must be ordered.
    pub orders: Vec<Command>,
}

/// The policy that decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub policy: String,
    /// Its parameters.
    pub set: Vec<(String, String)>,
    /// Its private memory after its last answer.
    pub memory: String,
}

/// What is known.
#[derive(Debug)]
pub struct Books {
    /// The scheduler's state.
    pub scheduler: Scheduler,
    /// Every job, by number.
    pub jobs: Vec<JobRecord>,
    /// Jobs that were taken in and are not yet before the scheduler.
    pub held: BTreeSet<JobId>,
    /// Names of nodes, by number.
    pub nodes: Vec<String>,
    /// Nodes that an operator took out of service.
    pub drained: Vec<NodeId>,
    /// The policy.
    pub chosen: Chosen,
    /// Decisions asked for so far.
    pub n_rounds: u64,
    /// Since when jobs, nodes or what is held are others than the policy was last asked about.
    pub changed: Option<Time>,
    /// Whether something came from outside since then: a job, an end, a node, a policy; not what a plan itself moved.
    pub is_woken: bool,
    /// Requests that were answered, by sender and key.
    pub answered: BTreeMap<(String, u64), Vec<JobId>>,
    profiles: Arc<ProfileSet>,
    tenants: Vec<String>,
}

impl Books {
    /// Books in which nothing has happened.
    pub fn new(rules: &Rules) -> Result<Self, InputError> {
        let cluster = Arc::new(Cluster::empty("live"));
        Ok(Books {
            scheduler: Scheduler::new(cluster, rules.guards(), rules.round, Vec::new()),
            jobs: Vec::new(),
            held: BTreeSet::new(),
            nodes: Vec::new(),
            drained: Vec::new(),
            chosen: Chosen::default(),
            n_rounds: 0,
            changed: None,
            is_woken: false,
            answered: BTreeMap::new(),
            profiles: rules.profile_set()?,
            tenants: rules.quotas.iter().map(|(tenant, _)| tenant.clone()).collect(),
        })
    }

    /// Takes a record in; what must be ordered because of it.
    pub fn apply(&mut self, now: Time, record: &Record) -> Applied {
        let mut orders = Vec::new();
        let event = self.note(now, record);
        if let Some(event) = &event {
            if self.scheduler.handle(now, event, &mut orders) == Impact::Changed {
                self.changed.get_or_insert(now);
                // A launch that was told to stop has done so: the round that said it knew.
                self.is_woken |= !matches!(event, Event::JobStopped { .. });
            }
        } else if let Record::Planned { plan, memory, .. } = record {
            orders = self.commit(now, plan.into());
            self.chosen.memory.clone_from(memory);
            // What happened while the policy decided has left its own mark.
            if !orders.is_empty() {
                self.changed.get_or_insert(now);
            }
        }
        for order in &orders {
            self.note_order(now, order);
        }
        Applied { event, orders }
    }

    /// Models that jobs may name.
    pub fn profiles(&self) -> &ProfileSet {
        &self.profiles
    }

    /// Names of the tenants, by number.
    pub fn tenants(&self) -> &[String] {
        &self.tenants
    }

    /// A job by number.
    pub fn job(&self, id: JobId) -> Option<&JobRecord> {
        self.jobs.get(id.index())
    }

    /// The current launch of a job that the scheduler knows.
    pub fn incarnation(&self, id: JobId) -> Option<Incarnation> {
        let jobs = self.scheduler.jobs();
        jobs.row(id).map(|row| jobs.incarnation(row))
    }

    /// What is known of a job's progress now.
    pub fn done(&self, id: JobId) -> f64 {
        let jobs = self.scheduler.jobs();
        jobs.row(id).map_or_else(|| self.job(id).map_or(0.0, |job| job.done), |row| jobs.done(row))
    }

    /// The number of a node by its name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|known| known == name).map(NodeId::from)
    }

    /// Keeps note of a record; the event that the scheduler shall hear, if one.
    fn note(&mut self, now: Time, record: &Record) -> Option<Event> {
        match record {
            Record::JobReceived { job, user, key, request } => {
                self.receive(now, *job, user, *key, request);
                None
            }
            Record::JobSubmitted { job } => {
                let known = self.jobs.get_mut(job.index())?;
                self.held.remove(job);
                known.standing = Standing::Active;
                Some(Event::JobSubmitted(Arc::clone(&known.spec)))
            }
            Record::JobStarted { job, incarnation } => {
                let known = self.jobs.get_mut(job.index())?;
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
                let known = self.jobs.get_mut(job.index())?;
                let factor = bounded(*pace) / known.pace;
                known.pace = bounded(*pace);
                let profile = Arc::new(known.spec.profile.at_pace(factor));
                known.spec = Arc::new(JobSpec { profile, ..(*known.spec).clone() });
                Some(Event::JobCorrected(Arc::clone(&known.spec)))
            }
            Record::JobCheckpointed { job, done, .. } => {
                self.keep(*job, *done)?;
                None
            }
            Record::JobStopped { job, incarnation, done } => {
                let done = self.keep(*job, *done)?;
                Some(Event::JobStopped { job: *job, incarnation: *incarnation, done })
            }
            Record::JobRequeued { job, incarnation, done, reason, is_failure } => {
                let done = self.keep(*job, *done)?;
                let known = self.jobs.get_mut(job.index())?;
                known.n_failures += u32::from(*is_failure);
                known.reason.clone_from(reason);
                Some(Event::JobRequeued { job: *job, incarnation: *incarnation, done })
            }
            Record::JobFinished { job, incarnation, done } => {
                let known = self.jobs.get_mut(job.index())?;
                (known.standing, known.ended, known.done) = (Standing::Finished, Some(now), *done);
                known.reason.clear();
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
            Record::NodeDrained { node, is_drained, .. } => {
                self.drained.retain(|known| known != node);
                if *is_drained {
                    self.drained.push(*node);
                    return Some(Event::NodeLost { node: *node });
                }
                None
            }
            Record::PolicySet { policy, set, .. } => {
                // The same policy with a new text keeps its memory.
                if (&self.chosen.policy, &self.chosen.set) != (policy, set) {
                    self.chosen = Chosen { policy: policy.clone(), set: set.clone(), memory: String::new() };
                }
                self.changed.get_or_insert(now);
                self.is_woken = true;
                None
            }
            Record::RoundBegan { round, protects } => {
                self.n_rounds = *round;
                if let Some(span) = protects {
                    self.scheduler.set_min_run(*span);
                }
                (self.changed, self.is_woken) = (None, false);
                None
            }
            Record::TimeJumped { jobs } => {
                for (job, incarnation, done) in jobs {
                    let known = self.jobs.get_mut(job.index());
                    if let Some(known) = known.filter(|known| known.last_launch.0 == *incarnation) {
                        known.skipped += done;
                    }
                }
                None
            }
            Record::HeadStarted { .. }
            | Record::PolicyFailed { .. }
            | Record::PlanOvertaken { .. }
            | Record::Planned { .. }
            | Record::Noted { .. } => None,
        }
    }

    /// Work that survives grows: what an older launch says late takes nothing back.
    fn keep(&mut self, job: JobId, done: f64) -> Option<f64> {
        let known = self.jobs.get_mut(job.index())?;
        known.done = known.done.max(done);
        Some(known.done)
    }

    fn end(&mut self, now: Time, job: JobId, standing: Standing, reason: String) -> Option<Event> {
        let known = self.jobs.get_mut(job.index())?;
        let was_held = self.held.remove(&job);
        (known.standing, known.ended, known.reason) = (standing, Some(now), reason);
        (!was_held).then_some(Event::JobCancelled { job })
    }

    fn receive(&mut self, now: Time, job: JobId, user: &str, key: u64, request: &JobRequest) {
        let spec = Arc::new(self.spec(now, job, user, request));
        self.answered.entry((user.to_owned(), key)).or_default().push(job);
        self.held.insert(job);
        self.jobs.push(JobRecord {
            user: user.to_owned(),
            request: Arc::new(request.clone()),
            spec,
            standing: Standing::Held,
            reason: String::new(),
            started: None,
            ended: None,
            n_failures: 0,
            n_preemptions: 0,
            done: 0.0,
            pace: 1.0,
            last_launch: (Incarnation(0), Vec::new()),
            ran_on: None,
            skipped: 0.0,
        });
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
            self.tenants.len() - 1
        });
        let model = request.model.as_str();
        let profile = self.profiles.get(model).cloned();
        // A job without a profile works one second in a second: its iterations are seconds. What it needs of a host nobody
        // knows: it is given the share of its GPUs, also by policies that go by needs.
        let demand_per_gpu = self.least_share();
        let profile =
            profile.unwrap_or_else(|| Arc::new(Profile { demand_per_gpu, ..Profile::plain(model, 1.0) }));
        let own = &request.start;
        let costs = Costs {
            restart: own.restart.span().max(profile.restart),
            checkpoint: profile.checkpoint,
            checkpoint_every: own.checkpoint_every.span(),
        };
        let gpu_type = self.scheduler.cluster().gpu_type_id(request.gpu_type.as_str());
        JobSpec {
            id,
            name: request.name.as_str().into(),
            tenant: TenantId::from(tenant),
            priority: request.priority,
            batch: request.batch,
            gpus: GpuRequest { asked: request.gpus, levels: request.levels.clone().into() },
            gpu_type,
            estimated_work: if request.work.count() > 0.0 { request.work.count() } else { UNKNOWN_WORK_S },
            arrival: now,
            deadline: request.deadline.map_or(Deadline::None, |wait| Deadline::Strict(now + wait.span())),
            dataset: None,
            costs: Some(costs),
            profile,
        }
    }

    /// The share of a host that every node has for each of its GPUs.
    fn least_share(&self) -> Host {
        let shares = self.scheduler.cluster().nodes().iter().map(rota_core::cluster::Node::share_per_gpu);
        shares.reduce(|a, b| a.min(&b)).unwrap_or(Host::NONE)
    }

    /// Makes a plan true. One that was written down was checked before; if it cannot be any more, nothing changes.
    fn commit(&mut self, now: Time, mut plan: Plan) -> Vec<Command> {
        plan.notes.clear();
        let snapshot = self.scheduler.snapshot(now);
        let checked = check(&snapshot, plan);
        drop(snapshot);
        checked.map_or_else(|_| Vec::new(), |checked| self.scheduler.commit(now, checked))
    }

    fn note_order(&mut self, now: Time, order: &Command) {
        match order {
            Command::Decline { job, reason } => {
                if let Some(known) = self.jobs.get_mut(job.index()) {
                    (known.standing, known.ended) = (Standing::Declined, Some(now));
                    known.reason.clone_from(reason);
                }
            }
            Command::Start { job, incarnation, allocation } => {
                if let Some(known) = self.jobs.get_mut(job.index()) {
                    let nodes = allocation.slices.iter().map(|slice| slice.node).collect();
                    known.last_launch = (*incarnation, nodes);
                    known.skipped = 0.0;
                    known.reason.clear();
                }
            }
            Command::Stop { job, cause: StopCause::Preempted | StopCause::NodeLost, .. } => {
                if let Some(known) = self.jobs.get_mut(job.index()) {
                    known.n_preemptions += 1;
                }
            }
            Command::Stop { .. } | Command::Admit { .. } | Command::Resize { .. } => {}
        }
    }
}
