//! Chronus' traces: strict, soft and best-effort jobs with deadlines relative to the submission, in minutes.
//!
//! Chronus only uses durations, so a job's profile is plain and its work is its duration.

use rota_core::job::Deadline;
use rota_core::time::Time;

use super::{Head, Imported, LeftOut, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::{Row, Rows, UniqueNames, parse_time};
use crate::source::Source;

/// Strict and soft deadlines in a column of their own.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["submit_time", "expect_time_list"])
}

/// Reads a trace in minutes, as the published ones are.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    read_in_units(source, setting, 60.0)
}

/// Reads a trace in seconds, as ElasticFlow's port has it.
pub fn read_seconds(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    read_in_units(source, setting, 1.0)
}

/// Reads a trace whose unit of time is so many seconds.
pub fn read_in_units(source: &Source, setting: &Setting<'_>, unit_s: f64) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    let [job_id, submit, duration, gpus, times, values] =
        ["job_id", "submit_time", "duration", "num_gpu", "expect_time_list", "expect_value_list"]
            .map(|name| rows.need(&[name]));
    let (job_id, submit, duration, gpus, times, values) =
        (job_id?, submit?, duration?, gpus?, times?, values?);
    let (user, model, best_effort) =
        (rows.find(&["user"]), rows.find(&["model_name"]), rows.need(&["best_effort"])?);
    let mut models = Models::new(setting);
    let mut names = UniqueNames::default();
    let mut list = JobList::default();
    let mut filtered = LeftOut::default();
    let dropped = rows.each(setting.bad_rows, |row| {
        if row.text(gpus) == "0" {
            filtered.count("asks for no GPU", row.line);
            return Ok(());
        }
        let profile = models.plain(row.maybe(model).map_or("", |(_, name)| name));
        let (arrival, work) = (row.time(submit, unit_s)?, row.run_time(duration)? * unit_s);
        let mut spec = JobList::plain(names.take(row, job_id)?, profile, row.gpus(gpus)?, work, arrival);
        if row.text(best_effort) != "1" {
            spec.deadline = deadline(row, times, values, arrival, unit_s)?;
        }
        spec.tenant = list.tenant(row.maybe(user).map_or("", |(_, name)| name));
        list.at_line(row.line);
        list.push(spec, work);
        Ok(())
    })?;
    Ok(Imported { dropped, filtered, ..Imported::of(list) })
}

/// One time is a strict deadline; several with their values are the steps of a soft one.
fn deadline(
    row: &Row<'_>,
    times: usize,
    values: usize,
    arrival: Time,
    unit_s: f64,
) -> Result<Deadline, InputError> {
    let after = |text: &str| parse_time(text, unit_s).map(|after| arrival + (after - Time::ZERO));
    let ends: Option<Vec<Time>> = row.text(times).split('-').map(after).collect();
    let ends = ends
        .filter(|ends| ends.windows(2).all(|pair| pair[0] < pair[1]))
        .ok_or_else(|| row.expected(times, "ascending times after the submission, as in 159-189-229"))?;
    if let [only] = ends[..] {
        return Ok(Deadline::Strict(only));
    }
    let worth: Option<Vec<f64>> = row.text(values).split('-').map(|v| v.parse().ok()).collect();
    let worth = worth.filter(|worth| worth.len() == ends.len() && worth.iter().all(|v| v.is_finite()));
    let worth = worth.ok_or_else(|| row.expected(values, format!("{} values, as in 10-8-5", ends.len())))?;
    Ok(Deadline::Soft(ends.into_iter().zip(worth).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_test_support::need;

    const HEAD: &str = "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n";

    #[test]
    fn minutes_become_seconds_and_steps_soft_deadlines() {
        let (cluster, profiles) = built_in("default", "synergy");
        let rows = "0,u,1,10,5530,vgg16,96,5,159-189,10-8,0,soft\n1,u,2,11,760,alexnet,106,6,235,10,0,strict\n2,u,1,12,1,vgg16,5,1,12,10,1,best\n3,u,0,13,1,vgg16,5,1,12,10,0,strict\n";
        let read = read(&Source::new("c.csv", format!("{HEAD}{rows}")), &Setting::new(&cluster, &profiles))
            .expect("sound");
        let jobs = &read.workload.jobs;
        let minute = |n: i64| Time(n * 60_000_000);
        assert_eq!(jobs[0].deadline, Deadline::Soft(vec![(minute(169), 10.0), (minute(199), 8.0)]));
        assert_eq!(jobs[1].deadline, Deadline::Strict(minute(246)));
        assert_eq!((&jobs[2].deadline, jobs.len(), read.filtered.n_rows()), (&Deadline::None, 3, 1));
        assert!((jobs[0].estimated_work / jobs[0].fair_rate(&cluster) - 96.0 * 60.0).abs() < 1e-9);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            message(read, "c.csv", &format!("{HEAD}0,u,1,10,1,vgg16,96,5,189-159,10-8,0,soft\n")),
            "c.csv:2, column 9 (expect_time_list): got \"189-159\", expected ascending times after the submission, as in 159-189-229"
        );
        assert_eq!(
            message(read, "c.csv", &format!("{HEAD}0,u,1,10,1,vgg16,96,5,159-189,10,0,soft\n")),
            "c.csv:2, column 10 (expect_value_list): got \"10\", expected 2 values, as in 10-8-5"
        );
    }

    #[test]
    fn the_public_traces_have_the_published_counts() {
        let Some(folder) = need::shared_path("traces/philly-chronus") else { return };
        let (cluster, profiles) = built_in("default", "synergy");
        let source = Source::open(&folder.join("trace_job_Philly_MIX2.csv")).expect("readable");
        let read = read(&source, &Setting::new(&cluster, &profiles)).expect("sound");
        let n_filtered = read.filtered.n_rows();
        assert_eq!(read.workload.jobs.len() as u64 + n_filtered, 30_940);
        let soft = read.workload.jobs.iter().filter(|j| matches!(j.deadline, Deadline::Soft(_))).count();
        assert!((18_000..=18_525).contains(&soft), "{soft} of 18,525 less those without GPUs");
    }
}
