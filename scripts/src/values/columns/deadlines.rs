//! Columns of deadlines with steps, computed when asked for: which step is the last, and which can still be made.

use rota_core::job::Deadline;
use rota_core::snapshot::Snapshot;
use rota_core::table::Field;
use rota_core::time::{Span, Time};

use crate::language::reference::Registrar;
use crate::values::{Column, Jobs};

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Jobs";
    let engine = registrar.field(
        OWNER,
        "last_deadline: Column",
        "The last step of a soft deadline, or the only one of a strict one, seconds; infinite when there is none.",
    );
    engine.register_get("last_deadline", |jobs: &mut Jobs| {
        let table = &jobs.session.snapshot.jobs;
        let last = |row: usize| table.spec(row).deadline.last().map_or(f64::INFINITY, Time::as_secs_f64);
        Column::compute(jobs, jobs.rows().map(last))
    });
    let engine = registrar.field(
        OWNER,
        "next_deadline: Column",
        "The first step of its deadline that a job still makes if it runs from now on, restart included, seconds; 0 when it \
         makes none any more, infinite when it has no deadline.",
    );
    engine.register_get("next_deadline", |jobs: &mut Jobs| {
        let snapshot = &jobs.session.snapshot;
        let remaining = snapshot.jobs.column(Field::Remaining);
        Column::compute(jobs, jobs.rows().map(|row| next_deadline(snapshot, row, remaining[row])))
    });
}

/// The first step that is not before the earliest end.
fn next_deadline(snapshot: &Snapshot, row: usize, remaining_s: f64) -> f64 {
    let spec = snapshot.jobs.spec(row);
    let is_running = !snapshot.jobs.allocation(row).is_empty();
    let restart = if is_running { Span::ZERO } else { spec.costs().restart };
    let earliest_end = snapshot.now.as_secs_f64() + restart.as_secs_f64() + remaining_s;
    let is_made = |time: &Time| time.as_secs_f64() >= earliest_end;
    match &spec.deadline {
        Deadline::None => f64::INFINITY,
        Deadline::Strict(time) => Some(*time).filter(is_made).map_or(0.0, Time::as_secs_f64),
        Deadline::Soft(steps) => {
            steps.iter().map(|(time, _)| *time).find(is_made).map_or(0.0, Time::as_secs_f64)
        }
    }
}
