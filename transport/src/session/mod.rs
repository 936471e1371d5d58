//! The protocol between head and agent as two state machines without sockets or clocks: messages and times go in,
//! messages and facts come out.
//!
//! Guarantees, however the network loses, duplicates, reorders or cuts off messages (`tests/sessions` tries hundreds of
//! each):
//! * an order is handed out exactly once in a boot of the agent and an epoch of the head, in the order given;
//! * a report reaches the head exactly once for each boot, in order, and is kept until it is in the journal;
//! * an agent's lease is over before the head thinks it is: it counts from when the heartbeat left the agent, the head
//!   from when it arrived, and adds a margin;
//! * a head with a lower epoch, or a launch that is not newer than one seen, is not obeyed.
//!
//! Orders die with the boot of the agent or the epoch of the head: an agent that comes back says what it has (`Inventory`),
//! and the head decides again from that. What a head does with facts, and an agent with orders, is not decided here.

mod agent;
mod head;

pub use agent::{AgentIdentity, AgentMemory, AgentOutput, AgentSession};
pub use head::{HeadOutput, HeadSession, SeenReports, Terms};

use crate::message::{Epoch, Lineage, OrderId};

/// A violation of the protocol by the peer. The connection is closed, nothing else happens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The first message was not the greeting, or a greeting came later.
    #[error("{what} came at the wrong moment")]
    OutOfTurn {
        /// The message that came.
        what: &'static str,
    },
    /// An agent with another name than its certificate.
    #[error("the agent calls itself {said}, its certificate says {known}")]
    WrongName {
        /// What it said.
        said: String,
        /// What is known.
        known: String,
    },
    /// Another protocol.
    #[error("{}", skew_text(*theirs, *ours))]
    VersionSkew {
        /// What the peer speaks.
        theirs: u32,
        /// What is spoken here.
        ours: u32,
    },
    /// A head that has been replaced.
    #[error(
        "this head has epoch {theirs}, epoch {seen} was seen: an older head, or one restored from an old copy; if that is \
         intended, start the head with --accept-restore"
    )]
    OldHead {
        /// The head's epoch.
        theirs: Epoch,
        /// The highest epoch seen.
        seen: Epoch,
    },
    /// A head whose journal is shorter than the one seen, or another start of the same epoch.
    #[error(
        "this head's journal has {theirs} lines, {seen} were seen: its state was restored from an older copy; if that is intended, \
         start the head with --accept-restore"
    )]
    OldState {
        /// Lines of the head's journal.
        theirs: u64,
        /// Lines seen.
        seen: u64,
    },
    /// A head with a state of another lineage.
    #[error(
        "this head's state has lineage {theirs}, this node serves {seen}: another state, or one from before an accepted restore; if \
         that is intended, start the head with --accept-restore, or this agent with an empty --run-dir"
    )]
    OtherState {
        /// The head's lineage.
        theirs: Lineage,
        /// The one known here.
        seen: Lineage,
    },
    /// A greeting that the head has refused.
    #[error("{why}")]
    NotAdmitted {
        /// As the agent's operator reads it.
        why: String,
    },
    /// More orders ahead of their turn than are kept.
    #[error("order {order} came while order {expected} is awaited: too far ahead")]
    TooFarAhead {
        /// The order that came.
        order: OrderId,
        /// The one awaited.
        expected: OrderId,
    },
}

/// What to do about two versions.
fn skew_text(theirs: u32, ours: u32) -> String {
    let advice = match theirs < ours {
        true => "install the newer version there",
        false => "install the newer version here, or the older one there",
    };
    format!("the other side speaks protocol {theirs}, this side {ours}: {advice}")
}
