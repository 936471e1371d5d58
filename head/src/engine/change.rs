//! What people ask of jobs that have not ended: to cancel, hold, release, requeue them, or to give them another priority; by
//! number, range, array, name or user.

use std::collections::BTreeSet;

use rota_core::ids::JobId;
use rota_transport::message::{JobChange, JobSelection};

use super::access::Found;
use super::refusal::Refusal;
use super::{Engine, access};
use crate::cluster_state::{JobRecord, Standing};
use crate::record::Record;
use crate::roles::Person;
use crate::state::Moment;

/// The most numbers, ranges and arrays in a request: each job is compared with all of them, and nobody else is answered meanwhile.
const MOST_NAMED: usize = 10_000;

/// Changes the jobs that were selected, all or none, and returns their numbers.
pub(super) fn change(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    selection: &JobSelection,
    change: JobChange,
) -> Result<Vec<JobId>, Refusal> {
    if let JobChange::Priority(priority) = change
        && priority > 0
        && !person.operates()
    {
        return Err(Refusal::Priority(priority));
    }
    let selected = selected(engine, person, selection)?;
    if selected.is_empty() {
        return Err(Refusal::NothingSelected);
    }
    let mut jobs = Vec::new();
    for id in selected {
        let Found::Here(job) = access::job(engine, person, id)? else {
            return Err(Refusal::JobHasEnded(id));
        };
        if applies(engine, id, job, change) {
            let held_by_operator = job.life.hold.as_ref().is_some_and(|hold| hold.by_operator);
            if change == JobChange::Release && held_by_operator && !person.operates() {
                return Err(Refusal::HeldByOperator(id));
            }
            let by_operator = person.operates() && job.user != person.name.as_str();
            jobs.push((id, by_operator));
        }
    }
    if jobs.is_empty() {
        return Err(Refusal::NothingToChange(match change {
            JobChange::Release => "is on hold",
            JobChange::Hold => "can be held: they are already",
            JobChange::Requeue => "runs",
            JobChange::Cancel | JobChange::Priority(_) => "can be changed",
        }));
    }
    engine.prove_disk()?;
    for (job, by_operator) in &jobs {
        let (job, user) = (*job, person.name.to_string());
        let record = match change {
            JobChange::Cancel => Record::JobCancelled { job, user },
            JobChange::Hold => Record::JobHeld { job, user, by_operator: *by_operator },
            JobChange::Release => Record::JobReleased { job, user },
            JobChange::Requeue => Record::JobSentBack { job, user },
            JobChange::Priority(priority) => Record::JobPrioritized { job, priority, user },
        };
        engine.state.record(moment, record);
    }
    Ok(jobs.into_iter().map(|(job, _)| job).collect())
}

/// Whether a change would change anything about a job.
fn applies(engine: &Engine, id: JobId, job: &JobRecord, change: JobChange) -> bool {
    match change {
        JobChange::Cancel | JobChange::Priority(_) => true,
        JobChange::Hold => job.life.hold.is_none(),
        JobChange::Release => job.life.hold.is_some(),
        JobChange::Requeue => {
            let jobs = engine.state.cluster().scheduler().jobs();
            let has_gpus = jobs.row(id).is_some_and(|row| !jobs.allocation(row).is_empty());
            job.standing == Standing::Active && has_gpus
        }
    }
}

/// The jobs that a request is about, by number. One that is named alone must be there, and not have ended.
fn selected(engine: &Engine, person: &Person, selection: &JobSelection) -> Result<BTreeSet<JobId>, Refusal> {
    let JobSelection { ranges, arrays, name, user } = selection;
    if ranges.is_empty() && arrays.is_empty() && name.as_str().is_empty() && user.as_str().is_empty() {
        return Err(Refusal::NoSelection);
    }
    let n_named = ranges.len() + arrays.len();
    if n_named > MOST_NAMED {
        return Err(Refusal::LongSelection(n_named, MOST_NAMED));
    }
    if !user.as_str().is_empty() && !person.may_touch(user.as_str()) {
        return Err(Refusal::OthersJobs(user.clone()));
    }
    for (first, last) in ranges {
        if first == last && access::job(engine, person, *first)?.is_over() {
            return Err(Refusal::JobHasEnded(*first));
        }
        if first > last {
            return Err(Refusal::Range(*first, *last));
        }
    }
    let mut together = BTreeSet::new();
    for id in arrays {
        // Of a job that has left the memory it is not known with which others it came.
        let Found::Here(job) = access::job(engine, person, *id)? else {
            return Err(Refusal::JobHasEnded(*id));
        };
        together.insert((job.user.clone(), job.life.key));
    }
    let is_any = ranges.is_empty() && arrays.is_empty();
    let all = engine.state.cluster().jobs().iter().map(|(id, job)| (*id, &**job));
    let is_meant = |(id, job): &(JobId, &JobRecord)| {
        let in_range = || ranges.iter().any(|(first, last)| first <= id && id <= last);
        let in_array = || !together.is_empty() && together.contains(&(job.user.clone(), job.life.key));
        !job.standing.is_over()
            && person.may_touch(&job.user)
            && (is_any || in_range() || in_array())
            && (name.as_str().is_empty() || job.request.name == *name)
            && (user.as_str().is_empty() || job.user == user.as_str())
    };
    Ok(all.filter(is_meant).map(|(id, _)| id).collect())
}
