//! A cluster state as it is written down: an image. A state that was read back goes on exactly as the one that was written,
//! so a restart needs the last image and the records after it, and a replay can begin at any image.
//!
//! An image is JSON. A new field of what it holds needs a default, or images of earlier versions cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rota_core::cluster::{Cluster, ClusterError, NodeGroup};
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::job::JobSpec;
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::scheduler::Scheduler;
use rota_core::snapshot::NodeStates;
use rota_core::table::{JobTable, RestoreError, SavedTable};
use rota_core::time::{Span, Time};
use rota_traces::error::InputError;
use rota_transport::message::JobRequest;
use serde::{Deserialize, Serialize};

use super::{Answered, ClusterState, CurrentPolicy, JobLife, JobRecord, Standing, base_profile, paced};
use crate::record::{NodeHas, Record};
use crate::rules::Rules;

/// A cluster state that was written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    rules: Rules,
    nodes: Vec<SavedNode>,
    states: NodeStates,
    drained: Vec<NodeId>,
    closed: BTreeSet<NodeId>,
    drain_reasons: Vec<(NodeId, String)>,
    tenants: Vec<String>,
    policy: CurrentPolicy,
    n_rounds: u64,
    changed: Option<Time>,
    is_woken: bool,
    min_run: Span,
    next_job: JobId,
    skipped_jobs: Vec<(JobId, JobId)>,
    answered: Vec<(String, u64, Answered)>,
    answered_hour: i64,
    jobs: Vec<SavedJob>,
    table: SavedTable,
    parked: SavedTable,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedNode {
    name: String,
    rack: u32,
    has: NodeHas,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedJob {
    id: JobId,
    user: String,
    request: JobRequest,
    /// Without its profile, which is that of its model, or a plain one with this demand.
    spec: JobSpec,
    demand_per_gpu: Host,
    standing: Standing,
    reason: String,
    started: Option<Time>,
    ended: Option<Time>,
    n_failures: u32,
    n_troubles: u32,
    not_before: Option<Time>,
    leaving: Vec<(Incarnation, Vec<NodeId>)>,
    n_preemptions: u32,
    done: f64,
    pace: f64,
    last_launch: (Incarnation, Vec<NodeId>),
    ran_on: Option<NodeId>,
    skipped: f64,
    gpu_s: f64,
    life: JobLife,
}

/// An image that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Its profiles cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Its jobs do not fit each other.
    #[error(transparent)]
    Table(#[from] RestoreError),
    /// Its nodes are no cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Image {
    /// Jobs in it that have not ended.
    pub fn n_jobs(&self) -> usize {
        self.jobs.iter().filter(|job| !job.standing.is_over()).count()
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The number that the next job will get.
    pub fn next_job(&self) -> JobId {
        self.next_job
    }

    /// The same without jobs that have ended: what states that add up to the same must agree on, since ended jobs leave
    /// a state once the history has them.
    #[must_use]
    pub fn without_ended(mut self) -> Self {
        self.jobs.retain(|job| !job.standing.is_over());
        self
    }
}

impl ClusterState {
    /// The state as it is written down.
    pub fn image(&self) -> Image {
        // Every field is named, so that a new one is not forgotten here.
        let ClusterState {
            rules,
            scheduler,
            jobs,
            next_job,
            skipped_jobs,
            held: _,
            nodes: _,
            drained,
            closed,
            drain_reasons,
            limits: _,
            policy,
            n_rounds,
            changed,
            is_woken,
            answered,
            answered_hour,
            profiles: _,
            tenants,
        } = self;
        let (cluster, states) = (scheduler.cluster(), scheduler.nodes());
        let node = |node: &rota_core::cluster::Node| SavedNode {
            name: node.name.clone(),
            rack: node.rack,
            has: NodeHas {
                gpu_type: cluster.gpu_types().get(node.gpu_type.index()).cloned().unwrap_or_default(),
                n_gpus: node.n_gpus,
                gpu_mem_bytes: node.gpu_mem_bytes,
                host: node.host,
            },
        };
        // What is read back has none either, so two images of one state are equal.
        let no_profile = Arc::new(Profile::plain("", 1.0));
        let answered = answered.iter().map(|((user, key), jobs)| (user.clone(), *key, jobs.clone()));
        Image {
            rules: Rules::clone(rules),
            nodes: cluster.nodes().iter().map(node).collect(),
            states: states.clone(),
            drained: drained.clone(),
            closed: closed.clone(),
            drain_reasons: drain_reasons.iter().map(|(node, reason)| (*node, reason.clone())).collect(),
            tenants: tenants.clone(),
            policy: policy.clone(),
            n_rounds: *n_rounds,
            changed: *changed,
            is_woken: *is_woken,
            min_run: scheduler.min_run(),
            next_job: *next_job,
            skipped_jobs: skipped_jobs.clone(),
            answered: answered.collect(),
            answered_hour: *answered_hour,
            jobs: jobs.iter().map(|(id, job)| SavedJob::of(*id, job, &no_profile)).collect(),
            table: scheduler.jobs().save(),
            parked: scheduler.parked().save(),
        }
    }

    /// A state that was written down.
    pub fn restore(image: Image) -> Result<Self, ImageError> {
        let Image { rules, nodes, drained, tenants, policy, n_rounds, changed, is_woken, .. } = image;
        let profiles = rules.profile_set()?;
        let jobs: BTreeMap<JobId, Arc<JobRecord>> =
            image.jobs.into_iter().map(|job| (job.id, Arc::new(job.restore(&profiles)))).collect();
        let groups: Vec<NodeGroup> = nodes.iter().map(|node| node.has.to_group()).collect();
        let joined = nodes.iter().zip(&groups).map(|(node, group)| (node.name.as_str(), node.rack, group));
        let cluster = match nodes.is_empty() {
            true => Cluster::empty("live"),
            false => Cluster::empty("live").join_all(joined)?,
        };
        let cluster = Arc::new(cluster);
        let spec_of = |job: JobId| jobs.get(&job).map(|job| Arc::clone(&job.spec));
        let table = JobTable::restored(&image.table, spec_of)?;
        let parked = JobTable::restored(&image.parked, spec_of)?;
        let scheduler = Scheduler::new(cluster, rules.guards(), rules.round, Vec::new());
        let mut scheduler = scheduler.restored(table, parked, image.states);
        scheduler.name_tenants(&tenants);
        scheduler.set_min_run(image.min_run);
        let is_held = |(_, job): &(&JobId, &Arc<JobRecord>)| job.standing == Standing::Held;
        let limits = jobs.iter().filter_map(|(id, job)| Some((job.limit_at()?, *id))).collect();
        Ok(ClusterState {
            held: jobs.iter().filter(is_held).map(|(id, _)| *id).collect(),
            rules: Arc::new(rules),
            scheduler,
            jobs,
            next_job: image.next_job,
            skipped_jobs: image.skipped_jobs,
            nodes: nodes.into_iter().map(|node| node.name).collect(),
            drained,
            closed: image.closed,
            drain_reasons: image.drain_reasons.into_iter().collect(),
            limits,
            policy,
            n_rounds,
            changed,
            is_woken,
            answered: image.answered.into_iter().map(|(user, key, jobs)| ((user, key), jobs)).collect(),
            answered_hour: image.answered_hour,
            profiles,
            tenants,
        })
    }

    /// The state that a journal begins with: that of the image which is its first record, or a cluster in which nothing has
    /// happened.
    pub fn at_start_of(journal: &[(Time, Record)], rules: &Rules) -> Result<Self, ImageError> {
        match journal.first() {
            Some((_, Record::Image { image })) => ClusterState::restore(Image::clone(image)),
            _ => Ok(ClusterState::new(rules)?),
        }
    }
}

impl SavedJob {
    fn of(id: JobId, job: &JobRecord, no_profile: &Arc<Profile>) -> Self {
        let JobRecord {
            user,
            request,
            spec,
            standing,
            reason,
            started,
            ended,
            n_failures,
            n_troubles,
            not_before,
            leaving,
            n_preemptions,
            done,
            pace,
            last_launch,
            ran_on,
            skipped,
            gpu_s,
            life,
        } = job;
        SavedJob {
            id,
            user: user.clone(),
            request: JobRequest::clone(request),
            spec: JobSpec { profile: Arc::clone(no_profile), ..JobSpec::clone(spec) },
            demand_per_gpu: spec.profile.demand_per_gpu,
            standing: *standing,
            reason: reason.clone(),
            started: *started,
            ended: *ended,
            n_failures: *n_failures,
            n_troubles: *n_troubles,
            not_before: *not_before,
            leaving: leaving.clone(),
            n_preemptions: *n_preemptions,
            done: *done,
            pace: *pace,
            last_launch: last_launch.clone(),
            ran_on: *ran_on,
            skipped: *skipped,
            gpu_s: *gpu_s,
            life: life.clone(),
        }
    }

    fn restore(self, profiles: &rota_traces::profile::ProfileSet) -> JobRecord {
        let base = base_profile(profiles, self.request.model.as_str(), self.demand_per_gpu);
        let spec = JobSpec { profile: paced(&base, self.pace), ..self.spec };
        JobRecord {
            user: self.user,
            request: Arc::new(self.request),
            spec: Arc::new(spec),
            standing: self.standing,
            reason: self.reason,
            started: self.started,
            ended: self.ended,
            n_failures: self.n_failures,
            n_troubles: self.n_troubles,
            not_before: self.not_before,
            leaving: self.leaving,
            n_preemptions: self.n_preemptions,
            done: self.done,
            pace: self.pace,
            last_launch: self.last_launch,
            ran_on: self.ran_on,
            skipped: self.skipped,
            gpu_s: self.gpu_s,
            life: self.life,
        }
    }
}
