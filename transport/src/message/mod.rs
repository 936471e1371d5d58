//! The messages. Enums are append-only: a new variant goes to the end, a field never changes its position, and
//! `tests/wire` holds the bytes of every message, so that a mistake is a failing test and not a broken cluster.
//!
//! `to_head` and `to_agent` are the two directions of an agent's connection, `launch` what it takes to start a job, `container` what
//! of that a container runtime may be given,
//! `user` the requests of people and the answers to them, with `change` for what they ask of jobs and nodes and `history` for
//! jobs that have ended, `web` for signing in to the page and for forecasts, `lineage` which state of a head an agent serves, `join` how a party gets its certificate. How messages are put on a stream is in `frame`; when they
//! are sent and what they mean for the peers' state is in the sessions.

mod change;
mod container;
mod history;
mod join;
mod launch;
mod lineage;
mod to_agent;
mod to_head;
mod user;
mod web;

pub use change::*;
pub use container::{ContainerFault, is_mountable};
pub use history::*;
pub use join::*;
pub use launch::*;
pub use lineage::*;
pub use to_agent::*;
pub use to_head::*;
pub use user::*;
pub use web::*;

use rota_core::ids::{Incarnation, JobId};
use serde::{Deserialize, Serialize};

/// The version of all messages. Peers with different versions refuse each other; the ALPN carries it too.
pub const PROTOCOL_VERSION: u32 = 2;

/// One launch of one job. A job never has two live launches, and a later one has a larger incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The number that the head gave the job.
    pub job: JobId,
    /// Which launch of it.
    pub incarnation: Incarnation,
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "job {} launch {}", self.job, self.incarnation)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after it.
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter!(
    /// How often the head has started. A head with a lower one than the agent has seen has been replaced and is not obeyed.
    Epoch
);
counter!(
    /// An order to one agent, counted from 1 in each epoch and each boot of the agent.
    OrderId
);
counter!(
    /// A report of one agent, counted from 1 in each boot.
    Sequence
);
counter!(
    /// A random number drawn when an agent starts: a new one means that it has forgotten what was not on its disk.
    BootId
);
counter!(
    /// A heartbeat of one agent, counted from 1 in each boot.
    Beat
);
