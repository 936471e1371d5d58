//! Buddy placement (ElasticFlow, ASPLOS'23, §4.3): gangs of power-of-two size never fragment a cluster when gaps are
//! filed by size and the gap of exactly the right size is used first.
//!
//! [`Buddy`] is the strategy for the engine: it looks at a room and remembers nothing. [`Shelves`] is the filing
//! system itself, for callers that place and release by gang: sets of nodes filed by the size of their gap.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::allocation::GpuSet;
use crate::place::{Ask, Consolidate, Place, Spots};
use crate::room::Room;

/// The smallest gap that holds the gang, in an aligned block; whole free nodes for gangs that fill nodes. Where no
/// such place is left, the fullest nodes together, so that a gang is never refused only because of fragmentation.
#[derive(Clone, Debug, Default)]
pub struct Buddy {
    otherwise: Consolidate,
}

impl Place for Buddy {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        smallest_gap(room, ask).or_else(|| whole_nodes(room, ask)).or_else(|| self.otherwise.place(room, ask))
    }
}

fn smallest_gap(room: &Room, ask: &Ask<'_>) -> Option<Spots> {
    let whole = ask.per_gpu.times(ask.gpus);
    let holds = room
        .candidates(&ask.per_gpu)
        .filter(|(node, free, host)| free.len() >= ask.gpus && whole.fits_in(host) && ask.allows(node));
    let (_, node, free) =
        holds.map(|(node, free, _)| (free.len(), node.id, free)).min_by_key(|g| (g.0, g.1))?;
    Some(SmallVec::from_slice(&[(node, aligned_block(free, ask.gpus))]))
}

/// A free block that begins at a multiple of its size, else the lowest free GPUs.
pub(crate) fn aligned_block(free: GpuSet, gpus: u32) -> GpuSet {
    let size = gpus.next_power_of_two();
    let blocks = (0..64 / size).map(|i| GpuSet(GpuSet::first(gpus).0 << (i * size)));
    blocks.into_iter().find(|block| block.is_within(free)).unwrap_or_else(|| free.lowest(gpus))
}

/// Nodes that are wholly free, in id order, until the gang is whole.
fn whole_nodes(room: &Room, ask: &Ask<'_>) -> Option<Spots> {
    let mut spots = Spots::new();
    let mut left = ask.gpus;
    for (node, free, host) in room.candidates(&ask.per_gpu) {
        let count = node.n_gpus.min(left);
        if free.len() == node.n_gpus && ask.allows(node) && ask.per_gpu.times(count).fits_in(&host) {
            spots.push((node.id, GpuSet::first(count)));
            left -= count;
        }
        if left == 0 {
            return Some(spots);
        }
    }
    None
}

/// Gap sizes that have a shelf of their own.
const SIZES: [u32; 16] = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256];

/// Like nodes in sets, each set filed on the shelf of its gap's size.
#[derive(Clone, Debug)]
pub struct Shelves {
    gpus_per_node: u32,
    /// Node numbers and the key by which free nodes are ordered.
    nodes: Vec<u32>,
    free: Vec<u32>,
    shelves: [Vec<usize>; SIZES.len()],
    sets: Vec<NodeSet>,
    unused: Vec<usize>,
    homes: BTreeMap<u32, (usize, u32)>,
}

/// Nodes that are used together.
#[derive(Clone, Debug, Default)]
struct NodeSet {
    nodes: Vec<u32>,
    used: u32,
    capacity: u32,
    /// Size it is thought to be filed under; the shelf it is on may be another after a fresh set was filed.
    tag: u32,
    gangs: Vec<u32>,
}

/// A gang's place: the first node of its set, and the gangs of the set in the order they came.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    /// Position of the first node of the set.
    pub first_node: u32,
    /// Positions of all its nodes.
    pub nodes: &'a [u32],
    /// Size of the shelf the set is on.
    pub shelf: u32,
    /// Gangs in the set.
    pub gangs: &'a [u32],
}

impl Shelves {
    /// Free nodes in the order of their positions; `keys` order them again after every release (ties keep the
    /// order in which they were given back).
    pub fn new(keys: Vec<u32>, gpus_per_node: u32) -> Self {
        Shelves {
            gpus_per_node,
            free: (0..keys.len() as u32).collect(),
            nodes: keys,
            shelves: Default::default(),
            sets: Vec::new(),
            unused: Vec::new(),
            homes: BTreeMap::new(),
        }
    }

    /// Whether a gang has a place.
    pub fn holds(&self, gang: u32) -> bool {
        self.homes.contains_key(&gang)
    }

    /// Finds room for a gang: a gap of exactly its size, else the largest, else free nodes. Says whether it did.
    pub fn place(&mut self, gang: u32, gpus: u32) -> bool {
        let Some(own) = SIZES.iter().position(|s| *s == gpus) else { return false };
        if self.place_on_head(own, own, gang, gpus) {
            return true;
        }
        for shelf in (own + 1..SIZES.len()).rev() {
            if self.place_on_head(shelf, own, gang, gpus) {
                return true;
            }
        }
        self.place_on_free_nodes(own, gang, gpus)
    }

    /// Tries the first set of a shelf; one that is too full goes to the back.
    fn place_on_head(&mut self, shelf: usize, own: usize, gang: u32, gpus: u32) -> bool {
        if self.shelves[shelf].is_empty() {
            return false;
        }
        let id = self.shelves[shelf].remove(0);
        let set = &mut self.sets[id];
        if set.used + gpus > set.capacity {
            self.shelves[shelf].push(id);
            return false;
        }
        set.used += gpus;
        set.gangs.push(gang);
        self.homes.insert(gang, (id, gpus));
        match shelf_of_gap(set.capacity - set.used) {
            Some(target) => {
                set.tag = SIZES[target];
                self.shelves[target].push(id);
                self.tidy(own);
                self.tidy(target);
            }
            None => {
                self.shelves[own].push(id);
                self.tidy(own);
            }
        }
        true
    }

    fn place_on_free_nodes(&mut self, own: usize, gang: u32, gpus: u32) -> bool {
        let count = gpus.div_ceil(self.gpus_per_node.max(1)) as usize;
        if count > self.free.len() {
            return false;
        }
        let nodes: Vec<u32> = self.free.drain(..count).collect();
        let capacity = count as u32 * self.gpus_per_node;
        let set = NodeSet { nodes, used: gpus, capacity, tag: gpus, gangs: vec![gang] };
        let id = match self.unused.pop() {
            Some(id) => {
                self.sets[id] = set;
                id
            }
            None => {
                self.sets.push(set);
                self.sets.len() - 1
            }
        };
        self.homes.insert(gang, (id, gpus));
        let target = shelf_of_gap(capacity - gpus).unwrap_or(own);
        self.shelves[target].push(id);
        self.tidy(own);
        self.tidy(target);
        true
    }

    /// Takes a gang out; a set without gangs gives its nodes back.
    pub fn release(&mut self, gang: u32) {
        let Some((id, gpus)) = self.homes.remove(&gang) else { return };
        let set = &mut self.sets[id];
        set.used -= gpus;
        set.gangs.retain(|g| *g != gang);
        let gap = set.capacity - set.used;
        if set.used == 0 {
            for shelf in &mut self.shelves {
                shelf.retain(|s| *s != id);
            }
            self.free.append(&mut self.sets[id].nodes);
            let keys = &self.nodes;
            self.free.sort_by_key(|node| keys[*node as usize]);
            self.unused.push(id);
        } else if gap != set.tag
            && let Some(target) = shelf_of_gap(gap)
        {
            if let Some(from) = SIZES.iter().position(|s| *s == set.tag) {
                self.shelves[from].retain(|s| *s != id);
            }
            set.tag = SIZES[target];
            self.shelves[target].push(id);
            self.tidy(target);
        }
    }

    /// Where gangs are, by ascending first node.
    pub fn homes(&self) -> Vec<Home<'_>> {
        let mut homes = Vec::new();
        for (shelf, ids) in self.shelves.iter().enumerate() {
            for id in ids {
                let set = &self.sets[*id];
                let first_node = set.nodes.iter().copied().min().unwrap_or(0);
                homes.push(Home { first_node, nodes: &set.nodes, shelf: SIZES[shelf], gangs: &set.gangs });
            }
        }
        homes.sort_by_key(|home| home.first_node);
        homes
    }

    /// Fullest last; the order of equals stays.
    fn tidy(&mut self, shelf: usize) {
        let sets = &self.sets;
        self.shelves[shelf].sort_by_key(|id| sets[*id].used);
    }
}

/// The largest shelf size that divides a gap; none for no gap.
fn shelf_of_gap(gap: u32) -> Option<usize> {
    if gap == 0 { None } else { SIZES.iter().rposition(|size| *size <= gap && gap.is_multiple_of(*size)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelves(n_nodes: u32) -> Shelves {
        Shelves::new((0..n_nodes).collect(), 8)
    }

    fn first_nodes(shelves: &Shelves) -> Vec<(u32, Vec<u32>)> {
        shelves.homes().iter().map(|h| (h.first_node, h.gangs.to_vec())).collect()
    }

    #[test]
    fn a_gap_of_exactly_the_right_size_is_filled_first() {
        let mut shelves = shelves(4);
        for (gang, gpus) in [(0, 4), (1, 8), (2, 2), (3, 4)] {
            assert!(shelves.place(gang, gpus), "gang {gang}");
        }
        assert_eq!(
            first_nodes(&shelves),
            [(0, vec![0, 2]), (1, vec![1]), (2, vec![3])],
            "the gap of 4 went to gang 2"
        );
        assert!(shelves.place(4, 2));
        assert_eq!(first_nodes(&shelves)[0], (0, vec![0, 2, 4]), "the gap of 2 is used before the gap of 4");
    }

    #[test]
    fn powers_of_two_placed_from_large_to_small_always_fill_the_cluster() {
        for seed in 0..200_u32 {
            let mut left = 64;
            let mut gangs: Vec<u32> = Vec::new();
            let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
            while left > 0 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let gpus = (1 << ((state >> 24) % 6)).min(1 << (left as u32).ilog2());
                gangs.push(gpus);
                left -= gpus as i32;
            }
            gangs.sort_unstable_by_key(|g| std::cmp::Reverse(*g));
            let mut shelves = shelves(8);
            for (gang, gpus) in gangs.iter().enumerate() {
                assert!(shelves.place(gang as u32, *gpus), "seed {seed}: {gangs:?} at {gang}");
            }
            for gang in 0..gangs.len() as u32 {
                shelves.release(gang);
            }
            assert!(shelves.homes().is_empty(), "seed {seed}");
            assert!(shelves.place(0, 64), "seed {seed}: all nodes are free again");
        }
    }

    #[test]
    fn a_size_without_a_shelf_or_room_is_refused() {
        let mut shelves = shelves(1);
        assert!(!shelves.place(0, 3), "no shelf");
        assert!(!shelves.place(0, 16), "no room");
        assert!(shelves.place(0, 8) && !shelves.place(1, 1));
        assert!(shelves.holds(0) && !shelves.holds(1));
    }

    #[test]
    fn blocks_are_aligned_to_their_size() {
        assert_eq!(aligned_block(GpuSet(0b1111_1110), 2), GpuSet(0b0000_1100));
        assert_eq!(aligned_block(GpuSet(0b1111_1110), 4), GpuSet(0b1111_0000));
        assert_eq!(aligned_block(GpuSet(0b0101_0110), 4), GpuSet(0b0101_0110), "no block: the lowest");
        assert_eq!(aligned_block(GpuSet::first(64), 64), GpuSet::first(64));
    }
}
