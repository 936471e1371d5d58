//! Server-sent events: the board once, then what changes. What several viewers see alike is written as JSON once. A viewer who does
//! not keep up is sent the whole board again when they have taken what was on its way; nobody waits for them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rota_core::ids::JobId;
use rota_transport::access::RequestKind;
use rota_transport::identity::UserRole;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::Shared;
use super::api::Asked;
use super::error::{Answer, ApiError};
use super::sessions::{Session, Sessions};
use super::shapes::{Event, Status, Tenant};
use crate::engine::sights::{
    self, Board, BoardJob, BoardNode, BoardPolicy, Changes, JOB_COLUMNS, JobRow, NODE_COLUMNS,
};

/// Viewers of one person, and in all.
const MOST_EACH: usize = 8;
const MOST_VIEWERS: usize = 64;
/// Updates on their way to a viewer.
const MOST_WAITING: usize = 4;
/// How often it is looked who has gone; a comment is sent at every fifteenth look.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const COMMENT_EVERY: u32 = 15;
/// What stands for a job that a viewer may not see.
const HIDDEN: i64 = -1;

/// What viewers may choose.
const TOPICS: [&str; 6] = ["status", "jobs", "nodes", "tenants", "policy", "events"];

/// Which of the topics, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Topics(u8);

impl Topics {
    fn has(self, topic: &str) -> bool {
        TOPICS.iter().position(|known| *known == topic).is_some_and(|at| self.0 & (1 << at) != 0)
    }
}

/// Who sees what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Audience {
    Operators,
    Owner { user: String, tenants: Vec<String> },
}

impl Audience {
    fn sees(&self, job: &BoardJob) -> bool {
        match self {
            Audience::Operators => true,
            Audience::Owner { user, .. } => job.user == *user,
        }
    }
}

struct Viewer {
    session: u64,
    user: String,
    generation: u64,
    audience: Audience,
    topics: Topics,
    out: mpsc::Sender<Bytes>,
    /// Whether the whole board has to be sent.
    is_behind: bool,
}

/// The viewers and what they see.
pub(crate) struct Hub {
    state: Arc<Mutex<HubState>>,
}

struct HubState {
    board: Board,
    /// Whether the board is kept up to date.
    is_live: bool,
    seq: u64,
    viewers: Vec<Viewer>,
    n_viewers: Arc<AtomicUsize>,
    sessions: Arc<Sessions>,
}

impl Hub {
    /// Starts to hand changes out. Needs a tokio runtime.
    pub(crate) fn start(
        mut changes: mpsc::Receiver<Changes>,
        n_viewers: Arc<AtomicUsize>,
        sessions: Arc<Sessions>,
    ) -> Self {
        let state = HubState {
            board: Board::default(),
            is_live: false,
            seq: 0,
            viewers: Vec::new(),
            n_viewers,
            sessions,
        };
        let state = Arc::new(Mutex::new(state));
        let ours = Arc::clone(&state);
        tokio::spawn(async move {
            let mut look = tokio::time::interval(LOOK_EVERY);
            let mut n_looks = 0_u32;
            loop {
                tokio::select! {
                    changes = changes.recv() => match changes {
                        Some(changes) => locked(&ours).take(&changes),
                        None => return,
                    },
                    _ = look.tick() => {
                        n_looks = n_looks.wrapping_add(1);
                        locked(&ours).look(n_looks.is_multiple_of(COMMENT_EVERY));
                    }
                }
            }
        });
        Hub { state }
    }

    /// How many look.
    pub(crate) fn n_viewers(&self) -> usize {
        locked(&self.state).viewers.len()
    }

    /// A new viewer, and whether the engine has to be asked for everything.
    fn join(&self, mut viewer: Viewer) -> Answer<bool> {
        let mut state = locked(&self.state);
        let too_many = |why| ApiError::new(StatusCode::TOO_MANY_REQUESTS, why);
        state.forget_gone();
        if state.viewers.len() >= MOST_VIEWERS {
            return Err(too_many("as many streams as there may be are open: ask again later"));
        }
        if state.viewers.iter().filter(|known| known.user == viewer.user).count() >= MOST_EACH {
            return Err(too_many("as many of your streams as there may be are open: close one"));
        }
        let is_live = state.is_live;
        if is_live {
            let frame = state.whole(&viewer.audience, viewer.topics);
            viewer.is_behind = viewer.out.try_send(frame).is_err();
        }
        state.viewers.push(viewer);
        state.count();
        Ok(!is_live)
    }
}

fn locked(state: &Mutex<HubState>) -> MutexGuard<'_, HubState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HubState {
    /// Takes changes in and hands them out.
    fn take(&mut self, changes: &Changes) {
        if changes.is_whole {
            self.board = Board::default();
            self.is_live = true;
            self.viewers.iter_mut().for_each(|viewer| viewer.is_behind = true);
        }
        // Whose a job was that has just ended has to be known to tell its owner.
        let gone: Vec<Arc<BoardJob>> =
            changes.gone.iter().filter_map(|id| self.board.jobs.get(id)).cloned().collect();
        self.board.apply(changes);
        self.seq += 1;
        self.end_sessions();
        let mut wholes: BTreeMap<(Audience, Topics), Bytes> = BTreeMap::new();
        let mut deltas: BTreeMap<(Audience, Topics), Option<Bytes>> = BTreeMap::new();
        let mut viewers = std::mem::take(&mut self.viewers);
        for viewer in &mut viewers {
            let key = (viewer.audience.clone(), viewer.topics);
            if viewer.is_behind {
                // Only when they have taken everything: else they would be sent more than they can take again.
                if viewer.out.capacity() == MOST_WAITING {
                    let frame =
                        wholes.entry(key).or_insert_with(|| self.whole(&viewer.audience, viewer.topics));
                    viewer.is_behind = viewer.out.try_send(frame.clone()).is_err();
                }
                continue;
            }
            let frame = deltas
                .entry(key)
                .or_insert_with(|| self.delta(changes, &gone, &viewer.audience, viewer.topics));
            if let Some(frame) = frame {
                viewer.is_behind = viewer.out.try_send(frame.clone()).is_err();
            }
        }
        self.viewers = viewers;
        self.count();
    }

    /// Looks who has gone.
    fn look(&mut self, comments: bool) {
        self.end_sessions();
        if comments {
            let comment = Bytes::from_static(b": keep\n\n");
            self.viewers.iter().for_each(|viewer| {
                let _ = viewer.out.try_send(comment.clone());
            });
        }
        self.forget_gone();
        self.count();
    }

    /// Streams end with their sessions, and when roles have changed: who may see what is asked anew.
    fn end_sessions(&mut self) {
        let sessions = Arc::clone(&self.sessions);
        self.viewers.retain(|viewer| {
            let why = match () {
                () if !sessions.goes_on(viewer.session) => "signed out",
                () if sessions.generation() != viewer.generation => "roles have changed",
                () => return true,
            };
            let _ = viewer.out.try_send(Bytes::from(format!("event: bye\ndata: {{\"why\":\"{why}\"}}\n\n")));
            false
        });
    }

    fn forget_gone(&mut self) {
        self.viewers.retain(|viewer| !viewer.out.is_closed());
    }

    fn count(&mut self) {
        self.n_viewers.store(self.viewers.len(), Ordering::Relaxed);
        // The engine stops comparing: what is known grows old.
        self.is_live &= !self.viewers.is_empty();
    }

    fn whole(&self, audience: &Audience, topics: Topics) -> Bytes {
        let board = &self.board;
        let jobs = || board.jobs.values().filter(|job| audience.sees(job)).map(|job| &job.row).collect();
        let nodes = || board.nodes.values().map(|node| self.node_row(node, audience)).collect();
        let whole = Whole {
            seq: self.seq,
            now_s: board.now_s,
            columns: Columns { jobs: JOB_COLUMNS.to_vec(), nodes: NODE_COLUMNS.to_vec() },
            status: board.status.as_ref().filter(|_| topics.has("status")),
            jobs: topics.has("jobs").then(jobs),
            nodes: topics.has("nodes").then(nodes),
            tenants: topics.has("tenants").then(|| theirs(&board.tenants, audience)),
            policy: board.policy.as_ref().filter(|_| topics.has("policy")),
            last_event: board.last_event,
        };
        frame("snapshot", self.seq, &whole)
    }

    fn delta(
        &self,
        changes: &Changes,
        ended: &[Arc<BoardJob>],
        audience: &Audience,
        topics: Topics,
    ) -> Option<Bytes> {
        let jobs: Vec<_> = match topics.has("jobs") {
            true => changes.jobs.iter().filter(|job| audience.sees(job)).map(|job| &job.row).collect(),
            false => Vec::new(),
        };
        let gone: Vec<u32> = match topics.has("jobs") {
            true => ended.iter().filter(|job| audience.sees(job)).map(|job| job.id).collect(),
            false => Vec::new(),
        };
        let nodes: Vec<_> = match topics.has("nodes") {
            true => changes.nodes.iter().map(|node| self.node_row(node, audience)).collect(),
            false => Vec::new(),
        };
        let is_theirs = |event: &&Event| match audience {
            Audience::Operators => true,
            Audience::Owner { .. } => event.job.is_some_and(|id| {
                let has_gone = || ended.iter().find(|job| job.id == id);
                self.board.jobs.get(&id).or_else(has_gone).is_some_and(|job| audience.sees(job))
            }),
        };
        let events: Vec<_> = match topics.has("events") {
            true => changes.events.iter().filter(is_theirs).collect(),
            false => Vec::new(),
        };
        let delta = Delta {
            seq: self.seq,
            now_s: changes.now_s,
            status: changes.status.as_ref().filter(|_| topics.has("status")),
            tenants: changes
                .tenants
                .as_ref()
                .filter(|_| topics.has("tenants"))
                .map(|all| theirs(all, audience)),
            policy: changes.policy.as_ref().filter(|_| topics.has("policy")),
            jobs,
            gone,
            nodes,
            events,
        };
        let is_empty = delta.status.is_none()
            && delta.tenants.is_none()
            && delta.policy.is_none()
            && delta.jobs.is_empty()
            && delta.gone.is_empty()
            && delta.nodes.is_empty()
            && delta.events.is_empty();
        (!is_empty).then(|| frame("delta", self.seq, &delta))
    }

    fn node_row<'n>(&self, node: &'n BoardNode, audience: &Audience) -> NodeRow<'n> {
        let shown = |job: &Option<JobId>| {
            job.map(|job| match self.board.jobs.get(&job.0).is_some_and(|known| audience.sees(known)) {
                true => i64::from(job.0),
                false => HIDDEN,
            })
        };
        let gpus = node.gpus.iter().map(shown).collect();
        let BoardNode { index, name, state, gpu_type, n_gpus, rack, reason, bad, .. } = node;
        NodeRow(*index, name, state, gpu_type, *n_gpus, *rack, reason, gpus, bad)
    }
}

fn theirs<'t>(all: &'t [Tenant], audience: &Audience) -> Vec<&'t Tenant> {
    let is_theirs = |tenant: &&Tenant| match audience {
        Audience::Operators => true,
        Audience::Owner { tenants, .. } => tenants.contains(&tenant.name),
    };
    all.iter().filter(is_theirs).collect()
}

fn frame(kind: &str, seq: u64, value: &impl Serialize) -> Bytes {
    let mut text = format!("event: {kind}\nid: {seq}\ndata: ").into_bytes();
    if let Err(error) = serde_json::to_writer(&mut text, value) {
        tracing::error!("an update for viewers cannot be written: {error}");
        return Bytes::from_static(b": lost\n\n");
    }
    text.extend(b"\n\n");
    Bytes::from(text)
}

/// A node in columns.
#[derive(Serialize)]
struct NodeRow<'n>(u32, &'n str, &'n str, &'n str, u32, u32, &'n str, Vec<Option<i64>>, &'n [u32]);

#[derive(Serialize)]
struct Columns {
    jobs: Vec<&'static str>,
    nodes: Vec<&'static str>,
}

#[derive(Serialize)]
struct Whole<'b> {
    seq: u64,
    now_s: f64,
    columns: Columns,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'b Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<&'b JobRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<NodeRow<'b>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<Vec<&'b Tenant>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'b BoardPolicy>,
    last_event: u64,
}

#[derive(Serialize)]
struct Delta<'b> {
    seq: u64,
    now_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'b Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<Vec<&'b Tenant>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'b BoardPolicy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<&'b JobRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeRow<'b>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<&'b Event>,
}

/// What a viewer wants to see.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// Topics, joined by commas.
    topics: Option<String>,
}

/// The board, then what changes, as server-sent events.
pub(crate) async fn stream(
    State(shared): State<Arc<Shared>>,
    session: Session,
    Asked(query): Asked<StreamQuery>,
) -> Answer<Response> {
    let mut topics = Topics(0);
    for topic in query.topics.as_deref().map_or(TOPICS.to_vec(), |topics| topics.split(',').collect()) {
        let at = TOPICS.iter().position(|known| *known == topic);
        let at = at.ok_or_else(|| ApiError::bad(format!("topics={topic}: there is no such topic")))?;
        topics.0 |= 1 << at;
    }
    let generation = shared.sessions.generation();
    let look = |_: &mut _, _, person: &_| Ok(sights::who(person));
    let who = shared.asking.look(&session, RequestKind::Jobs, look).await?;
    let audience = match who.role >= Some(UserRole::Operate) {
        true => Audience::Operators,
        false => Audience::Owner { user: session.user.to_string(), tenants: who.tenants },
    };
    let (out, frames) = mpsc::channel(MOST_WAITING);
    let (user, session_id) = (session.user.to_string(), session.id);
    let viewer = Viewer { session: session_id, user, generation, audience, topics, out, is_behind: true };
    if shared.hub.join(viewer)? {
        shared.asking.look_at_the_head(&session, |engine, _, _| sights::start_over(engine)).await?;
    }
    let frames = ReceiverStream::new(frames).map(Ok::<_, Infallible>);
    let kind = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((kind, Body::from_stream(frames)).into_response())
}
