//! Synergy's generator (OSDI'22, §5.1): Poisson arrivals, Gavel's durations, classes by deficit.
//!
//! The same distributions as the original's, not its stream of random numbers. Its two defects are left out: jobs
//! past the end of a list are new jobs, and the GPU mix follows the option.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rota_core::cluster::Cluster;
use rota_core::profile::Profile;
use rota_core::time::Time;
use rota_core::workload::Workload;

use super::draws::{self, Purpose};
use super::options::{Lengths, WorkloadOptions};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::profile::ProfileSet;
use crate::speeds::Speeds;

/// Jobs drawn when the options do not give a number.
pub(super) const DEFAULT_JOBS: usize = 1_000;

/// Draws a workload.
pub(super) fn generate(
    cluster: &Cluster,
    profiles: &ProfileSet,
    options: &WorkloadOptions,
) -> Result<Workload, InputError> {
    let mut arrivals = Arrivals::new(options);
    let mut durations = draws::stream(options.seed, Purpose::Durations);
    let mut gpus = draws::stream(options.seed, Purpose::Gpus);
    let mut models = ModelMix::new(profiles, options)?;
    let mut speeds = Speeds::new(cluster);
    let mut list = JobList::default();
    for index in 0..options.jobs.unwrap_or(DEFAULT_JOBS) {
        let duration_s = duration_s(&mut durations, options.lengths);
        let n_gpus = if options.multi_gpu { self::n_gpus(&mut gpus) } else { 1 };
        let mut spec = JobList::plain(&index.to_string(), models.next(), n_gpus, 0.0, arrivals.next());
        let work = speeds.whole_iterations(&spec, duration_s)?;
        spec.estimated_work = work;
        list.push(spec, work);
    }
    Ok(list.finish())
}

/// Times of arrival one after another.
pub(crate) struct Arrivals {
    rng: ChaCha8Rng,
    jobs_per_hour: f64,
    is_static: bool,
    count: u32,
    last_s: f64,
}

impl Arrivals {
    pub(crate) fn new(options: &WorkloadOptions) -> Self {
        Arrivals {
            rng: draws::stream(options.seed, Purpose::Arrivals),
            jobs_per_hour: options.jobs_per_hour,
            is_static: options.is_static,
            count: 0,
            last_s: 0.0,
        }
    }

    /// The next one, in whole seconds as in the original, or a millisecond after the other when all come at once.
    ///
    /// The sum of the gaps is rounded, not each gap, which would cap the load at a job a second.
    pub(crate) fn next(&mut self) -> Time {
        if self.is_static {
            self.count += 1;
            return Time(i64::from(self.count - 1) * 1_000);
        }
        self.last_s += draws::gap_s(&mut self.rng, self.jobs_per_hour);
        Time::from_secs_f64(self.last_s.ceil())
    }
}

/// A duration at the proportional share, seconds.
pub(crate) fn duration_s(rng: &mut ChaCha8Rng, lengths: Lengths) -> f64 {
    match lengths {
        Lengths::Long => draws::duration_s(rng, (1.5, 3.0), (3.0, 4.0)),
        Lengths::Short => draws::duration_s(rng, (1.5, 2.5), (2.5, 2.7)),
    }
}

fn n_gpus(rng: &mut ChaCha8Rng) -> u32 {
    draws::gpus(rng, &[(0.7, 1), (0.8, 2), (0.95, 4)], 8)
}

/// Gives each job the class that is furthest behind its share, and its models in turn.
pub(crate) struct ModelMix {
    classes: Vec<Class>,
    total: f64,
}

struct Class {
    share: f64,
    models: Vec<Arc<Profile>>,
    given: usize,
}

impl ModelMix {
    pub(crate) fn new(profiles: &ProfileSet, options: &WorkloadOptions) -> Result<Self, InputError> {
        options.check()?;
        let mut classes = Vec::new();
        for (name, percent) in &options.split.0 {
            let models: Vec<_> =
                profiles.drawn().filter(|e| e.profile.class == *name).map(|e| e.profile.clone()).collect();
            if models.is_empty() && *percent > 0.0 {
                let what = format!("a class that profile set {} has models of", profiles.name);
                return Err(InputError::expected("options", what).at_name("split").got(name));
            }
            if !models.is_empty() {
                classes.push(Class { share: percent / 100.0, models, given: 0 });
            }
        }
        Ok(ModelMix { classes, total: 0.0 })
    }

    /// The model of the next job. Of classes equally far behind the first goes, as before the first job all are.
    pub(crate) fn next(&mut self) -> Arc<Profile> {
        let total = self.total;
        let behind = |class: &Class| if total > 0.0 { class.share - class.given as f64 / total } else { 0.0 };
        let mut furthest = 0;
        for (index, class) in self.classes.iter().enumerate() {
            if behind(class) > behind(&self.classes[furthest]) {
                furthest = index;
            }
        }
        self.total += 1.0;
        let class = &mut self.classes[furthest];
        class.given += 1;
        class.models[(class.given - 1) % class.models.len()].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::options::Split;
    use crate::source::Source;
    use crate::{cluster, profile};
    use rota_test_support::need;

    fn draw(options: &WorkloadOptions) -> Workload {
        let (cluster, profiles) =
            (cluster::load("default").expect("built in"), profile::load("synergy").expect("built in"));
        generate(&cluster, &profiles, options).expect("options are sound")
    }

    /// The order of models is the one thing of the original's generator that no random number touches.
    #[test]
    fn models_come_in_the_originals_order() {
        let workload = draw(&WorkloadOptions { jobs: Some(16), ..WorkloadOptions::default() });
        let models: Vec<_> = workload.jobs.iter().map(|j| j.profile.name.as_str()).collect();
        let original = [
            "alexnet",
            "gnmt",
            "transformer",
            "m5",
            "lstm",
            "gnmt",
            "res18",
            "transformer",
            "lstm",
            "gnmt",
            "res50",
            "transformer",
            "lstm",
            "deepspeech",
            "gnmt",
            "transformer",
        ];
        assert_eq!(models, original);
    }

    #[test]
    fn a_thousand_models_come_in_the_originals_order() {
        let Some(path) = need::shared_path("golden/synergy/inputs/n1000.single.high.trace") else { return };
        let recorded = Source::open(&path).expect("readable").text;
        let recorded: Vec<&str> = recorded.lines().filter_map(|line| line.split(',').nth(1)).collect();
        let workload = draw(&WorkloadOptions { jobs: Some(1_000), ..WorkloadOptions::default() });
        let models: Vec<_> = workload.jobs.iter().map(|j| j.profile.name.as_str()).collect();
        assert_eq!(models, recorded);
    }

    #[test]
    fn the_distributions_are_the_originals() {
        let options = WorkloadOptions {
            jobs: Some(20_000),
            multi_gpu: true,
            jobs_per_hour: 9.0,
            ..WorkloadOptions::default()
        };
        let workload = draw(&options);
        let cluster = cluster::load("default").expect("built in");
        let hours: Vec<f64> =
            workload.jobs.iter().map(|j| j.estimated_work / j.fair_rate(&cluster) / 3_600.0).collect();
        let mean = hours.iter().sum::<f64>() / hours.len() as f64;
        assert!((16.0..17.6).contains(&mean), "mean duration {mean} h");
        assert!(hours.iter().all(|h| (0.5..=166.7).contains(h)), "31.6 to 10,000 minutes");
        let share = |n| workload.jobs.iter().filter(|j| j.gpus.asked == n).count() as f64 / 20_000.0;
        for (gpus, expected) in [(1, 0.7), (2, 0.1), (4, 0.15), (8, 0.05)] {
            assert!((share(gpus) - expected).abs() < 0.01, "{gpus} GPUs: {}", share(gpus));
        }
        let last_h = workload.jobs.last().expect("some").arrival.as_secs_f64() / 3_600.0;
        assert!((20_000.0 / last_h - 9.0).abs() < 0.3, "{last_h} h");
        assert_eq!(workload.check(), Ok(()));
    }

    #[test]
    fn short_and_static_workloads_are_so() {
        let workload = draw(&WorkloadOptions {
            jobs: Some(500),
            is_static: true,
            lengths: Lengths::Short,
            ..WorkloadOptions::default()
        });
        let cluster = cluster::load("default").expect("built in");
        assert!(
            workload.jobs.iter().all(|j| j.estimated_work / j.fair_rate(&cluster) < 60.0 * 10f64.powf(2.7))
        );
        assert_eq!(workload.jobs.last().expect("some").arrival, Time(499_000));
    }

    #[test]
    fn another_load_keeps_the_jobs() {
        let draw_at = |jobs_per_hour| {
            draw(&WorkloadOptions {
                jobs: Some(50),
                jobs_per_hour,
                multi_gpu: true,
                ..WorkloadOptions::default()
            })
        };
        let (slow, fast) = (draw_at(1.0), draw_at(10.0));
        assert_eq!(slow.truths, fast.truths);
        assert_ne!(slow.jobs[49].arrival, fast.jobs[49].arrival);
    }

    #[test]
    fn a_class_without_models_is_refused() {
        let profiles = profile::load("elasticflow-t4").expect("built in");
        let options =
            WorkloadOptions { split: Split(vec![("music".into(), 100.0)]), ..WorkloadOptions::default() };
        let error =
            generate(&cluster::load("small").expect("built in"), &profiles, &options).expect_err("no music");
        assert_eq!(
            error.to_string(),
            "options, split: got \"music\", expected a class that profile set elasticflow-t4 has models of"
        );
    }
}
