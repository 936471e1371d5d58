//! A trace like another: arrivals, GPU counts and durations are fitted to a given one.
//!
//! The given trace is cut into stretches of [`STRETCH`] jobs. Gaps between arrivals, and jobs, are drawn from their own stretch, each
//! once: days, weekends, bursts and the work that comes at a time stay, on which queues depend; which job comes when does not. Model,
//! GPUs, tenant and end of a job stay together. Gaps are moved towards their neighbours by size and durations scattered by [`SCATTER`]: the
//! laws stay, the values are new.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::time::Time;
use rota_core::workload::{RecordedEnd, Truth, Workload};

use super::draws::{self, Purpose};
use crate::error::InputError;
use crate::format::Setting;
use crate::jobs::JobList;
use crate::speeds::Speeds;

/// Jobs that change places with each other.
const STRETCH: usize = 16;
/// Deviation of the logarithm of a duration from that of the given job.
const SCATTER: f64 = 0.1;

/// What was found in a trace.
pub struct Fit {
    /// Seconds between arrivals, in order.
    gaps_s: Vec<f64>,
    /// Jobs in the order of their arrival.
    jobs: Vec<Given>,
}

/// A job of the given trace.
struct Given {
    spec: Arc<JobSpec>,
    tenant: String,
    ended: RecordedEnd,
    duration_s: f64,
}

/// What shall differ from the given trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct LikeOptions {
    /// How many jobs; `None` is as many as given.
    pub jobs: Option<usize>,
    /// Work offered as a part of what the cluster can do while jobs arrive; `None` keeps the speed of arrivals.
    pub load: Option<f64>,
}

impl Fit {
    /// Looks at a trace; durations count at the proportional share of the cluster.
    pub fn of(workload: &Workload, cluster: &Cluster) -> Result<Self, InputError> {
        if workload.jobs.len() < 2 {
            return Err(InputError::expected("trace", "at least two jobs to fit to"));
        }
        let mut speeds = Speeds::new(cluster);
        let mut fit = Fit { gaps_s: gaps_s(workload), jobs: Vec::new() };
        for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
            let rate = speeds.fair_rate(job) * truth.pace;
            if rate > 0.0 {
                fit.jobs.push(Given {
                    spec: Arc::clone(job),
                    tenant: workload.tenants.get(job.tenant.index()).cloned().unwrap_or_default(),
                    ended: truth.end,
                    duration_s: truth.work / rate,
                });
            }
        }
        match fit.jobs.is_empty() {
            true => Err(InputError::expected("trace", "jobs that can run on the cluster")),
            false => Ok(fit),
        }
    }

    /// Draws a trace. Jobs larger than the cluster are left out. Fewer jobs than given are taken evenly from all of them, more go through
    /// them again.
    pub fn draw(&self, setting: &Setting<'_>, options: LikeOptions) -> Result<Workload, InputError> {
        let (cluster, seed) = (setting.cluster, setting.options.seed);
        let known: Vec<&Given> = self
            .jobs
            .iter()
            .filter(|job| job.spec.gpus.asked <= cluster.n_gpus_of(job.spec.gpu_type))
            .collect();
        if known.is_empty() {
            return Err(InputError::expected("cluster", "room for at least one job of the trace"));
        }
        let n_jobs = options.jobs.unwrap_or(known.len());
        let mut rngs = [Purpose::Arrivals, Purpose::Gpus, Purpose::Durations].map(|p| draws::stream(seed, p));
        let [arrivals, order, lengths] = &mut rngs;
        let arrivals_s = self.arrivals_s(n_jobs, arrivals);
        let mut drawn: Vec<&Given> =
            (0..n_jobs).map(|number| known[place(number, n_jobs, known.len(), order)]).collect();
        drawn.chunks_mut(STRETCH).for_each(|stretch| stretch.shuffle(order));
        let durations_s: Vec<f64> = drawn.iter().map(|job| scattered(job.duration_s, lengths)).collect();
        let faster = options.load.map_or(Ok(1.0), |load| {
            let gpu_s: f64 =
                drawn.iter().zip(&durations_s).map(|(job, s)| f64::from(job.spec.gpus.asked) * s).sum();
            let span_s = arrivals_s.last().copied().unwrap_or(0.0);
            let offered = gpu_s / (f64::from(cluster.n_gpus()) * span_s);
            match load > 0.0 && load.is_finite() && offered.is_finite() {
                true => Ok(load / offered),
                false => Err(InputError::expected("options", "a number greater than 0")
                    .at_name("load")
                    .got(load.to_string())),
            }
        })?;
        let mut speeds = Speeds::new(cluster);
        let mut list = JobList::default();
        for (number, (job, duration_s)) in drawn.into_iter().zip(durations_s).enumerate() {
            let arrival = Time::from_secs_f64(arrivals_s[number] / faster);
            let (name, given) = ((number + 1).to_string(), &job.spec);
            let mut spec = JobList::plain(&name, given.profile.clone(), given.gpus.asked, 0.0, arrival);
            (spec.batch, spec.gpus, spec.gpu_type) = (given.batch, given.gpus.clone(), given.gpu_type);
            spec.tenant = list.tenant(&job.tenant);
            let work = speeds.iterations(&spec, duration_s)?;
            spec.estimated_work = work;
            list.push_with(spec, Truth { end: job.ended, ..Truth::of(work) });
        }
        Ok(list.finish())
    }

    /// When jobs come, in seconds after the first.
    fn arrivals_s(&self, n_jobs: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let n_gaps = n_jobs.saturating_sub(1);
        let mut gaps_s: Vec<f64> =
            (0..n_gaps).map(|number| self.gaps_s[place(number, n_gaps, self.gaps_s.len(), rng)]).collect();
        for stretch in gaps_s.chunks_mut(STRETCH) {
            stretch.sort_by(f64::total_cmp);
            let moved: Vec<f64> = (0..stretch.len()).map(|at| around(stretch, at, rng)).collect();
            stretch.copy_from_slice(&moved);
            stretch.shuffle(rng);
        }
        let sum_up = |now_s: &mut f64, gap_s: f64| {
            *now_s += gap_s;
            Some(*now_s)
        };
        std::iter::once(0.0).chain(gaps_s).scan(0.0, sum_up).take(n_jobs).collect()
    }
}

/// Which of `n_given` belongs to number `number` of `n`: one of those that it stands for, in their order; all of them again where there
/// are fewer.
fn place(number: usize, n: usize, n_given: usize, rng: &mut ChaCha8Rng) -> usize {
    if n >= n_given {
        return number % n_given;
    }
    let (from, to) = (number * n_given / n, (number + 1) * n_given / n);
    rng.random_range(from..to.max(from + 1))
}

/// A value half-way at most to the neighbours of the one at a place of an ascending list.
fn around(ascending: &[f64], at: usize, rng: &mut ChaCha8Rng) -> f64 {
    let value = ascending[at];
    let way = rng.random::<f64>() - 0.5;
    let towards = if way < 0.0 { at.checked_sub(1) } else { Some(at + 1) };
    let neighbour = towards.and_then(|at| ascending.get(at)).copied().unwrap_or(value);
    value + (neighbour - value) * way.abs()
}

/// A duration near a given one, which it is on average.
fn scattered(duration_s: f64, rng: &mut ChaCha8Rng) -> f64 {
    let z: f64 = StandardNormal.sample(rng);
    duration_s * (SCATTER * z - SCATTER * SCATTER / 2.0).exp()
}

fn gaps_s(workload: &Workload) -> Vec<f64> {
    workload.jobs.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival).as_secs_f64()).collect()
}

/// How far two traces are apart, as Kolmogorov and Smirnov measure it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Of durations at the proportional share.
    pub durations: f64,
    /// Of times between arrivals.
    pub gaps: f64,
    /// Of GPU counts.
    pub gpus: f64,
    /// What a two-sample test allows at the level of 5 %.
    pub allowed: f64,
}

/// Compares two traces.
pub fn distance(a: &Workload, b: &Workload, cluster: &Cluster) -> Distance {
    let durations = |workload: &Workload| {
        let mut speeds = Speeds::new(cluster);
        let jobs = workload.jobs.iter().zip(&workload.truths);
        jobs.map(|(job, truth)| truth.work / (speeds.fair_rate(job) * truth.pace)).collect::<Vec<_>>()
    };
    let gpus =
        |workload: &Workload| workload.jobs.iter().map(|job| f64::from(job.gpus.asked)).collect::<Vec<_>>();
    let (n, m) = (a.jobs.len() as f64, b.jobs.len() as f64);
    Distance {
        durations: kolmogorov_smirnov(durations(a), durations(b)),
        gaps: kolmogorov_smirnov(gaps_s(a), gaps_s(b)),
        gpus: kolmogorov_smirnov(gpus(a), gpus(b)),
        allowed: 1.358 * ((n + m) / (n * m)).sqrt(),
    }
}

/// The largest difference of the two distribution functions.
fn kolmogorov_smirnov(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (mut i, mut j, mut most) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        i += a[i..].iter().take_while(|x| **x <= value).count();
        j += b[j..].iter().take_while(|x| **x <= value).count();
        most = most.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::pollux;
    use crate::format::tests::built_in;
    use crate::generate::{WorkloadOptions, generate};
    use crate::source::Source;
    use crate::stats::stats;
    use rota_test_support::need;

    #[test]
    fn the_distance_of_two_samples_agrees_with_one_computed_by_hand() {
        assert_eq!(kolmogorov_smirnov(vec![1.0, 2.0, 3.0, 4.0], vec![1.0, 2.0, 3.0, 4.0]), 0.0);
        assert_eq!(kolmogorov_smirnov(vec![1.0, 1.0, 1.0, 5.0], vec![5.0, 6.0]), 0.75);
        assert_eq!(kolmogorov_smirnov(vec![1.0, 2.0], vec![3.0]), 1.0);
    }

    #[test]
    fn the_load_is_the_one_asked_for_and_seeds_decide_everything() {
        let (cluster, profiles) = built_in("small", "synergy");
        let options = WorkloadOptions { jobs: Some(500), multi_gpu: true, ..WorkloadOptions::default() };
        let given = generate(&cluster, &profiles, &options).expect("drawn");
        let fit = Fit::of(&given, &cluster).expect("enough jobs");
        let setting = Setting::new(&cluster, &profiles);
        let asked = LikeOptions { jobs: Some(2_000), load: Some(0.8) };
        let drawn = fit.draw(&setting, asked).expect("drawn");
        assert_eq!((drawn.jobs.len(), drawn.check()), (2_000, Ok(())));
        assert!((stats(&drawn, &cluster).offered_load - 0.8).abs() < 0.01);
        let again = fit.draw(&setting, asked).expect("drawn");
        assert_eq!(drawn.jobs, again.jobs);
    }

    #[test]
    fn a_trace_like_philly_passes_the_two_sample_test() {
        let Some(path) = need::shared_path("traces/philly-pollux/philly.csv") else { return };
        let (cluster, profiles) = built_in("philly", "synergy");
        let setting = Setting::new(&cluster, &profiles);
        let given = pollux::read(&Source::open(&path).expect("readable"), &setting).expect("sound").workload;
        let drawn = Fit::of(&given, &cluster)
            .and_then(|fit| fit.draw(&setting, LikeOptions::default()))
            .expect("drawn");
        let apart = distance(&given, &drawn, &cluster);
        assert!(
            apart.durations < apart.allowed && apart.gaps < apart.allowed && apart.gpus < apart.allowed,
            "{apart:?}"
        );
    }
}
