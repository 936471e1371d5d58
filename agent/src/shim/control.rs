//! The messages between an agent and the shims of its launches: JSON lines over the socket in the attempt's directory. A
//! shim sends its whole state whenever any of it changes, so a reconnect loses nothing.

use serde::{Deserialize, Serialize};

use super::record::State;
use crate::launch::spec::Rendezvous;

/// Messages from an agent to a shim. Each may be sent twice without harm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToShim {
    /// Start the prepared launch.
    Go(Rendezvous),
    /// Stop, or drop what is prepared.
    Stop {
        /// Time between asking and killing.
        grace_ms: u64,
        /// Whether the job may write a checkpoint first.
        keep_work: bool,
    },
    /// Tell the job the size at which it is started again after it has stopped.
    Rescale {
        /// GPUs the next launch has on all nodes.
        n_gpus: u32,
        /// Ranks the next launch has on all nodes.
        world_size: u32,
    },
    /// Ask the job for a checkpoint.
    Checkpoint,
    /// The lease lasts until then, by `clock`; none lasts for ever.
    Lease(Option<u64>),
    /// CPUs, memory and expected speed have changed.
    Resize {
        /// CPUs on this node from now on, in millionths.
        cpu_micro: u64,
        /// Memory on this node from now on, in bytes.
        mem_bytes: u64,
        /// Iterations per second from now on, by the job's profile.
        rate: f64,
    },
}

/// Messages from a shim to its agent.
pub type FromShim = State;
