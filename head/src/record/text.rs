//! Records in words: their kind as the journal names it, and a sentence for people.

use rota_core::ids::NodeId;
use rota_transport::message::JobEnd;

use super::Record;

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
            Record::Acted { .. } => "acted",
            Record::Noted { .. } => "noted",
            Record::JobTimedOut { .. } => "job-timed-out",
            Record::JobDeclined { .. } => "job-declined",
            Record::JobExited { .. } => "job-exited",
            Record::JobHeld { .. } => "job-held",
            Record::JobReleased { .. } => "job-released",
            Record::JobSentBack { .. } => "job-sent-back",
            Record::JobPrioritized { .. } => "job-prioritized",
            Record::NodeClosed { .. } => "node-closed",
            Record::NodeOpened { .. } => "node-opened",
            Record::PolicyRefused { .. } => "policy-refused",
            Record::RestoreAccepted { .. } => "restore-accepted",
            Record::NumbersSkipped { .. } => "numbers-skipped",
            Record::JobAdopted { .. } => "job-adopted",
            Record::JobRecalled { .. } => "job-recalled",
            Record::JobResumed { .. } => "job-resumed",
            Record::NodeCutOff { .. } => "node-cut-off",
            Record::Progressed { .. } => "progressed",
            Record::Image { .. } => "image",
        }
    }

    /// A sentence for people, in which nodes have numbers.
    pub fn to_text(&self) -> String {
        self.to_text_with(&[])
    }

    /// A sentence for people, in which nodes have their names, as far as they are known.
    pub fn to_text_with(&self, nodes: &[String]) -> String {
        let of =
            |node: &NodeId| nodes.get(node.index()).map_or_else(|| format!("node {node}"), String::clone);
        match self {
            Record::HeadStarted { epoch, version, .. } => format!("head {version} started, epoch {epoch}"),
            Record::JobReceived { job, user, request, .. } => {
                format!("job {job} `{}` of {user} asks for {}", request.name, gpus(request.gpus))
            }
            Record::JobSubmitted { job } => format!("job {job} has reached the scheduler"),
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
            Record::JobRequeued { job, done, reason, not_before, .. } => {
                let when = match not_before {
                    Some(time) => format!("; it is tried again at {:.0} s", time.as_secs_f64()),
                    None => String::new(),
                };
                format!("job {job} waits again with {done:.1} iterations: {reason}{when}")
            }
            Record::JobFinished { job, done, .. } => format!("job {job} is finished, {done:.1} iterations"),
            Record::JobCancelled { job, user } => format!("job {job} was cancelled by {user}"),
            Record::JobFailed { job, reason } => format!("job {job} is given up: {reason}"),
            Record::NodeJoined { name, has, .. } => format!("{name} joined with {}", gpus(has.n_gpus)),
            Record::NodeLost { node, reason } => format!("{} is lost: {reason}", of(node)),
            Record::NodeReturned { node } => format!("{} is back", of(node)),
            Record::NodeDrained { node, is_drained: true, user, reason } => {
                format!("{} is drained by {user}{}", of(node), because(reason))
            }
            Record::NodeDrained { node, user, .. } => format!("{} is back in service, by {user}", of(node)),
            Record::GpuLost { node, gpu, reason } => {
                format!("GPU {gpu} of {} is out of service: {reason}", of(node))
            }
            Record::GpuReturned { node, gpu } => format!("GPU {gpu} of {} is back", of(node)),
            Record::PolicySet { policy, user, .. } => format!("policy {policy} decides, set by {user}"),
            Record::PolicyFailed { reason } => format!("the policy failed, what runs is kept: {reason}"),
            Record::RoundBegan { round, .. } => format!("round {round}"),
            Record::Planned { round, plan, .. } => format!("round {round}: {}", plan.to_text()),
            Record::PlanOvertaken { round, reason } => {
                format!("round {round} was overtaken by events and is held again: {reason}")
            }
            Record::TimeJumped { jobs, user } if user.is_empty() => {
                format!("time was skipped while {} jobs ran", jobs.len())
            }
            Record::TimeJumped { jobs, user } => {
                format!("time was skipped by {user} while {} jobs ran", jobs.len())
            }
            Record::Acted { user, role, action } => format!("{user} ({role}) {action}"),
            Record::Noted { text } => text.clone(),
            Record::JobTimedOut { job, ran } => {
                format!("job {job} has run for {:.0} s, its time limit, and is stopped", ran.as_secs_f64())
            }
            Record::JobDeclined { job, reason } => format!("job {job} is declined: {reason}"),
            Record::JobExited { job, incarnation, code } => {
                format!("job {job} failed with code {code}, launch {incarnation}")
            }
            Record::JobHeld { job, user, .. } => format!("job {job} is held by {user}"),
            Record::JobReleased { job, user } => format!("job {job} was released by {user}"),
            Record::JobSentBack { job, user } => format!("job {job} was sent back to the queue by {user}"),
            Record::JobPrioritized { job, priority, user } => {
                format!("job {job} has priority {priority}, set by {user}")
            }
            Record::NodeClosed { node, user, reason } => {
                format!("{} takes no new jobs, closed by {user}{}", of(node), because(reason))
            }
            Record::NodeOpened { node, user } => format!("{} takes new jobs again, by {user}", of(node)),
            Record::PolicyRefused { reason } => reason.clone(),
            Record::RestoreAccepted { lineage } => {
                format!("an operator accepted this state, restored from an older copy: lineage {lineage}")
            }
            Record::NumbersSkipped { first_job, first_launch } => {
                format!("jobs are numbered from {first_job} on, launches from {first_launch} on")
            }
            Record::JobAdopted { job, incarnation, allocation } => {
                let n_gpus = allocation.n_gpus();
                format!("job {job} was found running on {} and goes on, launch {incarnation}", gpus(n_gpus))
            }
            Record::JobRecalled { job, incarnation, end } => {
                let how = match end {
                    JobEnd::None => "was stopped",
                    JobEnd::Finished => "was finished",
                    JobEnd::Cancelled => "was cancelled",
                    JobEnd::Failed => "was given up",
                };
                format!("job {job} {how} before the restore, as its node remembers (launch {incarnation})")
            }
            Record::JobResumed { job } => format!("job {job} may be tried again"),
            Record::NodeCutOff { node, reason } => format!("{} cannot be reached: {reason}", of(node)),
            Record::Progressed { jobs } => format!("{} jobs have reported progress", jobs.len()),
            Record::Image { image } => format!("everything before: {} jobs have not ended", image.n_jobs()),
        }
    }

    /// The job that it is about; none if it is about the cluster or several jobs.
    pub fn job(&self) -> Option<rota_core::ids::JobId> {
        match self {
            Record::JobReceived { job, .. }
            | Record::JobSubmitted { job }
            | Record::JobStarted { job, .. }
            | Record::JobProgressed { job, .. }
            | Record::JobPaced { job, .. }
            | Record::JobCheckpointed { job, .. }
            | Record::JobStopped { job, .. }
            | Record::JobRequeued { job, .. }
            | Record::JobFinished { job, .. }
            | Record::JobCancelled { job, .. }
            | Record::JobFailed { job, .. }
            | Record::JobTimedOut { job, .. }
            | Record::JobDeclined { job, .. }
            | Record::JobExited { job, .. }
            | Record::JobHeld { job, .. }
            | Record::JobReleased { job, .. }
            | Record::JobSentBack { job, .. }
            | Record::JobPrioritized { job, .. }
            | Record::JobAdopted { job, .. }
            | Record::JobRecalled { job, .. }
            | Record::JobResumed { job } => Some(*job),
            Record::HeadStarted { .. }
            | Record::NodeJoined { .. }
            | Record::NodeLost { .. }
            | Record::NodeCutOff { .. }
            | Record::NodeReturned { .. }
            | Record::NodeDrained { .. }
            | Record::GpuLost { .. }
            | Record::GpuReturned { .. }
            | Record::PolicySet { .. }
            | Record::PolicyFailed { .. }
            | Record::RoundBegan { .. }
            | Record::Planned { .. }
            | Record::PlanOvertaken { .. }
            | Record::TimeJumped { .. }
            | Record::Acted { .. }
            | Record::Noted { .. }
            | Record::NodeClosed { .. }
            | Record::NodeOpened { .. }
            | Record::PolicyRefused { .. }
            | Record::RestoreAccepted { .. }
            | Record::NumbersSkipped { .. }
            | Record::Progressed { .. }
            | Record::Image { .. } => None,
        }
    }

    /// The node that it is about; none if it is about none or several.
    pub fn node(&self) -> Option<rota_core::ids::NodeId> {
        match self {
            Record::NodeJoined { node, .. }
            | Record::NodeLost { node, .. }
            | Record::NodeCutOff { node, .. }
            | Record::NodeReturned { node }
            | Record::NodeDrained { node, .. }
            | Record::NodeClosed { node, .. }
            | Record::NodeOpened { node, .. }
            | Record::GpuLost { node, .. }
            | Record::GpuReturned { node, .. } => Some(*node),
            _ => None,
        }
    }

    /// The person it names; empty if it names none.
    pub fn user(&self) -> &str {
        match self {
            Record::JobReceived { user, .. }
            | Record::JobCancelled { user, .. }
            | Record::NodeDrained { user, .. }
            | Record::PolicySet { user, .. }
            | Record::TimeJumped { user, .. }
            | Record::JobHeld { user, .. }
            | Record::JobReleased { user, .. }
            | Record::JobSentBack { user, .. }
            | Record::JobPrioritized { user, .. }
            | Record::NodeClosed { user, .. }
            | Record::NodeOpened { user, .. }
            | Record::Acted { user, .. } => user,
            _ => "",
        }
    }

    /// Whether it stays in the history when it leaves the journal: what happened does, what was measured and decided in every
    /// round does not.
    pub fn is_event(&self) -> bool {
        !matches!(
            self,
            Record::JobProgressed { .. }
                | Record::Progressed { .. }
                | Record::JobPaced { .. }
                | Record::JobCheckpointed { .. }
                | Record::JobSubmitted { .. }
                | Record::RoundBegan { .. }
                | Record::Planned { .. }
                | Record::PlanOvertaken { .. }
                | Record::Image { .. }
        )
    }
}

/// `1 GPU`, `2 GPUs`.
pub(crate) fn gpus(n: u32) -> String {
    format!("{n} GPU{}", if n == 1 { "" } else { "s" })
}

/// A reason at the end of a sentence, if there is one.
fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}
