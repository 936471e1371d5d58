//! The page of a figure: verdicts first, then plots, the main table, the table of defects, and why numbers differ.

use std::path::Path;

use maud::{Markup, html};

use super::claims::{Claimant, Outcome, Verdict};
use super::evidence::{Column, text_of};
use super::kept::FILE;
use super::papers::Judged;
use super::reproduced::{DIFFER, DefectTable, Reproduced, TableRow};
use crate::report::html::{self, Cell};
use crate::report::{self, ReportError, begin_large};
use crate::results::replace_file;

/// Pages that other commands left in the folder of a figure, with what they show.
const OTHERS: [(&str, &str); 2] = [
    ("study/report.html", "every run, with intervals and comparisons"),
    ("over-time/report.html", "the shipped policies over time"),
];

impl Reproduced {
    /// Writes `report.html`, `claims.json`, and each picture into `plots/`.
    pub fn write(&self, out: &Path, program: &str, asked: &[String]) -> Result<(), ReportError> {
        let pictures = self.pictures();
        report::write_figures(&pictures, out)?;
        let body = html! {
            (self.verdict_section())
            (html::section("Figures", &html::plots(&pictures)?))
            (self.table_section())
            (self.defects_section())
            (html::section(DIFFER, &html::list(self.figure.caveats)))
        };
        let links = OTHERS.iter().filter(|(page, _)| out.join(page).exists());
        let facts = html! {
            p { "Rota " (env!("CARGO_PKG_VERSION")) @for (page, shows) in links { " · " a href=(page) { (shows) } } }
            @if self.is_quick { p { "The quick form: " (html::prose(self.figure.quick)) "." } }
        };
        let page = html::document(&self.heading(), &facts, &body, "");
        replace_file(&out.join("report.html"), page.as_bytes())?;
        Ok(replace_file(&out.join(FILE), self.to_json(program, asked).as_bytes())?)
    }

    /// A paragraph for each claim: its sentences are too long for the cells of a table.
    fn verdict_section(&self) -> Markup {
        let claims = html! {
            @for Judged { claim, verdicts } in self.verdicts() {
                p { b { (claim.name) } ": " (claim.says) @if claim.by == Claimant::Rota { " (ours, not the paper's)" } }
                ul { @for (column, verdict) in &verdicts { li { (column.heading()) ": " (verdict_text(verdict)) } } }
            }
        };
        html::section("Claims", &claims)
    }

    fn table_section(&self) -> Markup {
        let rows = self.table_rows();
        // A figure of one setting has none to name.
        let has_places = rows.iter().any(|row| !row.at.is_empty());
        let names = has_places.then_some("at").into_iter().chain(["policy", "number"]);
        // A figure without published numbers, or of which only one form was run, has no column for the other.
        let shown = Column::ALL
            .into_iter()
            .enumerate()
            .filter(|(at, _)| rows.iter().any(|row| row.values[*at].is_some()));
        let shown: Vec<(usize, Column)> = shown.collect();
        let headings = names.chain(shown.iter().map(|(_, column)| column.heading()));
        let n_names = if has_places { 3 } else { 2 };
        let row = |TableRow { at, policy, of, values }: TableRow<'_>| {
            let place = has_places.then(|| text_of(at));
            let names = place.into_iter().chain([policy.to_owned(), of.shown.to_owned()]);
            let value = |&(at, _): &(usize, Column)| {
                values[at].map_or_else(|| "–".to_owned(), |value| of.text(value))
            };
            names.chain(shown.iter().map(value)).map(Cell::Plain).collect()
        };
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
        let sources = self.figure.sources();
        let content = html! {
            (html::tall_table(&html::columns(headings, n_names), &rows))
            @if !sources.is_empty() { p { "Published: " (sources.join("; ")) "." } }
            @for sentence in self.equal_numbers() { p { (html::prose(&sentence)) "." } }
        };
        let names = shown.iter().map(|(_, column)| match column {
            Column::Original => "the original's rules",
            column => column.heading(),
        });
        html::section(&begin_large(&names.collect::<Vec<_>>().join(", ")), &content)
    }

    fn defects_section(&self) -> Markup {
        let Some(DefectTable { headings, rows, notes }) = self.defect_cells() else {
            return Markup::default();
        };
        let shown = self.figure.attributed.map(|attributed| {
            let at = self.defects_at();
            format!(
                "{}{at}: by the original's rules with all defects, with one of them alone, and with none.",
                begin_large(attributed.of.shown)
            )
        });
        // Most figures have no published numbers here.
        let rows = rows.into_iter().filter(|row| row.iter().skip(1).any(|cell| cell != "–"));
        let rows: Vec<Vec<Cell>> = rows.map(|row| row.into_iter().map(Cell::Plain).collect()).collect();
        let content = html! {
            p { (shown.unwrap_or_default()) }
            div.many { (html::table(&html::columns(headings, 1), &rows)) }
            @for note in &notes { p { (html::prose(note)) } }
        };
        html::section("What each defect does to this figure", &content)
    }
}

pub(super) fn verdict_text(Verdict { outcome, why }: &Verdict) -> Markup {
    let mark = match outcome {
        Outcome::Holds => "✓",
        Outcome::DoesNotHold => "✗",
        Outcome::Tie => "=",
        Outcome::NotComparable => "–",
    };
    html! { b { (mark) " " (outcome.text()) } ": " (html::prose(why)) }
}

#[cfg(test)]
mod tests {
    use super::super::reproduced::tests::six_b;

    #[test]
    fn a_page_holds_verdicts_numbers_defects_and_plots() {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("out");
        six_b().write(&out, "0.2 abc", &[]).expect("written");
        let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
        for part in ["elasticflow-ahead", "= tie", "What each defect does to this figure", "0.913", "<svg"] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(out.join("claims.json").is_file() && out.join("plots/deadline-ratio.png").is_file());
    }
}
