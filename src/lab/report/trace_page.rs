//! What a trace is like, as figures and as a page; two traces next to each other.

use maud::{Markup, html};
use rota_core::cluster::Cluster;
use rota_traces::stats::{Group, Look, Stats};

use super::figure::stairs;
use super::html::{Cell, Column, columns, document, foldable, plots, section, table, tall_table};
use super::units::number;
use super::{Axis, Bar, Figure, GREY, Line, Marks, ReportError, with_thousands};

/// A trace, looked at.
#[derive(Clone, Debug)]
pub struct TraceShown {
    /// The name of its file or workload.
    pub name: String,
    /// In numbers.
    pub stats: Stats,
    /// As curves.
    pub look: Look,
}

/// Tenants that are drawn; all are in the table.
const MOST_TENANTS: usize = 15;

/// The page as text.
pub fn trace_page(traces: &[TraceShown], cluster: &Cluster) -> Result<String, ReportError> {
    let names: Vec<&str> = traces.iter().map(|trace| trace.name.as_str()).collect();
    let figures = trace_figures(traces, cluster);
    let facts = html! {
        p { "Cluster " (cluster.name) ": " (with_thousands(cluster.nodes().len() as f64)) " nodes, "
            (with_thousands(f64::from(cluster.n_gpus()))) " GPUs · Rota " (env!("CARGO_PKG_VERSION")) }
        p { "Run times are those at the proportional share of the cluster, with the GPUs that a job asks for." }
    };
    let mut parts = vec![section("In numbers", &numbers(traces, cluster))];
    for part in figures.chunk_by(|a, b| a.section == b.section) {
        parts.push(section(&part[0].section, &plots(part)?));
    }
    let groups: [(&str, &str, GroupsOf); 4] = [
        ("Jobs by GPU count", "GPUs", |s| s.by_gpus.iter().map(|(k, g)| (k.to_string(), g)).collect()),
        ("Jobs by model", "model", |s| s.by_model.iter().map(|(k, g)| (k.clone(), g)).collect()),
        ("Jobs by tenant", "tenant", |s| s.by_tenant.iter().map(|(k, g)| (k.clone(), g)).collect()),
        ("How jobs ended", "ended", |s| s.by_end.iter().map(|(k, g)| (k.clone(), g)).collect()),
    ];
    for (heading, key, of) in groups {
        if traces.iter().any(|trace| !of(&trace.stats).is_empty()) {
            parts.push(foldable(heading, heading == "How jobs ended", &group_tables(traces, key, of)));
        }
    }
    Ok(document(&names.join(" and "), &facts, &html! { @for part in &parts { (part) } }, ""))
}

type Groups<'s> = Vec<(String, &'s Group)>;
type GroupsOf = fn(&Stats) -> Groups<'_>;

/// Every figure, each with a line or bar for each trace.
pub fn trace_figures(traces: &[TraceShown], cluster: &Cluster) -> Vec<Figure> {
    let mut figures = arrivals(traces);
    figures.extend(sizes(traces));
    figures.push(demand(traces, cluster));
    figures.extend(traces.iter().enumerate().filter(|(_, t)| t.stats.by_tenant.len() > 1).map(tenants));
    figures
}

fn lines(traces: &[TraceShown], points: impl Fn(&TraceShown) -> Vec<(f64, f64)>) -> Vec<Line> {
    let line = |(colour, trace): (usize, &TraceShown)| Line {
        label: trace.name.clone(),
        colour,
        has_dots: false,
        points: points(trace),
    };
    traces.iter().enumerate().map(line).collect()
}

fn largest(lines: &[Line], of: fn(&(f64, f64)) -> f64) -> f64 {
    lines.iter().flat_map(|line| &line.points).map(of).fold(0.0, f64::max)
}

fn arrivals(traces: &[TraceShown]) -> Vec<Figure> {
    let undated: Vec<&str> =
        traces.iter().filter(|trace| !trace.look.has_dates).map(|trace| trace.name.as_str()).collect();
    let caption = match undated.as_slice() {
        [] => "By the clock of the log.".to_owned(),
        [name] => format!(
            "{name} has no dates: its hours and days count from the first arrival, which is put on a Monday at 0:00."
        ),
        names => format!(
            "{} have no dates: their hours and days count from the first arrival, which is put on a Monday at 0:00.",
            names.join(" and ")
        ),
    };
    let steps = |values: &[f64]| {
        let steps: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
        stairs(&steps, values.len() as f64)
    };
    let by_hour = lines(traces, |trace| steps(&trace.look.per_hour_by_hour));
    let by_day = lines(traces, |trace| steps(&trace.look.per_hour_by_weekday));
    let figure = |name: &str, title: &str, x: Axis, lines: Vec<Line>, caption: String| Figure {
        name: name.into(),
        section: "When jobs arrive".into(),
        title: title.into(),
        caption,
        x,
        y: Axis::from_zero("jobs per hour", largest(&lines, |point| point.1)),
        marks: Marks::Lines(lines),
    };
    let hours = Axis::at_values("hour of the day", &HOURS);
    let days = Axis::named("day of the week", &DAYS);
    vec![
        figure("arrivals-by-hour", "Arrivals by hour of the day", hours, by_hour, caption.clone()),
        figure("arrivals-by-weekday", "Arrivals by day of the week", days, by_day, caption),
    ]
}

const HOURS: [f64; 7] = [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

fn sizes(traces: &[TraceShown]) -> [Figure; 2] {
    // From no job up, also where several share the shortest duration.
    let durations = lines(traces, |trace| {
        let first = trace.look.durations.first().map(|point| (point.0, 0.0));
        first.into_iter().chain(trace.look.durations.iter().copied()).collect()
    });
    let shortest = durations
        .iter()
        .flat_map(|line| line.points.first())
        .map(|point| point.0)
        .fold(f64::INFINITY, f64::min);
    let gpus = lines(traces, |trace| {
        let end = trace.look.gpus.last().map_or(1.0, |point| point.0);
        stairs(&trace.look.gpus, end)
    });
    let most = largest(&gpus, |point| point.0).max(2.0);
    let powers: Vec<f64> =
        (0..).map(|n| f64::from(1_u32 << n)).take_while(|n| *n < 2.0 * most).take(20).collect();
    let figure = |name: &str, title: &str, x: Axis, lines: Vec<Line>| Figure {
        name: name.into(),
        section: "How large jobs are".into(),
        title: title.into(),
        caption: "The part of the jobs that are not larger.".into(),
        x,
        y: Axis::percent("% of jobs"),
        marks: Marks::Lines(lines),
    };
    let time = Axis::log_time("duration", shortest.min(1e12), largest(&durations, |point| point.0));
    [
        figure("durations", "Durations", time, durations),
        figure("gpus", "GPU counts", Axis::at_values("GPUs", &powers), gpus),
    ]
}

fn demand(traces: &[TraceShown], cluster: &Cluster) -> Figure {
    let mut lines = lines(traces, |trace| trace.look.demand.clone());
    let end = largest(&lines, |point| point.0);
    let n_gpus = f64::from(cluster.n_gpus());
    lines.push(Line {
        label: format!("GPUs of {}", cluster.name),
        colour: GREY,
        has_dots: false,
        points: vec![(0.0, n_gpus), (end, n_gpus)],
    });
    Figure {
        name: "demand".into(),
        section: "What the cluster is asked for".into(),
        title: "GPUs asked for over time".into(),
        caption: "As if each job ran at once; above the grey line, jobs must wait. Means over 400 equal parts of the time.".into(),
        x: Axis::time("time since the first arrival", 0.0, end),
        y: Axis::from_zero("GPUs", largest(&lines, |point| point.1)),
        marks: Marks::Lines(lines),
    }
}

fn tenants((colour, trace): (usize, &TraceShown)) -> Figure {
    let mut tenants: Vec<(&String, &Group)> = trace.stats.by_tenant.iter().collect();
    tenants.sort_by(|a, b| b.1.gpu_hours.total_cmp(&a.1.gpu_hours).then(a.0.cmp(b.0)));
    let n_all = tenants.len();
    tenants.truncate(MOST_TENANTS);
    let names: Vec<String> = tenants.iter().map(|(name, _)| (*name).clone()).collect();
    let bar = |(_, group): &(&String, &Group)| Bar {
        colour,
        value: group.gpu_hours,
        text: with_thousands(group.gpu_hours.round()),
    };
    Figure {
        name: format!("tenants-{}", colour + 1),
        section: "Tenants".into(),
        title: format!("GPU-hours by tenant: {}", trace.name),
        caption: match n_all > MOST_TENANTS {
            true => format!("The {MOST_TENANTS} largest of {n_all} tenants."),
            false => format!("All {n_all} tenants."),
        },
        x: Axis::from_zero("GPU-hours", tenants.first().map_or(1.0, |(_, group)| group.gpu_hours)),
        y: Axis::names(&names),
        marks: Marks::Bars(tenants.iter().map(bar).collect()),
    }
}

fn numbers(traces: &[TraceShown], cluster: &Cluster) -> Markup {
    let count = |n: usize| with_thousands(n as f64);
    let seconds = |s: f64| with_thousands(s.round());
    type Row<'a> = (String, Box<dyn Fn(&Stats) -> String + 'a>);
    let rows: [Row<'_>; 12] = [
        ("jobs".into(), Box::new(|s| count(s.n_jobs))),
        (
            "days from the first arrival to the last".into(),
            Box::new(|s| number(s.span_s / 86_400.0, s.span_s / 86_400.0)),
        ),
        ("GPU-hours".into(), Box::new(|s| with_thousands(s.gpu_hours.round()))),
        (
            format!("GPU-hours, % of what {} has while jobs arrive", cluster.name),
            Box::new(|s| format!("{:.0}", s.offered_load * 100.0)),
        ),
        ("median duration (s)".into(), Box::new(|s| seconds(s.duration_s.median))),
        ("mean duration (s)".into(), Box::new(|s| seconds(s.duration_s.mean))),
        ("99th percentile of durations (s)".into(), Box::new(|s| seconds(s.duration_s.p99))),
        ("median between arrivals (s)".into(), Box::new(|s| seconds(s.gap_s.median))),
        (
            "GPUs of the largest job".into(),
            Box::new(|s| s.by_gpus.keys().last().map_or_else(String::new, u32::to_string)),
        ),
        ("tenants".into(), Box::new(|s| count(s.by_tenant.len()))),
        ("jobs with a deadline".into(), Box::new(|s| count(s.n_strict + s.n_soft))),
        ("elastic jobs".into(), Box::new(|s| count(s.n_elastic))),
    ];
    let headings = std::iter::once("").chain(traces.iter().map(|trace| trace.name.as_str()));
    let cells = |(name, of): &Row<'_>| {
        let values = traces.iter().map(|trace| Cell::Plain(of(&trace.stats)));
        std::iter::once(Cell::RowName(name.clone())).chain(values).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    table(&columns(headings, 1), &rows)
}

fn group_tables(traces: &[TraceShown], key: &str, of: GroupsOf) -> Markup {
    let part = |part: f64, whole: f64| format!("{:.1}", if whole > 0.0 { part / whole * 100.0 } else { 0.0 });
    let headings: Vec<Column> = columns([key, "jobs", "% of jobs", "GPU-hours", "% of GPU time"], 1);
    let rows = |stats: &Stats| -> Vec<Vec<Cell>> {
        let row = |(name, group): (String, &Group)| {
            vec![
                Cell::RowName(name),
                Cell::Plain(with_thousands(group.n_jobs as f64)),
                Cell::Plain(part(group.n_jobs as f64, stats.n_jobs as f64)),
                Cell::Plain(with_thousands(group.gpu_hours.round())),
                Cell::Plain(part(group.gpu_hours, stats.gpu_hours)),
            ]
        };
        of(stats).into_iter().map(row).collect()
    };
    html! {
        @for trace in traces.iter().filter(|trace| !of(&trace.stats).is_empty()) {
            @if traces.len() > 1 { h3 { (trace.name) } }
            (tall_table(&headings, &rows(&trace.stats)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_traces::format::{Setting, rota};
    use rota_traces::source::Source;
    use rota_traces::{cluster, profile, stats};

    fn shown(name: &str, rows: &str) -> (TraceShown, Cluster) {
        let cluster = cluster::load("small").expect("built in");
        let profiles = profile::load("synergy").expect("built in");
        let text = format!("job_id,arrival_s,gpus,duration_s,tenant,ended\n{rows}");
        let read = rota::read(&Source::new(name, text), &Setting::new(&cluster, &profiles)).expect("sound");
        let durations = stats::durations_s(&read.workload, &cluster);
        let look = Look::of(&read.workload, &durations, None);
        (TraceShown { name: name.into(), stats: stats::stats(&read.workload, &cluster), look }, cluster)
    }

    #[test]
    fn two_traces_are_on_one_page_with_a_line_each() {
        let (first, cluster) = shown("a.csv", "a,0,1,60,<x>,passed\nb,4000,4,600,y,failed\n");
        let (second, _) = shown("b.csv", "a,0,2,60,x,\n");
        let figures = trace_figures(&[first.clone(), second.clone()], &cluster);
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(
            names,
            ["arrivals-by-hour", "arrivals-by-weekday", "durations", "gpus", "demand", "tenants-1"]
        );
        let labels = |figure: &Figure| match &figure.marks {
            Marks::Lines(lines) => lines.iter().map(|line| line.label.clone()).collect(),
            _ => Vec::new(),
        };
        assert_eq!(labels(&figures[4]), ["a.csv", "b.csv", "GPUs of small"]);
        let page = trace_page(&[first, second], &cluster).expect("drawn");
        assert!(page.contains("a.csv and b.csv") && page.contains("How jobs ended") && !page.contains("<x>"));
    }
}
