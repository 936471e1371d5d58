//! Philly, one row for each job, as Pollux's authors extracted it: submission date, duration, GPUs, virtual cluster.
//!
//! The log does not say what the jobs trained, so models are drawn from the profile set by the seed. Time starts at 0
//! with the first submission; rows come in any order.

use rota_core::time::Time;

use super::{Head, Imported, Setting};
use crate::dates;
use crate::error::InputError;
use crate::generate::elasticflow::Templates;
use crate::jobs::JobList;
use crate::rows::Rows;
use crate::source::Source;
use crate::speeds::Speeds;

struct Submission {
    submitted_s: i64,
    duration_s: f64,
    gpus: u32,
    tenant: rota_core::ids::TenantId,
    line: u64,
}

/// Dates, durations and GPUs.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["timestamp", "duration", "num_gpus"])
}

/// Reads the extract.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let [timestamp, duration, gpus] =
        [["timestamp"], ["duration"], ["num_gpus"]].map(|names| rows.need(&names));
    let (timestamp, duration, gpus) = (timestamp?, duration?, gpus?);
    let cluster = rows.find(&["cluster"]);
    let mut list = JobList::default();
    let mut submissions = Vec::new();
    let dropped = rows.each(setting.bad_rows, |row| {
        let date = dates::parse(row.text(timestamp));
        submissions.push(Submission {
            submitted_s: date.ok_or_else(|| row.expected(timestamp, "a date such as 2017-10-09 07:01:55"))?,
            duration_s: row.run_time(duration)?,
            gpus: row.gpus(gpus)?,
            tenant: list.tenant(row.maybe(cluster).map_or("", |(_, name)| name)),
            line: row.line,
        });
        Ok(())
    })?;
    submissions.sort_by_key(|s| s.submitted_s);
    let first_s = submissions.first().map_or(0, |s| s.submitted_s);
    let mut templates = Templates::new(setting.profiles, setting.cluster, setting.options.seed)?;
    let mut speeds = Speeds::new(setting.cluster);
    for submission in submissions {
        let arrival = Time((submission.submitted_s - first_s) * 1_000_000);
        // The log has no ids: the line is what a reader can look up.
        let mut spec = templates.draw_job(&submission.line.to_string(), submission.gpus, arrival);
        spec.tenant = submission.tenant;
        let work = speeds.iterations(&spec, submission.duration_s)?;
        spec.estimated_work = work;
        list.at_line(submission.line);
        list.push(spec, work);
    }
    let remarks = vec![format!("models were drawn with seed {}", setting.options.seed)];
    Ok(Imported { dropped, remarks, begins_s: Some(first_s), ..Imported::of(list) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_test_support::need;

    #[test]
    fn jobs_are_sorted_and_start_at_zero() {
        let (cluster, profiles) = built_in("philly", "synergy");
        let text = "timestamp,duration,num_gpus,gpu_time,cluster\n\
            2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,2,2951.0,6214e9\n";
        let workload = read(&Source::new("p.csv", text), &Setting::new(&cluster, &profiles))
            .expect("an extract")
            .workload;
        let (first, second) = (&workload.jobs[0], &workload.jobs[1]);
        assert_eq!((&*first.name, first.gpus.asked, first.arrival), ("3", 2, Time::ZERO));
        assert_eq!(second.arrival, Time::from_secs_f64(2_932.0));
        assert_eq!(workload.tenants, ["11cb48", "6214e9"]);
        let duration_s = first.estimated_work / first.fair_rate(&cluster);
        assert!((duration_s - 2_951.0).abs() < 1e-6, "{duration_s}");
    }

    #[test]
    fn mistakes_are_named() {
        let head = "timestamp,duration,num_gpus,gpu_time,cluster\n";
        assert_eq!(
            message(read, "p.csv", &format!("{head}yesterday,66.0,1,66.0,a\n")),
            "p.csv:2, column 1 (timestamp): got \"yesterday\", expected a date such as 2017-10-09 07:01:55"
        );
        assert_eq!(
            message(read, "p.csv", &format!("{head}2017-10-09 07:01:55,0,1,66.0,a\n")),
            "p.csv:2, column 2 (duration): got \"0\", expected a length of time greater than 0"
        );
    }

    #[test]
    fn the_public_extract_has_the_published_counts() {
        let Some(path) = need::shared_path("traces/philly-pollux/philly.csv") else { return };
        let (cluster, profiles) = built_in("philly", "synergy");
        let workload = read(&Source::open(&path).expect("readable"), &Setting::new(&cluster, &profiles))
            .expect("sound")
            .workload;
        assert_eq!((workload.jobs.len(), workload.tenants.len()), (82_247, 15));
        let count = |n| workload.jobs.iter().filter(|j| j.gpus.asked == n).count();
        let counts = [1, 2, 4, 8, 12, 16, 24, 32, 64, 128].map(count);
        assert_eq!(counts, [76_627, 1_818, 1_870, 1_643, 7, 199, 7, 67, 6, 3]);
        let gpu_hours: f64 = workload
            .jobs
            .iter()
            .map(|j| j.estimated_work / j.fair_rate(&cluster) * f64::from(j.gpus.asked) / 3_600.0)
            .sum();
        assert_eq!(gpu_hours.round(), 978_078.0);
        assert_eq!(workload.check(), Ok(()));
    }
}
