//! `rota history`: jobs that have ended, filtered, with wall-clock times; as a table, CSV, JSON or Parquet; or their GPU-hours by user,
//! model or day.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use comfy_table::presets::NOTHING;
use rota_core::ids::JobId;
use rota_core::time::Span;
use rota_lab::study::{Column, Table, Values};
use rota_transport::message::{EndedJobView, FromUser, HistoryFilter, JobStateView, ToUser};
use rota_transport::value::{Lines, Text, shown};
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, PrimitiveDateTime};

use super::client::{Client, HeadArgs};
use super::show::escaped;

/// Which jobs, and how they are shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub head: HeadArgs,
    /// Jobs of this user; operators may name others [default: your own, all for operators]
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,
    /// Jobs that counted for this tenant [default: any]
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Jobs of this model [default: any]
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Jobs of this name [default: any]
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,
    /// Jobs that ended in this way [default: any]
    #[arg(short, long, value_enum)]
    pub state: Option<EndArg>,
    /// Jobs that ended at this time or later: 2026-11-18, 2026-11-18T14:00:00Z (UTC), or 2d for two days ago [default: the beginning]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Jobs that ended before this time [default: now]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Show jobs and GPU-hours in groups, such as user,day [default: every job]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KEY,KEY…")]
    pub by: Vec<KeyArg>,
    /// Print CSV instead of text
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Write a file instead, as its name ends: .csv, .json or .parquet [default: print]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndArg {
    /// Its work was done.
    Finished,
    /// Given up after too many failures.
    Failed,
    /// Cancelled by a user.
    Cancelled,
    /// It never began.
    Declined,
    /// It had run for as long as it may.
    TimeLimit,
}

/// What jobs are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyArg {
    /// Who submitted them.
    User,
    /// Whom they counted for.
    Tenant,
    /// Their model.
    Model,
    /// The day on which they ended, in UTC.
    Day,
    /// How they ended.
    State,
    /// Their name.
    Name,
}

/// Prints or writes the history.
pub(super) fn run(args: &HistoryArgs) -> Result<()> {
    let jobs = fetch(&mut Client::new(&args.head)?, filter(args)?)?;
    let table = if args.by.is_empty() { of_jobs(&jobs)? } else { of_groups(&jobs, &args.by)? };
    if let Some(path) = &args.out {
        return write(path, &table);
    }
    match (args.head.json, args.csv) {
        (true, _) => println!("{}", escaped(&to_json(&table))),
        (false, true) => print!("{}", String::from_utf8_lossy(&table.to_csv())),
        (false, false) => print!("{}", to_text(&table)),
    }
    Ok(())
}

fn filter(args: &HistoryArgs) -> Result<HistoryFilter> {
    let text = |text: &Option<String>| Text::new(text.clone().unwrap_or_default());
    let time = |text: &Option<String>| text.as_deref().map(moment_us).transpose();
    Ok(HistoryFilter {
        user: text(&args.user)?,
        tenant: text(&args.tenant)?,
        model: text(&args.model)?,
        name: text(&args.name)?,
        state: args.state.map(|state| match state {
            EndArg::Finished => JobStateView::Finished,
            EndArg::Failed => JobStateView::Failed,
            EndArg::Cancelled => JobStateView::Cancelled,
            EndArg::Declined => JobStateView::Declined,
            EndArg::TimeLimit => JobStateView::TimeLimit,
        }),
        from_us: time(&args.from)?,
        until_us: time(&args.until)?,
        after: None,
    })
}

/// Page by page, until a page is empty.
fn fetch(client: &mut Client, mut filter: HistoryFilter) -> Result<Vec<EndedJobView>> {
    let mut all: Vec<EndedJobView> = Vec::new();
    loop {
        let before = all.len();
        client.ask(&FromUser::History { filter: filter.clone() }, |answer| {
            if let ToUser::History(some) = answer {
                all.extend(some);
            }
            Ok(())
        })?;
        if all.len() == before {
            return Ok(all);
        }
        filter.after = all.last().map(|job: &EndedJobView| -> JobId { job.id });
    }
}

/// A date, a time, or a span before now, in microseconds since 1970.
fn moment_us(text: &str) -> Result<i64> {
    let us = |time: OffsetDateTime| (time.unix_timestamp_nanos() / 1_000) as i64;
    // The parser would take the date and leave the time.
    let is_date = !text.contains('T');
    if let Some(date) = Date::parse(text, &Iso8601::DATE).ok().filter(|_| is_date) {
        return Ok(us(PrimitiveDateTime::new(date, time::Time::MIDNIGHT).assume_utc()));
    }
    let zoned = if text.ends_with('Z') || text.contains('+') { text.to_owned() } else { format!("{text}Z") };
    if let Ok(time) = OffsetDateTime::parse(&zoned, &Rfc3339) {
        return Ok(us(time));
    }
    let ago = Span::parse(text).map_err(|_| {
        anyhow!(
            "`{text}` is not a time: write 2026-11-18, 2026-11-18T14:00:00Z, or a length of time such as 2d"
        )
    })?;
    Ok(us(OffsetDateTime::now_utc()) - ago.0)
}

fn when(us: i64) -> Result<OffsetDateTime> {
    let whole_seconds = us.div_euclid(1_000_000);
    OffsetDateTime::from_unix_timestamp(whole_seconds).context("a time that no calendar has")
}

/// A time as people and programs read it.
fn stamp(us: i64) -> Result<String> {
    Ok(when(us)?.format(&Rfc3339)?)
}

/// A row for each job.
fn of_jobs(jobs: &[EndedJobView]) -> Result<Table> {
    fn text<'a>(
        name: &str,
        jobs: &'a [EndedJobView],
        value: impl Fn(&'a EndedJobView) -> Option<String>,
    ) -> Column {
        Column::text(name, jobs.iter().map(value).collect())
    }
    let whole = |name: &str, value: fn(&EndedJobView) -> i64| {
        Column::whole(name, jobs.iter().map(|job| Some(value(job))).collect())
    };
    let number = |name: &str, value: fn(&EndedJobView) -> f64| Column {
        name: name.to_owned(),
        values: Values::Number(jobs.iter().map(|job| Some(value(job))).collect()),
    };
    let times = |name: &str, value: fn(&EndedJobView) -> Option<i64>| -> Result<Column> {
        let stamps = jobs.iter().map(|job| value(job).map(stamp).transpose());
        Ok(Column::text(name, stamps.collect::<Result<_>>()?))
    };
    let plain = |text: &Text| Some(text.to_string());
    Ok(Table {
        columns: vec![
            whole("job", |job| job.id.0.into()),
            text("name", jobs, |job| plain(&job.name)),
            text("user", jobs, |job| Some(job.user.to_string())),
            text("tenant", jobs, |job| plain(&job.tenant)),
            text("model", jobs, |job| plain(&job.model)),
            text("state", jobs, |job| Some(job.state.as_str().to_owned())),
            whole("gpus", |job| job.gpus.into()),
            times("submitted", |job| Some(job.submitted_us))?,
            times("started", |job| job.started_us)?,
            times("ended", |job| Some(job.ended_us))?,
            number("gpu_hours", |job| job.gpu_s / 3_600.0),
            number("done", |job| job.done.count()),
            number("work", |job| job.work.count()),
            whole("launches", |job| job.launches.0.into()),
            whole("failures", |job| job.n_failures.into()),
            whole("preemptions", |job| job.n_preemptions.into()),
            text("nodes", jobs, |job| Some(job.nodes.iter().map(Text::as_str).collect::<Vec<_>>().join(" "))),
            text("reason", jobs, |job| plain(&job.reason)),
        ],
    })
}

/// A row for each group, by its keys.
fn of_groups(jobs: &[EndedJobView], by: &[KeyArg]) -> Result<Table> {
    let mut groups: BTreeMap<Vec<String>, (i64, f64)> = BTreeMap::new();
    for job in jobs {
        let key = by.iter().map(|key| key_of(job, *key)).collect::<Result<Vec<_>>>()?;
        let (n_jobs, gpu_s) = groups.entry(key).or_default();
        (*n_jobs, *gpu_s) = (*n_jobs + 1, *gpu_s + job.gpu_s);
    }
    let name = |key: &KeyArg| key.to_possible_value().map(|value| value.get_name().to_owned());
    let mut columns: Vec<_> = by
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let values = groups.keys().map(|keys| keys.get(at).cloned()).collect();
            Column::text(name(key).unwrap_or_default(), values)
        })
        .collect();
    columns.push(Column::whole("jobs", groups.values().map(|(n_jobs, _)| Some(*n_jobs)).collect()));
    let hours = groups.values().map(|(_, gpu_s)| Some(gpu_s / 3_600.0)).collect();
    columns.push(Column { name: "gpu_hours".into(), values: Values::Number(hours) });
    Ok(Table { columns })
}

fn key_of(job: &EndedJobView, key: KeyArg) -> Result<String> {
    Ok(match key {
        KeyArg::User => job.user.to_string(),
        KeyArg::Tenant => job.tenant.to_string(),
        KeyArg::Model => job.model.to_string(),
        KeyArg::Day => when(job.ended_us)?.date().to_string(),
        KeyArg::State => job.state.as_str().to_owned(),
        KeyArg::Name => job.name.to_string(),
    })
}

fn write(path: &Path, table: &Table) -> Result<()> {
    let bytes = match path.extension().and_then(|end| end.to_str()) {
        Some("csv") => table.to_csv(),
        Some("json") => to_json(table).into_bytes(),
        Some("parquet") => table.to_parquet()?,
        _ => bail!("{}: its name must end in .csv, .json or .parquet", path.display()),
    };
    std::fs::write(path, bytes).with_context(|| path.display().to_string())?;
    println!("{} rows are in {}", table.n_rows(), path.display());
    Ok(())
}

/// A list of objects.
fn to_json(table: &Table) -> String {
    let value = |values: &Values, row: usize| match values {
        Values::Text(values) => serde_json::json!(values.get(row)),
        Values::Whole(values) => serde_json::json!(values.get(row)),
        Values::Number(values) => serde_json::json!(values.get(row)),
    };
    let row = |row: usize| {
        let fields = table.columns.iter().map(|column| (column.name.clone(), value(&column.values, row)));
        serde_json::Value::Object(fields.collect())
    };
    serde_json::Value::Array((0..table.n_rows()).map(row).collect()).to_string()
}

/// What fits a terminal: the columns that people look at first.
fn to_text(table: &Table) -> String {
    const HIDDEN: [&str; 6] = ["done", "work", "launches", "failures", "preemptions", "nodes"];
    let columns: Vec<_> =
        table.columns.iter().filter(|column| !HIDDEN.contains(&column.name.as_str())).collect();
    let mut text = comfy_table::Table::new();
    text.load_style(NOTHING);
    text.set_header(columns.iter().map(|column| column.name.replace('_', "-").to_uppercase()));
    for row in 0..table.n_rows() {
        text.add_row(columns.iter().map(|column| match &column.values {
            Values::Number(values) => {
                values.get(row).copied().flatten().map_or(String::new(), |n| format!("{n:.2}"))
            }
            values => shown(&values.text(row), Lines::Escaped),
        }));
    }
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_spans() {
        assert_eq!(moment_us("1970-01-02").expect("a date"), 86_400_000_000);
        assert_eq!(moment_us("1970-01-01T00:00:01").expect("a time"), 1_000_000);
        assert_eq!(moment_us("1970-01-01T01:00:00+01:00").expect("a time"), 0);
        assert!(moment_us("2h").expect("a span") < moment_us("1h").expect("a span"));
        for wrong in ["", "yesterday", "2026-13-01"] {
            assert!(moment_us(wrong).is_err(), "{wrong}");
        }
        assert_eq!(stamp(86_400_000_000).expect("a date"), "1970-01-02T00:00:00Z");
    }
}
