//! Long answers: the journal, events, and jobs that have ended. They are read and sent by a thread of their own, on a
//! connection of its own, so that the engine goes on meanwhile, however slowly the reader takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rota_core::ids::JobId;
use rota_core::time::Time;
use rota_transport::message::{EventView, JobView, ToUser};
use rota_transport::value::{Iterations, LongText, Name, Text, Wait};

use super::replies::{Reply, failed};
use super::views;
use crate::crowd::Crowd;
use crate::record::Record;
use crate::roles::Person;
use crate::store::StoreError;
use crate::store::history::{EndedJob, EventFilter, HistoryFilter, Reader};

/// The most streams at a time, ...
const MOST_STREAMS: usize = 64;
/// ... and of one person, whose programs may take as long as they like.
const MOST_OF_PERSON: usize = 8;
/// The most jobs or lines of the journal in one message.
const PER_MESSAGE: usize = 200;
/// The most lines of the journal in one answer.
const MOST_EVENTS: usize = 5_000;
/// The most times as many that are looked at for them.
const MOST_PAGES: usize = 20;
/// The kind of the line that stands for lines of others.
const LEFT_OUT: &str = "left-out";
/// The most bytes of a long text in one message.
const TEXT_PIECE_BYTES: usize = 200_000;

/// What a stream is about.
#[derive(Debug)]
pub(super) enum Stream {
    /// The whole journal as lines of JSON: time in microseconds, then the record.
    Journal,
    /// The events from a given line on, as sentences.
    Events { from: u64, person: Person, own_jobs: BTreeSet<JobId>, nodes: Vec<String> },
    /// Jobs that have ended, of one user or of all, among those that the engine knows itself.
    Jobs { user: Option<String>, known: Vec<JobView> },
}

/// How many streams are under way.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    n_open: Arc<AtomicUsize>,
    readers: Arc<Crowd>,
}

impl Default for Streams {
    fn default() -> Self {
        Streams { n_open: Arc::default(), readers: Arc::new(Crowd::new(MOST_OF_PERSON)) }
    }
}

impl Streams {
    /// Starts a stream. It reads what is on the disk, so it is started when all it rests on is.
    pub(super) fn start(
        &self,
        reader: Result<Reader, StoreError>,
        user: &Name,
        stream: Stream,
        reply: Reply,
    ) {
        let Some(permit) = self.readers.enter(user) else {
            let why = format!(
                "{MOST_OF_PERSON} long answers are being sent to {user}: read one of them to its end"
            );
            let _ = reply.try_send(failed(&why));
            return;
        };
        if self.n_open.load(Ordering::Relaxed) >= MOST_STREAMS {
            let _ = reply.try_send(failed("too many long answers are being sent: ask again later"));
            return;
        }
        self.n_open.fetch_add(1, Ordering::Relaxed);
        let n_open = Arc::clone(&self.n_open);
        let thread = std::thread::Builder::new().name("stream".into());
        let started = thread.spawn(move || {
            let sent = reader.and_then(|reader| send(&reader, stream, &reply));
            let last = sent.map_or_else(|error| failed(&error.to_string()), |()| ToUser::End.into());
            // The reader may be gone.
            let _ = reply.blocking_send(last);
            drop(permit);
            n_open.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = started {
            tracing::error!("no thread for a long answer: {error}");
            self.n_open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn send(reader: &Reader, stream: Stream, reply: &Reply) -> Result<(), StoreError> {
    match stream {
        Stream::Journal => journal(reader, reply),
        Stream::Events { from, person, own_jobs, nodes } => {
            events(reader, reply, from, &person, &own_jobs, &nodes)
        }
        Stream::Jobs { user, known } => jobs(reader, reply, user, known),
    }
}

fn journal(reader: &Reader, reply: &Reply) -> Result<(), StoreError> {
    let mut text = String::new();
    reader.read_journal(|_, time, record| {
        if let Ok(body) = serde_json::to_string(&(time, &record)) {
            text.push_str(&body);
            text.push('\n');
        }
        text.len() < TEXT_PIECE_BYTES || send_text(reply, &std::mem::take(&mut text))
    })?;
    send_text(reply, &text);
    Ok(())
}

/// Sends a text in pieces; whether the reader is still there.
fn send_text(reply: &Reply, text: &str) -> bool {
    pieces(text).into_iter().all(|piece| reply.blocking_send(piece.into()).is_ok())
}

/// A text of any length, cut between characters into messages.
pub(super) fn pieces(text: &str) -> Vec<ToUser> {
    let (mut found, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = (0..=rest.len().min(TEXT_PIECE_BYTES)).rev().find(|at| rest.is_char_boundary(*at));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        found.push(ToUser::Text(LongText::cut(piece)));
        rest = after;
    }
    found
}

/// At most [`MOST_EVENTS`] lines. A person who does not operate the cluster reads about their own jobs; a line stands for what was
/// left out at the end, so that they know where to go on.
fn events(
    reader: &Reader,
    reply: &Reply,
    from: u64,
    person: &Person,
    own_jobs: &BTreeSet<JobId>,
    nodes: &[String],
) -> Result<(), StoreError> {
    let user = (!person.operates()).then(|| person.name.to_string());
    let old = EventFilter { from_line: from, user, most: MOST_EVENTS, ..EventFilter::default() };
    let old = reader.events(&old)?;
    let mut found: Vec<_> = old
        .iter()
        .map(|event| EventView {
            index: event.line,
            time: event.time,
            kind: Text::cut(&event.kind),
            text: Text::cut(&event.text),
        })
        .collect();
    let mut owners = Owners { reader, person, own_jobs, seen: BTreeMap::new() };
    let mut next = found.last().map_or(from, |last| from.max(last.index + 1));
    for _ in 0..MOST_PAGES {
        if found.len() >= MOST_EVENTS {
            break;
        }
        let lines = reader.journal(next, MOST_EVENTS)?;
        let Some((last, at, _)) = lines.last() else { break };
        let (last, at) = (*last, *at);
        next = last + 1;
        for line in lines {
            if person.operates() || owners.may_see(&line.2)? {
                found.push(event_view(line, nodes));
            }
        }
        if person.operates() {
            break;
        }
        if found.last().is_none_or(|seen| seen.index < last) {
            let text = Text::cut("others' jobs and the cluster itself, up to here");
            found.retain(|view| view.kind.as_str() != LEFT_OUT);
            found.push(EventView { index: last, time: at, kind: Text::cut(LEFT_OUT), text });
        }
    }
    for some in found.chunks(PER_MESSAGE) {
        if reply.blocking_send(ToUser::Events(some.to_vec()).into()).is_err() {
            break;
        }
    }
    Ok(())
}

/// Whose jobs are whose.
struct Owners<'a> {
    reader: &'a Reader,
    person: &'a Person,
    own_jobs: &'a BTreeSet<JobId>,
    seen: BTreeMap<JobId, bool>,
}

impl Owners<'_> {
    fn may_see(&mut self, record: &Record) -> Result<bool, StoreError> {
        let Some(job) = record.job() else { return Ok(false) };
        if self.own_jobs.contains(&job) {
            return Ok(true);
        }
        if let Some(known) = self.seen.get(&job) {
            return Ok(*known);
        }
        let ended = self.reader.ended_job(job)?;
        let is_theirs = ended.is_some_and(|ended| self.person.may_touch(&ended.user));
        self.seen.insert(job, is_theirs);
        Ok(is_theirs)
    }
}

fn event_view((index, time, record): (u64, Time, Record), nodes: &[String]) -> EventView {
    let (kind, text) = (Text::cut(record.kind()), Text::cut(&record.to_text_with(nodes)));
    EventView { index, time, kind, text }
}

/// Jobs by number: those that have ended come from the history, the others, and what is newest of any, from the engine.
fn jobs(reader: &Reader, reply: &Reply, user: Option<String>, known: Vec<JobView>) -> Result<(), StoreError> {
    let mut known: BTreeMap<JobId, JobView> = known.into_iter().map(|view| (view.id, view)).collect();
    let mut after = None;
    loop {
        let filter =
            HistoryFilter { user: user.clone(), after, most: PER_MESSAGE, ..HistoryFilter::default() };
        let page = reader.history(&filter)?;
        let Some(last) = page.last().map(|job| job.id) else { break };
        let mut views: BTreeMap<JobId, JobView> =
            page.iter().filter_map(|job| Some((job.id, ended_view(job)?))).collect();
        let later = known.split_off(&JobId(last.0.saturating_add(1)));
        views.append(&mut known);
        known = later;
        if !send_jobs(reply, views) {
            return Ok(());
        }
        after = Some(last);
    }
    send_jobs(reply, known);
    Ok(())
}

fn send_jobs(reply: &Reply, views: BTreeMap<JobId, JobView>) -> bool {
    let views: Vec<_> = views.into_values().collect();
    views.chunks(PER_MESSAGE).all(|some| reply.blocking_send(ToUser::Jobs(some.to_vec()).into()).is_ok())
}

/// A job of the history as users see it.
pub(super) fn ended_view(job: &EndedJob) -> Option<JobView> {
    let count = |count: f64| Iterations::new(count.clamp(0.0, 1e15)).unwrap_or(Iterations::NONE);
    Some(JobView {
        id: job.id,
        name: Text::cut(&job.name),
        user: Name::new(job.user.as_str()).ok()?,
        model: Text::cut(&job.model),
        state: views::state_of_ended(job.standing),
        reason: Text::cut(&job.reason),
        gpus_asked: job.gpus,
        gpus_held: 0,
        nodes: Vec::new(),
        done: count(job.done),
        work: count(job.work),
        arrival: job.arrival,
        started: job.started,
        ended: Some(job.ended),
        deadline: job.deadline,
        incarnation: job.last_launch,
        n_failures: job.n_failures,
        n_preemptions: job.n_preemptions,
        priority: job.priority,
        time_limit: job.time_limit.map(Wait::cut),
        exit_code: job.exit_code,
    })
}
