//! Linear expressions over a model's variables: one, one for each member of a set, or one for each pair of two sets.
//! Operators are in `operators`, sums along a side in `sides`.

use std::fmt;
use std::sync::Arc;

use rhai::{Array, Dynamic};
use rota_solvers::Variable;

use super::Cell;
use super::matrix::Matrix;
use super::operators::combine;
use super::shape::{Set, Shape};
use crate::language::session::{Outcome, fail};
use crate::values::{Column, JobValue, Jobs, number, type_label};

/// Expressions.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    cell: Arc<Cell>,
    shape: Shape,
    body: Arc<Body>,
}

/// Terms of the expression at position p are `starts[p]..starts[p + 1]`.
#[derive(Debug)]
struct Body {
    starts: Vec<u32>,
    terms: Vec<(Variable, f64)>,
    constants: Vec<f64>,
    cell: Arc<Cell>,
    bytes: u64,
}

impl Drop for Body {
    fn drop(&mut self) {
        self.cell.session.meter().free_column(self.bytes);
    }
}

/// How an expression compares with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    AtMost,
    AtLeast,
    Equal,
}

/// Expressions with the relation to 0 that must hold.
#[derive(Clone, Debug)]
pub(crate) struct Constraint {
    pub(crate) linear: Linear,
    pub(crate) relation: Relation,
}

impl Linear {
    /// One variable for each position, or none where there is none.
    pub(crate) fn of_variables(
        cell: &Arc<Cell>,
        shape: Shape,
        variables: &[Option<Variable>],
    ) -> Outcome<Linear> {
        let mut body = Building::new(cell, shape.len(), shape.len())?;
        for variable in variables {
            body.terms.extend(variable.map(|variable| (variable, 1.0)));
            body.close(0.0);
        }
        Ok(body.done(shape))
    }

    /// Numbers without variables: one, a column, or an array of them.
    pub(crate) fn constant(cell: &Arc<Cell>, value: &Dynamic) -> Outcome<Linear> {
        let (shape, numbers) = if let Some(one) = number(value) {
            (Shape::One, vec![one])
        } else if let Some(column) = value.read_lock::<Column>() {
            (Shape::Each(Set::Jobs(column.jobs.clone())), column.values().to_vec())
        } else if let Some(matrix) = value.read_lock::<Matrix>() {
            (Shape::Pairs(matrix.sides().clone()), matrix.values().to_vec())
        } else if let Some(array) = value.read_lock::<Array>() {
            let numbers: Option<Vec<f64>> = array.iter().map(number).collect();
            let Some(numbers) = numbers else {
                return fail("an array next to variables must hold numbers only");
            };
            (Shape::Each(Set::Count(numbers.len())), numbers)
        } else {
            return fail(format!(
                "expected a number, a column, an array or a matrix, got {}",
                type_label(value)
            ));
        };
        let mut body = Building::new(cell, numbers.len(), 0)?;
        numbers.into_iter().for_each(|number| body.close(number));
        Ok(body.done(shape))
    }

    /// The same for every position of a shape, where there is only one.
    pub(crate) fn spread(self, shape: &Shape) -> Outcome<Linear> {
        let whole = self.shape.with(shape)?;
        if self.shape.repeats(&whole) == 1 && whole.is_one() == self.shape.is_one() {
            return Ok(Linear { shape: whole, ..self });
        }
        combine(&self, &Linear::zeros(&self.cell, whole)?, 1.0)
    }

    pub(super) fn zeros(cell: &Arc<Cell>, shape: Shape) -> Outcome<Linear> {
        let mut body = Building::new(cell, shape.len(), 0)?;
        (0..shape.len()).for_each(|_| body.close(0.0));
        Ok(body.done(shape))
    }

    /// The same expressions with another shape of as many positions.
    pub(super) fn reshaped(&self, shape: Shape) -> Linear {
        assert_eq!(self.shape.len(), shape.len(), "one expression for each position");
        Linear { shape, ..self.clone() }
    }

    pub(super) fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn is_of(&self, cell: &Arc<Cell>) -> bool {
        Arc::ptr_eq(&self.cell, cell)
    }

    pub(crate) fn n_terms(&self) -> usize {
        self.body.terms.len()
    }

    pub(crate) fn terms(&self, position: usize) -> &[(Variable, f64)] {
        &self.body.terms[self.body.starts[position] as usize..self.body.starts[position + 1] as usize]
    }

    /// The part without variables.
    pub(crate) fn number(&self, position: usize) -> f64 {
        self.body.constants[position]
    }

    pub(super) fn sum(&self) -> Outcome<Linear> {
        let mut body = Building::new(&self.cell, 1, self.n_terms())?;
        let mut constant = 0.0;
        for position in self.shape.positions_by_id() {
            body.terms.extend_from_slice(self.terms(position));
            constant += self.number(position);
        }
        body.close(constant);
        Ok(body.done(Shape::One))
    }

    /// The expression of one position.
    fn at(&self, position: Option<usize>, what: impl fmt::Display) -> Outcome<Linear> {
        let Some(position) = position.filter(|position| *position < self.shape.len()) else {
            return fail(format!("{what} is not among the {} of this expression", self.shape));
        };
        let mut body = Building::new(&self.cell, 1, self.terms(position).len())?;
        body.terms.extend_from_slice(self.terms(position));
        body.close(self.number(position));
        Ok(body.done(Shape::One))
    }

    pub(super) fn at_index(&self, index: i64) -> Outcome<Linear> {
        if let Shape::Pairs(_) = self.shape {
            return self.row(index);
        }
        let position = usize::try_from(index).ok().and_then(|index| self.shape.positions_by_id().nth(index));
        self.at(position, format!("index {index}"))
    }

    pub(super) fn of_job(&self, job: &JobValue) -> Outcome<Linear> {
        let Shape::Each(Set::Jobs(jobs)) = &self.shape else { return self.row_of_job(job) };
        self.at(jobs.position_of(job.row()), format!("job {}", job.id()))
    }

    /// The expressions of some of the jobs.
    pub(super) fn of_jobs(&self, some: Jobs) -> Outcome<Linear> {
        let Shape::Each(Set::Jobs(jobs)) = &self.shape else {
            return fail("this expression is not over jobs");
        };
        let mut body = Building::new(&self.cell, some.len(), self.n_terms())?;
        for row in some.rows() {
            let Some(position) = jobs.position_of(row) else {
                return fail(format!(
                    "job {} is not in the set of this expression",
                    jobs.session.snapshot.jobs.id(row)
                ));
            };
            body.terms.extend_from_slice(self.terms(position));
            body.close(self.number(position));
        }
        Ok(body.done(Shape::Each(Set::Jobs(some))))
    }
}

/// A body in the making; what it takes is counted before it is taken.
pub(super) struct Building {
    cell: Arc<Cell>,
    starts: Vec<u32>,
    pub(super) terms: Vec<(Variable, f64)>,
    constants: Vec<f64>,
    bytes: u64,
}

impl Building {
    pub(super) fn new(cell: &Arc<Cell>, n_positions: usize, n_terms: usize) -> Outcome<Building> {
        let meter = cell.session.meter();
        meter.charge(n_positions + n_terms)?;
        let bytes = n_positions as u64 * 12 + n_terms as u64 * 16;
        meter.take_column(bytes)?;
        let mut starts = Vec::with_capacity(n_positions + 1);
        starts.push(0);
        let (terms, constants) = (Vec::with_capacity(n_terms), Vec::with_capacity(n_positions));
        Ok(Building { cell: Arc::clone(cell), starts, terms, constants, bytes })
    }

    /// The terms pushed since the last one belong to one expression, with this constant.
    pub(super) fn close(&mut self, constant: f64) {
        self.starts.push(self.terms.len() as u32);
        self.constants.push(constant);
    }

    pub(super) fn done(self, shape: Shape) -> Linear {
        let Building { cell, starts, terms, constants, bytes } = self;
        assert_eq!(constants.len(), shape.len(), "one expression for each position");
        let body = Body { starts, terms, constants, cell: Arc::clone(&cell), bytes };
        Linear { cell, shape, body: Arc::new(body) }
    }
}
