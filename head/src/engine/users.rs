//! Answers to users. A request that changes something is answered once that is on the disk; one that needs the decider or
//! an agent, once they have answered.

use std::time::Duration;

use rota_core::ids::JobId;
use rota_core::table::JobPhase;
use rota_transport::access::RequestKind;
use rota_transport::identity::UserRole;
use rota_transport::message::{
    Attempt, FromUser, JobChange, JobSelection, NodeService, PROTOCOL_VERSION, SignInBy, Task, ToUser,
    WhichJobs,
};
use rota_transport::value::{LongText, MOST_LOG_BYTES, Name, Text};

use super::access::Found;
use super::change::change;
use super::drain::drain;
use super::refusal::Refusal;
use super::replies::Reply;
use super::streams::{self, Stream};
use super::submit::Submission;
use super::{Engine, access, explain, fast_forward, forecasts, history, policies, views};
use crate::roles::Person;
use crate::state::Moment;

/// The most pieces of output that a person can wait for at a time: each is an order to an agent, which has others to carry out.
const MOST_READING: usize = 64;

/// Answers a request, or passes it to the decider or an agent, whose answer is sent later.
pub(super) fn answer(engine: &mut Engine, moment: Moment, person: &Person, request: FromUser, reply: Reply) {
    if let Err(refusal) = access::check(person, request.kind()) {
        return engine.replies.refuse(reply, &refusal);
    }
    let is_free = access::needs_no_disk(request.kind());
    if let Some(why) = engine.disk_trouble.clone().filter(|_| !is_free) {
        return engine.replies.refuse(reply, &Refusal::Disk(why));
    }
    let answers = match request {
        FromUser::Submit { jobs, key } => {
            let person = person.clone();
            return engine.submissions.push(Submission { person, jobs, key, reply });
        }
        FromUser::SetPolicy { .. }
        | FromUser::SetPolicyText { .. }
        | FromUser::ReloadPolicy
        | FromUser::WhatIf { .. }
        | FromUser::WhatIfText { .. } => return policies::ask(engine, moment, person, request, reply),
        FromUser::Journal => return engine.replies.stream(&person.name, reply, Stream::Journal),
        FromUser::Events { from } => {
            let stream = views::events(engine, person, from);
            return engine.replies.stream(&person.name, reply, stream);
        }
        FromUser::Explain { job } if waits(engine, job) => {
            return match access::job(engine, person, job).map(drop) {
                Ok(()) => forecasts::explain(engine, moment, person, job, reply),
                Err(refusal) => engine.replies.refuse(reply, &refusal),
            };
        }
        FromUser::Forecast { jobs } => {
            return match jobs.iter().try_for_each(|job| access::job(engine, person, *job).map(drop)) {
                Ok(()) => forecasts::starts(engine, moment, person, jobs, reply),
                Err(refusal) => engine.replies.refuse(reply, &refusal),
            };
        }
        FromUser::Jobs { which: WhichJobs::All } => {
            let stream = views::all_jobs(engine, person);
            return engine.replies.stream(&person.name, reply, stream);
        }
        FromUser::Logs { job, offset } => {
            match fetch_log(engine, moment, person, job, offset, reply.clone()) {
                Ok(()) => return,
                Err(refusal) => Err(refusal),
            }
        }
        request => answer_at_once(engine, moment, person, request),
    };
    match answers {
        Err(refusal) => engine.replies.refuse(reply, &refusal),
        Ok(answers) if is_free => engine.replies.push_free(reply, answers),
        Ok(answers) => engine.replies.push(reply, answers),
    }
}

fn answer_at_once(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    request: FromUser,
) -> Result<Vec<ToUser>, Refusal> {
    Ok(match request {
        FromUser::Status { protocol } if protocol != PROTOCOL_VERSION => {
            return Err(Refusal::Protocol { theirs: protocol, ours: PROTOCOL_VERSION });
        }
        FromUser::Status { .. } => vec![ToUser::Status(views::status(engine, moment)), ToUser::End],
        FromUser::Cancel { jobs } => {
            change(engine, moment, person, &JobSelection::these(jobs), JobChange::Cancel)?;
            vec![ToUser::End]
        }
        FromUser::Change { jobs, change: what } => {
            vec![ToUser::Changed(change(engine, moment, person, &jobs, what)?), ToUser::End]
        }
        FromUser::Jobs { which } => views::jobs(engine, person, &which)?,
        FromUser::Nodes => vec![ToUser::Nodes(views::nodes(engine, person)), ToUser::End],
        FromUser::Drain { node, is_drained } => {
            let service = if is_drained { NodeService::Out } else { NodeService::In };
            drain(engine, moment, person, &node, service, &Text::cut(""))?
        }
        FromUser::ServiceNode { node, service, reason } => {
            drain(engine, moment, person, &node, service, &reason)?
        }
        FromUser::History { filter } => history::history(engine, person, &filter)?,
        FromUser::Explain { job } => {
            let ended = match access::job(engine, person, job)? {
                Found::Here(_) => None,
                Found::Ended(ended) => Some(explain::explain_ended(&ended)),
            };
            let text = match ended {
                Some(text) => text,
                None => explain::explain(engine, moment, job)?,
            };
            vec![ToUser::Text(LongText::cut(&text)), ToUser::End]
        }
        FromUser::Shutdown => {
            engine.note_act(moment, person, "ended the head");
            engine.is_over = true;
            vec![ToUser::End]
        }
        FromUser::FastForward { until, n_iterations } => {
            let moment = fast_forward::fast_forward(engine, moment, &person.name, until, n_iterations)?;
            vec![ToUser::Status(views::status(engine, moment)), ToUser::End]
        }
        FromUser::GiveUp { node } => give_up(engine, moment, person, &node)?,
        FromUser::StopAll => {
            engine.note_act(moment, person, "stopped all jobs and the head");
            engine.wind_down(moment);
            vec![ToUser::End]
        }
        FromUser::Rules => {
            let mut answers = streams::pieces(&serde_json::to_string(&engine.rules)?);
            answers.push(ToUser::End);
            answers
        }
        // Only who shows a certificate gets a way into the page.
        FromUser::SignIn { .. } => return Err(Refusal::NoWeb),
        FromUser::SetPolicy { .. }
        | FromUser::SetPolicyText { .. }
        | FromUser::ReloadPolicy
        | FromUser::WhatIf { .. }
        | FromUser::WhatIfText { .. }
        | FromUser::Forecast { .. }
        | FromUser::Submit { .. }
        | FromUser::Journal
        | FromUser::Events { .. }
        | FromUser::Logs { .. } => unreachable!("answered later"),
    })
}

/// Whether a job waits, so that a forecast says when it starts.
fn waits(engine: &Engine, job: JobId) -> bool {
    let scheduler = engine.state.cluster().scheduler();
    let jobs = scheduler.jobs();
    let row = jobs.row(job);
    row.is_some_and(|row| jobs.phase(row) != JobPhase::Running) || scheduler.parked().row(job).is_some()
}

/// Gives somebody who showed a certificate a way into the page, which ends with the certificate.
pub(super) fn sign_in(
    engine: &mut Engine,
    person: &Person,
    certified: UserRole,
    by: SignInBy,
    left: Duration,
    reply: Reply,
) {
    if let Err(refusal) = access::check(person, RequestKind::SignIn) {
        return engine.replies.refuse(reply, &refusal);
    }
    match &engine.access.sessions {
        None => engine.replies.refuse(reply, &Refusal::NoWeb),
        Some(sessions) => {
            tracing::info!("{} signs in to the page", person.name);
            let way = sessions.admit(&person.name, certified, by, left);
            engine.replies.push_free(reply, vec![ToUser::SignIn(way), ToUser::End]);
        }
    }
}

/// Gives up a node that cannot be reached: its jobs are started elsewhere, whatever may still run there.
fn give_up(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    name: &Name,
) -> Result<Vec<ToUser>, Refusal> {
    let agent = engine.state.agents().get(name).filter(|agent| agent.node().is_some());
    let agent = agent.ok_or_else(|| Refusal::NoSuchNode(name.clone()))?;
    if agent.is_known() && !agent.is_silent() {
        return Err(Refusal::IsConnected(name.clone()));
    }
    let acted = engine.act(person, &format!("gave up {name}"));
    engine.change(moment, vec![acted])?;
    engine.state.give_up(moment, name, &person.name);
    Ok(vec![ToUser::End])
}

/// Orders a piece of a job's output; the user is answered when it comes.
fn fetch_log(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    job: JobId,
    offset: u64,
    reply: Reply,
) -> Result<(), Refusal> {
    let cluster = engine.state.cluster();
    let found = access::job(engine, person, job)?;
    let (incarnation, nodes) = found.last_launch();
    let attempt = Attempt { job, incarnation };
    let node = *nodes.first().ok_or(Refusal::JobHasNotStarted(job))?;
    let away = Refusal::OutputOutOfReach { job, node: cluster.node_name(node).to_owned() };
    if !engine.state.agents().is_open(node) {
        return Err(away);
    }
    // An order that may not be sent yet would hold this one back.
    if let Some(why) = engine.disk_trouble.clone().filter(|_| engine.state.has_orders(node)) {
        return Err(Refusal::Disk(why));
    }
    if engine.replies.n_reading(&person.name) >= MOST_READING {
        return Err(Refusal::TooManyReaders(MOST_READING));
    }
    let task = Task::ReadLog { attempt, offset, n_bytes: MOST_LOG_BYTES as u32 };
    let order = engine.state.order(moment, node, task).ok_or(away)?;
    engine.replies.wait_for(order, &person.name, reply);
    Ok(())
}
