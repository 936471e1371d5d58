//! A comparison as pictures: for each trace a bar for each policy, on a page with the tables that the terminal shows.

use std::path::Path;

use crate::report::{self, Axis, Bar, Figure, Marks, PALETTE_LENGTH, ReportError, escape, frame, inline};
use crate::results::{ResultsError, replace_file};

/// What was compared, to be written into a folder.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The heading.
    pub title: String,
    /// The tables, as for a terminal.
    pub text: String,
    /// A figure for each trace and quantity.
    pub figures: Vec<Figure>,
}

/// A picture that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// It cannot be drawn, or its folder cannot be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The page cannot be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// One quantity of one trace.
pub(super) struct Quantity<'a> {
    /// Stem of the file's name.
    pub(super) name: String,
    /// What it is, and of what.
    pub(super) title: String,
    /// What a reader must know.
    pub(super) caption: String,
    /// The axis.
    pub(super) x: Axis,
    /// The policies, their values, and what is written at the end of their bars.
    pub(super) bars: Vec<(&'a str, f64, String)>,
}

impl From<Quantity<'_>> for Figure {
    fn from(quantity: Quantity<'_>) -> Self {
        let names: Vec<String> = quantity.bars.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let bars = quantity.bars.into_iter().enumerate();
        let bars = bars.map(|(at, (_, value, text))| Bar { colour: at % PALETTE_LENGTH, value, text });
        Figure {
            name: quantity.name,
            section: "Figures".into(),
            title: quantity.title,
            caption: quantity.caption,
            x: quantity.x,
            y: Axis::names(&names),
            marks: Marks::Bars(bars.collect()),
        }
    }
}

impl Picture {
    /// Writes `report.html`, and each figure into `plots/`.
    pub fn write(&self, out: &Path) -> Result<(), PictureError> {
        report::write_figures(&self.figures, out)?;
        let mut body = String::from("<section>\n<h2>Figures</h2>\n<div class=\"plots\">\n");
        for figure in &self.figures {
            body.push_str(&inline(figure)?);
        }
        body.push_str("</div>\n</section>\n<section>\n<h2>Tables</h2>\n<div class=\"scroll\"><pre>");
        body.push_str(&escape(&self.text));
        body.push_str("</pre></div>\n</section>\n");
        let facts = format!("<p>Rota {}</p>\n", env!("CARGO_PKG_VERSION"));
        let page = frame(&self.title, &facts, &body, "");
        Ok(replace_file(&out.join("report.html"), page.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_the_tables_and_every_bar_and_plots_lie_beside_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let quantity = Quantity {
            name: "missed-MIX1".into(),
            title: "Deadlines missed, MIX1".into(),
            caption: "Of 10 jobs.".into(),
            x: Axis::percent("jobs (%)"),
            bars: vec![("chronus", 0.1, "10.0 %".into()), ("edf", 0.2, "20.0 %".into())],
        };
        let picture = Picture { title: "Two".into(), text: "a < b".into(), figures: vec![quantity.into()] };
        let out = dir.path().join("out");
        picture.write(&out).expect("written");
        let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
        for part in ["a &lt; b", "Deadlines missed, MIX1", "Of 10 jobs.", "20.0 %"] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(out.join("plots/missed-MIX1.svg").is_file() && out.join("plots/missed-MIX1.png").is_file());
    }
}
