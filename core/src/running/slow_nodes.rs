//! Nodes that work more slowly than they should, and the jobs on them. A gang is as fast as its slowest node.

use std::collections::BTreeMap;

use crate::allocation::Allocation;
use crate::ids::{JobId, NodeId};

/// The speed of every node, and who runs where.
#[derive(Debug)]
pub(super) struct SlowNodes {
    /// As a part of full speed, by node.
    speeds: Vec<f64>,
    jobs: BTreeMap<JobId, Placed>,
}

#[derive(Debug)]
struct Placed {
    nodes: Vec<NodeId>,
    /// Iterations per second with all nodes at full speed.
    rate: f64,
}

impl SlowNodes {
    /// All nodes at full speed, without jobs.
    pub(super) fn new(n_nodes: usize) -> Self {
        SlowNodes { speeds: vec![1.0; n_nodes], jobs: BTreeMap::new() }
    }

    /// A job runs there from now on, at `rate` on nodes at full speed; returns its rate on these.
    pub(super) fn take(&mut self, job: JobId, allocation: &Allocation, rate: f64) -> f64 {
        let placed = Placed { nodes: allocation.slices.iter().map(|slice| slice.node).collect(), rate };
        let slowed = self.rate(&placed);
        self.jobs.insert(job, placed);
        slowed
    }

    /// A job no longer runs.
    pub(super) fn leave(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// A node has another speed from now on; returns the jobs on it with their rates.
    pub(super) fn change(&mut self, node: NodeId, speed: f64) -> Vec<(JobId, f64)> {
        if let Some(known) = self.speeds.get_mut(node.index()) {
            *known = speed;
        }
        let there = self.jobs.iter().filter(|(_, placed)| placed.nodes.contains(&node));
        there.map(|(job, placed)| (*job, self.rate(placed))).collect()
    }

    fn rate(&self, placed: &Placed) -> f64 {
        let speed = |node: &NodeId| self.speeds.get(node.index()).copied().unwrap_or(1.0);
        placed.rate * placed.nodes.iter().map(speed).fold(1.0, f64::min)
    }
}
