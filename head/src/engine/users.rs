//! Answers to users. A request that changes something is answered once that is on the disk; one that needs the decider or
//! an agent, once they have answered.

use rota_core::ids::JobId;
use rota_traces::profile::ProfileSet;
use rota_transport::message::{Attempt, FromUser, JobRequest, Launcher, PROTOCOL_VERSION, Task, ToUser};
use rota_transport::value::{LongText, MOST_LOG_BYTES, Name, Text};

use super::refusal::{JobFault, Refusal};
use super::replies::{Reply, failed};
use super::{Engine, explain, fast_forward, views};
use crate::decider::{Ask, Waiting};
use crate::record::Record;
use crate::state::Moment;

/// The most jobs in one request.
const MOST_JOBS_AT_ONCE: usize = 10_000;

/// Answers a request, or passes it to the decider or an agent, whose answer is sent later.
pub(super) fn answer(engine: &mut Engine, moment: Moment, user: &Name, request: FromUser, reply: Reply) {
    let answers = match request {
        FromUser::SetPolicy { .. } | FromUser::ReloadPolicy | FromUser::WhatIf { .. } => {
            return ask_decider(engine, moment, Waiting { user: user.clone(), reply }, request);
        }
        FromUser::Logs { job, offset } => match fetch_log(engine, moment, job, offset, reply.clone()) {
            Ok(()) => return,
            Err(refusal) => Err(refusal),
        },
        request => answer_at_once(engine, moment, user, request),
    };
    engine.replies.push(reply, answers.unwrap_or_else(|refusal| vec![failed(&refusal.to_string())]));
}

fn answer_at_once(
    engine: &mut Engine,
    moment: Moment,
    user: &Name,
    request: FromUser,
) -> Result<Vec<ToUser>, Refusal> {
    Ok(match request {
        FromUser::Status { protocol } if protocol != PROTOCOL_VERSION => {
            return Err(Refusal::Protocol { theirs: protocol, ours: PROTOCOL_VERSION });
        }
        FromUser::Status { .. } => vec![ToUser::Status(views::status(engine, moment)), ToUser::End],
        FromUser::Submit { jobs, key } => submit(engine, moment, user, jobs, key)?,
        FromUser::Cancel { jobs } => cancel(engine, moment, user, &jobs)?,
        FromUser::Jobs { which } => views::jobs(engine, &which)?,
        FromUser::Nodes => vec![ToUser::Nodes(views::nodes(engine)), ToUser::End],
        FromUser::Drain { node, is_drained } => drain(engine, moment, user, &node, is_drained)?,
        FromUser::Events { from } => views::events(engine, from)?,
        FromUser::Explain { job } => {
            let text = explain::explain(engine, moment, job)?;
            vec![ToUser::Text(LongText::cut(&text)), ToUser::End]
        }
        FromUser::Journal => views::journal(engine)?,
        FromUser::Shutdown => {
            engine.is_over = true;
            vec![ToUser::End]
        }
        FromUser::FastForward { until, n_iterations } => {
            let moment = fast_forward::fast_forward(engine, moment, until, n_iterations)?;
            vec![ToUser::Status(views::status(engine, moment)), ToUser::End]
        }
        FromUser::StopAll => {
            engine.wind_down(moment);
            vec![ToUser::End]
        }
        FromUser::Rules => views::in_pieces(&serde_json::to_string(&engine.rules)?),
        FromUser::SetPolicy { .. }
        | FromUser::ReloadPolicy
        | FromUser::WhatIf { .. }
        | FromUser::Logs { .. } => unreachable!("answered when the decider or an agent has"),
    })
}

/// Requests that the decider answers.
fn ask_decider(engine: &mut Engine, moment: Moment, waiting: Waiting, request: FromUser) {
    let snapshot = engine.state.snapshot(moment);
    match request {
        FromUser::SetPolicy { policy, set } => {
            let (policy, set) = (policy.to_string(), strings(&set));
            let known = engine.state.cluster().policy();
            let is_known = (&known.name, &known.set) == (&policy, &set);
            let memory = if is_known { known.memory.clone() } else { String::new() };
            let snapshot = Some(snapshot);
            engine.decider.ask_for(waiting, |ticket| Ask::Choose { ticket, policy, set, memory, snapshot });
        }
        FromUser::WhatIf { policy, set } => {
            let (policy, set) = (policy.to_string(), strings(&set));
            engine.decider.ask_for(waiting, |ticket| Ask::WhatIf { ticket, policy, set, snapshot });
        }
        _ => engine.decider.ask_for(waiting, |ticket| Ask::Reload { ticket, snapshot: Some(snapshot) }),
    }
}

fn strings(set: &[(Text, Text)]) -> Vec<(String, String)> {
    set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn submit(
    engine: &mut Engine,
    moment: Moment,
    user: &Name,
    jobs: Vec<JobRequest>,
    key: u64,
) -> Result<Vec<ToUser>, Refusal> {
    if let Some(known) = engine.state.cluster().answered(user.as_str(), key) {
        return Ok(vec![ToUser::Submitted(known.to_vec()), ToUser::End]);
    }
    if let Some(why) = &engine.disk_trouble {
        return Err(Refusal::Disk(why.clone()));
    }
    if jobs.is_empty() || jobs.len() > MOST_JOBS_AT_ONCE {
        return Err(Refusal::NumberOfJobs(jobs.len(), MOST_JOBS_AT_ONCE));
    }
    for job in &jobs {
        let wrong = |fault| Refusal::Job { name: job.name.clone(), fault };
        check_request(job, engine.state.cluster().profiles()).map_err(wrong)?;
    }
    let mut ids = Vec::new();
    for request in jobs {
        let job = JobId::from(engine.state.cluster().jobs().len());
        ids.push(job);
        let record = Record::JobReceived { job, user: user.to_string(), key, request: Box::new(request) };
        engine.state.record(moment, record);
    }
    Ok(vec![ToUser::Submitted(ids), ToUser::End])
}

fn check_request(job: &JobRequest, profiles: &ProfileSet) -> Result<(), JobFault> {
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

fn cancel(engine: &mut Engine, moment: Moment, user: &Name, jobs: &[JobId]) -> Result<Vec<ToUser>, Refusal> {
    for job in jobs {
        let known = engine.state.cluster().job(*job).ok_or(Refusal::NoSuchJob(*job))?;
        if known.standing.is_over() {
            return Err(Refusal::JobHasEnded(*job));
        }
    }
    for job in jobs {
        engine.state.record(moment, Record::JobCancelled { job: *job, user: user.to_string() });
    }
    Ok(vec![ToUser::End])
}

fn drain(
    engine: &mut Engine,
    moment: Moment,
    user: &Name,
    name: &Name,
    is_drained: bool,
) -> Result<Vec<ToUser>, Refusal> {
    let cluster = engine.state.cluster();
    let node = cluster.node(name.as_str()).ok_or_else(|| Refusal::NoSuchNode(name.clone()))?;
    match (cluster.is_drained(node), is_drained) {
        (true, true) => return Err(Refusal::IsDrained(name.clone())),
        (false, false) => return Err(Refusal::IsNotDrained(name.clone())),
        _ => {}
    }
    let user = user.to_string();
    engine.state.record(moment, Record::NodeDrained { node, is_drained, user });
    let is_there = engine.state.agents().get(name).is_some_and(|agent| agent.is_known());
    if !is_drained && is_there {
        engine.state.record(moment, Record::NodeReturned { node });
    }
    Ok(vec![ToUser::End])
}

/// Orders a piece of a job's output; the user is answered when it comes.
fn fetch_log(
    engine: &mut Engine,
    moment: Moment,
    job: JobId,
    offset: u64,
    reply: Reply,
) -> Result<(), Refusal> {
    let cluster = engine.state.cluster();
    let (incarnation, nodes) = &cluster.job(job).ok_or(Refusal::NoSuchJob(job))?.last_launch;
    let attempt = Attempt { job, incarnation: *incarnation };
    let node = *nodes.first().ok_or(Refusal::JobHasNotStarted(job))?;
    let away = Refusal::OutputOutOfReach { job, node: cluster.node_name(node).to_owned() };
    if !engine.state.agents().is_open(node) {
        return Err(away);
    }
    let task = Task::ReadLog { attempt, offset, n_bytes: MOST_LOG_BYTES as u32 };
    let order = engine.state.order(moment, node, task).ok_or(away)?;
    engine.replies.wait_for(order, reply);
    Ok(())
}
