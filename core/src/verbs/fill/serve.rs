//! How one job is served: where it is or elsewhere, with what it asks for or with each answer in turn.

use smallvec::SmallVec;

use super::{Answer, Demand, Fill, Grade, Granted, Walk};
use crate::allocation::{GpuSet, Slice, WHOLE_GPU};
use crate::ids::{GpuTypeId, NodeId};
use crate::place::Ask;
use crate::place::returns::{self, WayBack};
use crate::reclaim::{self, Reclaim};
use crate::resources::Host;

/// A job that the walk tries to serve: with so many GPUs of a type, on those that it holds or on others.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) row: usize,
    pub(super) gpus: u32,
    /// It stays on the GPUs it holds, which are set aside for it.
    pub(super) is_kept: bool,
    pub(super) gpu_type: GpuTypeId,
}

impl<'a> Fill<'a> {
    /// Tries a job where it is, then anywhere: with its demand, then with each answer in turn.
    pub(super) fn serve(
        &mut self,
        row: usize,
        is_kept: bool,
        walk: &Walk,
        answers: &mut [Answer<'_>],
    ) -> bool {
        let gpus = self.gpus_of(row, &walk.counts);
        if gpus == 0 {
            return false;
        }
        if is_kept || (walk.keep_places && self.take_own_gpus(row, gpus)) {
            let gpu_type = self.type_held(row);
            if self.serve_on(Candidate { row, gpus, is_kept: true, gpu_type }, walk, answers) {
                return true;
            }
            self.give_own_gpus(row);
        }
        if gpus > self.room.free_gpus() {
            return false;
        }
        let n_types = self.snapshot.cluster.gpu_types().len();
        // With one type there is nothing to look up, so that the job's spec need not be loaded into the CPU cache.
        let wanted = if n_types == 1 { Some(GpuTypeId(0)) } else { self.snapshot.jobs.spec(row).gpu_type };
        match wanted {
            Some(gpu_type) => self.serve_on(Candidate { row, gpus, is_kept: false, gpu_type }, walk, answers),
            None => (0..n_types).any(|t| {
                let gpu_type = GpuTypeId::from(t);
                self.room.free_gpus_of(gpu_type) >= gpus
                    && self.serve_on(Candidate { row, gpus, is_kept: false, gpu_type }, walk, answers)
            }),
        }
    }

    fn type_held(&self, row: usize) -> GpuTypeId {
        let slices = &self.snapshot.jobs.allocation(row).slices;
        slices.first().map_or(GpuTypeId(0), |s| self.snapshot.cluster.gpu_type_of(s.node))
    }

    fn serve_on(&mut self, job: Candidate, walk: &Walk, answers: &mut [Answer<'_>]) -> bool {
        let row = job.row;
        let fair = self.room.fair_share(job.gpu_type);
        let mut per_gpu = match &walk.demand {
            Demand::Best => *self.snapshot.jobs.demand_per_gpu(row),
            Demand::FairShare => fair,
            Demand::PerGpu(by_row) => by_row.get(row).copied().unwrap_or(Host::NONE),
        };
        let rule = answers.iter().find_map(|answer| match answer {
            Answer::Reclaim(rule) => Some(*rule),
            _ => None,
        });
        if self.returns(job, &per_gpu, &fair, rule) || self.grant(job, &per_gpu, Grade::Asked) {
            return true;
        }
        let mut grade = Grade::Asked;
        for answer in answers {
            let before = per_gpu;
            match answer {
                Answer::FairShare => per_gpu = per_gpu.min(&fair),
                Answer::Ask(ask) => match ask(row, self.room) {
                    Some(asked) => per_gpu = asked,
                    None => return false,
                },
                Answer::Reclaim(rule) => {
                    self.reclaim(job, &per_gpu, *rule);
                    if self.grant(job, &per_gpu, grade) {
                        return true;
                    }
                    continue;
                }
            }
            if per_gpu != before {
                grade = Grade::Lowered;
                if self.grant(job, &per_gpu, grade) {
                    return true;
                }
            }
        }
        false
    }

    /// Gives a job no more than its share where the placement has it return to, if what it asks for would take it elsewhere.
    /// Says whether it did.
    fn returns(&mut self, job: Candidate, per_gpu: &Host, fair: &Host, rule: Option<Reclaim>) -> bool {
        // A walk that reclaims falls back to the share; other walks have their own fallbacks.
        let Some(rule) = rule.filter(|_| !job.is_kept && returns::may_return(self.snapshot, job.row)) else {
            return false;
        };
        let modest = per_gpu.min(fair);
        let ask = self.ask(job, per_gpu);
        match returns::way_back(self.placement, self.room, &ask, &modest) {
            WayBack::None => return false,
            WayBack::AtShare => {}
            WayBack::IfFreed(node) => {
                self.reclaim_on([(node, job.gpus)], &modest, fair, rule);
                if !returns::is_there(self.placement, self.room, &Ask { per_gpu: modest, ..ask }) {
                    return false;
                }
            }
        }
        let grade = if modest == *per_gpu { Grade::Asked } else { Grade::Lowered };
        self.grant(job, &modest, grade)
    }

    /// Gives a job its GPUs with `per_gpu` for each, if there is room for that.
    fn grant(&mut self, job: Candidate, per_gpu: &Host, grade: Grade) -> bool {
        let Candidate { row, is_kept, .. } = job;
        let slices = if is_kept { self.stay(row, per_gpu) } else { self.find(job, per_gpu) };
        let Some(slices) = slices else { return false };
        for slice in &slices {
            self.room.take_host(slice.node, &slice.host);
            if self.tracks_occupants {
                self.room.occupants[slice.node.index()].push(self.granted.len() as u32);
            }
        }
        let is_unchanged = is_kept && self.snapshot.jobs.allocation(row).slices == slices;
        self.granted.push(Granted { row: row as u32, slices, grade, is_kept, is_unchanged });
        true
    }

    /// The slices of a job that stays, with `per_gpu` for each GPU, if the nodes have it.
    fn stay(&self, row: usize, per_gpu: &Host) -> Option<SmallVec<[Slice; 1]>> {
        let mut slices = self.snapshot.jobs.allocation(row).slices.clone();
        for slice in &mut slices {
            slice.host = per_gpu.times(slice.gpus.len());
            // Without a mate from now on, if it had one.
            slice.share = WHOLE_GPU;
            if !slice.host.fits_in(&self.room.free_on(slice.node).1) {
                return None;
            }
        }
        Some(slices)
    }

    fn ask(&self, job: Candidate, per_gpu: &Host) -> Ask<'a> {
        let Candidate { row, gpus, gpu_type, .. } = job;
        let only_type = (self.snapshot.cluster.gpu_types().len() > 1).then_some(gpu_type);
        Ask {
            snapshot: self.snapshot,
            row,
            gpus,
            per_gpu: *per_gpu,
            gpu_type: only_type,
            first_nodes: self.first_nodes,
        }
    }

    /// Places a job on new GPUs and takes them.
    pub(super) fn find(&mut self, job: Candidate, per_gpu: &Host) -> Option<SmallVec<[Slice; 1]>> {
        let ask = self.ask(job, per_gpu);
        let spots = self.placement.place(self.room, &ask)?;
        for (node, set) in &spots {
            self.room.take_gpus(*node, *set);
        }
        let slice = |(node, set): &(_, GpuSet)| Slice {
            node: *node,
            gpus: *set,
            share: WHOLE_GPU,
            host: per_gpu.times(set.len()),
        };
        Some(spots.iter().map(slice).collect())
    }

    /// Takes back excess where a job of this GPU type is, or could be.
    fn reclaim(&mut self, job: Candidate, per_gpu: &Host, rule: Reclaim) {
        let Candidate { row, gpus, is_kept, gpu_type } = job;
        let fair = &self.room.fair_share(gpu_type);
        let targets = if is_kept {
            self.snapshot.jobs.allocation(row).slices.iter().map(|s| (s.node, s.gpus.len())).collect()
        } else {
            reclaim::targets(self.room, gpus, gpu_type)
        };
        self.reclaim_on(targets, per_gpu, fair, rule);
    }

    /// Takes back excess on these nodes, until each has `per_gpu` for so many GPUs or there is none left.
    fn reclaim_on(
        &mut self,
        targets: impl IntoIterator<Item = (NodeId, u32)>,
        per_gpu: &Host,
        fair: &Host,
        rule: Reclaim,
    ) {
        for (node, count) in targets {
            let need = per_gpu.times(count).saturating_sub(&self.room.free_on(node).1);
            if need.is_none() {
                continue;
            }
            let there = &mut self.room.occupants[node.index()];
            let picked = reclaim::pick(there, &self.granted, &self.giver_place, node, need, fair, rule);
            for index in picked {
                let granted = &mut self.granted[index as usize];
                let best = self.snapshot.jobs.demand_per_gpu(granted.row as usize);
                reclaim::cut(self.room, granted, best, fair, rule);
                let held = self.snapshot.jobs.allocation(granted.row as usize);
                granted.is_unchanged = granted.is_kept && held.slices == granted.slices;
            }
        }
    }
}
