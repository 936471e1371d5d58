//! Philly's job log (`cluster_job_log`, JSON): attempts with their machines, cut down by Synergy's rules.
//!
//! The log does not say what the jobs trained: models follow the split of the options. Drawing durations or arrivals
//! instead of taking the log's is done by `generate::redraw`, as for every other trace.

use std::borrow::Cow;

use rota_core::time::Time;
use rota_core::workload::{RecordedEnd, Truth};
use serde::Deserialize;

use super::accounts::premature;
use super::{Head, Imported, LeftOut, Setting};
use crate::dates;
use crate::error::InputError;
use crate::generate::synergy::ModelMix;
use crate::generate::{Origin, PhillyRules};
use crate::jobs::JobList;
use crate::rows::{BadRows, DroppedRow};
use crate::source::Source;
use crate::speeds::Speeds;

#[derive(Deserialize)]
struct LoggedJob<'t> {
    #[serde(borrow, default)]
    vc: Cow<'t, str>,
    #[serde(borrow)]
    jobid: Cow<'t, str>,
    #[serde(borrow)]
    submitted_time: Cow<'t, str>,
    #[serde(borrow, default)]
    status: Cow<'t, str>,
    attempts: Vec<Attempt<'t>>,
}

#[derive(Deserialize)]
struct Attempt<'t> {
    #[serde(borrow)]
    start_time: Option<Cow<'t, str>>,
    #[serde(borrow)]
    end_time: Option<Cow<'t, str>>,
    #[serde(default)]
    detail: Vec<Machine>,
}

#[derive(Deserialize)]
struct Machine {
    gpus: Vec<serde::de::IgnoredAny>,
}

/// An entry of which it is only known that it is JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry<'t> {
    Job(#[serde(borrow)] LoggedJob<'t>),
    Other(serde::de::IgnoredAny),
}

/// What a job comes to under the rules.
struct Kept {
    gpus: u32,
    duration_s: f64,
}

/// A JSON list, not an object.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.is_json && !head.text.starts_with('{')
}

/// Reads the log.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let mut imported = Imported::default();
    let entries = entries(source, setting.bad_rows)?;
    let mut jobs = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        match timed(source, index, entry) {
            Ok((submitted_s, job)) => jobs.push((index as u64 + 1, submitted_s, job)),
            Err(reason) if setting.bad_rows.are_left_out() => {
                imported.dropped.push(DroppedRow { line: index as u64 + 1, reason });
            }
            Err(reason) => return Err(reason),
        }
    }
    jobs.retain(|(line, _, job)| {
        let has_run = !job.attempts.is_empty();
        if !has_run {
            imported.filtered.count("was never started", *line);
        }
        has_run
    });
    jobs.sort_by_key(|(_, submitted_s, _)| *submitted_s);
    let first_s = jobs.first().map_or(0, |(_, submitted_s, _)| *submitted_s);
    let list = keep(source, setting, &jobs, first_s, &mut imported.filtered)?;
    (imported.workload, imported.lines.0) = list.finish_with_lines();
    // With hours cut out, time 0 is that of the first job that is kept.
    imported.begins_s = setting.options.philly.hours.is_none().then_some(first_s);
    imported
        .remarks
        .push(format!("models were drawn by the split of classes with seed {}", setting.options.seed));
    imported.remarks.extend(premature(&imported.workload.truths));
    Ok(imported)
}

fn entries<'t>(source: &'t Source, mode: BadRows) -> Result<Vec<Entry<'t>>, InputError> {
    let wrong = |e: serde_json::Error| {
        let text = e.to_string();
        let reason = text.split(" at line ").next().unwrap_or(&text);
        let what = format!("a list of jobs in JSON, but: {reason}");
        InputError::expected(&source.name, what).at_line(e.line() as u64).at_column(e.column() as u64)
    };
    match mode {
        BadRows::Skip | BadRows::List => serde_json::from_str(&source.text).map_err(wrong),
        BadRows::Refuse => {
            let jobs: Vec<LoggedJob<'_>> = serde_json::from_str(&source.text).map_err(wrong)?;
            Ok(jobs.into_iter().map(Entry::Job).collect())
        }
    }
}

/// A job with its submission in seconds.
fn timed<'e, 't>(
    source: &Source,
    index: usize,
    entry: &'e Entry<'t>,
) -> Result<(i64, &'e LoggedJob<'t>), InputError> {
    let Entry::Job(job) = entry else {
        let what = "a job with jobid, submitted_time and attempts";
        return Err(InputError::expected(&source.name, what).at_name(format!("job number {}", index + 1)));
    };
    let submitted_s = dates::parse(&job.submitted_time)
        .ok_or_else(|| not_a_date(source, job, "submitted_time", &job.submitted_time))?;
    Ok((submitted_s, job))
}

fn not_a_date(source: &Source, job: &LoggedJob<'_>, field: &str, value: &str) -> InputError {
    let what = "a date such as 2017-10-09 07:01:55";
    InputError::expected(&source.name, what).at_name(format!("{field} of job {}", job.jobid)).got(value)
}

fn keep(
    source: &Source,
    setting: &Setting<'_>,
    jobs: &[(u64, i64, &LoggedJob<'_>)],
    first_s: i64,
    filtered: &mut LeftOut,
) -> Result<JobList, InputError> {
    let rules = &setting.options.philly;
    let mut models = ModelMix::new(setting.profiles, &setting.options)?;
    let mut speeds = Speeds::new(setting.cluster);
    let mut list = JobList::default();
    let mut begin_s = rules.hours.is_none().then_some(first_s);
    for (line, submitted_s, job) in jobs {
        let hour = (submitted_s - first_s) as f64 / 3_600.0;
        let verdict = match rules.hours {
            Some((from, to)) if hour <= from || hour >= to => Err("outside the hours asked for"),
            _ => judge(source, setting, job)?,
        };
        match verdict {
            Err(rule) => filtered.count(rule, *line),
            Ok(kept) => {
                let begin_s = *begin_s.get_or_insert(*submitted_s);
                let arrival = Time((submitted_s - begin_s) * 1_000_000);
                let mut spec = JobList::plain(&job.jobid, models.next(), kept.gpus, 0.0, arrival);
                let work = speeds.whole_iterations(&spec, kept.duration_s)?;
                spec.estimated_work = work;
                spec.tenant = list.tenant(&job.vc);
                let truth =
                    Truth { end: end_of(job), attempts: job.attempts.len() as u32, ..Truth::of(work) };
                list.at_line(*line);
                list.push_with(spec, truth);
            }
        }
    }
    Ok(list)
}

fn end_of(job: &LoggedJob<'_>) -> RecordedEnd {
    match &*job.status {
        "Pass" => RecordedEnd::Passed,
        "Failed" => RecordedEnd::Failed,
        "Killed" => RecordedEnd::Killed,
        _ => RecordedEnd::Unknown,
    }
}

/// Adds up a job's attempts. The last attempt decides the job's GPUs, and whether it is kept at all.
fn judge(
    source: &Source,
    setting: &Setting<'_>,
    job: &LoggedJob<'_>,
) -> Result<Result<Kept, &'static str>, InputError> {
    let options = &setting.options;
    let PhillyRules { shortest_s, longest_s, .. } = options.philly;
    let mut duration_s = 0.0;
    let mut last = Err("no attempt");
    for attempt in &job.attempts {
        last = match attempt_seconds(source, job, attempt)? {
            None => Err("the last attempt has no times"),
            Some(seconds) => gpus_of(attempt, options.multi_gpu, options.durations).and_then(|gpus| {
                if seconds > 0 { Ok((gpus, seconds)) } else { Err("the last attempt took no time") }
            }),
        }
        .map(|(gpus, seconds)| {
            duration_s += seconds as f64;
            gpus
        });
    }
    Ok(last.and_then(|gpus| {
        if duration_s > shortest_s && duration_s < longest_s {
            Ok(Kept { gpus, duration_s })
        } else {
            Err("too short or too long")
        }
    }))
}

fn attempt_seconds(
    source: &Source,
    job: &LoggedJob<'_>,
    attempt: &Attempt<'_>,
) -> Result<Option<i64>, InputError> {
    let time = |field: &str, text: &Option<Cow<'_, str>>| match text.as_deref() {
        None | Some("None" | "") => Ok(None),
        Some(text) => dates::parse(text).map(Some).ok_or_else(|| not_a_date(source, job, field, text)),
    };
    let (start, end) = (time("start_time", &attempt.start_time)?, time("end_time", &attempt.end_time)?);
    Ok(start.zip(end).map(|(start, end)| end - start))
}

/// GPUs of an attempt. Odd counts become one when durations are drawn (the original's rule), and are left out otherwise.
fn gpus_of(attempt: &Attempt<'_>, multi_gpu: bool, durations: Origin) -> Result<u32, &'static str> {
    let gpus: usize = attempt.detail.iter().map(|machine| machine.gpus.len()).sum();
    match (gpus, multi_gpu, durations) {
        (0, ..) => Err("the last attempt held no GPU"),
        (_, false, _) => Ok(1),
        (1 | 2 | 4 | 8 | 16, true, _) => Ok(gpus as u32),
        (17.., true, _) => Err("more than 16 GPUs"),
        (_, true, Origin::Drawn) => Ok(1),
        (_, true, Origin::Trace) => Err("a GPU count other than 1, 2, 4, 8, 16"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use crate::generate::WorkloadOptions;
    use rota_test_support::need;

    fn job(id: &str, submitted: &str, attempts: &[(&str, &str, usize)]) -> String {
        let attempts: Vec<_> = attempts
            .iter()
            .map(|(start, end, gpus)| {
                let gpus = vec!["\"g\""; *gpus].join(",");
                format!("{{\"start_time\": {start}, \"end_time\": {end}, \"detail\": [{{\"ip\": \"m\", \"gpus\": [{gpus}]}}]}}")
            })
            .collect();
        format!(
            "{{\"vc\": \"v\", \"jobid\": \"{id}\", \"submitted_time\": \"{submitted}\", \"status\": \"Killed\", \"attempts\": [{}]}}",
            attempts.join(",")
        )
    }

    const DAY: &str = "\"2017-08-01 00:00:00\"";
    const HOUR_LATER: &str = "\"2017-08-01 01:00:00\"";

    fn read_log(jobs: &[String], options: WorkloadOptions) -> Imported {
        let (cluster, profiles) = built_in("default", "synergy");
        let source = Source::new("log.json", format!("[{}]", jobs.join(",")));
        read(&source, &Setting { options, ..Setting::new(&cluster, &profiles) }).expect("sound")
    }

    #[test]
    fn attempts_add_up_and_the_last_one_decides() {
        let jobs = [
            job("two", "2017-08-01 00:00:10", &[(DAY, HOUR_LATER, 2), (DAY, HOUR_LATER, 2)]),
            job("lost", "2017-08-01 00:00:00", &[(DAY, HOUR_LATER, 2), ("null", HOUR_LATER, 2)]),
            job("short", "2017-08-01 00:00:00", &[(DAY, DAY, 2)]),
            job("odd", "2017-08-01 00:00:00", &[(DAY, HOUR_LATER, 3)]),
            job("none", "2017-07-01 00:00:00", &[]),
        ];
        let multi = WorkloadOptions { multi_gpu: true, ..WorkloadOptions::default() };
        let read = read_log(&jobs, multi.clone());
        let names: Vec<_> = read.workload.jobs.iter().map(|j| &*j.name).collect();
        assert_eq!((names, read.filtered.n_rows()), (vec!["two"], 4));
        let only = &read.workload.jobs[0];
        assert_eq!(
            (only.gpus.asked, only.arrival),
            (2, Time::from_secs_f64(10.0)),
            "time counts from the first job with attempts"
        );
        let truth = &read.workload.truths[0];
        assert_eq!((truth.end, truth.attempts), (RecordedEnd::Killed, 2));
        assert_eq!(only.estimated_work, (7_200.0f64 / 0.6).floor(), "alexnet comes first");
        let drawn = read_log(&jobs, WorkloadOptions { durations: Origin::Drawn, ..multi });
        assert_eq!(
            drawn.workload.jobs.iter().map(|j| (&*j.name, j.gpus.asked)).collect::<Vec<_>>(),
            [("odd", 1), ("two", 2)]
        );
    }

    #[test]
    fn hours_cut_out_a_part_that_starts_at_zero() {
        let jobs = [
            job("a", "2017-08-01 00:00:00", &[(DAY, HOUR_LATER, 1)]),
            job("b", "2017-08-01 02:30:00", &[(DAY, HOUR_LATER, 1)]),
            job("c", "2017-08-01 09:00:00", &[(DAY, HOUR_LATER, 1)]),
        ];
        let philly = PhillyRules { hours: Some((2.0, 5.0)), ..PhillyRules::default() };
        let read = read_log(&jobs, WorkloadOptions { philly, ..WorkloadOptions::default() });
        assert_eq!(
            read.workload.jobs.iter().map(|j| (&*j.name, j.arrival)).collect::<Vec<_>>(),
            [("b", Time::ZERO)]
        );
    }

    #[test]
    fn mistakes_are_named() {
        let dateless = format!("[{}]", job("j1", "tomorrow", &[]));
        assert_eq!(
            message(read, "log.json", &dateless),
            "log.json, submitted_time of job j1: got \"tomorrow\", expected a date such as 2017-10-09 07:01:55"
        );
        assert_eq!(
            message(read, "log.json", "[\n{\"jobid\": 5}]"),
            "log.json:2, column 11: expected a list of jobs in JSON, but: invalid type: integer `5`, expected a string"
        );
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &profiles) };
        let read = read(&Source::new("log.json", "[{\"jobid\": 5}, 7]"), &setting).expect("both left out");
        assert_eq!(read.dropped.iter().map(|d| d.line).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn the_rebuilt_log_holds_what_the_extract_holds() {
        let Some(path) = need::shared_path("traces/philly-pollux/cluster_job_log.rebuilt.json.gz") else {
            return;
        };
        let (cluster, profiles) = built_in("philly", "synergy");
        let everything = PhillyRules { shortest_s: 0.0, longest_s: f64::INFINITY, hours: None };
        let options = WorkloadOptions { philly: everything, ..WorkloadOptions::default() };
        let source = Source::open(&path).expect("readable");
        let read =
            super::read(&source, &Setting { options, ..Setting::new(&cluster, &profiles) }).expect("sound");
        assert_eq!(read.workload.jobs.len() as u64 + read.filtered.n_rows(), 82_247);
        assert_eq!(read.workload.tenants.len(), 15);
        assert!(read.workload.jobs.len() > 82_000, "{:?}", read.filtered);
    }
}
