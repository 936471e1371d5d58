//! Free capacity while a decision is made: every node's free GPUs and host resources, with verbs to take and give.
//!
//! Room knows nothing of jobs. It is reset at the start of a decision and reused, so a round allocates nothing.

use std::cell::Cell;
use std::sync::Arc;

use crate::allocation::GpuSet;
use crate::cluster::{Cluster, Node};
use crate::ids::{GpuTypeId, NodeId};
use crate::resources::Host;
use crate::snapshot::{NodeStates, Snapshot};
use smallvec::SmallVec;

/// Nodes in a block; a walk skips a block that cannot hold a single GPU's worth.
const BLOCK: usize = u16::BITS as usize;

/// Free capacity of a cluster.
#[derive(Debug)]
pub struct Room {
    cluster: Arc<Cluster>,
    free: Vec<GpuSet>,
    host: Vec<Host>,
    n_free: u32,
    n_free_by_type: Vec<u32>,
    /// Nodes of each block that have a free GPU, a bit for each.
    open: Vec<u16>,
    /// Upper bounds over each block: host resources and GPUs of its roomiest nodes. Taking leaves them too high,
    /// which costs a look; giving raises them.
    bounds: Vec<Cell<(Host, u32)>>,
    share_by_type: Vec<Host>,
    /// Whom a walk has put on each node, by its own numbering: who may have to give back.
    pub(crate) occupants: Vec<SmallVec<[u32; 8]>>,
    /// Everything free, for the nodes that were up when it was made.
    empty: Empty,
}

/// A room in which nothing is taken, to start each decision from.
#[derive(Debug, Default)]
struct Empty {
    nodes: Option<Arc<NodeStates>>,
    free: Vec<GpuSet>,
    host: Vec<Host>,
    n_free: u32,
    n_free_by_type: Vec<u32>,
    open: Vec<u16>,
    bounds: Vec<Cell<(Host, u32)>>,
}

impl Room {
    /// All that is up in the snapshot, free.
    pub fn new(snapshot: &Snapshot) -> Self {
        let cluster = Arc::clone(&snapshot.cluster);
        let n_types = cluster.gpu_types().len();
        let mut share_by_type = vec![None; n_types];
        for node in cluster.nodes().iter().filter(|n| n.n_gpus > 0) {
            let share = &mut share_by_type[node.gpu_type.index()];
            *share = Some(share.map_or(node.share_per_gpu(), |s: Host| s.min(&node.share_per_gpu())));
        }
        let mut room = Room {
            free: Vec::new(),
            host: Vec::new(),
            n_free: 0,
            n_free_by_type: Vec::new(),
            open: Vec::new(),
            bounds: Vec::new(),
            share_by_type: share_by_type.into_iter().map(|s| s.unwrap_or(Host::NONE)).collect(),
            occupants: vec![SmallVec::new(); cluster.nodes().len()],
            empty: Empty::default(),
            cluster,
        };
        room.reset(snapshot);
        room
    }

    /// Frees everything that is up. The cluster must be the one the room was made for.
    pub fn reset(&mut self, snapshot: &Snapshot) {
        assert!(Arc::ptr_eq(&self.cluster, &snapshot.cluster), "a room belongs to one cluster");
        let is_same = self.empty.nodes.as_ref().is_some_and(|nodes| Arc::ptr_eq(nodes, &snapshot.nodes));
        if !is_same {
            self.empty = self.make_empty(&snapshot.nodes);
        }
        self.free.clone_from(&self.empty.free);
        self.host.clone_from(&self.empty.host);
        self.open.clone_from(&self.empty.open);
        self.bounds.clone_from(&self.empty.bounds);
        self.n_free_by_type.clone_from(&self.empty.n_free_by_type);
        self.n_free = self.empty.n_free;
        for there in &mut self.occupants {
            there.clear();
        }
    }

    fn make_empty(&mut self, nodes: &Arc<NodeStates>) -> Empty {
        let mut n_free_by_type = vec![0; self.cluster.gpu_types().len()];
        self.free.clear();
        self.host.clear();
        for (node, is_up) in self.cluster.nodes().iter().zip(&nodes.is_up) {
            let usable = nodes.usable(node);
            self.free.push(usable);
            self.host.push(if *is_up { node.host } else { Host::NONE });
            n_free_by_type[node.gpu_type.index()] += usable.len();
        }
        self.open.clear();
        self.open.extend(self.free.chunks(BLOCK).map(open_in));
        Empty {
            bounds: (0..self.open.len()).map(|block| Cell::new(self.tight_bound(block))).collect(),
            open: self.open.clone(),
            free: self.free.clone(),
            host: self.host.clone(),
            n_free: n_free_by_type.iter().sum(),
            n_free_by_type,
            // A weak hold would do; this one keeps the scheduler from reusing the address for other states.
            nodes: Some(Arc::clone(nodes)),
        }
    }

    /// Free GPUs in all.
    #[inline]
    pub fn free_gpus(&self) -> u32 {
        self.n_free
    }

    /// Free GPUs of one type.
    pub fn free_gpus_of(&self, gpu_type: GpuTypeId) -> u32 {
        self.n_free_by_type.get(gpu_type.index()).copied().unwrap_or(0)
    }

    /// Free GPUs and host resources of a node; nothing for a node that does not exist.
    #[inline]
    pub fn free_on(&self, node: NodeId) -> (GpuSet, Host) {
        match (self.free.get(node.index()), self.host.get(node.index())) {
            (Some(gpus), Some(host)) => (*gpus, *host),
            _ => (GpuSet::NONE, Host::NONE),
        }
    }

    /// The proportional share of one GPU of a type: the least any node of that type can promise.
    #[inline]
    pub fn fair_share(&self, gpu_type: GpuTypeId) -> Host {
        self.share_by_type[gpu_type.index()]
    }

    /// The cluster it is the room of.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Takes GPUs that must be free; host resources are taken apart from them.
    #[inline]
    pub fn take_gpus(&mut self, node: NodeId, gpus: GpuSet) {
        let free = &mut self.free[node.index()];
        debug_assert!(gpus.is_within(*free), "node {node}: GPUs {gpus:?} are not all free in {free:?}");
        *free = free.without(gpus);
        if free.is_empty() {
            self.open[node.index() / BLOCK] &= !bit_of(node);
        }
        self.n_free -= gpus.len();
        self.n_free_by_type[self.cluster.gpu_type_of(node).index()] -= gpus.len();
    }

    /// Gives GPUs back.
    pub fn give_gpus(&mut self, node: NodeId, gpus: GpuSet) {
        let free = &mut self.free[node.index()];
        *free = free.or(gpus);
        if !free.is_empty() {
            self.open[node.index() / BLOCK] |= bit_of(node);
        }
        self.n_free += gpus.len();
        self.n_free_by_type[self.cluster.gpu_type_of(node).index()] += gpus.len();
        self.raise_bound(node);
    }

    /// Takes host resources that must be free.
    #[inline]
    pub fn take_host(&mut self, node: NodeId, host: &Host) {
        let room = &mut self.host[node.index()];
        debug_assert!(host.fits_in(room), "node {node}: {host} do not fit into {room}");
        *room = room.saturating_sub(host);
    }

    /// Gives host resources back.
    #[inline]
    pub fn give_host(&mut self, node: NodeId, host: &Host) {
        let room = &mut self.host[node.index()];
        *room = room.checked_add(host).unwrap_or(*room);
        self.raise_bound(node);
    }

    /// Nodes, in id order, with a free GPU and host room for one GPU's worth of `per_gpu`.
    pub fn candidates<'a>(
        &'a self,
        per_gpu: &'a Host,
    ) -> impl Iterator<Item = (&'a Node, GpuSet, Host)> + 'a {
        (0..self.open.len()).filter(move |b| self.may_hold(*b, per_gpu)).flat_map(move |block| {
            self.open_nodes(block).filter_map(move |n| {
                let host = self.host[n];
                per_gpu.fits_in(&host).then(|| (&self.cluster.nodes()[n], self.free[n], host))
            })
        })
    }

    /// Nodes, in id order, with at least so many free GPUs (one or more), and how many they have.
    pub(crate) fn nodes_with(&self, gpus: u32) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        let blocks = (0..self.open.len()).filter(move |b| self.bounds[*b].get().1 >= gpus);
        let nodes = blocks.flat_map(|block| self.open_nodes(block));
        nodes.map(|n| (NodeId::from(n), self.free[n].len())).filter(move |(_, count)| *count >= gpus)
    }

    /// Places of the nodes of a block that have a free GPU, ascending.
    #[inline]
    fn open_nodes(&self, block: usize) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.open[block];
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(block * BLOCK + bit)
        })
    }

    /// Whether a block can hold a GPU's worth; tightens a bound that says so wrongly.
    #[inline]
    fn may_hold(&self, block: usize, per_gpu: &Host) -> bool {
        let holds = |(host, _): (Host, u32)| per_gpu.fits_in(&host);
        let bound = &self.bounds[block];
        if self.open[block] == 0 || !holds(bound.get()) {
            return false;
        }
        bound.set(self.tight_bound(block));
        holds(bound.get())
    }

    fn tight_bound(&self, block: usize) -> (Host, u32) {
        self.open_nodes(block)
            .fold((Host::NONE, 0), |(host, gpus), n| (host.max(&self.host[n]), gpus.max(self.free[n].len())))
    }

    #[inline]
    fn raise_bound(&mut self, node: NodeId) {
        let bound = &self.bounds[node.index() / BLOCK];
        let (host, gpus) = bound.get();
        bound.set((host.max(&self.host[node.index()]), gpus.max(self.free[node.index()].len())));
    }
}

/// Which nodes of a block have a free GPU.
fn open_in(block: &[GpuSet]) -> u16 {
    block.iter().enumerate().map(|(n, free)| u16::from(!free.is_empty()) << n).sum()
}

#[inline]
fn bit_of(node: NodeId) -> u16 {
    1 << (node.index() % BLOCK)
}
