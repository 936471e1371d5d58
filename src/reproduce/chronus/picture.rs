//! The comparison as pictures.

use super::{ChronusStudy, Figures, POLICIES};
use crate::report::Axis;
use crate::reproduce::picture::{Picture, Quantity};

impl ChronusStudy {
    /// Deadlines missed and completion times of best-effort jobs, trace by trace.
    pub fn picture(&self) -> Picture {
        let mut figures = Vec::new();
        for row in &self.rows {
            let bars = |value: &dyn Fn(&Figures) -> Option<f64>, text: &dyn Fn(f64) -> String| {
                let values = POLICIES.iter().zip(&row.figures);
                let bars =
                    values.filter_map(|(policy, f)| value(f).map(|value| (*policy, value, text(value))));
                bars.collect::<Vec<_>>()
            };
            figures.push(Quantity {
                name: format!("missed-{}", row.trace),
                title: format!("Deadlines missed, {}", row.trace),
                caption: format!(
                    "Of {} jobs with a deadline; one that met no step of it missed it.",
                    row.figures.first().map_or(0, |f| f.deadline_jobs)
                ),
                x: Axis::percent("jobs with a deadline (%)"),
                bars: bars(&|f| Some(f.miss_rate), &|rate| format!("{:.1} %", 100.0 * rate)),
            });
            let best_effort =
                bars(&|f| f.best_effort_jct_s.map(|jct_s| jct_s / 3_600.0), &|h| format!("{h:.1} h"));
            let longest = best_effort.iter().map(|(_, h, _)| *h).fold(0.0, f64::max);
            if !best_effort.is_empty() {
                figures.push(Quantity {
                    name: format!("best-effort-{}", row.trace),
                    title: format!("Completion time of best-effort jobs, {}", row.trace),
                    caption: "Mean over jobs without a deadline.".into(),
                    x: Axis::from_zero("hours", longest),
                    bars: best_effort,
                });
            }
        }
        Picture {
            title: "Chronus and its baselines".into(),
            text: self.to_text(),
            figures: figures.into_iter().map(Into::into).collect(),
        }
    }
}
