//! A figure that was run: its rows, what they say to its claims, and how it is told to people and programs.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::{Deserialize, Serialize};

use super::claims::{Claimant, Outcome, Verdict};
use super::evidence::{Asked, Cell, Evidence, Story, cells, said};
use super::papers::{Judged, Paper, PaperFigure};
use super::quantity::Quantity;
use crate::report::TABLE_STYLE;

/// A figure with all that is known of it.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The paper.
    pub paper: &'static Paper,
    /// The figure.
    pub figure: &'static PaperFigure,
    /// Whether it was run small.
    pub is_quick: bool,
    /// The rows.
    pub evidence: Evidence,
    /// What each defect of the original does to its main number.
    pub defects: Vec<DefectRow>,
}

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

/// What stands in the table of defects: headings, rows, and the defects that change nothing.
pub(super) struct DefectTable {
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) idle: Vec<String>,
}

/// One line of the table that tells the three stories.
pub(super) struct Told<'a> {
    pub(super) at: &'a Asked,
    pub(super) policy: &'a str,
    pub(super) of: &'a Quantity,
    pub(super) values: [Option<f64>; 3],
}

impl Reproduced {
    /// Its heading.
    pub fn heading(&self) -> String {
        self.paper.heading(self.figure)
    }

    /// Each claim with what each story says to it.
    pub fn verdicts(&self) -> Vec<Judged> {
        self.figure.verdicts(&self.evidence)
    }

    /// The lines of the table: every policy at every setting in every number that somebody tells.
    pub(super) fn told(&self) -> Vec<Told<'_>> {
        let stories: Vec<Vec<Cell<'_>>> =
            Story::ALL.iter().map(|story| cells(self.evidence.of(*story))).collect();
        let mut told: Vec<Told<'_>> = Vec::new();
        for of in self.figure.shows {
            // The runs give the order; what only the paper has comes last.
            for cell in stories.iter().rev().flatten() {
                let is_known = |line: &Told<'_>| {
                    line.of.name == of.name && line.policy == cell.policy && line.at == cell.at
                };
                if told.iter().any(is_known) {
                    continue;
                }
                let value = |cells: &Vec<Cell<'_>>| {
                    let same = cells.iter().find(|c| c.policy == cell.policy && c.at == cell.at);
                    same.and_then(|c| c.mean(of.name))
                };
                let values = [value(&stories[0]), value(&stories[1]), value(&stories[2])];
                if values.iter().any(Option::is_some) {
                    told.push(Told { at: cell.at, policy: cell.policy, of, values });
                }
            }
        }
        told
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.heading());
        if self.is_quick {
            let _ = writeln!(text, "--quick: {}", self.figure.quick);
        }
        let _ = write!(text, "\n{}\n\n", self.stories_table());
        let sources = self.figure.sources();
        if !sources.is_empty() {
            let _ = writeln!(text, "Published: {}.", sources.join("; "));
        }
        if let Some(table) = self.defects_text() {
            let heading = "What each defect of the original does to this figure";
            let _ = write!(text, "\n{heading}\n{table}\n");
        }
        text.push_str("\nClaims\n");
        for Judged { claim, verdicts } in self.verdicts() {
            let by = if claim.by == Claimant::Rota { " (ours, not the paper's)" } else { "" };
            let _ = writeln!(text, "{}: {}{by}", claim.name, claim.says);
            for (story, Verdict { outcome, why }) in verdicts {
                let _ = writeln!(text, "  {:<17} {}: {why}", story.heading(), outcome.text());
            }
        }
        text.push_str("\nWhat stands between these numbers and the published ones\n");
        for caveat in self.figure.caveats {
            let _ = writeln!(text, "- {caveat}");
        }
        text
    }

    fn stories_table(&self) -> Table {
        let mut table = plain_table();
        let headings = ["at", "policy", "number"].into_iter().chain(Story::ALL.map(Story::heading));
        table.set_header(headings);
        for Told { at, policy, of, values } in self.told() {
            let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| of.text(value));
            let names = [said(at), policy.to_owned(), of.shown.to_owned()];
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
            headings.extend(leader(policies, index).map(|leader| format!("{} over it", policies[leader])));
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
        let (idle, telling): (Vec<&DefectRow>, Vec<&DefectRow>) =
            self.defects.iter().partition(|row| is_idle(row));
        let names = idle.iter().map(|row| row.defects.trim_end_matches(ALONE).to_owned());
        Some(DefectTable { headings, rows: telling.into_iter().map(row).collect(), idle: names.collect() })
    }

    fn defects_text(&self) -> Option<String> {
        let DefectTable { headings, rows, idle } = self.defect_cells()?;
        let mut table = plain_table();
        table.set_header(headings);
        for row in rows {
            table.add_row(row);
        }
        align(&mut table, 1);
        let idle = match idle.is_empty() {
            true => String::new(),
            false => format!("\nAlone, these change nothing here: {}.", idle.join(", ")),
        };
        Some(format!("{table}{idle}"))
    }

    /// Claims with their verdicts as a table in Markdown, and why where a claim does not simply hold.
    pub fn to_markdown(&self) -> String {
        let quick = if self.is_quick { " (`--quick`)" } else { "" };
        let mut text =
            format!("### `{} {}`: {}{quick}\n\n", self.paper.system, self.figure.name, self.figure.title);
        text.push_str("| claim | says | published | original's rules | shipped |\n|---|---|---|---|---|\n");
        let verdicts = self.verdicts();
        for Judged { claim, verdicts } in &verdicts {
            let cell = |story: Story| {
                let found = verdicts.iter().find(|(told, _)| *told == story);
                found.map_or("–", |(_, verdict)| verdict.outcome.text())
            };
            let by = if claim.by == Claimant::Rota { " (ours)" } else { "" };
            let [published, original, shipped] = Story::ALL.map(cell);
            let _ = writeln!(
                text,
                "| `{}` | {}{by} | {published} | {original} | {shipped} |",
                claim.name, claim.says
            );
        }
        text.push('\n');
        for Judged { claim, verdicts } in &verdicts {
            let told = verdicts.iter().filter(|(story, verdict)| {
                *story != Story::Published && matches!(verdict.outcome, Outcome::DoesNotHold | Outcome::Tie)
            });
            for (story, verdict) in told {
                let _ = writeln!(text, "- `{}`, {}: {}.", claim.name, story.heading(), verdict.why);
            }
        }
        text
    }
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
            at: Asked::new(),
            seed: None,
            numbers: [("deadline_ratio".into(), ratio)].into(),
        };
        let rows = [
            (Story::Published, figure.published_rows()),
            (Story::Original, vec![run("elasticflow", 0.749), run("edf", 0.087)]),
            (Story::Shipped, vec![run("elasticflow", 0.913), run("edf", 0.913)]),
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
    fn three_stories_stand_in_one_table_with_their_verdicts() {
        let text = six_b().to_text();
        for part in [
            "0.667",
            "0.749",
            "0.913",
            "0.410",
            "elasticflow-ahead: ",
            "published         holds: in all 5 rows; closest: elasticflow 0.667 against tiresias 0.456, 1.461x",
            "shipped           tie: level in 1 of 1 rows",
            "Alone, these change nothing here: edf-width.",
            "8.61x",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
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
        assert!(text.contains("| `elasticflow-ahead` | elasticflow meets more deadlines than everybody else | holds | holds | tie |"), "{text}");
        assert!(text.contains("- `elasticflow-ahead`, shipped: level in 1 of 1 rows"), "{text}");
    }
}
