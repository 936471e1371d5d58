//! Columns in private memory: as a map by job number, which is plain data, and back.

use rhai::{Dynamic, Map};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, Jobs, number};

fn to_map(column: &Column) -> Outcome<Map> {
    let jobs = &column.jobs;
    let meter = jobs.session.meter();
    meter.charge(jobs.len() * 16)?;
    let most = meter.limits().map_entries;
    if jobs.len() > most {
        return fail(format!("to_map: {} jobs, a map may have {most} entries", jobs.len()));
    }
    let id = |position: usize| jobs.session.snapshot.jobs.id(jobs.row_at(position));
    let values = column.values().iter().enumerate();
    Ok(values.map(|(position, value)| (id(position).to_string().into(), Dynamic::from(*value))).collect())
}

fn recall(jobs: &Jobs, map: &Map, otherwise: f64) -> Outcome<Column> {
    jobs.session.meter().charge(jobs.len() * 16)?;
    let value = |row: usize| {
        let value = map.get(jobs.session.snapshot.jobs.id(row).to_string().as_str());
        value.and_then(number).unwrap_or(otherwise)
    };
    Column::compute(jobs, jobs.rows().map(value))
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "Column",
        "to_map() -> Map",
        "The numbers by job number, as private memory can hold them: `this.waited = column.to_map()`.",
    );
    engine.register_fn("to_map", |column: Column| to_map(&column));
    let engine = registrar.method(
        "Jobs",
        "recall(map: Map, otherwise: float) -> Column",
        "A column from what `to_map` made in an earlier round; jobs that were not there have the other number.",
    );
    engine.register_fn("recall", |jobs: Jobs, map: Map, otherwise: f64| recall(&jobs, &map, otherwise));
}
