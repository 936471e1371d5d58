//! Why a job ran slowly: the CPUs and memory it held compared with its demand, decision by decision, and which jobs on the
//! same nodes held more than their share.

use std::collections::BTreeMap;

use rota_core::allocation::{Allocation, GpuSet};
use rota_core::ids::{JobId, NodeId};
use rota_core::plan::Plan;
use rota_core::resources::Host;
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;

use crate::results::JobRow;

/// A smaller loss of speed is ignored.
const NEGLIGIBLE: f64 = 0.005;
/// The most neighbours that are named; the rest are counted.
const MOST_NAMED: usize = 5;

/// A period in which a job ran below its best speed for lack of CPUs or memory.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Slow {
    /// Time of its first decision, in seconds.
    pub from_s: f64,
    /// End, in the same seconds.
    pub to_s: f64,
    /// The part of its best speed it had.
    pub of_best: f64,
    /// The nodes it was on.
    pub nodes: Vec<String>,
    /// Its CPUs.
    pub cpus: Amount,
    /// Its memory, in gigabytes.
    pub mem_gb: Amount,
    /// Neighbours on its nodes that held more than their share of what it lacked, on average; the largest first.
    pub neighbours: Vec<Excess>,
    /// How many other neighbours did.
    pub n_more: usize,
    /// The fewest and the most other nodes that could have given it all it wanted; `None` for a gang on several nodes.
    pub nodes_with_room: Option<(u32, u32)>,
}

/// Of one resource, what a job held, what its proportional share was, what it wanted, and what was free next to it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Amount {
    /// What it held.
    pub held: f64,
    /// Its GPUs' part of their nodes.
    pub share: f64,
    /// What it asks for at best.
    pub wanted: f64,
    /// Free on its nodes when the period began.
    pub free: f64,
}

impl Amount {
    /// Whether it had less than it wanted.
    pub fn is_short(&self) -> bool {
        self.held < self.wanted * (1.0 - 1e-9)
    }
}

/// A neighbour, and how much it held above its share.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Excess {
    /// Its name in the trace.
    pub job_id: String,
    /// CPUs above its share.
    pub cpus: f64,
    /// Memory above its share, in gigabytes.
    pub mem_gb: f64,
}

/// A decision to be examined later: the snapshot and the plan.
pub(super) struct Moment {
    pub(super) snapshot: Snapshot,
    pub(super) plan: Plan,
}

/// Watches one job for a lack of CPUs and memory.
#[derive(Default)]
pub(super) struct SlowWatch {
    slow: Vec<Slow>,
    open: Option<Open>,
    /// The first decision of the longest period so far, and its length.
    worst: Option<(f64, Moment)>,
}

/// A period that is not over: since when its neighbours hold what they hold, the sums up to then, and how it began.
struct Open {
    since: Time,
    now: BTreeMap<JobId, Host>,
    sums: BTreeMap<JobId, (f64, f64)>,
    began: Moment,
}

impl SlowWatch {
    /// Takes one decision; `row` is the job's, `given` what all jobs have by the plan.
    pub(super) fn see(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        given: &BTreeMap<JobId, &Allocation>,
        row: usize,
        rows: &[JobRow],
    ) {
        let job = snapshot.jobs.id(row);
        let Some(slow) = given.get(&job).and_then(|held| slow_now(snapshot, given, row, held)) else {
            self.end(snapshot.now, rows);
            return;
        };
        let is_same = self.open.is_some() && self.slow.last().is_some_and(|last| is_alike(last, &slow));
        match self.slow.last_mut().filter(|_| is_same) {
            Some(last) => widen(&mut last.nodes_with_room, slow.nodes_with_room),
            None => {
                self.end(snapshot.now, rows);
                self.slow.push(slow);
                let began = Moment { snapshot: snapshot.clone(), plan: plan.clone() };
                let (now, sums) = (BTreeMap::new(), BTreeMap::new());
                self.open = Some(Open { since: snapshot.now, now, sums, began });
            }
        }
        if let (Some(open), Some(slow)) = (&mut self.open, self.slow.last()) {
            open.pass(snapshot.now);
            open.now = excesses(snapshot, given, job, slow);
        }
    }

    /// All periods, and the first decision of the longest; the last period lasts until `end`.
    pub(super) fn close(mut self, end: Time, rows: &[JobRow]) -> (Vec<Slow>, Option<Moment>) {
        self.end(end, rows);
        (self.slow, self.worst.map(|(_, moment)| moment))
    }

    fn end(&mut self, end: Time, rows: &[JobRow]) {
        let (Some(mut open), Some(last)) = (self.open.take(), self.slow.last_mut()) else { return };
        open.pass(end);
        last.to_s = end.as_secs_f64();
        let length_s = last.to_s - last.from_s;
        let name =
            |job: JobId| rows.get(job.index()).map_or_else(|| job.to_string(), |r| r.job_id.to_string());
        let mut sums: Vec<_> = open.sums.into_iter().collect();
        let weight = |(cpus, mem_gb): (f64, f64)| {
            cpus / last.cpus.wanted.max(1.0) + mem_gb / last.mem_gb.wanted.max(1.0)
        };
        sums.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)).then(a.0.cmp(&b.0)));
        last.n_more = sums.len().saturating_sub(MOST_NAMED);
        let average = |sum: f64| sum / length_s.max(1e-9);
        let excess = |(job, (cpus, mem_gb)): (JobId, (f64, f64))| Excess {
            job_id: name(job),
            cpus: average(cpus),
            mem_gb: average(mem_gb),
        };
        last.neighbours = sums.into_iter().take(MOST_NAMED).map(excess).collect();
        if self.worst.as_ref().is_none_or(|(longest, _)| length_s > *longest) {
            self.worst = Some((length_s, open.began));
        }
    }
}

impl Open {
    /// Adds up what neighbours held above their share since the last decision.
    fn pass(&mut self, now: Time) {
        let passed_s = (now - self.since).as_secs_f64().max(0.0);
        for (job, excess) in &self.now {
            let sum = self.sums.entry(*job).or_default();
            *sum = (sum.0 + excess.cpus() * passed_s, sum.1 + excess.mem_gb() * passed_s);
        }
        self.since = now;
    }
}

fn is_alike(last: &Slow, now: &Slow) -> bool {
    let held = |slow: &Slow| (slow.cpus.held, slow.mem_gb.held);
    (held(last), &last.nodes) == (held(now), &now.nodes)
}

fn widen(range: &mut Option<(u32, u32)>, now: Option<(u32, u32)>) {
    if let (Some((least, most)), Some((n, _))) = (range.as_mut(), now) {
        (*least, *most) = ((*least).min(n), (*most).max(n));
    }
}

/// How slow the job is by a plan; `None` when it is at its best, or lacks neither CPUs nor memory.
fn slow_now(
    snapshot: &Snapshot,
    given: &BTreeMap<JobId, &Allocation>,
    row: usize,
    held: &Allocation,
) -> Option<Slow> {
    let (spec, per_gpu) = (snapshot.jobs.spec(row), snapshot.jobs.demand_per_gpu(row));
    let of_best = spec.part_of_best(held, per_gpu, &snapshot.cluster);
    if spec.profile.host.is_none() || of_best > 1.0 - NEGLIGIBLE {
        return None;
    }
    let (host, wanted) = (held.host(), per_gpu.times(held.n_gpus()));
    let nodes: Vec<NodeId> = held.slices.iter().map(|slice| slice.node).collect();
    let free = free_by_node(snapshot, given);
    let (mut share, mut left) = (Host::NONE, Host::NONE);
    for slice in &held.slices {
        let node = snapshot.cluster.node(slice.node)?;
        share = share.checked_add(&node.share_per_gpu().times(slice.gpus.len()))?;
        left = left.checked_add(&free.get(slice.node.index())?.1)?;
    }
    let amount = |of: fn(&Host) -> f64| Amount {
        held: of(&host),
        share: of(&share),
        wanted: of(&wanted),
        free: of(&left),
    };
    let (cpus, mem_gb) = (amount(Host::cpus), amount(Host::mem_gb));
    if !cpus.is_short() && !mem_gb.is_short() {
        return None;
    }
    let could = |(at, (gpus, host)): (usize, &(GpuSet, Host))| {
        let node = NodeId::from(at);
        !nodes.contains(&node)
            && spec.gpu_type.is_none_or(|only| only == snapshot.cluster.gpu_type_of(node))
            && gpus.len() >= held.n_gpus()
            && wanted.cpu_micro <= host.cpu_micro
            && wanted.mem_bytes <= host.mem_bytes
    };
    let n_with_room = free.iter().enumerate().filter(|node| could(*node)).count() as u32;
    let name =
        |node: &NodeId| snapshot.cluster.node(*node).map_or_else(String::new, |node| node.name.clone());
    let now_s = snapshot.now.as_secs_f64();
    Some(Slow {
        from_s: now_s,
        to_s: now_s,
        of_best,
        nodes: nodes.iter().map(name).collect(),
        cpus,
        mem_gb,
        neighbours: Vec::new(),
        n_more: 0,
        nodes_with_room: (nodes.len() == 1).then_some((n_with_room, n_with_room)),
    })
}

/// GPUs, CPUs and memory that a plan leaves on each node; nothing on nodes that are down.
fn free_by_node(snapshot: &Snapshot, given: &BTreeMap<JobId, &Allocation>) -> Vec<(GpuSet, Host)> {
    let nodes = snapshot.cluster.nodes().iter().zip(&snapshot.nodes.is_up);
    let mut free: Vec<(GpuSet, Host)> = nodes
        .map(|(node, is_up)| match is_up {
            true => (snapshot.nodes.usable(node), node.host),
            false => (GpuSet::NONE, Host::NONE),
        })
        .collect();
    for slice in given.values().flat_map(|allocation| &allocation.slices) {
        if let Some((gpus, host)) = free.get_mut(slice.node.index()) {
            (*gpus, *host) = (gpus.without(slice.gpus), host.saturating_sub(&slice.host));
        }
    }
    free
}

/// What others hold above their share on the job's nodes, of what it lacks.
fn excesses(
    snapshot: &Snapshot,
    given: &BTreeMap<JobId, &Allocation>,
    job: JobId,
    slow: &Slow,
) -> BTreeMap<JobId, Host> {
    let Some(held) = given.get(&job) else { return BTreeMap::new() };
    let is_beside = |node: NodeId| held.slices.iter().any(|slice| slice.node == node);
    let lacking = |excess: Host| Host {
        cpu_micro: if slow.cpus.is_short() { excess.cpu_micro } else { 0 },
        mem_bytes: if slow.mem_gb.is_short() { excess.mem_bytes } else { 0 },
        storage_bps: 0,
    };
    let mut found = BTreeMap::new();
    for (other, allocation) in given.iter().filter(|(other, _)| **other != job) {
        let mut excess = Host::NONE;
        for slice in allocation.slices.iter().filter(|slice| is_beside(slice.node)) {
            let share = snapshot.cluster.node(slice.node).map_or(Host::NONE, |node| node.share_per_gpu());
            let above = slice.host.saturating_sub(&share.times(slice.gpus.len()));
            excess = excess.checked_add(&lacking(above)).unwrap_or(excess);
        }
        if !excess.is_none() {
            found.insert(*other, excess);
        }
    }
    found
}
