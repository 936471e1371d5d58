//! What a workload is like, in numbers: as data, not as text.

mod demand;
mod look;

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::job::{Deadline, JobSpec};
use rota_core::workload::{RecordedEnd, Truth, Workload};

use crate::speeds::Speeds;

pub use demand::{Above, Demand};
pub use look::Look;

/// A workload in numbers.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Jobs in all.
    pub n_jobs: usize,
    /// From the first arrival to the last, seconds.
    pub span_s: f64,
    /// GPU time asked for at the proportional share, hours.
    pub gpu_hours: f64,
    /// Of the cluster's GPU time between the first and the last arrival, the share asked for; infinite when all
    /// arrive at once.
    pub offered_load: f64,
    /// Run times at the proportional share, seconds.
    pub duration_s: Summary,
    /// Times between arrivals, seconds.
    pub gap_s: Summary,
    /// Jobs by GPU count.
    pub by_gpus: BTreeMap<u32, Group>,
    /// Jobs by model.
    pub by_model: BTreeMap<String, Group>,
    /// Jobs by tenant.
    pub by_tenant: BTreeMap<String, Group>,
    /// Jobs that may run with several GPU counts.
    pub n_elastic: usize,
    /// Jobs with a strict deadline.
    pub n_strict: usize,
    /// Jobs with soft deadlines.
    pub n_soft: usize,
    /// Data sets that the jobs read.
    pub n_datasets: usize,
    /// Jobs by how they ended where the trace comes from; empty where it does not say.
    pub by_end: BTreeMap<String, Group>,
}

/// Count and size of a part of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Group {
    /// Jobs of this group.
    pub n_jobs: usize,
    /// GPU time they ask for at the proportional share, hours.
    pub gpu_hours: f64,
}

/// A distribution; all zero when there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Average.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Half are below.
    pub median: f64,
    /// Nine of ten are below.
    pub p90: f64,
    /// 99 of a hundred are below.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Counts and measures a workload for a cluster.
pub fn stats(workload: &Workload, cluster: &Cluster) -> Stats {
    let mut stats =
        Stats { n_jobs: workload.jobs.len(), n_datasets: workload.datasets.len(), ..Stats::default() };
    let durations = durations_s(workload, cluster);
    for ((job, truth), duration_s) in workload.jobs.iter().zip(&workload.truths).zip(&durations) {
        let gpu_hours = duration_s * f64::from(job.gpus.asked) / 3_600.0;
        stats.gpu_hours += gpu_hours;
        stats.by_gpus.entry(job.gpus.asked).or_default().add(gpu_hours);
        let tenant = workload.tenants.get(job.tenant.index()).map_or("?", String::as_str);
        let end = if truth.end == RecordedEnd::Unknown { "not known" } else { truth.end.word() };
        for (groups, name) in [
            (&mut stats.by_model, job.profile.name.as_str()),
            (&mut stats.by_tenant, tenant),
            (&mut stats.by_end, end),
        ] {
            match groups.get_mut(name) {
                Some(group) => group.add(gpu_hours),
                None => groups.entry(name.to_owned()).or_default().add(gpu_hours),
            }
        }
        stats.n_elastic += usize::from(!job.gpus.levels.is_empty());
        stats.n_strict += usize::from(matches!(job.deadline, Deadline::Strict(_)));
        stats.n_soft += usize::from(matches!(job.deadline, Deadline::Soft(_)));
    }
    if workload.truths.iter().all(|truth| truth.end == RecordedEnd::Unknown) {
        stats.by_end.clear();
    }
    let arrivals: Vec<f64> = workload.jobs.iter().map(|j| j.arrival.as_secs_f64()).collect();
    stats.span_s = arrivals.last().zip(arrivals.first()).map_or(0.0, |(last, first)| last - first);
    stats.offered_load = stats.gpu_hours / (f64::from(cluster.n_gpus()) * stats.span_s / 3_600.0);
    stats.duration_s = Summary::of(durations);
    stats.gap_s = Summary::of(arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect());
    stats
}

/// Run times at the proportional share, seconds, by job; infinite for a job that cannot run.
pub fn durations_s(workload: &Workload, cluster: &Cluster) -> Vec<f64> {
    let mut speeds = Speeds::new(cluster);
    let jobs = workload.jobs.iter().zip(&workload.truths);
    let duration_s = |(job, truth): (&Arc<JobSpec>, &Truth)| {
        let rate = speeds.fair_rate(job) * truth.pace;
        if rate > 0.0 { truth.work / rate } else { f64::INFINITY }
    };
    jobs.map(duration_s).collect()
}

impl Group {
    fn add(&mut self, gpu_hours: f64) {
        self.n_jobs += 1;
        self.gpu_hours += gpu_hours;
    }
}

impl Summary {
    /// Of all the values; percentiles lie linearly between neighbours.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let [min, .., max] = values[..] else {
            return values.first().map_or_else(Summary::default, |only| Summary {
                mean: *only,
                min: *only,
                median: *only,
                p90: *only,
                p99: *only,
                max: *only,
            });
        };
        let at = |share: f64| {
            let place = share * (values.len() - 1) as f64;
            let (below, above) = (values[place.floor() as usize], values[place.ceil() as usize]);
            if below == above { below } else { below + (above - below) * place.fract() }
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Summary { mean, min, median: at(0.5), p90: at(0.9), p99: at(0.99), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, pollux, rota};
    use crate::source::Source;
    use rota_test_support::need;

    #[test]
    fn a_small_workload_is_counted() {
        let (cluster, profiles) = built_in("small", "synergy");
        let text = "job_id,arrival_s,gpus,duration_s,tenant,model,deadline_s,gpu_levels\n\
            a,0,1,3600,x,gnmt,,\nb,1800,4,7200,y,gnmt,9999,1-2-4\nc,3600,1,3600,x,,8000:2|9000:1,\n";
        let workload = rota::read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles))
            .expect("sound")
            .workload;
        let stats = stats(&workload, &cluster);
        assert!((stats.gpu_hours - 10.0).abs() < 1e-9);
        assert!((stats.offered_load - 10.0 / 32.0).abs() < 1e-9);
        assert_eq!((stats.n_elastic, stats.n_strict, stats.n_soft), (1, 1, 1));
        assert_eq!(
            stats.by_gpus.iter().map(|(g, group)| (*g, group.n_jobs)).collect::<Vec<_>>(),
            [(1, 2), (4, 1)]
        );
        assert_eq!(stats.by_tenant["x"].n_jobs, 2);
        assert_eq!(stats.by_model["plain"].n_jobs, 1);
        assert_eq!((stats.gap_s.median, stats.span_s), (1_800.0, 3_600.0));
    }

    #[test]
    fn percentiles_lie_between_neighbours() {
        let summary = Summary::of((0..=100).rev().map(f64::from).collect());
        assert_eq!(
            (summary.min, summary.median, summary.p90, summary.p99, summary.max),
            (0.0, 50.0, 90.0, 99.0, 100.0)
        );
        assert_eq!(Summary::of(vec![1.0, 2.0]).median, 1.5);
        assert_eq!(Summary::of(vec![7.0]).p99, 7.0);
        assert_eq!(Summary::of(Vec::new()), Summary::default());
    }

    #[test]
    fn philly_has_its_published_durations() {
        let Some(path) = need::shared_path("traces/philly-pollux/philly.csv") else { return };
        let (cluster, profiles) = built_in("philly", "synergy");
        let workload =
            pollux::read(&Source::open(&path).expect("readable"), &Setting::new(&cluster, &profiles))
                .expect("sound")
                .workload;
        let stats = stats(&workload, &cluster);
        assert_eq!(stats.gpu_hours.round(), 978_078.0);
        let rounded = [stats.duration_s.median, stats.duration_s.mean, stats.duration_s.max].map(f64::round);
        assert_eq!(rounded, [1_144.0, 13_136.0, 4_628_226.0]);
        assert!((0.5..1.0).contains(&stats.offered_load), "{}", stats.offered_load);
    }
}
