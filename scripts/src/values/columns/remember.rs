//! Columns in private memory: as a map by job number, which is plain data, and back.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rhai::{Dynamic, Map};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, Jobs, Texts, number, type_label};

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
    let mut odd = None;
    let value = |row: usize| {
        let id = jobs.session.snapshot.jobs.id(row);
        let value = map.get(id.to_string().as_str()).filter(|value| !value.is_unit());
        let Some(value) = value else { return otherwise };
        number(value).unwrap_or_else(|| {
            odd.get_or_insert((id, type_label(value)));
            otherwise
        })
    };
    let column = Column::compute(jobs, jobs.rows().map(value))?;
    match odd {
        Some((id, got)) => fail(format!("recall: the map has {got} for job {id}, not a number")),
        None => Ok(column),
    }
}

/// For each job the number under its text in a map.
fn look_up(texts: &Texts, map: &Map, otherwise: f64) -> Outcome<Column> {
    let numbers = texts.numbers();
    let jobs = &numbers.jobs;
    jobs.session.meter().charge(jobs.len() * 4)?;
    let mut known: BTreeMap<u64, f64> = BTreeMap::new();
    for of_job in numbers.values() {
        if let Entry::Vacant(unknown) = known.entry(of_job.to_bits()) {
            let text = texts.text(*of_job);
            let value = match map.get(text) {
                None => otherwise,
                Some(value) => match number(value) {
                    Some(value) => value,
                    None => {
                        let got = type_label(value);
                        return fail(format!("recall: the map has {got} for `{text}`, not a number"));
                    }
                },
            };
            unknown.insert(value);
        }
    }
    Column::compute(jobs, numbers.values().iter().map(|of_job| known[&of_job.to_bits()]))
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
    engine
        .register_fn("recall", |jobs: Jobs, map: Map, otherwise: i64| recall(&jobs, &map, otherwise as f64));
    let engine = registrar.method(
        "Texts",
        "recall(map: Map, otherwise: float) -> Column",
        "For each job the number that a map has for its text, and the other number where it has none: \
         `jobs.tenant_name.recall(#{ ann: 3.0 }, 1.0)`.",
    );
    engine.register_fn("recall", |texts: Texts, map: Map, otherwise: f64| look_up(&texts, &map, otherwise));
    engine.register_fn("recall", |texts: Texts, map: Map, otherwise: i64| {
        look_up(&texts, &map, otherwise as f64)
    });
}
