//! Time as integers: microseconds in the trace's own time base. No clock is read here.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

const MICROS_PER_S: i64 = 1_000_000;

/// A point in time, in microseconds of the trace's time base.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Time {
    /// The beginning of the trace's time base.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const MAX: Time = Time(i64::MAX);

    /// From seconds, rounded to the nearest microsecond; saturates at the ends.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Time((seconds * MICROS_PER_S as f64).round() as i64)
    }

    /// As seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_S as f64
    }

    /// The first point at or after `self` that is a whole number of `step`s after `origin`.
    pub fn align_up(self, origin: Time, step: Span) -> Time {
        debug_assert!(step.0 > 0, "a step of {step} cannot be aligned to");
        let past = self.0 - origin.0;
        if past <= 0 {
            return origin;
        }
        Time(origin.0 + (past + step.0 - 1) / step.0 * step.0)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than anything lasts.
    pub const MAX: Span = Span(i64::MAX);

    /// Whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Span(seconds * MICROS_PER_S)
    }

    /// From seconds, rounded to the nearest microsecond; saturates at the ends.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Span((seconds * MICROS_PER_S as f64).round() as i64)
    }

    /// As seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_S as f64
    }

    /// Reads `90`, `90s`, `5m`, `1.5h`, `2d`, `250ms`: a number with a unit, seconds when none is given.
    pub fn parse(text: &str) -> Result<Self, SpanError> {
        let wrong = || SpanError { text: text.to_owned() };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let seconds = match unit.trim() {
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let micros = number * seconds * MICROS_PER_S as f64;
        if micros.is_finite() && micros < i64::MAX as f64 / 4.0 {
            Ok(Span(micros.round() as i64))
        } else {
            Err(wrong())
        }
    }
}

/// A length of time that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a length of time: write a number and a unit, as in `300s`, `5m`, `1.5h` or `2d`")]
pub struct SpanError {
    /// The text that was given.
    pub text: String,
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Mul<i64> for Span {
    type Output = Span;
    fn mul(self, times: i64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

/// Seconds with as many decimals as are needed, six at most: `300`, `0.5`, `12.000001`.
fn write_seconds(micros: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    if rest == 0 {
        return write!(f, "{sign}{whole}");
    }
    let decimals = format!("{rest:06}");
    write!(f, "{sign}{whole}.{}", decimals.trim_end_matches('0'))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.0, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_units() {
        for (text, seconds) in
            [("90", 90.0), ("5m", 300.0), ("1.5h", 5_400.0), ("2d", 172_800.0), ("250ms", 0.25)]
        {
            assert_eq!(Span::parse(text), Ok(Span::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "m", "-5m", "5 parsecs", "1e400", "nan"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_written_in_seconds_with_up_to_six_decimals() {
        assert_eq!(Time(300_000_000).to_string(), "300");
        assert_eq!(Time(500_000).to_string(), "0.5");
        assert_eq!(Time(-1).to_string(), "-0.000001");
    }

    #[test]
    fn alignment_rounds_up_to_the_next_round() {
        let round = Span::from_secs(300);
        assert_eq!(Time::from_secs_f64(301.0).align_up(Time::ZERO, round), Time::from_secs_f64(600.0));
        assert_eq!(Time::from_secs_f64(300.0).align_up(Time::ZERO, round), Time::from_secs_f64(300.0));
        assert_eq!(Time(-5).align_up(Time::ZERO, round), Time::ZERO);
    }
}
