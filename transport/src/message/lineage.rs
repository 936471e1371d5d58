//! Which state of which head an agent serves. A state that was restored from an older copy, or is another one altogether, is
//! told from the one that an agent knows by three numbers: its lineage, the start of the head, and how far its journal is.
//!
//! Every start of a head draws a number, and within a start the journal only grows. So an agent's mark names one prefix of one
//! history, and a head whose history does not begin with it has not written what the agent has seen.

use rota_core::ids::JobId;
use serde::{Deserialize, Serialize};

use super::{Attempt, JobRequest};
use crate::value::Name;

/// A random number drawn when a state folder is made, and again when an operator accepts a restored one. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lineage(pub u64);

impl Lineage {
    /// None: of an agent that never served a head.
    pub const NONE: Lineage = Lineage(0);

    /// One that nobody else has.
    pub fn draw() -> Self {
        Lineage(rand::random_range(1..=u64::MAX >> 1))
    }
}

impl std::fmt::Display for Lineage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A random number drawn at every start of a head. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StartId(pub u64);

impl StartId {
    /// One that no other start has.
    pub fn draw() -> Self {
        StartId(rand::random_range(1..=u64::MAX >> 1))
    }
}

/// A random number drawn when an agent's run directory is made: another one under the same name is another agent, or the
/// same one without what it knew. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub u64);

impl InstanceId {
    /// One that no other run directory has.
    pub fn draw() -> Self {
        InstanceId(rand::random_range(1..=u64::MAX >> 1))
    }
}

/// How far a state has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateMark {
    /// Which state.
    pub lineage: Lineage,
    /// The start of the head that said so.
    pub start: StartId,
    /// The last line of its journal.
    pub journal: u64,
}

/// What an agent knows of the state it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// The state as its head last described it.
    pub mark: StateMark,
    /// One more than the highest job number it has seen; 0 if it has seen none.
    pub n_jobs: u32,
    /// The highest launch number of any job it has seen.
    pub last_launch: u32,
}

/// How a job ended, as the head tells agents: an older copy of the head's state does not know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// It has not: it was stopped, and may be launched again.
    #[default]
    None,
    /// Its work is done.
    Finished,
    /// A user cancelled it.
    Cancelled,
    /// It was given up after too many failures.
    Failed,
}

/// A job that an agent remembers, though its launches are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecalledJob {
    /// Its number.
    pub job: JobId,
    /// The last launch of it that ended there.
    pub launch: u32,
    /// How the job ended.
    pub end: JobEnd,
}

/// Where a launch comes from: enough for a head that has never heard of the job to take it in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The job and which of its launches this is.
    pub attempt: Attempt,
    /// Who submitted the job.
    pub user: Name,
    /// What they asked for.
    pub request: JobRequest,
    /// On how many nodes the launch runs.
    pub n_nodes: u32,
}
