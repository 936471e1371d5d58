//! Taking turns: all gangs run with the GPUs they ask for, and where there are too few, gangs share GPUs in time.
//!
//! Who shares with whom is the caller's rule, a key for each job or a word on each pair (Gandiva, OSDI'18, §4: the affinity
//! of a server). Free GPUs come first, then GPUs of gangs that suit, then any. Gangs that run stay where they are, unless
//! another place has fewer gangs, or as many that all suit, and the gang has run long enough to pay for the move.
//!
//! Gangs that share GPUs, directly or through others, take turns by a matrix of their own (Ousterhout): time is cut into
//! frames of equal length that repeat for ever, and in each frame a GPU belongs to one gang. A gang's share is the part
//! of the frames it runs in. How long a frame is does not matter here: the engine counts shares.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use crate::buddy::aligned_block;
use crate::cluster::Node;
use crate::ids::NodeId;
use crate::place::{Ask, Spots};
use crate::resources::Host;
use crate::snapshot::Snapshot;
use crate::table::JobPhase;

/// How often all gangs are asked whether another place is better; more would only chase ever smaller gains.
const PASSES: usize = 4;

/// Who may take turns, and with whom.
#[derive(Clone, Copy)]
pub struct TurnRules<'a> {
    /// Gangs on one GPU at most; further ones wait.
    pub most: usize,
    /// Which gangs share rather than others.
    pub together: Together<'a>,
}

/// Which gangs suit each other.
#[derive(Clone, Copy)]
pub enum Together<'a> {
    /// All.
    Any,
    /// Those with the same key, one for each row of the table.
    Keys(&'a [f64]),
    /// Those of which this says so, for two rows of the table; it says the same the other way round.
    Pairs(&'a dyn Fn(u32, u32) -> bool),
}

/// The jobs that run, with their GPUs and shares, in the order of `rows`.
pub fn take_turns(snapshot: &Snapshot, rows: &[u32], rules: &TurnRules<'_>) -> Vec<(u32, Allocation)> {
    let mut sharing = Sharing::new(snapshot, rows, rules);
    sharing.keep_places();
    sharing.place_others();
    sharing.improve();
    sharing.allocations()
}

/// A gang and the GPUs it has a turn on; none yet when `spots` is empty.
#[derive(Clone, Debug)]
struct Gang {
    row: u32,
    key: f64,
    gpus: u32,
    spots: Spots,
}

/// How good a place is; the best is the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// Whether gangs that do not suit are on its GPUs.
    is_strange: bool,
    /// The most gangs on any of its GPUs.
    load: usize,
    /// 0 on a node whose gangs all suit, 1 on an empty one, 2 elsewhere.
    company: u32,
    /// Free GPUs of the node: the smallest gap is filled first.
    n_free: u32,
    node: NodeId,
}

/// Who has turns on one GPU.
#[derive(Clone, Debug, Default)]
struct SharedGpu {
    gangs: SmallVec<[u32; 4]>,
    /// The key of the first of them.
    key: f64,
    /// Whether others have another key.
    is_mixed: bool,
}

/// Which gangs share which GPUs.
struct Sharing<'a> {
    snapshot: &'a Snapshot,
    rules: TurnRules<'a>,
    gangs: Vec<Gang>,
    /// For each node, who is on each of its GPUs.
    on: Vec<Vec<SharedGpu>>,
    usable: Vec<GpuSet>,
}

impl<'a> Sharing<'a> {
    fn new(snapshot: &'a Snapshot, rows: &[u32], rules: &TurnRules<'a>) -> Self {
        let key = |row: u32| match rules.together {
            Together::Keys(keys) => keys[row as usize],
            Together::Any | Together::Pairs(_) => 0.0,
        };
        let gang = |row: &u32| Gang {
            row: *row,
            key: key(*row),
            gpus: snapshot.jobs.gpus()[*row as usize],
            spots: Spots::new(),
        };
        let nodes = snapshot.cluster.nodes();
        Sharing {
            snapshot,
            rules: *rules,
            gangs: rows.iter().map(gang).collect(),
            on: nodes.iter().map(|node| vec![SharedGpu::default(); node.n_gpus as usize]).collect(),
            usable: nodes.iter().map(|node| snapshot.nodes.usable(node)).collect(),
        }
    }

    /// Gangs that run stay on their GPUs, as far as these can be used and are not too crowded.
    fn keep_places(&mut self) {
        for index in 0..self.gangs.len() {
            let gang = &self.gangs[index];
            let held = &self.snapshot.jobs.allocation(gang.row as usize).slices;
            let spots: Spots = held.iter().map(|slice| (slice.node, slice.gpus)).collect();
            let n_gpus: u32 = spots.iter().map(|(_, gpus)| gpus.len()).sum();
            let is_usable = spots.iter().all(|(node, gpus)| gpus.is_within(self.usable[node.index()]));
            if n_gpus == gang.gpus && n_gpus > 0 && is_usable && self.load(&spots) < self.rules.most {
                self.put(index, spots);
            }
        }
    }

    fn place_others(&mut self) {
        for index in 0..self.gangs.len() {
            if self.gangs[index].spots.is_empty()
                && let Some((_, spots)) = self.best_place(index)
            {
                self.put(index, spots);
            }
        }
    }

    /// Moves gangs to where fewer are, or as many that suit better.
    fn improve(&mut self) {
        for _ in 0..PASSES {
            let mut least = self.least_load();
            let mut is_moved = false;
            for index in 0..self.gangs.len() {
                if self.move_if_better(index, least) {
                    is_moved = true;
                    least = self.least_load();
                }
            }
            if !is_moved {
                return;
            }
        }
    }

    /// The fewest gangs on any GPU.
    fn least_load(&self) -> usize {
        let on_node = |(node, usable): (&Vec<SharedGpu>, &GpuSet)| {
            usable.iter().map(|gpu| node[gpu as usize].gangs.len()).min().unwrap_or(usize::MAX)
        };
        self.on.iter().zip(&self.usable).map(on_node).min().unwrap_or(0)
    }

    /// `least` is the fewest gangs on any GPU: a gang that shares with no more, who all suit, stays.
    fn move_if_better(&mut self, index: usize, least: usize) -> bool {
        let spots = self.gangs[index].spots.clone();
        if spots.is_empty() || !self.may_move(index) {
            return false;
        }
        let n_others = self.load(&spots) - 1;
        if n_others == 0 || (n_others <= least && !self.is_strange(&spots, index)) {
            return false;
        }
        self.leave(index);
        let here = (self.load(&spots), self.is_strange(&spots, index));
        let better = self.best_place(index).filter(|(cost, _)| (cost.load, cost.is_strange) < here);
        let is_moved = better.is_some();
        self.put(index, better.map_or(spots, |(_, spots)| spots));
        is_moved
    }

    /// Whether moving a gang costs nothing, or little against what it has run where it is: else one that is moved at every
    /// change would restart for ever.
    fn may_move(&self, index: usize) -> bool {
        let row = self.gangs[index].row as usize;
        let is_running = self.snapshot.jobs.phase(row) == JobPhase::Running;
        !is_running || self.snapshot.movable_from(row) <= self.snapshot.now
    }

    fn put(&mut self, index: usize, spots: Spots) {
        let key = self.gangs[index].key;
        for (node, gpus) in &spots {
            for gpu in gpus.iter() {
                let shared = &mut self.on[node.index()][gpu as usize];
                if shared.gangs.is_empty() {
                    shared.key = key;
                }
                shared.is_mixed |= shared.key != key;
                shared.gangs.push(index as u32);
            }
        }
        self.gangs[index].spots = spots;
    }

    fn leave(&mut self, index: usize) {
        for (node, gpus) in std::mem::take(&mut self.gangs[index].spots) {
            for gpu in gpus.iter() {
                let shared = &mut self.on[node.index()][gpu as usize];
                shared.gangs.retain(|gang| *gang != index as u32);
                let key = |gang: &u32| self.gangs[*gang as usize].key;
                shared.key = shared.gangs.first().map_or(0.0, key);
                shared.is_mixed = shared.gangs.iter().any(|gang| key(gang) != shared.key);
            }
        }
    }

    /// The most gangs on any of these GPUs.
    fn load(&self, spots: &Spots) -> usize {
        let loads = spots.iter().flat_map(|(node, gpus)| gpus.iter().map(|gpu| self.there(*node, gpu).len()));
        loads.max().unwrap_or(0)
    }

    /// Whether a gang that does not suit this one is on one of these GPUs.
    fn is_strange(&self, spots: &Spots, index: usize) -> bool {
        spots.iter().any(|(node, gpus)| {
            gpus.iter().any(|gpu| self.has_stranger(&self.on[node.index()][gpu as usize], index))
        })
    }

    /// Whether a gang that does not suit this one has turns on a GPU.
    fn has_stranger(&self, shared: &SharedGpu, index: usize) -> bool {
        let gang = &self.gangs[index];
        match self.rules.together {
            Together::Any => false,
            Together::Keys(_) => !shared.gangs.is_empty() && (shared.is_mixed || shared.key != gang.key),
            Together::Pairs(suit) => {
                let others = shared.gangs.iter().map(|other| *other as usize).filter(|other| *other != index);
                others.map(|other| self.gangs[other].row).any(|other| !suit(gang.row, other))
            }
        }
    }

    /// GPUs of a node that one more gang may join.
    fn open(&self, node: NodeId) -> GpuSet {
        let open =
            self.usable[node.index()].iter().filter(|gpu| self.there(node, *gpu).len() < self.rules.most);
        open.fold(GpuSet::NONE, |set, gpu| set.or(GpuSet::one(gpu)))
    }

    fn there(&self, node: NodeId, gpu: u32) -> &[u32] {
        &self.on[node.index()][gpu as usize].gangs
    }

    /// The best GPUs for a gang that has none: on one node if it fits on one, else on whole nodes.
    fn best_place(&self, index: usize) -> Option<(Cost, Spots)> {
        let gang = &self.gangs[index];
        let row = gang.row as usize;
        let ask = Ask {
            snapshot: self.snapshot,
            row,
            gpus: gang.gpus,
            per_gpu: Host::NONE,
            gpu_type: self.snapshot.jobs.spec(row).gpu_type,
            first_nodes: None,
        };
        let nodes = || self.snapshot.cluster.nodes().iter().filter(|node| ask.allows(node));
        let on_one =
            nodes().filter_map(|node| self.on_node(index, node, gang.gpus)).min_by_key(|found| found.0);
        match on_one {
            Some((cost, gpus)) => Some((cost, SmallVec::from_slice(&[(cost.node, gpus)]))),
            None => self.on_several(index, nodes()),
        }
    }

    /// The best `count` GPUs of a node: free ones, else those whose gangs suit, fewest gangs first.
    fn on_node(&self, index: usize, node: &Node, count: u32) -> Option<(Cost, GpuSet)> {
        let open = self.open(node.id);
        if open.len() < count || count == 0 {
            return None;
        }
        let on_node = &self.on[node.id.index()];
        let cost = |gpu: u32| {
            let shared = &on_node[gpu as usize];
            (self.has_stranger(shared, index), shared.gangs.len())
        };
        let of_gpus: SmallVec<[(bool, usize); 8]> = open.iter().map(cost).collect();
        let n_free = of_gpus.iter().filter(|cost| cost.1 == 0).count() as u32;
        let has_strangers = of_gpus.iter().any(|cost| cost.0);
        let mut costs = of_gpus.clone();
        costs.sort_unstable();
        let worst = costs[count as usize - 1];
        let fits = open.iter().zip(of_gpus).filter(|(_, cost)| *cost <= worst);
        let allowed = fits.fold(GpuSet::NONE, |set, (gpu, _)| set.or(GpuSet::one(gpu)));
        let company = match (has_strangers, n_free == node.n_gpus) {
            (false, false) => 0,
            (false, true) => 1,
            (true, _) => 2,
        };
        let gpus = aligned_block(allowed, count);
        let load = gpus.iter().map(|gpu| self.there(node.id, gpu).len()).max().unwrap_or(0);
        Some((Cost { is_strange: worst.0, load, company, n_free, node: node.id }, gpus))
    }

    /// Nodes as they are, the best first, until the gang is complete.
    fn on_several<'n>(&self, index: usize, nodes: impl Iterator<Item = &'n Node>) -> Option<(Cost, Spots)> {
        let whole = |node: &'n Node| Some((self.on_node(index, node, self.open(node.id).len())?.0, node));
        let mut whole: Vec<(Cost, &Node)> = nodes.filter_map(whole).collect();
        whole.sort_unstable_by_key(|found| found.0);
        let (mut left, mut spots, mut last) = (self.gangs[index].gpus, Spots::new(), None);
        for (_, node) in whole {
            let (cost, gpus) = self.on_node(index, node, self.open(node.id).len().min(left))?;
            left -= gpus.len();
            spots.push((node.id, gpus));
            last = Some(cost);
            if left == 0 {
                break;
            }
        }
        let last = last.filter(|_| left == 0)?;
        spots.sort_unstable_by_key(|spot| spot.0);
        let (is_strange, load) = (self.is_strange(&spots, index), self.load(&spots));
        Some((Cost { is_strange, load, ..last }, spots))
    }

    fn allocations(&self) -> Vec<(u32, Allocation)> {
        let mut turns = vec![(1, 1); self.gangs.len()];
        for group in self.groups() {
            take_frames(&self.gangs, &group, &mut turns);
        }
        let placed = self.gangs.iter().zip(turns).filter(|(gang, _)| !gang.spots.is_empty());
        placed.map(|(gang, turns)| (gang.row, self.allocation(gang, turns))).collect()
    }

    /// Gangs that share GPUs, directly or through others, for every set of two and more.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut is_seen = vec![false; self.gangs.len()];
        let mut groups = Vec::new();
        for first in 0..self.gangs.len() {
            let mut group = Vec::new();
            let mut open = vec![first];
            while let Some(index) = open.pop() {
                if !std::mem::replace(&mut is_seen[index], true) {
                    group.push(index);
                    let spots = self.gangs[index].spots.iter();
                    let gpus = spots.flat_map(|(node, gpus)| gpus.iter().map(|gpu| self.there(*node, gpu)));
                    open.extend(gpus.flatten().map(|gang| *gang as usize).filter(|gang| !is_seen[*gang]));
                }
            }
            if group.len() > 1 {
                groups.push(group);
            }
        }
        groups
    }

    fn allocation(&self, gang: &Gang, (n_turns, n_frames): (usize, usize)) -> Allocation {
        let share = (usize::from(WHOLE_GPU) * n_turns / n_frames) as u16;
        let slice = |(node, gpus): &(NodeId, GpuSet)| {
            let per_gpu = self.snapshot.cluster.node(*node).map_or(Host::NONE, |node| node.share_per_gpu());
            let host = per_gpu.times(n_turns as u32).per(n_frames as u32).times(gpus.len());
            Slice { node: *node, gpus: *gpus, share: share.max(1), host }
        };
        Allocation { slices: gang.spots.iter().map(slice).collect() }
    }
}

/// Deals frames to the gangs of one group, the widest first; writes down how many of how many each has.
fn take_frames(gangs: &[Gang], group: &[usize], turns: &mut [(usize, usize)]) {
    let mut order = group.to_vec();
    order.sort_unstable_by_key(|index| (Reverse(gangs[*index].gpus), *index));
    let mut frames: Vec<Vec<usize>> = Vec::new();
    for &index in &order {
        let free = frames.iter().position(|frame| is_free(gangs, frame, index));
        let frame = free.unwrap_or_else(|| {
            frames.push(Vec::new());
            frames.len() - 1
        });
        frames[frame].push(index);
        turns[index].0 = 1;
    }
    // Frames in which all its GPUs are free go to a gang too, one to each until there are none.
    loop {
        let mut is_given = false;
        for &index in &order {
            if let Some(frame) = frames.iter_mut().find(|frame| is_free(gangs, frame, index)) {
                frame.push(index);
                turns[index].0 += 1;
                is_given = true;
            }
        }
        if !is_given {
            break;
        }
    }
    for &index in &order {
        turns[index].1 = frames.len();
    }
}

fn is_free(gangs: &[Gang], frame: &[usize], index: usize) -> bool {
    !frame.iter().any(|other| *other == index || overlap(&gangs[*other].spots, &gangs[index].spots))
}

fn overlap(a: &Spots, b: &Spots) -> bool {
    a.iter().any(|(node, gpus)| b.iter().any(|(other, there)| node == other && !gpus.and(*there).is_empty()))
}
