//! The report of a sweep: curves of the model, the points behind them, and what to ask for.

use std::fmt::Write;

use super::findings::Findings;
use super::fit::Fit;
use super::grid::Point;
use super::knee::Demand;
use super::sweep::Sweep;
use crate::report::{Axis, Figure, Line, Marks, ReportError, Whisker, escape, frame, inline};

const MODEL: usize = 0;
const POINTS: usize = 1;
const DEMAND: usize = 2;

/// What a page shows beside curves.
#[derive(Clone, Debug)]
pub struct PageFacts {
    /// The model's name.
    pub name: String,
    /// The command.
    pub command: String,
    /// The machine.
    pub machine: String,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The page as text.
pub fn to_html(
    facts: &PageFacts,
    sweep: &Sweep,
    findings: &Findings,
    fit: &Fit,
) -> Result<String, ReportError> {
    let mut body = demand_section(&fit.demand(), sweep, findings, fit);
    body.push_str("<section>\n<h2>Curves</h2>\n<div class=\"plots\">\n");
    for figure in figures(sweep, findings, fit) {
        body.push_str(&inline(&figure)?);
    }
    body.push_str("</div>\n</section>\n");
    body.push_str(&table(findings));
    let mut heading =
        format!("<p><code>{}</code></p>\n<p>on {}</p>\n", escape(&facts.command), escape(&facts.machine));
    for note in &facts.notes {
        let _ = writeln!(heading, "<p>{}</p>", escape(note));
    }
    Ok(frame(&format!("Profile of {}", facts.name), &heading, &body, ""))
}

/// The curves as figures.
pub fn figures(sweep: &Sweep, findings: &Findings, fit: &Fit) -> Vec<Figure> {
    let (base, demand) = (sweep.grid.base(), fit.demand());
    let mut figures = Vec::new();
    let axes = [
        Shown {
            name: "cpus",
            title: "Speed by CPUs for each GPU",
            axis: sweep.grid.cpu_axis(),
            value: Point::cpus,
            recommended: Some(Point { cpu_micro: demand.cpu_micro, ..base }),
        },
        Shown {
            name: "memory",
            title: "Speed by memory for each GPU (GB)",
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
        // Dots of measured points must not be joined: the model says what lies between.
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
            caption: "Iterations per second; whiskers are 95 % intervals".to_owned(),
            x: Axis::at_values("", &values),
            y: Axis::from_zero("iterations per second", highest * 1.05),
            marks: Marks::Measured(all, whiskers.collect()),
        }
    }
}

fn demand_section(demand: &Demand, sweep: &Sweep, findings: &Findings, fit: &Fit) -> String {
    let mut html = String::from("<section>\n<h2>What to ask for</h2>\n<ul>\n");
    let cpus = demand.cpu_micro as f64 / 1e6;
    let _ = writeln!(html, "<li>{cpus} CPUs for each GPU</li>");
    if sweep.grid.mem_bytes().len() > 1 {
        let _ = writeln!(html, "<li>{} GB of memory for each GPU</li>", demand.mem_bytes as f64 / 1e9);
    }
    if demand.storage_bps > 0 {
        let _ =
            writeln!(html, "<li>{:.1} MB/s from storage for each GPU</li>", demand.storage_bps as f64 / 1e6);
    }
    for (batch, gpus) in demand.most_gpus.iter().filter(|_| sweep.grid.gpus().len() > 1) {
        let of = if *batch > 0 { format!(" with batch {batch}") } else { String::new() };
        let _ = writeln!(html, "<li>at most {gpus} GPUs{of}: more do not make it faster</li>");
    }
    let cost = sweep.cost();
    let _ = writeln!(
        html,
        "</ul>\n<p>{} runs in {:.0} s; the full grid has {} points.{}</p>\n</section>",
        findings.runs().len(),
        findings.wall_s(),
        cost.full,
        fit.worst_check.map_or(String::new(), |worst| format!(
            " Put to the test off its axes, the model was off by {:.1} %.",
            worst * 100.0
        ))
    );
    html
}

fn table(findings: &Findings) -> String {
    let mut html = String::from(
        "<section>\n<h2>Measured points</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>GPUs</th><th>batch</th>\
         <th>CPUs</th><th>memory (GB)</th><th>iteration (s)</th><th>± (%)</th><th>runs</th><th class=\"text\">remark</th>\
         </tr></thead>\n<tbody>\n",
    );
    for point in findings.points() {
        let estimate = findings.at(&point);
        let (time, within) = estimate.map_or((String::new(), String::new()), |e| {
            let within =
                if e.within_s.is_finite() { format!("{:.1}", e.relative() * 100.0) } else { String::new() };
            (format!("{:.4}", e.iteration_s), within)
        });
        let remark = findings.failure(&point).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{time}</td><td>{within}</td><td>{}</td>\
             <td class=\"text\">{}</td></tr>",
            point.gpus,
            point.batch,
            point.cpus(),
            point.mem_gb(),
            findings.n_runs(&point),
            escape(remark)
        );
    }
    html.push_str("</tbody>\n</table></div>\n</section>\n");
    html
}
