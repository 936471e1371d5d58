//! The cluster as it was bought: nodes in racks, their GPUs and host resources. Groups may differ in everything.

use crate::ids::{GpuTypeId, NodeId};
use crate::resources::Host;

/// The most GPUs one node may have: a set of them is one machine word.
pub const MAX_GPUS_PER_NODE: u32 = 64;

/// One server.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Node {
    /// Its index in [`Cluster::nodes`].
    pub id: NodeId,
    /// Its name in files and messages.
    pub name: String,
    /// The rack (or switch) it is connected to.
    pub rack: u32,
    /// Its kind of GPU.
    pub gpu_type: GpuTypeId,
    /// How many GPUs it has, numbered from 0.
    pub n_gpus: u32,
    /// Memory of one GPU in bytes; 0 when it is not known.
    pub gpu_mem_bytes: u64,
    /// CPUs, memory and storage rate.
    pub host: Host,
    /// Local disk for cached data sets, in bytes; 0 keeps none.
    pub cache_bytes: u64,
    /// Rate at which this node fetches from the remote store, in bytes per second.
    pub fetch_bps: u64,
}

impl Node {
    /// The proportional share of one GPU: what each gets when resources are divided evenly.
    pub fn share_per_gpu(&self) -> Host {
        self.host.per(self.n_gpus)
    }
}

/// All nodes. What is up right now is not here: see `Snapshot`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cluster {
    /// Its name in files and messages.
    pub name: String,
    nodes: Vec<Node>,
    gpu_types: Vec<String>,
    n_gpus: u32,
    /// The largest node of all, then of each type.
    largest: Vec<Option<NodeId>>,
    n_gpus_by_type: Vec<u32>,
    /// What decisions look up for every running job; kept apart from the large node structs so that it stays in the CPU cache.
    types: Vec<GpuTypeId>,
    hosts: Vec<Host>,
}

/// A group of identical nodes, as cluster files describe them.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeGroup {
    /// How many nodes.
    pub count: u32,
    /// How many racks they are spread over evenly.
    pub racks: u32,
    /// Their kind of GPU.
    pub gpu_type: String,
    /// GPUs per node.
    pub n_gpus: u32,
    /// Memory of one GPU in bytes; 0 when it is not known.
    pub gpu_mem_bytes: u64,
    /// CPUs, memory and storage rate of one node.
    pub host: Host,
    /// Local disk for cached data sets, in bytes.
    pub cache_bytes: u64,
    /// Fetch rate from the remote store, bytes per second.
    pub fetch_bps: u64,
}

/// Why a cluster is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// No node, or no GPU in any.
    #[error("the cluster has no GPU")]
    Empty,
    /// More GPUs in a node than a set can hold.
    #[error("a node with {n_gpus} GPUs: at most {MAX_GPUS_PER_NODE} are supported")]
    TooManyGpus {
        /// GPUs asked for.
        n_gpus: u32,
    },
    /// More than the ids can number.
    #[error("{n_nodes} nodes: more than this program can number")]
    TooManyNodes {
        /// Nodes asked for.
        n_nodes: u64,
    },
}

impl Cluster {
    /// Lays out the groups one after another; nodes and racks are numbered across all groups.
    pub fn new(name: impl Into<String>, groups: &[NodeGroup]) -> Result<Self, ClusterError> {
        let n_nodes: u64 = groups.iter().map(|g| u64::from(g.count)).sum();
        let n_gpus: u64 = groups.iter().map(|g| u64::from(g.count) * u64::from(g.n_gpus)).sum();
        if n_nodes > 10_000_000 {
            return Err(ClusterError::TooManyNodes { n_nodes });
        }
        if n_gpus == 0 {
            return Err(ClusterError::Empty);
        }
        if let Some(group) = groups.iter().find(|g| g.n_gpus > MAX_GPUS_PER_NODE) {
            return Err(ClusterError::TooManyGpus { n_gpus: group.n_gpus });
        }
        let mut cluster = Cluster { n_gpus: n_gpus as u32, ..Cluster::empty(name) };
        let mut first_rack = 0;
        for group in groups {
            cluster.add_group(group, first_rack);
            first_rack += group.racks.max(1);
        }
        cluster.note_extremes();
        Ok(cluster)
    }

    /// A cluster without nodes, for `join`.
    pub fn empty(name: impl Into<String>) -> Self {
        Cluster {
            name: name.into(),
            nodes: Vec::new(),
            gpu_types: Vec::new(),
            n_gpus: 0,
            largest: Vec::new(),
            n_gpus_by_type: Vec::new(),
            types: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// The same cluster with one more node at its end: the first of the group, under a name and in a rack.
    pub fn join(&self, name: &str, rack: u32, group: &NodeGroup) -> Result<Self, ClusterError> {
        self.join_all([(name, rack, group)])
    }

    /// The same cluster with more nodes at its end, each as in [`Cluster::join`].
    pub fn join_all<'a>(
        &self,
        nodes: impl IntoIterator<Item = (&'a str, u32, &'a NodeGroup)>,
    ) -> Result<Self, ClusterError> {
        let mut cluster = self.clone();
        for (name, rack, group) in nodes {
            if group.n_gpus > MAX_GPUS_PER_NODE {
                return Err(ClusterError::TooManyGpus { n_gpus: group.n_gpus });
            }
            cluster.add_group(&NodeGroup { count: 1, racks: 1, ..group.clone() }, rack);
            if let Some(node) = cluster.nodes.last_mut() {
                node.name = name.to_owned();
            }
            cluster.n_gpus += group.n_gpus;
        }
        cluster.note_extremes();
        Ok(cluster)
    }

    fn note_extremes(&mut self) {
        let size = |n: &&Node| (n.n_gpus, n.host.cpu_micro, std::cmp::Reverse(n.id));
        let types = (0..self.gpu_types.len()).map(GpuTypeId::from);
        let of_type = |t: GpuTypeId| self.nodes.iter().filter(move |n| n.gpu_type == t);
        let all = std::iter::once(self.nodes.iter().max_by_key(size));
        let largest = all.chain(types.clone().map(|t| of_type(t).max_by_key(size)));
        let largest = largest.map(|n| n.map(|n| n.id)).collect();
        let n_gpus_by_type = types.map(|t| of_type(t).map(|n| n.n_gpus).sum()).collect();
        (self.largest, self.n_gpus_by_type) = (largest, n_gpus_by_type);
        self.types = self.nodes.iter().map(|n| n.gpu_type).collect();
        self.hosts = self.nodes.iter().map(|n| n.host).collect();
    }

    fn add_group(&mut self, group: &NodeGroup, first_rack: u32) {
        let gpu_type = self.intern_gpu_type(&group.gpu_type);
        let per_rack = group.count.div_ceil(group.racks.max(1)).max(1);
        for i in 0..group.count {
            let id = NodeId::from(self.nodes.len());
            self.nodes.push(Node {
                id,
                name: format!("node{id}"),
                rack: first_rack + i / per_rack,
                gpu_type,
                n_gpus: group.n_gpus,
                gpu_mem_bytes: group.gpu_mem_bytes,
                host: group.host,
                cache_bytes: group.cache_bytes,
                fetch_bps: group.fetch_bps,
            });
        }
    }

    fn intern_gpu_type(&mut self, name: &str) -> GpuTypeId {
        if let Some(known) = self.gpu_type_id(name) {
            return known;
        }
        self.gpu_types.push(name.to_owned());
        GpuTypeId::from(self.gpu_types.len() - 1)
    }

    /// All nodes in id order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node, if it exists.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// The GPU type of a node that exists.
    #[inline]
    pub fn gpu_type_of(&self, id: NodeId) -> GpuTypeId {
        self.types[id.index()]
    }

    /// The host resources of a node that exists.
    #[inline]
    pub fn host_of(&self, id: NodeId) -> &Host {
        &self.hosts[id.index()]
    }

    /// GPUs in all.
    pub fn n_gpus(&self) -> u32 {
        self.n_gpus
    }

    /// Host resources of all nodes together.
    pub fn host_total(&self) -> Host {
        self.nodes.iter().fold(Host::NONE, |sum, n| Host {
            cpu_micro: sum.cpu_micro + n.host.cpu_micro,
            mem_bytes: sum.mem_bytes + n.host.mem_bytes,
            storage_bps: sum.storage_bps + n.host.storage_bps,
        })
    }

    /// Names of the GPU types, by id.
    pub fn gpu_types(&self) -> &[String] {
        &self.gpu_types
    }

    /// The id of a GPU type by its name.
    pub fn gpu_type_id(&self, name: &str) -> Option<GpuTypeId> {
        self.gpu_types.iter().position(|t| t == name).map(GpuTypeId::from)
    }

    /// The largest node (most GPUs, then most CPUs, lowest id) that a job bound to `gpu_type` may use.
    pub fn largest_node(&self, gpu_type: Option<GpuTypeId>) -> Option<&Node> {
        let index = gpu_type.map_or(0, |t| t.index() + 1);
        self.largest.get(index).copied().flatten().and_then(|id| self.node(id))
    }

    /// Whether a gang that may use `gpu_type` fits the empty cluster, on nodes of one type, with these host resources for each GPU.
    pub fn can_hold(&self, gpu_type: Option<GpuTypeId>, gpus: u32, per_gpu: &Host) -> bool {
        let types = (0..self.gpu_types.len()).map(GpuTypeId::from);
        types.filter(|t| gpu_type.is_none_or(|only| only == *t)).any(|t| {
            let mut left = gpus;
            self.nodes.iter().filter(|node| node.gpu_type == t).any(|node| {
                left = left.saturating_sub(node.host.times_fits(per_gpu, node.n_gpus));
                left == 0
            })
        })
    }

    /// The least proportional share of one GPU on any node that a job bound to `gpu_type` may use.
    pub fn least_share(&self, gpu_type: Option<GpuTypeId>) -> Host {
        let usable = |node: &&Node| node.n_gpus > 0 && gpu_type.is_none_or(|only| only == node.gpu_type);
        let shares = self.nodes.iter().filter(usable).map(Node::share_per_gpu);
        shares.reduce(|a, b| a.min(&b)).unwrap_or(Host::NONE)
    }

    /// GPUs that a job bound to `gpu_type` may use.
    pub fn n_gpus_of(&self, gpu_type: Option<GpuTypeId>) -> u32 {
        gpu_type.map_or(self.n_gpus, |t| self.n_gpus_by_type.get(t.index()).copied().unwrap_or(0))
    }
}
