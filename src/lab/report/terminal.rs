//! The summary as text for a terminal.

use comfy_table::{Attribute, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::{Cell, Heading, SummaryTable};
use crate::results::Results;

/// Lines above, below and under the heading; rows close together.
pub const TABLE_STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// An empty table in that style, as wide as its contents.
pub(crate) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Aligns every column but the first `n_text` to the right.
pub(crate) fn align_numbers(table: &mut Table, n_text: usize) {
    for column in table.column_iter_mut().skip(n_text) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// What a narrow terminal can do without, the most dispensable first.
const DISPENSABLE: [&str; 11] = [
    "wall",
    "preempted",
    "CPU use",
    "p95",
    "makespan",
    "efficiency",
    "finished",
    "slowdown",
    "GPU use",
    "best effort",
    "waiting",
];

/// A table with a row for each run; the best of a column has a star and, on a terminal, is bold. On a terminal that
/// is too narrow for all columns some are left out, which the last line says.
pub fn to_text(results: &Results) -> String {
    within(results, Table::new().width().map(usize::from))
}

fn within(results: &Results, width: Option<usize>) -> String {
    let mut summary = SummaryTable::new(results);
    let mut n_left_out = 0;
    let mut table = table(&summary);
    for name in DISPENSABLE {
        let is_wide =
            |text: &str| width.is_some_and(|width| text.lines().any(|line| line.chars().count() > width));
        if !is_wide(&table.trim_fmt()) {
            break;
        }
        if summary.remove(name) {
            n_left_out += 1;
            table = self::table(&summary);
        }
    }
    let mut text = format!("{table}\n");
    if summary.rows.iter().flatten().any(|cell| cell.is_best) {
        text.push_str("* best of its column\n");
    }
    if results.runs.iter().any(|run| run.meta.is_oracle()) {
        text.push_str("(oracle) decides by exact run times, which a real cluster does not know\n");
    }
    if n_left_out > 0 {
        text.push_str(&format!("{n_left_out} more columns on a wider terminal, or with --json\n"));
    }
    text
}

fn table(summary: &SummaryTable) -> Table {
    let has_star: Vec<bool> =
        (0..summary.headings.len()).map(|at| summary.rows.iter().any(|row| row[at].is_best)).collect();
    let mut table = plain_table();
    table.set_header(summary.headings.iter().zip(&has_star).map(|(heading, star)| head(heading, *star)));
    for row in &summary.rows {
        table.add_row(row.iter().zip(&has_star).map(|(cell, star)| body(cell, *star)));
    }
    align_numbers(&mut table, summary.n_names);
    table
}

fn head(heading: &Heading, has_star: bool) -> comfy_table::Cell {
    let pad = if has_star { " " } else { "" };
    comfy_table::Cell::new(format!("{}{pad}\n{}{pad}", heading.name, heading.unit))
}

/// A blank where others of the column have a star keeps the digits below each other.
fn body(cell: &Cell, has_star: bool) -> comfy_table::Cell {
    let mark = match (cell.is_best, has_star) {
        (true, _) => "*",
        (false, true) => " ",
        (false, false) => "",
    };
    let shown = comfy_table::Cell::new(format!("{}{mark}", cell.text));
    if cell.is_best { shown.add_attribute(Attribute::Bold) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    #[test]
    fn the_terminal_shows_a_row_for_each_policy_and_a_star_for_the_best() {
        let mut runs = vec![run("las+tune", 1, None), run("srtf+tune", 1, None)];
        runs[1].summary.avg_jct_s = Some(60.0);
        let text = to_text(&results(runs));
        let line =
            |policy: &str| text.lines().find(|l| l.contains(policy)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("las+tune").contains("96.75 ") && line("srtf+tune").contains("60.00*"), "{text}");
        assert!(text.contains("best of its column"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_is_told() {
        let results = results(vec![run("las+tune", 1, None), run("srtf+tune", 1, None)]);
        let text = within(&results, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("avg JCT") && text.contains("more columns on a wider terminal"), "{text}");
        assert!(!within(&results, None).contains("more columns"));
    }
}
