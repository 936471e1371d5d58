//! A journal replayed: the same policy must give the same plans, and another one shows what it would have done.
//!
//! The rules of a round are those of the live head, because both call `rota_core::round`; everything else that the head
//! adds to a decision is in the journal's records. A decision that led to no plan left no trace in the policy's memory,
//! so only rounds with a plan are decided again.

use rota_core::snapshot::Snapshot;
use rota_core::table::JobTable;
use rota_core::time::Time;

use crate::cluster_state::{ClusterState, CurrentPolicy};
use crate::decider::{DecideError, LoadedPolicy, Scripts};
use crate::error::ReplayError;
use crate::record::{PlanRecord, Record};
use crate::rules::Rules;

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Plans in the journal: decisions that were accepted.
    pub n_plans: u64,
    /// Plans that came out equal.
    pub n_equal: u64,
    /// Rounds without a plan: the policy failed, or events overtook it.
    pub n_without: u64,
    /// The first plan that came out different or does not fit, described in a sentence.
    pub first_difference: Option<String>,
}

/// Replays a journal, asking the policy at every round, or `other` in place of the policy that decided. The rules are
/// those of the journal; `rules` are used until it names some. A journal that was pruned is replayed from the image that
/// it begins with.
pub fn replay(
    journal: &[(Time, Record)],
    rules: &Rules,
    other: Option<(&str, &[(String, String)])>,
) -> Result<Replayed, ReplayError> {
    let mut cluster = ClusterState::at_start_of(journal, rules)?;
    let known = cluster.policy();
    let mut policy = match other {
        Some((name, set)) => Some(load(name, set, &[], "")?),
        // A journal that was pruned begins with a policy and its memory.
        None if !known.name.is_empty() => Some(load_known(known)?),
        None => None,
    };
    // What the policy was asked about and has not answered. It is asked here when the plan was accepted: another policy
    // may have been set in between, and then that one answered.
    let mut asked: Option<(u64, Snapshot)> = None;
    // A journal that was pruned may begin in the middle of a round: what the policy saw then is not known.
    let begun_before = cluster.n_rounds();
    let mut replayed = Replayed::default();
    let mut is_behind = false;
    for (now, record) in journal {
        match record {
            Record::PolicySet { policy: name, set, texts, files, .. } if other.is_none() => {
                let known = cluster.policy();
                let is_known = (name, set) == (&known.name, &known.set);
                let memory = policy.as_ref().filter(|_| is_known).map(LoadedPolicy::memory);
                let texts = [texts.as_slice(), files.as_slice()].concat();
                policy = Some(load(name, set, &texts, &memory.unwrap_or_default())?);
            }
            Record::HeadStarted { .. } if other.is_none() && !cluster.policy().name.is_empty() => {
                // The decider that had been asked ended with its head.
                replayed.n_without += u64::from(asked.take().is_some());
                policy = Some(load_known(cluster.policy())?);
            }
            Record::Planned { round, .. } if *round <= begun_before => is_behind = true,
            Record::Planned { round, plan, .. } => {
                let mine = asked.take().filter(|(mine, _)| mine == round);
                let mine = mine.and_then(|(_, snapshot)| decide(policy.as_mut(), &snapshot));
                replayed.compare(*now, *round, difference(plan, mine, cluster.scheduler().jobs()));
            }
            Record::PlanOvertaken { .. } | Record::PolicyFailed { .. } | Record::RoundBegan { .. } => {
                replayed.n_without += u64::from(asked.take().is_some());
            }
            _ => {}
        }
        if let Some(violation) = cluster.apply(*now, record).refused {
            let text = format!("at {now} s: a plan in the journal does not fit: {violation}");
            replayed.first_difference.get_or_insert(text);
        }
        if std::mem::take(&mut is_behind) && other.is_none() {
            // It did not decide, so it is given what it remembered afterwards.
            policy = Some(load_known(cluster.policy())?);
        }
        if let Record::RoundBegan { round, .. } = record {
            asked = Some((*round, cluster.snapshot(*now)));
        }
    }
    Ok(replayed)
}

fn load(
    name: &str,
    set: &[(String, String)],
    texts: &[(String, String)],
    memory: &str,
) -> Result<LoadedPolicy, ReplayError> {
    let failed = |error| ReplayError::Policy { policy: name.to_owned(), error: Box::new(error) };
    let scripts = Scripts::of_this_machine(texts.to_vec());
    LoadedPolicy::load(name, set, memory, &scripts).map_err(failed)
}

/// The policy of a state, with its memory.
fn load_known(known: &CurrentPolicy) -> Result<LoadedPolicy, ReplayError> {
    let texts = [known.texts.as_slice(), known.files.as_slice()].concat();
    load(&known.name, &known.set, &texts, &known.memory)
}

/// A decision as the head would write it down; none when there is no policy.
fn decide(policy: Option<&mut LoadedPolicy>, snapshot: &Snapshot) -> Option<Result<PlanRecord, DecideError>> {
    Some(policy?.decide(snapshot).map(|decision| PlanRecord::from(&decision)))
}

impl Replayed {
    fn compare(&mut self, now: Time, round: u64, difference: Option<String>) {
        self.n_plans += 1;
        match difference {
            None => self.n_equal += 1,
            Some(text) => {
                self.first_difference.get_or_insert(format!("at {now} s, round {round}: {text}"));
            }
        }
    }
}

fn difference(
    theirs: &PlanRecord,
    mine: Option<Result<PlanRecord, DecideError>>,
    jobs: &JobTable,
) -> Option<String> {
    match mine {
        None => Some("no policy was asked".to_owned()),
        Some(Err(error)) => Some(error.to_string()),
        Some(Ok(mine)) => differs(theirs, &mine, jobs),
    }
}

/// Jobs that ended while the policy decided were left out of the plan that was accepted: they are no difference.
fn differs(theirs: &PlanRecord, mine: &PlanRecord, jobs: &JobTable) -> Option<String> {
    let (their_run, my_run) = (theirs.whole(jobs), mine.whole(jobs));
    let mut others = my_run.keys().filter(|job| jobs.row(**job).is_some());
    if let Some(job) = others.find(|job| !their_run.contains_key(job)) {
        return Some(format!("job {job} did not run, but would have"));
    }
    for (job, allocation) in &their_run {
        match my_run.get(job) {
            None => return Some(format!("job {job} ran, but would not have")),
            Some(mine) if mine != allocation => {
                return Some(format!("job {job} ran with {allocation:?}, but would have run with {mine:?}"));
            }
            Some(_) => {}
        }
    }
    let verdict = theirs.verdicts.iter().find(|verdict| !mine.verdicts.contains(verdict));
    verdict
        .map(|(job, verdict)| format!("job {job} was given the verdict {verdict:?}, but would not have been"))
}
