//! What pictures of a trace show: when jobs arrive in the day and in the week, how durations and GPU counts are distributed, what a
//! cluster would be asked for over time.

use rota_core::workload::Workload;
use time::OffsetDateTime;

use super::demand::Demand;

/// Points of a curve over time.
const N_TIMES: usize = 400;
/// Points of a distribution.
const N_POINTS: usize = 200;

/// A trace as curves.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Look {
    /// Whether the trace has dates, so that hours and weekdays are those of the calendar; otherwise they count from its first arrival.
    pub has_dates: bool,
    /// Arrivals in an hour, on average, for each hour of the day.
    pub per_hour_by_hour: Vec<f64>,
    /// Arrivals in an hour, on average, for each day of the week, from Monday (or from the day of the first arrival).
    pub per_hour_by_weekday: Vec<f64>,
    /// Durations in seconds with the part of the jobs that are not longer.
    pub durations: Vec<(f64, f64)>,
    /// GPU counts with the part of the jobs that ask for no more.
    pub gpus: Vec<(f64, f64)>,
    /// Seconds since the first arrival, with GPUs asked for on average from there on.
    pub demand: Vec<(f64, f64)>,
}

impl Look {
    /// Of jobs that take so many seconds each; `begins_s` is the date of time 0 in seconds since 1970.
    pub fn of(workload: &Workload, durations_s: &[f64], begins_s: Option<i64>) -> Self {
        let arrivals: Vec<f64> = workload.jobs.iter().map(|job| job.arrival.as_secs_f64()).collect();
        let clock = Clock::new(begins_s, arrivals.first().copied().unwrap_or(0.0));
        let (mut by_hour, mut by_weekday) = ([0.0; 24], [0.0; 7]);
        for arrival_s in &arrivals {
            let (hour, weekday) = clock.read(*arrival_s);
            by_hour[hour] += 1.0;
            by_weekday[weekday] += 1.0;
        }
        let (mut hours_by_hour, mut hours_by_weekday) = ([0.0; 24], [0.0; 7]);
        if let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) {
            clock.each_hour(*first, *last, |hour, weekday, hours| {
                hours_by_hour[hour] += hours;
                hours_by_weekday[weekday] += hours;
            });
        }
        // A whole hour at least: one job in a minute does not make sixty an hour.
        let rate = |(n, hours): (&f64, &f64)| n / f64::max(*hours, 1.0);
        let demand = Demand::of(workload, durations_s).means(N_TIMES);
        let first_s = arrivals.first().copied().unwrap_or(0.0);
        Look {
            has_dates: begins_s.is_some(),
            per_hour_by_hour: by_hour.iter().zip(&hours_by_hour).map(rate).collect(),
            per_hour_by_weekday: by_weekday.iter().zip(&hours_by_weekday).map(rate).collect(),
            durations: distribution(durations_s.iter().copied().filter(|s| s.is_finite()).collect()),
            gpus: distribution(workload.jobs.iter().map(|job| f64::from(job.gpus.asked)).collect()),
            demand: demand.into_iter().map(|(time_s, gpus)| (time_s - first_s, gpus)).collect(),
        }
    }
}

/// Turns times of a trace into hours and weekdays.
struct Clock {
    zero_s: f64,
}

impl Clock {
    /// Monday is day 0. Without a date, the first arrival is on a Monday at midnight.
    fn new(begins_s: Option<i64>, first_s: f64) -> Self {
        let of_date = |begins_s: i64| {
            let date = OffsetDateTime::from_unix_timestamp(begins_s).ok()?;
            let monday = f64::from(date.weekday().number_days_from_monday());
            Some(monday * 86_400.0 + (begins_s.rem_euclid(86_400)) as f64)
        };
        Clock { zero_s: begins_s.and_then(of_date).unwrap_or(-first_s) }
    }

    fn read(&self, time_s: f64) -> (usize, usize) {
        let clock_s = (self.zero_s + time_s).rem_euclid(7.0 * 86_400.0);
        let hours = (clock_s / 3_600.0) as usize;
        (hours % 24, (hours / 24).min(6))
    }

    /// Every hour of the clock from one time to another, with how much of it lies between them.
    fn each_hour(&self, from_s: f64, to_s: f64, mut seen: impl FnMut(usize, usize, f64)) {
        // A trace of more than a century is not looked at hour by hour.
        let to_s = to_s.min(from_s + 100.0 * 366.0 * 86_400.0);
        let mut at_s = from_s;
        while at_s < to_s {
            let into_hour_s = (self.zero_s + at_s).rem_euclid(3_600.0);
            let next_s = (at_s + (3_600.0 - into_hour_s).max(1e-3)).min(to_s);
            let (hour, weekday) = self.read((at_s + next_s) / 2.0);
            seen(hour, weekday, (next_s - at_s) / 3_600.0);
            at_s = next_s;
        }
    }
}

/// Values with the part that is not larger, thinned to a curve that keeps its ends.
fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let share = (index + 1) as f64 / n as f64;
        match points.last_mut() {
            Some(last) if last.0 == *value => last.1 = share,
            _ => points.push((*value, share)),
        }
    }
    if points.len() <= N_POINTS {
        return points;
    }
    // Evenly in the part of the jobs, so that the curve has no long straight pieces.
    let mut thinned = vec![points[0]];
    for at in 1..N_POINTS {
        let share = at as f64 / (N_POINTS - 1) as f64;
        let point = points[points.partition_point(|point| point.1 < share).min(points.len() - 1)];
        if thinned.last() != Some(&point) {
            thinned.push(point);
        }
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, pollux, rota};
    use crate::source::Source;

    #[test]
    fn arrivals_are_counted_by_the_calendar_where_there_is_one() {
        let (cluster, profiles) = built_in("small", "synergy");
        // A Monday at 07:30, the same day at 07:45, and a Tuesday at 09:00.
        let text = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:30:00,60,1,60,a\n\
            2017-10-09 07:45:00,60,2,60,a\n2017-10-10 09:00:00,120,1,60,a\n";
        let read =
            pollux::read(&Source::new("p.csv", text), &Setting::new(&cluster, &profiles)).expect("sound");
        let look = Look::of(&read.workload, &[60.0, 60.0, 120.0], read.begins_s);
        assert!(look.has_dates);
        assert_eq!(
            look.per_hour_by_hour[7],
            2.0 / 1.5,
            "half of the hour on Monday, the whole of it on Tuesday"
        );
        assert_eq!((look.per_hour_by_hour[8], look.per_hour_by_weekday[0]), (0.0, 2.0 / 16.5));
        assert_eq!(look.durations, [(60.0, 2.0 / 3.0), (120.0, 1.0)]);
        assert_eq!(look.gpus, [(1.0, 2.0 / 3.0), (2.0, 1.0)]);
    }

    #[test]
    fn without_dates_days_begin_with_the_first_arrival() {
        let (cluster, profiles) = built_in("small", "synergy");
        let text = "job_id,arrival_s,gpus,duration_s\na,500,1,60\nb,4200,1,60\n";
        let read =
            rota::read(&Source::new("r.csv", text), &Setting::new(&cluster, &profiles)).expect("sound");
        let look = Look::of(&read.workload, &[60.0, 60.0], read.begins_s);
        assert!(!look.has_dates);
        assert_eq!((look.per_hour_by_hour[0], look.per_hour_by_hour[1]), (1.0, 1.0));
        assert_eq!(look.demand[0].0, 0.0);
    }

    #[test]
    fn long_distributions_keep_their_ends() {
        let points = distribution((1..=10_000).map(f64::from).collect());
        assert_eq!((points.len(), points[0].0, points[N_POINTS - 1]), (N_POINTS, 1.0, (10_000.0, 1.0)));
    }
}
