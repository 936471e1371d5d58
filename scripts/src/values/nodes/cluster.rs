//! The cluster, its nodes, and the room that is left on them.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString};
use rota_core::allocation::GpuSet;
use rota_core::cluster::Node;
use rota_core::ids::NodeId;
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::table::JobPhase;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::JobValue;

/// The cluster as bought.
#[derive(Clone, Debug)]
pub(crate) struct ClusterValue(pub(crate) Arc<Session>);

/// A node and what is free on it.
#[derive(Clone, Debug)]
pub(crate) struct NodeValue {
    session: Arc<Session>,
    id: NodeId,
    free: (GpuSet, Host),
}

/// What is free on all nodes while jobs are placed.
#[derive(Clone, Debug)]
pub(crate) struct RoomValue {
    pub(super) session: Arc<Session>,
    pub(super) free_gpus: u32,
    pub(super) free: Arc<Vec<(GpuSet, Host)>>,
}

impl NodeValue {
    pub(crate) fn new(session: &Arc<Session>, id: NodeId, free: (GpuSet, Host)) -> NodeValue {
        NodeValue { session: Arc::clone(session), id, free }
    }

    fn node(&self) -> &Node {
        &self.session.snapshot.cluster.nodes()[self.id.index()]
    }

    fn is_up(&self) -> bool {
        self.session.snapshot.nodes.is_up.get(self.id.index()).copied().unwrap_or(false)
    }

    fn has_data(&self, job: &JobValue) -> bool {
        let snapshot = &self.session.snapshot;
        snapshot.jobs.spec(job.row()).dataset.is_some_and(|dataset| snapshot.nodes.has_data(self.id, dataset))
    }
}

impl RoomValue {
    /// A copy: the room itself is lent to the walk that asks.
    pub(crate) fn copy(session: &Arc<Session>, room: &Room) -> RoomValue {
        let nodes = session.snapshot.cluster.nodes();
        let free = nodes.iter().map(|node| room.free_on(node.id)).collect();
        RoomValue { session: Arc::clone(session), free_gpus: room.free_gpus(), free: Arc::new(free) }
    }

    /// What the running jobs leave free.
    pub(crate) fn of_now(session: &Arc<Session>) -> Outcome<RoomValue> {
        let n_nodes = session.snapshot.cluster.nodes().len();
        session.meter().charge(n_nodes + session.snapshot.jobs.len())?;
        let snapshot = &session.snapshot;
        let mut free = all_free(session);
        for row in (0..snapshot.jobs.len()).filter(|row| snapshot.jobs.phase(*row) == JobPhase::Running) {
            for slice in &snapshot.jobs.allocation(row).slices {
                let (gpus, host) = &mut free[slice.node.index()];
                *gpus = gpus.without(slice.gpus);
                *host = host.saturating_sub(&slice.host);
            }
        }
        let free_gpus = free.iter().map(|(gpus, _)| gpus.len()).sum();
        Ok(RoomValue { session: Arc::clone(session), free_gpus, free: Arc::new(free) })
    }

    /// What would be free if no job ran.
    pub(crate) fn without_jobs(session: &Arc<Session>) -> Outcome<RoomValue> {
        session.meter().charge(session.snapshot.cluster.nodes().len())?;
        let free = all_free(session);
        let free_gpus = free.iter().map(|(gpus, _)| gpus.len()).sum();
        Ok(RoomValue { session: Arc::clone(session), free_gpus, free: Arc::new(free) })
    }

    pub(crate) fn nodes(&self) -> Outcome<Array> {
        self.session.meter().charge(self.free.len())?;
        let up = self.free.iter().enumerate().filter(|(index, _)| self.session.snapshot.nodes.is_up[*index]);
        Ok(up
            .map(|(index, free)| Dynamic::from(NodeValue::new(&self.session, NodeId::from(index), *free)))
            .collect())
    }

    fn node(&self, number: i64) -> Outcome<NodeValue> {
        match usize::try_from(number).ok().and_then(|index| Some((index, self.free.get(index)?))) {
            Some((index, free)) => Ok(NodeValue::new(&self.session, NodeId::from(index), *free)),
            None => fail(format!("there is no node {number}: nodes go from 0 to {}", self.free.len() - 1)),
        }
    }

    fn total(&self) -> Host {
        self.free.iter().fold(Host::NONE, |sum, (_, host)| sum.checked_add(host).unwrap_or(sum))
    }
}

/// All that is up, by node.
fn all_free(session: &Session) -> Vec<(GpuSet, Host)> {
    let states = &session.snapshot.nodes;
    let free_of = |(node, is_up): (&Node, &bool)| match is_up {
        true => (states.usable(node), node.host),
        false => (GpuSet::NONE, Host::NONE),
    };
    session.snapshot.cluster.nodes().iter().zip(&states.is_up).map(free_of).collect()
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    cluster(registrar);
    node(registrar);
    room(registrar);
}

fn cluster(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Cluster";
    registrar.class::<ClusterValue>(OWNER, "The cluster as bought, whatever is up or free.");
    let engine = registrar.field(OWNER, "name: String", "Its name.");
    engine.register_get("name", |c: &mut ClusterValue| ImmutableString::from(&*c.0.snapshot.cluster.name));
    let engine = registrar.field(OWNER, "gpus: int", "GPUs in all.");
    engine.register_get("gpus", |c: &mut ClusterValue| i64::from(c.0.snapshot.cluster.n_gpus()));
    let engine = registrar.field(OWNER, "cpus: float", "CPUs in all.");
    engine.register_get("cpus", |c: &mut ClusterValue| c.0.snapshot.cluster.host_total().cpus());
    let engine = registrar.field(OWNER, "mem_gb: float", "Memory in all, gigabytes.");
    engine.register_get("mem_gb", |c: &mut ClusterValue| c.0.snapshot.cluster.host_total().mem_gb());
    let engine = registrar.field(OWNER, "storage: float", "Storage rate in all, megabytes per second.");
    engine
        .register_get("storage", |c: &mut ClusterValue| c.0.snapshot.cluster.host_total().storage_mb_per_s());
    let engine = registrar.field(OWNER, "n_nodes: int", "Nodes in all.");
    engine.register_get("n_nodes", |c: &mut ClusterValue| c.0.snapshot.cluster.nodes().len() as i64);
    registrar.unknown_field::<ClusterValue>(OWNER);
}

fn node(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Node";
    registrar.class::<NodeValue>(OWNER, "One node and what is free on it: what the running jobs leave (`view.nodes`), or what is left while jobs are placed (`room.nodes`, `by_score`).");
    let engine = registrar.field(OWNER, "id: int", "Its number.");
    engine.register_get("id", |n: &mut NodeValue| i64::from(n.id.0));
    let engine = registrar.field(OWNER, "name: String", "Its name.");
    engine.register_get("name", |n: &mut NodeValue| ImmutableString::from(&*n.node().name));
    let engine = registrar.field(OWNER, "rack: int", "The number of its rack.");
    engine.register_get("rack", |n: &mut NodeValue| i64::from(n.node().rack));
    let engine = registrar.field(OWNER, "gpu_type: String", "Its kind of GPU.");
    engine.register_get("gpu_type", |n: &mut NodeValue| {
        ImmutableString::from(&*n.session.snapshot.cluster.gpu_types()[n.node().gpu_type.index()])
    });
    let engine = registrar.field(OWNER, "is_up: bool", "Whether it can run jobs.");
    engine.register_get("is_up", |n: &mut NodeValue| n.is_up());
    let engine = registrar.field(OWNER, "gpus: int", "GPUs it has.");
    engine.register_get("gpus", |n: &mut NodeValue| i64::from(n.node().n_gpus));
    let engine = registrar.field(OWNER, "share: Share", "CPUs, memory and storage rate it has.");
    engine.register_get("share", |n: &mut NodeValue| n.node().host);
    let engine = registrar.field(OWNER, "free_gpus: int", "GPUs that are free.");
    engine.register_get("free_gpus", |n: &mut NodeValue| i64::from(n.free.0.len()));
    let engine =
        registrar.field(OWNER, "free_gpu_ids: Array", "Numbers of the GPUs that are free, ascending.");
    engine.register_get("free_gpu_ids", |n: &mut NodeValue| -> Array {
        n.free.0.iter().map(|gpu| Dynamic::from(i64::from(gpu))).collect()
    });
    let engine = registrar.field(OWNER, "free: Share", "CPUs, memory and storage rate that are free.");
    engine.register_get("free", |n: &mut NodeValue| n.free.1);
    let engine = registrar.method(
        OWNER,
        "has_data(job: Job) -> bool",
        "Whether the job's data set is in its cache, or lives there.",
    );
    engine.register_fn("has_data", |n: NodeValue, job: JobValue| n.has_data(&job));
    registrar.unknown_field::<NodeValue>(OWNER);
}

fn room(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Room";
    registrar.class::<RoomValue>(OWNER, "What is free everywhere at the moment a job is looked at.");
    let engine = registrar.field(OWNER, "gpus: int", "Free GPUs in all.");
    engine.register_get("gpus", |r: &mut RoomValue| i64::from(r.free_gpus));
    let engine = registrar.field(OWNER, "share: Share", "Free CPUs, memory and storage rate in all.");
    engine.register_get("share", |r: &mut RoomValue| r.total());
    let engine = registrar.field(OWNER, "nodes: Array", "The nodes that are up, with what is free on each.");
    engine.register_get("nodes", |r: &mut RoomValue| r.nodes());
    let engine = registrar.method(OWNER, "node(number: int) -> Node", "One node.");
    engine.register_fn("node", |r: RoomValue, number: i64| r.node(number));
    registrar.unknown_field::<RoomValue>(OWNER);
}
