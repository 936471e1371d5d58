//! Wrong estimates on purpose: what policies believe of a job's length, while the truth stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rota_core::workload::Workload;

use crate::error::InputError;
use crate::generate::draws::{self, Purpose};

/// How far estimates are off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateError {
    /// Every estimate is this many times the truth; 1 is right on average.
    pub bias: f64,
    /// Spread: the standard deviation of the estimate's logarithm; 0 is none, 0.7 doubles or halves one in three.
    pub noise: f64,
    /// Which jobs share an error.
    pub per: ErrorPer,
    /// Equal seeds give equal errors.
    pub seed: u64,
}

/// Which jobs share an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorPer {
    /// Each job by itself: users guess.
    #[default]
    Job,
    /// All jobs of a model by the same factor: the profile is off.
    Model,
}

impl EstimateError {
    /// Replaces the estimates of a workload by wrong ones.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), InputError> {
        let wrong = |name: &str, what: &str, value: f64| {
            Err(InputError::expected("estimates", what).at_name(name).got(value.to_string()))
        };
        if !(1e-6..=1e6).contains(&self.bias) {
            return wrong("bias", "a factor greater than 0", self.bias);
        }
        if !(0.0..=5.0).contains(&self.noise) {
            return wrong("noise", "a number from 0 to 5", self.noise);
        }
        let mut per_job = draws::stream(self.seed, Purpose::Estimates);
        let mut per_model = BTreeMap::new();
        for (job, truth) in workload.jobs.iter_mut().zip(&workload.truths) {
            let factor = match self.per {
                ErrorPer::Job => self.factor(&mut per_job),
                ErrorPer::Model => *per_model.entry(job.profile.name.clone()).or_insert_with_key(|name| {
                    self.factor(&mut draws::numbered_stream(self.seed, Purpose::Estimates, digest(name)))
                }),
            };
            Arc::make_mut(job).estimated_work = (truth.work * factor).clamp(f64::MIN_POSITIVE, f64::MAX);
        }
        Ok(())
    }

    fn factor(&self, rng: &mut ChaCha8Rng) -> f64 {
        let normal: f64 = StandardNormal.sample(rng);
        self.bias * (self.noise * normal).exp()
    }
}

/// A model's number, whatever the order in which models come (FNV-1a).
fn digest(name: &str) -> u32 {
    name.bytes().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::generate::{WorkloadOptions, generate};

    fn workload(n_jobs: usize) -> Workload {
        let (cluster, profiles) = built_in("default", "synergy");
        generate(&cluster, &profiles, &WorkloadOptions { jobs: Some(n_jobs), ..WorkloadOptions::default() })
            .expect("sound")
    }

    fn factors(error: EstimateError, n_jobs: usize) -> Vec<(String, f64)> {
        let mut workload = workload(n_jobs);
        let truths = workload.truths.clone();
        error.apply(&mut workload).expect("sound");
        assert_eq!(workload.truths, truths, "the truth stays");
        workload
            .jobs
            .iter()
            .zip(&truths)
            .map(|(job, truth)| (job.profile.name.clone(), job.estimated_work / truth.work))
            .collect()
    }

    #[test]
    fn bias_and_noise_are_as_asked() {
        let error = EstimateError { bias: 2.0, noise: 0.5, per: ErrorPer::Job, seed: 3 };
        let logs: Vec<f64> = factors(error, 10_000).iter().map(|(_, factor)| (factor / 2.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let spread = (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!(mean.abs() < 0.02 && (spread - 0.5).abs() < 0.02, "{mean} ± {spread}");
        assert!(
            factors(EstimateError { noise: 0.0, ..error }, 100)
                .iter()
                .all(|(_, factor)| (*factor - 2.0).abs() < 1e-12)
        );
    }

    #[test]
    fn jobs_of_one_model_err_alike_when_the_profile_is_off() {
        let error = EstimateError { bias: 1.0, noise: 0.5, per: ErrorPer::Model, seed: 3 };
        let mut of_model = BTreeMap::new();
        for (model, factor) in factors(error, 500) {
            let known = *of_model.entry(model.clone()).or_insert(factor);
            assert!((known - factor).abs() < 1e-9, "{model}: {known} and {factor}");
        }
        assert_eq!(of_model.len(), 10);
        let distinct: std::collections::BTreeSet<_> = of_model.values().map(|f| f.to_bits()).collect();
        assert_eq!(distinct.len(), 10);
    }

    #[test]
    fn errors_that_are_none_are_refused() {
        let error = EstimateError { bias: 0.0, noise: 0.0, per: ErrorPer::Job, seed: 1 };
        let message = error.apply(&mut workload(1)).expect_err("no bias").to_string();
        assert_eq!(message, "estimates, bias: got \"0\", expected a factor greater than 0");
    }
}
