//! A figure that was run: its rows, the verdicts on its claims, and its tables as text.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::{Deserialize, Serialize};

use super::claims::{Claimant, LEVEL, Outcome, Scope, Verdict};
use super::evidence::{At, Cell, Column, Evidence, cells, text_of};
use super::papers::{Judged, Paper, PaperFigure, difference};
use super::quantity::Quantity;
use crate::report::TABLE_STYLE;

/// A figure and its numbers.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The paper that has the figure.
    pub paper: &'static Paper,
    /// The figure, with its claims and what they are judged by.
    pub figure: &'static PaperFigure,
    /// Whether it was run small.
    pub is_quick: bool,
    /// The rows of every column, published ones too.
    pub evidence: Evidence,
    /// What each defect of the original does to its main number.
    pub defects: Vec<DefectRow>,
}

/// The heading of what a reader must know to compare the columns.
pub(super) const DIFFER: &str = "Why these numbers differ from the published ones";
/// How the name of the shipped policies' row begins.
pub const SHIPPED: &str = "shipped";
/// How the names of rows with one defect end.
pub const ALONE: &str = " alone";
/// How the name of the row without defects begins.
pub const NONE: &str = "none";

/// The main number with some of the original's defects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefectRow {
    /// Which defects are on.
    pub defects: String,
    /// The number by policy, in the order of the figure's list.
    pub numbers: Vec<Option<f64>>,
}

/// The table of defects: headings, rows, and sentences below it.
pub(super) struct DefectTable {
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) notes: Vec<String>,
}

/// One row of the main table.
pub(super) struct TableRow<'a> {
    pub(super) at: &'a At,
    pub(super) policy: &'a str,
    pub(super) of: &'a Quantity,
    pub(super) values: [Option<f64>; 3],
}

impl Reproduced {
    /// Its heading.
    pub fn heading(&self) -> String {
        self.paper.heading(self.figure)
    }

    /// Each claim with its verdict by each column.
    pub fn verdicts(&self) -> Vec<Judged> {
        self.figure.verdicts(&self.evidence)
    }

    /// The rows of the main table: every policy at every setting in every number that some column has. In the small form,
    /// published numbers at settings that are not run are left out.
    pub(super) fn table_rows(&self) -> Vec<TableRow<'_>> {
        let columns: Vec<Vec<Cell<'_>>> =
            Column::ALL.iter().map(|column| cells(self.evidence.of(*column))).collect();
        let is_run = |at: &At| columns[1..].iter().flatten().any(|cell| cell.at == at);
        let mut rows: Vec<TableRow<'_>> = Vec::new();
        for of in self.figure.shows {
            // The runs give the order; what only the paper has comes last.
            for cell in columns.iter().rev().flatten() {
                let is_known = |line: &TableRow<'_>| {
                    line.of.name == of.name && line.policy == cell.policy && line.at == cell.at
                };
                if rows.iter().any(is_known) || (self.is_quick && !is_run(cell.at)) {
                    continue;
                }
                let value = |cells: &Vec<Cell<'_>>| {
                    let same = cells.iter().find(|c| c.policy == cell.policy && c.at == cell.at);
                    same.and_then(|c| c.mean(of.name))
                };
                let values = [value(&columns[0]), value(&columns[1]), value(&columns[2])];
                if values.iter().any(Option::is_some) {
                    rows.push(TableRow { at: cell.at, policy: cell.policy, of, values });
                }
            }
        }
        rows
    }

    /// Sentences about policies that have the same number at the same settings, where the figure says why.
    pub(super) fn equal_numbers(&self) -> Vec<String> {
        let (Some(why), Some(of)) = (self.figure.equal, self.figure.shows.first()) else { return Vec::new() };
        let mut groups: Vec<(Column, Vec<&str>, Vec<String>)> = Vec::new();
        for column in [Column::Original, Column::Shipped] {
            let cells = cells(self.evidence.of(column));
            for cell in &cells {
                let value = |cell: &Cell<'_>| cell.mean(of.name).map(f64::to_bits);
                let is_like = |other: &&Cell<'_>| other.at == cell.at && value(other) == value(cell);
                let like: Vec<&str> = cells.iter().filter(is_like).map(|other| other.policy).collect();
                // Two may be equal by chance; each group is found at its first policy.
                if like.len() < 3 || like.first() != Some(&cell.policy) {
                    continue;
                }
                let at = text_of(cell.at);
                match groups.iter_mut().find(|(known, policies, _)| *known == column && *policies == like) {
                    Some((.., places)) => places.push(at),
                    None => groups.push((column, like, vec![at])),
                }
            }
        }
        let sentence = |(column, policies, places): (Column, Vec<&str>, Vec<String>)| {
            let places = if places == [""] { String::new() } else { format!(" at {}", places.join("; ")) };
            format!("{}: {} have the same {}{places}: {why}", column.heading(), policies.join(", "), of.shown)
        };
        groups.into_iter().map(sentence).collect()
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.heading());
        if self.is_quick {
            let _ = writeln!(text, "--quick: {}", self.figure.quick);
        }
        let _ = write!(text, "\n{}\n\n", self.main_table());
        let sources = self.figure.sources();
        if !sources.is_empty() {
            let _ = writeln!(text, "Published: {}.", sources.join("; "));
        }
        for sentence in self.equal_numbers() {
            let _ = writeln!(text, "{sentence}.");
        }
        if let Some(table) = self.defects_text() {
            let heading = "What each defect of the original does to this figure";
            let _ = write!(text, "\n{heading}{}\n{table}\n", self.defects_at());
        }
        text.push_str("\nClaims\n");
        for Judged { claim, verdicts } in self.verdicts() {
            let by = if claim.by == Claimant::Rota { " (ours, not the paper's)" } else { "" };
            let _ = writeln!(text, "{}: {}{by}", claim.name, claim.says);
            for (column, Verdict { outcome, why }) in verdicts {
                let _ = writeln!(text, "  {:<17} {}: {why}", column.heading(), outcome.text());
            }
        }
        let _ = writeln!(text, "\n{DIFFER}");
        for caveat in self.figure.caveats {
            let _ = writeln!(text, "- {caveat}");
        }
        text
    }

    fn main_table(&self) -> Table {
        let mut table = plain_table();
        let headings = ["at", "policy", "number"].into_iter().chain(Column::ALL.map(Column::heading));
        table.set_header(headings);
        for TableRow { at, policy, of, values } in self.table_rows() {
            let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| of.text(value));
            let names = [text_of(at), policy.to_owned(), of.shown.to_owned()];
            table.add_row(names.into_iter().chain(values.map(value)));
        }
        align(&mut table, 3);
        table
    }

    /// A row for each choice of defects that changes something, a column for each policy, and how far the first policy
    /// with the same order leads it.
    pub(super) fn defect_cells(&self) -> Option<DefectTable> {
        let attributed = self.figure.attributed.filter(|_| !self.defects.is_empty())?;
        let of = attributed.of;
        let policies = attributed.policies;
        let mut headings = vec!["defects".to_owned()];
        for (index, policy) in policies.iter().enumerate() {
            headings.push((*policy).to_owned());
            headings
                .extend(leader(policies, index).map(|leader| format!("{} over {policy}", policies[leader])));
        }
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| of.text(value));
        let row = |row: &DefectRow| {
            let number = |index: usize| row.numbers.get(index).copied().flatten();
            let mut cells = vec![row.defects.clone()];
            for index in 0..policies.len() {
                cells.push(cell(number(index)));
                cells.extend(leader(policies, index).map(|leader| {
                    let lead = number(leader).zip(number(index)).map(|(own, rival)| of.lead(own, rival));
                    lead.map_or_else(|| "–".to_owned(), |lead| format!("{lead:.2}x"))
                }));
            }
            cells
        };
        let mended = self.defects.iter().find(|row| row.defects.starts_with(NONE));
        let is_idle = |row: &DefectRow| {
            row.defects.ends_with(ALONE) && mended.is_some_and(|mended| mended.numbers == row.numbers)
        };
        let (idle, shown): (Vec<&DefectRow>, Vec<&DefectRow>) =
            self.defects.iter().partition(|row| is_idle(row));
        let mut notes = Vec::new();
        if !idle.is_empty() {
            let names: Vec<&str> = idle.iter().map(|row| row.defects.trim_end_matches(ALONE)).collect();
            notes.push(format!("Alone, these change nothing here: {}.", names.join(", ")));
        }
        let shipped = self.defects.iter().find(|row| row.defects.starts_with(SHIPPED));
        if let Some((mended, shipped)) = mended.zip(shipped) {
            notes.extend(self.remaining_differences(policies, &of, mended, shipped));
        }
        Some(DefectTable { headings, rows: shown.into_iter().map(row).collect(), notes })
    }

    /// A sentence for each policy whose shipped number is not that of the original without its defects.
    fn remaining_differences(
        &self,
        policies: &[&str],
        of: &Quantity,
        mended: &DefectRow,
        shipped: &DefectRow,
    ) -> Vec<String> {
        let numbers = policies.iter().zip(mended.numbers.iter().zip(&shipped.numbers));
        let sentence = |(policy, (mended, shipped)): (&&str, (&Option<f64>, &Option<f64>))| {
            let (mended, shipped) = mended.zip(*shipped)?;
            if (of.lead(shipped, mended) - 1.0).abs() <= LEVEL {
                return None;
            }
            let why =
                difference(self.paper.program(), policy).unwrap_or("docs/fidelity.md compares the rules");
            Some(format!(
                "{policy} is {} with all defects mended and {} as shipped: {why}.",
                of.text(mended),
                of.text(shipped)
            ))
        };
        numbers.filter_map(sentence).collect()
    }

    /// Where the table of defects holds.
    pub(super) fn defects_at(&self) -> String {
        let at =
            self.figure.attributed.map(|attributed| attributed.in_form(self.is_quick).at).unwrap_or_default();
        let at: Vec<String> =
            at.iter().map(|(name, value)| format!("{} {value}", name.replace('_', " "))).collect();
        if at.is_empty() { String::new() } else { format!(", at {}", at.join(", ")) }
    }

    fn defects_text(&self) -> Option<String> {
        let DefectTable { headings, rows, notes } = self.defect_cells()?;
        let mut table = plain_table();
        table.set_header(headings);
        for row in rows {
            table.add_row(row);
        }
        align(&mut table, 1);
        let notes: String = notes.iter().flat_map(|note| ["\n", note]).collect();
        Some(format!("{table}{notes}"))
    }

    /// Claims with their verdicts as a table in Markdown, and why where a claim does not hold. Claims about all figures of
    /// the paper are left to [`over_all_figures`].
    pub fn to_markdown(&self) -> String {
        let quick = if self.is_quick { " (`--quick`)" } else { "" };
        let heading = format!("`{} {}`: {}{quick}", self.paper.system, self.figure.name, self.figure.title);
        let verdicts = self.verdicts().into_iter().filter(|judged| judged.claim.scope == Scope::Figure);
        markdown(&heading, &verdicts.collect::<Vec<_>>())
    }
}

/// Claims about all figures of a paper, judged by those that were run, in Markdown; nothing if it has none.
pub fn over_all_figures(paper: &Paper, run: &[Reproduced]) -> Option<String> {
    let run: Vec<_> = run.iter().map(|reproduced| (reproduced.figure, &reproduced.evidence)).collect();
    let verdicts = paper.over_all_figures(&run);
    (!verdicts.is_empty()).then(|| markdown(&format!("`{}`, over all figures", paper.system), &verdicts))
}

fn markdown(heading: &str, verdicts: &[Judged]) -> String {
    let mut text = format!("### {heading}\n\n");
    text.push_str("| claim | says | published | original's rules | shipped |\n|---|---|---|---|---|\n");
    for Judged { claim, verdicts } in verdicts {
        let cell = |column: Column| {
            let found = verdicts.iter().find(|(known, _)| *known == column);
            found.map_or("–", |(_, verdict)| verdict.outcome.text())
        };
        let by = if claim.by == Claimant::Rota { " (ours)" } else { "" };
        let [published, original, shipped] = Column::ALL.map(cell);
        let _ = writeln!(
            text,
            "| `{}` | {}{by} | {published} | {original} | {shipped} |",
            claim.name, claim.says
        );
    }
    text.push('\n');
    for Judged { claim, verdicts } in verdicts {
        let explained = verdicts.iter().filter(|(column, verdict)| {
            *column != Column::Published && matches!(verdict.outcome, Outcome::DoesNotHold | Outcome::Tie)
        });
        for (column, verdict) in explained {
            let _ = writeln!(text, "- `{}`, {}: {}.", claim.name, column.heading(), verdict.why);
        }
    }
    text
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn align(table: &mut Table, n_names: usize) {
    for column in table.column_iter_mut().skip(n_names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The policy that one is compared with: the first with the same order, `las+tune` for `las+greedy`.
fn leader(policies: &[&str], index: usize) -> Option<usize> {
    let order = |policy: &str| policy.rsplit_once('+').map(|(order, _)| order.to_owned());
    let own = order(policies.get(index)?);
    policies.iter().take(index).position(|policy| order(policy) == own)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::evidence::Row;
    use super::super::papers::paper;
    use super::*;

    pub(in crate::reproduce) fn six_b() -> Reproduced {
        let paper = paper("elasticflow").expect("a paper");
        let figure = paper.figure("6b").expect("a figure");
        let run = |policy: &str, ratio: f64| Row {
            policy: policy.into(),
            at: At::new(),
            seed: None,
            numbers: [("deadline_ratio".into(), ratio)].into(),
        };
        let rows = [
            (Column::Published, figure.published_rows()),
            (Column::Original, vec![run("elasticflow", 0.749), run("edf", 0.087)]),
            (Column::Shipped, vec![run("elasticflow", 0.913), run("edf", 0.913)]),
        ];
        let defects = vec![
            DefectRow { defects: "all".into(), numbers: vec![Some(0.749), Some(0.087)] },
            DefectRow { defects: "growth-sign alone".into(), numbers: vec![Some(0.8), None] },
            DefectRow { defects: "edf-width alone".into(), numbers: vec![Some(0.9), None] },
            DefectRow { defects: "none: all mended".into(), numbers: vec![Some(0.9), None] },
        ];
        Reproduced { paper, figure, is_quick: false, evidence: Evidence { rows: rows.into() }, defects }
    }

    #[test]
    fn three_columns_stand_in_one_table_with_their_verdicts() {
        let text = six_b().to_text();
        for part in [
            "0.667",
            "0.749",
            "0.913",
            "0.410",
            "elasticflow-ahead: ",
            "published         holds: in all 5 comparisons; closest: elasticflow 0.667 against tiresias 0.456, 1.461x",
            "shipped           tie: level in the only comparison",
            "Alone, these change nothing here: edf-width.",
            "8.61x",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn what_differs_between_the_mended_original_and_the_shipped_policy_is_explained() {
        let mut reproduced = six_b();
        let shipped = |edf: f64| DefectRow { defects: "shipped".into(), numbers: vec![Some(0.9), Some(edf)] };
        reproduced.defects[3].numbers = vec![Some(0.9), Some(0.277)];
        let notes = |reproduced: &Reproduced| reproduced.defect_cells().expect("a table").notes;
        reproduced.defects.push(shipped(0.272));
        let notes_of_both = notes(&reproduced);
        assert_eq!(notes_of_both.len(), 1, "elasticflow is the same, nothing is idle: {notes_of_both:?}");
        assert!(
            notes_of_both[0].starts_with(
                "edf is 0.277 with all defects mended and 0.272 as shipped: the original decides"
            ),
            "{notes_of_both:?}"
        );
        reproduced.defects[4] = shipped(0.277);
        assert_eq!(notes(&reproduced), [""; 0]);
    }

    #[test]
    fn policies_with_the_same_number_are_named_with_the_reason() {
        let mut reproduced = six_b();
        assert_eq!(reproduced.equal_numbers(), [""; 0], "two may be equal by chance");
        let run = |policy: &str, ratio: f64| Row {
            policy: policy.into(),
            at: At::new(),
            seed: None,
            numbers: [("deadline_ratio".into(), ratio)].into(),
        };
        let rows = [("elasticflow", 0.9), ("edf", 0.5), ("gandiva", 0.5), ("themis", 0.5)];
        let rows = rows.map(|(policy, ratio)| run(policy, ratio)).to_vec();
        reproduced.evidence.rows.insert(Column::Shipped, rows);
        let sentences = reproduced.equal_numbers();
        assert_eq!(sentences.len(), 1);
        assert!(
            sentences[0]
                .starts_with("shipped: edf, gandiva, themis have the same deadlines met: policies that give"),
            "{sentences:?}"
        );
    }

    #[test]
    fn the_small_form_shows_published_numbers_of_what_it_runs() {
        let mut reproduced = six_b();
        let figure = reproduced.paper.figure("8b").expect("a figure");
        reproduced.figure = figure;
        let run = Row {
            policy: "edf".into(),
            at: [("trace".into(), "cluster10".into())].into(),
            seed: None,
            numbers: [("deadline_ratio".into(), 0.9)].into(),
        };
        let rows = [(Column::Published, figure.published_rows()), (Column::Shipped, vec![run])];
        reproduced.evidence.rows = rows.into();
        assert_eq!(reproduced.table_rows().len(), 66, "six policies on eleven traces");
        reproduced.is_quick = true;
        assert_eq!(reproduced.table_rows().len(), 6, "on one trace");
    }

    #[test]
    fn a_lead_is_over_a_policy_with_the_same_order() {
        let allocations = ["drf+tune", "drf+greedy", "tetris+tune", "tetris+greedy"];
        let leaders: Vec<_> = (0..4).map(|index| leader(&allocations, index)).collect();
        assert_eq!(leaders, [None, Some(0), None, Some(2)]);
        assert_eq!(leader(&["elasticflow", "edf", "themis"], 2), Some(0));
    }

    #[test]
    fn the_list_of_claims_says_why_where_one_does_not_hold() {
        let text = six_b().to_markdown();
        assert!(text.contains("| `elasticflow-ahead` | elasticflow meets more deadlines than every other policy | holds | holds | tie |"), "{text}");
        assert!(text.contains("- `elasticflow-ahead`, shipped: level in the only comparison"), "{text}");
    }
}
