//! One round's decision: the policy is asked, guards mend its plan, the plan is checked.
//!
//! Simulator, head, replay and what-if all decide here; they differ in where the snapshot comes from and in what they do
//! with the answer. Everything a decision depends on is in the snapshot, including the longer minimum run time with
//! which the head keeps a round that was brought forward from stopping young jobs ([`Scheduler::set_min_run`]), and speeds
//! corrected by what jobs report ([`Event::JobCorrected`]). Both reach the scheduler as facts that the head writes to its
//! journal, so a replay sees the same snapshot.
//!
//! [`Scheduler::set_min_run`]: crate::scheduler::Scheduler::set_min_run
//! [`Event::JobCorrected`]: crate::event::Event::JobCorrected

use crate::allocation::Slice;
use crate::check::{CheckedPlan, PlanViolation, check};
use crate::guards;
use crate::plan::{Hold, Plan, Wake};
use crate::policy::{Policy, PolicyError};
use crate::snapshot::Snapshot;

/// The answer of a round.
#[derive(Debug)]
pub struct Decision {
    /// What is to run, checked against the snapshot it was decided on. Its own notes are empty: they are below.
    pub checked: CheckedPlan,
    /// When the policy wants to be asked again.
    pub wake: Wake,
    /// Remarks of the policy, then those of the guards.
    pub notes: Vec<String>,
}

/// A round without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoundError {
    /// The policy did not decide.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy's plan breaks a rule that no guard mends.
    #[error("the plan cannot be carried out: {0}")]
    Violation(#[from] PlanViolation),
}

/// Decides a round on what the snapshot shows.
pub fn decide(snapshot: &Snapshot, policy: &mut dyn Policy) -> Result<Decision, RoundError> {
    let mut plan = policy.decide(snapshot)?;
    guards::mend(snapshot, &mut plan);
    let (wake, notes) = (plan.wake, std::mem::take(&mut plan.notes));
    let checked = check(snapshot, plan)?;
    Ok(Decision { checked, wake, notes })
}

/// Checks a decision again after events that came while it was taken. Jobs that have ended
/// meanwhile are left out; anything else that no longer fits is a violation.
pub fn accept(snapshot: &Snapshot, decision: Decision) -> Result<Decision, PlanViolation> {
    let Decision { checked, wake, notes } = decision;
    let mut plan = checked.into_plan();
    plan.run.retain(|run| snapshot.jobs.row(run.job).is_some());
    plan.verdicts.retain(|(job, _)| snapshot.jobs.row(*job).is_some());
    enters_no_closed_node(snapshot, &plan)?;
    Ok(Decision { checked: check(snapshot, plan)?, wake, notes })
}

/// Whether no job is to start on a node that was closed to new jobs while the policy decided.
fn enters_no_closed_node(snapshot: &Snapshot, plan: &Plan) -> Result<(), PlanViolation> {
    for run in &plan.run {
        let (Hold::Take(wanted), Some(row)) = (&run.what, snapshot.jobs.row(run.job)) else { continue };
        let holds = |slice: &Slice| {
            snapshot
                .jobs
                .allocation(row)
                .slices
                .iter()
                .any(|has| (has.node, has.gpus) == (slice.node, slice.gpus))
        };
        let closed = |slice: &&Slice| snapshot.nodes.closed.contains_key(&slice.node) && !holds(slice);
        if let Some(slice) = wanted.slices.iter().find(closed) {
            let (job, node, why) = (run.job, slice.node, "takes no new jobs");
            return Err(PlanViolation::NoSuchNode { job, node, why });
        }
    }
    Ok(())
}
