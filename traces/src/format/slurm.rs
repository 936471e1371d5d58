//! Slurm's accounting, so that operators can bring the history of their own cluster: `sacct -P` with headings, or `sacct --json`.
//!
//! | column | JSON | meaning |
//! |---|---|---|
//! | `JobID` | `job_id` | the name; rows of steps (`17.batch`) are left out |
//! | `Account`, else `User` | `account`, `user` | the tenant |
//! | `Submit` | `time.submission` | when it was submitted |
//! | `ElapsedRaw`, else `End` less `Start` | `time.elapsed` | how long it ran, seconds |
//! | `AllocTRES`, else `ReqTRES`, `AllocGRES`, `ReqGRES` | `tres` | GPUs: `gres/gpu=8`, or the sum of `gres/gpu:TYPE=N` |
//! | `State` | `state` | `COMPLETED`, `CANCELLED by 1000`, … |
//!
//! ```text
//! sacct -aPX -S 2026-01-01 -o JobID,User,Account,State,Submit,Start,End,ElapsedRaw,AllocTRES > jobs.txt
//! ```

use std::borrow::Cow;

use rota_core::workload::RecordedEnd;
use serde_json::Value;

use super::accounts::{Account, Accounts, end_in_slurm};
use super::{Head, Imported, Setting};
use crate::dates;
use crate::error::InputError;
use crate::rows::{DroppedRow, Row, Rows, UniqueNames};
use crate::source::Source;

/// Rows between bars with `JobID` and `Submit`, or an object with `jobs`.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    let cells: Vec<&str> = head.first.split('|').collect();
    (cells.contains(&"JobID") && cells.contains(&"Submit"))
        || (head.text.starts_with('{') && head.text.contains("\"jobs\""))
}

/// Reads either form.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    match source.text.trim_start().starts_with('{') {
        true => read_json(source, setting),
        false => read_table(source, setting),
    }
}

fn read_table(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::piped(source)?;
    let (id, submit, state) = (rows.need(&["JobID"])?, rows.need(&["Submit"])?, rows.find(&["State"]));
    let tenant = rows.find(&["Account"]).or(rows.find(&["User"]));
    let elapsed = rows.find(&["ElapsedRaw"]);
    let (start, end) = (rows.find(&["Start"]), rows.find(&["End"]));
    if elapsed.is_none() && (start.is_none() || end.is_none()) {
        rows.need(&["ElapsedRaw"])?;
    }
    rows.need(&["AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"])?;
    let tres = ["AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"].map(|name| rows.find(&[name]));
    let mut names = UniqueNames::default();
    let mut accounts = Accounts::with_dates();
    let dropped = rows.each(setting.bad_rows, |row| {
        if row.text(id).contains('.') {
            accounts.leave_out("is a step of a job", row.line);
            return Ok(());
        }
        let submitted = dates::parse(row.text(submit));
        let submitted_s =
            submitted.ok_or_else(|| row.expected(submit, "a date such as 2026-01-31T07:01:55"))?;
        let duration_s = match row.maybe(elapsed) {
            Some((column, _)) => row.seconds(column)?,
            None => between(row, start, end),
        };
        let mut held = tres.iter().filter_map(|column| row.maybe(*column)).map(|(_, text)| gpus_in(text));
        accounts.add(&Account {
            name: names.take(row, id)?,
            tenant: row.maybe(tenant).map_or("", |(_, name)| name),
            submitted_s: submitted_s as f64,
            duration_s,
            gpus: held.find(|gpus| *gpus > 0.0).unwrap_or(0.0),
            gpu_type: None,
            ended: row.maybe(state).map_or(RecordedEnd::Unknown, |(_, state)| end_in_slurm(state)),
            line: row.line,
        });
        Ok(())
    })?;
    accounts.finish(setting, dropped)
}

/// Seconds between two dates; 0 where one is `Unknown` or `None`: the job never ran, or runs still.
fn between(row: &Row<'_>, start: Option<usize>, end: Option<usize>) -> f64 {
    let date = |column| row.maybe(column).and_then(|(_, text)| dates::parse(text));
    match (date(start), date(end)) {
        (Some(start_s), Some(end_s)) => (end_s - start_s) as f64,
        _ => 0.0,
    }
}

/// GPUs in `billing=4,gres/gpu=8,gres/gpu:a100=8`, or in the older `gpu:a100:8`: the total if it is there, else the sum over types.
fn gpus_in(tres: &str) -> f64 {
    let mut by_type = 0.0;
    for part in tres.split(',') {
        let part = part.strip_prefix("gres/").or(part.strip_prefix("gres:")).unwrap_or(part);
        let Some(rest) = part.strip_prefix("gpu") else { continue };
        let Some((kind, count)) = rest.rsplit_once(['=', ':']) else {
            by_type += f64::from(rest.is_empty());
            continue;
        };
        let Some(count) = count.parse::<f64>().ok().filter(|count| count.is_finite()) else { continue };
        if kind.is_empty() {
            return count;
        }
        by_type += count;
    }
    by_type
}

fn read_json(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let wrong = |e: serde_json::Error| {
        InputError::expected(&source.name, format!("JSON, but: {e}")).at_line(e.line() as u64)
    };
    let value: Value = serde_json::from_str(&source.text).map_err(wrong)?;
    let jobs = value.get("jobs").and_then(Value::as_array);
    let jobs = jobs.ok_or_else(|| InputError::expected(&source.name, "a list of jobs under \"jobs\""))?;
    let mut names = UniqueNames::default();
    let mut accounts = Accounts::with_dates();
    let mut dropped = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let line = index as u64 + 1;
        match add_json(source, job, line, &mut names, &mut accounts) {
            Ok(()) => {}
            Err(reason) if setting.bad_rows.are_left_out() => dropped.push(DroppedRow { line, reason }),
            Err(reason) => return Err(reason),
        }
    }
    accounts.finish(setting, dropped)
}

fn add_json(
    source: &Source,
    job: &Value,
    line: u64,
    names: &mut UniqueNames,
    accounts: &mut Accounts,
) -> Result<(), InputError> {
    let wrong = |what: &str| InputError::expected(&source.name, what).at_name(format!("job number {line}"));
    let id = number(job.get("job_id")).ok_or_else(|| wrong("a number as job_id"))?;
    let time = |name: &str| number(job.get("time").and_then(|time| time.get(name)));
    let name = id.to_string();
    names.take_name(&name, line).map_err(|first| {
        wrong(&format!("a job_id that no other job has (job number {first} has it)")).got(&name)
    })?;
    let text = |name: &str| job.get(name).and_then(Value::as_str).unwrap_or("");
    accounts.add(&Account {
        name: &name,
        tenant: if text("account").is_empty() { text("user") } else { text("account") },
        submitted_s: time("submission").ok_or_else(|| wrong("seconds as time.submission"))?,
        duration_s: time("elapsed").ok_or_else(|| wrong("seconds as time.elapsed"))?,
        gpus: gpus_of(job),
        gpu_type: None,
        ended: end_in_slurm(&state(job)),
        line,
    });
    Ok(())
}

/// A number, or `{"set": true, "number": 5}` as newer versions write it.
fn number(value: Option<&Value>) -> Option<f64> {
    let value = value?;
    let plain = value.as_f64().or_else(|| value.get("number")?.as_f64());
    plain.filter(|number| (0.0..=1e12).contains(number))
}

fn state(job: &Value) -> Cow<'_, str> {
    let state = job.get("state").map(|state| state.get("current").unwrap_or(state));
    let state = state.map(|state| state.get(0).unwrap_or(state));
    state.and_then(Value::as_str).unwrap_or("").into()
}

fn gpus_of(job: &Value) -> f64 {
    let held = |which: &str| -> f64 {
        let list = job.get("tres").and_then(|tres| tres.get(which)).and_then(Value::as_array);
        let of_gpus = |entry: &&Value| {
            let is = |key: &str, text: &str| entry.get(key).and_then(Value::as_str) == Some(text);
            is("type", "gres") && is("name", "gpu")
        };
        let counts = list.into_iter().flatten().filter(of_gpus);
        counts.filter_map(|entry| number(entry.get("count"))).fold(0.0, f64::max)
    };
    let allocated = held("allocated");
    if allocated > 0.0 { allocated } else { held("requested") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};

    #[test]
    fn gpus_are_found_in_every_spelling() {
        let cases = [
            ("billing=4,cpu=32,gres/gpu=8,gres/gpu:a100=8,mem=1T", 8.0),
            ("cpu=32,gres/gpu:a100=4,gres/gpu:v100=2", 6.0),
            ("gpu:a100:8", 8.0),
            ("gpu:2", 2.0),
            ("gres:gpu:1", 1.0),
            ("cpu=4,mem=8G", 0.0),
            ("gres/gpumem=80G", 0.0),
        ];
        for (text, gpus) in cases {
            assert_eq!(gpus_in(text), gpus, "{text}");
        }
    }

    #[test]
    fn a_table_and_json_of_the_same_jobs_are_the_same() {
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting::new(&cluster, &profiles);
        let table = "JobID|User|Account|State|Submit|Start|End|AllocTRES\n\
            17|ada|vision|COMPLETED|1970-01-01T00:01:40|1970-01-01T00:02:00|1970-01-01T01:02:00|cpu=8,gres/gpu=4\n\
            17.batch||vision|COMPLETED|1970-01-01T00:01:40|1970-01-01T00:02:00|1970-01-01T01:02:00|cpu=8,gres/gpu=4\n\
            18|bob|nlp|CANCELLED by 1000|1970-01-01T00:01:50|Unknown|Unknown|gres/gpu=1\n\
            19|bob|nlp|TIMEOUT|1970-01-01T00:02:00|1970-01-01T00:02:00|1970-01-01T00:02:30|gres/gpu:a100=2\n";
        let json = r#"{"jobs": [
            {"job_id": 17, "user": "ada", "account": "vision", "state": {"current": ["COMPLETED"]},
             "time": {"submission": 100, "elapsed": 3600}, "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 4}]}},
            {"job_id": 19, "user": "bob", "account": "nlp", "state": "TIMEOUT",
             "time": {"submission": {"set": true, "number": 120}, "elapsed": 30},
             "tres": {"allocated": [], "requested": [{"type": "gres", "name": "gpu", "count": 2}]}}]}"#;
        let table = read(&Source::new("sacct.txt", table), &setting).expect("sound");
        let json = read(&Source::new("sacct.json", json), &setting).expect("sound");
        assert_eq!(table.workload.jobs, json.workload.jobs);
        let ends: Vec<_> = table.workload.truths.iter().map(|truth| truth.end).collect();
        assert_eq!(ends, [RecordedEnd::Passed, RecordedEnd::Killed]);
        assert_eq!(table.workload.truths, json.workload.truths);
        assert_eq!(table.workload.tenants, ["vision", "nlp"]);
        assert_eq!(table.filtered.n_rows(), 2, "a step, and a job that never ran");
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            message(read, "s.txt", "JobID|Submit|ElapsedRaw|AllocTRES\n1|today|5|gres/gpu=1\n"),
            "s.txt:2, column 2 (Submit): got \"today\", expected a date such as 2026-01-31T07:01:55"
        );
        assert_eq!(
            message(read, "s.txt", "JobID|Submit|AllocTRES\n1|2026-01-31T07:01:55|gres/gpu=1\n"),
            "s.txt:1: got \"JobID,Submit,AllocTRES\", expected a column ElapsedRaw"
        );
        assert_eq!(
            message(read, "s.json", "{\"jobs\": [{\"job_id\": 1}]}"),
            "s.json, job number 1: expected seconds as time.submission"
        );
    }
}
