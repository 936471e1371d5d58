//! Golden models: each is solved, and its objective compared with the proven optimum.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rota_solvers::{Highs, Limits, Solution, SolveStatus, Solver, Start, read_model};

use super::compare::is_close;
use super::table::{Row, Table};
use super::{Case, ConformError, Judged, Options, Verdict, case_name};

/// Folders of models, and the column of their index that holds the optimum.
const PARTS: [(&str, &str); 2] = [("chronus", "objective"), ("synergy", "mps_objective")];

/// The models of every `index.csv`.
pub(super) fn cases(folder: &Path, _: &Options) -> Result<Vec<Case>, ConformError> {
    let mut cases = Vec::new();
    for (part, column) in PARTS {
        let folder = folder.join(part);
        if !folder.join("index.csv").exists() {
            continue;
        }
        let table = Table::open(&folder.join("index.csv"), &["file", "status", column])?;
        for row in table.rows() {
            let file = case_name(&row, "file")?;
            let golden = GoldenModel { path: folder.join(&file), optimum: optimum(&row, column)? };
            cases.push(Case::new(format!("{part}/{file}"), move || golden.judge()));
        }
    }
    Ok(cases)
}

/// A model and its proven optimum; `None` when it has none because it is infeasible.
struct GoldenModel {
    path: PathBuf,
    optimum: Option<f64>,
}

fn optimum(row: &Row<'_>, column: &str) -> Result<Option<f64>, ConformError> {
    match row.text("status") {
        "Infeasible" => Ok(None),
        "Optimal" => match row.text(column).parse::<f64>() {
            Ok(optimum) if optimum.is_finite() => Ok(Some(optimum)),
            _ => Err(row.expected(column, "a number").into()),
        },
        _ => Err(row.expected("status", "Optimal or Infeasible").into()),
    }
}

impl GoldenModel {
    fn judge(&self) -> Judged {
        let model = read_model(&self.path)?;
        // Generous, so that a busy machine does not change the verdict.
        let limits = Limits { wall: Duration::from_secs(1800), ..Limits::default() };
        let solution = Highs.solve(&model, &limits, Start::Cold);
        Ok(Verdict::of(difference(self.optimum, &solution)))
    }
}

/// What is wrong with an answer, given the proven one.
fn difference(optimum: Option<f64>, solution: &Solution) -> Option<String> {
    match (optimum, &solution.status, solution.objective) {
        (None, SolveStatus::Infeasible, _) => None,
        (None, status, _) => Some(format!("expected infeasible, got {status}")),
        (Some(expected), SolveStatus::Optimal, Some(got)) => {
            (!is_close(expected, got)).then(|| format!("expected an optimum of {expected}, got {got}"))
        }
        (Some(expected), status, _) => Some(format!("expected an optimum of {expected}, got {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solved(objective: f64) -> Solution {
        let status = SolveStatus::Optimal;
        Solution { objective: Some(objective), ..Solution::without_values(status, Duration::ZERO) }
    }

    #[test]
    fn a_millionth_is_forgiven_and_no_more() {
        assert_eq!(difference(Some(-200.0), &solved(-200.000_1)), None);
        let message = "expected an optimum of -200, got -200.01";
        assert_eq!(difference(Some(-200.0), &solved(-200.01)).as_deref(), Some(message));
    }

    #[test]
    fn infeasible_is_an_answer_that_must_be_given() {
        let infeasible = Solution::without_values(SolveStatus::Infeasible, Duration::ZERO);
        assert_eq!(difference(None, &infeasible), None);
        assert_eq!(difference(None, &solved(1.0)).as_deref(), Some("expected infeasible, got optimal"));
        assert!(difference(Some(1.0), &infeasible).is_some());
    }
}
