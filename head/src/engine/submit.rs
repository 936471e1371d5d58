//! Submissions: which jobs are taken in, and for whom they count.

use rota_traces::profile::ProfileSet;
use rota_transport::message::{JobRequest, Launcher, ToUser};
use rota_transport::value::{Text, is_plain};

use super::Engine;
use super::refusal::{JobFault, Refusal};
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
