//! Phase 2: a place for every level that was chosen, moving as few jobs as that allows.

use std::collections::BTreeMap;

use rota_core::allocation::{GpuSet, WHOLE_GPU};
use rota_core::ids::{GpuTypeId, NodeId};
use rota_core::place::{Ask, Consolidate, Place, Spots};
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_solvers::synergy_opt::{Demand, Gangs, LeftOut, Part, PlacementProblem, Server, pack};
use rota_solvers::{FormulationError, Solver, Start};

use super::OptimumSettings;
use super::levels::Chosen;

/// How places are found when packing leaves jobs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// They are not: those jobs get their fair share.
    Pack,
    /// The LP, rounded.
    Round,
    /// The exact ILP, starting from the packing.
    Exact,
}

/// Jobs with their levels and, where one was found, their places.
pub(super) struct Places {
    jobs: Vec<Chosen>,
    /// Nodes and GPUs on each, by row.
    spots: BTreeMap<u32, Vec<(NodeId, u32)>>,
    otherwise: Consolidate,
}

/// Finds places on the nodes of one GPU type.
pub(super) fn find(
    snapshot: &Snapshot,
    room: &Room,
    gpu_type: GpuTypeId,
    jobs: &[Chosen],
    solver: &mut dyn Solver,
    settings: &OptimumSettings,
) -> Result<Places, FormulationError> {
    let yard = TypePlacement { snapshot, room, nodes: nodes_of(snapshot, gpu_type), jobs };
    let stayed = yard.stay_and_pack();
    let best = match yard.n_missing(&stayed) {
        0 => stayed,
        n_missing => {
            let mut anew = pack(&yard.problem(), Gangs::Split);
            if yard.n_missing(&anew) > 0 {
                anew = yard.search(anew, solver, settings)?;
            }
            if yard.n_missing(&anew) < n_missing { yard.turn_home(anew) } else { stayed }
        }
    };
    Ok(yard.places(&best))
}

/// Places that were found elsewhere, each load on the node that most of it runs on already.
pub(super) fn settle(
    snapshot: &Snapshot,
    room: &Room,
    gpu_type: GpuTypeId,
    jobs: &[Chosen],
    placed: Vec<Vec<Part>>,
) -> Places {
    let yard = TypePlacement { snapshot, room, nodes: nodes_of(snapshot, gpu_type), jobs };
    let placed = yard.turn_home(placed);
    yard.places(&placed)
}

/// The nodes of a GPU type; a server's number is its position here.
pub(super) fn nodes_of(snapshot: &Snapshot, gpu_type: GpuTypeId) -> Vec<NodeId> {
    snapshot.cluster.nodes().iter().filter(|node| node.gpu_type == gpu_type).map(|node| node.id).collect()
}

/// The nodes of one GPU type, and the jobs to be placed on them.
struct TypePlacement<'a> {
    snapshot: &'a Snapshot,
    room: &'a Room,
    nodes: Vec<NodeId>,
    jobs: &'a [Chosen],
}

impl TypePlacement<'_> {
    fn places(&self, placed: &[Vec<Part>]) -> Places {
        let spots = self.jobs.iter().zip(placed).filter(|(_, parts)| !parts.is_empty());
        let spots = spots
            .map(|(job, parts)| (job.row, parts.iter().map(|p| (self.nodes[p.server], p.gpus)).collect()));
        Places { spots: spots.collect(), jobs: self.jobs.to_vec(), otherwise: Consolidate::default() }
    }

    fn problem(&self) -> PlacementProblem {
        let servers = self.nodes.iter().map(|node| self.room.free_on(*node)).map(server).collect();
        PlacementProblem { servers, jobs: self.jobs.iter().map(demand).collect() }
    }

    fn n_missing(&self, placed: &[Vec<Part>]) -> u32 {
        self.jobs.iter().zip(placed).filter(|(_, parts)| parts.is_empty()).map(|(job, _)| job.gpus).sum()
    }

    /// Jobs that run stay if their new share fits next to the jobs that stay before them; the others are packed.
    fn stay_and_pack(&self) -> Vec<Vec<Part>> {
        let mut free: Vec<(GpuSet, Host)> = self.nodes.iter().map(|node| self.room.free_on(*node)).collect();
        let mut placed: Vec<Vec<Part>> =
            self.jobs.iter().map(|job| self.stay(job, &mut free).unwrap_or_default()).collect();
        let rest: Vec<usize> = (0..placed.len()).filter(|j| placed[*j].is_empty()).collect();
        let servers = free.into_iter().map(server).collect();
        let problem =
            PlacementProblem { servers, jobs: rest.iter().map(|j| demand(&self.jobs[*j])).collect() };
        for (j, parts) in rest.into_iter().zip(pack(&problem, Gangs::Split)) {
            placed[j] = parts;
        }
        placed
    }

    /// Gives a job the GPUs it holds again, each with its new share, if these are free.
    fn stay(&self, job: &Chosen, free: &mut [(GpuSet, Host)]) -> Option<Vec<Part>> {
        let held = self.snapshot.jobs.allocation(job.row as usize);
        if held.is_empty() || held.n_gpus() != job.gpus {
            return None;
        }
        let mut parts = Vec::new();
        for slice in &held.slices {
            let server = self.nodes.iter().position(|node| *node == slice.node)?;
            let (gpus, host) = free.get(server)?;
            let share = job.per_gpu.times(slice.gpus.len());
            if slice.share != WHOLE_GPU || !slice.gpus.is_within(*gpus) || !share.fits_in(host) {
                return None;
            }
            parts.push(Part { server, gpus: slice.gpus.len() });
        }
        for slice in &held.slices {
            if let Some(server) = self.nodes.iter().position(|node| *node == slice.node) {
                let (gpus, host) = &mut free[server];
                *gpus = gpus.without(slice.gpus);
                *host = host.saturating_sub(&job.per_gpu.times(slice.gpus.len()));
            }
        }
        Some(parts)
    }

    /// Looks harder than the packing did.
    fn search(
        &self,
        packed: Vec<Vec<Part>>,
        solver: &mut dyn Solver,
        settings: &OptimumSettings,
    ) -> Result<Vec<Vec<Part>>, FormulationError> {
        let problem = self.problem();
        let found = match settings.method {
            Method::Pack => return Ok(packed),
            Method::Exact if self.jobs.len() * self.nodes.len() > settings.exact_spots => return Ok(packed),
            Method::Exact => {
                let built = problem.model(Gangs::Split, LeftOut::Allowed)?;
                let start = built.encode(&packed);
                let start = start.as_deref().map_or(Start::Cold, Start::Values);
                let solution = solver.solve(&built.model, &settings.limits, start);
                if !solution.status.has_values() {
                    return Ok(packed);
                }
                built.decode(&solution)?
            }
            Method::Round => {
                let relaxed = problem.relaxed_model()?;
                let solution = solver.solve(&relaxed.model, &settings.limits, Start::Cold);
                if !solution.status.has_values() {
                    return Ok(packed);
                }
                problem.round(&relaxed, &solution, Gangs::Split)?
            }
        };
        Ok(if self.n_missing(&found) < self.n_missing(&packed) { found } else { packed })
    }

    /// Like nodes are interchangeable: each load goes to the node that most of it runs on already.
    fn turn_home(&self, mut placed: Vec<Vec<Part>>) -> Vec<Vec<Part>> {
        let n = self.nodes.len();
        let mut at_home = vec![0_u32; n * n];
        for (job, parts) in self.jobs.iter().zip(&placed) {
            for slice in &self.snapshot.jobs.allocation(job.row as usize).slices {
                if let Some(home) = self.nodes.iter().position(|node| *node == slice.node) {
                    for part in parts {
                        at_home[part.server * n + home] += part.gpus.min(slice.gpus.len());
                    }
                }
            }
        }
        let mut pairs: Vec<(u32, usize, usize)> =
            (0..n * n).filter(|i| at_home[*i] > 0).map(|i| (at_home[i], i / n, i % n)).collect();
        pairs.sort_by_key(|(gpus, load, home)| (std::cmp::Reverse(*gpus), *load, *home));
        let is_like =
            |a: usize, b: usize| self.room.free_on(self.nodes[a]) == self.room.free_on(self.nodes[b]);
        let mut target: Vec<Option<usize>> = vec![None; n];
        let mut is_taken = vec![false; n];
        for (_, load, home) in pairs {
            if target[load].is_none() && !is_taken[home] && is_like(load, home) {
                target[load] = Some(home);
                is_taken[home] = true;
            }
        }
        for (load, target) in target.iter_mut().enumerate().filter(|(_, target)| target.is_none()) {
            *target = (0..n).find(|home| !is_taken[*home] && is_like(load, *home));
            target.iter().for_each(|home| is_taken[*home] = true);
        }
        for part in placed.iter_mut().flatten() {
            part.server = target[part.server].unwrap_or(part.server);
        }
        placed
    }
}

pub(super) fn server((gpus, host): (GpuSet, Host)) -> Server {
    Server { gpus: gpus.len(), cpus: host.cpus(), memory: host.mem_gb() }
}

fn demand(job: &Chosen) -> Demand {
    let all = job.per_gpu.times(job.gpus);
    Demand { gpus: job.gpus, cpus: all.cpus(), memory: all.mem_gb() }
}

impl Places {
    pub(super) fn jobs(&self) -> &[Chosen] {
        &self.jobs
    }

    /// Rows in the order in which they must be served: those that stay, those with a place, the others.
    pub(super) fn order(&self, snapshot: &Snapshot) -> Vec<u32> {
        let rank = |row: u32| match self.spots.get(&row) {
            Some(spots) if stays(snapshot, row, spots) => 0,
            Some(_) => 1,
            None => 2,
        };
        let mut rows: Vec<u32> = self.jobs.iter().map(|job| job.row).collect();
        rows.sort_by_key(|row| rank(*row));
        rows
    }
}

fn stays(snapshot: &Snapshot, row: u32, spots: &[(NodeId, u32)]) -> bool {
    let held = &snapshot.jobs.allocation(row as usize).slices;
    let has = |slice: &rota_core::allocation::Slice| spots.contains(&(slice.node, slice.gpus.len()));
    held.len() == spots.len() && held.iter().all(has)
}

impl Place for Places {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let held = ask.snapshot.jobs.allocation(ask.row);
        let mut found = Spots::new();
        for (node, count) in self.spots.get(&(ask.row as u32)).into_iter().flatten() {
            let (free, host) = room.free_on(*node);
            if free.len() < *count || !ask.per_gpu.times(*count).fits_in(&host) {
                return self.otherwise.place(room, ask);
            }
            let own =
                held.slices.iter().find(|slice| slice.node == *node).map_or(GpuSet::NONE, |slice| slice.gpus);
            let own = own.and(free).lowest(*count);
            found.push((*node, own.or(free.without(own).lowest(*count - own.len()))));
        }
        if found.is_empty() {
            return self.otherwise.place(room, ask);
        }
        found.sort_unstable_by_key(|(node, _)| *node);
        Some(found)
    }
}
