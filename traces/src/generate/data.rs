//! Data sets for drawn jobs: every class of models reads its own, a few of them most of the time.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rota_core::ids::DatasetId;
use rota_core::workload::{Dataset, Workload};

use super::draws::{self, Purpose};
use super::options::{DataOptions, WorkloadOptions};

/// Draws the data sets and gives every job of their classes one. Nothing else of the jobs depends on it.
pub(super) fn give(workload: &mut Workload, options: &WorkloadOptions) {
    for (number, of) in (0..).zip(&options.data) {
        let mut rng = draws::numbered_stream(options.seed, Purpose::Data, number);
        let first = workload.datasets.len();
        workload.datasets.extend((1..=of.sets).map(|set| Dataset {
            name: format!("{}-{set}", of.class),
            bytes: size(&mut rng, of.bytes),
            home: None,
        }));
        let likes = Likes::new(of);
        for job in workload.jobs.iter_mut().filter(|job| job.profile.class == of.class) {
            let set = first + likes.draw(&mut rng);
            Arc::make_mut(job).dataset = Some(DatasetId::from(set));
        }
    }
}

/// A size between two, in whole gigabytes where it has some, for traces that are easy to read.
fn size(rng: &mut ChaCha8Rng, (least, most): (u64, u64)) -> u64 {
    const GB: f64 = 1e9;
    let bytes = least as f64 * (most as f64 / least as f64).powf(rng.random::<f64>());
    let whole = if bytes >= GB { (bytes / GB).round() * GB } else { bytes };
    (whole as u64).clamp(least, most)
}

/// How often each data set is read: sums of Zipf's weights up to each.
struct Likes(Vec<f64>);

impl Likes {
    fn new(of: &DataOptions) -> Self {
        let mut sum = 0.0;
        let sums = (1..=of.sets).map(|rank| {
            sum += f64::from(rank).powf(-of.skew);
            sum
        });
        Likes(sums.collect())
    }

    fn draw(&self, rng: &mut ChaCha8Rng) -> usize {
        let at = rng.random::<f64>() * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum <= at).min(self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cluster, generate, profile};

    fn drawn(seed: u64) -> Workload {
        let file = generate::load("data").expect("built in");
        let cluster = cluster::load(&file.cluster).expect("built in");
        let profiles = profile::load(&file.profiles).expect("built in");
        generate::generate(&cluster, &profiles, &WorkloadOptions { seed, ..file.options }).expect("sound")
    }

    #[test]
    fn every_job_reads_a_data_set_of_its_class_and_few_are_read_most() {
        let workload = drawn(3);
        for job in &workload.jobs {
            let set = &workload.datasets[job.dataset.expect("every class has data").index()];
            assert!(set.name.starts_with(&job.profile.class), "{} reads {}", job.profile.name, set.name);
        }
        let reads = |name: &str| {
            let reads = |set: &Dataset| set.name == name;
            workload
                .jobs
                .iter()
                .filter(|j| reads(&workload.datasets[j.dataset.expect("one").index()]))
                .count()
        };
        let (most, rare) = (reads("vision-1"), reads("vision-10"));
        assert!(
            most > 2 * rare,
            "{most} jobs read the first, {rare} the last: three times as many on average"
        );
    }

    #[test]
    fn sizes_are_within_their_bounds_and_jobs_are_the_same_without_data() {
        let workload = drawn(7);
        let vision = workload.datasets.iter().filter(|set| set.name.starts_with("vision"));
        let sizes: Vec<u64> = vision.map(|set| set.bytes / 1_000_000_000).collect();
        assert!(sizes.iter().all(|gb| (500..=1500).contains(gb)), "{sizes:?}");
        assert!(sizes.iter().any(|gb| *gb < 800) && sizes.iter().any(|gb| *gb > 1000), "{sizes:?}");
        let file = generate::load("data").expect("built in");
        let cluster = cluster::load("data").expect("built in");
        let profiles = profile::load("synergy").expect("built in");
        let options = WorkloadOptions { seed: 7, data: Vec::new(), ..file.options };
        let bare = generate::generate(&cluster, &profiles, &options).expect("sound");
        assert_eq!(bare.truths, workload.truths);
        assert!(bare.datasets.is_empty() && bare.jobs.iter().all(|job| job.dataset.is_none()));
    }
}
