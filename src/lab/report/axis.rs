//! Axes with ticks at round numbers and at common lengths of time.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use super::units::{TimeUnit, with_thousands};

/// One axis: what it shows, from where to where, and where it has labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    lo: f64,
    hi: f64,
    is_log: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to at least `largest`, ending at a tick.
    pub fn from_zero(label: impl Into<String>, largest: f64) -> Self {
        let step = round_step(largest.max(1e-9) / 5.0);
        let n = (largest / step).ceil().max(1.0);
        Self::linear(label, 0.0, n * step, step)
    }

    /// Fractions shown as percentages.
    pub fn percent(label: impl Into<String>) -> Self {
        let ticks = (0..=5).map(|i| (f64::from(i) / 5.0, format!("{}", i * 20))).collect();
        Axis { label: label.into(), lo: 0.0, hi: 1.0, is_log: false, ticks }
    }

    /// Time in seconds, shown in the unit that suits its length.
    pub fn time(label: &str, from_s: f64, to_s: f64) -> Self {
        let to_s = if to_s > from_s { to_s } else { from_s + 1.0 };
        let unit = TimeUnit::for_axis(to_s - from_s);
        let step = round_step((to_s - from_s) / unit.seconds / 6.0);
        let mut axis = Self::linear(
            format!("{label} ({})", unit.sign),
            from_s / unit.seconds,
            to_s / unit.seconds,
            step,
        );
        axis.lo = from_s;
        axis.hi = to_s;
        axis.ticks.iter_mut().for_each(|tick| tick.0 *= unit.seconds);
        axis
    }

    /// Lengths of time in seconds on a logarithmic scale, labelled `1 min`, `10 h`.
    pub fn log_time(label: impl Into<String>, shortest_s: f64, longest_s: f64) -> Self {
        let lo = shortest_s.max(1e-3);
        let hi = longest_s.max(lo * 1.01);
        let within = |candidates: &[(f64, &str)]| -> Vec<(f64, String)> {
            let fits = candidates.iter().filter(|(s, _)| (lo..=hi).contains(s));
            fits.map(|(s, text)| (*s, (*text).to_owned())).collect()
        };
        let coarse = within(&COARSE_TIMES);
        let ticks = if coarse.len() >= 3 { coarse } else { within(&FINE_TIMES) };
        Axis { label: label.into(), lo, hi, is_log: true, ticks }
    }

    /// Names in a column, each in a band of height 1; the first is on top.
    pub fn names(names: &[String]) -> Self {
        let n = names.len();
        let ticks =
            names.iter().enumerate().map(|(at, name)| ((n - at) as f64 - 0.5, name.clone())).collect();
        Axis { label: String::new(), lo: 0.0, hi: n as f64, is_log: false, ticks }
    }

    /// Exactly these values, labelled as they are.
    pub fn at_values(label: impl Into<String>, values: &[f64]) -> Self {
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let margin = (hi - lo).max(1e-9) * 0.03;
        let ticks = values.iter().map(|v| (*v, v.to_string())).collect();
        Axis { label: label.into(), lo: lo - margin, hi: hi + margin, is_log: false, ticks }
    }

    fn linear(label: impl Into<String>, lo: f64, hi: f64, step: f64) -> Self {
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let text = |v: f64| if decimals == 0 { with_thousands(v) } else { format!("{v:.decimals$}") };
        let first = (lo / step - 1e-9).ceil() as i64;
        let last = (hi / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|i| i as f64 * step).map(|v| (v, text(v))).collect();
        Axis { label: label.into(), lo, hi, is_log: false, ticks }
    }

    /// Where a value lies on the axis: 0 at its beginning, 1 at its end.
    pub fn place(&self, value: f64) -> f64 {
        if self.is_log {
            (value.max(self.lo) / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        }
    }

    /// The text at a tick, nothing elsewhere.
    pub(super) fn tick_label(&self, value: f64) -> String {
        self.ticks.iter().find(|tick| tick.0 == value).map(|tick| tick.1.clone()).unwrap_or_default()
    }

    pub(super) fn tick_labels(&self) -> impl Iterator<Item = &str> {
        self.ticks.iter().map(|tick| tick.1.as_str())
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.place(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|tick| tick.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.lo..self.hi
    }
}

/// The nearest of 1, 2, 5 times a power of ten that is not smaller.
fn round_step(at_least: f64) -> f64 {
    let power = 10_f64.powf(at_least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= at_least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

const COARSE_TIMES: [(f64, &str); 11] = [
    (1e-3, "1 ms"),
    (1e-2, "10 ms"),
    (1e-1, "0.1 s"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3_600.0, "1 h"),
    (36_000.0, "10 h"),
    (360_000.0, "100 h"),
    (3_600_000.0, "1000 h"),
];

const FINE_TIMES: [(f64, &str); 20] = [
    (1.0, "1 s"),
    (2.0, "2 s"),
    (5.0, "5 s"),
    (10.0, "10 s"),
    (20.0, "20 s"),
    (40.0, "40 s"),
    (60.0, "1 min"),
    (120.0, "2 min"),
    (300.0, "5 min"),
    (600.0, "10 min"),
    (1_200.0, "20 min"),
    (2_400.0, "40 min"),
    (3_600.0, "1 h"),
    (7_200.0, "2 h"),
    (18_000.0, "5 h"),
    (36_000.0, "10 h"),
    (72_000.0, "20 h"),
    (180_000.0, "50 h"),
    (360_000.0, "100 h"),
    (720_000.0, "200 h"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.tick_labels().collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        assert_eq!(labels(&Axis::from_zero("GPUs", 128.0)), ["0", "50", "100", "150"]);
        assert_eq!(labels(&Axis::from_zero("x", 0.9)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&Axis::from_zero("x", 0.0)).len(), 2, "nothing still has an axis");
    }

    #[test]
    fn long_times_are_told_in_hours() {
        let axis = Axis::time("time", 3_600.0, 13.0 * 3_600.0);
        assert_eq!((axis.label.as_str(), labels(&axis)), ("time (h)", vec!["2", "4", "6", "8", "10", "12"]));
        assert_eq!(axis.place(3_600.0), 0.0);
    }

    #[test]
    fn a_logarithmic_axis_has_labels_on_narrow_and_wide_ranges() {
        assert_eq!(labels(&Axis::log_time("t", 5.0, 7_200.0)), ["10 s", "1 min", "10 min", "1 h"]);
        assert_eq!(labels(&Axis::log_time("t", 50.0, 150.0)), ["1 min", "2 min"]);
        let axis = Axis::log_time("t", 1.0, 10_000.0);
        assert!((axis.place(100.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn names_stand_in_the_middle_of_their_bands_from_the_top() {
        let axis = Axis::names(&["a".into(), "b".into()]);
        assert_eq!((axis.tick_label(1.5), axis.tick_label(0.5)), ("a".into(), "b".into()));
    }
}
