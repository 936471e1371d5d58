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
    /// What is free now.
    now: Free,
    /// Everything free, for the nodes that were up when it was made: each decision starts from it.
    all: Free,
    /// The nodes that `all` was made for. A weak hold would do; this one keeps the scheduler from reusing the address for
    /// other states.
    nodes: Option<Arc<NodeStates>>,
    share_by_type: Vec<Host>,
    /// Whom a walk has put on each node, by its own numbering: who may have to give back.
    pub(crate) occupants: Vec<SmallVec<[u32; 8]>>,
}

/// What is free, node by node and in sums.
#[derive(Debug, Default)]
struct Free {
    gpus: Vec<GpuSet>,
    host: Vec<Host>,
    n_gpus: u32,
    n_gpus_by_type: Vec<u32>,
    /// Nodes of each block that have a free GPU, a bit for each.
    open: Vec<u16>,
    /// Upper bounds over each block: host resources and GPUs of its roomiest nodes. Taking leaves them too high,
    /// which costs a look; giving raises them.
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
            now: Free::default(),
            all: Free::default(),
            nodes: None,
            share_by_type: share_by_type.into_iter().map(|s| s.unwrap_or(Host::NONE)).collect(),
            occupants: vec![SmallVec::new(); cluster.nodes().len()],
            cluster,
        };
        room.reset(snapshot);
        room
    }

    /// Frees everything that is up. The cluster must be the one the room was made for.
    pub fn reset(&mut self, snapshot: &Snapshot) {
        assert!(Arc::ptr_eq(&self.cluster, &snapshot.cluster), "a room belongs to one cluster");
        let is_same = self.nodes.as_ref().is_some_and(|nodes| Arc::ptr_eq(nodes, &snapshot.nodes));
        if !is_same {
            self.all = Free::of(&self.cluster, &snapshot.nodes);
            self.nodes = Some(Arc::clone(&snapshot.nodes));
        }
        self.now.copy(&self.all);
        for there in &mut self.occupants {
            there.clear();
        }
    }

    /// Free GPUs in all.
    #[inline]
    pub fn free_gpus(&self) -> u32 {
        self.now.n_gpus
    }

    /// Free GPUs of one type.
    pub fn free_gpus_of(&self, gpu_type: GpuTypeId) -> u32 {
        self.now.n_gpus_by_type.get(gpu_type.index()).copied().unwrap_or(0)
    }

    /// Free GPUs and host resources of a node; nothing for a node that does not exist.
    #[inline]
    pub fn free_on(&self, node: NodeId) -> (GpuSet, Host) {
        match (self.now.gpus.get(node.index()), self.now.host.get(node.index())) {
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
        let free = &mut self.now.gpus[node.index()];
        debug_assert!(gpus.is_within(*free), "node {node}: GPUs {gpus:?} are not all free in {free:?}");
        *free = free.without(gpus);
        if free.is_empty() {
            self.now.open[node.index() / BLOCK] &= !bit_of(node);
        }
        self.now.n_gpus -= gpus.len();
        self.now.n_gpus_by_type[self.cluster.gpu_type_of(node).index()] -= gpus.len();
    }

    /// Gives GPUs back.
    pub fn give_gpus(&mut self, node: NodeId, gpus: GpuSet) {
        let free = &mut self.now.gpus[node.index()];
        *free = free.or(gpus);
        if !free.is_empty() {
            self.now.open[node.index() / BLOCK] |= bit_of(node);
        }
        self.now.n_gpus += gpus.len();
        self.now.n_gpus_by_type[self.cluster.gpu_type_of(node).index()] += gpus.len();
        self.now.raise_bound(node);
    }

    /// Takes host resources that must be free.
    #[inline]
    pub fn take_host(&mut self, node: NodeId, host: &Host) {
        let room = &mut self.now.host[node.index()];
        debug_assert!(host.fits_in(room), "node {node}: {host} do not fit into {room}");
        *room = room.saturating_sub(host);
    }

    /// Gives host resources back.
    #[inline]
    pub fn give_host(&mut self, node: NodeId, host: &Host) {
        let room = &mut self.now.host[node.index()];
        *room = room.checked_add(host).unwrap_or(*room);
        self.now.raise_bound(node);
    }

    /// Nodes, in id order, with a free GPU and host room for one GPU's worth of `per_gpu`.
    pub fn candidates<'a>(
        &'a self,
        per_gpu: &'a Host,
    ) -> impl Iterator<Item = (&'a Node, GpuSet, Host)> + 'a {
        (0..self.now.open.len()).filter(move |b| self.now.may_hold(*b, per_gpu)).flat_map(move |block| {
            self.now.open_nodes(block).filter_map(move |n| {
                let host = self.now.host[n];
                per_gpu.fits_in(&host).then(|| (&self.cluster.nodes()[n], self.now.gpus[n], host))
            })
        })
    }

    /// Nodes, in id order, with at least so many free GPUs (one or more), and how many they have.
    pub(crate) fn nodes_with(&self, gpus: u32) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        let blocks = (0..self.now.open.len()).filter(move |b| self.now.bounds[*b].get().1 >= gpus);
        let nodes = blocks.flat_map(|block| self.now.open_nodes(block));
        nodes.map(|n| (NodeId::from(n), self.now.gpus[n].len())).filter(move |(_, count)| *count >= gpus)
    }
}

impl Free {
    /// All of the nodes that are up.
    fn of(cluster: &Cluster, nodes: &NodeStates) -> Self {
        let mut free = Free { n_gpus_by_type: vec![0; cluster.gpu_types().len()], ..Free::default() };
        for (node, is_up) in cluster.nodes().iter().zip(&nodes.is_up) {
            let usable = nodes.usable(node);
            free.gpus.push(usable);
            free.host.push(if *is_up { node.host } else { Host::NONE });
            free.n_gpus_by_type[node.gpu_type.index()] += usable.len();
        }
        free.n_gpus = free.n_gpus_by_type.iter().sum();
        free.open = free.gpus.chunks(BLOCK).map(open_in).collect();
        free.bounds = (0..free.open.len()).map(|block| Cell::new(free.tight_bound(block))).collect();
        free
    }

    /// Becomes like another, in the memory that it has.
    fn copy(&mut self, other: &Free) {
        self.gpus.clone_from(&other.gpus);
        self.host.clone_from(&other.host);
        self.n_gpus = other.n_gpus;
        self.n_gpus_by_type.clone_from(&other.n_gpus_by_type);
        self.open.clone_from(&other.open);
        self.bounds.clone_from(&other.bounds);
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
            .fold((Host::NONE, 0), |(host, gpus), n| (host.max(&self.host[n]), gpus.max(self.gpus[n].len())))
    }

    #[inline]
    fn raise_bound(&mut self, node: NodeId) {
        let bound = &self.bounds[node.index() / BLOCK];
        let (host, gpus) = bound.get();
        bound.set((host.max(&self.host[node.index()]), gpus.max(self.gpus[node.index()].len())));
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
