//! Why a job of the live cluster waits, what would let it run, and when that may be.

use rota_core::ids::JobId;
use rota_core::table::Phase;
use rota_core::time::Time;

use super::books::Standing;
use super::engine::Engine;
use super::fleet;
use super::state::Moment;

/// In words.
pub(super) fn explain(engine: &mut Engine, moment: Moment, id: JobId) -> Result<String, String> {
    let snapshot = engine.state.books.scheduler.snapshot(moment.now);
    let books = &engine.state.books;
    let job = books.job(id).ok_or_else(|| format!("job {id}: there is no such job"))?;
    let name = format!("job {id} `{}`", job.request.name);
    let reason = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
    let ended = job.ended.unwrap_or(moment.now);
    match job.standing {
        Standing::Finished => {
            let took = (ended - job.spec.arrival).as_secs_f64();
            return Ok(format!(
                "{name} finished after {took:.0} s, {} failures, {} preemptions",
                job.n_failures, job.n_preemptions
            ));
        }
        Standing::Declined => return Ok(format!("{name} was declined{reason}")),
        Standing::Cancelled | Standing::Failed => return Ok(format!("{name} has ended{reason}")),
        Standing::Held => {
            let (here, wanted) = (engine.state.n_agents_here(), engine.rounds.wait_for);
            return Ok(format!("{name} is held until the head is ready: {here} of {wanted} agents are here"));
        }
        Standing::Active => {}
    }
    let Some(row) = snapshot.jobs.row(id) else { return Ok(format!("{name} is unknown to the scheduler")) };
    if snapshot.jobs.phase(row) == Phase::Running {
        let phase = engine.state.fleet.newest(id).map(|(_, live)| live.phase.clone());
        let how = match phase {
            Some(fleet::Phase::Running) => "runs",
            Some(fleet::Phase::Fetching) => "has GPUs and waits for its checkpoint to be copied",
            Some(fleet::Phase::Waiting) => "has GPUs and waits until those who hold them are gone",
            _ => "is being started",
        };
        let rate = job.spec.rate(snapshot.jobs.allocation(row), &snapshot.cluster);
        let left = (job.spec.estimated_work - snapshot.jobs.done(row)).max(0.0);
        let gpus = snapshot.jobs.allocation(row).n_gpus();
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
        return Ok(format!("{name} {how} on {gpus} GPUs{reason}; {left}"));
    }
    let needs = job.spec.gpus.min();
    let held: u32 = (0..snapshot.jobs.len()).map(|row| snapshot.jobs.allocation(row).n_gpus()).sum();
    let free = snapshot.n_gpus_up().saturating_sub(held);
    let policy = &books.chosen.policy;
    let mut text = match snapshot.jobs.phase(row) {
        Phase::Asking => format!("{name} has not been admitted by {policy}{reason}"),
        _ => format!("{name} waits{reason}"),
    };
    text.push_str(&format!(
        "; it needs {needs} GPUs, {free} of {} are free, {} jobs wait",
        snapshot.n_gpus_up(),
        snapshot.jobs.len() - snapshot.jobs.n_running()
    ));
    match free_at(&snapshot, needs, free) {
        Some(at) if at > moment.now => text.push_str(&format!(
            "; by the jobs' estimates {needs} GPUs are free in {:.0} s",
            (at - moment.now).as_secs_f64()
        )),
        Some(_) => text.push_str(&format!(
            "; {needs} GPUs are free now: the next round decides, or {policy} keeps them for others or needs them on one node"
        )),
        None => text.push_str("; it cannot run before nodes come back"),
    }
    Ok(text)
}

/// When so many GPUs are free if every running job ends by its estimate and none follows.
fn free_at(snapshot: &rota_core::snapshot::Snapshot, needs: u32, mut free: u32) -> Option<Time> {
    let mut ends: Vec<_> = (0..snapshot.jobs.len())
        .filter(|row| snapshot.jobs.phase(*row) == Phase::Running)
        .map(|row| {
            let (spec, allocation) = (snapshot.jobs.spec(row), snapshot.jobs.allocation(row));
            let left = (spec.estimated_work - snapshot.jobs.done(row)).max(0.0);
            let left_s = left / spec.rate(allocation, &snapshot.cluster).max(f64::MIN_POSITIVE);
            (snapshot.now + rota_core::time::Span::from_secs_f64(left_s), allocation.n_gpus())
        })
        .collect();
    ends.sort_unstable();
    if free >= needs {
        return Some(snapshot.now);
    }
    ends.into_iter().find_map(|(at, gpus)| {
        free += gpus;
        (free >= needs).then_some(at)
    })
}
