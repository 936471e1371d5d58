//! A trace like another: arrivals, GPU counts and durations are fitted to a given one.
//!
//! - **Arrivals.** Every gap of the given trace belongs to a regime, by how fast jobs came around it. The drawn trace goes through the
//!   regimes in the given order, so that days, weekends and bursts stay, and draws each gap from all gaps of its regime.
//! - **GPUs**, tenants and ends: as often as in the given trace, together.
//! - **Durations** are drawn from those of jobs with the same number of GPUs, between neighbours on a log scale: the law is the
//!   given one, the values are new.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rota_core::cluster::Cluster;
use rota_core::workload::{RecordedEnd, Workload};

use super::draws::{self, Purpose};
use crate::error::InputError;
use crate::format::{Account, Accounts, Setting};
use crate::speeds::Speeds;

/// Gaps on either side that say how fast jobs come.
const NEIGHBOURS: usize = 16;
/// Gaps on either side count as alike within a factor of the square root of 2.
const REGIMES_PER_DOUBLING: f64 = 2.0;

/// What was found in a trace.
pub struct Fit {
    /// The regime of each gap, in order.
    regimes: Vec<u8>,
    /// Gaps in seconds, ascending, by regime.
    gaps_s: BTreeMap<u8, Vec<f64>>,
    /// GPUs, tenant and end of each job.
    jobs: Vec<(u32, String, RecordedEnd)>,
    /// Durations in seconds, ascending, by number of GPUs.
    durations_s: BTreeMap<u32, Vec<f64>>,
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
        let mut fit = Fit {
            regimes: Vec::new(),
            gaps_s: BTreeMap::new(),
            jobs: Vec::new(),
            durations_s: BTreeMap::new(),
        };
        for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
            let rate = speeds.fair_rate(job) * truth.pace;
            if rate > 0.0 {
                let tenant = workload.tenants.get(job.tenant.index()).cloned().unwrap_or_default();
                fit.jobs.push((job.gpus.asked, tenant, truth.end));
                fit.durations_s.entry(job.gpus.asked).or_default().push(truth.work / rate);
            }
        }
        let gaps = gaps_s(workload);
        for (at, gap) in gaps.iter().enumerate() {
            let around = &gaps[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(gaps.len())];
            let mean = around.iter().sum::<f64>() / around.len() as f64;
            let regime = (REGIMES_PER_DOUBLING * (1.0 + mean).log2()) as u8;
            fit.regimes.push(regime);
            fit.gaps_s.entry(regime).or_default().push(*gap);
        }
        for values in fit.gaps_s.values_mut().chain(fit.durations_s.values_mut()) {
            values.sort_by(f64::total_cmp);
        }
        match fit.jobs.is_empty() {
            true => Err(InputError::expected("trace", "jobs that can run on the cluster")),
            false => Ok(fit),
        }
    }

    /// Draws a trace. Models are drawn from the profiles, as for logs that name none; jobs larger than the cluster are drawn again.
    pub fn draw(&self, setting: &Setting<'_>, options: LikeOptions) -> Result<Workload, InputError> {
        let (cluster, seed) = (setting.cluster, setting.options.seed);
        let fits = |(gpus, ..): &&(u32, String, RecordedEnd)| *gpus <= cluster.n_gpus();
        let known: Vec<_> = self.jobs.iter().filter(fits).collect();
        if known.is_empty() {
            return Err(InputError::expected("cluster", "room for at least one job of the trace"));
        }
        let n_jobs = options.jobs.unwrap_or(self.jobs.len());
        let mut rngs = [Purpose::Arrivals, Purpose::Gpus, Purpose::Durations].map(|p| draws::stream(seed, p));
        let [arrivals, gpus_rng, lengths] = &mut rngs;
        let mut now_s = 0.0;
        let mut drawn = Vec::with_capacity(n_jobs);
        for number in 0..n_jobs {
            if number > 0 {
                let regime = self.regimes[(number - 1) % self.regimes.len()];
                now_s += between(&self.gaps_s[&regime], arrivals, |gap| gap, |gap| gap);
            }
            let (gpus, tenant, ended) = known[gpus_rng.random_range(0..known.len())];
            let duration_s = between(&self.durations_s[gpus], lengths, f64::ln, f64::exp);
            drawn.push((now_s, *gpus, tenant, *ended, duration_s));
        }
        let faster = options.load.map_or(Ok(1.0), |load| {
            let gpu_s: f64 =
                drawn.iter().map(|(_, gpus, _, _, duration_s)| f64::from(*gpus) * duration_s).sum();
            let offered = gpu_s / (f64::from(cluster.n_gpus()) * now_s);
            match load > 0.0 && load.is_finite() && offered.is_finite() {
                true => Ok(load / offered),
                false => Err(InputError::expected("options", "a number greater than 0")
                    .at_name("load")
                    .got(load.to_string())),
            }
        })?;
        let mut accounts = Accounts::default();
        for (number, (at_s, gpus, tenant, ended, duration_s)) in drawn.into_iter().enumerate() {
            accounts.add(&Account {
                name: &(number + 1).to_string(),
                tenant,
                submitted_s: at_s / faster,
                duration_s,
                gpus: f64::from(gpus),
                gpu_type: None,
                ended,
                line: 0,
            });
        }
        Ok(accounts.finish(setting, Vec::new())?.workload)
    }
}

/// A value between two neighbours of an ascending list, on the scale of `to`.
fn between(ascending: &[f64], rng: &mut ChaCha8Rng, to: fn(f64) -> f64, back: fn(f64) -> f64) -> f64 {
    let place = rng.random::<f64>() * (ascending.len() - 1) as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    if below == above { below } else { back(to(below) + (to(above) - to(below)) * place.fract()) }
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
