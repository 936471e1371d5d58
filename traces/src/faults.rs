//! When nodes fail and come back: each by itself, with times between failures and times to repair drawn from a law.
//!
//! Every node has its own stream of numbers: nodes that are added do not change the failures of the others.

use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Weibull};
use rota_core::cluster::Cluster;
use rota_core::time::{Span, Time};
use rota_core::workload::Fault;

use crate::error::InputError;
use crate::generate::draws::{self, Purpose};

/// How often nodes fail and how long repairs take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultModel {
    /// Mean time from a return (or the beginning) to the next failure of one node.
    pub between: Span,
    /// Mean time from a failure to the return.
    pub repair: Span,
    /// The law of the times between failures; repairs are exponential.
    pub law: FaultLaw,
    /// Equal seeds give equal faults.
    pub seed: u64,
}

/// How times between failures are distributed about their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultLaw {
    /// Memoryless: the chance of a failure is always the same.
    Exponential,
    /// Of that shape: below 1 failures come in clusters, as fleets report; above 1 nodes wear out.
    Weibull {
        /// Greater than 0; 1 is the exponential law.
        shape: f64,
    },
}

/// No node is up or down for less than this: shorter times would only cost events.
const SHORTEST_S: f64 = 1.0;

impl FaultModel {
    /// Failures and returns of every node before `end`, by time and then by node. The return from a failure before
    /// `end` is always there, even when it comes later.
    pub fn faults(&self, cluster: &Cluster, end: Time) -> Result<Vec<Fault>, InputError> {
        let wrong = |name: &str, value: String| {
            Err(InputError::expected("faults", "a length of time greater than 0").at_name(name).got(value))
        };
        if self.between <= Span::ZERO {
            return wrong("mean time between failures", self.between.to_string());
        }
        if self.repair <= Span::ZERO {
            return wrong("mean time to repair", self.repair.to_string());
        }
        let between = self.between_law()?;
        let repair = weibull_of_mean(self.repair.as_secs_f64(), 1.0)?;
        let mut faults = Vec::new();
        for node in cluster.nodes() {
            let mut rng = draws::numbered_stream(self.seed, Purpose::Faults, node.id.0);
            let mut now = Time::ZERO;
            loop {
                now = now + stay(&between, &mut rng);
                if now >= end {
                    break;
                }
                faults.push(Fault { time: now, node: node.id, is_up: false });
                now = now + stay(&repair, &mut rng);
                faults.push(Fault { time: now, node: node.id, is_up: true });
            }
        }
        faults.sort_by_key(|fault| (fault.time, fault.node));
        Ok(faults)
    }

    fn between_law(&self) -> Result<Weibull<f64>, InputError> {
        let shape = match self.law {
            FaultLaw::Exponential => 1.0,
            FaultLaw::Weibull { shape } => shape,
        };
        weibull_of_mean(self.between.as_secs_f64(), shape)
    }
}

fn stay(law: &Weibull<f64>, rng: &mut ChaCha8Rng) -> Span {
    Span::from_secs_f64(law.sample(rng).max(SHORTEST_S))
}

/// The Weibull law of that shape and mean: its scale is the mean over Γ(1 + 1/shape).
fn weibull_of_mean(mean_s: f64, shape: f64) -> Result<Weibull<f64>, InputError> {
    let in_range = Some(shape).filter(|s| (0.2..=20.0).contains(s));
    in_range.and_then(|shape| Weibull::new(mean_s / gamma(1.0 + 1.0 / shape), shape).ok()).ok_or_else(|| {
        InputError::expected("faults", "a number from 0.2 to 20").at_name("shape").got(shape.to_string())
    })
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
    use crate::cluster;

    fn faults(law: FaultLaw, cluster: &str, days: i64) -> Vec<Fault> {
        let model =
            FaultModel { between: Span::from_secs(86_400), repair: Span::from_secs(3_600), law, seed: 7 };
        model.faults(&cluster::load(cluster).expect("built in"), Time(days * 86_400_000_000)).expect("sound")
    }

    #[test]
    fn the_gamma_function_is_right() {
        for (x, value) in
            [(1.0, 1.0), (5.0, 24.0), (1.5, 0.886_226_925_452_758), (3.5, 3.323_350_970_447_843)]
        {
            assert!((gamma(x) - value).abs() < 1e-10, "gamma({x}) = {}", gamma(x));
        }
    }

    #[test]
    fn nodes_fail_as_often_as_the_mean_says_under_every_law() {
        for law in [FaultLaw::Exponential, FaultLaw::Weibull { shape: 0.7 }, FaultLaw::Weibull { shape: 3.0 }]
        {
            let n_failures = faults(law, "philly", 100).iter().filter(|f| !f.is_up).count() as f64;
            let expected = 64.0 * 100.0 * 24.0 / 25.0;
            assert!((n_failures / expected - 1.0).abs() < 0.05, "{law:?}: {n_failures} of {expected}");
        }
    }

    #[test]
    fn every_node_alternates_and_the_whole_is_in_order() {
        let faults = faults(FaultLaw::Weibull { shape: 0.7 }, "small", 30);
        assert!(faults.is_sorted_by_key(|f| (f.time, f.node)));
        for node in 0..4 {
            let of_node: Vec<bool> = faults.iter().filter(|f| f.node.0 == node).map(|f| f.is_up).collect();
            assert!(of_node.len() > 20 && of_node.len().is_multiple_of(2));
            assert!(of_node.iter().enumerate().all(|(i, is_up)| *is_up == (i % 2 == 1)));
        }
    }

    #[test]
    fn a_larger_cluster_fails_the_same_where_it_was() {
        let small = faults(FaultLaw::Exponential, "small", 30);
        let large = faults(FaultLaw::Exponential, "default", 30);
        assert_eq!(small, large.into_iter().filter(|f| f.node.0 < 4).collect::<Vec<_>>());
    }

    #[test]
    fn laws_that_are_none_are_refused() {
        let model = FaultModel {
            between: Span::from_secs(1),
            repair: Span::from_secs(1),
            law: FaultLaw::Weibull { shape: 0.0 },
            seed: 1,
        };
        let cluster = cluster::load("small").expect("built in");
        let message = model.faults(&cluster, Time::ZERO).expect_err("no shape").to_string();
        assert_eq!(message, "faults, shape: got \"0\", expected a number from 0.2 to 20");
        let message = FaultModel { repair: Span::ZERO, ..model }
            .faults(&cluster, Time::ZERO)
            .expect_err("no repair")
            .to_string();
        assert_eq!(
            message,
            "faults, mean time to repair: got \"0\", expected a length of time greater than 0"
        );
    }
}
