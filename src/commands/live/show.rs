//! What the live cluster looks like: jobs, nodes, events, output.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, anyhow};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use rota_core::ids::JobId;
use rota_core::time::Time;
use rota_transport::message::{
    EventView, ExpectedStart, FromUser, JobStateView, JobView, NodeView, ToUser, WhichJobs,
};
use rota_transport::value::{Lines, Text, is_plain, shown};

use super::client::Client;

/// Time between two requests when following something.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// Fields that are times or lengths of time.
const TIMES: [&str; 9] =
    ["arrival", "started", "ended", "deadline", "since", "now", "time", "round", "time_limit"];

/// A view as JSON; times are microseconds on the wire and seconds here, as everywhere else.
pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String> {
    fn in_seconds(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(values) => values.iter_mut().for_each(in_seconds),
            serde_json::Value::Object(fields) => {
                for name in TIMES {
                    let Some(time) = fields.remove(name) else { continue };
                    let seconds = time.as_i64().map(|micros| micros as f64 / 1e6);
                    fields.insert(format!("{name}_s"), seconds.into());
                }
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(value)?;
    in_seconds(&mut value);
    Ok(escaped(&value.to_string()))
}

/// JSON in which a terminal finds nothing to obey: JSON itself escapes only some of the control characters.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match is_plain(c.encode_utf8(&mut [0; 4])) {
            true => text.push(c),
            // All of them have at most four digits.
            false => text.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    text
}

/// A name or reason that others chose, as one cell of a table.
fn cell(text: &Text) -> String {
    shown(text.as_str(), Lines::Escaped)
}

/// Jobs, as the head knows them.
pub(crate) fn fetch_jobs(client: &mut Client, which: WhichJobs) -> Result<Vec<JobView>> {
    let mut views = Vec::new();
    client.ask(&FromUser::Jobs { which }, |answer| {
        if let ToUser::Jobs(some) = answer {
            views.extend(some);
        }
        Ok(())
    })?;
    Ok(views)
}

/// Some jobs by number.
pub(crate) fn fetch(client: &mut Client, ids: &[JobId]) -> Result<Vec<JobView>> {
    fetch_jobs(client, WhichJobs::These(ids.to_vec()))
}

/// Nodes, as the head knows them.
pub(crate) fn fetch_nodes(client: &mut Client) -> Result<Vec<NodeView>> {
    let mut views = Vec::new();
    client.ask(&FromUser::Nodes, |answer| {
        if let ToUser::Nodes(some) = answer {
            views.extend(some);
        }
        Ok(())
    })?;
    Ok(views)
}

/// When the jobs that wait are expected to start; none while the head has no forecast.
pub(crate) fn fetch_starts(client: &mut Client, views: &[JobView]) -> BTreeMap<JobId, ExpectedStart> {
    let waits = |view: &&JobView| matches!(view.state, JobStateView::Asking | JobStateView::Waiting);
    let jobs: Vec<_> = views.iter().filter(waits).map(|view| view.id).collect();
    let mut starts = BTreeMap::new();
    if jobs.is_empty() {
        return starts;
    }
    // A list without a forecast is better than none, and a job may have ended meanwhile.
    let _ = client.ask(&FromUser::Forecast { jobs: Vec::new() }, |answer| {
        if let ToUser::Forecast(some) = answer {
            starts.extend(some.into_iter().map(|start| (start.job, start)));
        }
        Ok(())
    });
    starts.retain(|job, _| jobs.contains(job));
    starts
}

/// Jobs as JSON; those that wait have an expected start.
pub(crate) fn jobs_json(views: &[JobView], starts: &BTreeMap<JobId, ExpectedStart>) -> Result<String> {
    let mut all = serde_json::to_value(views)?;
    for (value, view) in all.as_array_mut().into_iter().flatten().zip(views) {
        let (Some(fields), Some(start)) = (value.as_object_mut(), starts.get(&view.id)) else { continue };
        let seconds = |time: Time| time.as_secs_f64();
        let start = serde_json::json!({
            "median_s": seconds(start.median), "low_s": seconds(start.low), "high_s": start.high.map(seconds),
        });
        fields.insert("start".into(), start);
    }
    to_json(&all)
}

/// Jobs as a table.
pub(crate) fn jobs_text(views: &[JobView], starts: &BTreeMap<JobId, ExpectedStart>, now: Time) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "JOB", "NAME", "USER", "STATE", "GPUS", "DONE", "AGE", "START", "LAUNCH", "NODES", "REASON",
    ]);
    for view in views {
        let share = match view.work.count() {
            // Nobody said how much there is to do.
            0.0 => "?".to_owned(),
            work => format!("{:.0} %", (100.0 * view.done.count() / work).min(100.0)),
        };
        let nodes: Vec<_> = view.nodes.iter().map(cell).collect();
        table.add_row([
            view.id.to_string(),
            cell(&view.name),
            view.user.to_string(),
            view.state.as_str().to_owned(),
            format!("{}/{}", view.gpus_held, view.gpus_asked),
            share,
            age((view.ended.unwrap_or(now) - view.arrival).as_secs_f64()),
            starts.get(&view.id).map_or_else(String::new, |start| start_text(start, now)),
            view.incarnation.to_string(),
            nodes.join(","),
            cell(&view.reason),
        ]);
    }
    format!("{table}\n")
}

/// In how long a job is expected to start, and from when to when that may be.
fn start_text(start: &ExpectedStart, now: Time) -> String {
    let wait = |at: Time| age((at - now).as_secs_f64().max(0.0));
    let high = start.high.map_or_else(|| "?".to_owned(), wait);
    format!("in {} ({} to {high})", wait(start.median), wait(start.low))
}

/// Nodes as a table.
pub(crate) fn nodes_text(views: &[NodeView]) -> String {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(["NODE", "STATE", "GPUS", "TYPE", "CPUS", "MEMORY", "JOBS", "REASON"]);
    for view in views {
        let jobs: Vec<_> = view.jobs.iter().map(ToString::to_string).collect();
        table.add_row([
            view.name.to_string(),
            format!("{:?}", view.state).to_lowercase(),
            format!("{}/{}", view.n_busy, view.n_gpus),
            cell(&view.gpu_type),
            format!("{:.0}", view.cpus),
            format!("{:.0} GB", view.mem_bytes as f64 / 1e9),
            jobs.join(","),
            cell(&view.reason),
        ]);
    }
    format!("{table}\n")
}

fn age(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0}s"),
        s if s < 7_200.0 => format!("{:.0}m", s / 60.0),
        s if s < 172_800.0 => format!("{:.1}h", s / 3_600.0),
        s => format!("{:.1}d", s / 86_400.0),
    }
}

/// Prints the events, and keeps printing if asked to.
pub(crate) fn events(client: &mut Client, from: u64, follow: bool, json: bool) -> Result<()> {
    let mut next = from;
    loop {
        let mut found: Vec<EventView> = Vec::new();
        client.ask(&FromUser::Events { from: next }, |answer| {
            if let ToUser::Events(some) = answer {
                found.extend(some);
            }
            Ok(())
        })?;
        // A line that stands for records of others only says where to go on.
        for event in found.iter().filter(|event| event.kind.as_str() != "left-out") {
            match json {
                true => println!("{}", to_json(event)?),
                false => println!(
                    "{:>6} {:>12.3} {:<16} {}",
                    event.index,
                    event.time.as_secs_f64(),
                    cell(&event.kind),
                    cell(&event.text)
                ),
            }
        }
        match found.last() {
            Some(last) => next = last.index + 1,
            None if follow => std::thread::sleep(FOLLOW_EVERY),
            None => return Ok(()),
        }
    }
}

/// Prints the output of a job's last launch; if asked to, keeps printing, over all launches, until the job has ended.
pub(crate) fn logs(client: &mut Client, job: JobId, follow: bool, json: bool) -> Result<()> {
    let view = |client: &mut Client| -> Result<JobView> {
        let [view] = <[JobView; 1]>::try_from(fetch(client, &[job])?)
            .map_err(|_| anyhow!("job {job}: there is no such job"))?;
        Ok(view)
    };
    let (mut next, mut launch) = (0, view(client)?.incarnation);
    loop {
        // A job that waits for its first launch has nothing to show yet.
        if follow && launch.0 == 0 {
            let now = view(client)?;
            if now.state.is_over() {
                return Ok(());
            }
            launch = now.incarnation;
            std::thread::sleep(FOLLOW_EVERY);
            continue;
        }
        let (n_bytes, has_ended) = print_piece(client, job, &mut next, json)?;
        if n_bytes > 0 {
            continue;
        }
        if !follow {
            return Ok(());
        }
        let now = view(client)?;
        if now.incarnation != launch {
            (next, launch) = (0, now.incarnation);
        } else if has_ended && now.state.is_over() {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_EVERY);
    }
}

/// Prints one piece of output from `next` on; its length, and whether its launch has ended with it.
fn print_piece(client: &mut Client, job: JobId, next: &mut u64, json: bool) -> Result<(u64, bool)> {
    let (mut n_bytes, mut has_ended) = (0, false);
    client.ask(&FromUser::Logs { job, offset: *next }, |answer| {
        if let ToUser::Log { offset, bytes, is_end } = answer {
            n_bytes = bytes.as_bytes().len() as u64;
            (*next, has_ended) = (offset + n_bytes, is_end);
            if json && n_bytes > 0 {
                let text = String::from_utf8_lossy(bytes.as_bytes());
                println!(
                    "{}",
                    escaped(&serde_json::json!({ "job": job, "offset": offset, "text": text }).to_string())
                );
            } else {
                std::io::stdout().write_all(bytes.as_bytes())?;
            }
            std::io::stdout().flush()?;
        }
        Ok(())
    })?;
    Ok((n_bytes, has_ended))
}

/// Shows jobs and nodes, refreshed until it is interrupted.
pub(crate) fn top(client: &mut Client, once: bool) -> Result<()> {
    loop {
        let status = client.status()?;
        let (jobs, nodes) = (fetch_jobs(client, WhichJobs::Active)?, fetch_nodes(client)?);
        let mut text = format!(
            "rota {}  epoch {}  {}  {:.0} s  round {}  policy {}\nnodes {}/{}  GPUs {}/{}  running {}  waiting {}\n",
            cell(&status.version),
            status.epoch,
            if status.is_ready { "ready" } else { "waiting for agents" },
            status.now.as_secs_f64(),
            status.n_rounds,
            cell(&status.policy),
            status.n_nodes_up,
            status.n_nodes,
            status.n_gpus_busy,
            status.n_gpus_up,
            status.n_running,
            status.n_waiting,
        );
        if !status.trouble.as_str().is_empty() {
            text.push_str(&format!("trouble: {}\n", shown(status.trouble.as_str(), Lines::Kept)));
        }
        text.push_str(&format!(
            "\n{}\n{}",
            nodes_text(&nodes),
            jobs_text(&jobs, &BTreeMap::new(), status.now)
        ));
        if once {
            print!("{text}");
            return Ok(());
        }
        print!("\x1b[2J\x1b[H{text}");
        std::io::stdout().flush()?;
        std::thread::sleep(Duration::from_secs(1));
    }
}
