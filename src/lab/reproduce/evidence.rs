//! The numbers of a figure: rows that are published, that the original's rules give, and that the shipped policies give.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A column of a figure's table: where the numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// The paper or its artifact.
    Published,
    /// The original's rules, run here (`compat=artifact`).
    Original,
    /// The shipped policies.
    Shipped,
}

impl Column {
    /// All columns, in the order of every table.
    pub const ALL: [Column; 3] = [Column::Published, Column::Original, Column::Shipped];

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Column::Published => "published",
            Column::Original => "original's rules",
            Column::Shipped => "shipped",
        }
    }
}

/// The settings of a row besides its policy, by name.
pub type At = BTreeMap<String, String>;

/// The numbers of one policy at one setting: of a run, or as published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The policy, as it is called here.
    pub policy: String,
    /// The settings of the run, such as its load.
    pub at: At,
    /// The seed of a drawn workload; none for published numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// Numbers by name: those of `summary.json`, and a few that are computed from several runs.
    pub numbers: BTreeMap<String, f64>,
}

/// All rows of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Evidence {
    /// Rows by column.
    pub rows: BTreeMap<Column, Vec<Row>>,
}

impl Evidence {
    /// The rows of a column; none when it was not run.
    pub fn of(&self, column: Column) -> &[Row] {
        self.rows.get(&column).map_or(&[], Vec::as_slice)
    }
}

/// The rows of a policy under one setting, as the mean over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<'a> {
    /// The policy, as it is called here.
    pub policy: &'a str,
    /// The settings that its rows share.
    pub at: &'a At,
    rows: Vec<&'a Row>,
}

impl<'a> Cell<'a> {
    /// The mean of a number over the seeds that have it.
    pub fn mean(&self, name: &str) -> Option<f64> {
        let values: Vec<f64> = self.rows.iter().filter_map(|row| row.numbers.get(name).copied()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Runs behind it.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// A number of the run with a seed.
    pub fn with_seed(&self, seed: Option<&str>, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.seed.as_deref() == seed)?;
        row.numbers.get(name).copied()
    }

    /// The seeds, in the order of the runs.
    pub fn seeds(&self) -> impl Iterator<Item = Option<&'a str>> + '_ {
        self.rows.iter().map(|row| row.seed.as_deref())
    }
}

/// Rows that differ only in their seed, in the order of the first of each.
pub fn cells(rows: &[Row]) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|cell| cell.policy == row.policy && *cell.at == row.at) {
            Some(cell) => cell.rows.push(row),
            None => cells.push(Cell { policy: &row.policy, at: &row.at, rows: vec![row] }),
        }
    }
    cells
}

/// Settings for people: `jobs per hour 9, split 50,0,50`.
pub fn text_of(at: &At) -> String {
    let parts: Vec<String> =
        at.iter().map(|(name, value)| format!("{} {value}", name.replace('_', " "))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_only_in_their_seed_are_one_cell() {
        let row = |seed: &str, jct: f64| Row {
            policy: "las".into(),
            at: [("jobs_per_hour".into(), "9".into())].into(),
            seed: Some(seed.into()),
            numbers: [("avg_jct_s".into(), jct)].into(),
        };
        let rows = [row("1", 10.0), row("2", 20.0)];
        let cells = cells(&rows);
        assert_eq!((cells.len(), cells[0].n_rows(), cells[0].mean("avg_jct_s")), (1, 2, Some(15.0)));
        assert_eq!(cells[0].with_seed(Some("2"), "avg_jct_s"), Some(20.0));
        assert_eq!(text_of(cells[0].at), "jobs per hour 9");
    }
}
