//! Axes with ticks at round numbers and at common lengths of time.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use super::units::{TimeUnit, plain, with_thousands};

/// One axis: what it shows, from where to where, and where it has labels.
///
/// Ticks are what a reader would choose if there were room for all; what is drawn leaves out those that would touch.
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
        Self::in_steps(label, largest, round_step(largest.max(1e-9) / 5.0))
    }

    /// The same for things that come whole: no tick lies between two of them.
    pub fn counts(label: impl Into<String>, largest: f64) -> Self {
        Self::in_steps(label, largest, round_step(largest.max(1e-9) / 5.0).max(1.0))
    }

    fn in_steps(label: impl Into<String>, largest: f64, step: f64) -> Self {
        let end = (largest / step).ceil().max(1.0) * step;
        // A line on the upper edge would be cut.
        Self::linear(label, 0.0, end.max(largest * EDGE), step)
    }

    /// From near the least to near the largest value, so that lines use the room: from zero where the least is small
    /// compared with the largest, on a logarithmic scale where they are far apart. Not for bars, whose length is read.
    pub fn spanning(label: impl Into<String>, least: f64, largest: f64) -> Self {
        if least > 0.0 && largest >= FAR_APART * least {
            return Self::log(label, least, largest);
        }
        // Around a constant there is nothing to enlarge.
        let is_constant = largest - least <= 1e-9 * largest;
        if is_constant || least <= NEAR_ZERO * largest || largest <= 0.0 || !least.is_finite() {
            return Self::from_zero(label, largest);
        }
        let margin = ((largest - least) * 0.08).max(largest * 1e-3);
        let step = round_step((largest - least + 2.0 * margin) / 5.0);
        let lo = ((least - margin) / step).floor() * step;
        let hi = ((largest + margin) / step).ceil() * step;
        Self::linear(label, lo.max(0.0), hi, step)
    }

    /// Fractions as percentages, only as far around them as lines need.
    pub fn spanning_percent(label: impl Into<String>, least: f64, largest: f64) -> Self {
        if least <= NEAR_ZERO * largest || largest <= 0.0 {
            return Self::percent(label);
        }
        let axis = Self::spanning(label, least * 100.0, (largest * 100.0).min(100.0));
        let ticks = axis.ticks.into_iter().filter(|tick| tick.0 <= 100.0 + 1e-9);
        let ticks: Vec<(f64, String)> = ticks.map(|(value, text)| (value / 100.0, text)).collect();
        Axis { lo: axis.lo / 100.0, hi: (axis.hi / 100.0).min(EDGE), ticks, ..axis }
    }

    /// Ratios around 1, which is always on it.
    pub fn ratios(label: impl Into<String>, least: f64, largest: f64) -> Self {
        let (least, largest) = (least.min(1.0), largest.max(1.0));
        let margin = ((largest - least) * 0.08).max(0.01);
        let step = round_step((largest - least + 2.0 * margin) / 5.0);
        let lo = ((least - margin) / step).floor() * step;
        Self::linear(label, lo.max(0.0), ((largest + margin) / step).ceil() * step, step)
    }

    /// Numbers on a logarithmic scale: ticks at powers of ten, and at 2 and 5 between them where there are few.
    fn log(label: impl Into<String>, least: f64, largest: f64) -> Self {
        let (lo, hi) = (least / 1.15, largest * 1.15);
        let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
        let at = |factors: &'static [f64]| -> Vec<(f64, String)> {
            let all = (first..=last).flat_map(|power| factors.iter().map(move |f| f * 10_f64.powi(power)));
            all.filter(|v| (lo..=hi).contains(v)).map(|v| (v, grouped(v))).collect()
        };
        let ticks = Some(at(&[1.0])).filter(|ticks| ticks.len() >= 4).unwrap_or_else(|| at(&[1.0, 2.0, 5.0]));
        Axis { label: label.into(), lo, hi, is_log: true, ticks }
    }

    /// Whether the axis begins above zero, or is not linear, which a reader of lines must be told.
    pub fn note(&self) -> &'static str {
        match (self.is_log, self.lo > 0.0) {
            (true, _) => " The side axis is logarithmic.",
            (false, true) => " The side axis does not begin at 0.",
            (false, false) => "",
        }
    }

    /// Fractions shown as percentages.
    pub fn percent(label: impl Into<String>) -> Self {
        let ticks = (0..=5).map(|i| (f64::from(i) / 5.0, format!("{}", i * 20))).collect();
        Axis { label: label.into(), lo: 0.0, hi: EDGE, is_log: false, ticks }
    }

    /// Time in seconds, shown in the unit that suits its length.
    pub fn time(label: &str, from_s: f64, to_s: f64) -> Self {
        Self::time_in(label, from_s, to_s, TimeUnit::for_axis((to_s - from_s).max(1.0)))
    }

    /// Time in seconds, shown in the unit of the tables next to it.
    pub(crate) fn time_in(label: &str, from_s: f64, to_s: f64, unit: TimeUnit) -> Self {
        let to_s = if to_s > from_s { to_s } else { from_s + 1.0 };
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

    /// Values that something was tried at. A few are labelled as they are; many get round numbers, on a logarithmic scale
    /// where the largest is far from the least.
    pub fn at_values(label: impl Into<String>, values: &[f64]) -> Self {
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_log = lo > 0.0 && hi >= FAR_APART * lo && values.len() > 3;
        let ticks: Vec<(f64, String)> = values.iter().map(|v| (*v, grouped(*v))).collect();
        let margin = (hi - lo).max(1e-9) * 0.03;
        let axis = match (is_log, values.len() <= MAX_VALUES) {
            (true, _) => Self::log(label, lo, hi),
            (false, true) => {
                return Axis { label: label.into(), lo: lo - margin, hi: hi + margin, is_log, ticks };
            }
            (false, false) => Self::linear(label, lo - margin, hi + margin, round_step((hi - lo) / 6.0)),
        };
        if values.len() <= MAX_VALUES { Axis { ticks, ..axis } } else { axis }
    }

    /// Names next to each other, each in the middle of a band of width 1; the first begins at 0.
    pub fn named(label: impl Into<String>, names: &[&str]) -> Self {
        let ticks =
            names.iter().enumerate().map(|(at, name)| (at as f64 + 0.5, (*name).to_owned())).collect();
        Axis { label: label.into(), lo: 0.0, hi: names.len() as f64, is_log: false, ticks }
    }

    fn linear(label: impl Into<String>, lo: f64, hi: f64, step: f64) -> Self {
        let decimals = (-(step * (1.0 + 1e-9)).log10().floor()).max(0.0) as usize;
        let text = |v: f64| if decimals == 0 { with_thousands(v) } else { format!("{v:.decimals$}") };
        let first = (lo / step - 1e-9).ceil() as i64;
        let last = (hi / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|i| i as f64 * step).map(|v| (v, text(v))).collect();
        Axis { label: label.into(), lo, hi, is_log: false, ticks }
    }

    /// Its first and its last value.
    pub fn ends(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// Whether its scale is logarithmic.
    pub fn is_log(&self) -> bool {
        self.is_log
    }

    /// Its ticks: where each is, and what is written there.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// Where a value lies on the axis: 0 at its beginning, 1 at its end.
    pub fn place(&self, value: f64) -> f64 {
        if self.is_log {
            (value.max(self.lo) / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        }
    }

    /// The nearest value that is on the axis.
    pub(super) fn within(&self, value: f64) -> f64 {
        value.clamp(self.lo, self.hi)
    }

    /// The end of the axis.
    pub(super) fn end(&self) -> f64 {
        self.hi
    }

    /// The text at a tick, nothing elsewhere.
    pub(super) fn tick_label(&self, value: f64) -> String {
        self.ticks.iter().find(|tick| tick.0 == value).map(|tick| tick.1.clone()).unwrap_or_default()
    }

    pub(super) fn tick_labels(&self) -> impl Iterator<Item = &str> {
        self.ticks.iter().map(|tick| tick.1.as_str())
    }

    /// The same axis with only those ticks whose labels do not touch: evenly spaced ones every second, third, … of them,
    /// others as they fit from the beginning. `extent` is a label's half length in parts of the axis.
    pub(super) fn without_collisions(&self, extent: impl Fn(&str) -> f64) -> Self {
        let placed: Vec<(f64, f64)> =
            self.ticks.iter().map(|(value, text)| (self.place(*value), extent(text))).collect();
        let is_clear = |kept: &[usize]| {
            kept.windows(2).all(|w| {
                let ((a, a_half), (b, b_half)) = (placed[w[0]], placed[w[1]]);
                (b - a).abs() >= a_half + b_half
            })
        };
        let every = |stride: usize| (0..placed.len()).step_by(stride).collect::<Vec<usize>>();
        let gaps: Vec<f64> = placed.windows(2).map(|w| w[1].0 - w[0].0).collect();
        let is_even = gaps.iter().all(|gap| (gap - gaps[0]).abs() < 1e-6);
        let kept = if is_even {
            let strides = (1..=placed.len().max(1)).map(every);
            strides.into_iter().find(|kept| is_clear(kept)).unwrap_or_default()
        } else {
            let mut kept: Vec<usize> = Vec::new();
            for at in 0..placed.len() {
                if kept.last().is_none_or(|last| is_clear(&[*last, at])) {
                    kept.push(at);
                }
            }
            kept
        };
        Axis { ticks: kept.into_iter().map(|at| self.ticks[at].clone()).collect(), ..self.clone() }
    }

    /// The same axis with its labels cut to what `fits`.
    pub(super) fn with_labels(&self, fits: impl Fn(&str) -> String) -> Self {
        let ticks = self.ticks.iter().map(|(value, text)| (*value, fits(text))).collect();
        Axis { ticks, ..self.clone() }
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

/// A number as a label.
fn grouped(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() >= 1_000.0 { with_thousands(value) } else { plain(value) }
}

/// How far an axis goes beyond a value at its upper end, so that a mark there is not cut.
const EDGE: f64 = 1.02;
/// More values than this are not labelled one by one.
const MAX_VALUES: usize = 10;
/// Where the least is at most this part of the largest, an axis begins at zero.
const NEAR_ZERO: f64 = 0.4;
/// Where the largest is at least this many times the least, a scale is logarithmic.
const FAR_APART: f64 = 40.0;

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
    (3_600_000.0, "1,000 h"),
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
        assert_eq!(labels(&Axis::counts("GPUs", 1.05)), ["0", "1", "2"], "half a GPU is no tick");
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
    fn lines_that_are_close_get_an_axis_that_shows_how_they_differ() {
        let axis = Axis::spanning("JCT (h)", 20.3, 22.9);
        assert_eq!(labels(&axis), ["20", "21", "22", "23", "24"].to_vec());
        assert_eq!(axis.note(), " The side axis does not begin at 0.");
        assert_eq!(labels(&Axis::spanning("x", 1.0, 10.0))[0], "0");
        assert_eq!(labels(&Axis::spanning("x", 1.0, 1_000.0)), ["1", "10", "100", "1,000"]);
        assert_eq!(labels(&Axis::spanning("x", 2.58, 2.58))[0], "0", "a constant is not enlarged");
        assert_eq!(labels(&Axis::ratios("x", 0.94, 0.98)), ["0.92", "0.94", "0.96", "0.98", "1.00", "1.02"]);
    }

    #[test]
    fn labels_never_touch_however_many_values_there_are() {
        for n in [2, 5, 30, 1_000] {
            let values: Vec<f64> = (1..=n).map(|i| f64::from(i) * 0.1).collect();
            for axis in [Axis::at_values("x", &values), Axis::linear("x", 0.0, f64::from(n), 1.0)] {
                let extent = |text: &str| text.len() as f64 * 0.01;
                let thin = axis.without_collisions(extent);
                assert!(thin.ticks.len() >= 2, "{n} values: {:?}", thin.ticks);
                for pair in thin.ticks.windows(2) {
                    let apart = thin.place(pair[1].0) - thin.place(pair[0].0);
                    assert!(apart >= extent(&pair[0].1) + extent(&pair[1].1), "{n} values: {pair:?}");
                }
            }
        }
    }

    #[test]
    fn names_stand_in_the_middle_of_their_bands_from_the_top() {
        let axis = Axis::names(&["a".into(), "b".into()]);
        assert_eq!((axis.tick_label(1.5), axis.tick_label(0.5)), ("a".into(), "b".into()));
    }
}
