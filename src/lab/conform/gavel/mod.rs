//! Gavel's cases: single calls of its policies, and whole simulations. How each is compared is a column of the case table.

mod own;
mod policies;
mod replayed;
mod simulations;
mod speeds;

use std::path::Path;
use std::sync::Arc;

use rota_scripts::artifact::gavel::Draws;
use rota_traces::generate::PythonRandom;

use super::table::{Row, Table};
use super::{Case, ConformError, Options, case_name};
use crate::shared::shared_folder;
use policies::GoldenCall;
use simulations::GoldenSimulation;
use speeds::SpeedTable;

/// Where the speeds are that all simulations use, below the folder of public material.
const SPEEDS: &str = "traces/gavel-throughputs/simulation_throughputs.json";

/// How a case is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Objective,
    /// The shares are unique and must be equal too.
    ObjectiveAndShares,
    Shares,
    NormalisedSpeeds,
    /// Start and finish of every job, with the shares we compute.
    Exact,
    /// The same with the recorded shares; then ours.
    Replay,
    KnownDefect,
    /// The original raises an error: ours ends in a message.
    Error,
}

impl Compare {
    const ALL: [(&'static str, Compare); 8] = [
        ("objective", Compare::Objective),
        ("objective+allocation", Compare::ObjectiveAndShares),
        ("allocation", Compare::Shares),
        ("normalised throughputs", Compare::NormalisedSpeeds),
        ("exact", Compare::Exact),
        ("replay", Compare::Replay),
        ("known-defect", Compare::KnownDefect),
        ("error", Compare::Error),
    ];

    fn parse(row: &Row<'_>) -> Result<Self, ConformError> {
        let found = Self::ALL.into_iter().find(|(word, _)| *word == row.text("compare"));
        let words = || Self::ALL.map(|(word, _)| word).join(", ");
        Ok(found.ok_or_else(|| row.expected("compare", format!("one of {}", words())))?.1)
    }
}

/// The cases of `cases.csv`.
pub(super) fn cases(folder: &Path, _: &Options) -> Result<Vec<Case>, ConformError> {
    let columns = ["case", "kind", "policy", "cluster", "input", "expected", "compare", "note"];
    let table = Table::open(&folder.join("cases.csv"), &columns)?;
    let speeds = Arc::new(SpeedTable::at(shared_folder().join(SPEEDS)));
    let mut cases = Vec::new();
    for row in table.rows() {
        let name = case_name(&row, "case")?;
        let compare = Compare::parse(&row)?;
        let note = row.text("note").to_owned();
        let input = folder.join(row.text("input"));
        cases.push(match row.text("kind") {
            "policy" => {
                let golden = GoldenCall { input, compare, note };
                Case::new(name, move || golden.judge())
            }
            "e2e" => {
                let golden = GoldenSimulation {
                    input,
                    compare,
                    note,
                    policy: row.text("policy").to_owned(),
                    cluster: row.text("cluster").to_owned(),
                    expected: folder.join(row.text("expected")),
                    speeds: Arc::clone(&speeds),
                };
                Case::new(name, move || golden.judge())
            }
            _ => return Err(row.expected("kind", "policy or e2e").into()),
        });
    }
    Ok(cases)
}

/// The original's generator.
struct Python(PythonRandom);

impl Draws for Python {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(u32::try_from(n).unwrap_or(u32::MAX)) as usize
    }
}

/// Whether two numbers are equal to a part of the larger one.
fn is_within(part: f64, expected: f64, got: f64) -> bool {
    (got - expected).abs() <= part * expected.abs().max(1e-9)
}

/// A row of the original's answers by its text, `3` or `(3, 5)`.
fn parse_row(text: &str) -> Option<rota_scripts::artifact::gavel::RowId> {
    use rota_scripts::artifact::gavel::RowId;
    let mut jobs = text.trim_matches(['(', ')']).split(',').map(|job| job.trim().parse::<u32>());
    match (jobs.next()?.ok()?, jobs.next()) {
        (job, None) => Some(RowId::single(job)),
        (first, Some(second)) => Some(RowId::pair(first, second.ok()?)),
    }
}
