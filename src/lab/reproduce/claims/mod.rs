//! Claims of a figure, each with a name and a predicate over all rows of its table.
//!
//! ```text
//! rows ─▶ Pairing (which policies are compared, at the same settings) ─▶ findings: how far each supports the claim
//!      ─▶ settle ─▶ Verdict: holds, does not hold, tie or not comparable, and the rows that decided it
//! ```
//!
//! A predicate sees the rows of one column at a time: published numbers, the original's rules and the shipped policies are
//! judged apart.

mod judge;
mod pairing;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::quantity::Quantity;

pub use pairing::Pairing;

/// Differences of less than this part are none: a tie.
pub const LEVEL: f64 = 0.005;

/// A statement about a figure, by its paper or by this project.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Its name, one among those of its figure.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Who says it.
    pub by: Claimant,
    /// Which rows decide it.
    pub scope: Scope,
    /// What must be so in the rows.
    pub test: Test,
}

/// Which rows decide a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of its figure.
    Figure,
    /// Those of all figures of the paper that have the claim: "up to 3.4x" is said of all experiments together. A figure
    /// alone can show that it holds, and not that it does not.
    Paper,
}

/// Who makes a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// The paper, in words or by its numbers.
    Paper,
    /// This project.
    Rota,
}

/// A predicate over rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// Clearly better in every row; level anywhere is a tie.
    Ahead(Pairing, Quantity),
    /// Worse in no row; level everywhere is a tie.
    NeverBehind(Pairing, Quantity),
    /// Worse by no more than this part in every row.
    Within(Pairing, Quantity, f64),
    /// Better by at least this factor in every row.
    ByFactor(Pairing, Quantity, f64),
    /// Better by at least this factor in some row: "up to".
    UpTo(Pairing, Quantity, f64),
    /// Clearly better wherever an axis has its last value.
    AheadAtEnd(Pairing, Quantity, AlongAxis),
    /// Better by more at the end of an axis than at its beginning, at the same other settings.
    LeadGrows(Pairing, Quantity, AlongAxis),
    /// None at all, for these policies, in every row.
    None(&'static [&'static str], Quantity),
    /// Every published number is met within this part of it.
    Agrees(&'static [Quantity], f64),
}

/// An axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlongAxis {
    /// The name of the setting that grows along it.
    pub name: &'static str,
    /// Its values in order, where they are no numbers; empty otherwise.
    pub values: &'static [&'static str],
}

/// How a claim was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is so.
    Holds,
    /// It is not.
    DoesNotHold,
    /// Neither is clearly better.
    Tie,
    /// There are no rows that could decide it.
    NotComparable,
}

impl Outcome {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::DoesNotHold => "does not hold",
            Outcome::Tie => "tie",
            Outcome::NotComparable => "not comparable",
        }
    }
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How it was decided.
    pub outcome: Outcome,
    /// The rows that decided, in a sentence.
    pub why: String,
}

impl Verdict {
    /// Nothing to decide from, for this reason.
    pub(super) fn not_comparable(why: impl Into<String>) -> Self {
        Verdict { outcome: Outcome::NotComparable, why: why.into() }
    }
}
