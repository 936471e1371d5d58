//! Columns about elastic jobs: the GPU counts they can run with, how fast they run with them, and what a change costs.

use rota_core::timeline::Speeds;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, Jobs};

/// A column's numbers as GPU counts.
pub(crate) fn counts(verb: &str, column: &Column) -> Outcome<Vec<u32>> {
    let whole = |value: &f64| value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(value);
    match column.values().iter().position(|value| !whole(value)) {
        None => Ok(column.values().iter().map(|value| *value as u32).collect()),
        Some(position) => {
            let id = column.jobs.session.snapshot.jobs.id(column.jobs.row_at(position));
            fail(format!(
                "{verb}: {} GPUs for job {id} is not a whole number of GPUs",
                column.values()[position]
            ))
        }
    }
}

/// A number for each job from a GPU count for each.
fn by_count(verb: &str, jobs: &Jobs, column: &Column, value: impl Fn(usize, u32) -> f64) -> Outcome<Column> {
    if !column.jobs.is_same(jobs) {
        return fail(format!(
            "{verb}: a Column of {} jobs for a set of {}: take both from the same `jobs`",
            column.jobs.len(),
            jobs.len()
        ));
    }
    let counts = counts(verb, column)?;
    jobs.session.meter().charge(jobs.len() * 4)?;
    Column::compute(
        jobs,
        counts.iter().enumerate().map(|(position, gpus)| value(jobs.row_at(position), *gpus)),
    )
}

fn speeds(jobs: &Jobs, row: usize) -> &Speeds {
    jobs.session.speeds().of(&jobs.session.snapshot, row as u32)
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Jobs";
    let engine = registrar.method(
        OWNER,
        "rate(gpus: Column) -> Column",
        "Estimated iterations per second of each job with so many GPUs, each with its proportional share; 0 with none.",
    );
    engine.register_fn("rate", |jobs: Jobs, gpus: Column| {
        let rate =
            |row: usize, gpus: u32| jobs.session.speeds().rate(&jobs.session.snapshot, row as u32, gpus);
        by_count("rate", &jobs, &gpus, rate)
    });
    let engine = registrar.method(
        OWNER,
        "level_above(gpus: Column) -> Column",
        "The next number of GPUs that each job can run with; the same number where there is none above.",
    );
    engine.register_fn("level_above", |jobs: Jobs, gpus: Column| {
        let above = |row: usize, gpus: u32| f64::from(speeds(&jobs, row).above(gpus).unwrap_or(gpus));
        by_count("level_above", &jobs, &gpus, above)
    });
    let engine = registrar.method(
        OWNER,
        "level_below(gpus: Column) -> Column",
        "The largest number of GPUs below this one that each job can run with; 0 where there is none.",
    );
    engine.register_fn("level_below", |jobs: Jobs, gpus: Column| {
        let below = |row: usize, gpus: u32| {
            let levels = speeds(&jobs, row).levels();
            f64::from(levels.iter().rev().map(|level| level.0).find(|level| *level < gpus).unwrap_or(0))
        };
        by_count("level_below", &jobs, &gpus, below)
    });
    let engine = registrar.field(OWNER, "min_gpus: Column", "The fewest GPUs each job runs with.");
    engine.register_get("min_gpus", |jobs: &mut Jobs| {
        let table = &jobs.session.snapshot.jobs;
        Column::compute(jobs, jobs.rows().map(|row| f64::from(table.spec(row).gpus.min())))
    });
    let engine = registrar.field(OWNER, "max_gpus: Column", "The most GPUs each job can use.");
    engine.register_get("max_gpus", |jobs: &mut Jobs| {
        let table = &jobs.session.snapshot.jobs;
        Column::compute(jobs, jobs.rows().map(|row| f64::from(table.spec(row).gpus.max())))
    });
    let engine = registrar.field(
        OWNER,
        "restart_cost: Column",
        "What a change of its GPUs costs a job: its checkpoint and its restart, seconds.",
    );
    engine.register_get("restart_cost", |jobs: &mut Jobs| {
        let table = &jobs.session.snapshot.jobs;
        Column::compute(jobs, jobs.rows().map(|row| table.restart_cost(row).as_secs_f64()))
    });
}
