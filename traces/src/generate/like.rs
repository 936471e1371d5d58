//! A trace like another: arrivals, GPU counts and durations are fitted to a given one.
//!
//! - **Arrivals.** Every gap of the given trace belongs to a regime, by how fast jobs came around it. The drawn trace goes through the
//!   regimes in the given order, so that days, weekends and bursts stay, and takes the gaps of each regime in random order.
//! - **Jobs.** GPU count, tenant, end and duration stay together. The given trace is cut into windows of time, and the jobs of a
//!   window come in random order: what is asked for changes over weeks and days (bursts are mostly short jobs), and a law for the
//!   whole trace would put long jobs into bursts and let queues grow that the given trace does not have.
//! - Gaps and durations are new values, between those of neighbours in length.
//!
//! Every gap and every job is taken once before any is taken again, so that laws and totals are the given ones with any seed.

use std::collections::BTreeMap;

use rand::RngExt;
use rota_core::cluster::Cluster;
use rota_core::workload::{RecordedEnd, Workload};

use super::deck::Deck;
use super::draws::{self, Purpose};
use crate::error::InputError;
use crate::format::{Account, Accounts, Setting};
use crate::speeds::Speeds;

/// Gaps on either side that say how fast jobs come.
const NEIGHBOURS: usize = 16;
/// Gaps on either side count as alike within a factor of the square root of 2.
const REGIMES_PER_DOUBLING: f64 = 2.0;
/// Length of a window. On Philly, windows of 2 hours to 3 days keep the average completion times within 10 %; with a week, fifo's is 20 %
/// longer. A day does not follow single series of jobs.
const WINDOW_S: f64 = 86_400.0;
/// A drawn duration is at most so many times as long as the given one, or as short: among the few jobs with 128 GPUs, the neighbour
/// in length may be ten times as long.
const MOST_STRETCH: f64 = 1.1;

/// What was found in a trace.
pub struct Fit {
    /// The regime of each gap, in order.
    regimes: Vec<u8>,
    /// Gaps by regime, each with what it may become.
    gaps_s: BTreeMap<u8, Vec<Range>>,
    /// The window of each job, in order of arrival.
    windows: Vec<usize>,
    /// The jobs of each window.
    jobs: Vec<Vec<Shape>>,
}

/// A value may become any between these.
type Range = (f64, f64);

/// What is drawn together.
#[derive(Clone, Debug)]
struct Shape {
    gpus: u32,
    tenant: String,
    end: RecordedEnd,
    duration_s: Range,
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
        let mut fit =
            Fit { regimes: Vec::new(), gaps_s: BTreeMap::new(), windows: Vec::new(), jobs: Vec::new() };
        fit.look_at_gaps(&gaps_s(workload));
        fit.look_at_jobs(workload, cluster);
        match fit.jobs.iter().all(Vec::is_empty) {
            true => Err(InputError::expected("trace", "jobs that can run on the cluster")),
            false => Ok(fit),
        }
    }

    fn look_at_gaps(&mut self, gaps: &[f64]) {
        let mut by_regime: BTreeMap<u8, Vec<f64>> = BTreeMap::new();
        for (at, gap) in gaps.iter().enumerate() {
            let around = &gaps[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(gaps.len())];
            let mean = around.iter().sum::<f64>() / around.len() as f64;
            let regime = (REGIMES_PER_DOUBLING * (1.0 + mean).log2()) as u8;
            self.regimes.push(regime);
            by_regime.entry(regime).or_default().push(*gap);
        }
        for (regime, mut gaps) in by_regime {
            gaps.sort_by(f64::total_cmp);
            let halfway = |a: f64, b: f64| f64::midpoint(a, b);
            let ranges = gaps.iter().map(|gap| between_neighbours(&gaps, *gap, halfway)).collect();
            self.gaps_s.insert(regime, ranges);
        }
    }

    fn look_at_jobs(&mut self, workload: &Workload, cluster: &Cluster) {
        let mut speeds = Speeds::new(cluster);
        let lengths = workload.jobs.iter().zip(&workload.truths).map(|(job, truth)| {
            let rate = speeds.fair_rate(job) * truth.pace;
            if rate > 0.0 { truth.work / rate } else { 0.0 }
        });
        let lengths: Vec<f64> = lengths.collect();
        let mut ascending: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (job, length_s) in workload.jobs.iter().zip(&lengths).filter(|(_, length_s)| **length_s > 0.0) {
            ascending.entry(job.gpus.asked).or_default().push(*length_s);
        }
        ascending.values_mut().for_each(|lengths| lengths.sort_by(f64::total_cmp));
        let first_s = workload.jobs.first().map_or(0.0, |job| job.arrival.as_secs_f64());
        let mut number_of: BTreeMap<u64, usize> = BTreeMap::new();
        for ((job, truth), length_s) in workload.jobs.iter().zip(&workload.truths).zip(lengths) {
            let of_time = ((job.arrival.as_secs_f64() - first_s) / WINDOW_S) as u64;
            let n_windows = number_of.len();
            let window = *number_of.entry(of_time).or_insert(n_windows);
            self.windows.push(window);
            self.jobs.resize_with(number_of.len(), Vec::new);
            if length_s <= 0.0 {
                continue;
            }
            let alike = &ascending[&job.gpus.asked];
            let (low, high) = between_neighbours(alike, length_s, |a, b| (a * b).sqrt());
            self.jobs[window].push(Shape {
                gpus: job.gpus.asked,
                tenant: workload.tenants.get(job.tenant.index()).cloned().unwrap_or_default(),
                end: truth.end,
                duration_s: (low.max(length_s / MOST_STRETCH), high.min(length_s * MOST_STRETCH)),
            });
        }
    }

    /// Draws a trace. Models are drawn from the profiles, as for logs that name none; jobs larger than the cluster are not drawn.
    pub fn draw(&self, setting: &Setting<'_>, options: LikeOptions) -> Result<Workload, InputError> {
        let cluster = setting.cluster;
        let n_jobs = options.jobs.unwrap_or(self.windows.len());
        let drawn = self.draw_jobs(n_jobs, setting)?;
        let last_s = drawn.last().map_or(0.0, |(at_s, ..)| *at_s);
        let faster = options.load.map_or(Ok(1.0), |load| {
            let gpu_s: f64 =
                drawn.iter().map(|(_, shape, duration_s)| f64::from(shape.gpus) * duration_s).sum();
            let offered = gpu_s / (f64::from(cluster.n_gpus()) * last_s);
            match load > 0.0 && load.is_finite() && offered.is_finite() {
                true => Ok(load / offered),
                false => Err(InputError::expected("options", "a number greater than 0")
                    .at_name("load")
                    .got(load.to_string())),
            }
        })?;
        let mut accounts = Accounts::default();
        for (number, (at_s, shape, duration_s)) in drawn.into_iter().enumerate() {
            accounts.add(&Account {
                name: &(number + 1).to_string(),
                tenant: &shape.tenant,
                submitted_s: at_s / faster,
                duration_s,
                gpus: f64::from(shape.gpus),
                gpu_type: None,
                ended: shape.end,
                line: 0,
            });
        }
        Ok(accounts.finish(setting, Vec::new())?.workload)
    }

    /// The job of the given trace that job `number` of `n_jobs` stands for. A longer trace begins again with the first; a shorter one goes
    /// through all of the given one in steps, so that laws stay the given ones.
    fn place(&self, number: usize, n_jobs: usize) -> usize {
        let n_given = self.windows.len();
        match n_jobs < n_given {
            true => (number as u128 * n_given as u128 / n_jobs as u128) as usize,
            false => number % n_given,
        }
    }

    /// Arrival, shape and duration of each job.
    fn draw_jobs(&self, n_jobs: usize, setting: &Setting<'_>) -> Result<Vec<(f64, &Shape, f64)>, InputError> {
        let seed = setting.options.seed;
        let mut rngs = [Purpose::Arrivals, Purpose::Gpus, Purpose::Durations].map(|p| draws::stream(seed, p));
        let [arrivals, order, lengths] = &mut rngs;
        let mut gaps: BTreeMap<u8, Deck<&Range>> =
            self.gaps_s.iter().map(|(regime, gaps)| (*regime, gaps.iter().collect())).collect();
        let can_run = |shape: &&Shape| shape.gpus <= setting.cluster.n_gpus();
        let mut windows: Vec<Deck<&Shape>> =
            self.jobs.iter().map(|jobs| jobs.iter().filter(can_run).collect()).collect();
        // For windows of which no job can run.
        let mut all: Deck<&Shape> = self.jobs.iter().flatten().filter(can_run).collect();
        let mut now_s = 0.0;
        let mut drawn = Vec::with_capacity(n_jobs);
        for number in 0..n_jobs {
            let place = self.place(number, n_jobs);
            if number > 0 {
                let regime = self.regimes[place.saturating_sub(1)];
                now_s += gaps
                    .get_mut(&regime)
                    .and_then(|gaps| gaps.deal(arrivals))
                    .map_or(0.0, |(low, high)| low + (high - low) * arrivals.random::<f64>());
            }
            let shape = windows[self.windows[place]].deal(order).or_else(|| all.deal(order));
            let Some(shape) = shape else {
                return Err(InputError::expected("cluster", "room for at least one job of the trace"));
            };
            let (low, high) = shape.duration_s;
            drawn.push((now_s, shape, low * (high / low).powf(lengths.random::<f64>())));
        }
        Ok(drawn)
    }
}

/// From halfway to the next smaller value to halfway to the next larger one, in an ascending list; a value that is there more than once
/// stays.
fn between_neighbours(ascending: &[f64], value: f64, halfway: fn(f64, f64) -> f64) -> Range {
    let first = ascending.partition_point(|other| *other < value);
    let behind = ascending.partition_point(|other| *other <= value);
    if behind > first + 1 {
        return (value, value);
    }
    let to = |neighbour: Option<&f64>| neighbour.map_or(value, |other| halfway(value, *other));
    (to(ascending[..first].last()), to(ascending.get(behind)))
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
    fn values_move_halfway_to_their_neighbours_and_repeated_ones_stay() {
        let near = |value| between_neighbours(&[1.0, 3.0, 3.0, 7.0, 9.0], value, f64::midpoint);
        assert_eq!(
            [near(1.0), near(3.0), near(7.0), near(9.0)],
            [(1.0, 2.0), (3.0, 3.0), (5.0, 8.0), (8.0, 9.0)]
        );
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
        let fit = Fit::of(&given, &cluster).expect("enough jobs");
        for seed in 1..=5 {
            let options = WorkloadOptions { seed, ..WorkloadOptions::default() };
            let setting = Setting { options, ..setting.clone() };
            let drawn = fit.draw(&setting, LikeOptions::default()).expect("drawn");
            let apart = distance(&given, &drawn, &cluster);
            assert!(
                apart.durations < apart.allowed && apart.gaps < apart.allowed && apart.gpus < apart.allowed,
                "seed {seed}: {apart:?}"
            );
            let hours = |workload: &Workload| stats(workload, &cluster).gpu_hours;
            assert!((hours(&drawn) / hours(&given) - 1.0).abs() < 0.01, "GPU time is the given one");
            let options = LikeOptions { jobs: Some(8_000), load: None };
            let short = fit.draw(&setting, options).expect("drawn");
            let apart = distance(&given, &short, &cluster);
            assert!(
                apart.durations < apart.allowed && apart.gaps < apart.allowed && apart.gpus < apart.allowed,
                "8,000 jobs, seed {seed}: {apart:?}"
            );
            assert_ne!(drawn.truths[..100], given.truths[..100], "the jobs are new ones");
        }
    }
}
