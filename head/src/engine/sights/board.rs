//! The board: what viewers of the live page see, kept up to date by what has changed. The engine compares what it has with what it
//! last said, at most twice a second and only while somebody looks; everything else happens in the tasks of the page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rota_core::allocation::Allocation;
use rota_core::ids::{JobId, NodeId};
use rota_core::table::JobPhase;
use rota_core::time::{Span, Time};
use rota_transport::value::Name;
use serde::Serialize;
use tokio::sync::mpsc;

use super::super::{Engine, views};
use super::jobs::tenant;
use super::nodes::{node_state_word, on_gpus};
use super::{newest_launches, status};
use crate::cluster_state::{JobRecord, Standing};
use crate::record::Record;
use crate::roles::Person;
use crate::state::{LaunchPhase, LiveLaunch, Moment};
use crate::store::Write;
use crate::web::shapes::{Event, Expected, Status, Tenant, seconds};

/// The least time between two updates.
const LEAST_GAP: Span = Span(450_000);
/// Comparing may take this part of the engine's time at most.
const SHARE: i64 = 40;
/// The most events in an update; more are left to the list.
const MOST_EVENTS: usize = 200;
/// A row is sent again when what viewers extrapolate is off by this part of the work.
const OFF: f64 = 0.02;

/// A job as viewers see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoardJob {
    pub(crate) id: u32,
    pub(crate) user: String,
    pub(crate) row: JobRow,
}

/// The columns of a job, in their order.
pub(crate) const JOB_COLUMNS: [&str; 22] = [
    "id",
    "name",
    "user",
    "tenant",
    "model",
    "state",
    "gpus",
    "held",
    "nodes",
    "priority",
    "submitted_s",
    "started_s",
    "deadline_s",
    "done",
    "rate",
    "as_of_s",
    "work",
    "reason",
    "end_s",
    "start_low_s",
    "start_median_s",
    "start_high_s",
];

/// A job in columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct JobRow(
    u32,
    String,
    String,
    String,
    String,
    &'static str,
    u32,
    u32,
    Vec<u32>,
    i32,
    f64,
    Option<f64>,
    Option<f64>,
    f64,
    Option<f64>,
    f64,
    f64,
    String,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
);

/// The columns of a node, in their order.
pub(crate) const NODE_COLUMNS: [&str; 9] =
    ["index", "name", "state", "gpu_type", "n_gpus", "rack", "reason", "gpus", "health"];

/// A node as viewers see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoardNode {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) state: &'static str,
    pub(crate) gpu_type: String,
    pub(crate) n_gpus: u32,
    pub(crate) rack: u32,
    pub(crate) reason: String,
    /// The job on each GPU.
    pub(crate) gpus: Vec<Option<JobId>>,
    /// Numbers of GPUs that cannot be used.
    pub(crate) bad: Vec<u32>,
}

/// The policy in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BoardPolicy {
    pub(crate) name: String,
    pub(crate) set: Vec<(String, String)>,
    pub(crate) refused: String,
}

/// What has changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) now_s: f64,
    /// Whether it is everything, and what was known before does not count.
    pub(crate) is_whole: bool,
    pub(crate) status: Option<Status>,
    pub(crate) jobs: Vec<Arc<BoardJob>>,
    /// Jobs that have ended.
    pub(crate) gone: Vec<u32>,
    pub(crate) nodes: Vec<Arc<BoardNode>>,
    pub(crate) tenants: Option<Vec<Tenant>>,
    pub(crate) policy: Option<BoardPolicy>,
    pub(crate) events: Vec<Event>,
    pub(crate) last_event: u64,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.status.is_none()
            && self.jobs.is_empty()
            && self.gone.is_empty()
            && self.nodes.is_empty()
            && self.tenants.is_none()
            && self.policy.is_none()
            && self.events.is_empty()
    }
}

/// All of what viewers see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    pub(crate) now_s: f64,
    pub(crate) status: Option<Status>,
    pub(crate) jobs: BTreeMap<u32, Arc<BoardJob>>,
    pub(crate) nodes: BTreeMap<u32, Arc<BoardNode>>,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) policy: Option<BoardPolicy>,
    pub(crate) last_event: u64,
}

impl Board {
    /// Takes in what has changed.
    pub(crate) fn apply(&mut self, changes: &Changes) {
        self.now_s = changes.now_s;
        self.last_event = changes.last_event;
        for job in &changes.jobs {
            self.jobs.insert(job.id, Arc::clone(job));
        }
        for id in &changes.gone {
            self.jobs.remove(id);
        }
        for node in &changes.nodes {
            self.nodes.insert(node.index, Arc::clone(node));
        }
        self.status = changes.status.clone().or_else(|| self.status.take());
        self.policy = changes.policy.clone().or_else(|| self.policy.take());
        if let Some(tenants) = &changes.tenants {
            self.tenants.clone_from(tenants);
        }
    }
}

/// What the engine last said, and to whom.
pub(crate) struct Watch {
    out: Option<mpsc::Sender<Changes>>,
    n_viewers: Arc<AtomicUsize>,
    jobs: BTreeMap<JobId, Known>,
    nodes: BTreeMap<NodeId, Arc<BoardNode>>,
    status: Option<Status>,
    tenants: Vec<Tenant>,
    policy: Option<BoardPolicy>,
    events: Vec<Event>,
    not_before: Time,
    /// Counts comparisons.
    look: u64,
}

/// What was last said of a job.
struct Known {
    record: Arc<JobRecord>,
    state: &'static str,
    held: Allocation,
    rate: Option<f64>,
    done: f64,
    as_of: Time,
    start: Option<Expected>,
    is_away: bool,
    /// Of the last look at which it was there.
    look: u64,
}

impl Default for Watch {
    /// Nobody looks, ever.
    fn default() -> Self {
        Watch {
            out: None,
            n_viewers: Arc::default(),
            jobs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            status: None,
            tenants: Vec::new(),
            policy: None,
            events: Vec::new(),
            not_before: Time(i64::MIN),
            look: 0,
        }
    }
}

impl Watch {
    /// Changes go there while there are viewers.
    pub(crate) fn new(out: mpsc::Sender<Changes>, n_viewers: Arc<AtomicUsize>) -> Self {
        Watch { out: Some(out), n_viewers, ..Watch::default() }
    }

    /// Whether somebody looks.
    pub(crate) fn is_watched(&self) -> bool {
        self.n_viewers.load(Ordering::Relaxed) > 0
    }

    /// Forgets what was said.
    fn forget(&mut self) {
        let (out, n_viewers) = (self.out.take(), Arc::clone(&self.n_viewers));
        *self = Watch { out, n_viewers, ..Watch::default() };
    }

    /// When the next update may be made, in real time; none while nobody looks.
    pub(crate) fn due(&self) -> Option<Time> {
        self.is_watched().then_some(self.not_before)
    }

    /// Notes events that are on the disk now; the last of them is line `position`.
    pub(crate) fn note(&mut self, writes: &[Write], position: u64, node_name: impl Fn(NodeId) -> String) {
        if !self.is_watched() {
            return;
        }
        let records: Vec<_> = writes
            .iter()
            .filter_map(|write| match write {
                Write::Record(at, record) => Some((*at, record)),
                _ => None,
            })
            .collect();
        let first = position.saturating_sub(records.len() as u64) + 1;
        for (line, (at, record)) in (first..).zip(records) {
            if self.events.len() < MOST_EVENTS && record.is_event() {
                self.events.push(event(line, at, record, &node_name));
            }
        }
    }
}

/// A record as people see it.
pub(crate) fn event(line: u64, at: Time, record: &Record, node_name: impl Fn(NodeId) -> String) -> Event {
    Event {
        line,
        at_s: seconds(at),
        kind: record.kind().to_owned(),
        text: record.to_text(),
        job: record.job().map(|job| job.0),
        node: record.node().map(node_name),
        user: Some(record.user().to_owned()).filter(|user| !user.is_empty()),
    }
}

/// Viewers came after nobody had looked: they are told everything.
pub(crate) fn start_over(engine: &mut Engine) {
    engine.watch.forget();
}

impl Engine {
    /// Tells viewers what has changed, if it is time; all of it is on the disk.
    pub(crate) fn tell_viewers(&mut self, moment: Moment) {
        if !self.watch.is_watched() {
            if self.watch.look > 0 {
                self.watch.forget();
            }
            return;
        }
        if moment.real < self.watch.not_before {
            return;
        }
        let began = self.clock.moment().real;
        let mut watch = std::mem::take(&mut self.watch);
        let permit = watch.out.as_ref().and_then(|out| out.clone().try_reserve_owned().ok());
        // The task that takes them is behind: what has changed is said next time.
        if let Some(permit) = permit {
            let changes = watch.compare(self, moment);
            if !changes.is_empty() {
                permit.send(changes);
            }
        }
        let cost = self.clock.moment().real - began;
        watch.not_before = moment.real + LEAST_GAP.max(cost * SHARE);
        self.watch = watch;
    }
}

impl Watch {
    fn compare(&mut self, engine: &Engine, moment: Moment) -> Changes {
        let now = moment.now;
        let mut changes = Changes {
            now_s: seconds(now),
            is_whole: self.look == 0,
            last_event: engine.store.position(),
            events: std::mem::take(&mut self.events),
            ..Changes::default()
        };
        self.compare_jobs(engine, now, &mut changes);
        self.compare_nodes(engine, &mut changes);
        let mut is = status(engine, moment);
        // The time alone is no news.
        let now_s = std::mem::replace(&mut is.now_s, 0.0);
        if self.status.as_ref() != Some(&is) {
            self.status = Some(is.clone());
            is.now_s = now_s;
            changes.status = Some(is);
        }
        let tenants = super::tenants(engine, &Person::anybody());
        if self.tenants != tenants {
            self.tenants.clone_from(&tenants);
            changes.tenants = Some(tenants);
        }
        let policy = engine.state.cluster().policy();
        let policy = BoardPolicy {
            name: policy.name.clone(),
            set: policy.set.clone(),
            refused: policy.refused.clone(),
        };
        if self.policy.as_ref() != Some(&policy) {
            self.policy = Some(policy.clone());
            changes.policy = Some(policy);
        }
        changes
    }

    fn compare_jobs(&mut self, engine: &Engine, now: Time, changes: &mut Changes) {
        let launches = newest_launches(engine);
        let cluster = engine.state.cluster();
        self.look += 1;
        let look = self.look;
        for (id, job) in cluster.jobs() {
            if job.standing.is_over() {
                continue;
            }
            let live = launches.get(id).copied();
            let mut is = Now::of(engine, now, *id, job, live);
            if let Some(known) = self.jobs.get_mut(id) {
                known.look = look;
                if !is.is_news(known, job, now) {
                    continue;
                }
            }
            is.rate = is.speed(engine, job);
            changes.jobs.push(Arc::new(is.row(engine, now, *id, job)));
            self.jobs.insert(*id, is.known(job, now, look));
        }
        let gone = &mut changes.gone;
        self.jobs.retain(|id, known| {
            let is_there = known.look == look;
            if !is_there {
                gone.push(id.0);
            }
            is_there
        });
    }

    fn compare_nodes(&mut self, engine: &Engine, changes: &mut Changes) {
        let cluster = engine.state.cluster();
        let (nodes, types) =
            (cluster.scheduler().cluster().nodes(), cluster.scheduler().cluster().gpu_types());
        let on_gpus = on_gpus(engine);
        let agents: BTreeMap<NodeId, (&Name, &crate::state::Agent)> = engine
            .state
            .agents()
            .iter()
            .filter_map(|(name, agent)| Some((agent.node()?, (name, agent))))
            .collect();
        for node in nodes {
            let Some((name, agent)) = agents.get(&node.id) else { continue };
            let bad = cluster.scheduler().nodes().bad_gpus.get(&node.id).copied().unwrap_or_default();
            let is = BoardNode {
                index: node.id.0,
                name: name.to_string(),
                state: node_state_word(engine, agent),
                gpu_type: types.get(node.gpu_type.index()).cloned().unwrap_or_default(),
                n_gpus: node.n_gpus,
                rack: node.rack,
                reason: views::node_reason(cluster, agent),
                gpus: on_gpus
                    .get(&node.id)
                    .map(|gpus| gpus.iter().map(|jobs| jobs.first().copied()).collect())
                    .unwrap_or_default(),
                bad: bad.iter().collect(),
            };
            if self.nodes.get(&node.id).is_none_or(|known| **known != is) {
                let is = Arc::new(is);
                self.nodes.insert(node.id, Arc::clone(&is));
                changes.nodes.push(is);
            }
        }
    }
}

/// How a job is at present.
struct Now<'a> {
    state: &'static str,
    held: Option<&'a Allocation>,
    done: f64,
    start: Option<Expected>,
    is_away: bool,
    /// Its speed, once it was worked out.
    rate: Option<f64>,
}

impl<'a> Now<'a> {
    fn of(engine: &'a Engine, now: Time, id: JobId, job: &JobRecord, live: Option<&LiveLaunch>) -> Self {
        let cluster = engine.state.cluster();
        let jobs = cluster.scheduler().jobs();
        let row = jobs.row(id);
        let held = row.map(|row| jobs.allocation(row)).filter(|held| !held.is_empty());
        let is_away = held.is_some_and(|held| held.slices.iter().any(|slice| cluster.is_cut_off(slice.node)));
        let reported = live.map_or(0.0, |live| live.iterations + live.skipped);
        let expected = row.map_or(0.0, |row| match jobs.phase(row) {
            JobPhase::Running => jobs.done_at(row, now),
            JobPhase::Asking | JobPhase::Waiting => jobs.done(row),
        });
        let phase: Option<&LaunchPhase> = live.map(|live| &live.phase);
        let is_running = matches!(phase, Some(LaunchPhase::Running));
        Now {
            state: views::job_state(cluster, id, job, phase).as_str(),
            held,
            done: if is_running { expected.max(reported) } else { cluster.done(id).max(reported) },
            start: engine.forecasts.start_of(id).filter(|_| held.is_none()),
            is_away,
            rate: None,
        }
    }

    /// Whether it differs from what was last said by more than viewers work out themselves.
    fn is_news(&self, known: &Known, job: &Arc<JobRecord>, now: Time) -> bool {
        let same_held = self.held.map_or(known.held.is_empty(), |held| *held == known.held);
        if known.state != self.state
            || !same_held
            || known.is_away != self.is_away
            || known.start != self.start
        {
            return true;
        }
        let before = &known.record;
        if !Arc::ptr_eq(before, job) {
            let is_same = before.standing == job.standing
                && before.reason == job.reason
                && before.started == job.started
                && before.spec.priority == job.spec.priority
                && before.pace == job.pace
                && before.life.hold == job.life.hold
                && before.life.unmet == job.life.unmet;
            if !is_same {
                return true;
            }
        }
        let passed_s = (now - known.as_of).as_secs_f64();
        let told = known.done + known.rate.unwrap_or(0.0) * passed_s;
        let work = job.request.work.count();
        (self.done - told.min(if work > 0.0 { work } else { f64::MAX })).abs() > OFF * work.max(1.0)
    }

    fn speed(&self, engine: &Engine, job: &JobRecord) -> Option<f64> {
        let cluster = engine.state.cluster().scheduler().cluster();
        let held = self.held.filter(|_| self.state == "running")?;
        Some(job.spec.rate(held, cluster)).filter(|rate| *rate > 0.0)
    }

    fn known(&self, job: &Arc<JobRecord>, now: Time, look: u64) -> Known {
        Known {
            record: Arc::clone(job),
            state: self.state,
            held: self.held.cloned().unwrap_or_default(),
            rate: self.rate,
            done: self.done,
            as_of: now,
            start: self.start,
            is_away: self.is_away,
            look,
        }
    }

    fn row(&self, engine: &Engine, now: Time, id: JobId, job: &JobRecord) -> BoardJob {
        let cluster = engine.state.cluster();
        let work = job.request.work.count();
        let rate = self.rate;
        let left = (work > 0.0).then_some((work - self.done).max(0.0));
        let reason = match job.kept_back().filter(|_| job.standing == Standing::Held) {
            Some(kept_back) => kept_back,
            None if self.is_away => "a node of it cannot be reached".to_owned(),
            None => job.reason.clone(),
        };
        let row = JobRow(
            id.0,
            job.request.name.to_string(),
            job.user.clone(),
            tenant(cluster, job),
            job.request.model.to_string(),
            self.state,
            job.request.gpus,
            self.held.map_or(0, Allocation::n_gpus),
            self.held.map(|held| held.slices.iter().map(|slice| slice.node.0).collect()).unwrap_or_default(),
            job.spec.priority,
            seconds(job.spec.arrival),
            job.started.map(seconds),
            job.spec.deadline.first().map(seconds),
            self.done,
            rate,
            seconds(now),
            work,
            reason,
            rate.zip(left).map(|(rate, left)| seconds(now) + left / rate),
            self.start.map(|start| start.low_s),
            self.start.map(|start| start.median_s),
            self.start.and_then(|start| start.high_s),
        );
        BoardJob { id: id.0, user: job.user.clone(), row }
    }
}
