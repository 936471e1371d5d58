//! What is known about a figure: rows of numbers from the paper, from the original's rules and from the shipped policies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who tells the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Story {
    /// The paper or its artifact.
    Published,
    /// The original's rules, run here (`compat=artifact`).
    Original,
    /// The shipped policies.
    Shipped,
}

impl Story {
    /// In the order of every table.
    pub const ALL: [Story; 3] = [Story::Published, Story::Original, Story::Shipped];

    /// What stands above its column.
    pub fn heading(self) -> &'static str {
        match self {
            Story::Published => "published",
            Story::Original => "original's rules",
            Story::Shipped => "shipped",
        }
    }
}

/// The settings of a run besides the policy, by name.
pub type Asked = BTreeMap<String, String>;

/// One policy under one setting: a run, or what the paper says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The policy, as it is called here.
    pub policy: String,
    /// What was asked of it.
    pub at: Asked,
    /// The seed of a drawn workload; the paper names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// Numbers by name: those of `summary.json`, and a few computed from several runs.
    pub numbers: BTreeMap<String, f64>,
}

/// Everything known about a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Evidence {
    /// Rows by who tells them.
    pub rows: BTreeMap<Story, Vec<Row>>,
}

impl Evidence {
    /// What one of them tells; nothing when it was not asked.
    pub fn of(&self, story: Story) -> &[Row] {
        self.rows.get(&story).map_or(&[], Vec::as_slice)
    }
}

/// The rows of a policy under one setting, as the mean over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<'a> {
    /// The policy.
    pub policy: &'a str,
    /// What was asked of it.
    pub at: &'a Asked,
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

/// Rows that differ in their seed alone, in the order of their first.
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

/// Settings as people say them: `jobs per hour 9, split 50,0,50`.
pub fn said(at: &Asked) -> String {
    let parts: Vec<String> =
        at.iter().map(|(name, value)| format!("{} {value}", name.replace('_', " "))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_the_same_question_are_one_cell() {
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
        assert_eq!(said(cells[0].at), "jobs per hour 9");
    }
}
