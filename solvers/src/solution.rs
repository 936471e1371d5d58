//! What a solve is asked and what it answers: [`Limits`], [`Solver`], [`Solution`].
//!
//! `Solver` is the seam of this crate: HiGHS is behind it, a recording can, and a process that can be
//! killed will (in the binary).

use std::fmt;
use std::time::Duration;

use crate::model::{Model, Sense};

/// When a solve may stop. Nodes and gap decide, so that answers repeat; the wall clock is an alarm.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Most branch-and-bound nodes.
    pub nodes: u64,
    /// Relative gap between objective and bound at which to stop; 0 asks for the proven optimum.
    pub gap: f64,
    /// Seed of the solver's own random choices.
    pub seed: u32,
    /// Solver threads. One thread and one seed give one answer.
    pub threads: u32,
    /// Wall clock. HiGHS can overrun it, because it does not look at the clock inside a step of its presolve.
    pub wall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { nodes: 1_000_000, gap: 0.0, seed: 0, threads: 1, wall: Duration::from_secs(60) }
    }
}

/// Where a solve begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start<'a> {
    /// Nowhere in particular.
    Cold,
    /// From one value per variable. If they are feasible, the answer is never worse than they are.
    Values(&'a [f64]),
}

/// Solves models. Ending badly is a status, never a panic.
pub trait Solver {
    /// Answers one model within limits; values given are re-checked against the model.
    fn solve(&mut self, model: &Model, limits: &Limits, start: Start<'_>) -> Solution;
}

/// How a solve ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SolveStatus {
    /// Proven optimal.
    Optimal,
    /// Feasible and within the gap asked for.
    GapReached,
    /// A limit was reached; the values are feasible.
    LimitWithIncumbent,
    /// A limit was reached before anything feasible was found.
    LimitWithout,
    /// Proven to have no feasible values.
    Infeasible,
    /// Feasible, and the objective has no end.
    Unbounded,
    /// The solver gave up, or its answer did not survive the re-check.
    Failed {
        /// Why, in words.
        reason: String,
    },
}

impl SolveStatus {
    /// One word for tables and files.
    pub fn word(&self) -> &'static str {
        match self {
            SolveStatus::Optimal => "optimal",
            SolveStatus::GapReached => "gap_reached",
            SolveStatus::LimitWithIncumbent => "limit_with_incumbent",
            SolveStatus::LimitWithout => "limit_without",
            SolveStatus::Infeasible => "infeasible",
            SolveStatus::Unbounded => "unbounded",
            SolveStatus::Failed { .. } => "failed",
        }
    }

    /// Whether the solution has values.
    pub fn has_values(&self) -> bool {
        matches!(self, SolveStatus::Optimal | SolveStatus::GapReached | SolveStatus::LimitWithIncumbent)
    }
}

impl fmt::Display for SolveStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolveStatus::Failed { reason } => write!(f, "failed: {reason}"),
            other => f.write_str(other.word()),
        }
    }
}

/// The answer to one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// How the solve ended.
    pub status: SolveStatus,
    /// The objective at `values`, computed by us; present exactly when values are.
    pub objective: Option<f64>,
    /// No feasible objective is better than this, where the solver proved one.
    pub bound: Option<f64>,
    /// Branch-and-bound nodes, where the solver counts them.
    pub nodes: Option<u64>,
    /// Wall time of the solve, model transfer and re-check included.
    pub wall: Duration,
    /// One value per variable, integers exact; empty when the status has no values.
    pub values: Vec<f64>,
}

impl Solution {
    /// An answer without values.
    pub fn without_values(status: SolveStatus, wall: Duration) -> Self {
        Solution { status, objective: None, bound: None, nodes: None, wall, values: Vec::new() }
    }

    /// A failure with its reason.
    pub fn failed(reason: impl Into<String>, wall: Duration) -> Self {
        Solution::without_values(SolveStatus::Failed { reason: reason.into() }, wall)
    }

    /// Distance between objective and bound, relative to the objective; 0 when they agree to 1e-9.
    pub fn gap(&self) -> Option<f64> {
        relative_gap(self.objective?, self.bound?)
    }

    /// A value by variable; `None` without values.
    pub fn value(&self, variable: crate::Variable) -> Option<f64> {
        self.values.get(variable.index()).copied()
    }
}

/// Relative distance of an objective from its bound; `None` when the bound says nothing.
pub(crate) fn relative_gap(objective: f64, bound: f64) -> Option<f64> {
    if !bound.is_finite() {
        return None;
    }
    let distance = (objective - bound).abs();
    if distance <= 1e-9 * objective.abs().max(1.0) {
        Some(0.0)
    } else {
        Some(distance / objective.abs().max(1e-9))
    }
}

/// Whether `first` is a better objective than `second`.
pub(crate) fn is_better(sense: Sense, first: f64, second: f64) -> bool {
    match sense {
        Sense::Minimize => first < second,
        Sense::Maximize => first > second,
    }
}
