//! Submissions: which jobs are taken in, and for whom they count.

use std::collections::BTreeMap;

use rota_core::ids::JobId;
use rota_core::time::Span;
use rota_traces::profile::ProfileSet;
use rota_transport::message::{JobRequest, Launcher, Needs, ToUser};
use rota_transport::value::{Text, is_plain};

use super::refusal::{JobFault, Refusal};
use super::replies::Reply;
use super::{Engine, access};
use crate::cluster_state::{JobRecord, Standing};
use crate::record::Record;
use crate::roles::Person;
use crate::settings::PersonLimits;

/// The most jobs in one request.
const MOST_JOBS_AT_ONCE: usize = 10_000;

/// Jobs that a person sent in one request.
pub(super) struct Submission {
    pub(super) person: Person,
    pub(super) jobs: Vec<JobRequest>,
    pub(super) key: u64,
    pub(super) reply: Reply,
}

/// Takes in what was submitted since the last batch, each request as a whole or not at all. All of it is written at once,
/// and only then do the jobs exist.
pub(super) fn take_in(engine: &mut Engine) {
    let submissions = std::mem::take(&mut engine.submissions);
    let moment = engine.clock.moment();
    let (mut records, mut accepted) = (Vec::new(), Vec::new());
    let mut taken: BTreeMap<(String, u64), Vec<JobId>> = BTreeMap::new();
    let mut next = engine.state.cluster().next_job();
    for Submission { person, jobs, key, reply } in submissions {
        let user = person.name.to_string();
        if let Some(known) = engine.state.cluster().answered(&user, key) {
            let answers = vec![ToUser::Submitted(known.to_vec()), ToUser::End];
            engine.replies.push_free(reply, answers);
            continue;
        }
        if let Some(known) = taken.get(&(user.clone(), key)) {
            accepted.push((reply, known.clone()));
            continue;
        }
        let disk = engine.disk_trouble.clone().map_or(Ok(()), |why| Err(Refusal::Disk(why)));
        let n_before = taken.iter().filter(|((who, _), _)| *who == user).map(|(_, ids)| ids.len()).sum();
        let checked = disk.and_then(|()| check_number(engine, &person, n_before, jobs.len()));
        match checked.and_then(|()| check(engine, &person, jobs)) {
            Ok(jobs) => {
                let mut ids = Vec::new();
                for request in jobs.into_iter().map(Box::new) {
                    let job = next;
                    next = JobId(job.0.saturating_add(1));
                    ids.push(job);
                    records.push(Record::JobReceived { job, user: user.clone(), key, request });
                }
                taken.insert((user, key), ids.clone());
                accepted.push((reply, ids));
            }
            Err(refusal) => engine.replies.refuse(reply, &refusal),
        }
    }
    if accepted.is_empty() {
        return;
    }
    let written = engine.change(moment, records);
    for (reply, ids) in accepted {
        match &written {
            Ok(()) => engine.replies.push_free(reply, vec![ToUser::Submitted(ids), ToUser::End]),
            Err(refusal) => engine.replies.refuse(reply, refusal),
        }
    }
}

/// Checks how many jobs a person has then that have not ended: one person's program must not use up the head's memory.
/// `n_before` are in the same batch.
fn check_number(engine: &Engine, person: &Person, n_before: usize, n_new: usize) -> Result<(), Refusal> {
    let (jobs, most) = (engine.state.cluster().jobs(), engine.access.limits.jobs);
    // Most of the time there are not so many jobs altogether.
    if person.operates() || jobs.len() + n_before + n_new <= most {
        return Ok(());
    }
    let is_open = |job: &JobRecord| !job.standing.is_over() && job.user == person.name.as_str();
    let n_open = jobs.values().filter(|job| is_open(job)).count() + n_before;
    if n_open + n_new <= most {
        return Ok(());
    }
    Err(Refusal::TooManyJobs { n_open, n_new, most })
}

/// Checks the jobs of a request, and names the tenants that they count for.
fn check(engine: &Engine, person: &Person, mut jobs: Vec<JobRequest>) -> Result<Vec<JobRequest>, Refusal> {
    if jobs.is_empty() || jobs.len() > MOST_JOBS_AT_ONCE {
        return Err(Refusal::NumberOfJobs(jobs.len(), MOST_JOBS_AT_ONCE));
    }
    for job in &mut jobs {
        check_conditions(engine, person, job)?;
        let checked = check_request(job, engine.state.cluster().profiles(), &engine.access.limits)
            .and_then(|()| set_tenant(person, job));
        checked.map_err(|fault| Refusal::Job { name: job.name.clone(), fault })?;
    }
    Ok(jobs)
}

/// Names the tenant that the job counts for: one of the person's, whatever the request says. A job that counts for its user
/// stays without.
fn set_tenant(person: &Person, job: &mut JobRequest) -> Result<(), JobFault> {
    let tenant = person.tenant(job.tenant.as_str()).ok_or_else(|| JobFault::Tenant {
        tenant: job.tenant.to_string(),
        user: person.name.clone(),
        known: person.tenants_text(),
    })?;
    let is_user = tenant == person.name.as_str();
    job.tenant = Text::cut(if is_user { "" } else { tenant });
    Ok(())
}

/// The most jobs that one job can wait for.
const MOST_DEPENDENCIES: usize = 10_000;

/// Checks when a job may begin, for how long it may run and how important it may be. What it waits for and has happened is
/// left out.
fn check_conditions(engine: &Engine, person: &Person, job: &mut JobRequest) -> Result<(), Refusal> {
    let name = job.name.clone();
    let wrong = |fault| Refusal::Job { name: name.clone(), fault };
    if job.priority > 0 && !person.operates() {
        return Err(wrong(JobFault::Priority(job.priority)));
    }
    let conditions = &mut job.conditions;
    if conditions.time_limit.is_some_and(|most| most.span() <= Span::ZERO) {
        return Err(wrong(JobFault::NoTime));
    }
    conditions.after.sort_unstable();
    conditions.after.dedup();
    if conditions.after.len() > MOST_DEPENDENCIES {
        return Err(wrong(JobFault::Dependencies(conditions.after.len(), MOST_DEPENDENCIES)));
    }
    let mut open = Vec::new();
    for dependency in &conditions.after {
        let standing = access::job(engine, person, dependency.job)?.standing();
        match (standing.is_over(), dependency.needs) {
            (false, _) => open.push(*dependency),
            (true, Needs::Finished) if standing != Standing::Finished => {
                let how = super::views::state_of_ended(standing).as_str();
                return Err(wrong(JobFault::Broken { job: dependency.job, how }));
            }
            (true, _) => {}
        }
    }
    conditions.after = open;
    Ok(())
}

fn check_request(job: &JobRequest, profiles: &ProfileSet, limits: &PersonLimits) -> Result<(), JobFault> {
    let names =
        [("name", &job.name), ("tenant", &job.tenant), ("model", &job.model), ("GPU type", &job.gpu_type)];
    if let Some((what, _)) = names.into_iter().find(|(_, text)| !is_plain(text.as_str())) {
        return Err(JobFault::ControlCharacter(what));
    }
    let model = job.model.as_str();
    if !model.is_empty() && profiles.get(model).is_none() {
        let known: Vec<_> = profiles.entries().iter().map(|entry| entry.profile.name.as_str()).collect();
        return Err(JobFault::UnknownModel { model: model.to_owned(), known: known.join(", ") });
    }
    if job.gpus == 0 || job.gpus > 100_000 {
        return Err(JobFault::NumberOfGpus(job.gpus));
    }
    let ascends = job.levels.windows(2).all(|pair| pair.first() < pair.last());
    if !ascends || job.levels.first() == Some(&0) || job.levels.len() > 64 {
        return Err(JobFault::Levels(job.levels.clone()));
    }
    if job.work.count() <= 0.0 && (!model.is_empty() || job.start.launcher == Launcher::Emulated) {
        return Err(JobFault::NoWork);
    }
    if job.start.argv.is_empty() && job.start.launcher == Launcher::Process {
        return Err(JobFault::NoCommand);
    }
    if job.start.grace.span() > limits.grace {
        return Err(JobFault::Grace { asked: job.start.grace.span(), most: limits.grace });
    }
    if let Launcher::Container(container) = &job.start.launcher {
        container.check()?;
    }
    Ok(())
}
