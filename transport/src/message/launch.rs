//! What it takes to start a job on one node.

use serde::{Deserialize, Serialize};

use super::{Attempt, JobRequest};
use crate::value::{GpuShare, Gpus, HostAmount, Iterations, Name, Rate, Text, TimeScale, ValueError, Wait};

/// A random number that identifies one launch order: the inventory returns it, so that head and agent mean the same one.
pub type LaunchId = u64;

/// One job's start on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The job and the number of this launch.
    pub attempt: Attempt,
    /// Drawn by the head, returned in the inventory.
    pub id: LaunchId,
    /// The job's name, for people.
    pub name: Text,
    /// Whose it is.
    pub user: Name,
    /// Process, container or emulated job.
    pub launcher: Launcher,
    /// The program and its arguments; for a container possibly none, which runs the image's own.
    pub argv: Vec<Text>,
    /// Variables besides those the agent sets.
    pub env: Vec<(Text, Text)>,
    /// Where it runs; empty is the agent's run directory.
    pub working_directory: Text,
    /// GPUs of the node.
    pub gpus: Gpus,
    /// Share of each of them.
    pub share: GpuShare,
    /// CPUs, memory and storage rate.
    pub host: HostAmount,
    /// Which of the ranks of the job run on this node.
    pub gang: Gang,
    /// Whether it starts at once or waits for an order.
    pub start: Start,
    /// What there is to do.
    pub work: Work,
    /// Where it keeps checkpoints; empty is a folder of its own below the agent's checkpoint directory.
    pub checkpoint_directory: Text,
    /// What happens to it when the agent's lease is over.
    pub on_head_lost: OnHeadLost,
    /// How much of its output is kept.
    pub log: LogLimits,
    /// Time between asking it to stop and killing it, where no order says another.
    pub grace: Wait,
    /// Seconds of its time in a real second; emulated jobs sleep less by that.
    pub time_scale: TimeScale,
    /// What its user asked for: a head that has lost the job can take it in again.
    pub request: Option<Box<JobRequest>>,
}

/// What kind of thing a job is started as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Launcher {
    /// A process.
    Process,
    /// A container of docker or podman.
    Container(Container),
    /// The emulated job that every agent has built in: it needs no program.
    Emulated,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Name of the image, with its tag or digest.
    pub image: Text,
    /// When it is fetched.
    pub pull: Pull,
    /// What it sees of the host.
    pub mounts: Vec<Mount>,
    /// Its network, such as `host`; empty is the runtime's own choice.
    pub network: Text,
    /// Always empty: how containers are given GPUs is the agent's setting. Earlier versions could ask for it here.
    pub gpu_flag: Text,
}

/// When an image is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pull {
    /// When it is not there.
    Missing,
    /// Before each start.
    Always,
    /// Never: it must be there.
    Never,
}

/// A folder of the host in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// On the host.
    pub source: Text,
    /// In the container.
    pub target: Text,
    /// Whether it cannot be written to.
    pub is_read_only: bool,
}

/// When a launch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// As soon as it can.
    AtOnce,
    /// It is prepared (folders, image, port), answers `Prepared` and waits for `Go` or `Stop`: gangs over several
    /// nodes start together or not at all.
    WhenTold,
}

/// Where ranks find each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendezvous {
    /// Address of the node with rank 0.
    pub address: Text,
    /// A port there.
    pub port: u16,
}

/// Which ranks of a gang run on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "GangNumbers", into = "GangNumbers")]
pub struct Gang(GangNumbers);

/// The numbers of a gang, not yet checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GangNumbers {
    /// Number of this node among those of the job, from 0.
    pub node_rank: u32,
    /// Nodes in all.
    pub n_nodes: u32,
    /// The first rank on this node.
    pub first_rank: u32,
    /// Ranks on this node, one process each.
    pub n_ranks: u32,
    /// Ranks in all.
    pub world_size: u32,
}

impl Gang {
    /// One process on one node.
    pub const ALONE: Gang =
        Gang(GangNumbers { node_rank: 0, n_nodes: 1, first_rank: 0, n_ranks: 1, world_size: 1 });

    /// Checks that the ranks of this node are among those of the job.
    pub fn new(numbers: GangNumbers) -> Result<Self, ValueError> {
        let GangNumbers { node_rank, n_nodes, first_rank, n_ranks, world_size } = numbers;
        let past_rank = u64::from(first_rank) + u64::from(n_ranks);
        let is_whole = n_ranks > 0
            && node_rank < n_nodes
            && n_nodes <= world_size
            && past_rank <= u64::from(world_size)
            && (node_rank == 0) == (first_rank == 0);
        match is_whole {
            true => Ok(Gang(numbers)),
            false => Err(ValueError::Gang { node: node_rank, n_nodes, first_rank, past_rank, world_size }),
        }
    }

    /// The numbers; they are consistent.
    pub fn numbers(self) -> GangNumbers {
        self.0
    }
}

impl TryFrom<GangNumbers> for Gang {
    type Error = ValueError;
    fn try_from(numbers: GangNumbers) -> Result<Self, ValueError> {
        Gang::new(numbers)
    }
}

impl From<Gang> for GangNumbers {
    fn from(gang: Gang) -> Self {
        gang.0
    }
}

/// What a launch has to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Iterations in all.
    pub to_do: Iterations,
    /// Iterations done before this launch.
    pub done: Iterations,
    /// Iterations per second by its profile with what it holds: progress of jobs that report none.
    pub rate: Rate,
    /// Time it loses before its first iteration, of its own time: the costs of starting again.
    pub delay: Wait,
    /// Time between checkpoints it writes by itself, of its own time; none writes none.
    pub checkpoint_every: Wait,
}

/// What happens to a launch when the agent's lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnHeadLost {
    /// It is asked to write a checkpoint and stopped: the head may start it elsewhere after the lease.
    Stop,
    /// It goes on: the head must not start it elsewhere until its node is back.
    Keep,
}

/// How much output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files, the newest being written; older ones go.
    pub n_files: u16,
}
