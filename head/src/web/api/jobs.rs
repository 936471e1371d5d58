//! Jobs: the list, a page, output, submitting and changing.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use rota_core::ids::JobId;
use rota_core::time::Span;
use rota_transport::access::RequestKind;
use rota_transport::message::{
    Container, Dependency, FromUser, JobChange, JobConditions, JobRequest, JobSelection, JobStart, Launcher,
    LogLimits, Mount, Needs, OnHeadLost, Processes, Pull, ToUser,
};
use rota_transport::value::{Iterations, Wait};
use rusqlite::types::Value;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Asked, Body, JobInPath, cursor, limit, position, text};
use super::good;
use crate::engine::Said;
use crate::engine::sights::{
    self, JobOrder, JobQuery, JobRange, KeyValue, SortKey, SortPosition, line_of_ended,
};
use crate::store::history::pages::PastQuery;
use crate::web::Shared;
use crate::web::error::{Answer, ApiError, json};
use crate::web::sessions::Session;
use crate::web::shapes::{
    ChangeShape, ChangeWord, Changed, Explanation, Job, JobPage, JobSpec, MountShape, Output, Page, PullWord,
    SelectionShape, Submission, Submitted,
};

/// States of jobs that have not ended, ...
const ACTIVE: [&str; 6] = ["asking", "waiting", "starting", "running", "stopping", "held"];
/// ... and of those that have.
const ENDED: [&str; 5] = ["finished", "declined", "cancelled", "failed", "time-limit"];
/// The longest run time or wait that can be asked for, in seconds: a hundred years.
const MOST_S: f64 = 3.2e9;

/// Which jobs, and in which order.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// active (the default), ended or all.
    which: Option<String>,
    /// States, joined by commas.
    state: Option<String>,
    /// Whose they are.
    user: Option<String>,
    /// Whom they count for.
    tenant: Option<String>,
    /// Their model.
    model: Option<String>,
    /// Their name.
    name: Option<String>,
    /// A part of the name, user, tenant or model, or the number.
    text: Option<String>,
    /// id (the default), name, user, tenant, model, state, gpus, priority, submitted, started or ended.
    sort: Option<String>,
    /// asc or desc (the default).
    order: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The end of the page before.
    cursor: Option<String>,
}

/// Jobs, a page at a time.
#[utoipa::path(get, path = "/api/v1/jobs", operation_id = "list_jobs", tag = "jobs", params(ListQuery),
    responses((status = 200, description = "Jobs.", body = Page<Job>)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(asked): Asked<ListQuery>,
) -> Answer<Response> {
    let (is_active, is_ended) = match asked.which.as_deref() {
        None | Some("active") => (true, false),
        Some("ended") => (false, true),
        Some("all") => (true, true),
        Some(other) => return Err(ApiError::bad(format!("which={other}: write active, ended or all"))),
    };
    let states = match asked.state.as_deref().filter(|states| !states.is_empty()) {
        None => None,
        Some(states) => {
            let states: Vec<String> = states.split(',').map(str::to_owned).collect();
            let is_known = |state: &&String| ACTIVE.iter().chain(&ENDED).any(|known| known == state);
            if let Some(other) = states.iter().find(|state| !is_known(state)) {
                return Err(ApiError::bad(format!("state={other}: there is no such state")));
            }
            Some(states)
        }
    };
    let most = limit(asked.limit)?;
    let order = order(&asked)?;
    let after: Option<SortPosition> = position(asked.cursor.as_deref())?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let query = JobQuery {
        states,
        user: given(&asked.user),
        tenant: given(&asked.tenant),
        model: given(&asked.model),
        name: given(&asked.name),
        text: given(&asked.text),
    };
    let range = JobRange { order, after, most: most + 1 };
    let (mut lines, mut n_all) = (Vec::new(), 0);
    if is_active {
        let (query, range) = (query.clone(), range.clone());
        let look = move |engine: &mut _, moment, person: &_| {
            Ok(sights::active_jobs(engine, moment, person, &query, &range))
        };
        let found = shared.asking.look(&session, RequestKind::Jobs, look).await?;
        n_all += found.n_all;
        lines.extend(found.lines);
    }
    if is_ended {
        let (found, n_ended) = past_jobs(&shared, &session, query, range).await?;
        n_all += n_ended;
        lines.extend(found);
    }
    lines.sort_by(|a, b| order.compare(&a.0, &b.0));
    // A job that ended between the two questions is in both answers.
    lines.dedup_by(|a, b| a.0.1 == b.0.1);
    let is_more = lines.len() > most;
    lines.truncate(most);
    let next = lines.last().filter(|_| is_more).and_then(|(position, _)| cursor(position));
    Ok(good(&Page { items: lines.into_iter().map(|(_, job)| job).collect(), next, total: Some(n_all) }))
}

fn order(asked: &ListQuery) -> Answer<JobOrder> {
    let key = match asked.sort.as_deref().unwrap_or("id") {
        "id" => SortKey::Id,
        "name" => SortKey::Name,
        "user" => SortKey::User,
        "tenant" => SortKey::Tenant,
        "model" => SortKey::Model,
        "state" => SortKey::State,
        "gpus" => SortKey::Gpus,
        "priority" => SortKey::Priority,
        "submitted" => SortKey::Submitted,
        "started" => SortKey::Started,
        "ended" => SortKey::Ended,
        other => return Err(ApiError::bad(format!("sort={other}: there is no such column"))),
    };
    let is_descending = match asked.order.as_deref().unwrap_or("desc") {
        "asc" => false,
        "desc" => true,
        other => return Err(ApiError::bad(format!("order={other}: write asc or desc"))),
    };
    Ok(JobOrder { key, is_descending })
}

/// Jobs that have ended, from the history; read in a thread of its own.
async fn past_jobs(
    shared: &Shared,
    session: &Session,
    query: JobQuery,
    range: JobRange,
) -> Answer<(Vec<(SortPosition, Job)>, u64)> {
    let look = |engine: &mut _, _, person: &_| sights::past_jobs_reader(engine, person);
    let (reader, own, nodes) = shared.asking.look(session, RequestKind::History, look).await?;
    let one = |text: Option<String>| text.map(|text| vec![Value::Text(text)]);
    let mut one_of: Vec<(&str, Vec<Value>)> = [
        ("user", one(query.user)),
        ("tenant", one(query.tenant)),
        ("model", one(query.model)),
        ("name", one(query.name)),
        ("state", query.states.map(|states| states.into_iter().map(Value::Text).collect())),
    ]
    .into_iter()
    .filter_map(|(column, wanted)| Some((column, wanted?)))
    .collect();
    one_of.extend(one(own).map(|own| ("user", own)));
    let key = match range.order.key {
        SortKey::Id => "id",
        SortKey::Name => "name",
        SortKey::User => "user",
        SortKey::Tenant => "tenant",
        SortKey::Model => "model",
        SortKey::State => "state",
        SortKey::Gpus => "gpus",
        SortKey::Priority => "priority",
        SortKey::Submitted => "arrival_us",
        SortKey::Started => "COALESCE(started_us, -1)",
        SortKey::Ended => "ended_us",
    };
    let after = range.after.map(|(value, id)| {
        let value = match value {
            KeyValue::Number(number) => Value::Integer(number),
            KeyValue::Word(word) => Value::Text(word),
        };
        (value, id)
    });
    let (sort, is_descending, most) = (range.order.key, range.order.is_descending, range.most);
    let wanted = PastQuery { one_of, text: query.text, key, is_descending, after, most };
    let found = shared.asking.read(move || {
        let (jobs, n_all) = reader.past_jobs(&wanted)?;
        let line = |job: &crate::store::history::EndedJob| {
            let line = line_of_ended(&nodes, job);
            let value = match sort {
                SortKey::Id => KeyValue::Number(i64::from(job.id.0)),
                SortKey::Name => KeyValue::Word(job.name.clone()),
                SortKey::User => KeyValue::Word(job.user.clone()),
                SortKey::Tenant => KeyValue::Word(job.tenant.clone()),
                SortKey::Model => KeyValue::Word(job.model.clone()),
                SortKey::State => KeyValue::Word(job.standing.as_str().to_owned()),
                SortKey::Gpus => KeyValue::Number(i64::from(job.gpus)),
                SortKey::Priority => KeyValue::Number(i64::from(job.priority)),
                SortKey::Submitted => KeyValue::Number(job.arrival.0),
                SortKey::Started => KeyValue::Number(job.started.map_or(-1, |time| time.0)),
                SortKey::Ended => KeyValue::Number(job.ended.0),
            };
            ((value, job.id.0), line)
        };
        Ok::<_, crate::store::StoreError>((jobs.iter().map(line).collect(), n_all))
    });
    Ok(found.await??)
}

/// A job and everything that is known of it.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", operation_id = "show_job", tag = "jobs", params(("id" = u32, Path, description = "Its number.")),
    responses((status = 200, description = "The job.", body = JobPage)))]
pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    session: Session,
    JobInPath(id): JobInPath,
) -> Answer<Response> {
    let look = move |engine: &mut _, moment, person: &_| sights::job(engine, moment, person, id);
    Ok(good(&shared.asking.look(&session, RequestKind::Jobs, look).await?))
}

/// Why a job waits and what would let it run, or how it ended.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/explain", operation_id = "explain_job", tag = "jobs",
    params(("id" = u32, Path, description = "Its number.")),
    responses((status = 200, description = "Why.", body = Explanation)))]
pub(crate) async fn explain(
    State(shared): State<Arc<Shared>>,
    session: Session,
    JobInPath(job): JobInPath,
) -> Answer<Response> {
    let answers = shared.asking.ask(&session, FromUser::Explain { job }).await?;
    let look = move |engine: &mut _, _, person: &_| sights::start(engine, person, job);
    let start = shared.asking.look(&session, RequestKind::Explain, look).await?;
    Ok(good(&Explanation { text: texts(answers), start }))
}

/// Where to begin.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputQuery {
    /// From this byte on.
    offset: Option<u64>,
    /// Whether to begin near the end instead.
    tail: Option<bool>,
}

/// The most pieces that are asked for to find the end.
const MOST_PIECES: usize = 64;

/// A piece of a job's output.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/output", operation_id = "read_output", tag = "jobs", params(("id" = u32, Path, description = "Its number."), OutputQuery),
    responses((status = 200, description = "A piece, at most 64 KiB.", body = Output)))]
pub(crate) async fn output(
    State(shared): State<Arc<Shared>>,
    session: Session,
    JobInPath(job): JobInPath,
    Asked(query): Asked<OutputQuery>,
) -> Answer<Response> {
    let mut piece = read_output(&shared, &session, job, query.offset.unwrap_or(0)).await?;
    if query.tail == Some(true) {
        for _ in 0..MOST_PIECES {
            let next = read_output(&shared, &session, job, piece.next).await?;
            if next.text.is_empty() {
                piece.is_end |= next.is_end;
                break;
            }
            piece = next;
        }
    }
    Ok(good(&piece))
}

async fn read_output(shared: &Shared, session: &Session, job: JobId, offset: u64) -> Answer<Output> {
    let answers = shared.asking.ask(session, FromUser::Logs { job, offset }).await?;
    let log = answers.into_iter().find_map(|answer| match answer {
        Said::Message(ToUser::Log { offset, bytes, is_end }) => Some((offset, bytes, is_end)),
        _ => None,
    });
    let (offset, bytes, is_end) = log.ok_or_else(|| ApiError::unavailable("the node did not answer"))?;
    let text = String::from_utf8_lossy(bytes.as_bytes());
    let is_lossy = matches!(text, std::borrow::Cow::Owned(_));
    let next = offset.saturating_add(bytes.as_bytes().len() as u64);
    Ok(Output { offset, text: text.into_owned(), next, is_end, is_lossy })
}

/// Submits jobs, all or none.
#[utoipa::path(post, path = "/api/v1/jobs", operation_id = "submit_jobs", tag = "jobs", request_body = Submission,
    responses((status = 201, description = "They are in the journal.", body = Submitted)))]
pub(crate) async fn submit(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(submission): Body<Submission>,
) -> Answer<Response> {
    let jobs = submission.jobs.into_iter().map(request).collect::<Answer<Vec<_>>>()?;
    let key = submission.key.unwrap_or_else(rand::random);
    let answers = shared.asking.ask(&session, FromUser::Submit { jobs, key }).await?;
    let ids = answers.into_iter().find_map(|answer| match answer {
        Said::Message(ToUser::Submitted(ids)) => Some(ids.into_iter().map(|id| id.0).collect()),
        _ => None,
    });
    let ids = ids.ok_or_else(|| ApiError::unavailable("the head did not say under which numbers"))?;
    Ok(json(StatusCode::CREATED, &Submitted { ids }))
}

/// A job as the wire has it; the head checks the rest.
fn request(spec: JobSpec) -> Answer<JobRequest> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| ApiError::refused(format!("{what}: {error}"));
    let wait = |what: &str, seconds: Option<f64>| match seconds {
        None => Ok(None),
        Some(seconds) if !(0.0..=MOST_S).contains(&seconds) => {
            Err(ApiError::refused(format!("{what} {seconds}: must be from 0 to {MOST_S} seconds")))
        }
        Some(seconds) => {
            Wait::new(Span::from_secs_f64(seconds)).map(Some).map_err(|error| wrong(what, &error))
        }
    };
    let model = spec.model.unwrap_or_default();
    let work = match (spec.work, spec.time_s) {
        (Some(work), _) => work,
        (None, Some(time_s)) => time_s,
        (None, None) if model.is_empty() && !spec.emulate => 0.0,
        (None, None) => return Err(ApiError::refused("the amount of work is unknown: give work or time_s")),
    };
    let launcher = match (spec.emulate, spec.image.as_deref().filter(|image| !image.is_empty())) {
        (true, _) => Launcher::Emulated,
        (false, None) => Launcher::Process,
        (false, Some(image)) => Launcher::Container(Container {
            image: text("image", image)?,
            pull: match spec.pull.unwrap_or(PullWord::Missing) {
                PullWord::Missing => Pull::Missing,
                PullWord::Always => Pull::Always,
                PullWord::Never => Pull::Never,
            },
            mounts: spec.mounts.into_iter().map(mount).collect::<Answer<_>>()?,
            network: text("network", spec.network.unwrap_or_default())?,
            gpu_flag: text("GPU flag", "")?,
        }),
    };
    let name = spec.name.filter(|name| !name.is_empty()).or_else(|| spec.command.first().cloned());
    let mut env = Vec::new();
    for (key, value) in &spec.env {
        env.push((text("env", key.as_str())?, text("env", value.as_str())?));
    }
    let needs = |jobs: &[u32], needs| -> Vec<Dependency> {
        jobs.iter().map(|job| Dependency { job: JobId(*job), needs }).collect()
    };
    let gpus = spec.gpus.or(spec.levels.first().copied()).unwrap_or(1);
    Ok(JobRequest {
        name: text("name", name.unwrap_or_else(|| "job".into()))?,
        tenant: text("tenant", spec.tenant.unwrap_or_default())?,
        priority: spec.priority.unwrap_or(0),
        model: text("model", model)?,
        batch: spec.batch.unwrap_or(0),
        gpus,
        levels: spec.levels,
        gpu_type: text("gpu_type", spec.gpu_type.unwrap_or_default())?,
        work: Iterations::new(work).map_err(|error| wrong("work", &error))?,
        deadline: wait("deadline_s", spec.deadline_s)?,
        start: JobStart {
            launcher,
            argv: spec.command.iter().map(|word| text("command", word.as_str())).collect::<Answer<_>>()?,
            env,
            working_directory: text("workdir", spec.workdir.unwrap_or_default())?,
            checkpoint_directory: text("checkpoint_dir", spec.checkpoint_dir.unwrap_or_default())?,
            processes: if spec.per_gpu { Processes::PerGpu } else { Processes::PerNode },
            on_head_lost: if spec.keep { OnHeadLost::Keep } else { OnHeadLost::Stop },
            log: LogLimits { file_bytes: 16 << 20, n_files: 4 },
            grace: wait("grace_s", Some(spec.grace_s.unwrap_or(30.0)))?.unwrap_or(Wait::NONE),
            restart: Wait::NONE,
            checkpoint_every: wait("checkpoint_every_s", spec.checkpoint_every_s)?.unwrap_or(Wait::NONE),
            most_failures: spec.retries.unwrap_or(0).saturating_add(1),
        },
        conditions: JobConditions {
            time_limit: wait("time_limit_s", spec.time_limit_s)?,
            after: [needs(&spec.after, Needs::Ended), needs(&spec.after_ok, Needs::Finished)].concat(),
            is_held: spec.hold,
        },
    })
}

fn mount(MountShape { source, target, is_read_only }: MountShape) -> Answer<Mount> {
    Ok(Mount { source: text("mounts", source)?, target: text("mounts", target)?, is_read_only })
}

/// Changes what is to become of jobs, of all of them or of none.
#[utoipa::path(post, path = "/api/v1/jobs/change", operation_id = "change_jobs", tag = "jobs", request_body = ChangeShape,
    responses((status = 200, description = "Done.", body = Changed)))]
pub(crate) async fn change(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Body(asked): Body<ChangeShape>,
) -> Answer<Response> {
    let change = match (asked.change, asked.priority) {
        (ChangeWord::Cancel, None) => JobChange::Cancel,
        (ChangeWord::Hold, None) => JobChange::Hold,
        (ChangeWord::Release, None) => JobChange::Release,
        (ChangeWord::Requeue, None) => JobChange::Requeue,
        (ChangeWord::Priority, Some(priority)) => JobChange::Priority(priority),
        (ChangeWord::Priority, None) => return Err(ApiError::bad("priority: say which")),
        (_, Some(_)) => return Err(ApiError::bad("priority: only with the change `priority`")),
    };
    let SelectionShape { ids, ranges, arrays, name, user } = asked.jobs;
    let one = ids.into_iter().map(|id| (JobId(id), JobId(id)));
    let selection = JobSelection {
        ranges: one.chain(ranges.into_iter().map(|(first, last)| (JobId(first), JobId(last)))).collect(),
        arrays: arrays.into_iter().map(JobId).collect(),
        name: text("name", name)?,
        user: text("user", user)?,
    };
    let answers = shared.asking.ask(&session, FromUser::Change { jobs: selection, change }).await?;
    let changed = answers.into_iter().find_map(|answer| match answer {
        Said::Message(ToUser::Changed(jobs)) => Some(jobs.into_iter().map(|job| job.0).collect()),
        _ => None,
    });
    Ok(good(&Changed { changed: changed.unwrap_or_default() }))
}

/// The words of an answer.
pub(super) fn texts(answers: Vec<Said>) -> String {
    let words = answers.into_iter().filter_map(|answer| match answer {
        Said::Message(ToUser::Text(text)) => Some(text.to_string()),
        _ => None,
    });
    words.collect()
}
