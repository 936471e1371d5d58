//! What a job and its node say to each other: JSON objects, one a line, over the socket named in `ROTA_JOB_SOCKET`.
//!
//! The same is written for people in `docs/job-protocol.md`. Unknown fields are ignored, so that old jobs run under
//! new agents and the other way round.

use serde::{Deserialize, Serialize};

/// The version spoken here.
pub const PROTOCOL: u32 = 1;

/// What a job says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JobSays {
    /// The first line; answered with `welcome`.
    Hello {
        /// The version the job speaks.
        protocol: u32,
        /// The rank that speaks.
        rank: u32,
        /// Whether it ends by itself when told to stop: then it has most of the grace before the first signal.
        #[serde(default)]
        stops: bool,
    },
    /// So many iterations are done, those of earlier launches included.
    Progress {
        /// Iterations in all.
        iterations: f64,
        /// When they were done, in seconds of the kernel's monotonic clock: exact where a message waits to be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_s: Option<f64>,
    },
    /// A checkpoint is written that holds so many iterations.
    Checkpointed {
        /// Iterations in it.
        iterations: f64,
    },
    /// How long may I run? Answered with `lease`.
    Renew,
}

/// What a job hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JobHears {
    /// The answer to `hello`.
    Welcome {
        /// The version spoken.
        protocol: u32,
        /// The job.
        job: u32,
        /// Which launch of it.
        incarnation: u32,
        /// Ranks in all.
        world_size: u32,
        /// Iterations to do in all; 0 when nobody knows.
        iterations: f64,
        /// Iterations done before.
        done: f64,
        /// Seconds left of the lease; null lasts for ever.
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
    /// The job goes on at another size: it is told to stop next, and started again from its checkpoint.
    Rescale {
        /// GPUs it will have.
        gpus: u32,
        /// Ranks it will have.
        world_size: u32,
    },
    /// The answer to `renew`.
    Lease {
        /// Seconds left; null lasts for ever.
        lease_s: Option<f64>,
    },
    /// What the job may use has changed.
    Resize {
        /// CPUs.
        cpus: f64,
        /// Memory in bytes.
        memory_bytes: u64,
        /// Iterations per second its profile expects.
        rate: f64,
    },
    /// A line was not understood.
    Error {
        /// Why.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_documented() {
        let hello: JobSays =
            serde_json::from_str(r#"{"type":"hello","protocol":1,"rank":3,"language":"COBOL"}"#)
                .expect("reads");
        assert_eq!(hello, JobSays::Hello { protocol: 1, rank: 3, stops: false });
        let stop = serde_json::to_string(&JobHears::Stop { grace_s: 2.5, keep_work: true }).expect("writes");
        assert_eq!(stop, r#"{"type":"stop","grace_s":2.5,"keep_work":true}"#);
        let rescale = serde_json::to_string(&JobHears::Rescale { gpus: 8, world_size: 2 }).expect("writes");
        assert_eq!(rescale, r#"{"type":"rescale","gpus":8,"world_size":2}"#);
        assert_eq!(serde_json::to_string(&JobHears::Checkpoint).expect("writes"), r#"{"type":"checkpoint"}"#);
    }
}
