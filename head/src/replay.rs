//! A journal played again: the same policy must give the same plans, another one shows what it would have done.

use anyhow::Result;
use rota_core::guards;
use rota_core::ids::JobId;
use rota_core::policy::Policy as _;
use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_scripts::ScriptPolicy;

use super::books::Books;
use super::desk;
use super::record::{PlanRecord, Record};
use super::rules::Rules;

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Decisions in the journal that were made true.
    pub n_plans: u64,
    /// Decisions that came out equal.
    pub n_equal: u64,
    /// Rounds without a plan: the policy failed, or events overtook it.
    pub n_without: u64,
    /// The first difference.
    pub first_difference: Option<String>,
}

/// Plays a journal, asking the policy at every round; `other` instead of the one that decided. The rules are those of
/// the journal; `rules` stand in until it names some.
pub fn replay(
    journal: &[(Time, Record)],
    rules: &Rules,
    other: Option<(&str, &[(String, String)])>,
) -> Result<Replayed> {
    let (mut books, mut rules) = (Books::new(rules)?, rules);
    let mut policy = other.map(|(name, set)| desk::load(name, set)).transpose()?;
    // What the policy was asked about and has not answered. It is asked here when the answer was taken: another policy may
    // have been set in between, and then that one answered.
    let mut asked: Option<(u64, Snapshot)> = None;
    let mut replayed = Replayed::default();
    for (index, (now, record)) in journal.iter().enumerate() {
        if let Record::HeadStarted { rules: Some(new), .. } = record
            && **new != *rules
        {
            rules = new;
            // A head that starts by other rules reads all that was written before in their light.
            books = Books::new(rules)?;
            for (time, record) in journal.get(..index).unwrap_or_default() {
                books.apply(*time, record);
            }
        }
        match record {
            Record::PolicySet { policy: name, set, .. } if other.is_none() => {
                let mut script = desk::load(name, set)?;
                let memory = policy.as_ref().map(|policy: &ScriptPolicy| policy.memory()).unwrap_or_default();
                if (name, set) == (&books.chosen.policy, &books.chosen.set) && !memory.is_empty() {
                    script.restore_memory(&memory)?;
                }
                policy = Some(script);
            }
            Record::HeadStarted { .. } if other.is_none() && !books.chosen.policy.is_empty() => {
                // Whoever was asked before is gone.
                replayed.n_without += u64::from(asked.take().is_some());
                let mut script = desk::load(&books.chosen.policy, &books.chosen.set)?;
                if !books.chosen.memory.is_empty() {
                    script.restore_memory(&books.chosen.memory)?;
                }
                policy = Some(script);
            }
            Record::Planned { round, plan, .. } => {
                let mine = asked.take().filter(|(mine, _)| mine == round);
                let mine = mine.and_then(|(_, snapshot)| decide(policy.as_mut(), &snapshot));
                let is_there = |job: JobId| books.scheduler.jobs().row(job).is_some();
                compare(&mut replayed, *now, *round, plan, mine, is_there);
            }
            // The policy answered, to no effect but on its memory.
            Record::PlanOvertaken { .. } | Record::PolicyFailed { .. } | Record::RoundBegan { .. } => {
                if let Some((_, snapshot)) = asked.take() {
                    replayed.n_without += 1;
                    decide(policy.as_mut(), &snapshot);
                }
            }
            _ => {}
        }
        books.apply(*now, record);
        if let Record::RoundBegan { round, .. } = record {
            asked = Some((*round, books.scheduler.snapshot(*now)));
        }
    }
    Ok(replayed)
}

/// A decision as the head would write it down; none when there is no policy.
fn decide(policy: Option<&mut ScriptPolicy>, snapshot: &Snapshot) -> Option<Result<PlanRecord, String>> {
    let decided = policy?.decide(snapshot).map_err(|error| error.to_string());
    Some(decided.map(|mut plan| {
        guards::mend(snapshot, &mut plan);
        PlanRecord::from(&plan)
    }))
}

fn compare(
    replayed: &mut Replayed,
    now: Time,
    round: u64,
    theirs: &PlanRecord,
    mine: Option<Result<PlanRecord, String>>,
    is_there: impl Fn(JobId) -> bool,
) {
    replayed.n_plans += 1;
    let difference = match mine {
        None => Some("nobody was asked".to_owned()),
        Some(Err(error)) => Some(error),
        Some(Ok(mine)) => differs(theirs, &mine, is_there),
    };
    match difference {
        None => replayed.n_equal += 1,
        Some(text) => {
            let text = format!("at {now} s, round {round}: {text}");
            replayed.first_difference.get_or_insert(text);
        }
    }
}

/// Jobs that ended while the policy decided were taken out of the plan that was made true: they are no difference.
fn differs(theirs: &PlanRecord, mine: &PlanRecord, is_there: impl Fn(JobId) -> bool) -> Option<String> {
    let others = mine.run.iter().filter(|(job, _)| is_there(*job));
    let is_theirs = |job: &JobId| theirs.run.iter().any(|(theirs, _)| theirs == job);
    if let Some((job, _)) = others.into_iter().find(|(job, _)| !is_theirs(job)) {
        return Some(format!("job {job} did not run, and would"));
    }
    for (job, allocation) in &theirs.run {
        match mine.run.iter().find(|(mine, _)| mine == job) {
            None => return Some(format!("job {job} ran, and would not")),
            Some((_, mine)) if mine != allocation => {
                return Some(format!("job {job} ran with {allocation:?}, and would with {mine:?}"));
            }
            Some(_) => {}
        }
    }
    let verdict = theirs.verdicts.iter().find(|verdict| !mine.verdicts.contains(verdict));
    verdict.map(|(job, verdict)| format!("job {job} was given the verdict {verdict:?}, and would not"))
}
