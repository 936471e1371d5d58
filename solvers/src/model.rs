//! The model: named variables with bounds, named rows with a range, one linear objective.
//!
//! A `Model` is sane by construction: names are unique and writable, no number is NaN, coefficients are
//! finite, no range is empty, terms of a row are sorted by variable and merged. Solving lives in
//! [`crate::highs`], file formats in [`crate::format`]; neither is known here.

use crate::error::{Item, ModelError};
use crate::names::Names;
use crate::range::{Range, finite};

/// The most variables, rows or terms: what a 32-bit solver index can count.
pub(crate) const MOST: usize = i32::MAX as usize;

/// A variable of one model, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub(crate) u32);

/// A row of one model, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub(crate) u32);

impl Variable {
    /// The position among the model's variables, and in a solution's values.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Row {
    /// The position among the model's rows.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What values a variable may take inside its bounds. A binary is an integer between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any real number.
    Continuous,
    /// Whole numbers.
    Integer,
}

/// Which way the objective is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Smaller is better.
    Minimize,
    /// Larger is better.
    Maximize,
}

/// A mixed-integer linear program.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    name: String,
    sense: Sense,
    offset: f64,
    names: Names,
    kinds: Vec<Kind>,
    ranges: Vec<Range>,
    costs: Vec<f64>,
    row_names: Names,
    row_ranges: Vec<Range>,
    /// Terms of row r are `row_starts[r]..row_starts[r + 1]` of `columns` and `coefficients`.
    row_starts: Vec<usize>,
    columns: Vec<u32>,
    coefficients: Vec<f64>,
}

impl Model {
    /// A model without variables and rows.
    pub fn new(sense: Sense) -> Self {
        Model {
            name: String::new(),
            sense,
            offset: 0.0,
            names: Names::default(),
            kinds: Vec::new(),
            ranges: Vec::new(),
            costs: Vec::new(),
            row_names: Names::default(),
            row_ranges: Vec::new(),
            row_starts: vec![0],
            columns: Vec::new(),
            coefficients: Vec::new(),
        }
    }

    /// Adds a real variable.
    pub fn continuous(&mut self, name: &str, lower: f64, upper: f64) -> Result<Variable, ModelError> {
        self.variable(name, Kind::Continuous, lower, upper)
    }

    /// Adds a whole-number variable.
    pub fn integer(&mut self, name: &str, lower: f64, upper: f64) -> Result<Variable, ModelError> {
        self.variable(name, Kind::Integer, lower, upper)
    }

    /// Adds a variable that is 0 or 1.
    pub fn binary(&mut self, name: &str) -> Result<Variable, ModelError> {
        self.variable(name, Kind::Integer, 0.0, 1.0)
    }

    /// Adds a variable of either kind.
    pub fn variable(
        &mut self,
        name: &str,
        kind: Kind,
        lower: f64,
        upper: f64,
    ) -> Result<Variable, ModelError> {
        let range = Range::new(Item::Variable, name, lower, upper)?;
        let index = self.names.add(Item::Variable, name)?;
        self.kinds.push(kind);
        self.ranges.push(range);
        self.costs.push(0.0);
        Ok(Variable(index))
    }

    /// Sets the objective coefficient of one variable.
    pub fn set_cost(&mut self, variable: Variable, cost: f64) -> Result<(), ModelError> {
        self.known(variable, || "objective".into())?;
        finite(cost, || format!("objective coefficient of {}", self.names.name(variable.index())))?;
        self.costs[variable.index()] = cost;
        Ok(())
    }

    /// Sets the constant part of the objective.
    pub fn set_offset(&mut self, offset: f64) -> Result<(), ModelError> {
        finite(offset, || "objective offset".into())?;
        self.offset = offset;
        Ok(())
    }

    /// Sets which way the objective is better.
    pub fn set_sense(&mut self, sense: Sense) {
        self.sense = sense;
    }

    /// Names the model; whitespace becomes `_`, as file formats demand.
    pub fn set_name(&mut self, name: &str) {
        let fits = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
        self.name = name.chars().take(crate::names::LONGEST_NAME).map(fits).collect();
    }

    /// Adds `lower <= sum of terms <= upper`. A variable may occur several times: coefficients add up.
    pub fn row(
        &mut self,
        name: &str,
        lower: f64,
        upper: f64,
        terms: impl IntoIterator<Item = (Variable, f64)>,
    ) -> Result<Row, ModelError> {
        let range = Range::new(Item::Row, name, lower, upper)?;
        let start = self.columns.len();
        let added = self.push_terms(name, terms).and_then(|()| self.row_names.add(Item::Row, name));
        let index = match added {
            Ok(index) => index,
            Err(error) => {
                self.columns.truncate(start);
                self.coefficients.truncate(start);
                return Err(error);
            }
        };
        self.row_ranges.push(range);
        self.row_starts.push(self.columns.len());
        Ok(Row(index))
    }

    /// Appends one row's terms, sorted by variable, merged, without zeros.
    fn push_terms(
        &mut self,
        name: &str,
        terms: impl IntoIterator<Item = (Variable, f64)>,
    ) -> Result<(), ModelError> {
        let start = self.columns.len();
        let mut is_sorted = true;
        for (variable, coefficient) in terms {
            self.known(variable, || format!("row {name}"))?;
            finite(coefficient, || {
                format!("row {name}, coefficient of {}", self.names.name(variable.index()))
            })?;
            if coefficient == 0.0 {
                continue;
            }
            is_sorted &= self.columns[start..].last().is_none_or(|&last| last < variable.0);
            self.columns.push(variable.0);
            self.coefficients.push(coefficient);
        }
        if !is_sorted {
            self.merge_terms(start, name)?;
        }
        if self.columns.len() > MOST {
            return Err(ModelError::TooLarge { what: "terms", limit: MOST });
        }
        Ok(())
    }

    fn merge_terms(&mut self, start: usize, name: &str) -> Result<(), ModelError> {
        let coefficients = self.coefficients.drain(start..);
        let mut terms: Vec<(u32, f64)> = self.columns.drain(start..).zip(coefficients).collect();
        terms.sort_by_key(|&(column, _)| column);
        terms.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        for (column, coefficient) in terms {
            finite(coefficient, || {
                format!("row {name}, coefficient of {}", self.names.name(column as usize))
            })?;
            if coefficient != 0.0 {
                self.columns.push(column);
                self.coefficients.push(coefficient);
            }
        }
        Ok(())
    }

    fn known(&self, variable: Variable, location: impl Fn() -> String) -> Result<(), ModelError> {
        let (index, n_variables) = (variable.index(), self.costs.len());
        if index < n_variables {
            Ok(())
        } else {
            Err(ModelError::UnknownVariable { location: location(), index, n_variables })
        }
    }
}

/// Reading a model.
impl Model {
    /// The model's own name, possibly empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which way the objective is better.
    pub fn sense(&self) -> Sense {
        self.sense
    }

    /// The constant part of the objective.
    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// How many variables there are.
    pub fn n_variables(&self) -> usize {
        self.costs.len()
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.row_ranges.len()
    }

    /// How many coefficients of rows are not zero.
    pub fn n_terms(&self) -> usize {
        self.columns.len()
    }

    /// How many variables are whole numbers.
    pub fn n_integers(&self) -> usize {
        self.kinds.iter().filter(|&&kind| kind == Kind::Integer).count()
    }

    /// All variables, in order.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = Variable> + use<> {
        (0..self.costs.len() as u32).map(Variable)
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + use<> {
        (0..self.row_ranges.len() as u32).map(Row)
    }

    /// A variable's name.
    pub fn variable_name(&self, variable: Variable) -> &str {
        self.names.name(variable.index())
    }

    /// A variable's kind.
    pub fn kind(&self, variable: Variable) -> Kind {
        self.kinds[variable.index()]
    }

    /// A variable's bounds.
    pub fn range(&self, variable: Variable) -> Range {
        self.ranges[variable.index()]
    }

    /// A variable's objective coefficient.
    pub fn cost(&self, variable: Variable) -> f64 {
        self.costs[variable.index()]
    }

    /// A row's name.
    pub fn row_name(&self, row: Row) -> &str {
        self.row_names.name(row.index())
    }

    /// A row's range.
    pub fn row_range(&self, row: Row) -> Range {
        self.row_ranges[row.index()]
    }

    /// A row's terms, by rising variable.
    pub fn terms(&self, row: Row) -> impl ExactSizeIterator<Item = (Variable, f64)> + '_ {
        let span = self.row_starts[row.index()]..self.row_starts[row.index() + 1];
        self.columns[span.clone()].iter().map(|&c| Variable(c)).zip(self.coefficients[span].iter().copied())
    }

    /// The variable of that name.
    pub fn find_variable(&self, name: &str) -> Option<Variable> {
        self.names.position(name).map(Variable)
    }

    /// The row of that name.
    pub fn find_row(&self, name: &str) -> Option<Row> {
        self.row_names.position(name).map(Row)
    }

    /// The objective at these values, offset included. Missing values count as 0.
    pub fn objective_at(&self, values: &[f64]) -> f64 {
        self.offset + self.costs.iter().zip(values).map(|(cost, value)| cost * value).sum::<f64>()
    }

    /// The matrix by columns: for each variable its rows and coefficients, rows rising.
    pub(crate) fn by_column(&self) -> Columns {
        let mut starts = vec![0_usize; self.n_variables() + 1];
        for &column in &self.columns {
            starts[column as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![(Row(0), 0.0); self.columns.len()];
        for row in self.rows() {
            for (variable, coefficient) in self.terms(row) {
                entries[next[variable.index()]] = (row, coefficient);
                next[variable.index()] += 1;
            }
        }
        Columns { starts, entries }
    }
}

/// The matrix of a model by columns.
pub(crate) struct Columns {
    starts: Vec<usize>,
    entries: Vec<(Row, f64)>,
}

impl Columns {
    /// The rows a variable occurs in.
    pub(crate) fn of(&self, variable: Variable) -> &[(Row, f64)] {
        &self.entries[self.starts[variable.index()]..self.starts[variable.index() + 1]]
    }
}
