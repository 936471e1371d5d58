//! Taking back excess: Synergy-TUNE's last answer to "does not fit" (OSDI'22, §4.2).
//!
//! A job entitled to its proportional share cannot be refused it. Neighbours that hold more than theirs give the
//! excess back, most richly served first, until the need is met.

use smallvec::SmallVec;

use crate::fill::{Grade, Granted};
use crate::ids::{GpuTypeId, NodeId};
use crate::resources::Host;
use crate::room::Room;

/// How excess is taken back. The default is the only rule of the shipped policies; [`artifact`](crate::artifact) makes others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// A neighbour is cut to the proportional share of everything (else only the components above it are cut).
    pub(crate) whole_share: bool,
    /// Neighbours that have nothing of what is needed are left alone.
    pub(crate) only_useful: bool,
}

impl Default for Reclaim {
    fn default() -> Self {
        Reclaim { whole_share: false, only_useful: true }
    }
}

/// Nodes of one GPU type on which a job of `gpus` GPUs could run, with counts: the first that holds it whole, else the
/// fullest ones that together do.
pub(crate) fn targets(room: &Room, gpus: u32, gpu_type: GpuTypeId) -> SmallVec<[(NodeId, u32); 2]> {
    let is_of_type = |(node, _): &(NodeId, u32)| room.cluster().gpu_type_of(*node) == gpu_type;
    if gpus > 1
        && let Some((node, _)) = room.nodes_with(gpus).find(is_of_type)
    {
        return SmallVec::from_slice(&[(node, gpus)]);
    }
    let mut left = gpus;
    let mut targets = SmallVec::new();
    for (free, node) in fullest(room.nodes_with(1).filter(is_of_type), gpus as usize) {
        let count = free.min(left);
        targets.push((node, count));
        left -= count;
        if left == 0 {
            break;
        }
    }
    targets
}

/// Of nodes with free GPUs those with the fewest, fullest first; no more of them than `most`.
fn fullest(nodes: impl Iterator<Item = (NodeId, u32)>, most: usize) -> SmallVec<[(u32, NodeId); 8]> {
    let mut fullest: SmallVec<[(u32, NodeId); 8]> = SmallVec::new();
    for (node, free) in nodes {
        let place = fullest.partition_point(|other| *other <= (free, node));
        if place < most {
            fullest.truncate(most - 1);
            fullest.insert(place, (free, node));
        }
    }
    fullest
}

/// The jobs on a node that give back to meet `need`, as positions in `granted`. Sorts the node's list in place: by `giver_place`, by
/// row, where that is not empty, else the richest first.
pub(crate) fn pick(
    occupants: &mut [u32],
    granted: &[Granted],
    giver_place: &[u32],
    node: NodeId,
    mut need: Host,
    fair: &Host,
    rule: Reclaim,
) -> SmallVec<[u32; 4]> {
    let place_of = |index: u32| giver_place.get(granted[index as usize].row as usize).copied();
    occupants.sort_by_cached_key(|index| {
        let slices = &granted[*index as usize].slices;
        let (gpus, host) = slices.iter().fold((0, Host::NONE), |(gpus, host), s| {
            (gpus + s.gpus.len(), host.checked_add(&s.host).unwrap_or(host))
        });
        let rich = host.per(gpus);
        let riches = (std::cmp::Reverse(rich.cpu_micro), std::cmp::Reverse(rich.mem_bytes));
        (place_of(*index), slices.len(), riches)
    });
    let mut picked = SmallVec::new();
    for &index in occupants.iter().filter(|index| place_of(**index) != Some(u32::MAX)) {
        let slices = &granted[index as usize].slices;
        let Some(slice) = slices.iter().find(|s| s.node == node) else { continue };
        let excess = slice.host.saturating_sub(&fair.times(slice.gpus.len()));
        let rest = need.saturating_sub(&excess);
        if rule.only_useful && rest == need {
            continue;
        }
        picked.push(index);
        need = rest;
        if need.is_none() {
            break;
        }
    }
    picked
}

/// Cuts a job to its proportional share on all its nodes; `best` is its best demand for each GPU.
pub(crate) fn cut(room: &mut Room, granted: &mut Granted, best: &Host, fair: &Host, rule: Reclaim) {
    for slice in &mut granted.slices {
        let count = slice.gpus.len();
        let kept = match rule.whole_share {
            true if best.fits_in(fair) => best.times(count),
            true => fair.times(count),
            false => slice.host.min(&fair.times(count)),
        };
        room.give_host(slice.node, &slice.host);
        slice.host = kept.min(&room.free_on(slice.node).1);
        room.take_host(slice.node, &slice.host);
    }
    granted.grade = Grade::Reclaimed;
}
