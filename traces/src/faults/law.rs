//! How times between failures, and times to repair, are distributed about their mean.

use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal, Weibull};
use rota_core::time::Span;

use crate::error::InputError;

/// A law of lengths of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law(Shape);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Weibull(Weibull<f64>),
    LogNormal(LogNormal<f64>),
    Fixed(f64),
}

/// Nothing is up or down for less than this: shorter times would only cost events.
const SHORTEST_S: f64 = 1.0;

impl Law {
    /// Memoryless: the chance of a failure is always the same.
    pub fn exponential(mean: Span) -> Result<Self, InputError> {
        Self::weibull(mean, 1.0)
    }

    /// Below a shape of 1 failures come in clusters, as fleets report; above 1 things wear out.
    pub fn weibull(mean: Span, shape: f64) -> Result<Self, InputError> {
        let in_range = Some(shape).filter(|s| (0.2..=20.0).contains(s));
        // The mean of the law is its scale times Γ(1 + 1/shape).
        in_range
            .and_then(|shape| Weibull::new(mean.as_secs_f64() / gamma(1.0 + 1.0 / shape), shape).ok())
            .map(|law| Law(Shape::Weibull(law)))
            .ok_or_else(|| wrong_shape("a number from 0.2 to 20", shape))
    }

    /// Most are short and some very long, as repairs are; `sigma` is the standard deviation of the logarithm.
    pub fn log_normal(mean: Span, sigma: f64) -> Result<Self, InputError> {
        let in_range = Some(sigma).filter(|s| (0.0..=5.0).contains(s));
        // The mean of the law is exp(mu + sigma²/2).
        in_range
            .and_then(|sigma| LogNormal::new(mean.as_secs_f64().ln() - sigma * sigma / 2.0, sigma).ok())
            .map(|law| Law(Shape::LogNormal(law)))
            .ok_or_else(|| wrong_shape("a number from 0 to 5", sigma))
    }

    /// Always the same.
    pub fn fixed(length: Span) -> Self {
        Law(Shape::Fixed(length.as_secs_f64()))
    }

    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Span {
        let seconds = match &self.0 {
            Shape::Weibull(law) => law.sample(rng),
            Shape::LogNormal(law) => law.sample(rng),
            Shape::Fixed(seconds) => *seconds,
        };
        Span::from_secs_f64(seconds.max(SHORTEST_S))
    }
}

fn wrong_shape(what: &str, shape: f64) -> InputError {
    InputError::expected("faults", what).at_name("shape").got(shape.to_string())
}

/// The gamma function by Lanczos' approximation (g = 7, nine terms), good to about 15 digits for x ≥ 1.
fn gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let [first, rest @ ..] = TERMS;
    let sum = rest.iter().zip(1u32..).fold(first, |sum, (term, i)| sum + term / (x + f64::from(i)));
    let t = x + 7.5;
    (2.0 * std::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::draws::{Purpose, stream};

    #[test]
    fn the_gamma_function_is_right() {
        for (x, value) in
            [(1.0, 1.0), (5.0, 24.0), (1.5, 0.886_226_925_452_758), (3.5, 3.323_350_970_447_843)]
        {
            assert!((gamma(x) - value).abs() < 1e-10, "gamma({x}) = {}", gamma(x));
        }
    }

    #[test]
    fn every_law_has_the_mean_that_was_asked_for() {
        let day = Span::from_secs(86_400);
        let laws = [
            Law::exponential(day),
            Law::weibull(day, 0.7),
            Law::weibull(day, 3.0),
            Law::log_normal(day, 1.0),
            Ok(Law::fixed(day)),
        ];
        for law in laws {
            let law = law.expect("sound");
            let mut rng = stream(7, Purpose::Faults);
            let sum: f64 = (0..100_000).map(|_| law.draw(&mut rng).as_secs_f64()).sum();
            assert!((sum / 1e5 / 86_400.0 - 1.0).abs() < 0.02, "{law:?}: {sum}");
        }
    }

    #[test]
    fn laws_that_are_none_are_refused() {
        let day = Span::from_secs(86_400);
        let message = Law::weibull(day, 0.0).expect_err("no shape").to_string();
        assert_eq!(message, "faults, shape: got \"0\", expected a number from 0.2 to 20");
        assert!(Law::log_normal(day, -1.0).is_err() && Law::log_normal(day, f64::NAN).is_err());
    }
}
