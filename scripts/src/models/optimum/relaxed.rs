//! What the jobs of a round lose against the best they could have together, in microseconds and without a solver.
//!
//! The bound is the linear relaxation of phase 1 ([`rota_solvers::synergy_opt::relaxed`]): the same jobs with the same
//! GPUs, all CPUs and all memory of the nodes that are up in one pool for each GPU type, and any mixture of levels. No
//! plan exceeds it; how much of the distance a plan could really make good is not known from it.

use std::sync::Arc;

use rota_core::allocation::{Allocation, WHOLE_GPU};
use rota_core::ids::{GpuTypeId, NodeId};
use rota_core::job::JobSpec;
use rota_core::profile::Profile;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_solvers::synergy_opt::{Level, Offered, relaxed, worth_offering};

use super::levels::{self, RowOnType};

/// Looks at rounds of one run; what like jobs can have is worked out once.
#[derive(Debug, Default)]
pub struct Relaxation {
    kinds: Vec<Kind>,
    /// The kind of each job when it was last seen, by job.
    known: Vec<Option<usize>>,
}

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Speed relative to proportional shares, summed over the jobs that run.
    pub reached: f64,
    /// What it could be at most.
    pub bound: f64,
    /// Jobs that are slower than at the optimum of the relaxation.
    pub losses: Vec<Loss>,
}

/// A job that is slower than at the optimum of the relaxation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Its row in the job table.
    pub row: u32,
    /// The first of its nodes.
    pub node: NodeId,
    /// By how much, relative to its speed at the proportional share.
    pub speed: f64,
}

/// Jobs of one model, batch and number of GPUs of a type.
#[derive(Debug)]
struct Kind {
    /// Held so that no other profile can get its address.
    profile: Arc<Profile>,
    batch: u32,
    gpus: u32,
    gpu_type: GpuTypeId,
    levels: Vec<Level>,
    fair_rate: f64,
}

/// A job of the round.
struct Runner {
    row: u32,
    node: NodeId,
    kind: usize,
    speed: f64,
}

impl Relaxation {
    /// Looks at a plan: rows with what they are given. `None` when speed does not depend on CPUs and memory for any of
    /// them, and when GPUs are shared in time: what half a GPU could do at best is not known.
    pub fn look(&mut self, snapshot: &Snapshot, given: &[(usize, &Allocation)]) -> Option<Look> {
        let mut runners = Vec::with_capacity(given.len());
        for (row, allocation) in given {
            let first = allocation.slices.first()?;
            if allocation.slices.iter().any(|slice| slice.share != WHOLE_GPU) {
                return None;
            }
            let spec = snapshot.jobs.spec(*row);
            let kind =
                self.kind(snapshot, spec, allocation.n_gpus(), snapshot.cluster.gpu_type_of(first.node));
            let fair_rate = self.kinds[kind].fair_rate;
            let rate = spec.rate(allocation, &snapshot.cluster);
            let speed = if fair_rate > 0.0 { rate / fair_rate } else { 0.0 };
            runners.push(Runner { row: *row as u32, node: first.node, kind, speed });
        }
        if runners.iter().all(|runner| self.kinds[runner.kind].profile.host.is_none()) {
            return None;
        }
        let mut look = Look { reached: 0.0, bound: 0.0, losses: Vec::new() };
        for gpu_type in (0..snapshot.cluster.gpu_types().len()).map(GpuTypeId::from) {
            self.look_at_type(snapshot, gpu_type, &runners, &mut look);
        }
        Some(look)
    }

    fn look_at_type(&self, snapshot: &Snapshot, gpu_type: GpuTypeId, runners: &[Runner], look: &mut Look) {
        let mut counts = vec![0_u32; self.kinds.len()];
        let of_type = || runners.iter().filter(|runner| self.kinds[runner.kind].gpu_type == gpu_type);
        of_type().for_each(|runner| counts[runner.kind] += 1);
        let nodes = snapshot.cluster.nodes().iter().zip(&snapshot.nodes.is_up);
        let (mut cpus, mut mem_gb) = (0.0, 0.0);
        for (node, _) in nodes.filter(|(node, is_up)| **is_up && node.gpu_type == gpu_type) {
            cpus += node.host.cpus();
            mem_gb += node.host.mem_gb();
        }
        let offered: Vec<Offered<'_>> = self
            .kinds
            .iter()
            .zip(&counts)
            .map(|(kind, count)| Offered {
                levels: if *count > 0 { &kind.levels } else { &[] },
                count: *count,
            })
            .collect();
        let best = relaxed(cpus, mem_gb, &offered);
        let reached: f64 = of_type().map(|runner| runner.speed).sum();
        look.reached += reached;
        // A gang spread over more nodes than it needs may have more for each GPU than one node has.
        look.bound += best.bound.max(reached);
        let losses = of_type().filter_map(|runner| {
            let speed = best.due[runner.kind] - runner.speed;
            (speed > 1e-9).then_some(Loss { row: runner.row, node: runner.node, speed })
        });
        look.losses.extend(losses);
    }

    /// The kind of a job with so many GPUs of a type, found or made.
    fn kind(&mut self, snapshot: &Snapshot, spec: &Arc<JobSpec>, gpus: u32, gpu_type: GpuTypeId) -> usize {
        let is_it = |kind: &Kind| {
            Arc::ptr_eq(&kind.profile, &spec.profile)
                && (kind.batch, kind.gpus, kind.gpu_type) == (spec.batch, gpus, gpu_type)
        };
        let index = spec.id.index();
        if self.known.len() <= index {
            self.known.resize(index + 1, None);
        }
        if let Some(known) = self.known[index].filter(|known| is_it(&self.kinds[*known])) {
            return known;
        }
        let found = self.kinds.iter().position(is_it).unwrap_or_else(|| {
            let job = RowOnType { row: 0, gpus, gpu_type };
            let room = Room::new(snapshot);
            let levels = levels::all_levels(&snapshot.cluster, &room, spec, &job);
            self.kinds.push(Kind {
                profile: Arc::clone(&spec.profile),
                batch: spec.batch,
                gpus,
                gpu_type,
                levels: worth_offering(&levels),
                fair_rate: levels::rate(&snapshot.cluster, spec, gpus, gpu_type, &room.fair_share(gpu_type)),
            });
            self.kinds.len() - 1
        });
        self.known[index] = Some(found);
        found
    }
}
