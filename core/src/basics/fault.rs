//! What fails in a simulated cluster, and when.

use crate::ids::NodeId;
use crate::time::Time;

/// Something of a node fails, recovers or changes its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// When it happens.
    pub time: Time,
    /// Index of the node in the cluster.
    pub node: NodeId,
    /// What happens to it.
    pub change: Change,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// It fails, and with it everything that runs there.
    NodeFails {
        /// Whether the checkpoints of these jobs are lost too: they begin again.
        loses_checkpoints: bool,
    },
    /// It is back, empty.
    NodeReturns,
    /// One of its GPUs fails; jobs on the others go on.
    GpuFails {
        /// Its number on the node, from 0.
        gpu: u32,
        /// Whether the checkpoints of jobs on it are lost too.
        loses_checkpoints: bool,
    },
    /// One of its GPUs is back.
    GpuReturns {
        /// Its number on the node, from 0.
        gpu: u32,
    },
    /// From now on it works at this part of its speed; 1 is all of it. A gang is as fast as its slowest node, and nobody tells the
    /// scheduler.
    Slows {
        /// More than 0.
        to: f64,
    },
}

impl Fault {
    /// A node fails; checkpoints survive.
    pub fn down(time: Time, node: NodeId) -> Self {
        Fault { time, node, change: Change::NodeFails { loses_checkpoints: false } }
    }

    /// A node is back.
    pub fn up(time: Time, node: NodeId) -> Self {
        Fault { time, node, change: Change::NodeReturns }
    }

    /// The order of faults at one time: what comes back comes first.
    pub fn rank(&self) -> (Time, NodeId, u32) {
        let rank = match self.change {
            Change::NodeReturns => 0,
            Change::GpuReturns { gpu } => 1 + gpu,
            Change::NodeFails { .. } => 100,
            Change::GpuFails { gpu, .. } => 101 + gpu,
            Change::Slows { .. } => 200,
        };
        (self.time, self.node, rank)
    }
}
