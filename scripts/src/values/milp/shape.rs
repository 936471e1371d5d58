//! What there is one expression for: nothing but itself, each member of a set, or each pair of members of two sets.

use std::fmt;

use rhai::{Array, Dynamic};

use crate::language::session::{Outcome, fail};
use crate::values::{Jobs, type_label};

/// The most variables of one name.
const MOST: usize = 1_000_000;

/// A set that variables are made over.
#[derive(Clone, Debug)]
pub(crate) enum Set {
    Jobs(Jobs),
    Count(usize),
}

/// Two sets: rows and columns. A side that is missing stands for any: what is there is the same all along it.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) rows: Option<Set>,
    pub(crate) columns: Option<usize>,
}

/// What there is one expression for.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    One,
    Each(Set),
    Pairs(Sides),
}

impl Set {
    /// A set of jobs, a count, or an array that is counted.
    fn from_value(value: &Dynamic) -> Outcome<Set> {
        if let Some(jobs) = value.read_lock::<Jobs>() {
            return Ok(Set::Jobs(jobs.clone()));
        }
        if let Some(items) = value.read_lock::<Array>() {
            return Ok(Set::Count(items.len()));
        }
        match value.as_int() {
            Ok(count) => match usize::try_from(count) {
                Ok(count) if count <= MOST => Ok(Set::Count(count)),
                _ => fail(format!("{count} variables: a model may have 0 to {MOST} of a name")),
            },
            Err(_) => fail(format!(
                "variables are made over a set of jobs, a count, or two of these as [jobs, count], got {}",
                type_label(value)
            )),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Set::Jobs(jobs) => jobs.len(),
            Set::Count(count) => *count,
        }
    }

    pub(crate) fn is_same(&self, other: &Set) -> bool {
        match (self, other) {
            (Set::Jobs(a), Set::Jobs(b)) => a.is_same(b),
            (Set::Count(a), Set::Count(b)) => a == b,
            _ => false,
        }
    }

    /// Positions by ascending job id, so that a model does not depend on the order of the table.
    pub(crate) fn positions_by_id(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Set::Jobs(jobs) => jobs.positions_by_id(),
            Set::Count(count) => Box::new(0..*count),
        }
    }

    /// What a member is called in names: its job's number, or its position.
    pub(crate) fn label(&self, position: usize) -> usize {
        match self {
            Set::Jobs(jobs) => jobs.session.snapshot.jobs.id(jobs.row_at(position)).index(),
            Set::Count(_) => position,
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Set::Jobs(jobs) => write!(f, "{} jobs", jobs.len()),
            Set::Count(count) => write!(f, "{count} entries"),
        }
    }
}

impl Sides {
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.as_ref().map_or(1, Set::len)
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.columns.unwrap_or(1)
    }

    pub(crate) fn len(&self) -> usize {
        self.n_rows() * self.n_columns()
    }

    /// What two make together: a side that one of them lacks is taken from the other.
    pub(crate) fn with(&self, other: &Sides) -> Option<Sides> {
        let rows = match (&self.rows, &other.rows) {
            (Some(a), Some(b)) if !a.is_same(b) => return None,
            (Some(rows), _) | (None, Some(rows)) => Some(rows.clone()),
            (None, None) => None,
        };
        let columns = match (self.columns, other.columns) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        Some(Sides { rows, columns })
    }

    /// The position here of a position in `whole`, which has every side that this has.
    pub(crate) fn position(&self, whole: &Sides, position: usize) -> usize {
        let (row, column) = (position / whole.n_columns(), position % whole.n_columns());
        let row = if self.rows.is_some() { row } else { 0 };
        row * self.n_columns() + if self.columns.is_some() { column } else { 0 }
    }

    /// Rows by ascending job id.
    pub(crate) fn rows_by_id(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match &self.rows {
            Some(rows) => rows.positions_by_id(),
            None => Box::new(0..1),
        }
    }

    fn positions_by_id(&self) -> impl Iterator<Item = usize> + '_ {
        let n_columns = self.n_columns();
        self.rows_by_id().flat_map(move |row| row * n_columns..(row + 1) * n_columns)
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rows {
            Some(rows) => write!(f, "{rows} x ")?,
            None => f.write_str("any rows x ")?,
        }
        match self.columns {
            Some(columns) => write!(f, "{columns}"),
            None => f.write_str("any columns"),
        }
    }
}

impl Shape {
    /// A set, or two sets in an array.
    pub(crate) fn from_value(value: &Dynamic) -> Outcome<Shape> {
        let pair = value.read_lock::<Array>();
        let Some(pair) = pair else { return Set::from_value(value).map(Shape::Each) };
        let [rows, columns] = pair.as_slice() else {
            return fail(format!(
                "variables over an array take two sets, as in [jobs, 20], got {} of them",
                pair.len()
            ));
        };
        let (rows, columns) = (Set::from_value(rows)?, Set::from_value(columns)?);
        let Set::Count(n_columns) = columns else {
            return fail("the second of two sets is a count or an array: write [jobs, 20], not [20, jobs]");
        };
        match rows.len().checked_mul(n_columns) {
            Some(n_pairs) if n_pairs <= MOST => {
                Ok(Shape::Pairs(Sides { rows: Some(rows), columns: Some(n_columns) }))
            }
            _ => fail(format!("variables over {rows} x {n_columns}: a model may have 0 to {MOST} of a name")),
        }
    }

    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Shape::One)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Shape::One => 1,
            Shape::Each(set) => set.len(),
            Shape::Pairs(sides) => sides.len(),
        }
    }

    /// Positions by ascending job id, row by row.
    pub(crate) fn positions_by_id(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Shape::One => Box::new(0..1),
            Shape::Each(set) => set.positions_by_id(),
            Shape::Pairs(sides) => Box::new(sides.positions_by_id()),
        }
    }

    /// The name of one of several: `x_17` for job 17, `x_17_3` for job 17 and column 3.
    pub(crate) fn name_of(&self, name: &str, position: usize) -> String {
        match self {
            Shape::One => name.to_owned(),
            Shape::Each(set) => format!("{name}_{}", set.label(position)),
            Shape::Pairs(sides) => {
                let (row, column) = (position / sides.n_columns(), position % sides.n_columns());
                let row = sides.rows.as_ref().map_or(row, |rows| rows.label(row));
                format!("{name}_{row}_{column}")
            }
        }
    }

    /// What two shapes make together: a single one goes with all, a column of jobs along the rows of the same jobs.
    pub(super) fn with(&self, other: &Shape) -> Outcome<Shape> {
        let together = match (self, other) {
            (Shape::One, any) | (any, Shape::One) => Some(any.clone()),
            (Shape::Each(a), Shape::Each(b)) => a.is_same(b).then(|| self.clone()),
            (Shape::Pairs(a), Shape::Pairs(b)) => a.with(b).map(Shape::Pairs),
            (Shape::Each(Set::Count(_)), Shape::Pairs(_)) | (Shape::Pairs(_), Shape::Each(Set::Count(_))) => {
                return fail(format!(
                    "one over {self} and one over {other}: say along which side with by_row(…) or by_column(…)"
                ));
            }
            (Shape::Each(set), Shape::Pairs(sides)) | (Shape::Pairs(sides), Shape::Each(set)) => {
                let along = Sides { rows: Some(set.clone()), columns: None };
                along.with(sides).map(Shape::Pairs)
            }
        };
        match together {
            Some(shape) => Ok(shape),
            None => fail(format!("expressions over {self} and over {other} do not go together")),
        }
    }

    /// The position here of a position in `whole`, which this goes with.
    pub(super) fn position(&self, whole: &Shape, position: usize) -> usize {
        match (self, whole) {
            (Shape::One, _) => 0,
            (Shape::Each(_), Shape::Pairs(whole)) => position / whole.n_columns(),
            (Shape::Pairs(own), Shape::Pairs(whole)) => own.position(whole, position),
            _ => position,
        }
    }

    /// How often each of these occurs in `whole`.
    pub(super) fn repeats(&self, whole: &Shape) -> usize {
        whole.len() / self.len().max(1)
    }

    /// Its two sets; an error that says so where it has not two.
    pub(super) fn sides(&self, verb: &str) -> Outcome<&Sides> {
        match self {
            Shape::Pairs(sides) => Ok(sides),
            Shape::One | Shape::Each(_) => {
                fail(format!("{verb}: takes expressions over two sets, these are over {self}"))
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::One => f.write_str("one"),
            Shape::Each(set) => write!(f, "{set}"),
            Shape::Pairs(sides) => write!(f, "{sides}"),
        }
    }
}
