//! How much, in order: the walk over jobs that gives each its GPUs and host resources, with native answers to
//! "does not fit". Synergy's greedy, proportional and tune allocations are this walk with different options.
//!
//! Jobs that run and are chosen again keep their GPUs (unless told otherwise): their GPUs are set aside before
//! any job is placed, and only their host shares are assigned again. Where to place is decided by the strategy (`place`).

mod rearrange;

use smallvec::SmallVec;

use self::rearrange::Rearrange;
use crate::allocation::{Allocation, Slice, WHOLE_GPU};
use crate::ids::{GpuTypeId, NodeId};
use crate::place::{Ask, Place};
use crate::plan::{Hold, Plan, Run};
use crate::reclaim::{self, Reclaim};
use crate::resources::Host;
use crate::room::Room;
use crate::snapshot::Snapshot;
use crate::table::JobPhase;

/// Host resources a job asks for with each GPU.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// What its profile says is best.
    Best,
    /// The proportional share.
    FairShare,
    /// By row.
    PerGpu(Vec<Host>),
}

/// GPUs a job gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Counts {
    /// What it asked for.
    Asked,
    /// By row; 0 leaves the job out. How elastic policies say their levels.
    PerRow(Vec<u32>),
}

/// What to try next with a job that does not fit.
pub enum Answer<'a> {
    /// Ask for no more than the proportional share, component by component.
    FairShare,
    /// Take back what neighbours hold beyond their proportional share.
    Reclaim(Reclaim),
    /// Ask for what this says for the row, given the room; `None` gives up.
    Ask(&'a mut dyn FnMut(usize, &Room) -> Option<Host>),
}

/// What a job that does not fit means for those behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Misfit {
    /// Later jobs are tried.
    #[default]
    Skip,
    /// Later jobs wait too.
    Stop,
}

/// How a walk goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// Host resources asked for at first.
    pub demand: Demand,
    /// GPUs.
    pub counts: Counts,
    /// What happens after a job that does not fit.
    pub misfit: Misfit,
    /// Walk only the jobs whose GPUs fit together, chosen in order; else every job is tried.
    pub only_selected: bool,
    /// Among these, large gangs and demands go first: that packs better (OSDI'22, §4.2).
    pub largest_first: bool,
    /// Jobs that run and are selected again stay on their GPUs.
    pub keep_places: bool,
    /// Jobs that stay are served before all others, so that new jobs take what is left instead of their CPUs.
    pub stayers_first: bool,
    /// Jobs below their demand are raised, moved or exchanged where that gives it to them.
    pub rearranges: bool,
    /// What is left on a node is given to its jobs that are below their demand.
    pub tops_up: bool,
    /// New placements use only the nodes with lower numbers; `None` uses all.
    pub first_nodes: Option<u32>,
}

impl Default for Walk {
    fn default() -> Self {
        Walk {
            demand: Demand::Best,
            counts: Counts::Asked,
            misfit: Misfit::Skip,
            only_selected: false,
            largest_first: false,
            keep_places: true,
            stayers_first: false,
            rearranges: false,
            tops_up: false,
            first_nodes: None,
        }
    }
}

/// At which of its demands a job was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// The demand it came with.
    Asked,
    /// An answer after that.
    Lowered,
    /// It gave its excess to a neighbour.
    Reclaimed,
}

/// What a job was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// Its row in the job table of the snapshot.
    pub row: u32,
    /// What it holds now, by ascending node.
    pub slices: SmallVec<[Slice; 1]>,
    /// At which of its demands it was served.
    pub grade: Grade,
    /// Whether it stays on the GPUs it had.
    pub is_kept: bool,
    /// Whether it also keeps exactly the host resources it had.
    pub(crate) is_unchanged: bool,
}

impl Granted {
    /// As a line of a plan.
    pub fn into_run(self, snapshot: &Snapshot) -> Run {
        let row = self.row as usize;
        let job = snapshot.jobs.id(row);
        let what =
            if self.is_unchanged { Hold::Keep } else { Hold::Take(Allocation { slices: self.slices }) };
        Run { job, what }
    }
}

/// A job that the walk tries to serve: with so many GPUs of a type, on those that it holds or on others.
#[derive(Clone, Copy)]
struct Candidate {
    row: usize,
    gpus: u32,
    /// It stays on the GPUs it holds, which are set aside for it.
    is_kept: bool,
    gpu_type: GpuTypeId,
}

/// A walk in progress.
pub struct Fill<'a> {
    snapshot: &'a Snapshot,
    room: &'a mut Room,
    placement: &'a mut dyn Place,
    granted: Vec<Granted>,
    /// Whether jobs may reclaim, so that the jobs on each node must be tracked.
    tracks_occupants: bool,
    first_nodes: Option<u32>,
}

impl<'a> Fill<'a> {
    /// A walk that takes from `room`.
    pub fn new(snapshot: &'a Snapshot, room: &'a mut Room, placement: &'a mut dyn Place) -> Self {
        Fill { snapshot, room, placement, granted: Vec::new(), tracks_occupants: false, first_nodes: None }
    }

    /// Walks `order` (rows, most important first) and returns what each job got.
    pub fn run(mut self, order: &[u32], walk: &Walk, answers: &mut [Answer<'_>]) -> Vec<Granted> {
        self.first_nodes = walk.first_nodes;
        let needs_selection = walk.only_selected || walk.keep_places;
        let selected = if needs_selection { self.select(order, &walk.counts) } else { Vec::new() };
        let kept = if walk.keep_places { self.set_aside(&selected, &walk.counts) } else { Vec::new() };
        let by_size;
        let mut walked: &[u32] = if walk.only_selected { &selected } else { order };
        if walk.largest_first {
            by_size = self.largest_first(walked);
            walked = &by_size;
        }
        let stayers_first;
        if walk.stayers_first && !kept.is_empty() {
            let (mut first, then): (Vec<u32>, Vec<u32>) = walked.iter().partition(|row| kept[**row as usize]);
            first.extend(then);
            stayers_first = first;
            walked = &stayers_first;
        }
        self.tracks_occupants = walk.rearranges || answers.iter().any(|a| matches!(a, Answer::Reclaim(_)));
        let mut n_kept_left = kept.iter().filter(|k| **k).count();
        self.granted
            .reserve(walked.len().min(self.snapshot.jobs.n_running() + self.room.free_gpus() as usize));
        for &row in walked {
            let is_kept = kept.get(row as usize).copied().unwrap_or(false);
            if is_kept {
                n_kept_left -= 1;
            } else if self.room.free_gpus() == 0 {
                if n_kept_left == 0 {
                    break;
                }
                continue;
            }
            let served = self.serve(row as usize, is_kept, walk, answers);
            if !served && walk.misfit == Misfit::Stop && self.gpus_of(row as usize, &walk.counts) > 0 {
                break;
            }
        }
        if (walk.rearranges || walk.tops_up) && self.granted.iter().any(|g| self.is_short(g)) {
            let mut rearrange = Rearrange::new(&mut self, if walk.only_selected { &selected } else { order });
            if walk.rearranges {
                rearrange.raise_all();
            }
            if walk.tops_up {
                rearrange.top_up();
            }
        }
        self.granted
    }

    /// The jobs whose GPUs fit together, chosen in order; one that does not fit is skipped. Quotas apply, and
    /// a job that may not be stopped yet is chosen before all others.
    pub fn select(&self, order: &[u32], counts: &Counts) -> Vec<u32> {
        let mut selected = Vec::with_capacity(order.len().min(self.room.free_gpus() as usize));
        let mut pool = GpuPool::new(self.snapshot, self.room);
        let protects = self.snapshot.guards.min_run.0 > 0;
        if protects {
            let is_protected = |row: &&u32| self.snapshot.is_protected(**row as usize);
            selected.extend(
                order
                    .iter()
                    .filter(is_protected)
                    .filter(|row| pool.take(**row as usize, self.gpus_of(**row as usize, counts))),
            );
        }
        for &row in order {
            if pool.is_empty() {
                break;
            }
            if protects && self.snapshot.is_protected(row as usize) {
                continue;
            }
            if pool.take(row as usize, self.gpus_of(row as usize, counts)) {
                selected.push(row);
            }
        }
        selected
    }

    #[inline]
    fn gpus_of(&self, row: usize, counts: &Counts) -> u32 {
        match counts {
            Counts::Asked => self.snapshot.jobs.gpus()[row],
            Counts::PerRow(counts) => counts.get(row).copied().unwrap_or(0),
        }
    }

    /// Sets aside the GPUs of selected jobs that run with the count they are to have; returns which, by row. Goes
    /// through the rows in memory order, because the order makes no difference here.
    fn set_aside(&mut self, selected: &[u32], counts: &Counts) -> Vec<bool> {
        let mut kept = vec![false; self.snapshot.jobs.len()];
        for &row in selected {
            kept[row as usize] = self.snapshot.jobs.phase(row as usize) == JobPhase::Running;
        }
        for (row, is_kept) in kept.iter_mut().enumerate().filter(|(_, is_kept)| **is_kept) {
            *is_kept = self.take_own_gpus(row, self.gpus_of(row, counts));
        }
        kept
    }

    /// Takes the GPUs that a job runs on for it again, if it is to have as many and all are free.
    fn take_own_gpus(&mut self, row: usize, gpus: u32) -> bool {
        let jobs = &self.snapshot.jobs;
        if jobs.phase(row) != JobPhase::Running {
            return false;
        }
        let held = jobs.allocation(row);
        let is_free = |s: &Slice| s.share == WHOLE_GPU && s.gpus.is_within(self.room.free_on(s.node).0);
        let can_stay = held.n_gpus() == gpus && held.slices.iter().all(is_free);
        if can_stay {
            for slice in &held.slices {
                self.room.take_gpus(slice.node, slice.gpus);
            }
        }
        can_stay
    }

    fn give_own_gpus(&mut self, row: usize) {
        for slice in &self.snapshot.jobs.allocation(row).slices {
            self.room.give_gpus(slice.node, slice.gpus);
        }
    }

    fn largest_first(&self, rows: &[u32]) -> Vec<u32> {
        let jobs = &self.snapshot.jobs;
        let mut keyed: Vec<_> =
            rows.iter().map(|row| (std::cmp::Reverse(jobs.size(*row as usize)), *row)).collect();
        keyed.sort_by_key(|(size, _)| *size);
        keyed.into_iter().map(|(_, row)| row).collect()
    }

    /// Tries a job where it is, then anywhere: with its demand, then with each answer in turn.
    fn serve(&mut self, row: usize, is_kept: bool, walk: &Walk, answers: &mut [Answer<'_>]) -> bool {
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
        if self.goes_back_to_data(job, &per_gpu, &fair, rule) || self.grant(job, &per_gpu, Grade::Asked) {
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

    /// Gives a job that was stopped no more than its share where its data is, if what it asks for would take it elsewhere:
    /// jobs that take turns would otherwise spend them fetching. Says whether it did.
    fn goes_back_to_data(
        &mut self,
        job: Candidate,
        per_gpu: &Host,
        fair: &Host,
        rule: Option<Reclaim>,
    ) -> bool {
        // A walk that reclaims falls back to the share; other walks have their own fallbacks.
        let Some(rule) = rule else { return false };
        let modest = per_gpu.min(fair);
        if job.is_kept || !self.snapshot.resumes_with_data(job.row) || self.is_near_data(job, per_gpu) {
            return false;
        }
        let mut is_near = self.is_near_data(job, &modest);
        if !is_near {
            let cluster = &self.snapshot.cluster;
            let free_on = |node: NodeId| self.room.free_on(node).0.len();
            let has_room = |node: &NodeId| {
                free_on(*node) >= job.gpus
                    && cluster.gpu_type_of(*node) == job.gpu_type
                    && self.snapshot.nodes_have_data(job.row, [*node])
            };
            let nodes = (0..cluster.nodes().len()).map(NodeId::from).filter(has_room);
            let fullest = nodes.min_by_key(|node| (free_on(*node), *node));
            self.reclaim_on(fullest.map(|node| (node, job.gpus)), &modest, fair, rule);
            is_near = fullest.is_some() && self.is_near_data(job, &modest);
        }
        let grade = if modest == *per_gpu { Grade::Asked } else { Grade::Lowered };
        is_near && self.grant(job, &modest, grade)
    }

    /// Whether the placement strategy finds the job a place with so much for each GPU where its data is.
    fn is_near_data(&mut self, job: Candidate, per_gpu: &Host) -> bool {
        let Some(slices) = self.find(job, per_gpu) else { return false };
        for slice in &slices {
            self.room.give_gpus(slice.node, slice.gpus);
        }
        self.snapshot.nodes_have_data(job.row, slices.iter().map(|slice| slice.node))
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
            if !slice.host.fits_in(&self.room.free_on(slice.node).1) {
                return None;
            }
        }
        Some(slices)
    }

    /// Places a job on new GPUs and takes them.
    fn find(&mut self, job: Candidate, per_gpu: &Host) -> Option<SmallVec<[Slice; 1]>> {
        let Candidate { row, gpus, gpu_type, .. } = job;
        let only_type = (self.snapshot.cluster.gpu_types().len() > 1).then_some(gpu_type);
        let ask = Ask {
            snapshot: self.snapshot,
            row,
            gpus,
            per_gpu: *per_gpu,
            gpu_type: only_type,
            first_nodes: self.first_nodes,
        };
        let spots = self.placement.place(self.room, &ask)?;
        for (node, set) in &spots {
            self.room.take_gpus(*node, *set);
        }
        let slice = |(node, set): &(_, crate::allocation::GpuSet)| Slice {
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
            let picked =
                reclaim::pick(&mut self.room.occupants[node.index()], &self.granted, node, need, fair, rule);
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

/// A plan in which exactly these jobs run.
pub fn plan_of(snapshot: &Snapshot, granted: Vec<Granted>) -> Plan {
    Plan { run: granted.into_iter().map(|g| g.into_run(snapshot)).collect(), ..Plan::default() }
}

/// GPUs left while jobs are chosen by count alone.
struct GpuPool<'a> {
    snapshot: &'a Snapshot,
    left: u32,
    by_type: SmallVec<[u32; 4]>,
    by_tenant: std::collections::BTreeMap<crate::ids::TenantId, u32>,
}

impl<'a> GpuPool<'a> {
    fn new(snapshot: &'a Snapshot, room: &Room) -> Self {
        let types = snapshot.cluster.gpu_types().len();
        GpuPool {
            snapshot,
            left: room.free_gpus(),
            by_type: (0..types).map(|t| room.free_gpus_of(GpuTypeId::from(t))).collect(),
            by_tenant: snapshot.guards.quota_gpus.clone(),
        }
    }

    fn is_empty(&self) -> bool {
        self.left == 0
    }

    #[inline]
    fn take(&mut self, row: usize, gpus: u32) -> bool {
        if gpus == 0 || gpus > self.left {
            return false;
        }
        if self.by_type.len() > 1 && !self.take_type(row, gpus) {
            return false;
        }
        if !self.by_tenant.is_empty()
            && let Some(quota) = self.by_tenant.get_mut(&self.snapshot.jobs.spec(row).tenant)
        {
            match quota.checked_sub(gpus) {
                Some(left) => *quota = left,
                None => return false,
            }
        }
        self.left -= gpus;
        true
    }

    /// A gang stays on one type: its own, that of the GPUs it holds, or the first with enough.
    fn take_type(&mut self, row: usize, gpus: u32) -> bool {
        let jobs = &self.snapshot.jobs;
        let held = jobs.allocation(row).slices.first().map(|s| self.snapshot.cluster.gpu_type_of(s.node));
        let bound = jobs.spec(row).gpu_type.or(held);
        let index = match bound {
            Some(gpu_type) => Some(gpu_type.index()).filter(|t| self.by_type[*t] >= gpus),
            None => self.by_type.iter().position(|left| *left >= gpus),
        };
        if let Some(index) = index {
            self.by_type[index] -= gpus;
        }
        index.is_some()
    }
}
