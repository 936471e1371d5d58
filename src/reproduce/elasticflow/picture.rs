//! A figure of several traces as pictures, one for each.

use super::{CONTENDERS, Study, StudyRow};
use crate::report::Axis;
use crate::reproduce::picture::{Picture, Quantity};

impl Study {
    /// Deadlines met, trace by trace, published ratios written beside ours.
    pub fn picture(&self) -> Picture {
        Picture {
            title: self.figure.title().to_owned(),
            text: self.to_text(),
            figures: self.rows.iter().map(|row| quantity(row).into()).collect(),
        }
    }
}

fn quantity(row: &StudyRow) -> Quantity<'static> {
    let bars = CONTENDERS.iter().zip(&row.counts).zip(row.panel.published.ratios);
    Quantity {
        name: format!("deadlines-{}", row.panel.name),
        title: format!("Deadlines met, {} on {}", row.panel.name, row.panel.cluster.name()),
        caption: format!(
            "Of {} jobs; declined jobs count as not met. In brackets what is published.",
            row.n_jobs
        ),
        x: Axis::percent("jobs (%)"),
        bars: bars
            .map(|((contender, counts), published)| {
                (
                    contender.policy,
                    counts.ratio,
                    format!("{:.1} % ({:.1})", 100.0 * counts.ratio, 100.0 * published),
                )
            })
            .collect(),
    }
}
