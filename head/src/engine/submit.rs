//! Submissions: which jobs are taken in, and for whom they count.

use rota_core::time::Span;
use rota_traces::profile::ProfileSet;
use rota_transport::message::{JobRequest, Launcher, Needs, ToUser};
use rota_transport::value::{Text, is_plain};

use super::refusal::{JobFault, Refusal};
use super::{Engine, access};
use crate::cluster_state::Standing;
use crate::record::Record;
use crate::roles::Person;
use crate::state::Moment;

/// The most jobs in one request.
const MOST_JOBS_AT_ONCE: usize = 10_000;

/// Takes jobs in, all or none.
pub(super) fn submit(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    jobs: Vec<JobRequest>,
    key: u64,
) -> Result<Vec<ToUser>, Refusal> {
    let user = person.name.as_str();
    if let Some(known) = engine.state.cluster().answered(user, key) {
        return Ok(vec![ToUser::Submitted(known.to_vec()), ToUser::End]);
    }
    if let Some(why) = &engine.disk_trouble {
        return Err(Refusal::Disk(why.clone()));
    }
    if jobs.is_empty() || jobs.len() > MOST_JOBS_AT_ONCE {
        return Err(Refusal::NumberOfJobs(jobs.len(), MOST_JOBS_AT_ONCE));
    }
    let mut jobs = jobs;
    for job in &mut jobs {
        check_conditions(engine, person, job)?;
        let checked =
            check_request(job, engine.state.cluster().profiles()).and_then(|()| set_tenant(person, job));
        checked.map_err(|fault| Refusal::Job { name: job.name.clone(), fault })?;
    }
    let mut ids = Vec::new();
    for request in jobs {
        let job = engine.state.cluster().next_job();
        ids.push(job);
        let record = Record::JobReceived { job, user: user.to_string(), key, request: Box::new(request) };
        engine.state.record(moment, record);
    }
    Ok(vec![ToUser::Submitted(ids), ToUser::End])
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

fn check_request(job: &JobRequest, profiles: &ProfileSet) -> Result<(), JobFault> {
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
    Ok(())
}
