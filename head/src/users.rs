//! Answers to people. What must be durable is answered when it is; what the desk or an agent must say, when they did.

use rota_core::ids::JobId;
use rota_traces::profile::ProfileSet;
use rota_transport::message::{Attempt, FromUser, JobRequest, Launcher, PROTOCOL_VERSION, Task, ToUser};
use rota_transport::value::{LongText, MOST_LOG_BYTES, Name, Text};
use tokio::sync::mpsc;

use super::desk::Ask;
use super::engine::{Engine, Waiting, failed};
use super::explain;
use super::forward;
use super::record::Record;
use super::state::Moment;
use super::views;

/// Jobs in one request.
const MOST_JOBS_AT_ONCE: usize = 10_000;

/// Answers a request, or sees to it that it will be.
pub(super) fn answer(
    engine: &mut Engine,
    moment: Moment,
    user: &Name,
    request: FromUser,
    reply: mpsc::Sender<ToUser>,
) {
    let answers = match request {
        FromUser::Status { protocol } if protocol != PROTOCOL_VERSION => vec![failed(&format!(
            "this program speaks protocol {protocol}, the head {PROTOCOL_VERSION}: install the same version of both"
        ))],
        FromUser::Status { .. } => vec![ToUser::Status(views::status(engine, moment)), ToUser::End],
        FromUser::Submit { jobs, key } => submit(engine, moment, user, jobs, key),
        FromUser::Cancel { jobs } => cancel(engine, moment, user, &jobs),
        FromUser::Jobs { which } => views::jobs(engine, &which),
        FromUser::Nodes => vec![ToUser::Nodes(views::nodes(engine)), ToUser::End],
        FromUser::Logs { job, offset } => match logs(engine, moment, job, offset, reply.clone()) {
            Ok(()) => return,
            Err(why) => vec![failed(&why)],
        },
        FromUser::Drain { node, is_drained } => drain(engine, moment, user, &node, is_drained),
        FromUser::Events { from } => views::events(engine, from),
        FromUser::SetPolicy { policy, set } => {
            let snapshot = Some(engine.state.books.scheduler.snapshot(moment.now));
            let (policy, set) = (policy.to_string(), strings(&set));
            let known = &engine.state.books.chosen;
            let is_known = (&known.policy, &known.set) == (&policy, &set);
            let memory = if is_known { known.memory.clone() } else { String::new() };
            return ask(engine, user, reply, |ticket| Ask::Take { ticket, policy, set, memory, snapshot });
        }
        FromUser::ReloadPolicy => {
            let snapshot = Some(engine.state.books.scheduler.snapshot(moment.now));
            return ask(engine, user, reply, |ticket| Ask::Reload { ticket, snapshot });
        }
        FromUser::WhatIf { policy, set } => {
            let snapshot = engine.state.books.scheduler.snapshot(moment.now);
            let (policy, set) = (policy.to_string(), strings(&set));
            return ask(engine, user, reply, |ticket| Ask::WhatIf { ticket, policy, set, snapshot });
        }
        FromUser::Explain { job } => match explain::explain(engine, moment, job) {
            Ok(text) => vec![ToUser::Text(LongText::cut(&text)), ToUser::End],
            Err(why) => vec![failed(&why)],
        },
        FromUser::Journal => views::journal(engine),
        FromUser::Shutdown => {
            engine.end();
            vec![ToUser::End]
        }
        FromUser::FastForward { until, n_iterations } => {
            match forward::fast_forward(engine, moment, until, n_iterations) {
                Ok(moment) => vec![ToUser::Status(views::status(engine, moment)), ToUser::End],
                Err(why) => vec![failed(&why)],
            }
        }
        FromUser::StopAll => {
            engine.wind_down(moment);
            vec![ToUser::End]
        }
        FromUser::Rules => match serde_json::to_string(&engine.rules) {
            Ok(text) => views::in_pieces(&text),
            Err(error) => vec![failed(&error.to_string())],
        },
    };
    engine.replies.push((reply, answers));
}

fn ask(engine: &mut Engine, user: &Name, reply: mpsc::Sender<ToUser>, make: impl FnOnce(u64) -> Ask) {
    engine.next_ticket += 1;
    let ticket = engine.next_ticket;
    engine.tickets.insert(ticket, Waiting::Desk(reply, user.clone()));
    if engine.asks.send(make(ticket)).is_err() {
        engine.trouble = "the desk is gone".into();
    }
}

fn strings(set: &[(Text, Text)]) -> Vec<(String, String)> {
    set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn submit(engine: &mut Engine, moment: Moment, user: &Name, jobs: Vec<JobRequest>, key: u64) -> Vec<ToUser> {
    if let Some(known) = engine.state.books.answered.get(&(user.to_string(), key)) {
        return vec![ToUser::Submitted(known.clone()), ToUser::End];
    }
    if let Some(why) = &engine.disk_trouble {
        return vec![failed(&format!("the head cannot write its journal, no job is taken in: {why}"))];
    }
    if jobs.is_empty() || jobs.len() > MOST_JOBS_AT_ONCE {
        return vec![failed(&format!(
            "{} jobs: 1 to {MOST_JOBS_AT_ONCE} can be submitted at once",
            jobs.len()
        ))];
    }
    let profiles = engine.state.books.profiles();
    if let Some(why) = jobs.iter().find_map(|job| check_request(job, profiles).err()) {
        return vec![failed(&why)];
    }
    let mut ids = Vec::new();
    for request in jobs {
        let job = JobId::from(engine.state.books.jobs.len());
        ids.push(job);
        let record = Record::JobReceived { job, user: user.to_string(), key, request: Box::new(request) };
        engine.state.record(moment, record);
    }
    vec![ToUser::Submitted(ids), ToUser::End]
}

fn check_request(job: &JobRequest, profiles: &ProfileSet) -> Result<(), String> {
    let wrong = |why: String| Err(format!("job `{}`: {why}", job.name));
    let model = job.model.as_str();
    if !model.is_empty() && profiles.get(model).is_none() {
        let known: Vec<_> = profiles.entries().iter().map(|entry| entry.profile.name.as_str()).collect();
        return wrong(format!("no model `{model}` in the head's profiles: there are {}", known.join(", ")));
    }
    if job.gpus == 0 || job.gpus > 100_000 {
        return wrong(format!("asks for {} GPUs", job.gpus));
    }
    let ascends = job.levels.windows(2).all(|pair| pair.first() < pair.last());
    if !ascends || job.levels.first() == Some(&0) || job.levels.len() > 64 {
        return wrong(format!("GPU levels must ascend from 1, got {:?}", job.levels));
    }
    if job.work.count() <= 0.0 && (!model.is_empty() || job.start.launcher == Launcher::Emulated) {
        return wrong("asks for no work: give its iterations, or its time".into());
    }
    if job.start.argv.is_empty() && job.start.launcher == Launcher::Process {
        return wrong("has no command".into());
    }
    Ok(())
}

fn cancel(engine: &mut Engine, moment: Moment, user: &Name, jobs: &[JobId]) -> Vec<ToUser> {
    for job in jobs {
        match engine.state.books.job(*job) {
            None => return vec![failed(&format!("job {job}: there is no such job"))],
            Some(known) if known.standing.is_over() => {
                return vec![failed(&format!("job {job} has ended"))];
            }
            Some(_) => {}
        }
    }
    for job in jobs {
        engine.state.record(moment, Record::JobCancelled { job: *job, user: user.to_string() });
    }
    vec![ToUser::End]
}

fn drain(engine: &mut Engine, moment: Moment, user: &Name, name: &Name, is_drained: bool) -> Vec<ToUser> {
    let Some(node) = engine.state.books.node(name.as_str()) else {
        return vec![failed(&format!("{name}: there is no such node"))];
    };
    if engine.state.books.drained.contains(&node) == is_drained {
        let is = if is_drained { "is drained already" } else { "is not drained" };
        return vec![failed(&format!("{name} {is}"))];
    }
    let user = user.to_string();
    engine.state.record(moment, Record::NodeDrained { node, is_drained, user });
    let is_there = engine.state.agents.get(name).is_some_and(|agent| agent.is_known);
    if !is_drained && is_there {
        engine.state.record(moment, Record::NodeReturned { node });
    }
    vec![ToUser::End]
}

fn logs(
    engine: &mut Engine,
    moment: Moment,
    job: JobId,
    offset: u64,
    reply: mpsc::Sender<ToUser>,
) -> Result<(), String> {
    let known = engine.state.books.job(job).ok_or_else(|| format!("job {job}: there is no such job"))?;
    let (incarnation, nodes) = &known.last_launch;
    let attempt = Attempt { job, incarnation: *incarnation };
    let node = *nodes.first().ok_or_else(|| format!("job {job} has not started yet"))?;
    let name = engine.state.books.nodes.get(node.index()).cloned().unwrap_or_default();
    let is_there =
        engine.state.agents.values().any(|agent| agent.node == Some(node) && agent.session.is_open());
    if !is_there {
        return Err(format!("job {job}: its output is on {name}, which is not there"));
    }
    let task = Task::ReadLog { attempt, offset, n_bytes: MOST_LOG_BYTES as u32 };
    let key = engine.state.order(moment, node, task).ok_or("nobody to ask")?;
    engine.readers.insert(key, reply);
    Ok(())
}
