//! The comparison for people and for programs.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{CAVEATS, ChronusStudy, Figures, POLICIES, PUBLISHED_BEST_EFFORT, PUBLISHED_MISSES, TraceRow};
use crate::report::TABLE_STYLE;

/// The comparison as JSON.
#[derive(serde::Serialize)]
struct StudyFile<'a> {
    nodes: u32,
    gpus_per_node: u32,
    wall_s: f64,
    published_miss_factor: f64,
    published_best_effort_factor: f64,
    traces: Vec<TraceEntry<'a>>,
    caveats: &'a [&'a str],
}

#[derive(serde::Serialize)]
struct TraceEntry<'a> {
    trace: &'a str,
    jobs: usize,
    runs: Vec<RunEntry<'a>>,
}

#[derive(serde::Serialize)]
struct RunEntry<'a> {
    policy: &'a str,
    #[serde(flatten)]
    figures: Figures,
}

impl ChronusStudy {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut text =
            format!("Chronus (SoCC'21) and its baselines, {} nodes x 8 GPUs, lease 20 min\n", self.n_nodes);
        let sections: [Section; 4] = [
            ("Jobs that missed every step of their deadline, as a part of those with one", |f| {
                Some(format!("{:.4}", f.miss_rate))
            }),
            ("Value lost, as a part of all", |f| Some(format!("{:.4}", f.lost_value))),
            ("Average completion time of best-effort jobs, hours", |f| {
                f.best_effort_jct_s.map(|jct_s| format!("{:.2}", jct_s / 3600.0))
            }),
            ("Wall-clock time of the run, seconds", |f| Some(format!("{:.1}", f.wall_s))),
        ];
        for (title, cell) in sections {
            let _ = write!(text, "\n{title}\n{}\n", self.table(|row, at| cell(&row.figures[at])));
        }
        let _ = write!(
            text,
            "\nTimes as many deadlines missed as by chronus; published: up to {PUBLISHED_MISSES} fewer misses\n{}\n",
            self.table(|row, at| times(row.figures[at].miss_rate, row.figures[0].miss_rate))
        );
        let best_effort = |row: &TraceRow, at: usize| {
            row.figures[at].best_effort_jct_s.zip(row.figures[0].best_effort_jct_s)
        };
        let _ = write!(
            text,
            "\nTimes the completion time of best-effort jobs under chronus; published: up to {PUBLISHED_BEST_EFFORT}\n{}\n",
            self.table(|row, at| best_effort(row, at).and_then(|(theirs, ours)| times(theirs, ours)))
        );
        let n_fallbacks: usize = self.rows.iter().map(|row| row.figures[0].n_fallbacks).sum();
        let _ = writeln!(text, "\nSolves of chronus that ended without an answer: {n_fallbacks}");
        text.push_str("What is different from the paper:\n");
        for caveat in CAVEATS {
            let _ = writeln!(text, "- {caveat}");
        }
        let _ = writeln!(text, "{:.1} s in all", self.wall_s);
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        let entry = |row: &'_ TraceRow| TraceEntry {
            trace: row.trace,
            jobs: row.n_jobs,
            runs: POLICIES
                .into_iter()
                .zip(&row.figures)
                .map(|(policy, figures)| RunEntry { policy, figures: *figures })
                .collect(),
        };
        let file = StudyFile {
            nodes: self.n_nodes,
            gpus_per_node: 8,
            wall_s: self.wall_s,
            published_miss_factor: PUBLISHED_MISSES,
            published_best_effort_factor: PUBLISHED_BEST_EFFORT,
            traces: self.rows.iter().map(entry).collect(),
            caveats: &CAVEATS,
        };
        serde_json::to_string_pretty(&file).expect("figures are plain numbers and text") + "\n"
    }

    fn table(&self, cell: impl Fn(&TraceRow, usize) -> Option<String>) -> Table {
        let mut table = Table::new();
        table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(["trace", "jobs"].into_iter().chain(POLICIES));
        for row in &self.rows {
            let cells = (0..POLICIES.len()).map(|at| cell(row, at).unwrap_or_else(|| "–".into()));
            table.add_row([row.trace.to_owned(), row.n_jobs.to_string()].into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// A table: its title, and what stands in a cell.
type Section = (&'static str, fn(&Figures) -> Option<String>);

fn times(theirs: f64, ours: f64) -> Option<String> {
    (ours > 0.0).then(|| format!("{:.2}", theirs / ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_stand_beside_the_published_ones() {
        let figures =
            |miss_rate, jct_s| Figures { miss_rate, best_effort_jct_s: jct_s, ..Figures::default() };
        let mut row =
            TraceRow { trace: "MIX1", n_jobs: 10, figures: vec![figures(0.4, Some(7200.0)); POLICIES.len()] };
        row.figures[0] = figures(0.1, Some(3600.0));
        let study = ChronusStudy { rows: vec![row], n_nodes: 40, wall_s: 1.0 };
        let text = study.to_text();
        for part in ["4.00", "2.00", "up to 14.7", "up to 19.9"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(study.to_json().contains("\"published_miss_factor\": 14.7"));
    }
}
