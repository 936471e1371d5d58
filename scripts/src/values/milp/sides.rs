//! Expressions over two sets: sums along a side, one row or column of them, and one set's expressions spread over two.

use std::collections::BTreeMap;

use rhai::{Array, Dynamic};

use super::linear::{Building, Linear};
use super::shape::{Set, Shape, Sides};
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, JobValue, number, type_label};

impl Linear {
    /// One expression for each group of positions, in this order.
    fn gathered<'a>(&self, shape: Shape, groups: impl Iterator<Item = &'a [usize]>) -> Outcome<Linear> {
        let mut body = Building::new(self.cell(), shape.len(), self.n_terms())?;
        for group in groups {
            let mut constant = 0.0;
            for position in group {
                body.terms.extend_from_slice(self.terms(*position));
                constant += self.number(*position);
            }
            body.close(constant);
        }
        Ok(body.done(shape))
    }

    /// The sum of each row.
    fn row_sums(&self) -> Outcome<Linear> {
        let sides = self.shape().sides("row_sums")?;
        let positions: Vec<usize> = (0..sides.len()).collect();
        let shape = sides.rows.clone().map_or(Shape::One, Shape::Each);
        match sides.n_columns() {
            0 => Linear::zeros(self.cell(), shape),
            n_columns => self.gathered(shape, positions.chunks(n_columns)),
        }
    }

    /// The sum of each column, rows by ascending job id.
    fn column_sums(&self) -> Outcome<Linear> {
        let sides = self.shape().sides("column_sums")?;
        let rows: Vec<usize> = sides.rows_by_id().collect();
        let positions: Vec<usize> = (0..sides.n_columns())
            .flat_map(|column| rows.iter().map(move |row| row * sides.n_columns() + column))
            .collect();
        let shape = sides.columns.map_or(Shape::One, |columns| Shape::Each(Set::Count(columns)));
        match rows.len() {
            0 => Linear::zeros(self.cell(), shape),
            n_rows => self.gathered(shape, positions.chunks(n_rows)),
        }
    }

    /// The expressions of one row, by ascending job id.
    pub(super) fn row(&self, index: i64) -> Outcome<Linear> {
        let sides = self.shape().sides("row")?;
        let row = usize::try_from(index).ok().and_then(|index| sides.rows_by_id().nth(index));
        self.row_at(row, format!("row {index}"))
    }

    pub(super) fn row_of_job(&self, job: &JobValue) -> Outcome<Linear> {
        let Shape::Pairs(Sides { rows: Some(Set::Jobs(jobs)), .. }) = self.shape() else {
            return fail("this expression is not over jobs");
        };
        self.row_at(jobs.position_of(job.row()), format!("job {}", job.id()))
    }

    fn row_at(&self, row: Option<usize>, what: String) -> Outcome<Linear> {
        let sides = self.shape().sides("row")?;
        let Some(row) = row else {
            return fail(format!("{what} is not among the {} of this expression", self.shape()));
        };
        let n_columns = sides.n_columns();
        let positions: Vec<usize> = (row * n_columns..(row + 1) * n_columns).collect();
        self.gathered(Shape::Each(Set::Count(n_columns)), positions.chunks(1))
    }

    /// The expressions of one column, one for each row.
    fn column(&self, index: i64) -> Outcome<Linear> {
        let sides = self.shape().sides("column")?;
        let Some(column) = usize::try_from(index).ok().filter(|column| *column < sides.n_columns()) else {
            return fail(format!("column {index} is not among the {} of this expression", self.shape()));
        };
        let positions: Vec<usize> = (0..sides.n_rows()).map(|row| row * sides.n_columns() + column).collect();
        let shape = sides.rows.clone().map_or(Shape::One, Shape::Each);
        self.gathered(shape, positions.chunks(1))
    }

    /// The same in every column.
    pub(super) fn by_row(&self) -> Outcome<Linear> {
        match self.shape() {
            Shape::Each(rows) => {
                let sides = Sides { rows: Some(rows.clone()), columns: None };
                Ok(self.reshaped(Shape::Pairs(sides)))
            }
            other => fail(format!("by_row: takes expressions over one set, these are over {other}")),
        }
    }

    /// The same in every row.
    pub(super) fn by_column(&self) -> Outcome<Linear> {
        match self.shape() {
            Shape::Each(Set::Count(count)) => {
                let sides = Sides { rows: None, columns: Some(*count) };
                Ok(self.reshaped(Shape::Pairs(sides)))
            }
            other => fail(format!("by_column: takes expressions over a count, these are over {other}")),
        }
    }

    /// One sum for each distinct key, in the order in which keys first occur (jobs by ascending id).
    fn sum_by(&self, keys: &Dynamic) -> Outcome<Linear> {
        let Shape::Each(set) = self.shape() else {
            return fail(format!("sum_by: takes expressions over one set, these are over {}", self.shape()));
        };
        let keys = keys_of(set, keys)?;
        self.cell().session.meter().charge(keys.len() * 4)?;
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut group_of: BTreeMap<u64, usize> = BTreeMap::new();
        for position in set.positions_by_id() {
            let group = *group_of.entry(keys[position].to_bits()).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(position);
        }
        let shape = Shape::Each(Set::Count(groups.len()));
        self.gathered(shape, groups.iter().map(Vec::as_slice))
    }
}

/// A key for each member of a set.
fn keys_of(set: &Set, keys: &Dynamic) -> Outcome<Vec<f64>> {
    let (n_keys, found) = if let Some(column) = keys.read_lock::<Column>() {
        let is_same = set.is_same(&Set::Jobs(column.jobs.clone()));
        (column.jobs.len(), is_same.then(|| column.values().to_vec()))
    } else if let Some(array) = keys.read_lock::<Array>() {
        let Some(numbers) = array.iter().map(number).collect::<Option<Vec<f64>>>() else {
            return fail("sum_by: an array of keys must hold numbers only");
        };
        (numbers.len(), matches!(set, Set::Count(count) if *count == numbers.len()).then_some(numbers))
    } else {
        return fail(format!("sum_by: keys are a column or an array of numbers, got {}", type_label(keys)));
    };
    match found {
        Some(keys) => Ok(keys),
        None => fail(format!("sum_by: {n_keys} keys for expressions over {set}")),
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Linear";
    registrar
        .method(OWNER, "row_sums() -> Linear", "Of expressions over two sets, the sum of each row.")
        .register_fn("row_sums", |linear: Linear| linear.row_sums());
    registrar
        .method(OWNER, "column_sums() -> Linear", "Of expressions over two sets, the sum of each column.")
        .register_fn("column_sums", |linear: Linear| linear.column_sums());
    registrar
        .method(
            OWNER,
            "row(index: int) -> Linear",
            "The expressions of one row; `x[job]` for the row of a job.",
        )
        .register_fn("row", |linear: Linear, index: i64| linear.row(index));
    registrar
        .method(OWNER, "column(index: int) -> Linear", "The expressions of one column, one for each row.")
        .register_fn("column", |linear: Linear, index: i64| linear.column(index));
    registrar
        .method(
            OWNER,
            "sum_by(keys) -> Linear",
            "One sum for each distinct key of a column or an array, in the order in which keys first occur: \
             `m.add(x.sum_by(jobs.tenant) <= 8)`.",
        )
        .register_fn("sum_by", |linear: Linear, keys: Dynamic| linear.sum_by(&keys));
}
