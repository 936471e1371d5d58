//! Messages from the head to agents.

use serde::{Deserialize, Serialize};

use super::{Attempt, Beat, Epoch, JobEnd, Launch, Lineage, OrderId, Rendezvous, Sequence, StateMark};
use crate::value::{HostAmount, Piece, Rate, Text, Wait};

/// A message from the head to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToAgent {
    /// The answer to a good `Hello`.
    Welcome(Welcome),
    /// The answer to a bad one; the connection is closed after it.
    Refused(Text),
    /// An order. Repeated until it has arrived.
    Order(Order),
    /// Reports up to this one are in the journal.
    Acknowledge(Sequence),
    /// The answer to a heartbeat: the agent's lease is renewed, counted from the moment it sent that heartbeat.
    Renew {
        /// The heartbeat answered.
        beat: Beat,
        /// The head has the outcome of every order before this one: the agent need not keep them.
        settled_before: OrderId,
        /// The last line of the head's journal.
        journal: u64,
    },
}

impl ToAgent {
    /// Notes how far the head's journal is: all that the message rests on is in it.
    pub fn stamp(&mut self, line: u64) {
        match self {
            ToAgent::Welcome(welcome) => welcome.mark.journal = line,
            ToAgent::Order(order) => order.journal = line,
            ToAgent::Renew { journal, .. } => *journal = line,
            ToAgent::Refused(_) | ToAgent::Acknowledge(_) => {}
        }
    }
}

/// The terms of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The epoch of this head.
    pub epoch: Epoch,
    /// Without an answer for this long, counted from the last heartbeat that was answered, an agent's lease is over.
    pub lease: Wait,
    /// Time between heartbeats.
    pub heartbeat: Wait,
    /// The last report of this boot that is in the journal.
    pub reports_seen: Sequence,
    /// The head's state.
    pub mark: StateMark,
    /// The lineage of the state that this one takes the place of, by an operator's word; none if it is the same.
    pub replaces: Lineage,
    /// Without an answer for this long, counted in the same way, launches are asked to stop, unless their owners want them
    /// kept. None: they go on until the head is back.
    pub stop_after: Option<Wait>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Counted from 1 in each epoch; orders are carried out in this order.
    pub id: OrderId,
    /// The epoch of the head that gives it.
    pub epoch: Epoch,
    /// What to do.
    pub task: Task,
    /// The last line of the head's journal when it was sent.
    pub journal: u64,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Task {
    /// Start a job, or prepare to.
    Launch(Box<Launch>),
    /// Start what was prepared.
    Go {
        /// The launch that was prepared.
        attempt: Attempt,
        /// Where its ranks meet.
        rendezvous: Rendezvous,
    },
    /// Stop a launch, or drop what was prepared; its end is reported either way. It is not an error if the launch is gone already.
    Stop {
        /// The launch to stop, running or prepared.
        attempt: Attempt,
        /// Time between asking and killing.
        grace: Wait,
        /// Whether it should write a checkpoint first.
        keep_work: KeepWork,
    },
    /// Ask a launch for a checkpoint; it goes on.
    Checkpoint {
        /// A launch that runs.
        attempt: Attempt,
    },
    /// Give a running launch another share of the host; its GPUs stay.
    Resize {
        /// A launch that runs.
        attempt: Attempt,
        /// What it holds from now on.
        host: HostAmount,
        /// Iterations per second it should do with that, by its profile.
        rate: Rate,
    },
    /// The end of this launch is in the journal: its record may be deleted, its output stays until its limits are reached.
    Forget {
        /// A launch whose end the agent has reported.
        attempt: Attempt,
        /// Whether its job has ended with it.
        end: JobEnd,
    },
    /// Send output.
    ReadLog {
        /// The launch whose output is wanted.
        attempt: Attempt,
        /// From which byte.
        offset: u64,
        /// At most so many bytes.
        n_bytes: u32,
    },
    /// Tell a launch that its job goes on at another size: it is stopped next, and started again from its checkpoint.
    Rescale {
        /// A launch that runs.
        attempt: Attempt,
        /// GPUs it will have.
        n_gpus: u32,
        /// Ranks it will have.
        world_size: u32,
    },
    /// Send a piece of the checkpoint directory of a job that ran here and is about to be launched elsewhere.
    ReadCheckpoint {
        /// The launch it is for.
        attempt: Attempt,
        /// From which byte of its stream.
        offset: u64,
    },
    /// Keep a piece of the checkpoint directory of a job that is about to be launched here.
    WriteCheckpoint {
        /// The launch it is for.
        attempt: Attempt,
        /// From which byte of its stream.
        offset: u64,
        /// The piece itself, from `offset` on.
        bytes: Piece,
        /// Whether this is the last piece: then the checkpoint replaces the one that was there.
        is_end: bool,
    },
}

/// Whether work is worth saving when a launch is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepWork {
    /// It may write a checkpoint.
    Yes,
    /// It is lost: no time is spent on a checkpoint.
    No,
}
