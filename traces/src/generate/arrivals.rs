//! Arrivals that do not come evenly: in bursts, or by day and night. A drawn workload is given other arrivals at the same mean
//! rate; its jobs stay as they are, and deadlines stay as far from the arrivals.

use std::str::FromStr;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rota_core::job::Deadline;
use rota_core::time::Time;
use rota_core::workload::Workload;

use super::draws::{self, Purpose, gap_s};
use crate::error::InputError;

/// How arrivals are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pattern {
    /// One rate all the time.
    #[default]
    Poisson,
    /// Two states that take turns (a Markov-modulated Poisson process): calm for 6 hours on average, then for 1 hour on average
    /// a burst in which jobs come so many times as fast.
    Bursty {
        /// More than 1.
        times: f64,
    },
    /// A sine over 24 hours: at its highest, jobs come so many times as fast as on average.
    Diurnal {
        /// From 1 to 2.
        peak: f64,
    },
}

const CALM_S: f64 = 6.0 * 3_600.0;
const BURST_S: f64 = 3_600.0;
const DAY_S: f64 = 86_400.0;

impl FromStr for Pattern {
    type Err = InputError;

    /// Reads `poisson`, `bursty`, `bursty:10`, `diurnal`, `diurnal:1.8`.
    fn from_str(text: &str) -> Result<Self, InputError> {
        let (name, number) = text.split_once(':').unwrap_or((text, ""));
        let number = (!number.is_empty()).then(|| number.parse::<f64>().unwrap_or(f64::NAN));
        match (name, number) {
            ("poisson", None) => Ok(Pattern::Poisson),
            ("bursty", times) if times.is_none_or(|n| (1.0..=1e6).contains(&n)) => {
                Ok(Pattern::Bursty { times: times.unwrap_or(10.0) })
            }
            ("diurnal", peak) if peak.is_none_or(|n| (1.0..=2.0).contains(&n)) => {
                Ok(Pattern::Diurnal { peak: peak.unwrap_or(1.8) })
            }
            _ => {
                let what = "poisson, bursty:TIMES (from 1) or diurnal:PEAK (from 1 to 2)";
                Err(InputError::expected("options", what).at_name("pattern").got(text))
            }
        }
    }
}

impl Pattern {
    /// Gives every job another arrival, in the same order.
    pub fn apply(self, workload: &mut Workload, jobs_per_hour: f64, seed: u64) {
        if self == Pattern::Poisson {
            return;
        }
        let mut clock = Clock::new(self, jobs_per_hour, seed);
        for job in &mut workload.jobs {
            let job = Arc::make_mut(job);
            let later = Time::from_secs_f64(clock.next_s()) - job.arrival;
            job.arrival = job.arrival + later;
            match &mut job.deadline {
                Deadline::None => {}
                Deadline::Strict(time) => *time = *time + later,
                Deadline::Soft(steps) => steps.iter_mut().for_each(|(time, _)| *time = *time + later),
            }
        }
    }
}

struct Clock {
    rng: ChaCha8Rng,
    pattern: Pattern,
    mean_per_hour: f64,
    now_s: f64,
    is_burst: bool,
    state_ends_s: f64,
}

impl Clock {
    fn new(pattern: Pattern, mean_per_hour: f64, seed: u64) -> Self {
        let mut rng = draws::branched_stream(seed, Purpose::Arrivals, 1, 0);
        let state_ends_s = gap_s(&mut rng, 3_600.0 / CALM_S);
        Clock { rng, pattern, mean_per_hour, now_s: 0.0, is_burst: false, state_ends_s }
    }

    fn next_s(&mut self) -> f64 {
        match self.pattern {
            Pattern::Poisson => self.now_s += gap_s(&mut self.rng, self.mean_per_hour),
            Pattern::Bursty { times } => self.go_on_in_bursts(times),
            Pattern::Diurnal { peak } => loop {
                // Thinning: draw at the highest rate, keep as many as the rate of the hour asks for.
                self.now_s += gap_s(&mut self.rng, self.mean_per_hour * peak);
                let turn = std::f64::consts::TAU * self.now_s / DAY_S;
                let rate = 1.0 + (peak - 1.0) * turn.sin();
                if self.rng.random::<f64>() * peak < rate {
                    break;
                }
            },
        }
        self.now_s
    }

    fn go_on_in_bursts(&mut self, times: f64) {
        let calm = self.mean_per_hour * (CALM_S + BURST_S) / (CALM_S + times * BURST_S);
        loop {
            let rate = if self.is_burst { calm * times } else { calm };
            let next_s = self.now_s + gap_s(&mut self.rng, rate);
            if next_s < self.state_ends_s {
                self.now_s = next_s;
                return;
            }
            // Exponential gaps have no memory: the rest is drawn anew at the other rate.
            self.now_s = self.state_ends_s;
            self.is_burst = !self.is_burst;
            let mean_s = if self.is_burst { BURST_S } else { CALM_S };
            self.state_ends_s += gap_s(&mut self.rng, 3_600.0 / mean_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(text: &str) -> Vec<f64> {
        let mut clock = Clock::new(text.parse().expect("a pattern"), 60.0, 3);
        (0..200_000).map(|_| clock.next_s()).collect()
    }

    /// Variance over mean of the arrivals in each hour: 1 for a Poisson process.
    fn dispersion(arrivals: &[f64]) -> f64 {
        let hours = (arrivals[arrivals.len() - 1] / 3_600.0) as usize;
        let mut counts = vec![0.0_f64; hours + 1];
        arrivals.iter().for_each(|at| counts[(at / 3_600.0) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
    }

    #[test]
    fn every_pattern_keeps_the_mean_rate() {
        for text in ["poisson", "bursty", "bursty:30", "diurnal", "diurnal:1.3"] {
            let arrivals = arrivals(text);
            let per_hour = 200_000.0 / (arrivals[199_999] / 3_600.0);
            assert!((per_hour / 60.0 - 1.0).abs() < 0.1, "{text}: {per_hour}");
            assert!(arrivals.is_sorted());
        }
    }

    #[test]
    fn bursts_and_days_are_less_even_than_poisson() {
        assert!((dispersion(&arrivals("poisson")) - 1.0).abs() < 0.1);
        assert!(dispersion(&arrivals("bursty:10")) > 20.0);
        let diurnal = arrivals("diurnal:1.8");
        let in_hour =
            |hour: f64| diurnal.iter().filter(|at| (**at % DAY_S / 3_600.0).floor() == hour).count() as f64;
        assert!((in_hour(6.0) / in_hour(18.0) - 1.8 / 0.2).abs() < 1.0, "highest at 6 h, lowest at 18 h");
    }

    #[test]
    fn patterns_that_are_none_are_refused() {
        for text in ["", "lumpy", "bursty:0.5", "diurnal:3", "bursty:x", "poisson:2"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
