//! What happened: events, what became of a job, jobs that have ended, the journal. All of it is read from the disk in threads of
//! their own; the engine says whose it may be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::{Body as HttpBody, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rota_core::ids::{JobId, NodeId};
use rota_core::time::Time;
use rota_transport::access::RequestKind;
use rota_transport::message::{FromUser, ToUser};
use serde::Deserialize;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::IntoParams;

use super::extract::{Asked, JobInPath, cursor, limit, position};
use super::good;
use crate::engine::{Said, sights};
use crate::record::Record;
use crate::store::StoreError;
use crate::store::history::{EventFilter, HistoryFilter, Reader};
use crate::web::Shared;
use crate::web::error::{Answer, ApiError};
use crate::web::sessions::Session;
use crate::web::shapes::{AttemptShape, Event, JobHistory, Page, PastJob, Usage, UsageRow, seconds};

/// The most lines of the journal that are looked at for one answer.
const MOST_LINES: usize = 200_000;
/// The most events of a job's or a node's page.
const MOST_OF_PAGE: usize = 500;
/// The most points of a job's progress.
const MOST_POINTS: usize = 500;
/// The most jobs that GPU-hours are counted over.
const MOST_COUNTED: usize = 5_000_000;

/// Which events.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventQuery {
    /// From this line of the journal on; without it, the newest.
    #[param(maximum = 9223372036854775807u64)]
    from: Option<u64>,
    /// Those before this line.
    #[param(maximum = 9223372036854775807u64)]
    before: Option<u64>,
    /// About this job.
    job: Option<u32>,
    /// About this node, by name.
    node: Option<String>,
    /// Of this kind, such as job-started.
    kind: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The end of the page before.
    cursor: Option<String>,
}

/// What is needed to read events.
struct Events {
    reader: Reader,
    /// Whose jobs' events; none is everybody's.
    own: Option<(String, BTreeSet<JobId>)>,
    nodes: Vec<String>,
}

/// Where a list of events goes on.
#[derive(serde::Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GoesOn {
    From(u64),
    Before(u64),
}

/// Events, ascending.
#[utoipa::path(get, path = "/api/v1/events", operation_id = "list_events", tag = "records", params(EventQuery),
    responses((status = 200, description = "What happened.", body = Page<Event>)))]
pub(crate) async fn events(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(query): Asked<EventQuery>,
) -> Answer<Response> {
    let most = limit(query.limit)?;
    let on = match position(query.cursor.as_deref())? {
        Some(on) => on,
        None => match (query.from, query.before) {
            (Some(_), Some(_)) => return Err(ApiError::bad("give from or before, not both")),
            (Some(from), None) => GoesOn::From(from),
            (None, before) => GoesOn::Before(before.unwrap_or(u64::MAX)),
        },
    };
    let source = source(&shared, &session).await?;
    let page = shared.asking.read(move || match on {
        GoesOn::From(from) => source.forward(&query, from, most),
        GoesOn::Before(before) => source.backward(&query, before, most),
    });
    Ok(good(&page.await??))
}

/// The newest events about a node.
pub(super) async fn events_of_node(shared: &Shared, session: &Session, node: u32) -> Answer<Vec<Event>> {
    let source = source(shared, session).await?;
    let name = source.nodes.get(node as usize).cloned().unwrap_or_default();
    let query = EventQuery { node: Some(name), ..EventQuery::default() };
    Ok(shared.asking.read(move || source.backward(&query, u64::MAX, 100)).await??.items)
}

async fn source(shared: &Shared, session: &Session) -> Answer<Events> {
    let look = |engine: &mut _, _, person: &_| sights::events_reader(engine, person);
    let (reader, own, nodes) = shared.asking.look(session, RequestKind::Events, look).await?;
    Ok(Events { reader, own, nodes })
}

impl Events {
    fn name(&self, node: NodeId) -> String {
        self.nodes.get(node.index()).cloned().unwrap_or_default()
    }

    /// Whether an event fits; operators see all, others what is about their jobs.
    fn fits(&self, query: &EventQuery, record: &Record) -> bool {
        let is_of_kind = match query.kind.as_deref().filter(|kind| !kind.is_empty()) {
            Some(kind) => record.kind() == kind,
            None => record.is_event(),
        };
        is_of_kind
            && query.job.is_none_or(|job| record.job() == Some(JobId(job)))
            && query
                .node
                .as_ref()
                .is_none_or(|name| record.node().is_some_and(|node| self.name(node) == *name))
    }

    fn is_theirs(&self, job: Option<JobId>) -> Result<bool, StoreError> {
        let Some((user, own)) = &self.own else { return Ok(true) };
        match job {
            None => Ok(false),
            Some(job) if own.contains(&job) => Ok(true),
            Some(job) => Ok(self.reader.ended_job(job)?.is_some_and(|ended| ended.user == *user)),
        }
    }

    fn forward(&self, query: &EventQuery, from: u64, most: usize) -> Result<Page<Event>, StoreError> {
        let from = from.min(i64::MAX as u64);
        let mut items = self.old(query, from, most + 1)?;
        let mut next = items.last().map_or(from, |last: &Event| last.line + 1);
        let mut n_seen = 0;
        while items.len() <= most && n_seen < MOST_LINES {
            let lines = self.reader.journal(next, 1000)?;
            let Some((last, _, _)) = lines.last() else { break };
            next = last + 1;
            n_seen += lines.len();
            for (line, at, record) in lines {
                if items.len() <= most && self.fits(query, &record) && self.is_theirs(record.job())? {
                    items.push(sights::event(line, at, &record, |node| self.name(node)));
                }
            }
        }
        let is_cut = n_seen >= MOST_LINES && items.len() <= most;
        let is_more = items.len() > most;
        items.truncate(most);
        let on = match (is_more, is_cut) {
            (true, _) => items.last().map(|last| last.line + 1),
            (false, true) => Some(next),
            (false, false) => None,
        };
        Ok(Page { items, next: on.and_then(|line| cursor(&GoesOn::From(line))), total: None })
    }

    fn backward(&self, query: &EventQuery, before: u64, most: usize) -> Result<Page<Event>, StoreError> {
        let mut items = Vec::new();
        let mut failed = None;
        let last = self.reader.journal_backward(before, MOST_LINES, |line, at, record| {
            if self.fits(query, &record) {
                match self.is_theirs(record.job()) {
                    Ok(true) => items.push(sights::event(line, at, &record, |node| self.name(node))),
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
            }
            items.len() < most && failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        items.reverse();
        // Where the journal begins, older events are in the history: forward from its first line.
        let next = last.filter(|line| *line > 1).and_then(|line| cursor(&GoesOn::Before(line)));
        Ok(Page { items, next, total: None })
    }

    /// Events that left the journal.
    fn old(&self, query: &EventQuery, from: u64, most: usize) -> Result<Vec<Event>, StoreError> {
        if query.node.is_some() {
            return Ok(Vec::new());
        }
        let user = self.own.as_ref().map(|(user, _)| user.clone());
        let job = query.job.map(JobId);
        let filter = EventFilter { from_line: from, user, job, most, ..EventFilter::default() };
        let kind = query.kind.as_deref().filter(|kind| !kind.is_empty());
        let found = self.reader.events(&filter)?.into_iter();
        let found = found.filter(|event| kind.is_none_or(|kind| event.kind == kind)).map(|event| Event {
            line: event.line,
            at_s: seconds(event.time),
            kind: event.kind,
            text: event.text,
            job: event.job.map(|job| job.0),
            node: None,
            user: Some(event.user).filter(|user| !user.is_empty()),
        });
        Ok(found.collect())
    }
}

/// What became of a job: its launches, its progress, what happened to it.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/history", operation_id = "show_job_history", tag = "jobs", params(("id" = u32, Path, description = "Its number.")),
    responses((status = 200, description = "What became of it.", body = JobHistory)))]
pub(crate) async fn job_history(
    State(shared): State<Arc<Shared>>,
    session: Session,
    JobInPath(id): JobInPath,
) -> Answer<Response> {
    let look = move |engine: &mut _, moment, person: &_| sights::job(engine, moment, person, id);
    let page = shared.asking.look(&session, RequestKind::Jobs, look).await?;
    let source = source(&shared, &session).await?;
    let history = shared.asking.read(move || {
        let from = source.reader.line_at(Time::from_secs_f64(page.job.submitted_s))?.unwrap_or(0);
        let (lines, is_complete) = source.reader.lines_of_job(id, from.saturating_sub(1), MOST_LINES)?;
        Ok::<_, StoreError>(told(&source, id, &lines, is_complete))
    });
    Ok(good(&history.await??))
}

/// A job's launches, progress and events from the lines of the journal that are about it.
fn told(source: &Events, id: JobId, lines: &[(u64, Time, Record)], is_complete: bool) -> JobHistory {
    let mut attempts: BTreeMap<u32, AttemptShape> = BTreeMap::new();
    let (mut points, mut events) = (Vec::new(), Vec::new());
    let mut launch = 0;
    let mut done = 0.0_f64;
    let mut ordered: Option<(Time, Vec<String>, u32)> = None;
    for (line, at, record) in lines {
        if record.job() == Some(id) && record.is_event() {
            events.push(sights::event(*line, *at, record, |node| source.name(node)));
        }
        let mut end = |launch: u32, how: &'static str, reason: &str, to: Option<f64>| {
            if let Some(attempt) = attempts.get_mut(&launch).filter(|attempt| attempt.end.is_none()) {
                attempt.ended_s = Some(seconds(*at));
                attempt.end = Some(how);
                attempt.reason = reason.to_owned();
                attempt.done_to = to.or(attempt.done_to);
            }
        };
        match record {
            Record::Planned { plan, .. } => {
                let mine = plan.run.iter().find(|(job, _)| *job == id).and_then(|(_, held)| held.as_ref());
                if let Some(held) = mine {
                    let nodes = held.slices.iter().map(|slice| source.name(slice.node)).collect();
                    ordered = Some((*at, nodes, held.n_gpus()));
                }
            }
            Record::JobStarted { job, incarnation } if *job == id => {
                launch = incarnation.0;
                let (ordered_s, nodes, gpus) = match ordered.take() {
                    Some((at, nodes, gpus)) => (Some(seconds(at)), nodes, gpus),
                    None => (None, Vec::new(), 0),
                };
                let attempt = AttemptShape {
                    launch,
                    nodes,
                    gpus,
                    ordered_s,
                    started_s: Some(seconds(*at)),
                    done_from: done,
                    ..AttemptShape::default()
                };
                attempts.insert(launch, attempt);
            }
            Record::JobProgressed { job, done: is, .. } | Record::JobCheckpointed { job, done: is, .. }
                if *job == id =>
            {
                done = done.max(*is);
                points.push([seconds(*at), done]);
            }
            Record::Progressed { jobs } => {
                for (_, _, is) in jobs.iter().filter(|(job, ..)| *job == id) {
                    done = done.max(*is);
                    points.push([seconds(*at), done]);
                }
            }
            Record::JobStopped { job, incarnation, done: is } if *job == id => {
                done = *is;
                end(incarnation.0, "stopped", "", Some(*is));
            }
            Record::JobRequeued { job, incarnation, done: is, reason, is_failure, .. } if *job == id => {
                done = *is;
                end(incarnation.0, if *is_failure { "failed" } else { "requeued" }, reason, Some(*is));
            }
            Record::JobFinished { job, incarnation, done: is } if *job == id => {
                done = *is;
                points.push([seconds(*at), done]);
                end(incarnation.0, "finished", "", Some(*is));
            }
            Record::JobFailed { job, reason } if *job == id => end(launch, "failed", reason, None),
            Record::JobCancelled { job, user } if *job == id => {
                end(launch, "cancelled", &format!("by {user}"), None);
            }
            Record::JobTimedOut { job, .. } if *job == id => end(launch, "time-limit", "", None),
            Record::JobExited { job, incarnation, code } if *job == id => {
                if let Some(attempt) = attempts.get_mut(&incarnation.0) {
                    attempt.exit_code = Some(*code);
                }
            }
            _ => {}
        }
    }
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let points = points.into_iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
    let skipped = events.len().saturating_sub(MOST_OF_PAGE);
    JobHistory {
        attempts: attempts.into_values().collect(),
        points: points.map(|(_, point)| point).collect(),
        events: events.split_off(skipped),
        is_complete,
    }
}

/// Which jobs that have ended.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryQuery {
    /// Whose they were.
    user: Option<String>,
    /// Whom they counted for.
    tenant: Option<String>,
    /// Their model.
    model: Option<String>,
    /// Their name.
    name: Option<String>,
    /// How they ended.
    state: Option<String>,
    /// Ended at this time or later, in seconds since 1970.
    from_unix_s: Option<f64>,
    /// Ended before this time, in seconds since 1970.
    until_unix_s: Option<f64>,
    /// For GPU-hours: user, tenant, model, day and state, joined by commas.
    by: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The end of the page before.
    cursor: Option<String>,
}

/// What is needed to read the history.
struct History {
    reader: Reader,
    own: Option<String>,
    nodes: Vec<String>,
    scale: f64,
    born_us: i64,
}

impl History {
    fn calendar_s(&self, time: Time) -> f64 {
        (self.born_us as f64 + time.0 as f64 / self.scale) / 1e6
    }

    fn filter(&self, query: &HistoryQuery, after: Option<u32>, most: usize) -> Answer<HistoryFilter> {
        let to_head = |unix_s: f64| Time(((unix_s * 1e6 - self.born_us as f64) * self.scale) as i64);
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let standing = match given(&query.state) {
            None => None,
            Some(state) => Some(
                crate::cluster_state::Standing::parse(&state)
                    .filter(|standing| standing.is_over())
                    .ok_or_else(|| ApiError::bad(format!("state={state}: no job ends so")))?,
            ),
        };
        if let (Some(own), Some(user)) = (&self.own, given(&query.user))
            && *own != user
        {
            let why = format!("jobs of `{user}`: only operators may name other users");
            return Err(ApiError::new(axum::http::StatusCode::FORBIDDEN, why));
        }
        Ok(HistoryFilter {
            from: query.from_unix_s.map(to_head),
            until: query.until_unix_s.map(to_head),
            user: self.own.clone().or_else(|| given(&query.user)),
            tenant: given(&query.tenant),
            model: given(&query.model),
            name: given(&query.name),
            standing,
            after: after.map(JobId),
            most,
        })
    }
}

async fn history_source(shared: &Shared, session: &Session) -> Answer<History> {
    let look = |engine: &mut _, _, person: &_| {
        let (reader, own, nodes) = sights::past_jobs_reader(engine, person)?;
        let (scale, born_us) = sights::calendar(engine)?;
        Ok(History { reader, own, nodes, scale, born_us })
    };
    shared.asking.look(session, RequestKind::History, look).await
}

/// Jobs that have ended, with times of the calendar.
#[utoipa::path(get, path = "/api/v1/history", operation_id = "list_history", tag = "records", params(HistoryQuery),
    responses((status = 200, description = "Jobs that have ended.", body = Page<PastJob>)))]
pub(crate) async fn history(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(query): Asked<HistoryQuery>,
) -> Answer<Response> {
    let most = limit(query.limit)?;
    let after: Option<u32> = position(query.cursor.as_deref())?;
    let source = history_source(&shared, &session).await?;
    let filter = source.filter(&query, after, most + 1)?;
    let page = shared.asking.read(move || {
        let mut jobs = source.reader.history(&filter)?;
        let is_more = jobs.len() > most;
        jobs.truncate(most);
        let next = jobs.last().filter(|_| is_more).and_then(|job| cursor(&job.id.0));
        let name = |node: &NodeId| source.nodes.get(node.index()).cloned().unwrap_or_default();
        let items = jobs.into_iter().map(|job| PastJob {
            id: job.id.0,
            submitted_unix_s: source.calendar_s(job.arrival),
            started_unix_s: job.started.map(|time| source.calendar_s(time)),
            ended_unix_s: source.calendar_s(job.ended),
            state: job.standing.as_str().to_owned(),
            nodes: job.nodes.iter().map(name).collect(),
            name: job.name,
            user: job.user,
            tenant: job.tenant,
            model: job.model,
            reason: job.reason,
            gpus: job.gpus,
            gpu_s: job.gpu_s,
            done: job.done,
            work: job.work,
            launches: job.last_launch.0,
            n_failures: job.n_failures,
            n_preemptions: job.n_preemptions,
        });
        Ok::<_, StoreError>(Page { items: items.collect(), next, total: None })
    });
    Ok(good(&page.await??))
}

/// GPU-hours of jobs that have ended.
#[utoipa::path(get, path = "/api/v1/history/usage", operation_id = "count_gpu_hours", tag = "records", params(HistoryQuery),
    responses((status = 200, description = "GPU-hours.", body = Usage)))]
pub(crate) async fn usage(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(query): Asked<HistoryQuery>,
) -> Answer<Response> {
    let by: Vec<String> = query.by.as_deref().unwrap_or("user").split(',').map(str::to_owned).collect();
    if let Some(other) =
        by.iter().find(|by| !["user", "tenant", "model", "day", "state"].contains(&by.as_str()))
    {
        return Err(ApiError::bad(format!("by={other}: write user, tenant, model, day or state")));
    }
    let source = history_source(&shared, &session).await?;
    source.filter(&query, None, 1)?;
    let counted = shared.asking.read(move || {
        let mut rows: BTreeMap<Vec<String>, (u64, u64, f64)> = BTreeMap::new();
        let (mut after, mut n_counted) = (None, 0);
        while n_counted < MOST_COUNTED {
            let Ok(filter) = source.filter(&query, after, 10_000) else { break };
            let jobs = source.reader.history(&filter)?;
            let Some(last) = jobs.last() else { break };
            after = Some(last.id.0);
            n_counted += jobs.len();
            for job in &jobs {
                let key = by.iter().map(|by| match by.as_str() {
                    "user" => job.user.clone(),
                    "tenant" => job.tenant.clone(),
                    "model" => job.model.clone(),
                    "state" => job.standing.as_str().to_owned(),
                    _ => day(source.calendar_s(job.ended)),
                });
                let row = rows.entry(key.collect()).or_default();
                row.0 += 1;
                row.1 += u64::from(job.standing == crate::cluster_state::Standing::Finished);
                row.2 += job.gpu_s / 3600.0;
            }
        }
        let row = |(key, (n_jobs, n_finished, gpu_hours))| UsageRow { key, n_jobs, n_finished, gpu_hours };
        Ok::<_, StoreError>(Usage { by, rows: rows.into_iter().map(row).collect() })
    });
    Ok(good(&counted.await??))
}

/// A day of the calendar, in UTC.
fn day(unix_s: f64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp(unix_s.floor() as i64);
    at.map_or_else(|_| String::new(), |at| at.date().to_string())
}

/// The whole journal, as lines of JSON.
#[utoipa::path(get, path = "/api/v1/journal", operation_id = "read_journal", tag = "records",
    responses((status = 200, description = "Lines of JSON: time in microseconds, then the record.", body = String, content_type = "application/x-ndjson")))]
pub(crate) async fn journal(State(shared): State<Arc<Shared>>, session: Session) -> Answer<Response> {
    let mut answers = shared.asking.begin(&session, FromUser::Journal, 16).await?;
    let first = match answers.recv().await {
        Some(Said::Refused { kind, why }) => return Err(ApiError::of(kind, why.as_str())),
        Some(first) => first,
        None => return Err(ApiError::unavailable("the head ended the conversation")),
    };
    let rest = ReceiverStream::new(answers);
    let pieces = tokio_stream::once(first).chain(rest).filter_map(|answer| match answer {
        Said::Message(ToUser::Text(text)) => {
            Some(Ok::<_, std::convert::Infallible>(Bytes::from(text.to_string())))
        }
        _ => None,
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], HttpBody::from_stream(pieces)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [
            (0.0, "1970-01-01"),
            (951_782_400.0, "2000-02-29"),
            (1_795_046_400.0, "2026-11-19"),
            (-1.0, "1969-12-31"),
        ];
        for (unix_s, expected) in days {
            assert_eq!(day(unix_s), expected);
        }
    }
}
