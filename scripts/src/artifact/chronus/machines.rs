//! Nodes below switches, what is free on them, and the original's placements.

use rota_core::allocation::{GpuSet, Slice, WHOLE_GPU};
use rota_core::cluster::Cluster;
use rota_core::ids::NodeId;
use rota_core::resources::Host;
use rota_core::switches::{Part, Spare, fewest_nodes, is_allowed_split, is_consolidated, take_in_order};

use super::{ArtifactError, Placement};

/// Gangs up to this size go through the local search's greedy walk, and have a list of splits.
const SMALL_GANG: u32 = 8;

/// Nodes with their free GPUs.
#[derive(Clone, Debug)]
pub(super) struct Machines {
    switches: Vec<u32>,
    free: Vec<GpuSet>,
    is_on: Vec<bool>,
    pub(super) gpus_per_node: u32,
}

impl Machines {
    pub(super) fn of(cluster: &Cluster) -> Result<Self, ArtifactError> {
        let nodes = cluster.nodes();
        let wrong = |why: &str| ArtifactError::Cluster { why: why.to_owned() };
        let first = nodes.first().ok_or_else(|| wrong("there is none"))?;
        if nodes.iter().any(|node| node.n_gpus != first.n_gpus) {
            return Err(wrong("some have other GPUs than the first"));
        }
        Ok(Machines {
            switches: nodes.iter().map(|node| node.rack).collect(),
            free: vec![GpuSet::first(first.n_gpus); nodes.len()],
            is_on: vec![true; nodes.len()],
            gpus_per_node: first.n_gpus,
        })
    }

    pub(super) fn n_nodes(&self) -> u32 {
        self.is_on.len() as u32
    }

    /// GPUs of nodes that are on.
    pub(super) fn n_gpus(&self) -> u32 {
        self.is_on.iter().filter(|is_on| **is_on).count() as u32 * self.gpus_per_node
    }

    /// Free GPUs of nodes that are on.
    pub(super) fn n_free(&self) -> u32 {
        self.free.iter().zip(&self.is_on).filter(|(_, is_on)| **is_on).map(|(free, _)| free.len()).sum()
    }

    /// Turns all nodes on but the first so many.
    pub(super) fn turn_off_first(&mut self, n_off: usize) {
        self.is_on.iter_mut().enumerate().for_each(|(node, is_on)| *is_on = node >= n_off);
    }

    pub(super) fn release(&mut self, places: &[Slice]) {
        for place in places {
            let free = &mut self.free[place.node.index()];
            *free = free.or(place.gpus);
        }
    }

    /// Finds and takes GPUs; `Ok(None)` is the placement's refusal.
    pub(super) fn place(
        &mut self,
        placement: Placement,
        gpus: u32,
    ) -> Result<Option<Vec<Slice>>, &'static str> {
        if self.n_free() < gpus {
            return Ok(None);
        }
        let spares = self.spares();
        let parts = match placement {
            Placement::Random => Some(take_in_order(spares.iter(), gpus)),
            Placement::Consolidate => consolidated(&spares, gpus)?,
            Placement::ConsolidateRandom if gpus > SMALL_GANG => consolidated(&spares, gpus)?,
            Placement::ConsolidateRandom => {
                let parts = fewest_nodes(&spares, gpus).ok_or(SPILL)?;
                is_allowed_split(&parts, gpus).then_some(parts)
            }
            Placement::LocalSearch if gpus > SMALL_GANG => {
                let parts = fewest_nodes(&spares, gpus).filter(|parts| is_consolidated(parts, gpus));
                Some(parts.unwrap_or_else(|| take_in_order(spares.iter(), gpus)))
            }
            Placement::LocalSearch => Some(greedy(&spares, gpus)),
        };
        Ok(parts.map(|parts| self.take(&parts)))
    }

    fn spares(&self) -> Vec<Spare> {
        let spare = |node: usize| {
            let (free, total) =
                if self.is_on[node] { (self.free[node].len(), self.gpus_per_node) } else { (0, 0) };
            Spare { node: NodeId::from(node), switch: self.switches[node], free, total }
        };
        (0..self.free.len()).map(spare).filter(|spare| spare.free > 0).collect()
    }

    /// The lowest free GPUs of each node.
    fn take(&mut self, parts: &[Part]) -> Vec<Slice> {
        let mut places = Vec::with_capacity(parts.len());
        for part in parts {
            let free = &mut self.free[part.spare.node.index()];
            let gpus = free.lowest(part.gpus);
            *free = free.without(gpus);
            places.push(Slice { node: part.spare.node, gpus, share: WHOLE_GPU, host: Host::NONE });
        }
        places
    }
}

const SPILL: &str =
    "no switch has room for the gang, and the spill over switches refers to what is not there";

fn consolidated(spares: &[Spare], gpus: u32) -> Result<Option<Vec<Part>>, &'static str> {
    let parts = fewest_nodes(spares, gpus).ok_or(SPILL)?;
    Ok(is_consolidated(&parts, gpus).then_some(parts))
}

/// The smallest node that holds the gang; else the emptiest node and the smallest that holds the rest; else the
/// emptiest nodes one after another.
fn greedy(spares: &[Spare], gpus: u32) -> Vec<Part> {
    let smallest = |gpus: u32, except: Option<NodeId>| {
        let holding = spares.iter().filter(|s| s.free >= gpus && Some(s.node) != except);
        holding.min_by_key(|s| s.free)
    };
    if let Some(spare) = smallest(gpus, None) {
        return vec![Part { spare: *spare, gpus }];
    }
    let mut emptiest: Vec<&Spare> = spares.iter().collect();
    emptiest.sort_by_key(|spare| std::cmp::Reverse(spare.free));
    if let Some(first) = emptiest.first()
        && let Some(second) = smallest(gpus - first.free, Some(first.node))
    {
        let rest = Part { spare: *second, gpus: gpus - first.free };
        return vec![Part { spare: **first, gpus: first.free }, rest];
    }
    take_in_order(emptiest.into_iter(), gpus)
}
