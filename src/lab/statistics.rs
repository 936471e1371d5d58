//! Means, quantiles and their confidence intervals. Intervals are a percentile bootstrap (Efron, 1979) with a fixed seed, so the
//! same values always give the same interval.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rota_scripts::study::{Comparison, Interval};

const N_RESAMPLES: usize = 2_000;
const SEED: u64 = 0x5EED;
/// The probability outside the interval, on each side.
const TAIL: f64 = 0.025;

/// The 95 % confidence interval of a mean; `None` for no values. A single value has an interval of no width.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let mean = mean(values)?;
    let (low, high) = bounds(values.len(), |picked| picked.iter().map(|at| values[*at]).sum::<f64>());
    let n = values.len() as f64;
    Some(Interval { n: values.len(), mean, low: low / n, high: high / n })
}

/// A paired comparison: pairs are drawn, not values, so that what both share (a seed's workload) cancels out.
/// `None` for no values, and for lists of different lengths.
pub fn compare(baseline: &[f64], other: &[f64]) -> Option<Comparison> {
    if baseline.len() != other.len() {
        return None;
    }
    let differences: Vec<f64> = other.iter().zip(baseline).map(|(other, base)| other - base).collect();
    let sum = |values: &[f64], picked: &[usize]| picked.iter().map(|at| values[*at]).sum::<f64>();
    let ratio = |other: f64, base: f64| if base == 0.0 { f64::NAN } else { other / base };
    let (low, high) = bounds(other.len(), |picked| ratio(sum(other, picked), sum(baseline, picked)));
    let ratio = ratio(mean(other)?, mean(baseline)?);
    Some(Comparison {
        difference: interval(&differences)?,
        ratio: Interval { n: other.len(), mean: ratio, low, high },
        n_smaller: differences.iter().filter(|difference| **difference < 0.0).count(),
    })
}

/// The mean; `None` for no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The `q`-quantile of ascending values, linear between neighbours at index `q * (n - 1)`; `None` for no values.
pub(crate) fn quantile(ascending: &[f64], q: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (ascending[at.floor() as usize], ascending[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

/// The standard deviation of a sample; `None` for fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Where a statistic of resampled indices lies in all but the tails.
fn bounds(n: usize, statistic: impl Fn(&[usize]) -> f64) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut picked = vec![0; n];
    let mut drawn = Vec::with_capacity(N_RESAMPLES);
    for _ in 0..N_RESAMPLES {
        picked.iter_mut().for_each(|at| *at = rng.random_range(0..n));
        drawn.push(statistic(&picked));
    }
    drawn.sort_by(f64::total_cmp);
    let bound = |q: f64| quantile(&drawn, q).unwrap_or(f64::NAN);
    (bound(TAIL), bound(1.0 - TAIL))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look normal: sums of uniform ones.
    fn sample(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn about_95_of_100_intervals_hold_the_true_mean() {
        let held = (0..200).filter(|seed| {
            let interval = interval(&sample(*seed, 30)).expect("values");
            interval.low <= 0.0 && 0.0 <= interval.high
        });
        let n = held.count();
        assert!((180..=198).contains(&n), "{n} of 200");
    }

    #[test]
    fn an_interval_is_about_as_wide_as_theory_says() {
        let interval = interval(&sample(7, 400)).expect("values");
        let expected = 2.0 * 1.96 / 20.0;
        let width = interval.high - interval.low;
        assert!((width / expected - 1.0).abs() < 0.15, "{width} instead of {expected}");
    }

    #[test]
    fn the_same_values_give_the_same_interval_and_one_value_none() {
        assert_eq!(interval(&[1.0, 2.0, 4.0]), interval(&[1.0, 2.0, 4.0]));
        let one = interval(&[3.0]).expect("a value");
        assert_eq!((one.low, one.mean, one.high, one.n), (3.0, 3.0, 3.0, 1));
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn pairing_sees_a_small_difference_under_a_large_spread() {
        let baseline: Vec<f64> = sample(1, 20).iter().map(|value| 100.0 + 30.0 * value).collect();
        let other: Vec<f64> =
            baseline.iter().zip(sample(2, 20)).map(|(base, noise)| base - 2.0 + 0.1 * noise).collect();
        let paired = compare(&baseline, &other).expect("pairs");
        assert!(paired.difference.high < -1.5 && paired.difference.low > -2.5, "{paired:?}");
        assert_eq!(paired.n_smaller, 20);
        assert!(paired.ratio.high < 1.0, "{paired:?}");
        assert!(interval(&other).expect("values").high > interval(&baseline).expect("values").low);
        assert_eq!(compare(&[1.0], &[]), None);
    }

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        let values = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 0.5), Some(25.0));
        assert_eq!(quantile(&values, 0.95), Some(38.5));
        assert_eq!(quantile(&values, 1.0), Some(40.0));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn deviations_and_means_agree_with_values_computed_by_hand() {
        assert_eq!(deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
        assert_eq!((deviation(&[1.0]), mean(&[1.0, 2.0, 6.0]), mean(&[])), (None, Some(3.0), None));
    }
}
