//! One answer from a whole column: which job has the least, which value a share of the jobs does not exceed, and sums
//! along a queue.

use rhai::Dynamic;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, JobValue, Queue};

/// The job whose number goes first by `is_before`, the earliest where several are equal; nothing when there is no job.
fn extreme(verb: &str, column: &Column, is_before: fn(f64, f64) -> bool) -> Outcome<Dynamic> {
    let jobs = &column.jobs;
    jobs.session.meter().charge(jobs.len())?;
    let values = column.values();
    let mut best: Option<usize> = None;
    for position in jobs.positions_by_id() {
        if values[position].is_nan() {
            let id = jobs.session.snapshot.jobs.id(jobs.row_at(position));
            return fail(format!("{verb}: the number of job {id} is not a number (NaN)"));
        }
        if best.is_none_or(|best| is_before(values[position], values[best])) {
            best = Some(position);
        }
    }
    let job = |position| Dynamic::from(JobValue::new(&jobs.session, jobs.row_at(position) as u32));
    Ok(best.map_or(Dynamic::UNIT, job))
}

/// The value below which a share of the numbers lies, between two of them in proportion.
fn quantile(column: &Column, share: f64) -> Outcome<f64> {
    if !(0.0..=1.0).contains(&share) {
        return fail(format!("quantile: the share is from 0 to 1, got {share}"));
    }
    // Sorting is more than one look at each.
    column.jobs.session.meter().charge(column.jobs.len() * 4)?;
    let mut sorted = column.values().to_vec();
    if sorted.iter().any(|number| number.is_nan()) {
        return fail("quantile: a number of the column is not a number (NaN)");
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(0.0) };
    let place = share * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Ok(if low == high { low } else { low + (high - low) * place.fract() })
}

/// For each job, the sum over it and the jobs before it in a queue.
fn running_total(queue: &Queue, column: &Column) -> Outcome<Column> {
    let jobs = &column.jobs;
    jobs.session.meter().charge(queue.rows.len() + jobs.len())?;
    let values = column.values();
    let mut totals = vec![f64::NAN; values.len()];
    let mut total = 0.0;
    for row in queue.rows.iter() {
        let Some(position) = jobs.position_of(*row as usize) else {
            let id = jobs.session.snapshot.jobs.id(*row as usize);
            return fail(format!("running_total: job {id} of the queue is not in the set of the column"));
        };
        total += values[position];
        totals[position] = total;
    }
    if queue.rows.len() < values.len() {
        return fail(format!(
            "running_total: the queue has {} jobs, the column {}: take both from the same set",
            queue.rows.len(),
            values.len()
        ));
    }
    Column::compute(jobs, totals.into_iter())
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Column";
    registrar
        .method(
            OWNER,
            "argmin() -> Job",
            "The job with the smallest number, of equal ones the first; `()` when there is none.",
        )
        .register_fn("argmin", |column: Column| extreme("argmin", &column, |a, b| a < b));
    registrar
        .method(
            OWNER,
            "argmax() -> Job",
            "The job with the largest number, of equal ones the first; `()` when there is none.",
        )
        .register_fn("argmax", |column: Column| extreme("argmax", &column, |a, b| a > b));
    let engine = registrar.method(
        OWNER,
        "quantile(share: float) -> float",
        "The number that this share of the jobs does not exceed, 0.5 for the median; between two numbers in proportion, 0 when \
         there is no job.",
    );
    engine.register_fn("quantile", |column: Column, share: f64| quantile(&column, share));
    engine.register_fn("quantile", |column: Column, share: i64| quantile(&column, share as f64));
    registrar
        .method(
            "Queue",
            "running_total(column: Column) -> Column",
            "For each job, the sum over it and all jobs before it in the queue: `rank(jobs.deadline).running_total(jobs.gpus)` is \
             how many GPUs are asked for up to each job.",
        )
        .register_fn("running_total", |queue: Queue, column: Column| running_total(&queue, &column));
}
