//! What the head writes to its journal: facts, rounds and plans, as lines of JSON that an operator can query.
//!
//! The journal is enough: a [`ClusterState`](crate::ClusterState) folded from it equals the one that the live head had, and
//! a replay asks the policy again at every `RoundBegan`. What agents and users are sent is not here; it follows from the
//! state. `plan` is how a plan is written, `text` how a record reads.

mod plan;
mod text;

pub use plan::{PlanRecord, WakeRecord};
pub(crate) use text::gpus;

use rota_core::allocation::Allocation;
use rota_core::cluster::NodeGroup;
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::message::{Epoch, JobEnd, JobRequest};
use serde::{Deserialize, Serialize};

use crate::cluster_state::Image;
use crate::rules::Rules;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// The head started.
    HeadStarted {
        /// Rises by one with every start.
        epoch: Epoch,
        /// The program's version.
        version: String,
        /// What its decisions depend on; absent in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Box<Rules>>,
    },
    /// A job was received: from here on it is not lost.
    JobReceived {
        /// Its number, counted from 0 in the order of reception.
        job: JobId,
        /// The name in the sender's certificate.
        user: String,
        /// The sender's key for the whole request: sent twice, it is answered with the same jobs.
        key: u64,
        /// As the user asked for it.
        request: Box<JobRequest>,
    },
    /// A job that was received reached the scheduler.
    JobSubmitted {
        /// The number that its `JobReceived` gave it.
        job: JobId,
    },
    /// Every rank of a launch runs.
    JobStarted {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
    },
    /// A job reported progress.
    JobProgressed {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
        /// Iterations since the job's first launch.
        done: f64,
    },
    /// A job turned out faster or slower than its profile says.
    JobPaced {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// How many times as fast as its profile it is thought to be from now on.
        pace: f64,
    },
    /// A job has written a checkpoint: that much survives.
    JobCheckpointed {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
        /// Iterations in it.
        done: f64,
    },
    /// A job that was ordered to stop is gone from all its nodes.
    JobStopped {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
    },
    /// A launch ended before its work was done.
    JobRequeued {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
        /// Iterations that survive.
        done: f64,
        /// What ended it, as users read it.
        reason: String,
        /// Whether it counts as a failure of the job.
        is_failure: bool,
        /// It is not tried again before; if absent, at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Time>,
    },
    /// A job did its work.
    JobFinished {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
        /// Iterations it reported.
        done: f64,
    },
    /// A job was cancelled.
    JobCancelled {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// The user who asked for it.
        user: String,
    },
    /// A job was given up after too many failures.
    JobFailed {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// How often it failed and how its last launch failed, as users read it.
        reason: String,
    },
    /// A node connected for the first time.
    NodeJoined {
        /// Its number, counted from 0 in the order of joining.
        node: NodeId,
        /// The name in its agent's certificate.
        name: String,
        /// Its rack, as its agent was told.
        rack: u32,
        /// GPUs and host, as its agent found them.
        has: NodeHas,
    },
    /// A node is gone, and its lease over.
    NodeLost {
        /// The number that its `NodeJoined` gave it.
        node: NodeId,
        /// How the head knows, as users read it.
        reason: String,
    },
    /// A node is back.
    NodeReturned {
        /// The number that its `NodeJoined` gave it.
        node: NodeId,
    },
    /// An operator took a node out of service, or back into it.
    NodeDrained {
        /// The number that its `NodeJoined` gave it.
        node: NodeId,
        /// Whether it is out of service.
        is_drained: bool,
        /// The user who asked for it.
        user: String,
        /// Why, as they put it; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// Another policy decides from here on.
    PolicySet {
        /// Its name, parts joined by `+`.
        policy: String,
        /// Its parameters, in the order they were given.
        set: Vec<(String, String)>,
        /// The user who asked for it.
        user: String,
        /// A checksum of its scripts.
        digest: String,
        /// Names and texts of the scripts that came with the request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        texts: Vec<(String, String)>,
        /// Names and texts of the scripts that were read from files; absent in journals of earlier versions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<(String, String)>,
    },
    /// A policy could not decide: running jobs were kept.
    PolicyFailed {
        /// The error of the policy, or of the check of its plan.
        reason: String,
    },
    /// A GPU can no longer be used; the others of its node can.
    GpuLost {
        /// The node it belongs to.
        node: NodeId,
        /// Its number on the node, counted from 0.
        gpu: u32,
        /// What is wrong with it, as users read it.
        reason: String,
    },
    /// A GPU that could not be used is back.
    GpuReturned {
        /// The node it belongs to.
        node: NodeId,
        /// Its number on the node, counted from 0.
        gpu: u32,
    },
    /// A round began: the policy was asked about the state at this time.
    RoundBegan {
        /// Rounds are counted from 1 over all starts of the head.
        round: u64,
        /// Jobs that have run for less are not preempted by its plan; if absent, the head's own rule applies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protects: Option<Span>,
    },
    /// The policy answered, and its plan was accepted.
    Planned {
        /// The number in its `RoundBegan`.
        round: u64,
        /// What it wants to run.
        plan: PlanRecord,
        /// The policy's private memory after it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        memory: String,
        /// Whether the memory is what it was after the last plan, and not written again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_memory: bool,
    },
    /// Something happened while the policy decided, and its plan does not fit any more. The policy is asked again, with
    /// the memory it had before.
    PlanOvertaken {
        /// The number in its `RoundBegan`.
        round: u64,
        /// The rule that the plan breaks now.
        reason: String,
    },
    /// The head skipped a span of time in which nothing happened.
    TimeJumped {
        /// Iterations that launches are credited with for it.
        jobs: Vec<(JobId, Incarnation, f64)>,
        /// The user who asked for it; empty in journals of earlier versions.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        user: String,
    },
    /// A person did something that leaves no other record, such as ending the head.
    Acted {
        /// The name in their certificate.
        user: String,
        /// The role they had at that time.
        role: String,
        /// What they did, as the end of a sentence that begins with their name.
        action: String,
    },
    /// Something else that an operator should know.
    Noted {
        /// A sentence as `rota events` shows it.
        text: String,
    },
    /// A job had run for as long as it may, and is stopped.
    JobTimedOut {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// How long it ran, over all its launches.
        ran: Span,
    },
    /// A job can never begin.
    JobDeclined {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Why, as users read it.
        reason: String,
    },
    /// A rank of a launch failed by itself.
    JobExited {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Launches of a job are counted from 1.
        incarnation: Incarnation,
        /// Its exit code, or 128 and the number of the signal that ended it.
        code: i32,
    },
    /// A job is kept from running until it is released.
    JobHeld {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// The user who asked for it.
        user: String,
        /// Whether only operators may release it.
        by_operator: bool,
    },
    /// A job that was held may run.
    JobReleased {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// The user who asked for it.
        user: String,
    },
    /// A job that ran was stopped on request, and waits again.
    JobSentBack {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// The user who asked for it.
        user: String,
    },
    /// A job has another priority.
    JobPrioritized {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// Its priority from now on.
        priority: i32,
        /// The user who asked for it.
        user: String,
    },
    /// A node takes no new jobs, and is drained when those that run there have ended.
    NodeClosed {
        /// The number that its `NodeJoined` gave it.
        node: NodeId,
        /// The user who asked for it.
        user: String,
        /// Why, as they put it; may be empty.
        reason: String,
    },
    /// A node that took no new jobs takes them again.
    NodeOpened {
        /// The number that its `NodeJoined` gave it.
        node: NodeId,
        /// The user who asked for it.
        user: String,
    },
    /// A changed text of the policy's scripts is not used, and the old one stays in use. It stands until a policy is set.
    PolicyRefused {
        /// What is wrong with the new text, as people read it.
        reason: String,
    },
    /// An operator accepted a state that was restored from an older copy.
    RestoreAccepted {
        /// The lineage that begins with it, as agents name it.
        lineage: String,
    },
    /// Numbers of jobs and launches below these are not given any more: a lost state may have used them.
    NumbersSkipped {
        /// The number of the next job.
        first_job: JobId,
        /// The least number of launches to come.
        first_launch: Incarnation,
    },
    /// A launch that a lost state had ordered was found running, and goes on under this one.
    JobAdopted {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// The number of the launch that runs.
        incarnation: Incarnation,
        /// What it holds.
        allocation: Allocation,
    },
    /// An agent remembers that a job has ended, which a lost state knew and this one did not.
    JobRecalled {
        /// The number that its `JobReceived` gave it.
        job: JobId,
        /// The last launch of it that the agent remembers.
        incarnation: Incarnation,
        /// How the job ended.
        end: JobEnd,
    },
    /// A node cannot be reached for longer than its lease. What runs there is not started elsewhere until the node is back
    /// (`NodeReturned`) or given up (`NodeLost`).
    NodeCutOff {
        /// The number that its `NodeJoined` gave it.
        node: NodeId,
        /// How the head knows, as users read it.
        reason: String,
    },
    /// A job that was not to be tried again before some time has reached the scheduler again.
    JobResumed {
        /// The number that its `JobReceived` gave it.
        job: JobId,
    },
    /// Jobs reported progress that their estimates did not foresee.
    Progressed {
        /// Jobs, their launches, and iterations since their first one.
        jobs: Vec<(JobId, Incarnation, f64)>,
    },
    /// What all records before add up to. It is the first record of a journal that was pruned, as readers see it; the head
    /// keeps it in a table of its own.
    Image {
        /// The state as it was written down.
        image: Box<Image>,
    },
}

/// What a node has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeHas {
    /// The GPUs' type, as profiles name it.
    pub gpu_type: String,
    /// How many GPUs it has.
    pub n_gpus: u32,
    /// Memory of one GPU.
    pub gpu_mem_bytes: u64,
    /// CPUs, memory and storage rate that jobs may use.
    pub host: Host,
}

impl NodeHas {
    /// A cluster's group that consists of this node.
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
