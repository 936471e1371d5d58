//! What a policy sees: an immutable view of one instant, shared by reference counts and so cheap to take.
//!
//! The simulator drops it after the decision and pays nothing; a head may keep it for readers, and the next
//! change then copies what it touches. Nothing here holds a job's real duration or a future failure.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::allocation::GpuSet;
use crate::cluster::{Cluster, Node};
use crate::ids::{DatasetId, NodeId, TenantId};
use crate::plan::Wake;
use crate::table::{Field, JobPhase, JobTable};
use crate::time::{Span, Time};
use crate::workload::Dataset;

/// The state at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The moment of the decision: columns are brought up to here.
    pub now: Time,
    /// Time between rounds.
    pub round: Span,
    /// Every job that has arrived and not ended.
    pub jobs: Arc<JobTable>,
    /// The cluster as bought.
    pub cluster: Arc<Cluster>,
    /// What is up and what is cached where.
    pub nodes: Arc<NodeStates>,
    /// Settings that hold for every policy.
    pub guards: Arc<Guards>,
    /// Names of the tenants, by number; numbers beyond it have none.
    pub tenants: Arc<Vec<String>>,
}

/// What changes about nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStates {
    /// Whether each node can run jobs.
    pub is_up: Vec<bool>,
    /// GPUs that cannot be used, for nodes that have any.
    pub bad_gpus: BTreeMap<NodeId, GpuSet>,
    /// Nodes that take no new jobs, and the GPUs that running jobs still hold there.
    pub closed: BTreeMap<NodeId, GpuSet>,
    /// Data sets in each node's local cache; absent nodes have none.
    pub cached: BTreeMap<NodeId, Vec<DatasetId>>,
    /// Every data set, by id.
    pub datasets: Vec<Dataset>,
}

impl NodeStates {
    /// Everything up, nothing cached.
    pub fn all_up(cluster: &Cluster) -> Self {
        NodeStates {
            is_up: vec![true; cluster.nodes().len()],
            bad_gpus: BTreeMap::new(),
            closed: BTreeMap::new(),
            cached: BTreeMap::new(),
            datasets: Vec::new(),
        }
    }

    /// GPUs of a node that jobs can be given: none when it is down, and what its jobs hold when it takes no new ones.
    pub fn usable(&self, node: &Node) -> GpuSet {
        match self.is_up.get(node.id.index()) {
            Some(true) if self.bad_gpus.is_empty() && self.closed.is_empty() => GpuSet::first(node.n_gpus),
            Some(true) => {
                let bad = self.bad_gpus.get(&node.id).copied().unwrap_or(GpuSet::NONE);
                let open = self.closed.get(&node.id).copied();
                open.unwrap_or(GpuSet::first(node.n_gpus)).without(bad)
            }
            _ => GpuSet::NONE,
        }
    }

    /// Whether a data set is in a node's cache, or lives on the node.
    pub fn has_data(&self, node: NodeId, dataset: DatasetId) -> bool {
        self.datasets.get(dataset.index()).is_some_and(|data| data.home == Some(node))
            || self.cached.get(&node).is_some_and(|sets| sets.contains(&dataset))
    }

    /// The longest time that one of these nodes needs to fetch a data set that it lacks.
    pub fn fetch_time<'n>(&self, dataset: DatasetId, nodes: impl Iterator<Item = &'n Node>) -> Span {
        let Some(data) = self.datasets.get(dataset.index()) else { return Span::ZERO };
        let slowest = nodes
            .filter(|node| node.fetch_bps > 0 && !self.has_data(node.id, dataset))
            .map(|node| node.fetch_bps)
            .min();
        slowest.map_or(Span::ZERO, |rate| Span::from_secs_f64(data.bytes as f64 / rate as f64))
    }
}

/// A job is moved only after it has run for this many times what moving costs it.
const RUN_PER_COST: i64 = 10;

/// Rules that hold for every policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// A job that has run for less is not preempted.
    pub min_run: Span,
    /// The most GPUs a tenant's jobs may hold together; absent tenants have no limit.
    pub quota_gpus: BTreeMap<TenantId, u32>,
}

impl Guards {
    /// A minimum run time that no job reaches: a job that runs is not preempted at all. Short enough to be added to any time.
    pub const NO_PREEMPTION: Span = Span(i64::MAX / 8);
}

impl Snapshot {
    /// Whether a job may be protected at all, now or later.
    pub fn may_protect(&self) -> bool {
        self.guards.min_run > Span::ZERO || !self.nodes.datasets.is_empty() || !self.nodes.closed.is_empty()
    }

    /// Whether the job of a row may not be stopped yet.
    pub fn is_protected(&self, row: usize) -> bool {
        self.may_protect()
            && self.jobs.phase(row) == JobPhase::Running
            && self.now < self.protected_until(row)
    }

    /// Whether the job of a row runs on a node that takes no new jobs.
    pub fn is_on_closed(&self, row: usize) -> bool {
        let closed = &self.nodes.closed;
        let held = &self.jobs.allocation(row).slices;
        !closed.is_empty() && held.iter().any(|slice| closed.contains_key(&slice.node))
    }

    /// From when on the running job of a row may be preempted: after the minimum run time, and when what it fetched and no
    /// cache keeps has been of use. Else jobs that take turns could fetch their data for ever and never work. What a cache
    /// keeps is not lost with the job.
    fn protected_until(&self, row: usize) -> Time {
        if !self.may_protect() {
            return self.jobs.started(row);
        }
        let fetch = self.jobs.fetch(row);
        let held = || self.jobs.allocation(row).slices.iter().map(|slice| slice.node);
        // On a node that takes no new jobs, those that run go on until they end.
        if self.is_on_closed(row) {
            return self.jobs.started(row) + Guards::NO_PREEMPTION;
        }
        let of_use = match fetch > Span::ZERO && !self.nodes_have_data(row, held()) {
            true => fetch + fetch.min(self.round),
            false => Span::ZERO,
        };
        self.jobs.started(row) + self.guards.min_run.max(of_use)
    }

    /// From when on the running job of a row may be moved to a better place: when no guard protects it any more, and it
    /// has run ten times as long as moving costs it, so that the cost stays below a tenth. Moving costs a restart, and
    /// fetching the job's data again.
    pub fn movable_from(&self, row: usize) -> Time {
        let cost = self.jobs.restart_cost(row).0.saturating_add(self.fetch_again(row).0);
        let pays = self.jobs.started(row) + Span(cost.saturating_mul(RUN_PER_COST));
        pays.max(self.protected_until(row))
    }

    /// The longest time that a node without the data set of a row's job needs to fetch it.
    fn fetch_again(&self, row: usize) -> Span {
        // Without data sets nothing is looked up, so that the job's spec need not be loaded into the CPU cache.
        if self.nodes.datasets.is_empty() {
            return Span::ZERO;
        }
        let dataset = self.jobs.spec(row).dataset;
        dataset.map_or(Span::ZERO, |dataset| self.nodes.fetch_time(dataset, self.cluster.nodes().iter()))
    }

    /// Whether the job of a row has run before, does not run now, and reads a data set.
    pub fn resumes_with_data(&self, row: usize) -> bool {
        !self.nodes.datasets.is_empty()
            && self.jobs.phase(row) == JobPhase::Waiting
            && self.jobs.column(Field::Service)[row] > 0.0
            && self.jobs.spec(row).dataset.is_some()
    }

    /// Whether all these nodes have the data set of a row's job; false for a job without one.
    pub fn nodes_have_data(&self, row: usize, nodes: impl IntoIterator<Item = NodeId>) -> bool {
        let dataset = self.jobs.spec(row).dataset;
        dataset.is_some_and(|dataset| nodes.into_iter().all(|node| self.nodes.has_data(node, dataset)))
    }

    /// When to ask again a policy whose answer depends only on the set of jobs and nodes: on a change, or when a running job
    /// that is protected now may be stopped or moved.
    pub fn steady_wake(&self) -> Wake {
        let running = (0..self.jobs.len()).filter(|row| self.jobs.phase(*row) == JobPhase::Running);
        let is_later = |time: &Time| *time > self.now;
        let next = match self.may_protect() {
            true => {
                let times = running.flat_map(|row| [self.protected_until(row), self.movable_from(row)]);
                times.filter(is_later).min()
            }
            false => running.map(|row| self.movable_from(row)).filter(is_later).min(),
        };
        next.map_or(Wake::OnChange, Wake::AtOrOnChange)
    }

    /// GPUs that can be used, of nodes that are up.
    pub fn n_gpus_up(&self) -> u32 {
        self.cluster.nodes().iter().map(|node| self.nodes.usable(node).len()).sum()
    }
}
