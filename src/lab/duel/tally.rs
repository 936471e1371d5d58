//! How the ratios of many cases are spread.

use super::question::Judged;
use crate::statistics::interval;

/// Ratios that differ by less are equal.
const EQUAL: f64 = 1e-6;

/// The ratios of some cases.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Tally {
    /// Which cases: all, or a part of them.
    pub name: String,
    /// Cases that were judged.
    pub n: usize,
    /// Cases worse by more than the margin.
    pub n_beyond: usize,
    /// Cases with a ratio above 1.
    pub n_worse: usize,
    /// Cases with a ratio of 1.
    pub n_equal: usize,
    /// Cases with a ratio below 1.
    pub n_better: usize,
    /// The mean of all ratios that are finite.
    pub mean: f64,
    /// Lower end of its 95 % confidence interval.
    pub mean_low: f64,
    /// Upper end of the interval.
    pub mean_high: f64,
    /// Largest ratio; infinite where jobs never end.
    pub worst: f64,
    /// Smallest ratio.
    pub best: f64,
    /// Stops and moves of jobs under the policy.
    pub n_stops: u64,
    /// And under the other.
    pub n_stops_against: u64,
}

impl Tally {
    /// Counts.
    pub fn of<'a>(name: &str, judged: impl Iterator<Item = &'a Judged>, margin: f64) -> Tally {
        let judged: Vec<&Judged> = judged.collect();
        let count = |is: &dyn Fn(f64) -> bool| judged.iter().filter(|judged| is(judged.ratio)).count();
        let finite: Vec<f64> = judged.iter().map(|judged| judged.ratio).filter(|r| r.is_finite()).collect();
        let mean = interval(&finite);
        let of_mean = |part: fn(rota_scripts::study::Interval) -> f64| mean.map_or(f64::NAN, part);
        Tally {
            name: name.to_owned(),
            n: judged.len(),
            n_beyond: count(&|ratio| ratio > 1.0 + margin),
            n_worse: count(&|ratio| ratio > 1.0 + EQUAL),
            n_equal: count(&|ratio| (ratio - 1.0).abs() <= EQUAL),
            n_better: count(&|ratio| ratio < 1.0 - EQUAL),
            mean: of_mean(|mean| mean.mean),
            mean_low: of_mean(|mean| mean.low),
            mean_high: of_mean(|mean| mean.high),
            worst: judged.iter().map(|judged| judged.ratio).fold(0.0, f64::max),
            best: judged.iter().map(|judged| judged.ratio).fold(f64::INFINITY, f64::min),
            n_stops: judged.iter().map(|judged| u64::from(judged.n_stops.0)).sum(),
            n_stops_against: judged.iter().map(|judged| u64::from(judged.n_stops.1)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_counted_on_their_side_of_one() {
        let judged = |ratio| Judged { ratio, is_crowded: false, n_stops: (2, 1), what: None };
        let all = [0.5, 1.0, 1.02, 1.5, f64::INFINITY].map(judged);
        let tally = Tally::of("all", all.iter(), 0.05);
        assert_eq!((tally.n, tally.n_beyond, tally.n_worse, tally.n_equal, tally.n_better), (5, 2, 3, 1, 1));
        assert_eq!((tally.worst, tally.best, tally.n_stops), (f64::INFINITY, 0.5, 10));
        assert!((tally.mean - 1.005).abs() < 1e-9, "without the one that never ends: {}", tally.mean);
    }
}
