//! The figure as text: averages and quantiles of each column, what tuning gains, and the verdicts.

use std::fmt::Write as _;

use super::claims::{CLAIMS, answers, gain};
use super::{Column, ORDERS, ORIGIN, Study, TITLE};
use crate::reproduce::claims::Outcome;

impl Study {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut text = format!("GPEmu's Synergy run: {}\n\n", self.what);
        // Takes `&str`, not `String`: rustc 1.91 to 1.96 can pass one and the same `String::new()` to two calls of a closure, and
        // the second call then frees it again (rust-lang/rust#155241).
        let mut line = |words: &str| {
            text.push_str(words);
            text.push('\n');
        };
        line(&format!(
            "{:<18} {:>10} {:>10} {:>10} {:>10}   hours: average / median / 90 %",
            "", "deployed", "simulated", "GPEmu", "the paper"
        ));
        for cell in &self.cells {
            line(&row(&cell.policy(), "average", |column| {
                hours(cell.curve(column).map(|curve| curve.mean_h()))
            }));
            for (share, what) in [(0.5, "median"), (0.9, "90 %")] {
                let quantile = |column| cell.curve(column).and_then(|curve| curve.quantile_h(share));
                line(&row("", what, |column| hours(quantile(column))));
            }
        }
        for order in ORDERS {
            let gained = |column| gain(&self.cells, column, order);
            let text = |column| gained(column).map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}x"));
            line(&row(&format!("{order}: tune gains"), "", text));
        }
        line("");
        for answer in &answers(self) {
            let (claim, of, verdict) = (answer.claim, answer.of, &answer.verdict);
            line(&format!("{claim:<18} {of:<10} {:<14} {}", verdict.outcome.text(), verdict.why));
        }
        line("");
        for note in &self.notes {
            line(&format!("note: {note}"));
        }
        let _ = writeln!(text, "GPEmu's points and the paper's, as its authors read them off: {ORIGIN}");
        text
    }

    /// Claims with their verdicts as a table in Markdown, and why where a claim does not simply hold.
    pub fn to_markdown(&self) -> String {
        let quick = if self.is_quick { " (`--quick`)" } else { "" };
        let mut text = format!("### `gpemu synergy`: {TITLE}{quick}\n\n");
        text.push_str(
            "| claim | says | deployed | simulated | GPEmu | the paper |\n|---|---|---|---|---|---|\n",
        );
        let answers = answers(self);
        for (claim, says) in CLAIMS {
            let cell = |column: Column| {
                let found = answers.iter().find(|answer| answer.claim == claim && answer.of == column.name());
                found.map_or("–", |answer| answer.verdict.outcome.text())
            };
            let _ = writeln!(text, "| `{claim}` | {says} | {} |", Column::ALL.map(cell).join(" | "));
        }
        text.push('\n');
        for answer in &answers {
            if matches!(answer.verdict.outcome, Outcome::DoesNotHold | Outcome::Tie) {
                let _ = writeln!(text, "- `{}`, {}: {}.", answer.claim, answer.of, answer.verdict.why);
            }
        }
        text
    }

    /// Our completion times, laid out as GPEmu's points are.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("order,source,allocation,jct_h,cdf\n");
        for cell in &self.cells {
            for column in [Column::Deployed, Column::Simulated] {
                for (hours, share) in cell.curve(column).map_or(&[][..], |curve| curve.steps()) {
                    let (order, allocation, source) = (cell.order, cell.allocation, column.name());
                    let _ = writeln!(text, "{order},{source},{allocation},{hours:.4},{share:.4}");
                }
            }
        }
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        #[derive(serde::Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            study: &'a Study,
            verdicts: Vec<super::Answer>,
        }
        let whole = Whole { study: self, verdicts: answers(self) };
        serde_json::to_string_pretty(&whole).expect("numbers and text are plain JSON") + "\n"
    }
}

/// A line of the table: a cell for each column.
fn row(name: &str, what: &str, cell: impl Fn(Column) -> String) -> String {
    let mut line = format!("{name:<18}");
    for column in Column::ALL {
        let _ = write!(line, " {:>10}", cell(column));
    }
    let _ = write!(line, "   {what}");
    line.trim_end().to_owned()
}

/// Hours with two decimals, or a dash.
pub(super) fn hours(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |hours| format!("{hours:.2}"))
}

#[cfg(test)]
mod tests {
    use super::super::{ALLOCATIONS, Cell, Curve};
    use super::*;

    /// Optimised by rustc 1.91 to 1.96, this aborted when both blank lines were an empty `String` given to one closure.
    #[test]
    fn the_text_has_a_blank_line_around_the_verdicts() {
        let curve = Curve::of_times(vec![1.0, 2.0, 3.0, 4.0]).expect("four");
        let mut cells = Vec::new();
        for order in ORDERS {
            for allocation in ALLOCATIONS {
                let (deployed, simulated) = (curve.clone(), curve.clone());
                cells.push(Cell { order, allocation, deployed, simulated, gpemu: None, paper: None });
            }
        }
        let study =
            Study { what: "four jobs".to_owned(), is_quick: true, notes: vec!["small".to_owned()], cells };
        let text = study.to_text();
        let parts: Vec<&str> = text.split("\n\n").collect();
        let [title, table, verdicts, notes] = parts[..] else { panic!("four parts: {text}") };
        assert_eq!(title, "GPEmu's Synergy run: four jobs");
        assert_eq!(table.lines().count(), 1 + 3 * study.cells.len() + ORDERS.len(), "{table}");
        assert_eq!(verdicts.lines().count(), answers(&study).len(), "{verdicts}");
        assert_eq!(notes.lines().next(), Some("note: small"));
    }
}
