//! Phase 1: which CPU and memory levels jobs have, and which are best together.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ids::GpuTypeId;
use rota_core::job::JobSpec;
use rota_core::profile::{HostCurve, Profile, Shape};
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_solvers::synergy_opt::{ClassProblem, Level, LevelClass};
use rota_solvers::{FormulationError, Limits, Solver, Start};

/// A job that is to run with a number of GPUs of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOnType {
    /// Its row in the job table.
    pub row: u32,
    /// GPUs.
    pub gpus: u32,
    /// Their type.
    pub gpu_type: GpuTypeId,
}

/// A job with the level it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) row: u32,
    pub(super) gpus: u32,
    /// CPUs, memory and storage rate for each GPU.
    pub(super) per_gpu: Host,
}

/// Levels for all jobs.
pub(super) struct Choice {
    /// In the order they were given.
    pub(super) jobs: Vec<Chosen>,
    /// What no choice exceeds, where it is known.
    pub(super) bound: Option<f64>,
    /// How the choice was made, in a word.
    pub(super) status: String,
    /// Their throughput together, relative to proportional shares.
    pub(super) ideal: f64,
}

/// What answers a level model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenLevels {
    /// For each class its levels in use and how many jobs run at each; `None` for proportional shares.
    pub counts: Option<Vec<Vec<(usize, u32)>>>,
    /// Throughput that no choice exceeds, where it is known.
    pub bound: Option<f64>,
    /// How it was found, in a word.
    pub status: String,
}

/// Like jobs: same model, batch and GPUs, so same levels.
pub(super) struct Class {
    rows: Vec<RowOnType>,
    /// With each GPU, in the order of the problem's levels; the first is the proportional share.
    shares: Vec<Host>,
}

/// The native model: what it answers, starting from proportional shares.
pub(super) fn solve(
    problem: &ClassProblem,
    solver: &mut dyn Solver,
    limits: &Limits,
) -> Result<ChosenLevels, FormulationError> {
    let built = problem.model()?;
    let start = built.encode(problem, &vec![0; problem.classes.len()]);
    let solution = solver.solve(&built.model, limits, start.as_deref().map_or(Start::Cold, Start::Values));
    let counts = solution.status.has_values().then(|| built.decode(&solution)).transpose()?;
    Ok(ChosenLevels { counts, bound: solution.bound, status: solution.status.word().to_owned() })
}

/// Chooses the best level for each job of one GPU type. Without an answer, all jobs get the fair share.
pub(super) fn choose(
    snapshot: &Snapshot,
    room: &Room,
    jobs: &[RowOnType],
    model: &mut dyn FnMut(&ClassProblem) -> Result<ChosenLevels, FormulationError>,
) -> Result<Choice, FormulationError> {
    let (problem, classes) = problem(snapshot, room, jobs);
    let ChosenLevels { counts, bound, status } = model(&problem)?;
    let counts =
        counts.unwrap_or_else(|| problem.classes.iter().map(|class| vec![(0, class.count)]).collect());
    let mut level_of: BTreeMap<u32, Host> = BTreeMap::new();
    let mut ideal = 0.0;
    for ((class, counts), levels) in classes.iter().zip(counts).zip(&problem.classes) {
        ideal += counts.iter().map(|(l, n)| f64::from(*n) * levels.levels[*l].throughput).sum::<f64>();
        deal(snapshot, class, counts, levels, &mut level_of);
    }
    let share = |job: &RowOnType| level_of.get(&job.row).copied().unwrap_or(Host::NONE);
    let jobs = jobs.iter().map(|job| Chosen { row: job.row, gpus: job.gpus, per_gpu: share(job) }).collect();
    Ok(Choice { jobs, bound, status, ideal })
}

/// Deals the levels of a class to its jobs: jobs that run at one of them keep it, then the fastest go to the first jobs.
fn deal(
    snapshot: &Snapshot,
    class: &Class,
    mut counts: Vec<(usize, u32)>,
    levels: &LevelClass,
    level_of: &mut BTreeMap<u32, Host>,
) {
    let mut rest = Vec::new();
    for job in &class.rows {
        let held = snapshot.jobs.allocation(job.row as usize).least_per_gpu();
        match counts.iter_mut().find(|(level, n)| *n > 0 && class.shares[*level] == held) {
            Some((level, n)) => {
                *n -= 1;
                level_of.insert(job.row, class.shares[*level]);
            }
            None => rest.push(job.row),
        }
    }
    counts.sort_by(|a, b| levels.levels[b.0].throughput.total_cmp(&levels.levels[a.0].throughput));
    let dealt = counts.iter().flat_map(|(level, n)| std::iter::repeat_n(class.shares[*level], *n as usize));
    level_of.extend(rest.into_iter().zip(dealt));
}

/// The problem of one GPU type, and the classes behind its numbers.
pub(super) fn problem(snapshot: &Snapshot, room: &Room, jobs: &[RowOnType]) -> (ClassProblem, Vec<Class>) {
    let mut classes: Vec<Class> = Vec::new();
    let mut problem = ClassProblem { cpus: 0.0, memory: 0.0, classes: Vec::new() };
    let Some(gpu_type) = jobs.first().map(|job| job.gpu_type) else { return (problem, classes) };
    let up = snapshot
        .cluster
        .nodes()
        .iter()
        .zip(&snapshot.nodes.is_up)
        .filter(|(n, up)| **up && n.gpu_type == gpu_type);
    for (node, _) in up {
        problem.cpus += node.host.cpus();
        problem.memory += node.host.mem_gb();
    }
    let mut by_kind: BTreeMap<(usize, u32, u32), usize> = BTreeMap::new();
    for job in jobs {
        let spec = snapshot.jobs.spec(job.row as usize);
        // The address only tells models apart; classes are in the order of the jobs.
        let kind = (Arc::as_ptr(&spec.profile).addr(), spec.batch, job.gpus);
        let index = *by_kind.entry(kind).or_insert_with(|| {
            let (levels, shares) = levels(&snapshot.cluster, room, spec, job);
            problem.classes.push(LevelClass { levels, floor: 1.0, count: 0 });
            classes.push(Class { rows: Vec::new(), shares });
            classes.len() - 1
        });
        problem.classes[index].count += 1;
        classes[index].rows.push(*job);
    }
    (problem, classes)
}

/// A job's levels on a GPU type: the points of its profile's grid that a node can give, and its proportional share,
/// its best demand and the node itself, which need not be on the grid. The proportional share is the first.
pub(super) fn levels(
    cluster: &Cluster,
    room: &Room,
    spec: &JobSpec,
    job: &RowOnType,
) -> (Vec<Level>, Vec<Host>) {
    levels_from(cluster, room, spec, job, None)
}

/// The same with nothing as the least on either axis: below the grid a job is as slow as on its edge, so that no
/// allocation whatever is faster for less than a mixture of these levels.
pub(super) fn all_levels(cluster: &Cluster, room: &Room, spec: &JobSpec, job: &RowOnType) -> Vec<Level> {
    levels_from(cluster, room, spec, job, Some(Host::NONE)).0
}

fn levels_from(
    cluster: &Cluster,
    room: &Room,
    spec: &JobSpec,
    job: &RowOnType,
    least: Option<Host>,
) -> (Vec<Level>, Vec<Host>) {
    let fair = room.fair_share(job.gpu_type);
    let mut shares = vec![fair];
    if let Some(node) = cluster.largest_node(Some(job.gpu_type)) {
        let most = node.host.per(job.gpus.min(node.n_gpus)).max(&fair);
        let best = spec.profile.demand_per_gpu.min(&most);
        let (cpus, mem_gb) = axes(&spec.profile, [fair, best, most].into_iter().chain(least));
        for &cpus in &cpus {
            for &mem_gb in &mem_gb {
                let share = Host { storage_bps: fair.storage_bps, ..Host::from_units(cpus, mem_gb, 0.0) };
                if share.fits_in(&most) {
                    shares.push(share);
                }
            }
        }
    }
    let slowest = rate(cluster, spec, job.gpus, job.gpu_type, &fair);
    let gpus = f64::from(job.gpus);
    let level = |share: &Host| {
        let speed = rate(cluster, spec, job.gpus, job.gpu_type, share) / slowest;
        let throughput = if *share == fair || !speed.is_finite() { 1.0 } else { speed };
        Level { cpus: gpus * share.cpus(), memory: gpus * share.mem_gb(), throughput }
    };
    (shares.iter().map(level).collect(), shares)
}

/// CPU and memory values worth trying: the grid's, and those of these shares.
fn axes(profile: &Profile, shares: impl Iterator<Item = Host>) -> (Vec<f64>, Vec<f64>) {
    let of_grid =
        |axis: fn(&HostCurve) -> &[f64]| profile.host.as_ref().map_or(Vec::new(), |grid| axis(grid).to_vec());
    let (mut cpus, mut mem_gb) = (of_grid(HostCurve::cpus), of_grid(HostCurve::mem_gb));
    for share in shares {
        cpus.push(share.cpus());
        mem_gb.push(share.mem_gb());
    }
    for axis in [&mut cpus, &mut mem_gb] {
        axis.sort_by(f64::total_cmp);
        axis.dedup();
    }
    (cpus, mem_gb)
}

/// Iterations per second at the proportional share of a GPU type.
pub fn fair_rate(cluster: &Cluster, spec: &JobSpec, gpus: u32, gpu_type: GpuTypeId) -> f64 {
    let nodes = cluster.nodes().iter().filter(|n| n.gpu_type == gpu_type && n.n_gpus > 0);
    let fair = nodes.map(|node| node.share_per_gpu()).reduce(|a, b| a.min(&b));
    fair.map_or(0.0, |fair| rate(cluster, spec, gpus, gpu_type, &fair))
}

pub(super) fn rate(cluster: &Cluster, spec: &JobSpec, gpus: u32, gpu_type: GpuTypeId, per_gpu: &Host) -> f64 {
    let Some(node) = cluster.largest_node(Some(gpu_type)) else { return 0.0 };
    spec.profile.rate(&Shape {
        gpus,
        n_nodes: gpus.div_ceil(node.n_gpus.max(1)),
        per_gpu: *per_gpu,
        gpu_type: &cluster.gpu_types()[gpu_type.index()],
        batch: spec.batch,
    })
}
