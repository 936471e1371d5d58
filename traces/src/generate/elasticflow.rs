//! ElasticFlow's generator (ASPLOS'23, §6.1): elastic jobs with deadlines a random factor of their duration away.
//!
//! The same distributions as the original's, not its stream of random numbers; deadlines and best-effort jobs are
//! drawn from the seed, which the original forgets to do.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rota_core::cluster::Cluster;
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

use super::draws::{self, Purpose};
use super::options::{DeadlineOptions, Lengths, WorkloadOptions};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::profile::{ProfileEntry, ProfileSet};
use crate::speeds::Speeds;

/// Jobs drawn when the options do not give a number.
const DEFAULT_JOBS: usize = 100;

/// Draws a workload.
pub(super) fn generate(
    cluster: &Cluster,
    profiles: &ProfileSet,
    options: &WorkloadOptions,
) -> Result<Workload, InputError> {
    options.check()?;
    let mut templates = Templates::new(profiles, cluster, options.seed)?;
    let mut arrivals = draws::stream(options.seed, Purpose::Arrivals);
    let mut durations = draws::stream(options.seed, Purpose::Durations);
    let mut gpus = draws::stream(options.seed, Purpose::Gpus);
    let mut deadlines = Deadlines::new(options);
    let mut speeds = Speeds::new(cluster);
    let mut list = JobList::default();
    let mut arrival_s = 0.0f64;
    for index in 0..options.jobs.unwrap_or(DEFAULT_JOBS) {
        let duration_s = duration_s(&mut durations, options.lengths);
        let n_gpus = if options.multi_gpu { self::n_gpus(&mut gpus) } else { 1 };
        let arrival = Time::from_secs_f64(if options.is_static { 0.0 } else { arrival_s.floor() });
        let mut spec = templates.draw_job(&index.to_string(), n_gpus, arrival);
        let work = speeds.whole_iterations(&spec, duration_s)?;
        spec.estimated_work = work;
        spec.deadline = deadlines.draw(arrival, duration_s);
        list.push(spec, work);
        arrival_s += draws::gap_s(&mut arrivals, options.jobs_per_hour);
    }
    Ok(list.finish())
}

fn duration_s(rng: &mut ChaCha8Rng, lengths: Lengths) -> f64 {
    let seconds = match lengths {
        Lengths::Long => draws::duration_s(rng, (1.0, 2.5), (2.5, 4.0)),
        Lengths::Short => super::synergy::duration_s(rng, Lengths::Short),
    };
    seconds.floor()
}

fn n_gpus(rng: &mut ChaCha8Rng) -> u32 {
    draws::gpus(rng, &[(0.83, 1), (0.86, 2), (0.89, 4), (0.99, 8)], 16)
}

/// Draws a model and a batch size for each job, all alike likely.
pub(crate) struct Templates<'p> {
    templates: Vec<(&'p ProfileEntry, u32)>,
    rng: ChaCha8Rng,
}

impl<'p> Templates<'p> {
    /// Of the models of the set, those whose speed on this cluster is known.
    pub(crate) fn new(profiles: &'p ProfileSet, cluster: &Cluster, seed: u64) -> Result<Self, InputError> {
        let mut templates = profiles.templates();
        let mut speeds = Speeds::new(cluster);
        templates.retain(|(entry, batch)| {
            let job =
                JobSpec { batch: *batch, ..JobList::plain("", entry.profile.clone(), 1, 0.0, Time::ZERO) };
            speeds.is_measured(&job)
        });
        if templates.is_empty() {
            let what = format!("a set with models measured on the GPUs of cluster {}", cluster.name);
            return Err(InputError::expected("profiles", what).got(&profiles.name));
        }
        Ok(Templates { templates, rng: draws::stream(seed, Purpose::Models) })
    }

    /// A job of a model drawn among those whose batch can be shared by so many GPUs; all of them when none can.
    pub(crate) fn draw_job(&mut self, name: &str, n_gpus: u32, arrival: Time) -> JobSpec {
        let divides = |batch: u32| batch == 0 || batch >= n_gpus;
        let fits = self.templates.iter().any(|(_, batch)| divides(*batch));
        let (entry, batch) = loop {
            let drawn = self.templates[self.rng.random_range(0..self.templates.len())];
            if divides(drawn.1) || !fits {
                break drawn;
            }
        };
        let mut spec = JobList::plain(name, entry.profile.clone(), n_gpus, 0.0, arrival);
        spec.batch = batch;
        let levels = entry.levels.get(&batch).map_or(&[][..], Vec::as_slice);
        spec.gpus = GpuRequest { asked: n_gpus, levels: levels.into() };
        spec
    }
}

/// Draws deadlines.
pub(crate) struct Deadlines {
    options: DeadlineOptions,
    tightness: ChaCha8Rng,
    best_effort: ChaCha8Rng,
}

impl Deadlines {
    pub(crate) fn new(options: &WorkloadOptions) -> Self {
        Deadlines {
            options: options.deadlines,
            tightness: draws::stream(options.seed, Purpose::Deadlines),
            best_effort: draws::stream(options.seed, Purpose::BestEffort),
        }
    }

    /// Whole seconds after the arrival, or none.
    pub(crate) fn draw(&mut self, arrival: Time, duration_s: f64) -> Deadline {
        let (least, most) = self.options.tightness;
        let factor = least + (most - least) * self.tightness.random::<f64>();
        let is_best_effort = self.best_effort.random::<f64>() < self.options.best_effort;
        if is_best_effort {
            return Deadline::None;
        }
        Deadline::Strict(arrival + Span::from_secs_f64((factor * duration_s).floor().max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::options::Recipe;
    use crate::{cluster, profile};

    fn draw(options: &WorkloadOptions) -> Workload {
        let cluster = cluster::load("a100").expect("built in");
        let options = WorkloadOptions {
            recipe: Recipe::Elasticflow,
            jobs_per_hour: 2.4,
            multi_gpu: true,
            ..options.clone()
        };
        generate(&cluster, &profile::load("elasticflow-a100").expect("built in"), &options).expect("sound")
    }

    #[test]
    fn jobs_are_elastic_and_have_deadlines() {
        let workload = draw(&WorkloadOptions { jobs: Some(10_000), ..WorkloadOptions::default() });
        assert_eq!(workload.jobs[0].arrival, Time::ZERO);
        let cluster = cluster::load("a100").expect("built in");
        for job in &workload.jobs {
            assert!(job.gpus.levels.first() == Some(&1) && job.batch >= 32, "{job:?}");
            let duration_s = job.estimated_work / job.fair_rate(&cluster);
            let slack_s = (job.deadline.first().expect("a deadline") - job.arrival).as_secs_f64();
            assert!(
                slack_s <= 1.5 * duration_s + 2.0 && slack_s >= 0.5 * duration_s - 1.0,
                "{slack_s} of {duration_s}"
            );
        }
        let share = |n| workload.jobs.iter().filter(|j| j.gpus.asked == n).count() as f64 / 10_000.0;
        for (gpus, expected) in [(1, 0.83), (2, 0.03), (4, 0.03), (8, 0.1), (16, 0.01)] {
            assert!((share(gpus) - expected).abs() < 0.012, "{gpus} GPUs: {}", share(gpus));
        }
        assert_eq!(workload.check(), Ok(()));
    }

    #[test]
    fn the_best_effort_share_is_met() {
        let deadlines = DeadlineOptions { best_effort: 0.3, ..DeadlineOptions::default() };
        let workload = draw(&WorkloadOptions { jobs: Some(5_000), deadlines, ..WorkloadOptions::default() });
        let n_free = workload.jobs.iter().filter(|j| j.deadline == Deadline::None).count();
        assert!((1_400..1_600).contains(&n_free), "{n_free} of 5,000");
    }
}
