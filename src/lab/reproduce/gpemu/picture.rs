//! The figure as pictures: for each order and allocation the four curves together, and for each order what tuning does.

use std::path::Path;

use maud::html;

use super::{Cell, Column, Curve, ORDERS, Study};
use crate::report::{Axis, Figure, GREY, Line, Marks, ReportError, Versions, html, styles, write_figures};
use crate::results::replace_file;

/// GPEmu's and the paper's plots end here.
const MOST_HOURS: f64 = 12.0;

impl Study {
    /// Writes `report.html`, the figures into `plots/`, and every job's time into `times.csv`.
    pub fn write(&self, out: &Path) -> Result<(), ReportError> {
        let figures = self.figures();
        write_figures(&figures, out)?;
        let body = html! {
            (html::section("Figures", &html::plots(&figures)?))
            (html::section("Job completion times", &self.time_table()))
            (html::section("Claims", &self.claims()))
        };
        let facts = html! { p { "Rota " (env!("CARGO_PKG_VERSION")) } };
        let page = html::document("GPEmu's Synergy run on emulated agents", &facts, &body, "");
        replace_file(&out.join("report.html"), page.as_bytes())?;
        Ok(replace_file(&out.join("times.csv"), self.to_csv().as_bytes())?)
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures: Vec<Figure> = ORDERS.iter().map(|order| self.by_order(order)).collect();
        figures.extend(self.cells.iter().map(|cell| self.by_column(cell)));
        figures
    }

    /// What GPEmu's figure shows: both allocations, ours thick and GPEmu's thin.
    fn by_order(&self, order: &str) -> Figure {
        let lines = |column: Column| -> Vec<Line> {
            let cells = self.cells.iter().filter(|cell| cell.order == order);
            let curves = cells.filter_map(|cell| Some((cell, cell.curve(column)?)));
            let label = |cell: &Cell| format!("{}, {}", cell.allocation, column.name());
            curves.map(|(cell, curve)| line(label(cell), look(cell), curve)).collect()
        };
        let lines =
            Versions { thin: lines(Column::Gpemu), thick: lines(Column::Deployed), published: Vec::new() };
        let title = format!("{}: proportional and tuned", order.to_uppercase());
        figure(format!("{order}-allocations"), title, self.caption(), lines)
    }

    /// The four curves of one policy.
    fn by_column(&self, cell: &Cell) -> Figure {
        // Simulated under deployed: where they coincide, the deployment is on top.
        let columns = [Column::Paper, Column::Gpemu, Column::Simulated, Column::Deployed];
        let colour = |column: Column| match column {
            Column::Deployed => look(cell),
            Column::Simulated => SIMULATED,
            Column::Gpemu => GPEMU,
            Column::Paper => GREY,
        };
        let drawn = columns.into_iter().filter_map(|column| Some((column, cell.curve(column)?)));
        let thick =
            drawn.map(|(column, curve)| line(column.name().to_owned(), colour(column), curve)).collect();
        let lines = Versions { thick, ..Versions::default() };
        let title = format!("{}: four accounts", cell.policy());
        figure(format!("{}-{}", cell.order, cell.allocation), title, self.caption(), lines)
    }

    fn caption(&self) -> String {
        let n_jobs = self.cells.first().map_or(0, |cell| cell.deployed.n_jobs());
        let small = if self.is_quick { " The small form: fewer jobs than GPEmu's." } else { "" };
        format!(
            "Share of jobs done within a time; {n_jobs} jobs of ours.{small} Where curves coincide, the last in the legend is on top."
        )
    }
}

/// Colours of what is not a policy of ours, unlike those of las and srtf.
const GPEMU: usize = 3;
const SIMULATED: usize = 6;

/// The colour and dash that the policy has in every report.
fn look(cell: &Cell) -> usize {
    styles([cell.policy().as_str()]).first().copied().unwrap_or(0)
}

fn figure(name: String, title: String, caption: String, lines: Versions) -> Figure {
    Figure {
        name,
        section: "Figures".into(),
        title,
        caption,
        x: Axis::at_values("job completion time (h)", &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, MOST_HOURS]),
        y: Axis::percent("jobs done (%)"),
        marks: Marks::Versions(lines),
    }
}

/// A curve as stairs from the beginning to the end of the axis.
fn line(label: String, colour: usize, curve: &Curve) -> Line {
    let mut points = vec![(0.0, 0.0)];
    let mut share = 0.0;
    for step in curve.steps().iter().filter(|step| step.0 <= MOST_HOURS) {
        points.extend([(step.0, share), *step]);
        share = step.1;
    }
    points.push((MOST_HOURS, share));
    Line { label, colour, has_dots: false, points }
}
