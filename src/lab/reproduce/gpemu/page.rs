//! The figure's numbers and verdicts as parts of its page.

use maud::{Markup, html};

use super::super::page::verdict_text;
use super::claims::{CLAIMS, answers, gain};
use super::table::hours;
use super::{Column, ORDERS, ORIGIN, Study};
use crate::report::html::{self, Cell};

impl Study {
    /// Averages and quantiles of each column, and what tuning gains.
    pub(super) fn time_table(&self) -> Markup {
        // Without GPEmu's points it and the paper have no numbers.
        let has_numbers = |column: &Column| self.cells.iter().any(|cell| cell.curve(*column).is_some());
        let columns: Vec<Column> = Column::ALL.into_iter().filter(has_numbers).collect();
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        let mut add = |name: String, what: &str, cell: &dyn Fn(Column) -> String| {
            let values = columns.iter().map(|column| cell(*column));
            rows.push([name, what.to_owned()].into_iter().chain(values).map(Cell::Plain).collect());
        };
        for cell in &self.cells {
            add(cell.policy(), "average", &|column| hours(cell.curve(column).map(|curve| curve.mean_h())));
            for (share, what) in [(0.5, "median"), (0.9, "90th percentile")] {
                let quantile = |column| cell.curve(column).and_then(|curve| curve.quantile_h(share));
                add(cell.policy(), what, &|column| hours(quantile(column)));
            }
        }
        for order in ORDERS {
            let gained = |column| gain(&self.cells, column, order);
            add(order.to_owned(), "gain of tune", &|column| {
                gained(column).map_or_else(|| "–".to_owned(), |gain| format!("{gain:.2}x"))
            });
        }
        let headings = ["policy", "JCT (h)"].into_iter().chain(columns.iter().map(|column| column.name()));
        html! {
            p { (self.what) "." }
            div.many { (html::table(&html::columns(headings, 2), &rows)) }
            @for note in &self.notes { p { (html::prose(note)) } }
            p { "GPEmu's points and the paper's, as its authors read them off: " (ORIGIN) "." }
        }
    }

    /// A paragraph for each claim, with its verdict by each column.
    pub(super) fn claims(&self) -> Markup {
        let answers = answers(self);
        html! {
            @for (claim, says) in CLAIMS {
                p { b { (claim) } ": " (says) }
                ul {
                    @for answer in answers.iter().filter(|answer| answer.claim == claim) {
                        li { (answer.of) ": " (verdict_text(&answer.verdict)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ALLOCATIONS, Cell, Curve, ORDERS, Study};
    use super::CLAIMS;

    #[test]
    fn numbers_are_a_table_and_every_claim_has_its_paragraph() {
        let curve = Curve::of_times(vec![1.0, 2.0, 3.0, 4.0]).expect("four");
        let cell = |order, allocation| {
            let (deployed, simulated) = (curve.clone(), curve.clone());
            Cell { order, allocation, deployed, simulated, gpemu: None, paper: None }
        };
        let cells =
            ORDERS.iter().flat_map(|order| ALLOCATIONS.map(|allocation| cell(*order, allocation))).collect();
        let notes = vec!["drawn as `short` jobs".to_owned()];
        let study = Study { what: "four jobs".to_owned(), is_quick: true, notes, cells };
        let table = study.time_table().into_string();
        assert!(table.contains("<table") && table.contains("las+tune") && table.contains("2.50"), "{table}");
        assert!(table.contains("<code>short</code>"), "{table}");
        let claims = study.claims().into_string();
        for (claim, _) in CLAIMS {
            assert!(claims.contains(claim), "{claim}");
        }
    }
}
