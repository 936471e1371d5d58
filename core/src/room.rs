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
const BLOCK: usize = 16;

/// Free capacity of a cluster.
#[derive(Debug)]
pub struct Room {
    cluster: Arc<Cluster>,
    free: Vec<GpuSet>,
    host: Vec<Host>,
    n_free: u32,
    n_free_by_type: Vec<u32>,
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
            let n_gpus = if *is_up { node.n_gpus } else { 0 };
            self.free.push(GpuSet::first(n_gpus));
            self.host.push(if *is_up { node.host } else { Host::NONE });
            n_free_by_type[node.gpu_type.index()] += n_gpus;
        }
        let blocks = (0..self.free.len()).step_by(BLOCK);
        Empty {
            bounds: blocks.map(|first| Cell::new(self.tight_bound(first))).collect(),
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
        self.n_free -= gpus.len();
        self.n_free_by_type[self.cluster.gpu_type_of(node).index()] -= gpus.len();
    }

    /// Gives GPUs back.
    pub fn give_gpus(&mut self, node: NodeId, gpus: GpuSet) {
        let free = &mut self.free[node.index()];
        *free = free.or(gpus);
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
        (0..self.bounds.len()).filter(move |b| self.may_hold(*b, per_gpu)).flat_map(move |block| {
            let first = block * BLOCK;
            let last = (first + BLOCK).min(self.free.len());
            (first..last).filter_map(move |n| {
                let (gpus, host) = (self.free[n], self.host[n]);
                (!gpus.is_empty() && per_gpu.fits_in(&host)).then(|| (&self.cluster.nodes()[n], gpus, host))
            })
        })
    }

    /// Nodes, in id order, with at least so many free GPUs (one or more), and how many they have.
    pub(crate) fn nodes_with(&self, gpus: u32) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        let blocks = self.bounds.iter().zip(self.free.chunks(BLOCK)).enumerate();
        blocks.filter(move |(_, (bound, _))| bound.get().1 >= gpus).flat_map(move |(block, (_, free))| {
            let nodes = free.iter().enumerate().map(move |(n, set)| (block * BLOCK + n, set.len()));
            nodes.filter(move |(_, count)| *count >= gpus).map(|(node, count)| (NodeId::from(node), count))
        })
    }

    /// Whether a block can hold a GPU's worth; tightens a bound that says so wrongly.
    fn may_hold(&self, block: usize, per_gpu: &Host) -> bool {
        let holds = |(host, gpus): (Host, u32)| gpus > 0 && per_gpu.fits_in(&host);
        let bound = &self.bounds[block];
        if !holds(bound.get()) {
            return false;
        }
        bound.set(self.tight_bound(block * BLOCK));
        holds(bound.get())
    }

    fn tight_bound(&self, first: usize) -> (Host, u32) {
        let last = (first + BLOCK).min(self.free.len());
        let mut bound = (Host::NONE, 0);
        for n in first..last {
            if !self.free[n].is_empty() {
                bound = (bound.0.max(&self.host[n]), bound.1.max(self.free[n].len()));
            }
        }
        bound
    }

    #[inline]
    fn raise_bound(&mut self, node: NodeId) {
        let bound = &self.bounds[node.index() / BLOCK];
        let (host, gpus) = bound.get();
        bound.set((host.max(&self.host[node.index()]), gpus.max(self.free[node.index()].len())));
    }
}
