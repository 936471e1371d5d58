//! Conditions on how a gang may be split, and what is tried when they are not met; around any placement.

use smallvec::SmallVec;

use super::{Ask, Place, Spots};
use crate::room::Room;

/// The first placement, and the second where that finds nothing.
#[derive(Clone, Debug)]
pub struct OrElse<A, B>(pub A, pub B);

impl<A: Place, B: Place> Place for OrElse<A, B> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        self.0.place(room, ask).or_else(|| self.1.place(room, ask))
    }
}

/// A gang waits rather than be spread over more nodes than it needs.
#[derive(Clone, Debug)]
pub struct Compact<P>(pub P);

impl<P: Place> Place for Compact<P> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        self.0.place(room, ask).filter(|spots| is_compact(room, ask, spots))
    }
}

/// How gangs may be split: for each number of GPUs, 1 first, the splits allowed, each widest part first.
pub type SplitTable = Vec<Vec<Vec<u32>>>;

/// Gangs are split in the ways of a table; those that are too wide for the table must be compact.
#[derive(Clone, Debug)]
pub struct Splits<'a, P> {
    /// What finds the nodes.
    pub placement: P,
    /// The splits allowed.
    pub table: &'a SplitTable,
}

impl<P: Place> Place for Splits<'_, P> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let spots = self.placement.place(room, ask)?;
        let is_allowed = match self.table.get((ask.gpus as usize).wrapping_sub(1)) {
            None => is_compact(room, ask, &spots),
            Some(splits) => {
                let mut sizes: SmallVec<[u32; 8]> = spots.iter().map(|(_, gpus)| gpus.len()).collect();
                sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
                splits.iter().any(|split| split.as_slice() == sizes.as_slice())
            }
        };
        is_allowed.then_some(spots)
    }
}

/// Whether every node is needed: without the smallest, the others would be too few if they were empty.
fn is_compact(room: &Room, ask: &Ask<'_>, spots: &Spots) -> bool {
    let gpus = |(node, _): &(crate::ids::NodeId, _)| {
        room.cluster().node(*node).map_or(0, |node| u64::from(node.n_gpus))
    };
    let total: u64 = spots.iter().map(gpus).sum();
    let least = spots.iter().map(gpus).min().unwrap_or(0);
    total - least < u64::from(ask.gpus)
}
