//! Columns: one number for each job of a set, so that a key over all jobs is one native operation.
//!
//! A column read from the table is a handle and copies nothing; a computed one owns its numbers, which count
//! against the limit on column memory until it is dropped. Arithmetic is in `arithmetic`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::table::Field;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::{Jobs, Texts};

/// Numbers, one for each job of a set.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) jobs: Jobs,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Field(Field),
    Owned(Arc<Owned>),
}

/// Computed numbers and the bytes they count for.
#[derive(Debug)]
struct Owned {
    values: Vec<f64>,
    session: Arc<Session>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.session.meter().free_column(bytes(self.values.len()));
    }
}

fn bytes(rows: usize) -> u64 {
    rows as u64 * 8
}

impl Column {
    /// A column of the table, for all jobs or for some.
    pub(crate) fn field(jobs: &Jobs, field: Field) -> Outcome<Column> {
        if jobs.is_all() {
            return Ok(Column { jobs: jobs.clone(), data: Data::Field(field) });
        }
        let table = &jobs.session.snapshot.jobs;
        let source = table.column(field);
        Column::compute(jobs, jobs.rows().map(|row| source[row]))
    }

    /// A computed column; `values` yields one number for each job of the set.
    pub(crate) fn compute(jobs: &Jobs, values: impl Iterator<Item = f64>) -> Outcome<Column> {
        let meter = jobs.session.meter();
        meter.charge(jobs.len())?;
        meter.take_column(bytes(jobs.len()))?;
        let mut owned = Owned { values: Vec::new(), session: Arc::clone(&jobs.session) };
        owned.values.reserve_exact(jobs.len());
        owned.values.extend(values);
        assert_eq!(owned.values.len(), jobs.len(), "a column has one number for each job");
        Ok(Column { jobs: jobs.clone(), data: Data::Owned(Arc::new(owned)) })
    }

    /// The numbers, in the order of the set's rows.
    pub(crate) fn values(&self) -> &[f64] {
        match &self.data {
            Data::Field(field) => self.jobs.session.snapshot.jobs.column(*field),
            Data::Owned(owned) => &owned.values,
        }
    }

    /// The numbers, to be changed in place if nothing else holds them.
    pub(crate) fn values_mut(&mut self) -> Option<&mut [f64]> {
        match &mut self.data {
            Data::Field(_) => None,
            Data::Owned(owned) => Arc::get_mut(owned).map(|o| o.values.as_mut_slice()),
        }
    }

    /// Whether it is this column of the table, unchanged.
    pub(crate) fn is_field(&self, field: Field) -> bool {
        matches!(&self.data, Data::Field(f) if *f == field)
    }

    /// An error unless both columns are of the same jobs.
    pub(crate) fn same_jobs(&self, other: &Column) -> Outcome<()> {
        if self.jobs.is_same(&other.jobs) {
            return Ok(());
        }
        let (a, b) = (self.jobs.len(), other.jobs.len());
        fail(format!("columns of different job sets ({a} and {b} jobs): take both from the same `jobs`"))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Column";
    registrar.class::<Column>(
        OWNER,
        "One number for each job of a set. Arithmetic and comparisons work on all at once.",
    );
    registrar
        .field(OWNER, "len: int", "How many numbers.")
        .register_get("len", |column: &mut Column| column.jobs.len() as i64);
    registrar
        .method(OWNER, "sum() -> float", "All numbers added up, in the order of job ids.")
        .register_fn("sum", sum);
    registrar.method(OWNER, "mean() -> float", "The average; 0 when there is no job.").register_fn(
        "mean",
        |column: Column| -> Outcome<f64> {
            let n_jobs = column.jobs.len();
            sum(column).map(|sum| if n_jobs == 0 { 0.0 } else { sum / n_jobs as f64 })
        },
    );
    registrar
        .method(OWNER, "least() -> float", "The smallest number; infinite when there is no job.")
        .register_fn("least", |column: Column| fold(&column, f64::INFINITY, f64::min));
    registrar
        .method(OWNER, "most() -> float", "The largest number; minus infinity when there is no job.")
        .register_fn("most", |column: Column| fold(&column, f64::NEG_INFINITY, f64::max));
    registrar
        .method(
            OWNER,
            "total_by(group) -> Column",
            "For each job, the sum over all jobs of the same group, which is a column or a column of texts: \
             `jobs.held.total_by(jobs.tenant_name)`.",
        )
        .register_fn("total_by", total_by)
        .register_fn("total_by", |column: Column, group: Texts| total_by(column, group.numbers().clone()));
    registrar
        .method(
            OWNER,
            "total_before(group) -> Column",
            "For each job, the sum over the jobs of the same group that arrived before it.",
        )
        .register_fn("total_before", total_before)
        .register_fn("total_before", |column: Column, group: Texts| {
            total_before(column, group.numbers().clone())
        });
    registrar
        .method(
            OWNER,
            "total_up_to(key: Column) -> Column",
            "For each job, the sum over all jobs whose key is not larger: `work.total_up_to(jobs.deadline)` is the work that is \
             due when a job is.",
        )
        .register_fn("total_up_to", total_up_to);
    registrar
        .method(OWNER, "of(job: Job) -> float", "The number of one job.")
        .register_fn("of", |column: Column, job: crate::values::JobValue| of(&column, &job));
    registrar.unknown_field::<Column>(OWNER);
}

/// Sums in id order, because the order of rows means nothing and adding floats in another order rounds otherwise.
fn sum(column: Column) -> Outcome<f64> {
    column.jobs.session.meter().charge(column.jobs.len())?;
    let values = column.values();
    Ok(match column.jobs.is_all() {
        true => column.jobs.session.rows_by_id().iter().map(|row| values[*row as usize]).sum(),
        false => values.iter().sum(),
    })
}

fn fold(column: &Column, start: f64, f: impl Fn(f64, f64) -> f64) -> Outcome<f64> {
    column.jobs.session.meter().charge(column.jobs.len())?;
    Ok(column.values().iter().copied().fold(start, f))
}

fn total_by(column: Column, group: Column) -> Outcome<Column> {
    column.same_jobs(&group)?;
    let (values, groups) = (column.values(), group.values());
    let mut totals: BTreeMap<u64, f64> = BTreeMap::new();
    for position in column.jobs.positions_by_id() {
        *totals.entry(groups[position].to_bits()).or_default() += values[position];
    }
    Column::compute(&column.jobs, groups.iter().map(|g| totals.get(&g.to_bits()).copied().unwrap_or(0.0)))
}

fn total_before(column: Column, group: Column) -> Outcome<Column> {
    column.same_jobs(&group)?;
    let (values, groups) = (column.values(), group.values());
    let mut totals: BTreeMap<u64, f64> = BTreeMap::new();
    let mut before = vec![0.0; values.len()];
    for position in column.jobs.positions_by_id() {
        let total = totals.entry(groups[position].to_bits()).or_default();
        before[position] = *total;
        *total += values[position];
    }
    Column::compute(&column.jobs, before.into_iter())
}

fn total_up_to(column: Column, key: Column) -> Outcome<Column> {
    column.same_jobs(&key)?;
    // Sorting is more than one look at each.
    column.jobs.session.meter().charge(column.jobs.len() * 4)?;
    let (values, keys) = (column.values(), key.values());
    let mut positions: Vec<usize> = column.jobs.positions_by_id().collect();
    positions.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
    let mut totals = vec![0.0; values.len()];
    let mut total = 0.0;
    for same in positions.chunk_by(|a, b| keys[*a] == keys[*b]) {
        total += same.iter().map(|position| values[*position]).sum::<f64>();
        same.iter().for_each(|position| totals[*position] = total);
    }
    Column::compute(&column.jobs, totals.into_iter())
}

fn of(column: &Column, job: &crate::values::JobValue) -> Outcome<f64> {
    match column.jobs.position_of(job.row()) {
        Some(position) => Ok(column.values()[position]),
        None => fail(format!("job {} is not in the set of this column", job.id())),
    }
}
