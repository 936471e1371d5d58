//! Properties of one round, checked on what a plan gives each job and what it leaves free.

use rota_core::allocation::{Allocation, GpuSet};
use rota_core::ids::GpuTypeId;
use rota_core::plan::{Plan, Verdict};
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;

use crate::solve::given;

/// A round in which a property does not hold.
pub(super) struct Breach {
    /// How far off it is; 1 is as it should be.
    pub(super) ratio: f64,
    /// What was observed.
    pub(super) what: String,
}

/// Checks a round; the worst violation, if there is one.
pub(super) type RoundCheck = fn(&Snapshot, &Plan) -> Option<Breach>;

/// A round as a plan leaves it.
struct Round<'a> {
    snapshot: &'a Snapshot,
    given: Vec<(usize, &'a Allocation)>,
    /// Free GPUs and host resources of each node.
    free: Vec<(GpuSet, Host)>,
    room: Room,
}

impl<'a> Round<'a> {
    fn new(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        let given = given(snapshot, plan);
        let up = |node| match snapshot.nodes.is_up.get(rota_core::ids::NodeId::index(node)) {
            Some(true) => *snapshot.cluster.host_of(node),
            _ => Host::NONE,
        };
        let nodes = snapshot.cluster.nodes().iter();
        let mut free: Vec<_> = nodes.map(|node| (snapshot.nodes.usable(node), up(node.id))).collect();
        for slice in given.iter().flat_map(|(_, allocation)| &allocation.slices) {
            let (gpus, host) = &mut free[slice.node.index()];
            (*gpus, *host) = (gpus.without(slice.gpus), host.saturating_sub(&slice.host));
        }
        Round { snapshot, given, free, room: Room::new(snapshot) }
    }

    fn name(&self, row: usize) -> &str {
        &self.snapshot.jobs.spec(row).name
    }

    /// What a job asks for with each GPU at best.
    fn demand(&self, row: usize) -> Host {
        *self.snapshot.jobs.demand_per_gpu(row)
    }

    /// What a job is entitled to with each GPU of a type: its share, or its demand where that is less.
    fn due(&self, row: usize, gpu_type: GpuTypeId) -> Host {
        self.room.fair_share(gpu_type).min(&self.demand(row))
    }

    /// Jobs that are neither given anything nor refused.
    fn waiting(&self, plan: &Plan) -> Vec<usize> {
        let jobs = &self.snapshot.jobs;
        let is_refused = |row: usize| {
            let declined = |(job, verdict): &(_, Verdict)| {
                *job == jobs.id(row) && matches!(verdict, Verdict::Decline(_))
            };
            plan.verdicts.iter().any(declined)
        };
        let runs = |row: usize| self.given.iter().any(|(given, _)| *given == row);
        let mut rows: Vec<usize> = (0..jobs.len()).filter(|row| !runs(*row) && !is_refused(*row)).collect();
        rows.sort_by_key(|row| jobs.id(*row));
        rows
    }

    /// Whether a gang would fit what is free with so much for each GPU: on one node, or on several of a type where
    /// none is large enough for it.
    fn fits(&self, row: usize, per_gpu: impl Fn(GpuTypeId) -> Host) -> bool {
        let gpus = self.snapshot.jobs.gpus()[row];
        let only = self.snapshot.jobs.spec(row).gpu_type;
        let largest = self.snapshot.cluster.largest_node(only).map_or(0, |node| node.n_gpus);
        let n_types = self.snapshot.cluster.gpu_types().len();
        let types = (0..n_types).map(GpuTypeId::from).filter(|t| only.is_none_or(|only| only == *t));
        types.into_iter().any(|gpu_type| {
            let per_gpu = per_gpu(gpu_type);
            let nodes = self.snapshot.cluster.nodes().iter().zip(&self.free);
            let of_type = nodes.filter(|(node, _)| node.gpu_type == gpu_type);
            let counts = of_type.map(|(_, (free, host))| host.times_fits(&per_gpu, free.len()));
            match gpus <= largest {
                true => counts.into_iter().any(|count| count >= gpus),
                false => counts.sum::<u32>() >= gpus,
            }
        })
    }
}

/// No job waits whose GPUs are free with what it is entitled to.
pub(super) fn conserves(snapshot: &Snapshot, plan: &Plan) -> Option<Breach> {
    let round = Round::new(snapshot, plan);
    waits_in_vain(&round, plan, "its share", &|row, gpu_type| round.due(row, gpu_type))
}

/// No job waits whose GPUs are free with all it can use.
pub(super) fn serves(snapshot: &Snapshot, plan: &Plan) -> Option<Breach> {
    let round = Round::new(snapshot, plan);
    waits_in_vain(&round, plan, "all it asks for", &|row, _| round.demand(row))
}

fn waits_in_vain(
    round: &Round<'_>,
    plan: &Plan,
    with: &str,
    per_gpu: &dyn Fn(usize, GpuTypeId) -> Host,
) -> Option<Breach> {
    let in_vain = |row: &usize| round.fits(*row, |gpu_type| per_gpu(*row, gpu_type));
    let row = round.waiting(plan).into_iter().find(in_vain)?;
    let (now, name, gpus) = (round.snapshot.now, round.name(row), round.snapshot.jobs.gpus()[row]);
    let what = format!("at {now} s {name} waits while {gpus} GPUs are free with {with}");
    Some(Breach { ratio: 2.0, what })
}

/// No job has less than it is entitled to; the ratio grows with the part that is missing.
pub(super) fn share(snapshot: &Snapshot, plan: &Plan) -> Option<Breach> {
    let round = Round::new(snapshot, plan);
    let breach = |(row, allocation): &(usize, &Allocation)| {
        let slices = allocation.slices.iter().map(|slice| {
            let due = round.due(*row, snapshot.cluster.gpu_type_of(slice.node)).times(slice.gpus.len());
            (missing(&slice.host, &due), slice, due)
        });
        let (part, slice, due) = slices.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (now, name) = (snapshot.now, round.name(*row));
        let what = format!(
            "at {now} s {name} holds {} CPUs and {} GB on node {}, less than its share of {} CPUs and {} GB",
            slice.host.cpus(),
            slice.host.mem_gb(),
            slice.node,
            due.cpus(),
            due.mem_gb()
        );
        (part > 0.0).then_some(Breach { ratio: 1.0 + part, what })
    };
    worst(round.given.iter().filter_map(breach))
}

/// No job is below its demand where its own nodes could give all of it.
pub(super) fn tops(snapshot: &Snapshot, plan: &Plan) -> Option<Breach> {
    short(snapshot, plan, |possible, demand| demand.fits_in(possible))
}

/// No job is below its demand where its own nodes have more to give to each of its GPUs.
pub(super) fn leaves(snapshot: &Snapshot, plan: &Plan) -> Option<Breach> {
    short(snapshot, plan, |_, _| true)
}

/// The worst of the jobs that would run faster with what is free on their nodes. `matters` is given what is possible and
/// what the job asks for with each GPU, and chooses the jobs that count.
fn short(snapshot: &Snapshot, plan: &Plan, matters: fn(&Host, &Host) -> bool) -> Option<Breach> {
    let round = Round::new(snapshot, plan);
    let breach = |(row, allocation): &(usize, &Allocation)| {
        let (held, demand) = (allocation.least_per_gpu(), round.demand(*row));
        // What every worker would have if it were given all that is free on its node.
        let possible = allocation.slices.iter().map(|slice| {
            let free = round.free[slice.node.index()].1;
            slice.host.checked_add(&free).unwrap_or(slice.host).per(slice.gpus.len())
        });
        let possible = possible.reduce(|a, b| a.min(&b)).filter(|possible| matters(possible, &demand))?;
        let possible = possible.min(&demand);
        let gain = faster(snapshot, *row, allocation, &possible)?;
        let (now, name) = (snapshot.now, round.name(*row));
        let what = format!(
            "at {now} s {name} holds {} CPUs and {} GB for each GPU where it could have {} and {} at once: {gain:.2} \
             times as fast",
            held.cpus(),
            held.mem_gb(),
            possible.cpus(),
            possible.mem_gb()
        );
        Some(Breach { ratio: gain, what })
    };
    worst(round.given.iter().filter_map(breach))
}

/// No job that can move at no cost is below its demand while a node has room for all of it.
pub(super) fn roams(snapshot: &Snapshot, plan: &Plan) -> Option<Breach> {
    let round = Round::new(snapshot, plan);
    let breach = |(row, allocation): &(usize, &Allocation)| {
        let (gpus, demand) = (allocation.n_gpus(), round.demand(*row));
        let costs = snapshot.jobs.spec(*row).costs();
        if costs.restart.0 > 0 || costs.checkpoint.0 > 0 {
            return None;
        }
        let wanted = demand.times(gpus);
        let mut nodes = snapshot.cluster.nodes().iter().zip(&round.free);
        let (node, _) = nodes.find(|(_, (free, host))| free.len() >= gpus && wanted.fits_in(host))?;
        let gain = faster(snapshot, *row, allocation, &demand)?;
        let (now, name) = (snapshot.now, round.name(*row));
        let what = format!(
            "at {now} s {name} has {} CPUs and {} GB, and node {} has room for all it asks for: {gain:.2} times as fast",
            allocation.host().cpus(),
            allocation.host().mem_gb(),
            node.id
        );
        Some(Breach { ratio: gain, what })
    };
    worst(round.given.iter().filter_map(breach))
}

/// How many times as fast a job would run where it is with so much for each GPU, if faster at all.
fn faster(snapshot: &Snapshot, row: usize, allocation: &Allocation, per_gpu: &Host) -> Option<f64> {
    let spec = snapshot.jobs.spec(row);
    let mut better = allocation.clone();
    for slice in &mut better.slices {
        slice.host = per_gpu.times(slice.gpus.len());
    }
    let gain = spec.rate(&better, &snapshot.cluster) / spec.rate(allocation, &snapshot.cluster);
    (gain > 1.0).then_some(gain)
}

/// The largest part of any component of `due` that is not there.
fn missing(held: &Host, due: &Host) -> f64 {
    let part = |held: u64, due: u64| match due {
        0 => 0.0,
        due => due.saturating_sub(held) as f64 / due as f64,
    };
    part(held.cpu_micro, due.cpu_micro)
        .max(part(held.mem_bytes, due.mem_bytes))
        .max(part(held.storage_bps, due.storage_bps))
}

fn worst(breaches: impl Iterator<Item = Breach>) -> Option<Breach> {
    breaches.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}
