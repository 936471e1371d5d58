//! Results for people: the table on the terminal, plots for papers, and one page that holds everything.
//!
//! ```text
//! Results ─┬▶ summary_table, by ─┬▶ terminal    (text)
//!          │                     └▶ page        (report.html)
//!          ├▶ figures ─▶ Figure ─▶ draw ─┬▶ html
//!          │   (thin, units, axis,       └▶ plots/*.svg, *.png, *.pdf
//!          │    style, marks, paper)
//!          └▶ job_table ─▶ page
//! ```
//!
//! A [`Figure`] is plain data that says what is to be seen; only `draw` knows the drawing library. Pages, also those of
//! other rooms, are put together from the components in `html`. Nothing here computes results: see [`crate::results`].

mod axis;
mod band;
mod bound_gap;
mod by;
mod draw;
mod failures;
mod fairness;
mod figure;
mod figures;
pub(crate) mod html;
mod job_table;
mod marks;
mod on_the_table;
mod over_time;
mod page;
mod paper;
mod promises;
mod style;
mod summary_table;
mod terminal;
mod thin;
mod timeline;
mod together;
mod trace_page;
mod units;

use std::fs;
use std::path::{Path, PathBuf};

pub use axis::Axis;
pub(crate) use band::MAX_MARKED;
pub use by::{By, ByError, by_text};
pub use draw::to_svg;
pub(crate) use figure::GREY;
pub use figure::PALETTE_LENGTH;
pub use figure::{Bar, Figure, Line, Marker, Marks, Ratio, Versions, Whisker};
pub(crate) use figures::{MAX_LINES, extremes};
pub use figures::{comparison, figures};
pub use html::{colour_variables, table_and_plots};
pub use on_the_table::on_the_table;
pub use page::to_html;
pub use paper::{PlotOptions, PlotSize, PlotSizeError};
pub use promises::promises;
pub(crate) use style::styles;
pub use summary_table::{Better, Cell, Heading, Measure, SummaryTable, measures};
pub use terminal::{TABLE_STYLE, to_text};
pub(crate) use terminal::{align_numbers, plain_table};
pub use timeline::gpu_rows;
pub use together::write_together;
pub use trace_page::{TraceShown, trace_figures, trace_page};
pub(crate) use units::{TimeUnit, begin_large, with_thousands};

use crate::results::{Results, ResultsError, replace_file};

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The drawing library gave up.
    #[error("figure {figure}: cannot be drawn: {why}")]
    Draw {
        /// Stem of its file name.
        figure: String,
        /// Message of the drawing library.
        why: String,
    },
    /// The configuration cannot be shown.
    #[error("configuration: {0}")]
    Config(#[from] toml::ser::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// File or folder that was to be written.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A file in a result folder cannot be replaced.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// A count with its thousands apart, as tables write it.
pub fn grouped(count: u64) -> String {
    with_thousands(count as f64)
}

/// Writes `report.html` into a folder, usually one that is being staged or that holds the results already.
pub fn write_page(results: &Results, dir: &Path) -> Result<(), ReportError> {
    Ok(replace_file(&dir.join("report.html"), to_html(results)?.as_bytes())?)
}

/// Draws every figure as SVG, PNG and PDF into `plots/` of a folder.
pub fn write_plots(results: &Results, dir: &Path, options: &PlotOptions) -> Result<(), ReportError> {
    write_figures_as(&figures(results), dir, options)
}

/// Draws figures as SVG, PNG and PDF into `plots/` of a folder, as wide as a column of a paper.
pub fn write_figures(figures: &[Figure], dir: &Path) -> Result<(), ReportError> {
    write_figures_as(figures, dir, &PlotOptions::default())
}

/// The same in another size.
pub fn write_figures_as(figures: &[Figure], dir: &Path, options: &PlotOptions) -> Result<(), ReportError> {
    let plots = dir.join("plots");
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |source| ReportError::Io { path, source }
    };
    fs::create_dir_all(&plots).map_err(wrong(&plots))?;
    for figure in figures {
        let path = |kind: &str| plots.join(format!("{}.{kind}", figure.name));
        let svg = draw::to_print_svg(figure, options)?;
        fs::write(path("pdf"), draw::to_pdf(figure, &svg)?).map_err(wrong(&path("pdf")))?;
        fs::write(path("svg"), svg).map_err(wrong(&path("svg")))?;
        draw::to_png(figure, options, &path("png"))?;
    }
    Ok(())
}
