//! Ranges of variables and rows, and the rule which numbers a model may hold.

use crate::error::{Item, ModelError};

/// Bounds of this size and beyond mean "none", as in every MILP file format.
pub const INFINITE: f64 = 1e20;

/// From a lower to an upper bound, infinities included; never empty, never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Smallest value allowed, or minus infinity.
    pub lower: f64,
    /// Largest value allowed, or infinity.
    pub upper: f64,
}

impl Range {
    /// Checks and normalises a pair of bounds.
    pub(crate) fn new(item: Item, name: &str, lower: f64, upper: f64) -> Result<Self, ModelError> {
        let not_a_number = |bound, value| ModelError::NotANumber {
            location: format!("{bound} bound of {item} {name}"),
            value,
        };
        if lower.is_nan() || lower >= INFINITE {
            return Err(not_a_number("lower", lower));
        }
        if upper.is_nan() || upper <= -INFINITE {
            return Err(not_a_number("upper", upper));
        }
        let lower = if lower <= -INFINITE { f64::NEG_INFINITY } else { lower };
        let upper = if upper >= INFINITE { f64::INFINITY } else { upper };
        if lower > upper {
            return Err(ModelError::EmptyRange { item, name: name.into(), lower, upper });
        }
        Ok(Range { lower, upper })
    }
}

/// Refuses NaN, infinities and numbers that file formats read as infinity.
pub(crate) fn finite(value: f64, location: impl Fn() -> String) -> Result<(), ModelError> {
    if value.is_finite() && value.abs() < INFINITE {
        Ok(())
    } else {
        Err(ModelError::NotANumber { location: location(), value })
    }
}
