//! What the head writes down: facts, rounds and plans, as lines of JSON that an operator can query.
//!
//! The journal is enough: `Books` read from it are the books that were kept, and a replay asks the policy again at
//! every `RoundBegan`. What agents and users are told is not here; it follows from the books.

use rota_core::allocation::Allocation;
use rota_core::cluster::NodeGroup;
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::plan::{Hold, Plan, Run, Verdict, Wake};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::message::{Epoch, JobRequest};
use serde::{Deserialize, Serialize};

use super::rules::Rules;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// The head started.
    HeadStarted {
        /// For which time.
        epoch: Epoch,
        /// Its version.
        version: String,
        /// What its decisions depend on; heads of old did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Box<Rules>>,
    },
    /// A job was taken in: from here on it is not lost.
    JobReceived {
        /// Its number.
        job: JobId,
        /// Who sent it.
        user: String,
        /// The sender's key for the whole request.
        key: u64,
        /// What it is.
        request: Box<JobRequest>,
    },
    /// A job that was taken in reached the scheduler.
    JobSubmitted {
        /// Which.
        job: JobId,
    },
    /// Every rank of a launch runs.
    JobStarted {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
    },
    /// A job reported progress.
    JobProgressed {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations in all.
        done: f64,
    },
    /// A job turned out faster or slower than its profile says.
    JobPaced {
        /// Which.
        job: JobId,
        /// How many times as fast as its profile it is thought to be from now on.
        pace: f64,
    },
    /// A job has written a checkpoint: that much survives.
    JobCheckpointed {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations in it.
        done: f64,
    },
    /// A job that was told to stop is gone everywhere.
    JobStopped {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
    },
    /// A launch ended before its work was done.
    JobRequeued {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
        /// Why.
        reason: String,
        /// Whether the job is to blame.
        is_failure: bool,
    },
    /// A job did its work.
    JobFinished {
        /// Which.
        job: JobId,
        /// Which launch of it.
        incarnation: Incarnation,
        /// Iterations it reported.
        done: f64,
    },
    /// A job was withdrawn.
    JobCancelled {
        /// Which.
        job: JobId,
        /// By whom.
        user: String,
    },
    /// A job was given up after too many failures.
    JobFailed {
        /// Which.
        job: JobId,
        /// Why.
        reason: String,
    },
    /// A node came for the first time.
    NodeJoined {
        /// Its number.
        node: NodeId,
        /// Its name.
        name: String,
        /// Its rack.
        rack: u32,
        /// What it has.
        has: NodeHas,
    },
    /// A node is gone, and its lease over.
    NodeLost {
        /// Which.
        node: NodeId,
        /// Why.
        reason: String,
    },
    /// A node is back.
    NodeReturned {
        /// Which.
        node: NodeId,
    },
    /// An operator took a node out of service, or back into it.
    NodeDrained {
        /// Which.
        node: NodeId,
        /// Whether it is out of service.
        is_drained: bool,
        /// By whom.
        user: String,
    },
    /// Another policy decides from here on.
    PolicySet {
        /// Its name.
        policy: String,
        /// Its parameters.
        set: Vec<(String, String)>,
        /// By whom.
        user: String,
        /// A checksum of its scripts.
        digest: String,
    },
    /// A policy could not decide: what runs was kept.
    PolicyFailed {
        /// What is wrong.
        reason: String,
    },
    /// A GPU cannot be used any more; its node's others go on.
    GpuLost {
        /// Where.
        node: NodeId,
        /// Its number there.
        gpu: u32,
        /// Why.
        reason: String,
    },
    /// A GPU that could not be used is back.
    GpuReturned {
        /// Where.
        node: NodeId,
        /// Its number there.
        gpu: u32,
    },
    /// The policy was asked.
    RoundBegan {
        /// For which time.
        round: u64,
        /// Jobs that have run for less are not stopped by its answer; none leaves it to the head's guard.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protects: Option<Span>,
    },
    /// The policy answered, and the answer was made true.
    Planned {
        /// The round.
        round: u64,
        /// The answer.
        plan: PlanRecord,
        /// The policy's private memory after it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        memory: String,
    },
    /// Something happened while the policy decided that its answer cannot be made true after: it is asked again.
    PlanOvertaken {
        /// The round.
        round: u64,
        /// What.
        reason: String,
    },
    /// The head's time passed over a stretch in which nothing happened.
    TimeJumped {
        /// Iterations that launches are credited with for it.
        jobs: Vec<(JobId, Incarnation, f64)>,
    },
    /// Something else that an operator should know.
    Noted {
        /// What.
        text: String,
    },
}

/// What a node has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeHas {
    /// Its GPU type.
    pub gpu_type: String,
    /// Its GPUs.
    pub n_gpus: u32,
    /// Memory of one.
    pub gpu_mem_bytes: u64,
    /// CPUs, memory, storage rate.
    pub host: Host,
}

impl NodeHas {
    /// As a group of one.
    pub fn to_group(&self) -> NodeGroup {
        NodeGroup {
            count: 1,
            racks: 1,
            gpu_type: self.gpu_type.clone(),
            n_gpus: self.n_gpus,
            gpu_mem_bytes: self.gpu_mem_bytes,
            host: self.host,
            cache_bytes: 0,
            fetch_bps: 0,
        }
    }
}

/// A plan as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Answers to arrivals: no reason admits.
    pub verdicts: Vec<(JobId, Option<String>)>,
    /// Who runs: no allocation keeps what it has.
    pub run: Vec<(JobId, Option<Allocation>)>,
    /// When to ask again: nothing is the next round.
    pub wake: WakeRecord,
    /// Remarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// When a policy wants to be asked again, as it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakeRecord {
    /// At the next round.
    NextRound,
    /// On a change.
    OnChange,
    /// At a time or on a change.
    At(Time),
}

impl From<&Plan> for PlanRecord {
    fn from(plan: &Plan) -> Self {
        let verdict = |(job, verdict): &(JobId, Verdict)| match verdict {
            Verdict::Admit => (*job, None),
            Verdict::Decline(reason) => (*job, Some(reason.clone())),
        };
        let run = |run: &Run| match &run.what {
            Hold::Keep => (run.job, None),
            Hold::Take(allocation) => (run.job, Some(allocation.clone())),
        };
        PlanRecord {
            verdicts: plan.verdicts.iter().map(verdict).collect(),
            run: plan.run.iter().map(run).collect(),
            wake: match plan.wake {
                Wake::NextRound => WakeRecord::NextRound,
                Wake::OnChange => WakeRecord::OnChange,
                Wake::AtOrOnChange(time) => WakeRecord::At(time),
            },
            notes: plan.notes.clone(),
        }
    }
}

impl From<&PlanRecord> for Plan {
    fn from(record: &PlanRecord) -> Self {
        let verdict = |(job, reason): &(JobId, Option<String>)| match reason {
            None => (*job, Verdict::Admit),
            Some(reason) => (*job, Verdict::Decline(reason.clone())),
        };
        let run = |(job, allocation): &(JobId, Option<Allocation>)| Run {
            job: *job,
            what: allocation.clone().map_or(Hold::Keep, Hold::Take),
        };
        Plan {
            verdicts: record.verdicts.iter().map(verdict).collect(),
            run: record.run.iter().map(run).collect(),
            wake: match record.wake {
                WakeRecord::NextRound => Wake::NextRound,
                WakeRecord::OnChange => Wake::OnChange,
                WakeRecord::At(time) => Wake::AtOrOnChange(time),
            },
            notes: record.notes.clone(),
        }
    }
}

impl Record {
    /// Its kind in a word, as in the journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Record::HeadStarted { .. } => "head-started",
            Record::JobReceived { .. } => "job-received",
            Record::JobSubmitted { .. } => "job-submitted",
            Record::JobStarted { .. } => "job-started",
            Record::JobProgressed { .. } => "job-progressed",
            Record::JobPaced { .. } => "job-paced",
            Record::JobCheckpointed { .. } => "job-checkpointed",
            Record::JobStopped { .. } => "job-stopped",
            Record::JobRequeued { .. } => "job-requeued",
            Record::JobFinished { .. } => "job-finished",
            Record::JobCancelled { .. } => "job-cancelled",
            Record::JobFailed { .. } => "job-failed",
            Record::NodeJoined { .. } => "node-joined",
            Record::NodeLost { .. } => "node-lost",
            Record::NodeReturned { .. } => "node-returned",
            Record::NodeDrained { .. } => "node-drained",
            Record::GpuLost { .. } => "gpu-lost",
            Record::GpuReturned { .. } => "gpu-returned",
            Record::PolicySet { .. } => "policy-set",
            Record::PolicyFailed { .. } => "policy-failed",
            Record::RoundBegan { .. } => "round-began",
            Record::Planned { .. } => "planned",
            Record::PlanOvertaken { .. } => "plan-overtaken",
            Record::TimeJumped { .. } => "time-jumped",
            Record::Noted { .. } => "noted",
        }
    }

    /// In words, for people.
    pub fn to_text(&self) -> String {
        match self {
            Record::HeadStarted { epoch, version, .. } => format!("head {version} started, epoch {epoch}"),
            Record::JobReceived { job, user, request, .. } => {
                format!("job {job} `{}` of {user} asks for {} GPUs", request.name, request.gpus)
            }
            Record::JobSubmitted { job } => format!("job {job} is before the scheduler"),
            Record::JobStarted { job, incarnation } => format!("job {job} runs, launch {incarnation}"),
            Record::JobProgressed { job, done, .. } => format!("job {job} has done {done:.1} iterations"),
            Record::JobPaced { job, pace } => {
                format!(
                    "job {job} runs at {pace:.2} times the speed of its profile: its estimate was corrected"
                )
            }
            Record::JobCheckpointed { job, done, .. } => {
                format!("job {job} has a checkpoint at {done:.1} iterations")
            }
            Record::JobStopped { job, done, .. } => {
                format!("job {job} has stopped with {done:.1} iterations")
            }
            Record::JobRequeued { job, done, reason, .. } => {
                format!("job {job} waits again with {done:.1} iterations: {reason}")
            }
            Record::JobFinished { job, done, .. } => format!("job {job} is finished, {done:.1} iterations"),
            Record::JobCancelled { job, user } => format!("job {job} was cancelled by {user}"),
            Record::JobFailed { job, reason } => format!("job {job} is given up: {reason}"),
            Record::NodeJoined { name, has, .. } => format!("{name} joined with {} GPUs", has.n_gpus),
            Record::NodeLost { node, reason } => format!("node {node} is lost: {reason}"),
            Record::NodeReturned { node } => format!("node {node} is back"),
            Record::NodeDrained { node, is_drained: true, user } => {
                format!("node {node} is drained by {user}")
            }
            Record::NodeDrained { node, user, .. } => format!("node {node} is back in service, by {user}"),
            Record::GpuLost { node, gpu, reason } => {
                format!("GPU {gpu} of node {node} is out of service: {reason}")
            }
            Record::GpuReturned { node, gpu } => format!("GPU {gpu} of node {node} is back"),
            Record::PolicySet { policy, user, .. } => format!("policy {policy} decides, set by {user}"),
            Record::PolicyFailed { reason } => format!("the policy failed, what runs is kept: {reason}"),
            Record::RoundBegan { round, .. } => format!("round {round}"),
            Record::Planned { round, plan, .. } => format!("round {round}: {} jobs run", plan.run.len()),
            Record::PlanOvertaken { round, reason } => {
                format!("round {round} was overtaken by events and is held again: {reason}")
            }
            Record::TimeJumped { jobs } => format!("time was passed over, {} jobs ran", jobs.len()),
            Record::Noted { text } => text.clone(),
        }
    }
}
