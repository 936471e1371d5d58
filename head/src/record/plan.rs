//! A plan as the journal has it: verdicts and allocations without the types of a decision.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::allocation::Allocation;
use rota_core::ids::JobId;
use rota_core::plan::{Hold, Plan, Run, Verdict, Wake};
use rota_core::round::Decision;
use rota_core::table::{JobPhase, JobTable};
use rota_core::time::Time;
use serde::{Deserialize, Serialize};

/// A plan as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Answers to jobs that ask for admission: a reason declines, none admits.
    pub verdicts: Vec<(JobId, Option<String>)>,
    /// Jobs that are to run; one without an allocation keeps what it has. Where `stopped` is there, only jobs that
    /// are given something else than they hold are listed.
    pub run: Vec<(JobId, Option<Allocation>)>,
    /// Jobs that ran and are to stop; all others that run keep what they have. In journals of earlier versions it is absent, and
    /// jobs that are not listed stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Vec<JobId>>,
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
            stopped: None,
            wake: plan.wake.into(),
            notes: plan.notes.clone(),
        }
    }
}

impl PlanRecord {
    /// The same plan, with nothing in it about jobs that keep what they have.
    #[must_use]
    pub fn without_what_stays(self, jobs: &JobTable) -> Self {
        let listed: BTreeSet<JobId> = self.run.iter().map(|(job, _)| *job).collect();
        let stopped = running(jobs).filter(|job| !listed.contains(job)).collect();
        let stays = |(job, allocation): &(JobId, Option<Allocation>)| {
            held(jobs, *job).is_some_and(|held| allocation.as_ref().is_none_or(|wanted| wanted == held))
        };
        let run = self.run.into_iter().filter(|entry| !stays(entry)).collect();
        PlanRecord { run, stopped: Some(stopped), ..self }
    }

    /// Every job that is to run, with its allocation if that is another than it holds.
    pub fn whole(&self, jobs: &JobTable) -> BTreeMap<JobId, Option<Allocation>> {
        let mut whole: BTreeMap<_, _> = match &self.stopped {
            Some(stopped) => {
                let stopped: BTreeSet<_> = stopped.iter().collect();
                running(jobs).filter(|job| !stopped.contains(job)).map(|job| (job, None)).collect()
            }
            None => BTreeMap::new(),
        };
        for (job, allocation) in &self.run {
            let other = allocation.clone().filter(|wanted| held(jobs, *job) != Some(wanted));
            whole.insert(*job, other);
        }
        whole
    }

    /// The plan, for a table in the state that it was decided for.
    pub fn to_plan(&self, jobs: &JobTable) -> Plan {
        let mut plan = Plan::from(self);
        if let Some(stopped) = &self.stopped {
            let named: BTreeSet<_> = stopped.iter().chain(self.run.iter().map(|(job, _)| job)).collect();
            let kept = running(jobs).filter(|job| !named.contains(job));
            plan.run.extend(kept.map(|job| Run { job, what: Hold::Keep }));
        }
        plan
    }

    /// What it changes, in words.
    pub fn to_text(&self) -> String {
        match &self.stopped {
            None => format!("{} jobs run", self.run.len()),
            Some(stopped) if stopped.is_empty() && self.run.is_empty() => "nothing changes".into(),
            Some(stopped) => format!("{} jobs start or change, {} stop", self.run.len(), stopped.len()),
        }
    }
}

/// Jobs that run, by number.
fn running(jobs: &JobTable) -> impl Iterator<Item = JobId> {
    let rows = (0..jobs.len()).filter(|row| jobs.phase(*row) == JobPhase::Running);
    rows.map(|row| jobs.id(row)).collect::<BTreeSet<_>>().into_iter()
}

fn held(jobs: &JobTable, job: JobId) -> Option<&Allocation> {
    let row = jobs.row(job).filter(|row| jobs.phase(*row) == JobPhase::Running)?;
    Some(jobs.allocation(row))
}

/// What is listed, and nothing else.
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
