//! What a policy answers: the desired state of one round. A job left out does not run.

use crate::allocation::Allocation;
use crate::ids::JobId;
use crate::time::Time;

/// Who is admitted, who runs with what, and when to ask again.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    /// Answers for jobs that wait for admission; a job not named keeps waiting for one.
    pub verdicts: Vec<(JobId, Verdict)>,
    /// The jobs that run. The order matters to the guards alone: where a quota or a protected job leaves no room for all of
    /// them, the later ones are dropped.
    pub run: Vec<Run>,
    /// When the policy wants to be asked again.
    pub wake: Wake,
    /// Remarks that are recorded with this round: solver status, fallbacks taken.
    pub notes: Vec<String>,
}

/// The answer to an arrival.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Verdict {
    /// It may run.
    Admit,
    /// It is refused for good, with the reason.
    Decline(String),
}

/// One job that is to run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// Its number; one job has at most one line in a plan.
    pub job: JobId,
    /// What it holds while it runs.
    pub what: Hold,
}

/// What a job runs with.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Hold {
    /// What it has already.
    Keep,
    /// A new allocation.
    Take(Allocation),
}

/// When a policy wants to be asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Wake {
    /// At the next round.
    #[default]
    NextRound,
    /// When something changes: the answer depends on which jobs and nodes there are and on what is held, not on
    /// time or progress. Once an answer changes nothing, asking again is pointless until a job arrives or ends or a
    /// node comes or goes.
    OnChange,
    /// At the first round at or after this time, or on a change.
    AtOrOnChange(Time),
}
