//! Messages from agents to the head.

use serde::{Deserialize, Serialize};

use super::{
    Attempt, Beat, BootId, Epoch, InstanceId, Knowledge, LaunchId, OrderId, Origin, RecalledJob, Sequence,
};
use crate::value::{GpuShare, Gpus, HostAmount, Iterations, LogBytes, LongText, Name, Piece, Text};

/// A message from an agent to the head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToHead {
    /// The first message of a connection.
    Hello(Hello),
    /// What the node has and runs: the second message of a connection, and whenever it changes.
    Inventory(Inventory),
    /// A sign of life. Answered with `Renew`, which renews the agent's lease.
    Heartbeat(Heartbeat),
    /// An order was carried out, or could not be.
    OrderDone(OrderDone),
    /// Something happened. Repeated until acknowledged.
    Report(Report),
    /// A piece of a job's output, asked for by `ReadLog`.
    LogChunk(LogChunk),
    /// Jobs that ended on this node, for a head whose state was restored from an older copy: before the inventory, in as many
    /// messages as it takes.
    Recalled(Vec<RecalledJob>),
    /// Where a launch of the inventory that follows comes from, for such a head.
    Origin(Box<Origin>),
}

/// Who the agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol it speaks.
    pub protocol: u32,
    /// Its name, which its certificate must carry.
    pub name: Name,
    /// The version of the program, for people.
    pub version: Text,
    /// Drawn when it started.
    pub boot: BootId,
    /// The highest epoch it has seen: a head with a lower one is refused.
    pub epoch: Epoch,
    /// Where other nodes reach this one: host name or address.
    pub address: Text,
    /// Drawn when its run directory was made.
    pub instance: InstanceId,
    /// What it knows of the state it serves.
    pub knows: Knowledge,
    /// Reports of this boot up to this one were acknowledged, and are not kept any more.
    pub acknowledged: Sequence,
}

/// What a node has and runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its GPUs, by ascending index.
    pub gpus: Vec<GpuInfo>,
    /// CPUs, memory and storage rate given to jobs.
    pub host: Option<HostAmount>,
    /// CPUs of each NUMA node, by their numbers.
    pub numa: Vec<NumaInfo>,
    /// Launches it knows and was not told to forget.
    pub attempts: Vec<AttemptInfo>,
    /// The rack (or switch) it is connected to; 0 where the agent was not configured with one.
    pub rack: u32,
    /// Whether its GPUs are emulated.
    pub is_emulated: bool,
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// Its number among those given to jobs, from 0.
    pub index: u32,
    /// Its globally unique identifier, from the driver.
    pub uuid: Text,
    /// Its model, such as `A100-SXM4-80GB`.
    pub model: Text,
    /// Its memory in bytes.
    pub mem_bytes: u64,
    /// The NUMA node it is near.
    pub numa: u32,
    /// Whether it can be used.
    pub is_healthy: bool,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaInfo {
    /// Its number in the operating system.
    pub index: u32,
    /// CPUs there that are given to jobs.
    pub cpus: Vec<u16>,
    /// Memory there in bytes.
    pub mem_bytes: u64,
}

/// A launch as its node knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptInfo {
    /// The job and the number of its launch.
    pub attempt: Attempt,
    /// The epoch of the head that ordered it.
    pub epoch: Epoch,
    /// GPUs it holds.
    pub gpus: Gpus,
    /// Share of each of them.
    pub share: GpuShare,
    /// CPUs, memory and storage rate it holds.
    pub host: HostAmount,
    /// Whether it waits, runs or is gone.
    pub state: AttemptState,
    /// Iterations it has done in all, as far as known.
    pub iterations: Iterations,
    /// Iterations at its last checkpoint.
    pub checkpointed: Iterations,
    /// Which launch order made it.
    pub launch: LaunchId,
    /// Nodes that the whole launch was ordered on.
    pub n_nodes: u32,
}

/// How far a launch has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptState {
    /// Ready to start, waiting for `Go`.
    Prepared,
    /// Its ranks run.
    Running,
    /// Told to stop, not yet gone.
    Stopping,
    /// Gone, and not yet forgotten.
    Exited(Exit),
}

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// By code or signal.
    pub how: ExitHow,
    /// Why it ended: by itself, on an order, or by a limit.
    pub cause: ExitCause,
}

/// How the operating system reports an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitHow {
    /// It returned this; 0 is success.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It was never started, and why.
    NotStarted(Text),
    /// It is gone, and how it ended is not known.
    Unknown(Text),
}

/// Why a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// It ended by itself.
    Itself,
    /// The head ordered it.
    Ordered,
    /// The agent's lease was over.
    LeaseOver,
    /// Another rank of its gang died.
    GangBroken,
    /// It used more than it was given, and the kernel or the agent ended it.
    OverLimit,
    /// The node refuses it, and would again: its owner has no account there.
    Refused,
    /// Its work was done: it said so, or it was told to stop and ended with success instead.
    Done,
}

/// A sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its number in this boot.
    pub beat: Beat,
    /// The order it expects next: those before it have arrived.
    pub next_order: OrderId,
    /// Reports not yet acknowledged.
    pub n_unacknowledged: u32,
}

/// How an order was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderDone {
    /// The number that the order came with.
    pub order: OrderId,
    /// In which epoch it was given.
    pub epoch: Epoch,
    /// How the order ended.
    pub outcome: Outcome,
}

/// How an order was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Carried out.
    Done,
    /// Ready to start; ranks may meet at this port of this node.
    Prepared {
        /// A free port of the node.
        port: u16,
    },
    /// Not carried out, with the reason.
    Failed(Text),
    /// A piece of a checkpoint, asked for by `ReadCheckpoint`.
    Piece {
        /// The piece itself, from the offset asked for.
        bytes: Piece,
        /// Whether nothing follows.
        is_end: bool,
    },
}

/// Something that happened on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its number in this boot.
    pub sequence: Sequence,
    /// What happened.
    pub fact: Fact,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// A launch runs.
    Started(Attempt),
    /// A launch reported progress.
    Progressed {
        /// The launch that reported it.
        attempt: Attempt,
        /// Iterations in all.
        iterations: Iterations,
    },
    /// A launch has written a checkpoint.
    Checkpointed {
        /// The launch that wrote it.
        attempt: Attempt,
        /// Iterations in it.
        iterations: Iterations,
    },
    /// A launch ended.
    Exited(Exited),
    /// A GPU cannot be used.
    GpuUnhealthy {
        /// Its index in the inventory.
        index: u32,
        /// What the driver said, for the operator.
        reason: Text,
    },
    /// A GPU can be used again.
    GpuHealthy {
        /// Its index in the inventory.
        index: u32,
    },
    /// Something an operator should know.
    Warning(Text),
}

/// The end of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exited {
    /// The launch that is gone.
    pub attempt: Attempt,
    /// How it ended and why.
    pub exit: Exit,
    /// Iterations done in all, as far as known.
    pub iterations: Iterations,
    /// Iterations at the last checkpoint.
    pub checkpointed: Iterations,
    /// The last of its output.
    pub tail: LongText,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogChunk {
    /// The order that asked for it.
    pub order: OrderId,
    /// In which epoch it was given.
    pub epoch: Epoch,
    /// Where in the output it begins.
    pub offset: u64,
    /// The output from `offset` on; text, if the job writes text.
    pub bytes: LogBytes,
    /// Whether the job has ended and nothing follows.
    pub is_end: bool,
}
