//! Why a job had less than it needed, decision by decision: a run is simulated again and watched for one job.
//!
//! At every decision three things are compared: what the job needed (to run at all, or to meet its deadline if it held that
//! from then on), what it was given, and what was left of the cluster after all grants. Consecutive decisions with the same
//! outcome are one [`Shortage`]. The caller simulates the run again.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rota_core::allocation::{Allocation, GpuSet};
use rota_core::ids::JobId;
use rota_core::plan::{Hold, Plan, Verdict};
use rota_core::resources::Host;
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_core::timeline::{Ahead, ShareNeeded};

use super::Holder;
use super::at_best::{AtBest, NotSolved, at_best};
use super::meanwhile::named;
use super::slow::{Slow, SlowWatch};
use crate::results::JobRow;

/// What kept a job from what it needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Its tenant's quota: with what it needed, the tenant's jobs would have held more than they may.
    Quota,
    /// Too few GPUs were left.
    Gpus,
    /// Enough GPUs were left, but not on one node, and it would have fitted on one.
    Places,
    /// Too few CPUs on the nodes of the GPUs that were left.
    Cpus,
    /// Too little memory on the nodes of the GPUs that were left.
    Memory,
    /// No number of GPUs it can use would have been enough any more.
    Time,
    /// Nothing: what it needed was free, and the policy did not use it.
    Policy,
}

/// A period in which a job had less than it needed.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Shortage {
    /// Time of its first decision, in seconds.
    pub from_s: f64,
    /// End, in the same seconds.
    pub to_s: f64,
    /// GPUs it was given.
    pub gpus_held: u32,
    /// GPUs it needed: the fewest it runs with or, where that is more, that meet its deadline from then on; `None`
    /// when no number does.
    pub gpus_needed: Option<u32>,
    /// What was missing.
    pub limit: Limit,
    /// The fewest and the most free GPUs.
    pub gpus_free: (u32, u32),
    /// The most free GPUs on one node.
    pub most_on_one_node: u32,
    /// Where the quota was missing: the job's tenant, and the GPUs that its jobs may hold together.
    pub quota: Option<(String, u32)>,
    /// Who held most on average, the largest first.
    pub holders: Vec<Holder>,
    /// How many more held some.
    pub n_more: usize,
}

/// The share a deadline asked for, from some decision on.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct DeadlineShare {
    /// Start, in seconds.
    pub from_s: f64,
    /// The fewest GPUs with which the job would have been done in time if it had held them from then on; `None` when
    /// no number it can use was enough.
    pub gpus: Option<u32>,
}

/// What watching a run showed.
#[derive(Default)]
pub struct Seen {
    /// When the job had less than it needed.
    pub shortages: Vec<Shortage>,
    /// What its deadline asked for.
    pub deadline_shares: Vec<DeadlineShare>,
    /// When it ran slowly for lack of CPUs or memory.
    pub slow: Vec<Slow>,
    /// What `opt` would have done when the longest of these times began, or why that was not computed.
    pub at_best: Option<Result<AtBest, NotSolved>>,
}

/// Watches a run for one job.
pub struct Watch<'r> {
    job: JobId,
    rows: &'r [JobRow],
    has_been: bool,
    is_elastic: bool,
    shortages: Vec<Shortage>,
    shares: Vec<DeadlineShare>,
    open: Option<Open>,
    slow: SlowWatch,
}

/// A shortage that is not over: which jobs hold GPUs since when, and the GPU time they held before that.
struct Open {
    since: Time,
    now: BTreeMap<JobId, u32>,
    gpu_s: BTreeMap<JobId, f64>,
}

impl<'r> Watch<'r> {
    /// Watches the job with this number in the run.
    pub fn new(rows: &'r [JobRow], job: JobId) -> Self {
        Watch {
            job,
            rows,
            has_been: false,
            is_elastic: false,
            shortages: Vec::new(),
            shares: Vec::new(),
            open: None,
            slow: SlowWatch::default(),
        }
    }

    /// Takes one decision; breaks once the job has ended.
    pub fn see(&mut self, snapshot: &Snapshot, plan: &Plan) -> ControlFlow<()> {
        let Some(row) = snapshot.jobs.row(self.job) else {
            return if self.has_been { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        };
        self.has_been = true;
        let needed = Ahead::share_needed(snapshot, row as u32);
        self.note_share(snapshot.now, needed);
        let is_declined =
            plan.verdicts.iter().any(|(job, v)| *job == self.job && matches!(v, Verdict::Decline(_)));
        if is_declined {
            return ControlFlow::Break(());
        }
        let given: BTreeMap<JobId, &Allocation> = given(snapshot, plan).collect();
        self.note_shortage(snapshot, &given, row, needed);
        self.slow.see(snapshot, plan, &given, row, self.rows);
        ControlFlow::Continue(())
    }

    /// What was seen; the last shortage lasts until `end`.
    pub fn close(mut self, end: Time) -> Seen {
        self.end_shortage(end);
        let (slow, worst) = self.slow.close(end, self.rows);
        Seen {
            shortages: self.shortages,
            deadline_shares: self.shares,
            slow,
            at_best: worst.map(|moment| at_best(&moment, self.job)),
        }
    }

    fn note_share(&mut self, now: Time, needed: ShareNeeded) {
        let gpus = match needed {
            ShareNeeded::NoDeadline => return,
            ShareNeeded::Gpus(gpus) => Some(gpus),
            ShareNeeded::OutOfReach => None,
        };
        if self.shares.last().is_none_or(|last| last.gpus != gpus) {
            self.shares.push(DeadlineShare { from_s: now.as_secs_f64(), gpus });
        }
    }

    fn note_shortage(
        &mut self,
        snapshot: &Snapshot,
        given: &BTreeMap<JobId, &Allocation>,
        row: usize,
        needed: ShareNeeded,
    ) {
        let spec = snapshot.jobs.spec(row);
        let held = given.get(&self.job).map_or(0, |allocation| allocation.n_gpus());
        // A policy that does not resize jobs gives them all they asked for or nothing.
        self.is_elastic |= given.iter().any(|(job, allocation)| {
            snapshot
                .jobs
                .row(*job)
                .is_some_and(|row| snapshot.jobs.spec(row).gpus.asked != allocation.n_gpus())
        });
        let least = if self.is_elastic { spec.gpus.min() } else { spec.gpus.asked };
        let wanted = match needed {
            ShareNeeded::Gpus(gpus) if self.is_elastic => Some(gpus.max(least)),
            ShareNeeded::Gpus(gpus) => (gpus <= least).then_some(least),
            ShareNeeded::NoDeadline => Some(least),
            ShareNeeded::OutOfReach => None,
        };
        let is_short = wanted.is_none_or(|wanted| held < wanted);
        if !is_short {
            self.end_shortage(snapshot.now);
            return;
        }
        let left = Left::after(snapshot, given, spec.gpu_type);
        let tenant = spec.tenant;
        let is_of_tenant =
            |job: JobId| snapshot.jobs.row(job).is_some_and(|row| snapshot.jobs.spec(row).tenant == tenant);
        let quota = snapshot.guards.quota_gpus.get(&tenant).copied();
        let limit = match wanted {
            None => Limit::Time,
            Some(wanted) => {
                let mine = given.iter().filter(|(job, _)| is_of_tenant(**job));
                let used: u32 = mine.map(|(_, allocation)| allocation.n_gpus()).sum();
                let exceeds = quota.is_some_and(|quota| used - held + wanted > quota);
                if exceeds { Limit::Quota } else { left.limit(wanted - held) }
            }
        };
        self.extend_shortage(snapshot.now, (held, wanted, limit), &left);
        if let (Limit::Quota, Some(quota), Some(last)) = (limit, quota, self.shortages.last_mut()) {
            let name = snapshot.tenants.get(tenant.index()).cloned().unwrap_or_default();
            last.quota = Some((name, quota));
        }
        let is_in_the_way = |job: JobId| limit != Limit::Quota || is_of_tenant(job);
        let others = given.iter().filter(|(job, _)| **job != self.job && is_in_the_way(**job));
        let now = others.map(|(job, allocation)| (*job, allocation.n_gpus())).collect();
        if let Some(open) = &mut self.open {
            open.pass(snapshot.now);
            open.now = now;
        }
    }

    fn extend_shortage(&mut self, now: Time, lack: (u32, Option<u32>, Limit), left: &Left) {
        let is_same = self.open.is_some()
            && self.shortages.last().is_some_and(|s| (s.gpus_held, s.gpus_needed, s.limit) == lack);
        if !is_same {
            self.end_shortage(now);
            let (gpus_held, gpus_needed, limit) = lack;
            self.shortages.push(Shortage {
                from_s: now.as_secs_f64(),
                to_s: now.as_secs_f64(),
                gpus_held,
                gpus_needed,
                limit,
                gpus_free: (left.n_free, left.n_free),
                most_on_one_node: 0,
                quota: None,
                holders: Vec::new(),
                n_more: 0,
            });
            self.open = Some(Open { since: now, now: BTreeMap::new(), gpu_s: BTreeMap::new() });
        }
        if let Some(last) = self.shortages.last_mut() {
            last.gpus_free = (last.gpus_free.0.min(left.n_free), last.gpus_free.1.max(left.n_free));
            last.most_on_one_node = last.most_on_one_node.max(left.most_on_one_node);
        }
    }

    fn end_shortage(&mut self, end: Time) {
        let (Some(mut open), Some(last)) = (self.open.take(), self.shortages.last_mut()) else { return };
        open.pass(end);
        last.to_s = end.as_secs_f64();
        let length_s = last.to_s - last.from_s;
        let averages = open.gpu_s.into_iter().map(|(job, gpu_s)| (job, gpu_s / length_s.max(1e-9)));
        (last.holders, last.n_more) = named(self.rows, averages.collect());
    }
}

impl Open {
    /// Adds up what every job held since the last decision.
    fn pass(&mut self, now: Time) {
        let passed_s = (now - self.since).as_secs_f64().max(0.0);
        for (job, gpus) in &self.now {
            *self.gpu_s.entry(*job).or_default() += f64::from(*gpus) * passed_s;
        }
        self.since = now;
    }
}

/// Which jobs a plan runs, and with what.
fn given<'s>(snapshot: &'s Snapshot, plan: &'s Plan) -> impl Iterator<Item = (JobId, &'s Allocation)> {
    plan.run.iter().filter_map(|run| match &run.what {
        Hold::Take(allocation) => Some((run.job, allocation)),
        Hold::Keep => Some((run.job, snapshot.jobs.allocation(snapshot.jobs.row(run.job)?))),
    })
}

/// What a plan leaves of the nodes a job may use.
struct Left {
    nodes: Vec<(GpuSet, Host, Host)>,
    n_free: u32,
    most_on_one_node: u32,
    largest_node: u32,
}

impl Left {
    fn after(
        snapshot: &Snapshot,
        given: &BTreeMap<JobId, &Allocation>,
        gpu_type: Option<rota_core::ids::GpuTypeId>,
    ) -> Self {
        let cluster = snapshot.cluster.nodes();
        let mut nodes: Vec<(GpuSet, Host, Host)> = cluster
            .iter()
            .zip(&snapshot.nodes.is_up)
            .map(|(node, is_up)| match *is_up && gpu_type.is_none_or(|t| t == node.gpu_type) {
                true => (GpuSet::first(node.n_gpus), node.host, node.share_per_gpu()),
                false => (GpuSet::NONE, Host::NONE, Host::NONE),
            })
            .collect();
        for slice in given.values().flat_map(|allocation| &allocation.slices) {
            if let Some((gpus, host, _)) = nodes.get_mut(slice.node.index()) {
                (*gpus, *host) = (gpus.without(slice.gpus), host.saturating_sub(&slice.host));
            }
        }
        Left {
            n_free: nodes.iter().map(|(gpus, ..)| gpus.len()).sum(),
            most_on_one_node: nodes.iter().map(|(gpus, ..)| gpus.len()).max().unwrap_or(0),
            largest_node: cluster.iter().map(|node| node.n_gpus).max().unwrap_or(0),
            nodes,
        }
    }

    /// What prevents giving the job this many more GPUs, each with its proportional share.
    fn limit(&self, gpus: u32) -> Limit {
        if self.n_free < gpus {
            return Limit::Gpus;
        }
        if gpus <= self.largest_node && self.most_on_one_node < gpus {
            return Limit::Places;
        }
        let with = |fits: fn(&Host, &Host) -> bool| -> u32 {
            let usable = |(free, host, share): &(GpuSet, Host, Host)| {
                (0..=free.len()).rev().find(|n| fits(&share.times(*n), host)).unwrap_or(0)
            };
            self.nodes.iter().map(usable).sum()
        };
        if with(|wanted, host| wanted.cpu_micro <= host.cpu_micro) < gpus {
            Limit::Cpus
        } else if with(|wanted, host| wanted.mem_bytes <= host.mem_bytes) < gpus {
            Limit::Memory
        } else {
            Limit::Policy
        }
    }
}
