//! Why a job of the live cluster waits, what it needs to run, and when that may be.

use rota_core::allocation::Slice;
use rota_core::ids::JobId;
use rota_core::resources::Host;
use rota_core::snapshot::Snapshot;
use rota_core::table::JobPhase;

use super::Engine;
use super::refusal::Refusal;
use crate::cluster_state::Standing;
use crate::record::gpus;
use crate::state::{LaunchPhase, Moment};
use crate::store::history::EndedJob;

/// Jobs that use a quota are named up to here.
const MOST_NAMED: usize = 8;

/// How a job of the history ended, as a sentence for its user.
pub(super) fn explain_ended(job: &EndedJob) -> String {
    let name = format!("job {} `{}`", job.id, job.name);
    let reason = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
    match job.standing {
        Standing::Finished => {
            let took = (job.ended - job.arrival).as_secs_f64();
            let (failures, preemptions) = (job.n_failures, job.n_preemptions);
            format!("{name} finished after {took:.0} s, {failures} failures, {preemptions} preemptions")
        }
        Standing::Declined => format!("{name} was declined{reason}"),
        _ => format!("{name} has ended{reason}"),
    }
}

/// What a job is doing, or why it waits, as a sentence for its user.
pub(super) fn explain(engine: &mut Engine, moment: Moment, id: JobId) -> Result<String, Refusal> {
    let snapshot = engine.state.snapshot(moment);
    let cluster = engine.state.cluster();
    let job = cluster.job(id).ok_or(Refusal::NoSuchJob(id))?;
    let name = format!("job {id} `{}`", job.request.name);
    let reason = match job.reason_at(moment.now) {
        reason if reason.is_empty() => reason,
        reason => format!(": {reason}"),
    };
    if let Some(ended) = EndedJob::of(id, job, cluster) {
        return Ok(explain_ended(&ended));
    }
    if job.standing == Standing::Held {
        if let Some(why) = job.kept_back() {
            return Ok(format!("{name} is held: {why}"));
        }
        let (here, wanted) = (engine.state.agents().n_here(), engine.timer.settings().wait_for);
        return Ok(format!("{name} is held until the head is ready: {here} of {wanted} agents are here"));
    }
    if cluster.scheduler().parked().row(id).is_some() {
        let ahead = engine.forecasts.words(moment.now, id);
        return Ok(format!("{name} waits{reason}{ahead}"));
    }
    let Some(row) = snapshot.jobs.row(id) else { return Ok(format!("{name} is unknown to the scheduler")) };
    if snapshot.jobs.phase(row) == JobPhase::Running {
        let phase = engine.state.launches().newest(id).map(|(_, live)| live.phase.clone());
        let how = match phase {
            Some(LaunchPhase::Running) => "runs",
            Some(LaunchPhase::Fetching) => "has GPUs and waits for its checkpoint to be copied",
            Some(LaunchPhase::Waiting) => "has GPUs and waits until the jobs that held them are gone",
            _ => "is being started",
        };
        let rate = job.spec.rate(snapshot.jobs.allocation(row), &snapshot.cluster);
        let left = (job.spec.estimated_work - snapshot.jobs.done(row)).max(0.0);
        let held = snapshot.jobs.allocation(row).n_gpus();
        let pace = match job.pace {
            1.0 => String::new(),
            pace => format!(
                " (it runs at {pace:.2} times the speed of its profile, and estimates are corrected by that)"
            ),
        };
        let left = match job.request.work.count() > 0.0 {
            true => format!("about {:.0} s are left{pace}", left / rate),
            false => "it runs until it exits".to_owned(),
        };
        let limit = match job.limit_at() {
            Some(at) => format!("; its time limit is {:.0} s away", (at - moment.now).as_secs_f64().max(0.0)),
            None => String::new(),
        };
        let slow = slow_for_want_of_cpus_or_memory(&snapshot, row);
        return Ok(format!("{name} {how} on {}{reason}{slow}; {left}{limit}", gpus(held)));
    }
    let needs = job.spec.gpus.min();
    let held: u32 = (0..snapshot.jobs.len()).map(|row| snapshot.jobs.allocation(row).n_gpus()).sum();
    let free = snapshot.n_gpus_up().saturating_sub(held);
    let n_waiting = snapshot.jobs.len() - snapshot.jobs.n_running();
    let policy = &cluster.policy().name;
    let mut text = match snapshot.jobs.phase(row) {
        JobPhase::Asking => format!("{name} has not been admitted by {policy}{reason}"),
        _ => format!("{name} waits{reason}"),
    };
    text.push_str(&format!(
        "; it needs {}, {free} of {} are free, {n_waiting} {}",
        gpus(needs),
        snapshot.n_gpus_up(),
        if n_waiting == 1 { "job waits" } else { "jobs wait" }
    ));
    if let Some(quota) = quota(&snapshot, row, needs) {
        text.push_str(&quota);
    }
    match needs > snapshot.n_gpus_up() {
        true => text.push_str("; it cannot run before nodes come back"),
        false => text.push_str(&engine.forecasts.words(moment.now, id)),
    }
    Ok(text)
}

/// Says so if the tenant of a waiting job would exceed its quota with it, and which jobs use the quota.
fn quota(snapshot: &Snapshot, row: usize, needs: u32) -> Option<String> {
    let jobs = &snapshot.jobs;
    let tenant = jobs.spec(row).tenant;
    let quota = *snapshot.guards.quota_gpus.get(&tenant)?;
    let holds = |other: &usize| jobs.spec(*other).tenant == tenant && jobs.allocation(*other).n_gpus() > 0;
    let mut users: Vec<(JobId, u32)> =
        (0..jobs.len()).filter(holds).map(|row| (jobs.id(row), jobs.allocation(row).n_gpus())).collect();
    users.sort_unstable();
    let used: u32 = users.iter().map(|(_, gpus)| gpus).sum();
    if used + needs <= quota {
        return None;
    }
    let name = snapshot.tenants.get(tenant.index()).map_or("", String::as_str);
    if needs > quota {
        return Some(format!("; it can never run: the quota of its tenant `{name}` is {}", gpus(quota)));
    }
    let who: Vec<String> =
        users.iter().take(MOST_NAMED).map(|(job, gpus)| format!("job {job} {gpus}")).collect();
    let more = users.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more jobs") } else { String::new() };
    Some(format!(
        "; it waits for its tenant's quota: the jobs of `{name}` may hold {} and hold {used} ({}{more})",
        gpus(quota),
        who.join(", ")
    ))
}

/// How far a job is below its best speed, how much of the CPUs and memory it can use it holds, and which jobs on its nodes
/// hold more than their share; empty at its best speed.
fn slow_for_want_of_cpus_or_memory(snapshot: &Snapshot, row: usize) -> String {
    let jobs = &snapshot.jobs;
    let (held, wanted) = (jobs.allocation(row), jobs.demand_per_gpu(row));
    let of_best = jobs.spec(row).part_of_best(held, wanted, &snapshot.cluster);
    let (has, wanted) = (held.host(), wanted.times(held.n_gpus()));
    if of_best > 0.995 || (wanted.cpu_micro <= has.cpu_micro && wanted.mem_bytes <= has.mem_bytes) {
        return String::new();
    }
    let shares_node = |slice: &Slice| held.slices.iter().any(|mine| mine.node == slice.node);
    let is_above_share = |slice: &Slice| {
        let share = snapshot.cluster.node(slice.node).map_or(Host::NONE, |node| node.share_per_gpu());
        let above = slice.host.saturating_sub(&share.times(slice.gpus.len()));
        (above.cpu_micro > 0 && has.cpu_micro < wanted.cpu_micro)
            || (above.mem_bytes > 0 && has.mem_bytes < wanted.mem_bytes)
    };
    let others = (0..jobs.len()).filter(|other| *other != row);
    let mut above: Vec<JobId> = others
        .filter(|other| jobs.allocation(*other).slices.iter().any(|s| shares_node(s) && is_above_share(s)))
        .map(|other| jobs.id(other))
        .collect();
    above.sort_unstable();
    let above: Vec<String> = above.iter().map(|job| format!("job {job}")).collect();
    let who = match above.is_empty() {
        true => String::new(),
        false => format!("; {} on the same nodes hold more than their share", above.join(", ")),
    };
    format!(
        ", at {:.0} % of its best speed: it holds {:.1} of the {:.1} CPUs and {:.1} of the {:.1} GB that it can use{who}",
        100.0 * of_best,
        has.cpus(),
        wanted.cpus(),
        has.mem_gb(),
        wanted.mem_gb()
    )
}
