//! The state that the journal's records add up to: the scheduler, jobs, and which policy decides.
//!
//! It changes by records alone ([`ClusterState::apply`]); its fields are private to this module. A restart and a replay
//! therefore arrive where the live head was. Jobs that have ended leave it when the history has them
//! ([`ClusterState::retire`]), which nothing else depends on. Nothing here talks to an agent, a user, a disk or a clock. `fold`
//! is what each record does, `jobs` what is kept of a job, `life` what else happens to one, `image` how a state is written down.

mod fold;
mod image;
mod jobs;
mod life;

pub use image::{Image, ImageError};

use jobs::{Answered, base_profile, paced};
pub use jobs::{JobRecord, Standing};
pub use life::{JobLife, OnHold};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rota_core::allocation::Allocation;
use rota_core::check::{CheckedPlan, PlanViolation, check};
use rota_core::cluster::Cluster;
use rota_core::event::{Command, Event};
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::round::Decision;
use rota_core::scheduler::{Impact, Scheduler};
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_traces::error::InputError;
use rota_traces::profile::ProfileSet;
use serde::{Deserialize, Serialize};

use crate::record::{PlanRecord, Record};
use crate::rules::Rules;

/// What followed from a record.
#[derive(Debug, Default)]
pub struct Applied {
    /// The event that the scheduler was given, if the record is one.
    pub event: Option<Event>,
    /// Launches and stops that the agents must now be given.
    pub orders: Vec<Command>,
    /// Why a plan in the journal was left out: it does not fit the state that the records before it add up to. The live
    /// head writes no such plan, so the journal was damaged or edited.
    pub refused: Option<PlanViolation>,
    /// Jobs that ended by it.
    pub ended: Vec<JobId>,
}

/// The policy that decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentPolicy {
    /// Its name, parts joined by `+`; empty before one was set.
    pub name: String,
    /// Its parameters with their values as text, in the order they were given.
    pub set: Vec<(String, String)>,
    /// Names and texts of its scripts that came with the request that chose it.
    pub texts: Vec<(String, String)>,
    /// Names and texts of its scripts that were read from files, as they were then.
    pub files: Vec<(String, String)>,
    /// Its private memory after its last plan that was accepted.
    pub memory: String,
    /// Why a changed text of its scripts is not used; empty if there is none.
    pub refused: String,
}

/// Everything the head knows that survives a restart. A copy is cheap: it shares jobs and tables until one of the two changes.
#[derive(Clone, Debug)]
pub struct ClusterState {
    rules: Arc<Rules>,
    scheduler: Scheduler,
    /// Jobs by number, those that have ended and were retired left out.
    jobs: BTreeMap<JobId, Arc<JobRecord>>,
    /// The number of the next job.
    next_job: JobId,
    /// Numbers that were left out because a lost state may have given them: the first, and the one after the last.
    skipped_jobs: Vec<(JobId, JobId)>,
    /// Jobs that were received and have not reached the scheduler, or were taken out of it.
    held: BTreeSet<JobId>,
    /// Names of nodes, by number.
    nodes: Vec<String>,
    /// Nodes that an operator took out of service.
    drained: Vec<NodeId>,
    /// Nodes that take no new jobs.
    closed: BTreeSet<NodeId>,
    /// Why nodes are drained or closed, as operators put it.
    drain_reasons: BTreeMap<NodeId, String>,
    /// When running jobs reach their time limits.
    limits: BTreeSet<(Time, JobId)>,
    policy: CurrentPolicy,
    /// Decisions asked for so far.
    n_rounds: u64,
    changed: Option<Time>,
    is_woken: bool,
    /// Requests that were answered, by sender and key.
    answered: BTreeMap<(String, u64), Answered>,
    /// The hour in which old ones were last forgotten.
    answered_hour: i64,
    profiles: Arc<ProfileSet>,
    /// Names of tenants, by number.
    tenants: Vec<String>,
}

impl ClusterState {
    /// A cluster in which nothing has happened.
    pub fn new(rules: &Rules) -> Result<Self, InputError> {
        let cluster = Arc::new(Cluster::empty("live"));
        let tenants: Vec<String> = rules.quotas.iter().map(|(tenant, _)| tenant.clone()).collect();
        let mut scheduler = Scheduler::new(cluster, rules.guards(), rules.round, Vec::new());
        scheduler.name_tenants(&tenants);
        Ok(ClusterState {
            rules: Arc::new(rules.clone()),
            scheduler,
            jobs: BTreeMap::new(),
            next_job: JobId(0),
            skipped_jobs: Vec::new(),
            held: BTreeSet::new(),
            nodes: Vec::new(),
            drained: Vec::new(),
            closed: BTreeSet::new(),
            drain_reasons: BTreeMap::new(),
            limits: BTreeSet::new(),
            policy: CurrentPolicy::default(),
            n_rounds: 0,
            changed: None,
            is_woken: false,
            answered: BTreeMap::new(),
            answered_hour: 0,
            profiles: rules.profile_set()?,
            tenants,
        })
    }

    /// Applies a record. A plan is checked here, because it comes from a journal, which may be damaged.
    pub fn apply(&mut self, now: Time, record: &Record) -> Applied {
        if let Record::Planned { plan, memory, keeps_memory, .. } = record {
            let mut plan = plan.to_plan(self.scheduler.jobs());
            plan.notes.clear();
            let memory = if *keeps_memory { self.policy.memory.clone() } else { memory.clone() };
            // The snapshot is dropped before the commit: while it exists, every change would copy the table.
            let checked = check(&self.scheduler.snapshot(now), plan);
            return match checked {
                Ok(checked) => self.commit(now, checked, &memory),
                Err(violation) => Applied { refused: Some(violation), ..Applied::default() },
            };
        }
        if let Record::JobAdopted { job, incarnation, allocation } = record {
            return self.adopt(now, *job, *incarnation, allocation);
        }
        let event = self.fold(now, record);
        let mut ended = Vec::new();
        if let Record::JobFinished { job, .. }
        | Record::JobCancelled { job, .. }
        | Record::JobFailed { job, .. }
        | Record::JobTimedOut { job, .. }
        | Record::JobDeclined { job, .. }
        | Record::JobRecalled { job, .. } = record
        {
            self.count_gpu_time(now, *job);
            ended.extend(self.job(*job).map(|_| *job));
        }
        let mut orders = Vec::new();
        if let Some(event) = &event
            && self.scheduler.handle(now, event, &mut orders) == Impact::Changed
        {
            self.changed.get_or_insert(now);
            // The round that ordered a launch to stop already took its end into account.
            self.is_woken |= !matches!(event, Event::JobStopped { .. });
        }
        self.set_aside(now, record);
        self.note_orders(now, &orders);
        ended.extend(declined(&orders));
        Applied { event, orders, refused: None, ended }
    }

    /// Notes the GPU time of a job that ends, while the scheduler still knows it.
    fn count_gpu_time(&mut self, now: Time, job: JobId) {
        let tables = [self.scheduler.jobs(), self.scheduler.parked()];
        let gpu_s = tables.into_iter().find_map(|jobs| jobs.row(job).map(|row| jobs.service_at(row, now)));
        if let (Some(gpu_s), Some(known)) = (gpu_s, self.job_mut(job)) {
            known.gpu_s = gpu_s;
        }
    }

    /// Commits a plan that was accepted just now, without another check, and returns the record to be written for it.
    /// Applying that record does the same.
    pub fn plan(&mut self, now: Time, round: u64, decision: Decision, memory: String) -> (Record, Applied) {
        let plan = PlanRecord::from(&decision).without_what_stays(self.scheduler.jobs());
        let keeps_memory = memory == self.policy.memory;
        let applied = self.commit(now, decision.checked, &memory);
        let memory = if keeps_memory { String::new() } else { memory };
        (Record::Planned { round, plan, memory, keeps_memory }, applied)
    }

    /// Takes over a launch that runs already; the orders are those that would have led to it.
    fn adopt(&mut self, now: Time, job: JobId, incarnation: Incarnation, allocation: &Allocation) -> Applied {
        match self.scheduler.adopt(now, job, incarnation, allocation) {
            Ok(orders) => {
                self.changed.get_or_insert(now);
                self.note_orders(now, &orders);
                Applied { orders, ..Applied::default() }
            }
            Err(violation) => Applied { refused: Some(violation), ..Applied::default() },
        }
    }

    fn commit(&mut self, now: Time, checked: CheckedPlan, memory: &str) -> Applied {
        let orders = self.scheduler.commit(now, checked);
        memory.clone_into(&mut self.policy.memory);
        // What happened while the policy decided has set this flag again.
        if !orders.is_empty() {
            self.changed.get_or_insert(now);
        }
        self.note_orders(now, &orders);
        let ended = declined(&orders).collect();
        Applied { orders, ended, ..Applied::default() }
    }

    /// What a policy sees at this moment.
    pub fn snapshot(&mut self, now: Time) -> Snapshot {
        self.scheduler.snapshot(now)
    }

    /// The scheduler's state.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Jobs by number: those that have not ended, and those that have and were not retired.
    pub fn jobs(&self) -> &BTreeMap<JobId, Arc<JobRecord>> {
        &self.jobs
    }

    /// A job by number; none also for one that was retired.
    pub fn job(&self, id: JobId) -> Option<&JobRecord> {
        self.jobs.get(&id).map(|job| &**job)
    }

    /// The least number of launches to come.
    pub fn first_launch(&self) -> Incarnation {
        self.scheduler.jobs().launch_after(Incarnation(0))
    }

    /// Whether a job that is not known may have been one of a lost state.
    pub fn may_be_lost(&self, job: JobId) -> bool {
        self.skipped_jobs.iter().any(|(first, past)| (*first..*past).contains(&job))
    }

    /// The number that the next job gets.
    pub fn next_job(&self) -> JobId {
        self.next_job
    }

    fn job_mut(&mut self, id: JobId) -> Option<&mut JobRecord> {
        self.jobs.get_mut(&id).map(Arc::make_mut)
    }

    /// Forgets jobs that have ended, except those that are still needed. The history must have them. Jobs of a lost state are kept:
    /// a node that comes back late may still name them, and must not bring them back to life.
    pub fn retire(&mut self, is_needed: impl Fn(JobId) -> bool) {
        let lost = &self.skipped_jobs;
        let is_of_lost = |id: &JobId| lost.iter().any(|(first, past)| (*first..*past).contains(id));
        self.jobs.retain(|id, job| !job.standing.is_over() || is_of_lost(id) || is_needed(*id));
    }

    /// Jobs that were received and have not reached the scheduler.
    pub fn held(&self) -> &BTreeSet<JobId> {
        &self.held
    }

    /// Names of nodes, by number.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The name of a node; empty for one that never joined.
    pub fn node_name(&self, node: NodeId) -> &str {
        self.nodes.get(node.index()).map_or("", String::as_str)
    }

    /// The number of a node by its name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|known| known == name).map(NodeId::from)
    }

    /// Whether jobs may run on a node.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.scheduler.nodes().is_up.get(node.index()) == Some(&true)
    }

    /// Whether a node cannot be reached for longer than its lease, and what runs there is left alone.
    pub fn is_cut_off(&self, node: NodeId) -> bool {
        self.scheduler.nodes().cut_off.contains(&node)
    }

    /// Whether an operator took a node out of service.
    pub fn is_drained(&self, node: NodeId) -> bool {
        self.drained.contains(&node)
    }

    /// Nodes that take no new jobs.
    pub fn closed(&self) -> &BTreeSet<NodeId> {
        &self.closed
    }

    /// Why a node is drained or takes no new jobs; empty if nobody said.
    pub fn drain_reason(&self, node: NodeId) -> &str {
        self.drain_reasons.get(&node).map_or("", String::as_str)
    }

    /// The policy that decides, with its memory.
    pub fn policy(&self) -> &CurrentPolicy {
        &self.policy
    }

    /// Rounds begun so far.
    pub fn n_rounds(&self) -> u64 {
        self.n_rounds
    }

    /// Since when jobs, nodes or what is held differ from what the policy was last asked about.
    pub fn changed(&self) -> Option<Time> {
        self.changed
    }

    /// Whether something came from outside since then: a job, an end, a node, a policy; not what a plan itself moved.
    pub fn is_woken(&self) -> bool {
        self.is_woken
    }

    /// The jobs of a request that was answered before.
    pub fn answered(&self, user: &str, key: u64) -> Option<&[JobId]> {
        self.answered.get(&(user.to_owned(), key)).map(|known| known.jobs.as_slice())
    }

    /// Models that jobs may name.
    pub fn profiles(&self) -> &ProfileSet {
        &self.profiles
    }

    /// Names of the tenants, by number.
    pub fn tenants(&self) -> &[String] {
        &self.tenants
    }

    /// The current launch of a job that the scheduler knows.
    pub fn incarnation(&self, id: JobId) -> Option<Incarnation> {
        let tables = [self.scheduler.jobs(), self.scheduler.parked()];
        tables.into_iter().find_map(|jobs| jobs.row(id).map(|row| jobs.incarnation(row)))
    }

    /// Jobs that may be tried again now, by ascending number.
    pub fn resumable(&self, now: Time) -> Vec<JobId> {
        let parked = self.scheduler.parked();
        let is_due = |job: &JobId| self.job(*job).and_then(|job| job.not_before).is_none_or(|at| at <= now);
        let mut due: Vec<_> = (0..parked.len()).map(|row| parked.id(row)).filter(is_due).collect();
        due.sort_unstable();
        due
    }

    /// What is known of a job's progress now, in iterations.
    pub fn done(&self, id: JobId) -> f64 {
        let tables = [self.scheduler.jobs(), self.scheduler.parked()];
        let known = tables.into_iter().find_map(|jobs| jobs.row(id).map(|row| jobs.done(row)));
        known.unwrap_or_else(|| self.job(id).map_or(0.0, |job| job.done))
    }
}

fn declined(orders: &[Command]) -> impl Iterator<Item = JobId> {
    orders.iter().filter_map(|order| match order {
        Command::Decline { job, .. } => Some(*job),
        _ => None,
    })
}
