//! Jobs as programs and the page see them.

use rota_core::ids::JobId;
use rota_core::table::JobPhase;
use rota_core::time::Time;
use rota_transport::message::{Launcher, Needs, Processes};

use super::super::access::{self, Found};
use super::super::refusal::Refusal;
use super::super::{Engine, views};
use crate::cluster_state::{ClusterState, JobRecord, Standing};
use crate::roles::Person;
use crate::state::{LiveLaunch, Moment};
use crate::store::history::EndedJob;
use crate::web::shapes::{AfterShape, Expected, Job, JobPage, Placement, RankShape, RequestShape, seconds};

/// A job's page.
pub(crate) fn job(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    id: JobId,
) -> Result<JobPage, Refusal> {
    let ended = match access::job(engine, person, id)? {
        Found::Ended(ended) => Some(ended),
        Found::Here(_) => None,
    };
    match ended {
        Some(ended) => Ok(page_of_ended(engine, &ended)),
        None => page_of_known(engine, moment, id).ok_or(Refusal::NoSuchJob(id)),
    }
}

/// When a job may start, by the last forecast.
pub(crate) fn start(engine: &Engine, person: &Person, id: JobId) -> Result<Option<Expected>, Refusal> {
    access::job(engine, person, id)?;
    Ok(engine.forecasts.start_of(id))
}

/// A line of the list for a job that has not left the memory.
pub(super) fn line(engine: &Engine, now: Time, id: JobId, job: &JobRecord, live: Option<&LiveLaunch>) -> Job {
    let cluster = engine.state.cluster();
    let jobs = cluster.scheduler().jobs();
    let row = jobs.row(id);
    let held = row.map(|row| jobs.allocation(row)).filter(|held| !held.is_empty());
    let state = views::job_state(cluster, id, job, live.map(|live| &live.phase));
    let is_over = job.standing.is_over();
    let reported = live.map_or(0.0, |live| live.iterations + live.skipped);
    let done = if is_over { job.done } else { cluster.done(id).max(reported) };
    let work = job.request.work.count();
    let runs = held.filter(|_| row.is_some_and(|row| jobs.phase(row) == JobPhase::Running));
    let rate = runs.map(|held| job.spec.rate(held, cluster.scheduler().cluster())).filter(|rate| *rate > 0.0);
    let left = (work > 0.0).then_some((work - done).max(0.0));
    let nodes = match held {
        Some(held) => held.slices.iter().map(|slice| cluster.node_name(slice.node).to_owned()).collect(),
        None if is_over => job.last_launch.1.iter().map(|node| cluster.node_name(*node).to_owned()).collect(),
        None => Vec::new(),
    };
    Job {
        id: id.0,
        name: job.request.name.to_string(),
        user: job.user.clone(),
        tenant: tenant(cluster, job),
        model: job.request.model.to_string(),
        state: state.as_str().to_owned(),
        reason: reason(cluster, now, job, row),
        gpus: job.request.gpus,
        gpus_held: held.map_or(0, |held| held.n_gpus()),
        nodes,
        priority: job.spec.priority,
        submitted_s: seconds(job.spec.arrival),
        started_s: job.started.map(seconds),
        ended_s: job.ended.map(seconds),
        deadline_s: job.spec.deadline.first().map(seconds),
        done,
        work,
        rate,
        end_s: rate.zip(left).map(|(rate, left)| now.as_secs_f64() + left / rate),
        start: engine.forecasts.start_of(id).filter(|_| held.is_none() && !is_over),
        launches: job.last_launch.0.0,
        n_failures: job.n_failures,
        n_preemptions: job.n_preemptions,
        time_limit_s: job.request.conditions.time_limit.map(|most| most.span().as_secs_f64()),
        exit_code: job.life.exit_code,
    }
}

/// A line of the list for a job of the history.
pub(crate) fn line_of_ended(cluster: &[String], job: &EndedJob) -> Job {
    let name = |node: &rota_core::ids::NodeId| cluster.get(node.index()).cloned().unwrap_or_default();
    Job {
        id: job.id.0,
        name: job.name.clone(),
        user: job.user.clone(),
        tenant: job.tenant.clone(),
        model: job.model.clone(),
        state: views::state_of_ended(job.standing).as_str().to_owned(),
        reason: job.reason.clone(),
        gpus: job.gpus,
        gpus_held: 0,
        nodes: job.nodes.iter().map(name).collect(),
        priority: job.priority,
        submitted_s: seconds(job.arrival),
        started_s: job.started.map(seconds),
        ended_s: Some(seconds(job.ended)),
        deadline_s: job.deadline.map(seconds),
        done: job.done,
        work: job.work,
        rate: None,
        end_s: None,
        start: None,
        launches: job.last_launch.0,
        n_failures: job.n_failures,
        n_preemptions: job.n_preemptions,
        time_limit_s: job.time_limit.map(|most| most.as_secs_f64()),
        exit_code: job.exit_code,
    }
}

/// Whom a job counts for.
pub(super) fn tenant(cluster: &ClusterState, job: &JobRecord) -> String {
    cluster.tenants().get(job.spec.tenant.index()).cloned().unwrap_or_default()
}

/// The reason for a job's state; empty if there is nothing to add.
fn reason(cluster: &ClusterState, now: Time, job: &JobRecord, row: Option<usize>) -> String {
    if let Some(kept_back) = job.kept_back().filter(|_| job.standing == Standing::Held) {
        return kept_back;
    }
    let held = row.map(|row| cluster.scheduler().jobs().allocation(row));
    let away = held.and_then(|held| held.slices.iter().find(|slice| cluster.is_cut_off(slice.node)));
    match away {
        Some(slice) => format!("{} cannot be reached", cluster.node_name(slice.node)),
        None => job.reason_at(now),
    }
}

fn page_of_ended(engine: &Engine, ended: &EndedJob) -> JobPage {
    JobPage {
        job: line_of_ended(engine.state.cluster().nodes(), ended),
        request: None,
        placement: Vec::new(),
        ranks: Vec::new(),
        pace: 1.0,
        best_rate: None,
        checkpointed: ended.done,
        held_by: None,
        limit_at_s: None,
        gpu_s: ended.gpu_s,
    }
}

fn page_of_known(engine: &mut Engine, moment: Moment, id: JobId) -> Option<JobPage> {
    let snapshot = engine.state.snapshot(moment);
    let cluster = engine.state.cluster();
    let job = cluster.job(id)?;
    let live = engine.state.launches().newest(id).map(|(_, live)| live);
    let row = snapshot.jobs.row(id);
    let held = row.map(|row| snapshot.jobs.allocation(row)).filter(|held| !held.is_empty());
    let name = |node| cluster.node_name(node).to_owned();
    let placement = held.into_iter().flat_map(|held| &held.slices).map(|slice| Placement {
        node: name(slice.node),
        gpus: slice.gpus.iter().collect(),
        cpus: slice.host.cpus(),
        mem_bytes: slice.host.mem_bytes,
    });
    let ranks = live.into_iter().flat_map(|live| &live.ranks);
    let ranks = ranks.map(|(node, rank)| RankShape { node: name(*node), state: rank.as_str() });
    let best = held.zip(row).map(|(held, row)| {
        let wanted = snapshot.jobs.demand_per_gpu(row);
        (job.spec.rate(held, &snapshot.cluster), job.spec.part_of_best(held, wanted, &snapshot.cluster))
    });
    Some(JobPage {
        job: line(engine, moment.now, id, job, live),
        request: Some(request(job)),
        placement: placement.collect(),
        ranks: ranks.collect(),
        pace: job.pace,
        best_rate: best.filter(|(_, part)| *part > 0.0).map(|(rate, part)| rate / part),
        checkpointed: live.map_or(job.done, |live| live.checkpointed.max(job.done)),
        held_by: job.life.hold.as_ref().map(|hold| hold.user.clone()),
        limit_at_s: job.limit_at().map(seconds),
        gpu_s: row.map_or(job.gpu_s, |row| snapshot.jobs.service_at(row, moment.now)),
    })
}

fn request(job: &JobRecord) -> RequestShape {
    let request = &job.request;
    let start = &request.start;
    let (launcher, image) = match &start.launcher {
        Launcher::Emulated => ("emulated", String::new()),
        Launcher::Process => ("process", String::new()),
        Launcher::Container(container) => ("container", container.image.to_string()),
    };
    let after = request.conditions.after.iter().map(|dependency| AfterShape {
        job: dependency.job.0,
        needs: match dependency.needs {
            Needs::Ended => "ended",
            Needs::Finished => "finished",
        },
    });
    RequestShape {
        batch: request.batch,
        levels: request.levels.clone(),
        gpu_type: request.gpu_type.to_string(),
        launcher,
        image,
        command: start.argv.iter().map(ToString::to_string).collect(),
        env: start.env.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        workdir: start.working_directory.to_string(),
        processes: match start.processes {
            Processes::PerNode => "per-node",
            Processes::PerGpu => "per-gpu",
        },
        keep: start.on_head_lost == rota_transport::message::OnHeadLost::Keep,
        grace_s: start.grace.span().as_secs_f64(),
        retries: start.most_failures.saturating_sub(1),
        checkpoint_every_s: start.checkpoint_every.span().as_secs_f64(),
        after: after.collect(),
    }
}
