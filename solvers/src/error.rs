//! What can be wrong with a model before anyone solves it: building errors, reading errors, decoding errors.
//!
//! What a *solve* can end in is not an error but a [`SolveStatus`](crate::SolveStatus).

use std::fmt;

/// Which part of a model a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A variable (a column).
    Variable,
    /// A constraint (a row).
    Row,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Item::Variable => "variable",
            Item::Row => "row",
        })
    }
}

/// A model that cannot be built as asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Two variables, or two rows, of the same name.
    #[error("{item} {name}: the name is taken")]
    DuplicateName {
        /// Variable or row.
        item: Item,
        /// The name that both have.
        name: String,
    },
    /// A name no file format could carry.
    #[error("{item} {name:?}: {why}")]
    BadName {
        /// Variable or row.
        item: Item,
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// NaN, or an infinity where only a finite number makes sense.
    #[error("{location}: {value} is not a usable number")]
    NotANumber {
        /// Which number of the model.
        location: String,
        /// NaN or an infinity.
        value: f64,
    },
    /// A lower bound above the upper one.
    #[error("{item} {name}: lower bound {lower} is above upper bound {upper}")]
    EmptyRange {
        /// Variable or row.
        item: Item,
        /// Name of the variable or row.
        name: String,
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
    },
    /// A variable of another model.
    #[error("{location}: variable number {index} does not exist, the model has {n_variables}")]
    UnknownVariable {
        /// Where it was used.
        location: String,
        /// The index used.
        index: usize,
        /// How many variables there are.
        n_variables: usize,
    },
    /// More of something than the solver can count.
    #[error("the model has more than {limit} {what}")]
    TooLarge {
        /// Variables, rows or terms.
        what: &'static str,
        /// The most there may be.
        limit: usize,
    },
    /// A name that LP text has no way to write (MPS has).
    #[error("{item} {name}: not writable as LP text, {why}")]
    NotLpName {
        /// Variable or row.
        item: Item,
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Text that is not what it should be: where, what was found, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: found {found:?}, expected {expected}")]
pub struct ReadError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found there, shortened.
    pub found: String,
    /// What should be there, or what is wrong with it.
    pub expected: String,
}

impl ReadError {
    /// An error at a location; `found` is cut to a length fit for a message.
    pub(crate) fn new(line: usize, column: usize, found: &str, expected: impl Into<String>) -> Self {
        const LONGEST: usize = 60;
        let mut shown: String = found.chars().take(LONGEST).collect();
        if shown.len() < found.len() {
            shown.push('…');
        }
        ReadError { line, column, found: shown, expected: expected.into() }
    }
}

/// A formulation fed with numbers that make no problem, or an answer that fits no formulation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FormulationError {
    /// An input out of its domain.
    #[error("{location}: {value} is not {expected}")]
    BadInput {
        /// Which input.
        location: String,
        /// Its value.
        value: f64,
        /// What it must be, in words.
        expected: &'static str,
    },
    /// Inputs that contradict each other in size.
    #[error("{what}: {found} given, {expected} needed")]
    Shape {
        /// What was counted.
        what: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// The solve gave no values to decode.
    #[error("no values to decode: the solve ended {status}")]
    NoValues {
        /// How it ended.
        status: String,
    },
    /// The model could not be built.
    #[error(transparent)]
    Model(#[from] ModelError),
}
