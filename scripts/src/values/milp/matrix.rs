//! Matrices: numbers over two sets, such as jobs and leases, for the coefficients of a model and for its answers.
//! Arithmetic is in `matrix_arithmetic`.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString};

use super::linear::Linear;
use super::shape::{Set, Sides};
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, Shared, fail};
use crate::values::{Column, JobValue, number, type_label};

/// Numbers over two sets, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    sides: Sides,
    numbers: Arc<Numbers>,
}

/// The numbers, and the bytes they count for.
#[derive(Debug)]
struct Numbers {
    values: Vec<f64>,
    session: Arc<Session>,
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.session.meter().free_column(self.values.len() as u64 * 8);
    }
}

impl Matrix {
    /// A matrix; `values` yields its numbers row by row. What it takes is counted before it is taken.
    pub(crate) fn compute(
        session: &Arc<Session>,
        sides: Sides,
        values: impl Iterator<Item = f64>,
    ) -> Outcome<Matrix> {
        let n_values = sides.len();
        session.meter().charge(n_values)?;
        session.meter().take_column(n_values as u64 * 8)?;
        let mut kept = Vec::with_capacity(n_values);
        kept.extend(values);
        assert_eq!(kept.len(), n_values, "one number for each pair");
        let numbers = Numbers { values: kept, session: Arc::clone(session) };
        Ok(Matrix { sides, numbers: Arc::new(numbers) })
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.numbers.session
    }

    pub(crate) fn sides(&self) -> &Sides {
        &self.sides
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.numbers.values
    }

    /// Numbers of one row.
    pub(crate) fn row_values(&self, row: usize) -> &[f64] {
        let n_columns = self.sides.n_columns();
        &self.values()[row * n_columns..(row + 1) * n_columns]
    }

    /// An array of equally long arrays of numbers.
    fn from_rows(session: &Arc<Session>, rows: &Array) -> Outcome<Matrix> {
        let n_columns = rows.first().and_then(|row| row.read_lock::<Array>().map(|row| row.len()));
        let n_columns = n_columns.unwrap_or(0);
        let mut values = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let Some(row) = row.read_lock::<Array>() else {
                return fail(format!("matrix: row {index} must be an array, got {}", type_label(row)));
            };
            if row.len() != n_columns {
                return fail(format!("matrix: row {index} has {} numbers, row 0 has {n_columns}", row.len()));
            }
            session.meter().charge(n_columns)?;
            for (column, item) in row.iter().enumerate() {
                match number(item) {
                    Some(number) => values.push(number),
                    None => {
                        return fail(format!(
                            "matrix: row {index}, column {column} must be a number, got {}",
                            type_label(item)
                        ));
                    }
                }
            }
        }
        let sides = Sides { rows: Some(Set::Count(rows.len())), columns: Some(n_columns) };
        Matrix::compute(session, sides, values.into_iter())
    }

    /// One value for each row.
    fn by_rows(&self, value: impl Fn(&[f64]) -> f64) -> Outcome<Dynamic> {
        self.session().meter().charge(self.values().len())?;
        let values = |row: usize| value(self.row_values(row));
        match &self.sides.rows {
            Some(Set::Jobs(jobs)) => Column::compute(jobs, (0..jobs.len()).map(values)).map(Dynamic::from),
            _ => Ok(Dynamic::from_array((0..self.sides.n_rows()).map(values).map(Dynamic::from).collect())),
        }
    }

    fn column_sums(&self) -> Outcome<Array> {
        self.session().meter().charge(self.values().len())?;
        let mut sums = vec![0.0; self.sides.n_columns()];
        for row in self.sides.rows_by_id() {
            sums.iter_mut().zip(self.row_values(row)).for_each(|(sum, value)| *sum += value);
        }
        Ok(sums.into_iter().map(Dynamic::from).collect())
    }

    /// Summed row by row in the order of job ids, so that rounding does not depend on the order of the table.
    fn sum(&self) -> Outcome<f64> {
        self.session().meter().charge(self.values().len())?;
        let rows = self.sides.rows_by_id();
        Ok(rows.map(|row| self.row_values(row).iter().sum::<f64>()).sum())
    }

    fn row(&self, row: Option<usize>, what: impl std::fmt::Display) -> Outcome<Array> {
        match row.filter(|row| *row < self.sides.n_rows()) {
            Some(row) => {
                self.session().meter().charge(self.sides.n_columns())?;
                Ok(self.row_values(row).iter().map(|value| Dynamic::from(*value)).collect())
            }
            None => fail(format!("{what} is not among the rows of a matrix of {}", self.sides)),
        }
    }

    fn row_at(&self, index: i64) -> Outcome<Array> {
        let row = usize::try_from(index).ok().and_then(|index| self.sides.rows_by_id().nth(index));
        self.row(row, format!("row {index}"))
    }

    fn row_of_job(&self, job: &JobValue) -> Outcome<Array> {
        let Some(Set::Jobs(jobs)) = &self.sides.rows else {
            return fail("the rows of this matrix are not jobs");
        };
        self.row(jobs.position_of(job.row()), format!("job {}", job.id()))
    }

    fn column(&self, index: i64) -> Outcome<Dynamic> {
        match usize::try_from(index).ok().filter(|index| *index < self.sides.n_columns()) {
            Some(column) => self.by_rows(|row| row[column]),
            None => fail(format!("column {index} is not among the columns of a matrix of {}", self.sides)),
        }
    }

    fn to_arrays(&self) -> Outcome<Array> {
        self.session().meter().charge(self.values().len())?;
        let row = |row: usize| self.row_values(row).iter().map(|value| Dynamic::from(*value)).collect();
        Ok(self.sides.rows_by_id().map(|at| Dynamic::from_array(row(at))).collect())
    }
}

/// The position of the largest number, the first of equal ones.
fn largest(row: &[f64]) -> f64 {
    let mut best = 0;
    for (position, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = position;
        }
    }
    best as f64
}

/// Numbers along one side: a column, an array, or a range of whole numbers.
fn along(shared: &Shared, verb: &str, values: &Dynamic) -> Outcome<(Arc<Session>, Set, Vec<f64>)> {
    if let Some(column) = values.read_lock::<Column>() {
        let set = Set::Jobs(column.jobs.clone());
        column.jobs.session.meter().charge(column.values().len())?;
        return Ok((Arc::clone(&column.jobs.session), set, column.values().to_vec()));
    }
    let session = shared.session()?;
    let numbers: Option<Vec<f64>> = if let Some(array) = values.read_lock::<Array>() {
        session.meter().charge(array.len())?;
        array.iter().map(number).collect()
    } else if let Some(range) = values.read_lock::<std::ops::Range<i64>>() {
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        session.meter().charge(length)?;
        session.meter().take_column(length as u64 * 8)?;
        session.meter().free_column(length as u64 * 8);
        Some(range.clone().map(|number| number as f64).collect())
    } else {
        return fail(format!(
            "{verb}: takes a column, an array of numbers or a range such as 0..20, got {}",
            type_label(values)
        ));
    };
    match numbers {
        Some(numbers) => Ok((session, Set::Count(numbers.len()), numbers)),
        None => fail(format!("{verb}: an array must hold numbers only")),
    }
}

fn by_row(shared: &Shared, values: &Dynamic) -> Outcome<Dynamic> {
    if let Some(linear) = values.read_lock::<Linear>() {
        return linear.by_row().map(Dynamic::from);
    }
    let (session, rows, numbers) = along(shared, "by_row", values)?;
    let sides = Sides { rows: Some(rows), columns: None };
    Matrix::compute(&session, sides, numbers.into_iter()).map(Dynamic::from)
}

fn by_column(shared: &Shared, values: &Dynamic) -> Outcome<Dynamic> {
    if let Some(linear) = values.read_lock::<Linear>() {
        return linear.by_column().map(Dynamic::from);
    }
    let (session, set, numbers) = along(shared, "by_column", values)?;
    if let Set::Jobs(_) = set {
        return fail("by_column: a column of jobs goes along rows: write by_row(…)");
    }
    let sides = Sides { rows: None, columns: Some(numbers.len()) };
    Matrix::compute(&session, sides, numbers.into_iter()).map(Dynamic::from)
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    const OWNER: &str = "Matrix";
    registrar.class::<Matrix>(
        OWNER,
        "Numbers over two sets, such as one for each job and lease: its rows are jobs or counted, its columns are counted.",
    );
    let session = Arc::clone(shared);
    registrar
        .function(
            "matrix(rows: Array) -> Matrix",
            "A matrix from an array of equally long arrays of numbers, one for each row.",
        )
        .register_fn("matrix", move |rows: Array| Matrix::from_rows(&session.session()?, &rows));
    let session = Arc::clone(shared);
    registrar
        .function(
            "by_row(values) -> Matrix",
            "One number for each row, the same in every column: of a column, an array or a range. Of expressions over one set: \
             a Linear over two.",
        )
        .register_fn("by_row", move |values: Dynamic| by_row(&session, &values));
    let session = Arc::clone(shared);
    registrar
        .function(
            "by_column(values) -> Matrix",
            "One number for each column, the same in every row: of an array or a range, `by_column(0..20)`. Of expressions over \
             a count: a Linear over two sets.",
        )
        .register_fn("by_column", move |values: Dynamic| by_column(&session, &values));
    sums(registrar);
    parts(registrar);
    registrar.unknown_field::<Matrix>(OWNER);
    registrar.engine().register_fn("to_string", |matrix: &mut Matrix| {
        ImmutableString::from(format!("matrix of {}", matrix.sides))
    });
}

fn sums(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Matrix";
    type ByRow = fn(&[f64]) -> f64;
    let verbs: [(&str, &str, ByRow); 4] = [
        ("row_sums", "The sum of each row: a column if the rows are jobs, else an array.", |row| {
            row.iter().sum()
        }),
        ("row_least", "The smallest number of each row; infinite where there are no columns.", |row| {
            row.iter().copied().fold(f64::INFINITY, f64::min)
        }),
        ("row_most", "The largest number of each row; minus infinity where there are no columns.", |row| {
            row.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
        ("row_argmax", "For each row the column with the largest number, of equal ones the first.", largest),
    ];
    for (name, doc, value) in verbs {
        registrar
            .method(OWNER, &format!("{name}() -> Column"), doc)
            .register_fn(name, move |matrix: Matrix| matrix.by_rows(value));
    }
    registrar
        .method(OWNER, "column_sums() -> Array", "The sum of each column.")
        .register_fn("column_sums", |matrix: Matrix| matrix.column_sums());
    registrar
        .method(OWNER, "sum() -> float", "All numbers added up; also `sum(matrix)`.")
        .register_fn("sum", |matrix: Matrix| matrix.sum());
}

fn parts(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Matrix";
    let engine =
        registrar.method(OWNER, "[job] -> Array", "The row of a job, or at an index (jobs by ascending id).");
    engine.register_indexer_get(|matrix: &mut Matrix, index: i64| matrix.row_at(index));
    engine.register_indexer_get(|matrix: &mut Matrix, job: JobValue| matrix.row_of_job(&job));
    registrar
        .method(
            OWNER,
            "column(index: int) -> Column",
            "One column of the matrix: a column of jobs if the rows are jobs, else an array.",
        )
        .register_fn("column", |matrix: Matrix, index: i64| matrix.column(index));
    registrar
        .method(OWNER, "to_arrays() -> Array", "An array for each row, as private memory can hold them.")
        .register_fn("to_arrays", |matrix: Matrix| matrix.to_arrays());
    registrar
        .field(OWNER, "n_rows: int", "How many rows.")
        .register_get("n_rows", |matrix: &mut Matrix| matrix.sides.n_rows() as i64);
    registrar
        .field(OWNER, "n_columns: int", "How many columns.")
        .register_get("n_columns", |matrix: &mut Matrix| matrix.sides.n_columns() as i64);
}
