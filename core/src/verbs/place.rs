//! Placement strategies: find GPUs for one job in a room. The caller takes them.

pub mod formula;
mod gangs;
mod local_data;
mod random;
mod ranked;
pub(crate) mod returns;
mod search;
mod switch;

pub use gangs::{Compact, OrElse, SplitTable, Splits};
pub use local_data::LocalData;
pub use random::RandomNodes;
pub use ranked::{NodeRank, OddKey, Ranked, Terms};
pub use search::{LocalSearch, Merit, Searching};
pub use switch::{SwitchConsolidate, SwitchSplits};

use smallvec::SmallVec;

use crate::allocation::GpuSet;
use crate::cluster::Node;
use crate::ids::{GpuTypeId, NodeId};
use crate::resources::Host;
use crate::room::Room;
use crate::snapshot::Snapshot;

/// GPUs found, one entry for each node, ascending by node.
pub type Spots = SmallVec<[(NodeId, GpuSet); 2]>;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The decision that is being made.
    pub snapshot: &'a Snapshot,
    /// The job's row.
    pub row: usize,
    /// GPUs, all or none.
    pub gpus: u32,
    /// Host resources wanted with each GPU.
    pub per_gpu: Host,
    /// The GPU type to stay on; `None` when all are alike.
    pub gpu_type: Option<GpuTypeId>,
    /// Only nodes with lower numbers: the others are left off. `None` allows all.
    pub first_nodes: Option<u32>,
}

impl Ask<'_> {
    /// Whether a node may be used at all, free or not.
    #[inline]
    pub fn allows(&self, node: &Node) -> bool {
        self.gpu_type.is_none_or(|t| t == node.gpu_type)
            && self.first_nodes.is_none_or(|n_nodes| node.id.0 < n_nodes)
            && (node.gpu_mem_bytes == 0
                || self.snapshot.jobs.spec(self.row).profile.gpu_mem_bytes <= node.gpu_mem_bytes)
    }

    /// How many of `want` GPUs fit on a node that has these free.
    #[inline]
    fn fitting(&self, free: GpuSet, host: &Host, want: u32) -> u32 {
        let most = free.len().min(want);
        if self.per_gpu.times(most).fits_in(host) { most } else { host.times_fits(&self.per_gpu, most) }
    }
}

/// Finds GPUs for one job.
pub trait Place {
    /// All the GPUs asked for, or nothing.
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots>;
}

/// The first GPUs in id order whose nodes have host resources for them; a job may be spread over any nodes (Synergy, without
/// its placement flag).
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstFit;

impl Place for FirstFit {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let mut spots = Spots::new();
        let mut left = ask.gpus;
        for (node, free, host) in room.candidates(&ask.per_gpu) {
            if !ask.allows(node) {
                continue;
            }
            let count = ask.fitting(free, &host, left);
            if count > 0 {
                spots.push((node.id, free.lowest(count)));
                left -= count;
            }
            if left == 0 {
                return Some(spots);
            }
        }
        None
    }
}

/// One node if any can hold the whole gang, the fullest of them; else the fullest nodes together (Synergy's
/// placement: it keeps large gaps for large gangs).
#[derive(Clone, Debug, Default)]
pub struct Consolidate {
    scratch: Vec<(u32, NodeId, GpuSet, Host)>,
}

impl Place for Consolidate {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        if ask.gpus > 1
            && let Some(spots) = fullest_node(room, ask, |_| true)
        {
            return Some(spots);
        }
        self.fullest_nodes(room, ask)
    }
}

/// The whole gang on the fullest node that holds it and passes `accepts`.
fn fullest_node(room: &Room, ask: &Ask<'_>, accepts: impl Fn(NodeId) -> bool) -> Option<Spots> {
    let whole = ask.per_gpu.times(ask.gpus);
    let (_, node, free) = room
        .candidates(&ask.per_gpu)
        .filter(|(node, free, host)| {
            free.len() >= ask.gpus && whole.fits_in(host) && ask.allows(node) && accepts(node.id)
        })
        .map(|(node, free, _)| (free.len(), node.id, free))
        .min_by_key(|(count, node, _)| (*count, *node))?;
    Some(SmallVec::from_slice(&[(node, free.lowest(ask.gpus))]))
}

impl Consolidate {
    fn fullest_nodes(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let nodes = room
            .candidates(&ask.per_gpu)
            .filter(|(node, _, _)| ask.allows(node))
            .map(|(node, free, host)| (free.len(), node.id, free, host));
        if ask.gpus == 1 {
            let (_, node, free, _) = nodes.min_by_key(|(count, node, _, _)| (*count, *node))?;
            return Some(SmallVec::from_slice(&[(node, free.highest(1))]));
        }
        self.scratch.clear();
        self.scratch.extend(nodes);
        self.scratch.sort_unstable_by_key(|(count, node, _, _)| (*count, *node));
        gather(ask, self.scratch.iter().map(|(_, node, free, host)| (*node, *free, *host)))
    }
}

/// Takes from nodes in the order given until the gang is whole, the highest GPUs of each.
fn gather(ask: &Ask<'_>, nodes: impl Iterator<Item = (NodeId, GpuSet, Host)>) -> Option<Spots> {
    let mut spots = Spots::new();
    let mut left = ask.gpus;
    for (node, free, host) in nodes {
        let count = ask.fitting(free, &host, left);
        if count > 0 {
            spots.push((node, free.highest(count)));
            left -= count;
        }
        if left == 0 {
            spots.sort_unstable_by_key(|(node, _)| *node);
            return Some(spots);
        }
    }
    None
}

/// The nodes with the highest score first; a node without a score is not used. The free path for scripts.
pub struct ByScore<F>(pub F);

impl<F: FnMut(&Room, &Ask<'_>, NodeId) -> Option<f64>> Place for ByScore<F> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let mut scored = Vec::new();
        for (node, free, host) in room.candidates(&ask.per_gpu).filter(|(node, _, _)| ask.allows(node)) {
            if let Some(score) = (self.0)(room, ask, node.id).filter(|s| !s.is_nan()) {
                scored.push((score, node.id, free, host));
            }
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        gather(ask, scored.into_iter().map(|(_, node, free, host)| (node, free, host)))
    }
}

impl<P: Place + ?Sized> Place for Box<P> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        (**self).place(room, ask)
    }
}
