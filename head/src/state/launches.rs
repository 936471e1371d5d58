//! Launches that are alive, or may be: how far each rank is on each node.
//!
//! The scheduler gives a stopped job's GPUs to another job at once, but on the nodes a stop takes time. So a launch waits
//! here until its GPUs are really free and no older launch of its job can be alive anywhere.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::ids::{JobId, NodeId};
use rota_transport::message::Attempt;

use crate::pace::PaceWatch;

/// One launch of a job: an attempt, and how far each of its ranks is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiveLaunch {
    pub(crate) allocation: Allocation,
    pub(crate) ranks: BTreeMap<NodeId, Rank>,
    pub(crate) phase: LaunchPhase,
    /// Iterations in its last checkpoint.
    pub(crate) checkpointed: f64,
    /// Iterations it last reported, if they are not in the journal yet.
    progress: Option<f64>,
    /// Iterations it last reported.
    pub(crate) iterations: f64,
    /// Iterations when it was launched.
    pub(crate) begun: f64,
    /// Iterations it was credited with when time was skipped, and never did itself.
    pub(crate) skipped: f64,
    /// Compares its speed with its profile.
    pub(crate) pace: PaceWatch,
    /// Whether a node refuses it, and would again.
    pub(crate) is_refused: bool,
}

/// How far a launch is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LaunchPhase {
    /// Not ordered yet: its GPUs are still in use, or an older launch of its job is alive.
    Waiting,
    /// Its checkpoint is being copied to where it will run.
    Fetching,
    /// Ordered.
    Starting,
    /// Every rank is up.
    Running,
    /// The scheduler ordered it to stop.
    Stopping,
    /// Something went wrong: the rest is ordered to stop, then the job is queued again.
    Failing {
        /// What went wrong, as users read it.
        reason: String,
        /// Whose fault it is.
        blame: Blame,
    },
}

/// Whose fault it is that a launch ended before its work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The job's own: it counts against its retries.
    Job,
    /// The node's, on which the job was not started or of whose end nothing is known: the job is tried again, some times.
    Node,
    /// Nobody's: the head stopped it, or its node is lost.
    Nobody,
}

/// A launch on one node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rank {
    /// Nothing was ordered.
    Unordered,
    /// The node was sent the order, or may have been: its reports decide.
    Ordered,
    /// Ready, waiting for the order to go; ranks can meet at this port.
    Prepared(u16),
    /// Ordered to go.
    Going,
    /// Running.
    Up,
    /// Gone, and whether its work was done.
    Exited {
        /// Whether its work was done.
        is_done: bool,
    },
}

impl Rank {
    /// Whether it is alive, or may be.
    fn is_alive(&self) -> bool {
        !matches!(self, Rank::Exited { .. } | Rank::Unordered)
    }

    /// Its name in answers.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Rank::Unordered => "unordered",
            Rank::Ordered => "ordered",
            Rank::Prepared(_) => "prepared",
            Rank::Going => "going",
            Rank::Up => "up",
            Rank::Exited { .. } => "exited",
        }
    }
}

impl LiveLaunch {
    pub(crate) fn new(allocation: Allocation) -> Self {
        let ranks = allocation.slices.iter().map(|slice| (slice.node, Rank::Unordered)).collect();
        LiveLaunch {
            allocation,
            ranks,
            phase: LaunchPhase::Waiting,
            checkpointed: 0.0,
            progress: None,
            iterations: 0.0,
            begun: 0.0,
            skipped: 0.0,
            pace: PaceWatch::default(),
            is_refused: false,
        }
    }

    /// Whether no rank is alive.
    pub(crate) fn is_gone(&self) -> bool {
        self.ranks.values().all(|rank| matches!(rank, Rank::Exited { .. } | Rank::Unordered))
    }

    /// Whether every rank has done its work.
    pub(crate) fn is_done(&self) -> bool {
        self.ranks.values().all(|rank| *rank == Rank::Exited { is_done: true })
    }

    /// Nodes where it is alive, or may be.
    pub(crate) fn alive_on(&self) -> Vec<NodeId> {
        self.ranks.iter().filter(|(_, rank)| rank.is_alive()).map(|(node, _)| *node).collect()
    }

    /// Whether no node was ordered anything yet.
    pub(crate) fn is_unordered(&self) -> bool {
        matches!(self.phase, LaunchPhase::Waiting | LaunchPhase::Fetching)
    }

    /// Takes a report of iterations that it did itself.
    pub(crate) fn has_done(&mut self, iterations: f64) {
        self.iterations = self.iterations.max(iterations);
        self.progress = Some(self.iterations);
    }

    /// Iterations that it reported since the last call, including those it was credited with.
    pub(crate) fn take_progress(&mut self) -> Option<f64> {
        self.progress.take().map(|done| done + self.skipped)
    }

    /// Credits it with iterations for time that was skipped.
    pub(crate) fn credit(&mut self, iterations: f64) {
        self.skipped += iterations;
        // Iterations credited for skipped time say nothing about its speed.
        self.pace = PaceWatch::default();
        self.progress = Some(self.iterations);
    }

    pub(super) fn slice(&self, node: NodeId) -> Option<&Slice> {
        self.allocation.slices.iter().find(|slice| slice.node == node)
    }
}

/// All launches that are alive or may be.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    by_attempt: BTreeMap<Attempt, LiveLaunch>,
}

impl Launches {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_attempt.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Attempt, &LiveLaunch)> {
        self.by_attempt.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Attempt, &mut LiveLaunch)> {
        self.by_attempt.iter_mut()
    }

    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.by_attempt.keys().copied().collect()
    }

    pub(super) fn get(&self, attempt: Attempt) -> Option<&LiveLaunch> {
        self.by_attempt.get(&attempt)
    }

    pub(super) fn get_mut(&mut self, attempt: Attempt) -> Option<&mut LiveLaunch> {
        self.by_attempt.get_mut(&attempt)
    }

    pub(super) fn insert(&mut self, attempt: Attempt, launch: LiveLaunch) {
        self.by_attempt.insert(attempt, launch);
    }

    /// A launch that is known, or one that holds nothing yet.
    pub(super) fn entry(&mut self, attempt: Attempt) -> &mut LiveLaunch {
        self.by_attempt.entry(attempt).or_insert_with(|| LiveLaunch::new(Allocation::default()))
    }

    pub(super) fn remove(&mut self, attempt: Attempt) {
        self.by_attempt.remove(&attempt);
    }

    /// Removes a launch that was ordered and of which no rank is alive any more.
    pub(super) fn take_gone(&mut self, attempt: Attempt) -> Option<LiveLaunch> {
        let live = self.by_attempt.get(&attempt)?;
        let is_over = live.is_gone() && !live.is_unordered();
        if is_over { self.by_attempt.remove(&attempt) } else { None }
    }

    /// Drops a job's launches that were not ordered yet, because the job has nothing left to do; those that were.
    pub(super) fn drop_unordered(&mut self, job: JobId) -> Vec<Attempt> {
        self.by_attempt.retain(|other, live| other.job != job || !live.is_unordered());
        self.by_attempt.keys().filter(|other| other.job == job).copied().collect()
    }

    /// Launches that can be ordered now, by job id.
    pub(crate) fn ready(&self) -> Vec<Attempt> {
        let is_waiting = |(_, live): &(&Attempt, &LiveLaunch)| live.phase == LaunchPhase::Waiting;
        if !self.by_attempt.iter().any(|entry| is_waiting(&entry)) {
            return Vec::new();
        }
        let held = Held::by(&self.by_attempt);
        let waiting = self.by_attempt.iter().filter(is_waiting);
        waiting.filter(|(attempt, live)| !held.blocks(**attempt, live)).map(|(attempt, _)| *attempt).collect()
    }

    /// Launches that hold something on a node.
    pub(crate) fn on_node(&self, node: NodeId) -> Vec<Attempt> {
        let is_there = |(_, live): &(&Attempt, &LiveLaunch)| live.alive_on().contains(&node);
        self.by_attempt.iter().filter(is_there).map(|(attempt, _)| *attempt).collect()
    }

    /// Launches that no node was ordered yet and that are to have something of a node.
    pub(super) fn unordered_on(&self, node: NodeId) -> Vec<Attempt> {
        let is_for = |live: &LiveLaunch| live.is_unordered() && live.slice(node).is_some();
        self.by_attempt.iter().filter(|(_, live)| is_for(live)).map(|(attempt, _)| *attempt).collect()
    }

    /// The newest launch of a job.
    pub(crate) fn newest(&self, job: JobId) -> Option<(&Attempt, &LiveLaunch)> {
        self.by_attempt.iter().rfind(|(attempt, _)| attempt.job == job)
    }

    /// GPUs that are in use, of each node that has any.
    pub(crate) fn busy_by_node(&self) -> BTreeMap<NodeId, GpuSet> {
        let mut busy: BTreeMap<NodeId, GpuSet> = BTreeMap::new();
        for live in self.by_attempt.values() {
            for (node, rank) in &live.ranks {
                if let Some(slice) = live.slice(*node).filter(|_| rank.is_alive()) {
                    let all = busy.entry(*node).or_insert(GpuSet::NONE);
                    *all = all.or(slice.gpus);
                }
            }
        }
        busy
    }
}

/// What launches that are alive, or may be, hold on each node.
struct Held<'a> {
    jobs: BTreeSet<JobId>,
    slices: BTreeMap<NodeId, Vec<&'a Slice>>,
}

impl<'a> Held<'a> {
    fn by(launches: &'a BTreeMap<Attempt, LiveLaunch>) -> Self {
        let mut held = Held { jobs: BTreeSet::new(), slices: BTreeMap::new() };
        for (attempt, live) in launches {
            for node in live.alive_on() {
                held.jobs.insert(attempt.job);
                held.slices.entry(node).or_default().extend(live.slice(node));
            }
        }
        held
    }

    /// Whether a waiting launch is blocked: another job is still alive on its GPUs, or an older launch of its own job is
    /// alive.
    fn blocks(&self, attempt: Attempt, live: &LiveLaunch) -> bool {
        let is_taken = |slice: &Slice| {
            self.slices.get(&slice.node).is_some_and(|held| held.iter().any(|theirs| collide(slice, theirs)))
        };
        self.jobs.contains(&attempt.job) || live.allocation.slices.iter().any(is_taken)
    }
}

/// Whether two slices cannot be on one node at the same time. Shares of one GPU can: the scheduler checked that they
/// fit.
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

    fn live(node: u32, gpus: u64, rank: Rank) -> LiveLaunch {
        let slice = Slice { node: NodeId(node), gpus: GpuSet(gpus), share: WHOLE_GPU, host: Host::NONE };
        let mut live = LiveLaunch::new(Allocation { slices: [slice].into_iter().collect() });
        if rank == Rank::Up {
            live.phase = LaunchPhase::Running;
        }
        live.ranks.insert(NodeId(node), rank);
        live
    }

    #[test]
    fn a_launch_waits_for_its_gpus_and_for_its_older_self() {
        let mut launches = Launches::default();
        launches.insert(attempt(0, 1), live(0, 0b0011, Rank::Up));
        launches.insert(attempt(1, 1), live(0, 0b0110, Rank::Unordered));
        launches.insert(attempt(2, 1), live(0, 0b1000, Rank::Unordered));
        launches.insert(attempt(0, 2), live(1, 0b0001, Rank::Unordered));
        assert_eq!(launches.ready(), [attempt(2, 1)]);
        if let Some(old) = launches.get_mut(attempt(0, 1)) {
            old.phase = LaunchPhase::Stopping;
            old.ranks.insert(NodeId(0), Rank::Exited { is_done: false });
        }
        assert_eq!(launches.ready(), [attempt(0, 2), attempt(1, 1), attempt(2, 1)]);
    }
}
