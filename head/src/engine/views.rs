//! Answers to users' questions: the head's status, jobs, nodes, and what another policy would do.

use std::collections::BTreeSet;

use rota_core::cluster::Node;
use rota_core::ids::{JobId, NodeId};
use rota_core::plan::{Hold, Plan};
use rota_core::table::JobPhase;
use rota_transport::message::{JobStateView, JobView, NodeStateView, NodeView, Status, ToUser, WhichJobs};
use rota_transport::value::{Iterations, Name, Text, Wait};

use super::access::Found;
use super::refusal::Refusal;
use super::streams::{self, Stream};
use super::{Engine, access};
use crate::cluster_state::{ClusterState, JobRecord, Standing};
use crate::record::gpus;
use crate::roles::Person;
use crate::state::{Agent, LaunchPhase, Moment};

/// The most jobs in one message.
const PER_MESSAGE: usize = 200;

/// The head's status in one message, for `rota top` and for clients that wait until it is ready.
pub(super) fn status(engine: &Engine, moment: Moment) -> Status {
    let cluster = engine.state.cluster();
    let jobs = cluster.scheduler().jobs();
    let up = cluster.scheduler().cluster().nodes().iter().zip(&cluster.scheduler().nodes().is_up);
    let is_there = |(node, is_up): &(&Node, &bool)| **is_up && !cluster.is_cut_off(node.id);
    let up: Vec<_> = up.filter(is_there).map(|(node, _)| node).collect();
    let by_node = engine.state.launches().busy_by_node();
    let busy = up.iter().filter_map(|node| by_node.get(&node.id)).map(|busy| busy.len()).sum();
    Status {
        version: Text::cut(env!("CARGO_PKG_VERSION")),
        epoch: engine.state.agents().epoch(),
        now: moment.now,
        is_ready: engine.is_ready,
        policy: Text::cut(&cluster.policy().name),
        trouble: Text::cut(&trouble(engine)),
        round: Wait::cut(engine.timer.settings().round),
        time_scale: engine.state.time_scale(),
        n_rounds: cluster.n_rounds(),
        n_nodes_up: up.len() as u32,
        n_nodes: cluster.nodes().len() as u32,
        n_gpus_busy: busy,
        n_gpus_up: up.iter().map(|node| node.n_gpus).sum(),
        n_waiting: (jobs.len() - jobs.n_running() + cluster.scheduler().parked().len()) as u32,
        n_running: jobs.n_running() as u32,
    }
}

/// What is wrong with the head. A failing disk is reported before a failing policy: without a disk nothing is decided.
pub(super) fn trouble(engine: &Engine) -> String {
    let later = engine.state.later_state().map(str::to_owned);
    let refused = engine.state.cluster().policy().refused.as_str();
    let texts = [engine.decider.start_trouble(), engine.decider.failure(), refused];
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    engine.disk_trouble.clone().or(later).unwrap_or_else(|| texts.collect::<Vec<_>>().join("; "))
}

/// The jobs asked for, in as many messages as they need.
pub(super) fn jobs(engine: &Engine, person: &Person, which: &WhichJobs) -> Result<Vec<ToUser>, Refusal> {
    let views: Vec<_> = match which {
        WhichJobs::These(these) => {
            let these: BTreeSet<_> = these.iter().copied().collect();
            let view = |id| {
                Ok(match access::job(engine, person, id)? {
                    Found::Here(job) => Some(job_view(engine, id, job)),
                    Found::Ended(job) => streams::ended_view(&job),
                })
            };
            let views: Result<Vec<_>, Refusal> = these.into_iter().map(view).collect();
            views?.into_iter().flatten().collect()
        }
        WhichJobs::Active | WhichJobs::All => {
            let is_wanted = |job: &JobRecord| person.may_touch(&job.user) && !job.standing.is_over();
            let jobs = engine.state.cluster().jobs().iter().filter(|(_, job)| is_wanted(job));
            jobs.map(|(id, job)| job_view(engine, *id, job)).collect()
        }
    };
    let mut answers: Vec<_> = views.chunks(PER_MESSAGE).map(|some| ToUser::Jobs(some.to_vec())).collect();
    answers.push(ToUser::End);
    Ok(answers)
}

/// Every job, ended or not: the engine gives what it has at hand, the history the rest.
pub(super) fn all_jobs(engine: &Engine, person: &Person) -> Stream {
    let jobs = engine.state.cluster().jobs().iter().filter(|(_, job)| person.may_touch(&job.user));
    let known = jobs.map(|(id, job)| job_view(engine, *id, job)).collect();
    Stream::Jobs { user: (!person.operates()).then(|| person.name.to_string()), known }
}

/// The state of a job whose newest launch that may be alive is in this phase.
pub(super) fn job_state(
    cluster: &ClusterState,
    id: JobId,
    job: &JobRecord,
    phase: Option<&LaunchPhase>,
) -> JobStateView {
    let row = cluster.scheduler().jobs().row(id);
    let is_kept_back = || job.kept_back().is_some();
    match (job.standing, phase) {
        (standing, _) if standing.is_over() => state_of_ended(standing),
        (Standing::Held, Some(_)) => JobStateView::Stopping,
        (Standing::Held, None) if is_kept_back() => JobStateView::Held,
        (Standing::Held, None) => JobStateView::Asking,
        (_, Some(LaunchPhase::Running)) => JobStateView::Running,
        (_, Some(LaunchPhase::Starting | LaunchPhase::Waiting | LaunchPhase::Fetching)) => {
            JobStateView::Starting
        }
        (_, Some(LaunchPhase::Stopping | LaunchPhase::Failing { .. })) => JobStateView::Stopping,
        (_, None) if cluster.scheduler().parked().row(id).is_some() => JobStateView::Waiting,
        (_, None) => match row.map(|row| cluster.scheduler().jobs().phase(row)) {
            Some(JobPhase::Asking) | None => JobStateView::Asking,
            Some(JobPhase::Waiting | JobPhase::Running) => JobStateView::Waiting,
        },
    }
}

fn job_view(engine: &Engine, id: JobId, job: &JobRecord) -> JobView {
    let cluster = engine.state.cluster();
    let live = engine.state.launches().newest(id);
    let row = cluster.scheduler().jobs().row(id);
    let kept_back = job.kept_back().filter(|_| job.standing == Standing::Held);
    let state = job_state(cluster, id, job, live.map(|(_, live)| &live.phase));
    let held = row.map(|row| cluster.scheduler().jobs().allocation(row));
    let away = held.and_then(|held| held.slices.iter().find(|slice| cluster.is_cut_off(slice.node)));
    let out_of_reach = away.map(|slice| format!("{} cannot be reached", cluster.node_name(slice.node)));
    let node_name = |node: NodeId| Text::cut(cluster.node_name(node));
    let count = |count: f64| Iterations::new(count.clamp(0.0, 1e15)).unwrap_or(Iterations::NONE);
    let reported = live.map_or(0.0, |(_, live)| live.iterations + live.skipped);
    let done = if job.standing.is_over() { job.done } else { cluster.done(id).max(reported) };
    JobView {
        id,
        name: job.request.name.clone(),
        user: Name::new(job.user.as_str()).expect("the sender's name was checked when it connected"),
        model: job.request.model.clone(),
        state,
        reason: Text::cut(
            &kept_back.or(out_of_reach).unwrap_or_else(|| job.reason_at(engine.clock.moment().now)),
        ),
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
        priority: job.spec.priority,
        time_limit: job.request.conditions.time_limit,
        exit_code: job.life.exit_code,
    }
}

/// How a job that has ended is shown.
pub(super) fn state_of_ended(standing: Standing) -> JobStateView {
    match standing {
        Standing::Finished => JobStateView::Finished,
        Standing::Declined => JobStateView::Declined,
        Standing::Cancelled => JobStateView::Cancelled,
        Standing::TimeLimit => JobStateView::TimeLimit,
        Standing::Failed | Standing::Held | Standing::Active => JobStateView::Failed,
    }
}

/// Every node whose agent has ever connected, with those of its jobs that the person may see.
pub(super) fn nodes(engine: &Engine, person: &Person) -> Vec<NodeView> {
    let cluster = engine.state.cluster();
    let busy = engine.state.launches().busy_by_node();
    let view = |(name, agent): (&Name, &Agent)| {
        let node = agent.node().and_then(|node| cluster.scheduler().cluster().node(node));
        let on_node = agent.node().map(|node| engine.state.launches().on_node(node)).unwrap_or_default();
        NodeView {
            name: name.clone(),
            state: node_state(cluster, agent),
            gpu_type: Text::cut(node.map_or("", |node| {
                cluster
                    .scheduler()
                    .cluster()
                    .gpu_types()
                    .get(node.gpu_type.index())
                    .map_or("", String::as_str)
            })),
            n_gpus: node.map_or(0, |node| node.n_gpus),
            n_busy: agent.node().and_then(|node| busy.get(&node)).map_or(0, |busy| busy.len()),
            cpus: node.map_or(0.0, |node| node.host.cpus()),
            mem_bytes: node.map_or(0, |node| node.host.mem_bytes),
            version: agent.version().clone(),
            since: agent.since(),
            jobs: on_node
                .into_iter()
                .map(|attempt| attempt.job)
                .filter(|job| access::may_see(engine, person, *job))
                .collect(),
            reason: Text::cut(&node_reason(cluster, agent)),
        }
    };
    engine.state.agents().iter().map(view).collect()
}

/// The state of a node, by its agent.
pub(super) fn node_state(cluster: &ClusterState, agent: &Agent) -> NodeStateView {
    let is_drained = agent.node().is_some_and(|node| cluster.is_drained(node));
    let is_up = agent.node().is_some_and(|node| cluster.is_up(node));
    let is_closed = agent.node().is_some_and(|node| cluster.closed().contains(&node));
    match () {
        () if is_drained => NodeStateView::Drained,
        () if is_up && is_closed => NodeStateView::Draining,
        () if !is_up => NodeStateView::Lost,
        () if agent.node().is_some_and(|node| cluster.is_cut_off(node)) => NodeStateView::Unreachable,
        () if agent.is_silent() => NodeStateView::Silent,
        () => NodeStateView::Up,
    }
}

/// The reason for a node's state; empty if there is nothing to add.
pub(super) fn node_reason(cluster: &ClusterState, agent: &Agent) -> String {
    let drain_reason = agent.node().map_or("", |node| cluster.drain_reason(node));
    match (drain_reason, agent.reason()) {
        (of_drain, "") => of_drain.to_owned(),
        ("", of_agent) => of_agent.to_owned(),
        (of_drain, of_agent) => format!("{of_drain}; {of_agent}"),
    }
}

/// The journal from a given line on, as sentences.
pub(super) fn events(engine: &Engine, person: &Person, from: u64) -> Stream {
    let own = engine.state.cluster().jobs().iter().filter(|(_, job)| job.user == person.name.as_str());
    let own_jobs = if person.operates() { BTreeSet::new() } else { own.map(|(id, _)| *id).collect() };
    let nodes = engine.state.cluster().nodes().to_vec();
    Stream::Events { from, person: person.clone(), own_jobs, nodes }
}

/// What a plan would change about a job if it were carried out now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobWould {
    pub(crate) job: JobId,
    pub(crate) what: Would,
    /// GPUs that it holds.
    pub(crate) gpus_from: u32,
    /// GPUs that it would hold.
    pub(crate) gpus_to: u32,
    /// Names of the nodes that it would be on.
    pub(crate) nodes: Vec<String>,
}

/// How a plan would change a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Would {
    Start,
    Stop,
    /// To another number of GPUs.
    Resize,
    /// To other GPUs.
    Move,
}

impl JobWould {
    /// A line for each job.
    pub(crate) fn text(changes: &[JobWould]) -> String {
        let line = |change: &JobWould| {
            let JobWould { job, what, gpus_from, gpus_to, .. } = change;
            match what {
                Would::Start => format!("job {job} would start with {}", gpus(*gpus_to)),
                Would::Stop => format!("job {job} would be stopped"),
                Would::Resize | Would::Move => {
                    format!("job {job} would go from {gpus_from} to {}", gpus(*gpus_to))
                }
            }
        };
        let mut lines: Vec<String> = changes.iter().map(line).collect();
        lines.sort();
        if lines.is_empty() { "nothing would change".into() } else { lines.join("\n") }
    }
}

/// What a plan would change if it were carried out now, by job.
pub(super) fn what_if(engine: &Engine, plan: &Plan) -> Vec<JobWould> {
    let cluster = engine.state.cluster();
    let jobs = cluster.scheduler().jobs();
    let mut changes = Vec::new();
    for run in &plan.run {
        let (Some(row), Hold::Take(wanted)) = (jobs.row(run.job), &run.what) else { continue };
        let held = jobs.allocation(row);
        let (gpus_from, gpus_to) = (held.n_gpus(), wanted.n_gpus());
        let what = match () {
            () if held.is_empty() => Would::Start,
            () if held.same_gpus(wanted) => continue,
            () if gpus_from == gpus_to => Would::Move,
            () => Would::Resize,
        };
        let nodes = wanted.slices.iter().map(|slice| cluster.node_name(slice.node).to_owned()).collect();
        changes.push(JobWould { job: run.job, what, gpus_from, gpus_to, nodes });
    }
    let runs_on: BTreeSet<JobId> = plan.run.iter().map(|run| run.job).collect();
    for row in 0..jobs.len() {
        let job = jobs.id(row);
        if jobs.phase(row) == JobPhase::Running && !runs_on.contains(&job) {
            let gpus_from = jobs.allocation(row).n_gpus();
            changes.push(JobWould { job, what: Would::Stop, gpus_from, gpus_to: 0, nodes: Vec::new() });
        }
    }
    changes.sort_unstable_by_key(|change| change.job);
    changes
}
