//! A plan as the journal has it: verdicts and allocations without the types of a decision.

use rota_core::allocation::Allocation;
use rota_core::ids::JobId;
use rota_core::plan::{Hold, Plan, Run, Verdict, Wake};
use rota_core::round::Decision;
use rota_core::time::Time;
use serde::{Deserialize, Serialize};

/// A plan as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Answers to jobs that ask for admission: a reason declines, none admits.
    pub verdicts: Vec<(JobId, Option<String>)>,
    /// Jobs that are to run; one without an allocation keeps what it has.
    pub run: Vec<(JobId, Option<Allocation>)>,
    /// When the policy wants to be asked again.
    pub wake: WakeRecord,
    /// Remarks of the policy and the guards.
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

impl From<&Decision> for PlanRecord {
    fn from(decision: &Decision) -> Self {
        let Decision { checked, wake, notes } = decision;
        PlanRecord { wake: (*wake).into(), notes: notes.clone(), ..PlanRecord::from(checked.plan()) }
    }
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
            wake: plan.wake.into(),
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
            wake: record.wake.into(),
            notes: record.notes.clone(),
        }
    }
}

impl From<Wake> for WakeRecord {
    fn from(wake: Wake) -> Self {
        match wake {
            Wake::NextRound => WakeRecord::NextRound,
            Wake::OnChange => WakeRecord::OnChange,
            Wake::AtOrOnChange(time) => WakeRecord::At(time),
        }
    }
}

impl From<WakeRecord> for Wake {
    fn from(record: WakeRecord) -> Self {
        match record {
            WakeRecord::NextRound => Wake::NextRound,
            WakeRecord::OnChange => Wake::OnChange,
            WakeRecord::At(time) => Wake::AtOrOnChange(time),
        }
    }
}
