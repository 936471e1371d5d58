//! The summary as text for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

use super::SummaryTable;
use crate::results::Results;

/// A table with a row for each run; the best of a column has a star and, on a terminal, is bold.
pub fn to_text(results: &Results) -> String {
    let summary = SummaryTable::new(results);
    let has_best = summary.rows.iter().flatten().any(|cell| cell.is_best);
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table
        .set_header(summary.headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Bold)));
    for row in &summary.rows {
        table.add_row(row.iter().enumerate().map(|(at, cell)| {
            // A blank where others have a star keeps the digits below each other.
            let mark = match (cell.is_best, has_best && at >= summary.n_names) {
                (true, _) => "*",
                (false, true) => " ",
                (false, false) => "",
            };
            let shown = Cell::new(format!("{}{mark}", cell.text));
            if cell.is_best { shown.add_attribute(Attribute::Bold) } else { shown }
        }));
    }
    for column in table.column_iter_mut().skip(summary.n_names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = table.to_string();
    text.push('\n');
    if has_best {
        text.push_str("* best of its column\n");
    }
    text
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
}
