//! The report of a sweep: curves of the model, the points behind them, and what to ask for.

use maud::{Markup, html};

use super::findings::Findings;
use super::fit::Fit;
use super::grid::Point;
use super::knee::Demand;
use super::sweep::Sweep;
use crate::report::html::{self, Cell, Column};
use crate::report::{Axis, Figure, Line, Marks, ReportError, Whisker};

const MODEL: usize = 0;
const POINTS: usize = 1;
const DEMAND: usize = 2;

/// What a page shows besides curves.
#[derive(Clone, Debug)]
pub struct PageFacts {
    /// Name of the model, as in the profile.
    pub name: String,
    /// Command line that was measured.
    pub command: String,
    /// Name of the machine it was measured on.
    pub machine: String,
    /// Remarks to put before the curves, a paragraph each.
    pub notes: Vec<String>,
}

/// The page as text.
pub fn to_html(
    facts: &PageFacts,
    sweep: &Sweep,
    findings: &Findings,
    fit: &Fit,
) -> Result<String, ReportError> {
    let figures = figures(sweep, findings, fit);
    let body = html! {
        (demand_section(&fit.demand(), sweep, findings, fit))
        (html::section("Curves", &html::plots(&figures)?))
        (points_section(findings))
    };
    let heading = html! {
        p { code { (facts.command) } }
        p { "on " (facts.machine) }
        @for note in &facts.notes { p { (note) } }
    };
    Ok(html::document(&format!("Profile of {}", facts.name), &heading, &body, ""))
}

/// The curves as figures.
pub fn figures(sweep: &Sweep, findings: &Findings, fit: &Fit) -> Vec<Figure> {
    let (base, demand) = (sweep.grid.base(), fit.demand());
    let mut figures = Vec::new();
    let axes = [
        Shown {
            name: "cpus",
            title: "Speed by CPUs for each GPU",
            along: "CPUs for each GPU",
            axis: sweep.grid.cpu_axis(),
            value: Point::cpus,
            recommended: Some(Point { cpu_micro: demand.cpu_micro, ..base }),
        },
        Shown {
            name: "memory",
            title: "Speed by memory for each GPU",
            along: "memory for each GPU (GB)",
            axis: sweep.grid.mem_axis(),
            value: Point::mem_gb,
            recommended: Some(Point { mem_bytes: demand.mem_bytes, ..base }),
        },
    ];
    figures.extend(axes.iter().filter(|shown| shown.axis.len() > 1).map(|shown| shown.figure(findings, fit)));
    if sweep.grid.gpus().len() > 1 {
        for batch in sweep.grid.batches() {
            let axis = sweep.grid.scale_axis().into_iter().filter(|point| point.batch == *batch).collect();
            let most = demand.most_gpus.get(batch).copied();
            let shown = Shown {
                name: &format!("gpus-{batch}"),
                title: &if *batch > 0 {
                    format!("Speed by GPUs, batch {batch}")
                } else {
                    "Speed by GPUs".to_owned()
                },
                along: "GPUs",
                axis,
                value: |point| f64::from(point.gpus),
                recommended: most.map(|gpus| Point { gpus, batch: *batch, ..base }),
            };
            figures.push(shown.figure(findings, fit));
        }
    }
    figures
}

/// One axis as it is drawn.
struct Shown<'t> {
    name: &'t str,
    title: &'t str,
    /// What is written along the bottom.
    along: &'t str,
    axis: Vec<Point>,
    value: fn(&Point) -> f64,
    recommended: Option<Point>,
}

impl Shown<'_> {
    fn figure(&self, findings: &Findings, fit: &Fit) -> Figure {
        let works = |point: &&Point| findings.failure(point).is_none();
        let model: Vec<(f64, f64)> =
            self.axis.iter().filter(works).map(|point| ((self.value)(point), fit.rate(point))).collect();
        let measured: Vec<(f64, super::samples::Estimate)> =
            self.axis.iter().filter_map(|point| Some(((self.value)(point), findings.at(point)?))).collect();
        let whiskers = measured.iter().filter(|(_, e)| e.within_s.is_finite() && e.within_s < e.iteration_s);
        let whiskers = whiskers.map(|(at, e)| Whisker {
            colour: POINTS,
            at: *at,
            low: 1.0 / (e.iteration_s + e.within_s),
            high: 1.0 / (e.iteration_s - e.within_s),
        });
        let line = |label: &str, colour, has_dots, points| Line {
            label: label.to_owned(),
            colour,
            has_dots,
            points,
        };
        let mut lines = vec![
            line("model", MODEL, false, model.clone()),
            line("measured", POINTS, true, measured.iter().map(|(at, e)| (*at, e.rate())).collect()),
        ];
        if let Some(point) = &self.recommended {
            lines.push(line("recommended", DEMAND, true, vec![((self.value)(point), fit.rate(point))]));
        }
        // Measured points are not joined: the model gives the values between them.
        let joined = lines.remove(1);
        let dots = joined.points.iter().enumerate().map(|(at, point)| Line {
            label: if at == 0 { joined.label.clone() } else { String::new() },
            points: vec![*point],
            ..joined.clone()
        });
        let mut all: Vec<Line> = vec![lines.remove(0)];
        all.extend(dots);
        all.extend(lines);
        let values: Vec<f64> = self.axis.iter().map(self.value).collect();
        let highest = model.iter().map(|point| point.1).fold(0.0, f64::max);
        Figure {
            name: self.name.to_owned(),
            section: "Curves".to_owned(),
            title: self.title.to_owned(),
            caption: "Line: the model; marks: measured points with 95 % intervals.".to_owned(),
            x: Axis::at_values(self.along, &values),
            y: Axis::from_zero("iterations per second", highest * 1.05),
            marks: Marks::Measured(all, whiskers.collect()),
        }
    }
}

fn demand_section(demand: &Demand, sweep: &Sweep, findings: &Findings, fit: &Fit) -> Markup {
    let has_memory = sweep.grid.mem_bytes().len() > 1;
    let most_gpus = demand.most_gpus.iter().filter(|_| sweep.grid.gpus().len() > 1);
    let cost = sweep.cost();
    let content = html! {
        ul {
            li { (demand.cpu_micro as f64 / 1e6) " CPUs for each GPU" }
            @if has_memory { li { (demand.mem_bytes as f64 / 1e9) " GB of memory for each GPU" } }
            @if demand.storage_bps > 0 {
                li { (format!("{:.1}", demand.storage_bps as f64 / 1e6)) " MB/s from storage for each GPU" }
            }
            @for (batch, gpus) in most_gpus {
                li {
                    "at most " (gpus) " GPUs" @if *batch > 0 { " with batch " (batch) }
                    ": more do not make it faster"
                }
            }
        }
        p {
            (findings.runs().len()) " runs in " (format!("{:.0}", findings.wall_s())) " s; the full grid has "
            (cost.full) " points."
            @if let Some(worst) = fit.worst_check {
                " Checked at a point off its axes, the model was off by " (format!("{:.1}", worst * 100.0)) " %."
            }
        }
    };
    html::section("What to ask for", &content)
}

fn points_section(findings: &Findings) -> Markup {
    let headings = ["GPUs", "batch", "CPUs", "memory (GB)", "iteration (s)", "± (%)", "runs"];
    let mut columns = html::columns(headings, 0);
    columns.push(Column { heading: "remark".to_owned(), is_text: true });
    let row = |point: Point| {
        let (time, within) = findings.at(&point).map_or((String::new(), String::new()), |e| {
            let within =
                if e.within_s.is_finite() { format!("{:.1}", e.relative() * 100.0) } else { String::new() };
            (format!("{:.4}", e.iteration_s), within)
        });
        let cells = [
            point.gpus.to_string(),
            point.batch.to_string(),
            point.cpus().to_string(),
            point.mem_gb().to_string(),
            time,
            within,
            findings.n_runs(&point).to_string(),
            findings.failure(&point).unwrap_or_default().to_owned(),
        ];
        cells.map(Cell::Plain).to_vec()
    };
    let rows: Vec<Vec<Cell>> = findings.points().map(row).collect();
    html::section("Measured points", &html::table(&columns, &rows))
}
