//! The distributions of the published generators, from one portable generator of numbers.
//!
//! Every purpose has a stream of its own: the same seed at another load gives the same jobs at other times.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};

/// What numbers are drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Arrivals = 1,
    Durations = 2,
    Gpus = 3,
    Models = 4,
    Deadlines = 5,
    BestEffort = 6,
    Estimates = 7,
    Faults = 8,
    Data = 9,
}

/// The stream of numbers for one purpose. ChaCha8 by name: no release of a library must change our bytes.
pub(crate) fn stream(seed: u64, purpose: Purpose) -> ChaCha8Rng {
    numbered_stream(seed, purpose, 0)
}

/// One of many streams for one purpose: for a node, for a model.
pub(crate) fn numbered_stream(seed: u64, purpose: Purpose, number: u32) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(((purpose as u64) << 32) | u64::from(number));
    rng
}

/// One of many streams in each of many branches of one purpose; branch 0 is that of `numbered_stream`.
pub(crate) fn branched_stream(seed: u64, purpose: Purpose, branch: u16, number: u32) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream((u64::from(branch) << 40) | ((purpose as u64) << 32) | u64::from(number));
    rng
}

/// Time between arrivals of a Poisson process, seconds.
pub(crate) fn gap_s(rng: &mut ChaCha8Rng, jobs_per_hour: f64) -> f64 {
    let unit: f64 = Exp1.sample(rng);
    unit * 3_600.0 / jobs_per_hour
}

/// Minutes of `10^U(low, high)`, in seconds.
fn power_of_ten_minutes_s(rng: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    let exponent = low + (high - low) * rng.random::<f64>();
    60.0 * 10f64.powf(exponent)
}

/// A fifth of the jobs is long. Both numbers are always drawn, which keeps streams aligned.
pub(crate) fn duration_s(rng: &mut ChaCha8Rng, short: (f64, f64), long: (f64, f64)) -> f64 {
    let (low, high) = if rng.random::<f64>() >= 0.8 { long } else { short };
    power_of_ten_minutes_s(rng, low, high)
}

/// A GPU count by cumulative shares; the last one takes the rest.
pub(crate) fn gpus(rng: &mut ChaCha8Rng, shares: &[(f64, u32)], rest: u32) -> u32 {
    let draw = rng.random::<f64>();
    shares.iter().find(|(below, _)| draw < *below).map_or(rest, |(_, gpus)| *gpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_same_everywhere_and_forever() {
        let mut rng = stream(42, Purpose::Arrivals);
        let drawn: Vec<u64> = (0..3).map(|_| rng.random::<u64>()).collect();
        assert_eq!(drawn, [10_517_904_778_964_690_192, 5_246_156_849_874_060_613, 2_413_108_750_009_499_122]);
        let mut other = stream(42, Purpose::Durations);
        assert_ne!(other.random::<u64>(), drawn[0]);
    }

    #[test]
    fn gaps_have_the_mean_of_the_rate() {
        let mut rng = stream(1, Purpose::Arrivals);
        let mean = (0..20_000).map(|_| gap_s(&mut rng, 6.0)).sum::<f64>() / 20_000.0;
        assert!((mean - 600.0).abs() < 15.0, "{mean}");
    }
}
