//! Answers to people. What must be durable is answered when it is; what the desk or an agent must say, when they did.

use rota_core::ids::{JobId, NodeId};
use rota_core::plan::{Hold, Plan};
use rota_core::table::Phase as JobPhase;
use rota_traces::profile::ProfileSet;

use rota_transport::message::{
    Attempt, EventView, FromUser, JobRequest, JobStateView, JobView, Launcher, NodeStateView, NodeView,
    PROTOCOL_VERSION, Status, Task, ToUser, WhichJobs,
};
use rota_transport::value::{Iterations, LongText, MOST_LOG_BYTES, Name, Text, Wait};
use tokio::sync::mpsc;

use super::books::{JobRecord, Standing};
use super::desk::Ask;
use super::engine::{Engine, Waiting, failed};
use super::explain;
use super::fleet::Phase;
use super::forward;
use super::record::Record;
use super::state::Moment;

/// Jobs or lines of the journal in one message.
const PER_MESSAGE: usize = 200;
/// Lines of the journal in one answer.
const MOST_EVENTS: usize = 5_000;
/// Bytes of a long text in one message.
const TEXT_PIECE_BYTES: usize = 200_000;
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
        FromUser::Status { .. } => vec![ToUser::Status(status(engine, moment)), ToUser::End],
        FromUser::Submit { jobs, key } => submit(engine, moment, user, jobs, key),
        FromUser::Cancel { jobs } => cancel(engine, moment, user, &jobs),
        FromUser::Jobs { which } => jobs(engine, &which),
        FromUser::Nodes => vec![ToUser::Nodes(nodes(engine)), ToUser::End],
        FromUser::Logs { job, offset } => match logs(engine, moment, job, offset, reply.clone()) {
            Ok(()) => return,
            Err(why) => vec![failed(&why)],
        },
        FromUser::Drain { node, is_drained } => drain(engine, moment, user, &node, is_drained),
        FromUser::Events { from } => events(engine, from),
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
        FromUser::Journal => journal(engine),
        FromUser::Shutdown => {
            engine.end();
            vec![ToUser::End]
        }
        FromUser::FastForward { until, n_iterations } => {
            match forward::fast_forward(engine, moment, until, n_iterations) {
                Ok(moment) => vec![ToUser::Status(status(engine, moment)), ToUser::End],
                Err(why) => vec![failed(&why)],
            }
        }
        FromUser::StopAll => {
            engine.wind_down(moment);
            vec![ToUser::End]
        }
        FromUser::Rules => match serde_json::to_string(&engine.rules) {
            Ok(text) => in_pieces(&text),
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

fn status(engine: &Engine, moment: Moment) -> Status {
    let books = &engine.state.books;
    let jobs = books.scheduler.jobs();
    let up = books.scheduler.cluster().nodes().iter().zip(&books.scheduler.nodes().is_up);
    let up: Vec<_> = up.filter(|(_, is_up)| **is_up).map(|(node, _)| node).collect();
    let busy = up.iter().map(|node| engine.state.fleet.busy(node.id).len()).sum();
    let trouble = engine.disk_trouble.as_ref().unwrap_or(&engine.trouble);
    Status {
        version: Text::cut(env!("CARGO_PKG_VERSION")),
        epoch: engine.state.epoch,
        now: moment.now,
        is_ready: engine.is_ready,
        policy: Text::cut(&books.chosen.policy),
        trouble: Text::cut(trouble),
        round: Wait::cut(engine.rounds.round),
        time_scale: engine.state.time_scale,
        n_rounds: books.n_rounds,
        n_nodes_up: up.len() as u32,
        n_nodes: books.nodes.len() as u32,
        n_gpus_busy: busy,
        n_gpus_up: up.iter().map(|node| node.n_gpus).sum(),
        n_waiting: (jobs.len() - jobs.n_running()) as u32,
        n_running: jobs.n_running() as u32,
    }
}

fn jobs(engine: &mut Engine, which: &WhichJobs) -> Vec<ToUser> {
    let is_wanted = |id: &JobId, job: &JobRecord| match which {
        WhichJobs::Active => !job.standing.is_over(),
        WhichJobs::All => true,
        WhichJobs::These(these) => these.contains(id),
    };
    let all = engine.state.books.jobs.iter().enumerate().map(|(index, job)| (JobId::from(index), job));
    let views: Vec<_> =
        all.filter(|(id, job)| is_wanted(id, job)).map(|(id, job)| job_view(engine, id, job)).collect();
    let mut answers: Vec<_> = views.chunks(PER_MESSAGE).map(|some| ToUser::Jobs(some.to_vec())).collect();
    answers.push(ToUser::End);
    answers
}

fn job_view(engine: &Engine, id: JobId, job: &JobRecord) -> JobView {
    let books = &engine.state.books;
    let live = engine.state.fleet.newest(id);
    let row = books.scheduler.jobs().row(id);
    let state = match (job.standing, live.map(|(_, live)| &live.phase)) {
        (Standing::Finished, _) => JobStateView::Finished,
        (Standing::Declined, _) => JobStateView::Declined,
        (Standing::Cancelled, _) => JobStateView::Cancelled,
        (Standing::Failed, _) => JobStateView::Failed,
        (Standing::Held, _) => JobStateView::Asking,
        (_, Some(Phase::Running)) => JobStateView::Running,
        (_, Some(Phase::Starting | Phase::Waiting | Phase::Fetching)) => JobStateView::Starting,
        (_, Some(Phase::Stopping | Phase::Failing { .. })) => JobStateView::Stopping,
        (_, None) => match row.map(|row| books.scheduler.jobs().phase(row)) {
            Some(JobPhase::Asking) | None => JobStateView::Asking,
            Some(JobPhase::Waiting | JobPhase::Running) => JobStateView::Waiting,
        },
    };
    let held = row.map(|row| books.scheduler.jobs().allocation(row));
    let node_name = |node: NodeId| Text::cut(books.nodes.get(node.index()).map_or("", String::as_str));
    let count = |count: f64| Iterations::new(count.clamp(0.0, 1e15)).unwrap_or(Iterations::NONE);
    let reported = live.map_or(0.0, |(_, live)| live.iterations + live.skipped);
    let done = if job.standing.is_over() { job.done } else { books.done(id).max(reported) };
    JobView {
        id,
        name: job.request.name.clone(),
        user: Name::new(job.user.as_str()).expect("whoever sent it had a name"),
        model: job.request.model.clone(),
        state,
        reason: Text::cut(&job.reason),
        gpus_asked: job.request.gpus,
        gpus_held: held.map_or(0, |held| held.n_gpus()),
        nodes: held.map_or_else(Vec::new, |held| held.slices.iter().map(|s| node_name(s.node)).collect()),
        done: count(done),
        work: job.request.work,
        arrival: job.spec.arrival,
        started: job.started,
        ended: job.ended,
        deadline: job.spec.deadline.first(),
        incarnation: job.last_launch.0,
        n_failures: job.n_failures,
        n_preemptions: job.n_preemptions,
    }
}

fn nodes(engine: &Engine) -> Vec<NodeView> {
    let books = &engine.state.books;
    let view = |(name, agent): (&Name, &super::state::Agent)| {
        let node = agent.node.and_then(|node| books.scheduler.cluster().node(node));
        let is_drained = agent.node.is_some_and(|node| books.drained.contains(&node));
        let is_up =
            agent.node.is_some_and(|node| books.scheduler.nodes().is_up.get(node.index()) == Some(&true));
        let state = match () {
            () if is_drained => NodeStateView::Drained,
            () if !is_up => NodeStateView::Lost,
            () if agent.is_silent => NodeStateView::Silent,
            () => NodeStateView::Up,
        };
        let on_node = agent.node.map(|node| engine.state.fleet.on_node(node)).unwrap_or_default();
        NodeView {
            name: name.clone(),
            state,
            gpu_type: Text::cut(node.map_or("", |node| {
                books.scheduler.cluster().gpu_types().get(node.gpu_type.index()).map_or("", String::as_str)
            })),
            n_gpus: node.map_or(0, |node| node.n_gpus),
            n_busy: agent.node.map_or(0, |node| engine.state.fleet.busy(node).len()),
            cpus: node.map_or(0.0, |node| node.host.cpus()),
            mem_bytes: node.map_or(0, |node| node.host.mem_bytes),
            version: agent.version.clone(),
            since: agent.since,
            jobs: on_node.into_iter().map(|attempt| attempt.job).collect(),
            reason: Text::cut(&agent.reason),
        }
    };
    engine.state.agents.iter().map(view).collect()
}

fn events(engine: &Engine, from: u64) -> Vec<ToUser> {
    let lines = match engine.store.journal(from, MOST_EVENTS) {
        Ok(lines) => lines,
        Err(error) => return vec![failed(&error.to_string())],
    };
    let view = |(index, time, record): &(u64, rota_core::time::Time, Record)| EventView {
        index: *index,
        time: *time,
        kind: Text::cut(record.kind()),
        text: Text::cut(&record.to_text()),
    };
    let mut answers: Vec<_> =
        lines.chunks(PER_MESSAGE).map(|some| ToUser::Events(some.iter().map(view).collect())).collect();
    answers.push(ToUser::End);
    answers
}

/// The whole journal as lines of JSON: time in microseconds, then the record.
fn journal(engine: &Engine) -> Vec<ToUser> {
    let lines = match engine.store.journal(0, usize::MAX >> 1) {
        Ok(lines) => lines,
        Err(error) => return vec![failed(&error.to_string())],
    };
    let mut text = String::new();
    for (_, time, record) in lines {
        if let Ok(body) = serde_json::to_string(&(time, &record)) {
            text.push_str(&body);
            text.push('\n');
        }
    }
    in_pieces(&text)
}

/// A text of any length.
fn in_pieces(text: &str) -> Vec<ToUser> {
    let (mut answers, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = (0..=rest.len().min(TEXT_PIECE_BYTES)).rev().find(|at| rest.is_char_boundary(*at));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        answers.push(ToUser::Text(LongText::cut(piece)));
        rest = after;
    }
    answers.push(ToUser::End);
    answers
}

/// What another policy would change.
pub(super) fn what_if_text(engine: &Engine, plan: &Plan) -> String {
    let jobs = engine.state.books.scheduler.jobs();
    let mut lines = Vec::new();
    for run in &plan.run {
        let Some(row) = jobs.row(run.job) else { continue };
        let held = jobs.allocation(row);
        match &run.what {
            Hold::Keep => {}
            Hold::Take(wanted) if held.is_empty() => {
                lines.push(format!("job {} would start with {} GPUs", run.job, wanted.n_gpus()));
            }
            Hold::Take(wanted) if held.same_gpus(wanted) => {}
            Hold::Take(wanted) => lines.push(format!(
                "job {} would go from {} to {} GPUs",
                run.job,
                held.n_gpus(),
                wanted.n_gpus()
            )),
        }
    }
    for row in 0..jobs.len() {
        let id = jobs.id(row);
        if jobs.phase(row) == JobPhase::Running && !plan.run.iter().any(|run| run.job == id) {
            lines.push(format!("job {id} would be stopped"));
        }
    }
    lines.sort();
    if lines.is_empty() {
        lines.push("nothing would change".into());
    }
    lines.join("\n")
}
