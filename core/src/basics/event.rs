//! Facts and orders. Events are in the past tense, commands in the imperative.

use std::sync::Arc;

use crate::allocation::Allocation;
use crate::cluster::NodeGroup;
use crate::ids::{DatasetId, Incarnation, JobId, NodeId};
use crate::job::JobSpec;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A job was submitted.
    JobSubmitted(Arc<JobSpec>),
    /// A job reported how many iterations it has done.
    JobProgressed {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations in all.
        done: f64,
    },
    /// A job turned out faster or slower than was thought: this is what is known of it from now on.
    JobCorrected(Arc<JobSpec>),
    /// A job that was told to stop has stopped, with that much work kept.
    JobStopped {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
    },
    /// A job did all its work.
    JobFinished {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
    },
    /// A launch ended before its work was done, and nobody had ordered it: the job waits again.
    JobRequeued {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
    },
    /// A job was withdrawn by its owner.
    JobCancelled {
        /// Which.
        job: JobId,
    },
    /// A node came for the first time: the cluster is larger by it.
    NodeJoined {
        /// Its name.
        name: Box<str>,
        /// The rack it stands in.
        rack: u32,
        /// What it has, as a group of one.
        group: Arc<NodeGroup>,
    },
    /// A node is gone, and what ran on it.
    NodeLost {
        /// Which.
        node: NodeId,
    },
    /// A node is back, empty.
    NodeReturned {
        /// Which.
        node: NodeId,
    },
    /// A GPU of a node cannot be used any more; the node's others go on.
    GpuLost {
        /// Where.
        node: NodeId,
        /// Its number there.
        gpu: u32,
    },
    /// A GPU that could not be used is back.
    GpuReturned {
        /// Where.
        node: NodeId,
        /// Its number there.
        gpu: u32,
    },
    /// A node has a data set in its cache now.
    DataCached {
        /// Where.
        node: NodeId,
        /// What.
        dataset: DatasetId,
    },
    /// A node dropped a data set from its cache.
    DataEvicted {
        /// Where.
        node: NodeId,
        /// What.
        dataset: DatasetId,
    },
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Let a job wait for GPUs.
    Admit {
        /// Which.
        job: JobId,
    },
    /// Refuse a job.
    Decline {
        /// Which.
        job: JobId,
        /// Why.
        reason: String,
    },
    /// Stop a running job.
    Stop {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Why.
        cause: StopCause,
    },
    /// Give a running job another host share; its GPUs stay.
    Resize {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// All it holds from now on.
        allocation: Allocation,
    },
    /// Launch a job.
    Start {
        /// Which.
        job: JobId,
        /// Which launch of it this is.
        incarnation: Incarnation,
        /// What it holds.
        allocation: Allocation,
    },
}

/// Why a job is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The policy wants its GPUs elsewhere, or the job elsewhere: it may write a checkpoint.
    Preempted,
    /// A node under it is gone: work since its last checkpoint is lost.
    NodeLost,
    /// Its owner withdrew it.
    Cancelled,
}
