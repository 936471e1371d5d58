//! Facts and orders. Events are in the past tense, commands in the imperative.

use std::sync::Arc;

use crate::allocation::Allocation;
use crate::cluster::NodeGroup;
use crate::ids::{DatasetId, Incarnation, JobId, NodeId};
use crate::job::JobSpec;
use crate::workload::RecordedEnd;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A job was submitted.
    JobSubmitted(Arc<JobSpec>),
    /// A job reported how many iterations it has done.
    JobProgressed {
        /// The job that reported.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations in all.
        done: f64,
    },
    /// A job turned out faster or slower than estimated: this description replaces the one before.
    JobCorrected(Arc<JobSpec>),
    /// A job that was told to stop has stopped, keeping this much work.
    JobStopped {
        /// The job that was stopped; it waits again.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
    },
    /// A job did all its work.
    JobFinished {
        /// The job that is done; it leaves the table.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
    },
    /// A job ended without having done what it was to do, for good: with an error of its own, or killed.
    JobFailed {
        /// The job that failed; it leaves the table.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// How it ended.
        end: RecordedEnd,
    },
    /// A launch ended before its work was done, without an order to stop: the job waits again.
    JobRequeued {
        /// The job whose launch failed.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
    },
    /// A job was cancelled by its owner.
    JobCancelled {
        /// The job that was cancelled; it leaves the table.
        job: JobId,
    },
    /// A node joined for the first time: the cluster grows by it.
    NodeJoined {
        /// Its name, unique in the cluster.
        name: Box<str>,
        /// The rack (or switch) it is connected to.
        rack: u32,
        /// What it has, as a group of one.
        group: Arc<NodeGroup>,
    },
    /// A node is gone, and what ran on it.
    NodeLost {
        /// The node; every job with a GPU on it is stopped.
        node: NodeId,
    },
    /// A node is back, empty.
    NodeReturned {
        /// The node; its GPUs can be given away again.
        node: NodeId,
    },
    /// A GPU of a node can no longer be used; the node's other GPUs can.
    GpuLost {
        /// The node of the GPU.
        node: NodeId,
        /// Its number on the node, from 0.
        gpu: u32,
    },
    /// A GPU that could not be used is back.
    GpuReturned {
        /// The node of the GPU.
        node: NodeId,
        /// Its number on the node, from 0.
        gpu: u32,
    },
    /// A node has a data set in its cache now.
    DataCached {
        /// The node that fetched it.
        node: NodeId,
        /// Index into the datasets of the workload.
        dataset: DatasetId,
    },
    /// A node dropped a data set from its cache.
    DataEvicted {
        /// The node that made room for another.
        node: NodeId,
        /// Index into the datasets of the workload.
        dataset: DatasetId,
    },
    /// A job was taken out of the queue; if it ran, it is stopped and may write a checkpoint.
    JobWithdrawn {
        /// The job that was taken out; it leaves the table.
        job: JobId,
    },
    /// A job that was taken out of the queue is back and asks for admission.
    JobReturned {
        /// As it is described now.
        spec: Arc<JobSpec>,
        /// What it had when it was taken out.
        kept: KeptJob,
    },
    /// A node takes no new jobs; those that run there go on until they end.
    NodeClosed {
        /// The node; what it has free can no longer be given away.
        node: NodeId,
    },
    /// A node that took no new jobs takes them again.
    NodeOpened {
        /// The node; what it has free can be given away.
        node: NodeId,
    },
}

/// What is kept of a job that was taken out of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct KeptJob {
    /// Its last launch.
    pub incarnation: Incarnation,
    /// Iterations done.
    pub done: f64,
    /// Time it ran, seconds.
    pub attained_s: f64,
    /// GPU time it received, GPU-seconds.
    pub service_s: f64,
    /// How often it was stopped before its end.
    pub preemptions: f64,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Let a job wait for GPUs.
    Admit {
        /// A job that asks for admission.
        job: JobId,
    },
    /// Refuse a job.
    Decline {
        /// A job that asks for admission, or one just submitted that can never run.
        job: JobId,
        /// A sentence for the user who submitted it.
        reason: String,
    },
    /// Stop a running job.
    Stop {
        /// A job that runs.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Decides how much of its work survives.
        cause: StopCause,
    },
    /// Give a running job another host share; its GPUs stay.
    Resize {
        /// A job that runs and goes on.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// All it holds from now on.
        allocation: Allocation,
    },
    /// Launch a job.
    Start {
        /// A job that waits.
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
    /// The policy gives its GPUs to another job, or moves this one: it may write a checkpoint.
    Preempted,
    /// A node under it is gone: work since its last checkpoint is lost.
    NodeLost,
    /// Its owner cancelled it.
    Cancelled,
    /// It was taken out of the queue: it may write a checkpoint.
    Withdrawn,
}
