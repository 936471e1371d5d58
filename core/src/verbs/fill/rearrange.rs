//! Improves the result of the walk: jobs below their demand get it where some node has it.
//!
//! The walk serves one job after another and never looks back, so a job may sit at its proportional share on a crowded
//! node while another node has CPUs to spare. Here every such job is looked at once more, first in order first. It is
//! raised where it is, moved to a node that has its demand, or changes places with jobs that need less. What a job
//! further back in the order holds beyond its share counts as spare; no job is brought below its share, and none loses
//! anything to a job behind it.

mod exchange;

use smallvec::SmallVec;

use super::{Fill, Grade};
use crate::allocation::Slice;
use crate::ids::{GpuTypeId, NodeId};
use crate::place::returns;
use crate::reclaim::{self, Reclaim};
use crate::resources::Host;

/// Times all jobs are looked at; more than a few is rare, and the next round comes.
const MOST_PASSES: u32 = 8;

type Slices = SmallVec<[Slice; 1]>;

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
    /// Amounts that no node of a type has free, or can spare, at present: a job that needs as much need not look.
    hopeless: Hopeless,
    /// Whether nodes of one type have more for each GPU than others.
    nodes_differ: bool,
}

/// Amounts that were looked for and not found.
#[derive(Default)]
struct Hopeless {
    free: Vec<(GpuTypeId, Host)>,
    spare: Vec<(GpuTypeId, Host)>,
}

impl Hopeless {
    fn of(&mut self, claims: bool) -> &mut Vec<(GpuTypeId, Host)> {
        if claims { &mut self.spare } else { &mut self.free }
    }
}

impl<'f, 'a> Rearrange<'f, 'a> {
    /// Of jobs that `fill` served, by their numbers, first in order first. The others are behind all of them.
    pub(super) fn new(fill: &'f mut Fill<'a>, in_order: Vec<u32>) -> Self {
        let mut place_of = vec![u32::MAX; fill.granted.len()];
        for (place, number) in in_order.iter().enumerate() {
            place_of[*number as usize] = place as u32;
        }
        let excess_behind = vec![Host::NONE; fill.snapshot.cluster.nodes().len()];
        let hopeless = Hopeless::default();
        let mut made =
            Rearrange { fill, in_order, place_of, now_at: 0, excess_behind, hopeless, nodes_differ: false };
        let n_nodes = made.excess_behind.len();
        made.nodes_differ = (0..n_nodes).any(|n| made.is_richer(NodeId::from(n)));
        made
    }

    /// The numbers it was made with.
    pub(super) fn into_order(self) -> Vec<u32> {
        self.in_order
    }

    /// Gives jobs below their demand all of it, where that is possible. A job that moves leaves room for others, so
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

    /// Whether moving a job costs nothing, or little against what it has run where it is. One that was stopped and comes
    /// back to its data stays there.
    fn may_move(&self, index: u32) -> bool {
        let (snapshot, granted) = (self.fill.snapshot, &self.fill.granted[index as usize]);
        let row = granted.row as usize;
        if granted.is_kept {
            return snapshot.movable_from(row) <= snapshot.now;
        }
        !returns::has_returned(snapshot, row, granted.slices.iter().map(|slice| slice.node))
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

    fn type_of(&self, slices: &Slices) -> GpuTypeId {
        slices.first().map_or(GpuTypeId(0), |s| self.fill.snapshot.cluster.gpu_type_of(s.node))
    }
}
