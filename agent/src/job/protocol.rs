//! The messages between a job and its node: JSON objects, one per line, over the socket named in `ROTA_JOB_SOCKET`.
//!
//! `docs/job-protocol.md` describes them for people. Unknown fields are ignored: old jobs run under new agents, and new
//! jobs under old agents.

use serde::{Deserialize, Serialize};

/// The version of the protocol that this program uses.
pub const PROTOCOL: u32 = 1;

/// Messages from a job to its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromJob {
    /// The first line; answered with `welcome`.
    Hello {
        /// The job's version of the protocol.
        protocol: u32,
        /// The rank that sends the message.
        rank: u32,
        /// Whether it ends by itself when asked to stop: then it has most of the grace before the first signal.
        #[serde(default)]
        stops: bool,
    },
    /// Progress.
    Progress {
        /// Iterations done by all launches of the job.
        iterations: f64,
        /// When they were done, in seconds of the kernel's monotonic clock: exact even if the message is read later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_s: Option<f64>,
    },
    /// A checkpoint was written.
    Checkpointed {
        /// Iterations in the checkpoint, those of earlier launches included.
        iterations: f64,
    },
    /// Asks how long the lease lasts. Answered with `lease`.
    Renew,
    /// All work is done and its results are written: however the job ends now, it is not run again.
    Done,
}

/// Messages from the node to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToJob {
    /// The answer to `hello`.
    Welcome {
        /// The node's version of the protocol.
        protocol: u32,
        /// The job's number at its head.
        job: u32,
        /// Number of this launch of the job; later launches have higher numbers.
        incarnation: u32,
        /// Ranks of the job on all nodes.
        world_size: u32,
        /// Iterations to do in all; 0 when that is unknown.
        iterations: f64,
        /// Iterations in the checkpoint that this launch starts from.
        done: f64,
        /// Seconds left of the lease; null means for ever.
        lease_s: Option<f64>,
    },
    /// Write a checkpoint and go on.
    Checkpoint,
    /// Write a checkpoint if work is to be kept, and end.
    Stop {
        /// Seconds until the process is killed.
        grace_s: f64,
        /// Whether a checkpoint is wanted.
        keep_work: bool,
    },
    /// The job changes its size: it is asked to stop next, and started again from its checkpoint.
    Rescale {
        /// GPUs the next launch has on all nodes.
        gpus: u32,
        /// Ranks the next launch has on all nodes.
        world_size: u32,
    },
    /// The answer to `renew`.
    Lease {
        /// Seconds left; null means for ever.
        lease_s: Option<f64>,
    },
    /// What the job may use has changed.
    Resize {
        /// CPUs on this node from now on; parts are allowed.
        cpus: f64,
        /// Memory on this node from now on, in bytes.
        memory_bytes: u64,
        /// Iterations per second its profile expects.
        rate: f64,
    },
    /// A line was not understood.
    Error {
        /// What is wrong with the line, for a person.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_documented() {
        let hello: FromJob =
            serde_json::from_str(r#"{"type":"hello","protocol":1,"rank":3,"language":"COBOL"}"#)
                .expect("reads");
        assert_eq!(hello, FromJob::Hello { protocol: 1, rank: 3, stops: false });
        let stop = serde_json::to_string(&ToJob::Stop { grace_s: 2.5, keep_work: true }).expect("writes");
        assert_eq!(stop, r#"{"type":"stop","grace_s":2.5,"keep_work":true}"#);
        let rescale = serde_json::to_string(&ToJob::Rescale { gpus: 8, world_size: 2 }).expect("writes");
        assert_eq!(rescale, r#"{"type":"rescale","gpus":8,"world_size":2}"#);
        assert_eq!(serde_json::to_string(&ToJob::Checkpoint).expect("writes"), r#"{"type":"checkpoint"}"#);
    }
}
