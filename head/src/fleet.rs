//! Launches that are alive, or may be: which rank is how far on which node.
//!
//! The scheduler gives a stopped job's GPUs away at once; on the nodes that takes time. So a launch waits here until
//! the GPUs it was given are really free and no older launch of its job can be alive anywhere.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::ids::{JobId, NodeId};
use rota_transport::message::Attempt;

use crate::pace::PaceWatch;

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Live {
    pub(super) allocation: Allocation,
    pub(super) ranks: BTreeMap<NodeId, Rank>,
    pub(super) phase: LaunchPhase,
    /// Iterations in its last checkpoint.
    pub(super) checkpointed: f64,
    /// Iterations it last reported and the books do not know yet.
    pub(super) progress: Option<f64>,
    /// Iterations it last reported.
    pub(super) iterations: f64,
    /// Iterations when it was launched.
    pub(super) begun: f64,
    /// Iterations it was credited with when time was passed over, and never did.
    pub(super) skipped: f64,
    /// How fast it is against its profile.
    pub(super) pace: PaceWatch,
}

/// How far a launch is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LaunchPhase {
    /// Not yet ordered: something is in its way.
    Waiting,
    /// Its checkpoint is being copied to where it will run.
    Fetching,
    /// Ordered.
    Starting,
    /// Every rank is up.
    Running,
    /// Told to stop by the scheduler.
    Stopping,
    /// Something went wrong: the rest is told to stop, then the job is queued again.
    Failing {
        /// What.
        reason: String,
        /// Whether the job is to blame.
        is_failure: bool,
    },
}

/// A launch on one node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rank {
    /// Nothing was ordered.
    Unordered,
    /// The node was told, or may have been: what it says decides.
    Ordered,
    /// Ready, waiting for `Go`; ranks can meet at this port.
    Prepared(u16),
    /// Told to go.
    Going,
    /// Running.
    Up,
    /// Gone, and whether its work was done.
    Exited {
        /// Whether its work was done.
        is_done: bool,
    },
}

impl Live {
    pub(super) fn new(allocation: Allocation) -> Self {
        let ranks = allocation.slices.iter().map(|slice| (slice.node, Rank::Unordered)).collect();
        Live {
            allocation,
            ranks,
            phase: LaunchPhase::Waiting,
            checkpointed: 0.0,
            progress: None,
            iterations: 0.0,
            begun: 0.0,
            skipped: 0.0,
            pace: PaceWatch::default(),
        }
    }

    /// Whether no rank is alive.
    pub(super) fn is_gone(&self) -> bool {
        self.ranks.values().all(|rank| matches!(rank, Rank::Exited { .. } | Rank::Unordered))
    }

    /// Whether every rank has done its work.
    pub(super) fn is_done(&self) -> bool {
        self.ranks.values().all(|rank| *rank == Rank::Exited { is_done: true })
    }

    /// Nodes where it is alive, or may be.
    pub(super) fn alive_on(&self) -> Vec<NodeId> {
        let is_alive = |rank: &Rank| !matches!(rank, Rank::Exited { .. } | Rank::Unordered);
        self.ranks.iter().filter(|(_, rank)| is_alive(rank)).map(|(node, _)| *node).collect()
    }

    fn slice(&self, node: NodeId) -> Option<&Slice> {
        self.allocation.slices.iter().find(|slice| slice.node == node)
    }
}

/// All launches that are alive or may be.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub(super) lives: BTreeMap<Attempt, Live>,
}

impl Fleet {
    /// Launches that wait and have nothing in their way, in the order of their jobs.
    pub(super) fn ready(&self) -> Vec<Attempt> {
        let is_waiting = |(_, live): &(&Attempt, &Live)| live.phase == LaunchPhase::Waiting;
        if !self.lives.iter().any(|entry| is_waiting(&entry)) {
            return Vec::new();
        }
        let held = Held::by(&self.lives);
        let waiting = self.lives.iter().filter(is_waiting);
        waiting
            .filter(|(attempt, live)| !held.is_hindering(**attempt, live))
            .map(|(attempt, _)| *attempt)
            .collect()
    }

    /// Launches that hold something on a node.
    pub(super) fn on_node(&self, node: NodeId) -> Vec<Attempt> {
        let is_there = |(_, live): &(&Attempt, &Live)| live.alive_on().contains(&node);
        self.lives.iter().filter(is_there).map(|(attempt, _)| *attempt).collect()
    }

    /// The newest launch of a job.
    pub(super) fn newest(&self, job: JobId) -> Option<(&Attempt, &Live)> {
        self.lives.iter().rfind(|(attempt, _)| attempt.job == job)
    }

    /// GPUs of a node that are in use.
    pub(super) fn busy(&self, node: NodeId) -> GpuSet {
        let held = self.lives.values().filter(|live| live.alive_on().contains(&node));
        held.filter_map(|live| live.slice(node)).fold(GpuSet::NONE, |sum, slice| sum.or(slice.gpus))
    }
}

/// What is held where by launches that are alive, or may be.
struct Held<'a> {
    jobs: BTreeSet<JobId>,
    slices: BTreeMap<NodeId, Vec<&'a Slice>>,
}

impl<'a> Held<'a> {
    fn by(lives: &'a BTreeMap<Attempt, Live>) -> Self {
        let mut held = Held { jobs: BTreeSet::new(), slices: BTreeMap::new() };
        for (attempt, live) in lives {
            for node in live.alive_on() {
                held.jobs.insert(attempt.job);
                held.slices.entry(node).or_default().extend(live.slice(node));
            }
        }
        held
    }

    /// A launch that waits is not alive itself: what it meets here are others, and older selves.
    fn is_hindering(&self, attempt: Attempt, live: &Live) -> bool {
        let is_taken = |slice: &Slice| {
            self.slices.get(&slice.node).is_some_and(|held| held.iter().any(|theirs| collide(slice, theirs)))
        };
        self.jobs.contains(&attempt.job) || live.allocation.slices.iter().any(is_taken)
    }
}

/// Whether two slices cannot be on one node together. Shares of one GPU can; what fits was checked by the scheduler.
fn collide(a: &Slice, b: &Slice) -> bool {
    !a.gpus.and(b.gpus).is_empty() && a.share + b.share > WHOLE_GPU
}

#[cfg(test)]
mod tests {
    use rota_core::ids::Incarnation;
    use rota_core::resources::Host;

    use super::*;

    fn attempt(job: u32, incarnation: u32) -> Attempt {
        Attempt { job: JobId(job), incarnation: Incarnation(incarnation) }
    }

    fn live(node: u32, gpus: u64, rank: Rank) -> Live {
        let slice = Slice { node: NodeId(node), gpus: GpuSet(gpus), share: WHOLE_GPU, host: Host::NONE };
        let mut live = Live::new(Allocation { slices: [slice].into_iter().collect() });
        if rank == Rank::Up {
            live.phase = LaunchPhase::Running;
        }
        live.ranks.insert(NodeId(node), rank);
        live
    }

    #[test]
    fn a_launch_waits_for_its_gpus_and_for_its_older_self() {
        let mut fleet = Fleet::default();
        fleet.lives.insert(attempt(0, 1), live(0, 0b0011, Rank::Up));
        fleet.lives.insert(attempt(1, 1), live(0, 0b0110, Rank::Unordered));
        fleet.lives.insert(attempt(2, 1), live(0, 0b1000, Rank::Unordered));
        fleet.lives.insert(attempt(0, 2), live(1, 0b0001, Rank::Unordered));
        assert_eq!(fleet.ready(), [attempt(2, 1)]);
        if let Some(old) = fleet.lives.get_mut(&attempt(0, 1)) {
            old.phase = LaunchPhase::Stopping;
            old.ranks.insert(NodeId(0), Rank::Exited { is_done: false });
        }
        assert_eq!(fleet.ready(), [attempt(0, 2), attempt(1, 1), attempt(2, 1)]);
    }
}
