//! A job as the scheduler knows it: what was asked for, and what is estimated. How long it really takes is known only to
//! `World`.

use std::sync::Arc;

use crate::cluster::{Cluster, Node};
use crate::ids::{DatasetId, GpuTypeId, JobId, TenantId};
use crate::profile::{Profile, Shape};
use crate::resources::Host;
use crate::time::{Span, Time};

/// What a user submitted. Written down, it is without its profile.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct JobSpec {
    /// Its number, in the order of submission.
    pub id: JobId,
    /// Its name in the trace.
    pub name: Box<str>,
    /// Who pays for it.
    pub tenant: TenantId,
    /// Larger is more important, in policies that use priorities.
    pub priority: i32,
    /// The model it trains, and how fast that is.
    #[serde(skip, default = "no_profile")]
    pub profile: Arc<Profile>,
    /// Global batch size; 0 takes the profile's.
    pub batch: u32,
    /// How many GPUs.
    pub gpus: GpuRequest,
    /// The only GPU type it may run on, if any.
    pub gpu_type: Option<GpuTypeId>,
    /// Estimated iterations.
    pub estimated_work: f64,
    /// When it was submitted.
    pub arrival: Time,
    /// When it should be done.
    pub deadline: Deadline,
    /// The data it reads.
    pub dataset: Option<DatasetId>,
    /// Its own costs, where they differ from the profile's.
    pub costs: Option<Costs>,
}

/// Stands for the profile of a spec that was read: profiles are sent by themselves, because many jobs share one.
fn no_profile() -> Arc<Profile> {
    Arc::new(Profile::plain("", 1.0))
}

/// Time that starting and stopping takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Costs {
    /// Lost at each start after the first, and when the GPUs change.
    pub restart: Span,
    /// To write a checkpoint before a stop; paid, with the restart, when the job starts again.
    pub checkpoint: Span,
    /// A failure loses the work since the last whole multiple of this; zero loses none.
    pub checkpoint_every: Span,
}

impl Costs {
    /// What a job loses when it is stopped and started again.
    pub fn restart_and_checkpoint(&self) -> Span {
        Span(self.restart.0.saturating_add(self.checkpoint.0))
    }
}

/// GPUs asked for: a fixed gang, or levels of an elastic job.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GpuRequest {
    /// What the trace says; the gang of a job that is not elastic.
    pub asked: u32,
    /// Counts an elastic job can run with, ascending; empty when it is not elastic.
    pub levels: Box<[u32]>,
}

impl GpuRequest {
    /// A fixed number of GPUs, all or none.
    pub fn fixed(asked: u32) -> Self {
        GpuRequest { asked, levels: Box::default() }
    }

    /// Whether a plan may give that many: what was asked for, always, or one of the levels. A user may ask for more
    /// than the highest level: levels say what is worthwhile, and policies that are not elastic give what was asked for.
    pub fn allows(&self, gpus: u32) -> bool {
        gpus == self.asked || self.levels.contains(&gpus)
    }

    /// The fewest it runs with.
    pub fn min(&self) -> u32 {
        self.levels.first().copied().unwrap_or(self.asked)
    }

    /// The most it can use.
    pub fn max(&self) -> u32 {
        self.levels.last().copied().unwrap_or(self.asked)
    }
}

/// When a job should be done.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Deadline {
    /// Best effort.
    #[default]
    None,
    /// The job has no value after this time.
    Strict(Time),
    /// Worth less with each step missed: (time, value), ascending in time.
    Soft(Vec<(Time, f64)>),
}

impl Deadline {
    /// The first time at which its value changes.
    pub fn first(&self) -> Option<Time> {
        match self {
            Deadline::None => None,
            Deadline::Strict(time) => Some(*time),
            Deadline::Soft(steps) => steps.first().map(|s| s.0),
        }
    }

    /// The last time at which the job is still worth something.
    pub fn last(&self) -> Option<Time> {
        match self {
            Deadline::None => None,
            Deadline::Strict(time) => Some(*time),
            Deadline::Soft(steps) => steps.last().map(|s| s.0),
        }
    }
}

impl JobSpec {
    /// The costs that apply to this job.
    pub fn costs(&self) -> Costs {
        self.costs.unwrap_or(Costs {
            restart: self.profile.restart,
            checkpoint: self.profile.checkpoint,
            checkpoint_every: Span::ZERO,
        })
    }

    /// What one of its GPUs asks for at best, cut to what a node can give: a job that fills nodes gets its
    /// proportional share, one that would need more than a node gets the node. A gang that also needs nodes
    /// with less asks for no more than the least share: no job may wait for what the cluster can never give.
    pub fn demand_per_gpu(&self, cluster: &Cluster) -> Host {
        let Some(node) = cluster.largest_node(self.gpu_type) else { return Host::NONE };
        let (asked, n_gpus) = (self.gpus.asked, node.n_gpus);
        let best = self.profile.demand_per_gpu.min(&node.host.per(asked.min(n_gpus).max(1)));
        match asked <= n_gpus || cluster.can_hold(self.gpu_type, asked, &best) {
            true => best,
            false => best.min(&cluster.least_share(self.gpu_type)),
        }
    }

    /// Iterations per second at the proportional share of the largest node it may use, with what it asked for.
    pub fn fair_rate(&self, cluster: &Cluster) -> f64 {
        cluster
            .largest_node(self.gpu_type)
            .map_or(0.0, |node| self.rate_on(node, node.share_per_gpu(), cluster))
    }

    /// How many times as fast as at the proportional share it runs with `demand_per_gpu`, on the same nodes; at least 1.
    pub fn best_speed(&self, demand_per_gpu: &Host, cluster: &Cluster) -> f64 {
        let Some(node) = cluster.largest_node(self.gpu_type) else { return 1.0 };
        let share = node.share_per_gpu();
        if demand_per_gpu.fits_in(&share) {
            return 1.0;
        }
        let fair = self.rate_on(node, share, cluster);
        let best = self.rate_on(node, demand_per_gpu.max(&share), cluster);
        if fair > 0.0 { (best / fair).max(1.0) } else { 1.0 }
    }

    /// Iterations per second with the GPUs it asked for on as few nodes like this one as can be.
    fn rate_on(&self, node: &Node, per_gpu: Host, cluster: &Cluster) -> f64 {
        self.profile.rate(&Shape {
            gpus: self.gpus.asked,
            n_nodes: self.gpus.asked.div_ceil(node.n_gpus.max(1)),
            per_gpu,
            gpu_type: &cluster.gpu_types()[node.gpu_type.index()],
            batch: self.batch,
        })
    }
}

impl JobSpec {
    /// How many times as fast as on one GPU the job runs with an allocation: what its GPUs are worth to it. A model whose
    /// scaling was not measured is taken to scale perfectly.
    pub fn speedup(&self, allocation: &crate::allocation::Allocation, cluster: &Cluster) -> f64 {
        let node = allocation.slices.first().and_then(|slice| cluster.node(slice.node));
        let gpu_type = node.map_or("", |node| cluster.gpu_types()[node.gpu_type.index()].as_str());
        let gpus = allocation.n_gpus();
        let whole = match self.profile.scale_curve(gpu_type, self.batch) {
            Some(curve) => curve.rate(gpus) / curve.rate(1),
            None => f64::from(gpus),
        };
        whole * allocation.least_share()
    }

    /// The part of its best speed that the job has with an allocation: against as many GPUs of that type on as few nodes
    /// as can be, each with what the job asks for at best. 1 where speed does not depend on CPUs and memory.
    pub fn part_of_best(
        &self,
        allocation: &crate::allocation::Allocation,
        demand_per_gpu: &Host,
        cluster: &Cluster,
    ) -> f64 {
        let node = allocation.slices.first().and_then(|slice| cluster.node(slice.node));
        let (Some(node), true) = (node, self.profile.host.is_some()) else { return 1.0 };
        let gpus = allocation.n_gpus();
        let best = self.profile.rate(&Shape {
            gpus,
            n_nodes: gpus.div_ceil(node.n_gpus.max(1)),
            per_gpu: demand_per_gpu.max(&node.share_per_gpu()),
            gpu_type: &cluster.gpu_types()[node.gpu_type.index()],
            batch: self.batch,
        });
        if best > 0.0 { self.rate(allocation, cluster) / best } else { 1.0 }
    }

    /// Iterations per second with an allocation, by the profile.
    pub fn rate(&self, allocation: &crate::allocation::Allocation, cluster: &Cluster) -> f64 {
        let Some(first) = allocation.slices.first() else { return 0.0 };
        let Some(node) = cluster.node(first.node) else { return 0.0 };
        let shape = Shape {
            gpus: allocation.n_gpus(),
            n_nodes: allocation.slices.len() as u32,
            per_gpu: allocation.least_per_gpu(),
            gpu_type: &cluster.gpu_types()[node.gpu_type.index()],
            batch: self.batch,
        };
        self.profile.rate(&shape) * allocation.least_time()
    }

    /// Iterations per second with an allocation while another job has the same GPUs at the same time; 0 where that was not
    /// measured, or cannot be.
    pub fn rate_beside(
        &self,
        mate: &JobSpec,
        allocation: &crate::allocation::Allocation,
        cluster: &Cluster,
    ) -> f64 {
        let Some(node) = allocation.slices.first().and_then(|slice| cluster.node(slice.node)) else {
            return 0.0;
        };
        let shape = Shape {
            gpus: allocation.n_gpus(),
            n_nodes: allocation.slices.len() as u32,
            per_gpu: allocation.least_per_gpu(),
            gpu_type: &cluster.gpu_types()[node.gpu_type.index()],
            batch: self.batch,
        };
        self.profile.rate_beside(&shape, &mate.profile, mate.batch)
    }
}
