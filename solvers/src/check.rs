//! The re-check: whether values satisfy a model, by our own arithmetic and not the solver's.
//!
//! Integers must be whole and inside their bounds exactly. A row of whole numbers is checked exactly; any
//! other row, and the bounds of continuous variables, within 1e-9 of their scale.

use crate::model::{Kind, Model, Row};
use crate::range::Range;

/// How far a continuous quantity may be off, relative to its scale.
pub const TOLERANCE: f64 = 1e-9;

/// Integers beyond this are not exact in an `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The first thing wrong with a set of values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Violation {
    /// Not one value per variable.
    #[error("{found} values for {expected} variables")]
    Count {
        /// Values given.
        found: usize,
        /// Variables in the model.
        expected: usize,
    },
    /// A whole-number variable that is not whole, or any that is not finite.
    #[error("variable {name} is {value}, not a {wanted} number")]
    Kind {
        /// The variable's name in the model.
        name: String,
        /// The value it has in the answer.
        value: f64,
        /// Whole or finite.
        wanted: &'static str,
    },
    /// A variable outside its bounds.
    #[error("variable {name} is {value}, outside {lower} to {upper}")]
    Bounds {
        /// The variable's name in the model.
        name: String,
        /// The value it has in the answer.
        value: f64,
        /// Its lower bound.
        lower: f64,
        /// Its upper bound.
        upper: f64,
    },
    /// A row outside its range.
    #[error("row {name} is {activity}, outside {lower} to {upper} by more than {tolerance}")]
    Row {
        /// The row's name in the model.
        name: String,
        /// The sum of its terms.
        activity: f64,
        /// Its lower bound.
        lower: f64,
        /// Its upper bound.
        upper: f64,
        /// What would have been forgiven.
        tolerance: f64,
    },
}

/// Checks values against a model and gives the objective they reach.
pub fn check(model: &Model, values: &[f64]) -> Result<f64, Violation> {
    if values.len() != model.n_variables() {
        return Err(Violation::Count { found: values.len(), expected: model.n_variables() });
    }
    for variable in model.variables() {
        let value = values[variable.index()];
        let name = || model.variable_name(variable).to_owned();
        if !value.is_finite() {
            return Err(Violation::Kind { name: name(), value, wanted: "finite" });
        }
        let is_integer = model.kind(variable) == Kind::Integer;
        if is_integer && value.fract() != 0.0 {
            return Err(Violation::Kind { name: name(), value, wanted: "whole" });
        }
        let Range { lower, upper } = model.range(variable);
        let forgiven = |bound: f64| if is_integer { 0.0 } else { TOLERANCE * bound.abs().max(1.0) };
        if value < lower - forgiven(lower) || value > upper + forgiven(upper) {
            return Err(Violation::Bounds { name: name(), value, lower, upper });
        }
    }
    model.rows().try_for_each(|row| check_row(model, row, values))?;
    Ok(model.objective_at(values))
}

fn check_row(model: &Model, row: Row, values: &[f64]) -> Result<(), Violation> {
    let Range { lower, upper } = model.row_range(row);
    let mut activity = 0.0;
    let mut largest = 1.0_f64;
    let mut is_exact = true;
    for (variable, coefficient) in model.terms(row) {
        let term = coefficient * values[variable.index()];
        activity += term;
        largest = largest.max(term.abs());
        is_exact &= coefficient.fract() == 0.0 && model.kind(variable) == Kind::Integer;
    }
    is_exact &= largest * (model.terms(row).len() as f64) < EXACT;
    let tolerance = |bound: f64| {
        if is_exact || !bound.is_finite() { 0.0 } else { TOLERANCE * largest.max(bound.abs()) }
    };
    if activity >= lower - tolerance(lower) && activity <= upper + tolerance(upper) {
        return Ok(());
    }
    let broken = if activity < lower { lower } else { upper };
    let name = model.row_name(row).to_owned();
    Err(Violation::Row { name, activity, lower, upper, tolerance: tolerance(broken) })
}

/// Removes a solver's dust before the check: integers to the nearest whole number, continuous values that
/// stick out of their bounds by less than a solver's tolerance back onto the bound.
pub(crate) fn without_dust(model: &Model, mut values: Vec<f64>) -> Vec<f64> {
    const INTEGER_DUST: f64 = 1e-5;
    const BOUND_DUST: f64 = 1e-6;
    for variable in model.variables() {
        let Some(value) = values.get_mut(variable.index()) else { break };
        let Range { lower, upper } = model.range(variable);
        if model.kind(variable) == Kind::Integer {
            if (*value - value.round()).abs() <= INTEGER_DUST {
                // adding zero turns -0 into 0
                *value = value.round() + 0.0;
            }
        } else if *value < lower && lower - *value <= BOUND_DUST * lower.abs().max(1.0) {
            *value = lower;
        } else if *value > upper && *value - upper <= BOUND_DUST * upper.abs().max(1.0) {
            *value = upper;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sense;

    fn knapsack() -> Model {
        let mut model = Model::new(Sense::Maximize);
        let a = model.binary("a").unwrap();
        let b = model.integer("b", 0.0, 4.0).unwrap();
        let c = model.continuous("c", 0.0, 1.0).unwrap();
        model.row("whole", f64::NEG_INFINITY, 7.0, [(a, 3.0), (b, 2.0)]).unwrap();
        model.row("mixed", 0.5, 2.0, [(a, 1.0), (c, 1.0)]).unwrap();
        model.set_cost(b, 2.0).unwrap();
        model
    }

    #[test]
    fn feasible_values_give_their_objective() {
        assert_eq!(check(&knapsack(), &[1.0, 2.0, 0.25]), Ok(4.0));
    }

    #[test]
    fn a_nearly_whole_integer_is_not_whole() {
        let error = check(&knapsack(), &[1.0, 2.0 - 1e-12, 0.0]).unwrap_err();
        assert!(matches!(error, Violation::Kind { wanted: "whole", .. }), "{error}");
    }

    #[test]
    fn a_whole_row_is_checked_exactly() {
        let error = check(&knapsack(), &[1.0, 3.0, 0.0]).unwrap_err();
        assert_eq!(error.to_string(), "row whole is 9, outside -inf to 7 by more than 0");
    }

    #[test]
    fn continuous_values_are_forgiven_a_billionth() {
        assert!(check(&knapsack(), &[0.0, 0.0, 0.5 - 1e-10]).is_ok());
        assert!(check(&knapsack(), &[0.0, 0.0, 0.5 - 1e-8]).is_err());
        assert!(check(&knapsack(), &[0.0, 0.0, 1.0 + 1e-8]).is_err());
    }

    #[test]
    fn wrong_count_and_nan_are_named() {
        assert_eq!(check(&knapsack(), &[]).unwrap_err().to_string(), "0 values for 3 variables");
        let error = check(&knapsack(), &[0.0, f64::NAN, 0.0]).unwrap_err();
        assert_eq!(error.to_string(), "variable b is NaN, not a finite number");
    }

    #[test]
    fn dust_goes_and_real_fractions_stay() {
        let values = without_dust(&knapsack(), vec![-1e-9, 1.5, 1.0 + 1e-8]);
        assert_eq!(values, [0.0, 1.5, 1.0]);
        assert!(values[0].is_sign_positive());
    }
}
