//! A reproduced figure for people and for programs: ours beside the published numbers.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{CONTENDERS, Mode, Published, Study, StudyRow};
use crate::report::TABLE_STYLE;

/// A figure as JSON.
#[derive(serde::Serialize)]
struct StudyFile<'a> {
    title: &'a str,
    mode: &'a str,
    wall_s: f64,
    order_holds: bool,
    traces: Vec<TraceEntry<'a>>,
    caveats: &'a [&'a str],
}

#[derive(serde::Serialize)]
struct TraceEntry<'a> {
    trace: &'a str,
    file: &'a str,
    cluster: String,
    jobs: usize,
    published: Published,
    order_holds: bool,
    runs: Vec<RunEntry<'a>>,
}

#[derive(serde::Serialize)]
struct RunEntry<'a> {
    policy: &'a str,
    #[serde(flatten)]
    counts: super::Counts,
}

impl StudyRow {
    /// Whether ElasticFlow meets at least as many deadlines as every baseline.
    pub fn order_holds(&self) -> bool {
        let [elasticflow, baselines @ ..] = &self.counts;
        baselines.iter().all(|baseline| elasticflow.met >= baseline.met)
    }
}

impl Study {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}, {}\n", self.figure.title(), mode_name(self.mode));
        text.push_str("\nJobs that met their deadline as a part of all; published in brackets\n");
        text.push_str(&self.ratios());
        text.push_str("\n\nTimes as many deadlines as the baseline, by elasticflow; published in brackets\n");
        text.push_str(&self.improvements());
        text.push_str("\n\n");
        text.push_str(&self.order());
        text.push_str("\nPublished: ");
        text.push_str(&self.sources().join("; "));
        text.push_str("\nWhat cannot be had again:\n");
        for caveat in self.figure.caveats() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {caveat}");
        }
        let n_jobs: usize = self.rows.iter().map(|row| row.n_jobs * CONTENDERS.len()).sum();
        let _ = writeln!(text, "{n_jobs} jobs in {:.1} s", self.wall_s);
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        let entry = |row: &StudyRow| TraceEntry {
            trace: row.panel.name,
            file: row.panel.file,
            cluster: row.panel.cluster.name(),
            jobs: row.n_jobs,
            published: row.panel.published,
            order_holds: row.order_holds(),
            runs: CONTENDERS
                .iter()
                .zip(row.counts)
                .map(|(contender, counts)| RunEntry { policy: contender.policy, counts })
                .collect(),
        };
        let file = StudyFile {
            title: self.figure.title(),
            mode: mode_name(self.mode),
            wall_s: self.wall_s,
            order_holds: self.rows.iter().all(StudyRow::order_holds),
            traces: self.rows.iter().map(entry).collect(),
            caveats: self.figure.caveats(),
        };
        serde_json::to_string_pretty(&file).expect("figures are plain numbers and text") + "\n"
    }

    fn ratios(&self) -> String {
        let mut table =
            table(["trace", "jobs", "cluster"].into_iter().chain(CONTENDERS.map(|c| c.policy)), 3);
        for row in &self.rows {
            let cells = row.counts.iter().zip(row.panel.published.ratios);
            let cells = cells.map(|(counts, published)| format!("{:.3} ({published:.3})", counts.ratio));
            let names = [row.panel.name.to_owned(), row.n_jobs.to_string(), row.panel.cluster.name()];
            table.add_row(names.into_iter().chain(cells));
        }
        table.to_string()
    }

    fn improvements(&self) -> String {
        let [_, baselines @ ..] = CONTENDERS;
        let mut table = table(["trace"].into_iter().chain(baselines.map(|c| c.policy)), 1);
        for row in &self.rows {
            let ours = row.counts.map(|counts| counts.ratio);
            let times = |ratios: &[f64; 5], at: usize| times(ratios[0], ratios[at]);
            let cells = (1..CONTENDERS.len())
                .map(|at| format!("{} ({})", times(&ours, at), times(&row.panel.published.ratios, at)));
            table.add_row([row.panel.name.to_owned()].into_iter().chain(cells));
        }
        table.to_string()
    }

    fn order(&self) -> String {
        let failing: Vec<String> = self.rows.iter().filter(|row| !row.order_holds()).map(exception).collect();
        let n_rows = self.rows.len();
        match failing.len() {
            0 => format!(
                "elasticflow meets at least as many deadlines as every baseline on all {n_rows} traces."
            ),
            n => format!(
                "elasticflow meets at least as many deadlines as every baseline on {} of {n_rows} traces; not on {}.",
                n_rows - n,
                failing.join("; ")
            ),
        }
    }

    fn sources(&self) -> Vec<&'static str> {
        let mut sources: Vec<_> = self.rows.iter().map(|row| row.panel.published.source).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

/// A trace on which the order does not hold, and who meets more.
fn exception(row: &StudyRow) -> String {
    let [elasticflow, ..] = row.counts;
    let better = CONTENDERS.iter().zip(row.counts).filter(|(_, counts)| counts.met > elasticflow.met);
    let better: Vec<_> = better.map(|(who, counts)| format!("{} {}", who.policy, counts.met)).collect();
    format!("{} (elasticflow {}, {})", row.panel.name, elasticflow.met, better.join(", "))
}

fn times(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 { format!("{:.2}", ours / theirs) } else { "–".into() }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Shipped => "shipped policies",
        Mode::Artifact => "compat=artifact",
    }
}

fn table<'a>(headings: impl Iterator<Item = &'a str>, n_names: usize) -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings);
    for column in table.column_iter_mut().skip(n_names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::elasticflow::{Counts, Figure};

    fn study(met: [usize; 5]) -> Study {
        let counts = met.map(|met| Counts {
            deadline_jobs: 260,
            met,
            declined: 0,
            ratio: met as f64 / 260.0,
            wall_s: 0.0,
        });
        let panel = Figure::EightB.panels()[9];
        let rows = vec![StudyRow { panel, n_jobs: 260, counts }];
        Study { figure: Figure::EightB, mode: Mode::Shipped, rows, wall_s: 1.0 }
    }

    #[test]
    fn ours_stands_beside_the_published_numbers() {
        let text = study([260, 130, 65, 52, 0]).to_text();
        for part in ["1.000 (0.981)", "0.500 (0.769)", "2.00 (1.28)", "– (2.28)", "on all 1 traces"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn a_baseline_that_meets_more_is_named() {
        let study = study([200, 210, 65, 52, 201]);
        assert!(
            study
                .order()
                .ends_with("on 0 of 1 traces; not on cluster10 (elasticflow 200, edf 210, themis 201).")
        );
        assert!(study.to_json().contains("\"order_holds\": false"));
    }
}
