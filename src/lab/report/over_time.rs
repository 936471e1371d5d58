//! Figures of what changes while a run goes on: jobs waiting, and GPUs, CPUs and memory asked, held and used.

use rota_core::ledger::Sample;

use super::figure::{GREY, stairs};
use super::figures::{COMPARISON, MAX_LINES, group_title, hidden_note, too_many};
use super::style::styles;
use super::units::with_thousands;
use super::{Axis, Figure, Line, Marks, TimeUnit, thin};
use crate::results::RunResult;

/// Parts that a long run is averaged over.
const N_PARTS: usize = 240;
/// Demand beyond this many times the cluster is cut off: the rest of the figure would be a thin line.
const MAX_CAPACITIES: f64 = 2.0;

const HELD: &str = "held";

/// One quantity of a sample.
struct Quantity {
    label: &'static str,
    colour: usize,
    value: fn(&Sample) -> f64,
}

/// One figure of resources: what there is of it in the cluster, and what is drawn.
struct Resource {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    capacity: f64,
    caption: &'static str,
    quantities: Vec<Quantity>,
}

/// A quantity of all policies of a group, one line each.
struct Curve {
    name: &'static str,
    title: &'static str,
    caption: &'static str,
    axis: &'static str,
    value: fn(&Sample) -> f64,
}

const CURVES: [Curve; 3] = [
    Curve {
        name: "queue",
        title: "Jobs waiting",
        caption: "Jobs without GPUs, right after each decision.",
        axis: "jobs waiting",
        value: |sample| f64::from(sample.waiting),
    },
    Curve {
        name: "running",
        title: "Jobs running",
        caption: "Jobs with GPUs, right after each decision.",
        axis: "jobs running",
        value: |sample| f64::from(sample.running),
    },
    Curve {
        name: "efficiency",
        title: "Cluster efficiency",
        caption: "Sum over running jobs of their speed relative to one GPU, divided by the GPUs of the cluster: 100 % is \
                  a full cluster whose jobs all scale perfectly.",
        axis: "efficiency (%)",
        value: |sample| sample.efficiency() * 100.0,
    },
];

/// The part of the GPUs that jobs held. A report has a figure of each run's GPUs instead.
const GPU_USE: Curve = Curve {
    name: "gpu-use",
    title: "GPUs in use",
    caption: "GPUs that jobs hold, of those that are up, right after each decision.",
    axis: "GPUs in use (%)",
    value: |sample| 100.0 * f64::from(sample.gpus_held) / f64::from(sample.gpus_up.max(1)),
};

/// The unit of time of all figures of these runs: that of the longest, so that figures next to each other can be compared.
pub(super) fn time_unit<'r>(runs: impl IntoIterator<Item = &'r RunResult>) -> TimeUnit {
    let drawn = runs.into_iter().filter(|run| !run.samples.is_empty());
    TimeUnit::for_axis(drawn.map(|run| end_s(run) - begin_s(run)).fold(1.0, f64::max))
}

/// GPUs held, one line for each policy.
pub(super) fn gpu_use(group: &[&RunResult], suffix: &str, unit: TimeUnit) -> Option<Figure> {
    curve_figure(group, suffix, unit, &GPU_USE)
}

/// Jobs waiting and running, and what the GPUs were worth to them; one line for each policy.
pub(super) fn curves(group: &[&RunResult], suffix: &str, unit: TimeUnit) -> Vec<Figure> {
    CURVES.iter().filter_map(|curve| curve_figure(group, suffix, unit, curve)).collect()
}

fn curve_figure(group: &[&RunResult], suffix: &str, unit: TimeUnit, curve: &Curve) -> Option<Figure> {
    let drawn: Vec<&&RunResult> =
        group.iter().filter(|run| !run.samples.is_empty()).take(MAX_LINES).collect();
    if drawn.is_empty() {
        return None;
    }
    let begin = drawn.iter().map(|run| begin_s(run)).fold(f64::INFINITY, f64::min);
    let end = drawn.iter().map(|run| end_s(run)).fold(f64::NEG_INFINITY, f64::max);
    let mut longest_part_s: f64 = 0.0;
    let styles = styles(drawn.iter().map(|run| run.meta.policy.as_str()));
    let lines: Vec<Line> = drawn
        .iter()
        .zip(styles)
        .map(|(run, colour)| {
            let (points, part_s) = steps(run, curve.value);
            longest_part_s = longest_part_s.max(part_s.unwrap_or(0.0));
            Line { label: run.meta.policy.clone(), colour, has_dots: false, points }
        })
        .collect();
    let averaged = averaged_note((longest_part_s > 0.0).then_some(longest_part_s));
    Some(Figure {
        name: format!("{}{suffix}", curve.name),
        section: COMPARISON.into(),
        title: group_title(curve.title, group),
        caption: format!("{}{averaged}{}", curve.caption, too_many(group.len())),
        x: Axis::time_in("time", begin, end, unit),
        y: Axis::counts(curve.axis, highest(&lines).max(1.0)),
        marks: Marks::Lines(lines),
    })
}

/// GPUs, CPUs and memory of one run.
pub(super) fn resources(run: &RunResult, suffix: &str, name: Option<&String>, unit: TimeUnit) -> Vec<Figure> {
    if run.samples.is_empty() {
        return Vec::new();
    }
    resources_of(run)
        .into_iter()
        .map(|resource| resource_figure(run, &resource, suffix, name, unit))
        .collect()
}

fn resources_of(run: &RunResult) -> [Resource; 3] {
    let asked = |label, value| Quantity { label, colour: 4, value };
    let held = |value| Quantity { label: HELD, colour: 0, value };
    let used = |value| Quantity { label: "used", colour: 2, value };
    let cluster = &run.meta.cluster;
    let of_running = "Asked: best demand of the running jobs. Used: what they hold, up to that demand.";
    [
        Resource {
            name: "gpus",
            title: "GPUs",
            axis: "GPUs",
            capacity: f64::from(cluster.gpus),
            caption: "Asked: by all jobs, running or waiting.",
            quantities: vec![asked("asked", |s| s.gpus_asked as f64), held(|s| f64::from(s.gpus_held))],
        },
        Resource {
            name: "cpus",
            title: "CPUs",
            axis: "CPUs",
            capacity: cluster.cpus,
            caption: of_running,
            quantities: vec![asked("asked", |s| s.cpus.asked), held(|s| s.cpus.held), used(|s| s.cpus.used)],
        },
        Resource {
            name: "memory",
            title: "Memory",
            axis: "memory (GB)",
            capacity: cluster.mem_gb,
            caption: of_running,
            quantities: vec![
                asked("asked", |s| s.mem_gb.asked),
                held(|s| s.mem_gb.held),
                used(|s| s.mem_gb.used),
            ],
        },
    ]
}

fn resource_figure(
    run: &RunResult,
    resource: &Resource,
    suffix: &str,
    name: Option<&String>,
    unit: TimeUnit,
) -> Figure {
    let (begin, end) = (begin_s(run), end_s(run));
    let mut lines = vec![Line {
        label: "in the cluster".into(),
        colour: GREY,
        has_dots: false,
        points: vec![(begin, resource.capacity), (end, resource.capacity)],
    }];
    let mut part_s = None;
    for quantity in &resource.quantities {
        let (points, part) = steps(run, quantity.value);
        part_s = part;
        // Where no job's speed depends on it, nobody asks for it or uses it.
        if quantity.label != HELD && points.iter().all(|point| point.1 == 0.0) {
            continue;
        }
        lines.push(Line { label: quantity.label.into(), colour: quantity.colour, has_dots: false, points });
    }
    let caption = match lines.len() > 2 {
        true => format!("{}{}", resource.caption, hidden_note(lines.len())),
        false => "Held with the GPUs; no job's speed depends on it.".to_owned(),
    };
    let (highest, top) = (highest(&lines), MAX_CAPACITIES * resource.capacity);
    let is_cut = resource.capacity > 0.0 && highest > top;
    if is_cut {
        lines.iter_mut().for_each(|line| cut_off(line, top));
    }
    let of = |what: &str| name.map_or_else(|| what.to_owned(), |name| format!("{what}, {name}"));
    Figure {
        name: format!("{}{suffix}", resource.name),
        section: of("Resources over time"),
        title: of(&format!("{} over time", resource.title)),
        caption: format!("{caption}{}", averaged_note(part_s)),
        x: Axis::time_in("time", begin, end, unit),
        y: Axis::counts(resource.axis, if is_cut { top } else { highest }),
        marks: Marks::Lines(lines),
    }
}

/// Lowers a line to `top` where it is higher, and adds to its name how high it was.
fn cut_off(line: &mut Line, top: f64) {
    let highest = highest(std::slice::from_ref(line));
    if highest > top {
        line.label = format!("{} (cut off, up to {})", line.label, with_thousands(highest));
        line.points.iter_mut().for_each(|point| point.1 = point.1.min(top));
    }
}

/// A quantity as stairs over time, averaged where there are too many to see; then also the length of a part.
fn steps(run: &RunResult, value: impl Fn(&Sample) -> f64) -> (Vec<(f64, f64)>, Option<f64>) {
    let end = end_s(run);
    let steps: Vec<(f64, f64)> = run.samples.iter().map(|s| (s.time.as_secs_f64(), value(s))).collect();
    let (steps, part_s) = thin::by_averaging(&steps, end, N_PARTS);
    (stairs(&steps, end), part_s)
}

fn begin_s(run: &RunResult) -> f64 {
    run.samples.first().map_or(0.0, |sample| sample.time.as_secs_f64())
}

/// When the run was over: its last decision may be earlier than its last finish.
fn end_s(run: &RunResult) -> f64 {
    let last_finish = run.jobs.iter().filter_map(|job| job.finish).max();
    let last_sample = run.samples.last().map(|sample| sample.time);
    last_finish.max(last_sample).map_or(0.0, |time| time.as_secs_f64())
}

fn highest(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max)
}

fn averaged_note(part_s: Option<f64>) -> String {
    match part_s {
        Some(s) if s >= 120.0 => format!(" Averaged over stretches of {:.0} min.", s / 60.0),
        Some(s) => format!(" Averaged over stretches of {s:.0} s."),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::run;

    #[test]
    fn resources_hold_until_the_last_finish() {
        let run = run("las", 1, None);
        let figures = resources(&run, "", None, time_unit([&run]));
        let Marks::Lines(lines) = &figures[0].marks else { panic!("lines") };
        let held = &lines[2];
        assert_eq!((held.label.as_str(), held.points[0]), ("held", (1000.0, 1.0)));
        assert_eq!(held.points.last(), Some(&(1160.25, 3.0)), "the last sample is at 1110 s");
    }

    #[test]
    fn demand_far_beyond_the_cluster_is_cut_and_marked_as_cut() {
        let mut run = run("las", 1, None);
        run.samples[1].gpus_asked = 12_345;
        let figures = resources(&run, "", None, time_unit([&run]));
        let Marks::Lines(lines) = &figures[0].marks else { panic!("lines") };
        assert_eq!(lines[1].label, "asked (cut off, up to 12,345)");
        assert_eq!(highest(lines), 16.0);
    }
}
