//! Improves the result of the walk: jobs below their demand get it where some node has it, and what is left is distributed.
//!
//! The walk serves one job after another and never looks back, so a job may sit at its proportional share on a crowded
//! node while another node has CPUs to spare. Here every such job is looked at once more, first in order first. It is
//! raised where it is, moved to a node that has its demand, or changes places with jobs that need less. What a job
//! further back in the order holds beyond its share counts as spare; no job is brought below its share, and none loses
//! anything to a job behind it.

use smallvec::SmallVec;

use super::{Candidate, Fill, Grade, Granted};
use crate::allocation::Slice;
use crate::ids::{GpuTypeId, NodeId};
use crate::reclaim::{self, Reclaim};
use crate::resources::Host;

/// Exchanges tried for one job: a strategy that refuses so many has its reasons.
const MOST_TRADES: u32 = 4;

/// Times all jobs are looked at; more than a few is rare, and the next round comes.
const MOST_PASSES: u32 = 8;

type Slices = SmallVec<[Slice; 1]>;

/// Jobs that change places with another, by their numbers in `granted`.
type Partners = SmallVec<[u32; 4]>;

/// One pass over the jobs that were served.
pub(super) struct Rearrange<'f, 'a> {
    fill: &'f mut Fill<'a>,
    /// Numbers in `granted`, first in order first.
    in_order: Vec<u32>,
    /// By number in `granted`: its place in the order.
    place_of: Vec<u32>,
    /// The place in the order that is looked at.
    now_at: u32,
    /// By node: what jobs that are still to be looked at hold beyond their share.
    excess_behind: Vec<Host>,
    /// Amounts that no node has free, or can spare, at present: a job that needs as much need not look.
    hopeless: Hopeless,
}

/// Amounts that were looked for and not found.
#[derive(Default)]
struct Hopeless {
    free: Vec<Host>,
    spare: Vec<Host>,
}

/// What a job that was taken out left behind, and what it wants.
struct Wish<'s> {
    index: u32,
    before: &'s Slices,
    gpus: u32,
    per_gpu: Host,
    /// Free GPUs and host resources where it was.
    left_gpus: u32,
    left_host: Host,
    /// Whether it may claim what jobs behind it hold beyond their share. Who runs already may not: it would be stopped
    /// for the sake of the order alone, since what it wins another loses.
    claims: bool,
}

impl Hopeless {
    fn of(&mut self, claims: bool) -> &mut Vec<Host> {
        if claims { &mut self.spare } else { &mut self.free }
    }
}

impl<'f, 'a> Rearrange<'f, 'a> {
    /// Of the jobs that `fill` served, in the order of these rows.
    pub(super) fn new(fill: &'f mut Fill<'a>, rows: &[u32]) -> Self {
        let mut number_of = vec![u32::MAX; fill.snapshot.jobs.len()];
        for (number, granted) in fill.granted.iter().enumerate() {
            number_of[granted.row as usize] = number as u32;
        }
        let served = rows.iter().map(|row| number_of[*row as usize]).filter(|number| *number != u32::MAX);
        let in_order: Vec<u32> = served.collect();
        let mut place_of = vec![u32::MAX; fill.granted.len()];
        for (place, number) in in_order.iter().enumerate() {
            place_of[*number as usize] = place as u32;
        }
        let excess_behind = vec![Host::NONE; fill.snapshot.cluster.nodes().len()];
        Rearrange { fill, in_order, place_of, now_at: 0, excess_behind, hopeless: Hopeless::default() }
    }

    /// Gives jobs below their demand all of it, where that is possible. Who moves leaves room that others may use, so
    /// this goes on until no job moves.
    pub(super) fn raise_all(&mut self) {
        for _ in 0..MOST_PASSES {
            if !self.raise_each() {
                return;
            }
        }
    }

    /// Looks at every job once; says whether anybody moved.
    fn raise_each(&mut self) -> bool {
        self.excess_behind.fill(Host::NONE);
        self.hopeless = Hopeless::default();
        for number in 0..self.fill.granted.len() {
            self.count_excess(number as u32, true);
        }
        let mut has_moved = false;
        for place in 0..self.in_order.len() {
            let index = self.in_order[place];
            self.count_excess(index, false);
            self.now_at = place as u32;
            if self.is_short(index) && !self.raise_in_place(index) {
                let is_moved = self.may_move(index) && self.change_places(index);
                if is_moved || self.claim_in_place(index) {
                    self.hopeless = Hopeless::default();
                }
                has_moved |= is_moved;
            }
        }
        has_moved
    }

    /// Deals what is left on each node to the jobs there that are below their demand, first in order first.
    pub(super) fn top_up(&mut self) {
        for place in 0..self.in_order.len() {
            let index = self.in_order[place];
            if self.is_short(index) {
                self.raise_by_what_is_free(index);
            }
        }
    }

    fn demand(&self, index: u32) -> &Host {
        self.fill.snapshot.jobs.demand_per_gpu(self.fill.granted[index as usize].row as usize)
    }

    fn is_short(&self, index: u32) -> bool {
        self.fill.is_short(&self.fill.granted[index as usize])
    }

    /// What a job holds on a node beyond its share.
    fn excess(&self, slice: &Slice) -> Host {
        let fair = self.fill.room.fair_share(self.fill.snapshot.cluster.gpu_type_of(slice.node));
        slice.host.saturating_sub(&fair.times(slice.gpus.len()))
    }

    /// Adds what a job holds beyond its share to what is behind, or takes it away.
    fn count_excess(&mut self, index: u32, adds: bool) {
        for at in 0..self.fill.granted[index as usize].slices.len() {
            let slice = self.fill.granted[index as usize].slices[at];
            let excess = self.excess(&slice);
            let sum = &mut self.excess_behind[slice.node.index()];
            *sum = if adds { sum.checked_add(&excess).unwrap_or(*sum) } else { sum.saturating_sub(&excess) };
        }
    }

    fn is_behind(&self, index: u32) -> bool {
        self.place_of[index as usize] > self.now_at
    }

    /// Gives a job its whole demand on the GPUs it has, if all its nodes can.
    fn raise_in_place(&mut self, index: u32) -> bool {
        let demand = *self.demand(index);
        let lacks = |s: &Slice| demand.times(s.gpus.len()).saturating_sub(&s.host);
        let granted = &mut self.fill.granted[index as usize];
        if !granted.slices.iter().all(|s| lacks(s).fits_in(&self.fill.room.free_on(s.node).1)) {
            return false;
        }
        for slice in &mut granted.slices {
            self.fill.room.take_host(slice.node, &lacks(slice));
            slice.host = slice.host.max(&demand.times(slice.gpus.len()));
        }
        granted.grade = Grade::Asked;
        self.fill.settle(index);
        true
    }

    /// Raises a job as far as the node with the least to spare allows, each GPU by the same.
    fn raise_by_what_is_free(&mut self, index: u32) {
        let mut level = *self.demand(index);
        let granted = &mut self.fill.granted[index as usize];
        for slice in &granted.slices {
            let free = self.fill.room.free_on(slice.node).1;
            let most = slice.host.checked_add(&free).unwrap_or(slice.host);
            level = level.min(&most.per(slice.gpus.len()));
        }
        for slice in &mut granted.slices {
            let raised = slice.host.max(&level.times(slice.gpus.len()));
            self.fill.room.take_host(slice.node, &raised.saturating_sub(&slice.host));
            slice.host = raised;
        }
        self.fill.settle(index);
    }

    /// Whether moving a job costs nothing, or little against what it has run where it is. One that was stopped and comes
    /// back to its data stays there.
    fn may_move(&self, index: u32) -> bool {
        let (snapshot, granted) = (self.fill.snapshot, &self.fill.granted[index as usize]);
        let row = granted.row as usize;
        if granted.is_kept {
            return snapshot.movable_from(row) <= snapshot.now;
        }
        let nodes = granted.slices.iter().map(|slice| slice.node);
        !(snapshot.resumes_with_data(row) && snapshot.nodes_have_data(row, nodes))
    }

    /// Gives a job its demand where it is, if neighbours behind it can be cut to their share for it.
    fn claim_in_place(&mut self, index: u32) -> bool {
        let slices = self.fill.granted[index as usize].slices.clone();
        let demand = *self.demand(index);
        let lacks = |s: &Slice| demand.times(s.gpus.len()).saturating_sub(&s.host);
        if !slices.iter().all(|s| lacks(s).fits_in(&self.spare_on(s.node))) {
            return false;
        }
        for slice in &slices {
            self.cut_behind(slice.node, &lacks(slice));
        }
        self.raise_in_place(index)
    }

    /// What a node has free, and what jobs behind hold there beyond their share.
    fn spare_on(&self, node: NodeId) -> Host {
        let free = self.fill.room.free_on(node).1;
        free.checked_add(&self.excess_behind[node.index()]).unwrap_or(free)
    }

    /// Cuts jobs behind to their share, last in order first, until so much is free on a node.
    fn cut_behind(&mut self, node: NodeId, wanted: &Host) {
        let there = &self.fill.room.occupants[node.index()];
        let mut behind: SmallVec<[u32; 8]> =
            there.iter().copied().filter(|other| self.is_behind(*other)).collect();
        behind.sort_unstable_by_key(|other| std::cmp::Reverse(self.place_of[*other as usize]));
        for other in behind {
            let lacks = wanted.saturating_sub(&self.fill.room.free_on(node).1);
            if lacks.is_none() {
                return;
            }
            let granted = &self.fill.granted[other as usize];
            let excess =
                granted.slices.iter().find(|s| s.node == node).map_or(Host::NONE, |s| self.excess(s));
            if lacks.saturating_sub(&excess) != lacks {
                self.cut(other);
            }
        }
    }

    fn cut(&mut self, index: u32) {
        self.count_excess(index, false);
        let best = *self.demand(index);
        let gpu_type = self.type_of(&self.fill.granted[index as usize].slices);
        let fair = self.fill.room.fair_share(gpu_type);
        let granted = &mut self.fill.granted[index as usize];
        reclaim::cut(self.fill.room, granted, &best, &fair, Reclaim::default());
        self.count_excess(index, true);
        self.fill.settle(index);
    }

    /// Looks for another place at which a job has its demand, alone or in exchange; leaves it where it is if there is none.
    fn change_places(&mut self, index: u32) -> bool {
        let demand = *self.demand(index);
        let before = self.take_out(index);
        if let Some(slices) = self.find(index, &before, &demand) {
            self.put_in(index, slices, Grade::Asked);
            return true;
        }
        let (left_gpus, left_host) = before.iter().fold((0, Host::NONE), |(gpus, host), slice| {
            let (free, room) = self.fill.room.free_on(slice.node);
            (gpus + free.len(), host.checked_add(&room).unwrap_or(host))
        });
        let gpus = n_gpus(&before);
        let claims = !self.fill.granted[index as usize].is_kept;
        let wish = Wish { index, before: &before, gpus, per_gpu: demand, left_gpus, left_host, claims };
        let is_moved = self.exchange(&wish);
        if !is_moved {
            self.put_back(index, before);
        }
        is_moved
    }

    /// Lets a job have its demand on a node that can spare it, or whose jobs can go where it was. Says whether it did.
    fn exchange(&mut self, wish: &Wish<'_>) -> bool {
        let whole = wish.per_gpu.times(wish.gpus);
        // What a node must spare, since no partner can take along more than has room where the job was.
        let least = whole.saturating_sub(&wish.left_host);
        if self.hopeless.of(wish.claims).iter().any(|known| known.fits_in(&least)) {
            return false;
        }
        let gpu_type = self.type_of(wish.before);
        let (mut n_tried, mut is_hopeless) = (0, true);
        for n in 0..self.excess_behind.len() {
            let node = NodeId::from(n);
            let spare = if wish.claims { self.spare_on(node) } else { self.fill.room.free_on(node).1 };
            let may_serve = least.fits_in(&spare)
                && self.fill.snapshot.cluster.gpu_type_of(node) == gpu_type
                && !wish.before.iter().any(|s| s.node == node);
            if !may_serve {
                continue;
            }
            is_hopeless = false;
            let lacks_gpus = wish.gpus.saturating_sub(self.fill.room.free_on(node).0.len());
            let lacks_host = whole.saturating_sub(&spare);
            let Some(partners) = self.partners(node, lacks_gpus, lacks_host, wish) else { continue };
            if self.trade(wish, node, &whole, &partners) {
                return true;
            }
            n_tried += 1;
            if n_tried == MOST_TRADES {
                break;
            }
        }
        if is_hopeless {
            self.hopeless.of(wish.claims).push(least);
        }
        false
    }

    /// Jobs of a node that can go where another was, and leave behind what is lacking: none or one if that suffices.
    fn partners(&self, node: NodeId, gpus: u32, host: Host, wish: &Wish<'_>) -> Option<Partners> {
        if gpus == 0 && host.is_none() {
            return Some(Partners::new());
        }
        let offers = |index: &u32| {
            let slices = &self.fill.granted[*index as usize].slices;
            let slice = slices.first().filter(|s| slices.len() == 1 && s.gpus.len() <= wish.left_gpus)?;
            (slice.host.fits_in(&wish.left_host) && self.may_move(*index)).then_some((*index, *slice))
        };
        // Its excess was counted as spare already if it is behind.
        let brings = |index: u32, slice: &Slice| match self.is_behind(index) {
            true => slice.host.saturating_sub(&self.excess(slice)),
            false => slice.host,
        };
        let there = &self.fill.room.occupants[node.index()];
        let suffices = |(index, s): &(u32, Slice)| s.gpus.len() >= gpus && host.fits_in(&brings(*index, s));
        if let Some((index, _)) = there.iter().filter_map(offers).find(suffices) {
            return Some(SmallVec::from_slice(&[index]));
        }
        if wish.left_gpus < 2 {
            return None;
        }
        let (mut lacks_gpus, mut lacks_host) = (gpus, host);
        let (mut left_gpus, mut left_host) = (wish.left_gpus, wish.left_host);
        let mut partners = Partners::new();
        for (index, slice) in there.iter().filter_map(offers) {
            if slice.gpus.len() > left_gpus || !slice.host.fits_in(&left_host) {
                continue;
            }
            partners.push(index);
            left_gpus -= slice.gpus.len();
            left_host = left_host.saturating_sub(&slice.host);
            lacks_gpus = lacks_gpus.saturating_sub(slice.gpus.len());
            lacks_host = lacks_host.saturating_sub(&brings(index, &slice));
            if lacks_gpus == 0 && lacks_host.is_none() {
                return Some(partners);
            }
        }
        None
    }

    /// Carries an exchange out if the placement strategy finds places for all; else leaves the partners where they are.
    fn trade(&mut self, wish: &Wish<'_>, node: NodeId, whole: &Host, partners: &Partners) -> bool {
        let held: SmallVec<[(u32, Slices); 2]> =
            partners.iter().map(|partner| (*partner, self.take_out(*partner))).collect();
        self.cut_behind(node, whole);
        let mut n_placed = 0;
        if let Some(slices) = self.find(wish.index, wish.before, &wish.per_gpu) {
            let grade = self.fill.granted[wish.index as usize].grade;
            self.put_in(wish.index, slices, Grade::Asked);
            n_placed = held.iter().take_while(|(partner, slices)| self.move_along(*partner, slices)).count();
            if n_placed == held.len() {
                return true;
            }
            self.take_out(wish.index);
            self.fill.granted[wish.index as usize].grade = grade;
        }
        for (partner, _) in &held[..n_placed] {
            self.take_out(*partner);
        }
        for (partner, slices) in held {
            self.put_back(partner, slices);
        }
        false
    }

    /// Places a job again with what it held.
    fn move_along(&mut self, index: u32, held: &Slices) -> bool {
        let per_gpu = held.first().map_or(Host::NONE, |s| s.host.per(s.gpus.len()));
        let grade = self.fill.granted[index as usize].grade;
        let found = self.find(index, held, &per_gpu);
        found.map(|slices| self.put_in(index, slices, grade)).is_some()
    }

    /// Frees all that a job holds.
    fn take_out(&mut self, index: u32) -> Slices {
        if self.is_behind(index) {
            self.count_excess(index, false);
        }
        let slices = std::mem::take(&mut self.fill.granted[index as usize].slices);
        for slice in &slices {
            self.fill.room.give_gpus(slice.node, slice.gpus);
            self.fill.room.give_host(slice.node, &slice.host);
            self.fill.room.occupants[slice.node.index()].retain(|other| *other != index);
        }
        slices
    }

    /// Where the placement strategy has a place with so much for each GPU; the GPUs are taken, the rest is not.
    fn find(&mut self, index: u32, before: &Slices, per_gpu: &Host) -> Option<Slices> {
        let row = self.fill.granted[index as usize].row as usize;
        let gpu_type = self.type_of(before);
        let job = Candidate { row, gpus: n_gpus(before), is_kept: false, gpu_type };
        self.fill.find(job, per_gpu)
    }

    fn type_of(&self, slices: &Slices) -> GpuTypeId {
        slices.first().map_or(GpuTypeId(0), |s| self.fill.snapshot.cluster.gpu_type_of(s.node))
    }

    /// Gives a job a place whose GPUs are taken already.
    fn put_in(&mut self, index: u32, slices: Slices, grade: Grade) {
        for slice in &slices {
            self.fill.room.take_host(slice.node, &slice.host);
            self.fill.room.occupants[slice.node.index()].push(index);
        }
        let granted = &mut self.fill.granted[index as usize];
        granted.slices = slices;
        granted.grade = grade;
        self.fill.settle(index);
        if self.is_behind(index) {
            self.count_excess(index, true);
        }
    }

    fn put_back(&mut self, index: u32, slices: Slices) {
        for slice in &slices {
            self.fill.room.take_gpus(slice.node, slice.gpus);
        }
        let grade = self.fill.granted[index as usize].grade;
        self.put_in(index, slices, grade);
    }
}

impl Fill<'_> {
    /// Whether a job has less of anything than it could use.
    pub(super) fn is_short(&self, granted: &Granted) -> bool {
        let demand = self.snapshot.jobs.demand_per_gpu(granted.row as usize);
        granted.slices.iter().any(|s| !demand.times(s.gpus.len()).fits_in(&s.host))
    }

    /// Notes whether a job stays where it is, and with what it has.
    fn settle(&mut self, index: u32) {
        let granted = &mut self.granted[index as usize];
        let held = &self.snapshot.jobs.allocation(granted.row as usize).slices;
        let same = |a: &Slice, b: &Slice| (a.node, a.gpus, a.share) == (b.node, b.gpus, b.share);
        granted.is_kept =
            held.len() == granted.slices.len() && held.iter().zip(&granted.slices).all(|(a, b)| same(a, b));
        granted.is_unchanged = *held == granted.slices;
    }
}

fn n_gpus(slices: &Slices) -> u32 {
    slices.iter().map(|s| s.gpus.len()).sum()
}
