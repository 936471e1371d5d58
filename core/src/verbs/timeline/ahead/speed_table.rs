//! Speeds of the jobs of a snapshot at all their levels, each worked out when it is first asked for.

use std::sync::OnceLock;

use super::{Planned, Way};
use crate::cluster::Cluster;
use crate::ids::{GpuTypeId, NodeId};
use crate::job::JobSpec;
use crate::profile::Shape;
use crate::snapshot::Snapshot;
use crate::timeline::Speeds;

/// Speeds by row. Plans of one instant share it.
#[derive(Debug, Default)]
pub struct SpeedTable {
    by_row: Vec<OnceLock<Speeds>>,
    /// The node by which speeds are judged: the largest that jobs of a GPU type may use, any type first.
    largest: Vec<OnceLock<Option<NodeId>>>,
}

impl SpeedTable {
    /// For the jobs of a snapshot; only to be used with that one.
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut table = SpeedTable::default();
        table.by_row.resize_with(snapshot.jobs.len(), OnceLock::new);
        table.largest.resize_with(1 + snapshot.cluster.gpu_types().len(), OnceLock::new);
        table
    }

    /// A job's levels and speeds, each GPU with its proportional share. A job that can run nowhere gets a level that the
    /// cluster cannot give.
    pub fn of(&self, snapshot: &Snapshot, row: u32) -> &Speeds {
        self.by_row[row as usize].get_or_init(|| self.speeds(snapshot, snapshot.jobs.spec(row as usize)))
    }

    /// Iterations per second of a row with any number of GPUs, also one between its levels; 0 where it cannot run.
    pub fn rate(&self, snapshot: &Snapshot, row: u32, gpus: u32) -> f64 {
        let known = self.of(snapshot, row).rate(gpus);
        if gpus == 0 || known > 0.0 {
            return known;
        }
        self.rate_of(&snapshot.cluster, snapshot.jobs.spec(row as usize), gpus)
    }

    fn speeds(&self, snapshot: &Snapshot, spec: &JobSpec) -> Speeds {
        let asked = [spec.gpus.asked];
        let levels = if spec.gpus.levels.is_empty() { &asked[..] } else { &spec.gpus.levels };
        let usable = levels.iter().map(|gpus| (*gpus, self.rate_of(&snapshot.cluster, spec, *gpus)));
        let usable = Speeds::new(usable.filter(|level| level.1.is_finite() && level.1 > 0.0));
        usable.or_else(|_| Speeds::fixed(u32::MAX, 1.0)).expect("one positive level")
    }

    fn rate_of(&self, cluster: &Cluster, spec: &JobSpec, gpus: u32) -> f64 {
        let node = self.largest(cluster, spec.gpu_type).and_then(|node| cluster.node(node));
        node.map_or(0.0, |node| {
            spec.profile.rate(&Shape {
                gpus,
                n_nodes: gpus.div_ceil(node.n_gpus.max(1)),
                per_gpu: node.share_per_gpu(),
                gpu_type: &cluster.gpu_types()[node.gpu_type.index()],
                batch: spec.batch,
            })
        })
    }

    fn largest(&self, cluster: &Cluster, gpu_type: Option<GpuTypeId>) -> Option<NodeId> {
        let place = gpu_type.map_or(0, |gpu_type| 1 + gpu_type.index());
        let look_up = || cluster.largest_node(gpu_type).map(|node| node.id);
        self.largest.get(place).map_or_else(look_up, |known| *known.get_or_init(look_up))
    }
}

impl Planned {
    pub(super) fn new(snapshot: &Snapshot, row: u32, way: Way, speeds: &SpeedTable) -> Self {
        Planned::with_speeds(snapshot, row, way, speeds.of(snapshot, row).clone())
    }
}
