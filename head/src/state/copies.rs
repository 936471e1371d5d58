//! Checkpoints that move with their jobs, where nodes share no path for them: before a job is launched on another node,
//! its checkpoint directory is read where it last ran and written where it will run, piece by piece through the head.

use std::collections::BTreeMap;

use rota_core::ids::NodeId;
use rota_transport::message::{Attempt, Outcome, Task};
use rota_transport::value::{Name, Piece};

use super::launches::LaunchPhase;
use super::{Blame, Moment, State};

/// Copies under way.
#[derive(Debug)]
pub(super) struct Copies {
    /// Whether checkpoints are copied at all; without it, nodes share a path for them.
    is_on: bool,
    under_way: BTreeMap<Attempt, Copy>,
}

/// One copy: a piece is read at the source, then written at all targets, then the next one is read.
#[derive(Debug)]
struct Copy {
    source: NodeId,
    targets: Vec<NodeId>,
    /// Bytes read so far: where the next piece begins.
    offset: u64,
    /// Targets that have not written the last piece.
    n_writing: usize,
    /// Whether the last piece that was read ends the checkpoint.
    is_end: bool,
}

impl Copies {
    pub(super) fn new(is_on: bool) -> Self {
        Copies { is_on, under_way: BTreeMap::new() }
    }
}

impl State {
    /// Begins to copy the checkpoint to the nodes of a launch that lack it; true if the launch has to wait for that.
    pub(super) fn fetch_checkpoint(&mut self, moment: Moment, attempt: Attempt) -> bool {
        let Some(job) = self.cluster.job(attempt.job).filter(|_| self.copies.is_on) else { return false };
        // A job that names a path of its own takes care of its checkpoints itself.
        let is_ours = job.request.start.checkpoint_directory.as_str().is_empty();
        let Some(source) = job.ran_on.filter(|_| is_ours) else { return false };
        let Some(live) = self.launches.get_mut(attempt) else { return false };
        let nodes = live.allocation.slices.iter().map(|slice| slice.node);
        let targets: Vec<_> = nodes.filter(|node| *node != source).collect();
        if targets.is_empty() {
            return false;
        }
        live.phase = LaunchPhase::Fetching;
        let copy = Copy { source, targets, offset: 0, n_writing: 0, is_end: false };
        self.copies.under_way.insert(attempt, copy);
        let is_here = self.agents.has_inventory_of(source);
        match is_here {
            true => drop(self.order(moment, source, Task::ReadCheckpoint { attempt, offset: 0 })),
            false => {
                let name = self.cluster.node_name(source).to_owned();
                self.copy_failed(moment, attempt, &format!("it is on {name}, which is not connected"));
            }
        }
        true
    }

    /// A piece was read: it goes to every node that needs it.
    fn piece_read(&mut self, moment: Moment, attempt: Attempt, at: u64, piece: Piece, is_end: bool) {
        if self.launches.get(attempt).is_none_or(|live| live.phase != LaunchPhase::Fetching) {
            // The launch was given up meanwhile.
            self.copies.under_way.remove(&attempt);
            return;
        }
        let Some(copy) = self.copies.under_way.get_mut(&attempt).filter(|copy| copy.offset == at) else {
            return;
        };
        copy.offset += piece.as_bytes().len() as u64;
        (copy.n_writing, copy.is_end) = (copy.targets.len(), is_end);
        for node in copy.targets.clone() {
            let bytes = piece.clone();
            self.order(moment, node, Task::WriteCheckpoint { attempt, offset: at, bytes, is_end });
        }
    }

    /// A node has written a piece: the next is read when all have.
    fn piece_written(&mut self, moment: Moment, attempt: Attempt) {
        let Some(copy) = self.copies.under_way.get_mut(&attempt) else { return };
        copy.n_writing = copy.n_writing.saturating_sub(1);
        if copy.n_writing > 0 {
            return;
        }
        let (source, offset) = (copy.source, copy.offset);
        if !copy.is_end {
            self.order(moment, source, Task::ReadCheckpoint { attempt, offset });
            return;
        }
        self.copies.under_way.remove(&attempt);
        if self.launches.get(attempt).is_some_and(|live| live.phase == LaunchPhase::Fetching) {
            self.start(moment, attempt);
        }
    }

    /// Gives up a copy, and with it the launch that waits for it. That is not a failure of the job.
    fn copy_failed(&mut self, moment: Moment, attempt: Attempt, why: &str) {
        if self.copies.under_way.remove(&attempt).is_some() {
            let reason = format!("its checkpoint could not be copied: {why}");
            self.fail(moment, attempt, reason, Blame::Nobody);
            self.conclude(moment, attempt);
        }
    }

    /// An agent has answered an order to read or write a piece.
    pub(super) fn copy_done(&mut self, moment: Moment, name: &Name, task: &Task, outcome: Outcome) {
        match (task, outcome) {
            (Task::ReadCheckpoint { attempt, offset }, Outcome::Piece { bytes, is_end }) => {
                self.piece_read(moment, *attempt, *offset, bytes, is_end);
            }
            (Task::WriteCheckpoint { attempt, .. }, Outcome::Done) => self.piece_written(moment, *attempt),
            (
                Task::ReadCheckpoint { attempt, .. } | Task::WriteCheckpoint { attempt, .. },
                Outcome::Failed(why),
            ) => {
                self.copy_failed(moment, *attempt, &format!("{name}: {why}"));
            }
            _ => {}
        }
    }

    /// A node is lost: copies from it or to it fail.
    pub(super) fn copies_lost(&mut self, moment: Moment, node: NodeId) {
        let is_hit = |(_, copy): &(&Attempt, &Copy)| copy.source == node || copy.targets.contains(&node);
        let hit: Vec<_> = self.copies.under_way.iter().filter(is_hit).map(|(attempt, _)| *attempt).collect();
        for attempt in hit {
            self.copy_failed(moment, attempt, "a node was lost meanwhile");
        }
    }
}
