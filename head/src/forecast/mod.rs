//! Forecasts: the present state simulated ahead under a policy, several times with other errors of the estimates, so that every job
//! that waits has a start that is expected and a spread.
//!
//! `ahead` is one run. It knows what the head knows: what runs where, how far it is, and estimates. What it cannot know, jobs that
//! will be submitted and nodes that will fail, it leaves out, so a spread is one of estimates. Runs are made in a process that can be
//! killed, as all decisions are (`decider`).

mod ahead;

pub use ahead::{AheadRules, Errors, Seen, look_ahead};

use std::collections::BTreeMap;

use rota_core::ids::JobId;
use rota_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// The part of cases in which the real time is meant to lie in the spread.
pub const COVERAGE: f64 = 0.9;
/// The most points of a curve.
const MOST_POINTS: usize = 200;

/// What a forecast is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastSettings {
    /// How rounds are held, and how far ahead is looked.
    pub rules: AheadRules,
    /// How far estimates are off.
    pub errors: Errors,
    /// How many runs.
    pub n_seeds: u32,
}

/// A time with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// As often earlier as later.
    pub median: Time,
    /// Seldom earlier.
    pub low: Time,
    /// Seldom later; none if it may be beyond the horizon.
    pub high: Option<Time>,
}

/// What is expected of a job that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobForecast {
    /// When it starts; none if it seldom does within the horizon.
    pub start: Option<Spread>,
    /// When it ends; none if it seldom does within the horizon.
    pub end: Option<Spread>,
    /// In how many runs it started.
    pub n_started: u32,
}

/// A value at a time: median, low and high.
pub type Point = (Time, u32, u32, u32);

/// The present state, simulated ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// From when on.
    pub made_at: Time,
    /// Until then.
    pub until: Time,
    /// Runs that it is made of.
    pub n_seeds: u32,
    /// How far estimates were taken to be off.
    pub errors: Errors,
    /// Jobs that waited.
    pub jobs: BTreeMap<JobId, JobForecast>,
    /// GPUs in use.
    pub busy: Vec<Point>,
    /// Jobs that wait.
    pub waiting: Vec<Point>,
}

impl Forecast {
    /// What several runs have in common.
    pub fn of(made_at: Time, settings: &ForecastSettings, runs: &[Seen]) -> Self {
        let until = runs.iter().map(|run| run.until).max().unwrap_or(made_at);
        let mut starts: BTreeMap<JobId, (Vec<Time>, Vec<Time>)> = BTreeMap::new();
        for run in runs {
            for job in &run.waited {
                starts.entry(*job).or_default();
            }
            for (job, at) in &run.starts {
                starts.entry(*job).or_default().0.push(*at);
            }
            for (job, at) in &run.ends {
                starts.entry(*job).or_default().1.push(*at);
            }
        }
        let of_job = |(job, (starts, ends)): (JobId, (Vec<Time>, Vec<Time>))| {
            let n_started = starts.len() as u32;
            let spread = |times| spread(made_at, settings, times, runs.len());
            (job, JobForecast { start: spread(starts), end: spread(ends), n_started })
        };
        let curve = |samples: fn(&Seen) -> &[(Time, u32)]| curve(made_at, until, runs, samples);
        Forecast {
            made_at,
            until,
            n_seeds: runs.len() as u32,
            errors: settings.errors,
            jobs: starts.into_iter().map(of_job).collect(),
            busy: curve(|run| &run.busy),
            waiting: curve(|run| &run.waiting),
        }
    }
}

/// The spread of the times of some runs; those in which it did not come count as later than all.
fn spread(made_at: Time, settings: &ForecastSettings, mut times: Vec<Time>, n_runs: usize) -> Option<Spread> {
    times.sort_unstable();
    let at = |part: f64| -> Option<Time> {
        let rank = (part * n_runs.saturating_sub(1) as f64).round() as usize;
        times.get(rank).copied()
    };
    let tail = (1.0 - COVERAGE) / 2.0;
    let (median, low) = (at(0.5)?, at(tail)?);
    let slack = settings.rules.slack(median - made_at);
    let high = at(1.0 - tail).map(|high| high + slack);
    Some(Spread { median, low: (low - slack).max(made_at), high })
}

/// Values at some times, over all runs.
fn curve(made_at: Time, until: Time, runs: &[Seen], samples: fn(&Seen) -> &[(Time, u32)]) -> Vec<Point> {
    let length = (until - made_at).0.max(0);
    if runs.is_empty() || length == 0 {
        return Vec::new();
    }
    let n_points = MOST_POINTS.min(runs.iter().map(|run| samples(run).len()).max().unwrap_or(0).max(2));
    let point = |index: usize| {
        let at = made_at + Span((length as i128 * index as i128 / (n_points as i128 - 1)) as i64);
        let mut values: Vec<u32> = runs
            .iter()
            .map(|run| {
                let samples = samples(run);
                let after = samples.partition_point(|(time, _)| *time <= at);
                after.checked_sub(1).and_then(|last| samples.get(last)).map_or(0, |(_, value)| *value)
            })
            .collect();
        values.sort_unstable();
        let of = |part: f64| values[(part * (values.len() - 1) as f64).round() as usize];
        (at, of(0.5), of(0.05), of(0.95))
    };
    (0..n_points).map(point).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rota_core::simulation::{RunSettings, simulate};
    use rota_core::workload::{Truth, Workload};
    use rota_scripts::sample::{self, Size};
    use rota_scripts::{Limits, ScriptPolicy};

    use super::ahead::really;
    use super::*;

    /// The engine's own runs, with real work drawn as a forecast assumes it, but from other seeds: how many of the jobs that wait
    /// start within their spreads, of how many.
    fn covered(policy: &str, seed: u64) -> (usize, usize) {
        let snapshot = sample::snapshot(Size { n_nodes: 3, n_old: 0, n_new: 40 + seed as u32 });
        let errors = Errors { profiled: 0.3, guessed: 0.3 };
        let rules = AheadRules {
            is_on_grid: true,
            next_round: Some(snapshot.now),
            ..AheadRules::every(snapshot.round)
        };
        let settings = ForecastSettings { rules, errors, n_seeds: 24 };
        let load = || ScriptPolicy::load(policy, Limits::default()).expect("shipped");
        let ahead = |seed: u32| {
            look_ahead(&snapshot, &mut load(), &rules, errors, u64::from(seed), || false).expect("decided")
        };
        let runs: Vec<Seen> = (0..settings.n_seeds).map(ahead).collect();
        let made = Forecast::of(snapshot.now, &settings, &runs);
        let mut jobs: Vec<_> =
            (0..snapshot.jobs.len()).map(|row| Arc::clone(snapshot.jobs.spec(row))).collect();
        jobs.sort_by_key(|job| job.id);
        let truth = |job: &Arc<rota_core::job::JobSpec>| {
            Truth::of(really(job.estimated_work, 0.0, 0.3, 1_000_000 + seed, job.id))
        };
        let truths = jobs.iter().map(truth).collect();
        let tenants = snapshot.tenants.to_vec();
        let workload = Arc::new(Workload { jobs, truths, tenants, datasets: Vec::new() });
        let run = RunSettings { round: snapshot.round, ..RunSettings::default() };
        let cluster = Arc::clone(&snapshot.cluster);
        let ledger = simulate(cluster, workload, Vec::new(), &mut load(), &run, &mut |_| ()).expect("runs");
        let (mut n_within, mut n_cases) = (0, 0);
        for (job, forecast) in &made.jobs {
            let (Some(real), Some(start)) = (ledger.outcomes[job.index()].start, forecast.start) else {
                continue;
            };
            n_cases += 1;
            n_within += usize::from(start.low <= real && start.high.is_none_or(|high| real <= high));
        }
        (n_within, n_cases)
    }

    #[test]
    fn in_twenty_runs_of_the_engine_real_starts_lie_in_their_spreads() {
        for policy in ["fifo+proportional", "srtf+proportional"] {
            let all: Vec<_> = (0..10).map(|seed| covered(policy, seed)).collect();
            let (n_within, n_cases) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            assert!(n_cases > 200, "{policy}: {n_cases}");
            let part = n_within as f64 / n_cases as f64;
            assert!(part >= 0.8, "{policy}: {n_within} of {n_cases} start within their spreads: {all:?}");
        }
    }

    fn settings() -> ForecastSettings {
        let rules = AheadRules { horizon: Span::from_secs(1_000), ..AheadRules::every(Span::from_secs(60)) };
        ForecastSettings { rules, errors: Errors { profiled: 0.1, guessed: 0.3 }, n_seeds: 4 }
    }

    fn run(start_s: Option<i64>) -> Seen {
        let at = |s| Time(s * 1_000_000);
        Seen {
            waited: vec![JobId(1)],
            starts: start_s.map(|s| (JobId(1), at(s))).into_iter().collect(),
            ends: Vec::new(),
            busy: vec![(Time::ZERO, 4), (at(100), 8)],
            waiting: vec![(Time::ZERO, 1)],
            until: at(1_000),
        }
    }

    #[test]
    fn the_spread_reaches_from_early_to_late_runs_and_has_no_end_if_some_do_not_come_to_it() {
        let made =
            Forecast::of(Time::ZERO, &settings(), &[Some(300), Some(100), Some(200), Some(400)].map(run));
        let start = made.jobs[&JobId(1)].start.expect("it starts");
        assert!(start.low <= Time(100_000_000) && start.high >= Some(Time(400_000_000)), "{start:?}");
        assert!((Time(200_000_000)..=Time(300_000_000)).contains(&start.median), "{start:?}");
        let seldom = Forecast::of(Time::ZERO, &settings(), &[Some(300), Some(100), Some(200), None].map(run));
        let seldom = &seldom.jobs[&JobId(1)];
        assert_eq!((seldom.start.expect("mostly").high, seldom.n_started), (None, 3));
        let never = Forecast::of(Time::ZERO, &settings(), &[None, None, None, Some(5)].map(run));
        assert_eq!(never.jobs[&JobId(1)].start, None);
        assert_eq!(made.busy.first().map(|point| point.1), Some(4));
        assert_eq!(made.busy.last().map(|point| point.1), Some(8));
    }
}
