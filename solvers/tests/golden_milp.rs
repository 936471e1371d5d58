//! Every model in golden/milp: the proven objective, or infeasible.

use std::collections::BTreeMap;
use std::path::Path;

use rota_solvers::{Highs, Limits, Solution, SolveStatus, Solver, Start, read_model};

/// Rows of an index file by column name.
fn index(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    let mut lines = text.lines();
    let titles: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row =
        |line: &str| titles.iter().map(|t| t.to_string()).zip(line.split(',').map(String::from)).collect();
    lines.map(row).collect()
}

fn check_folder(folder: &str, objective_column: &str) {
    let Some(folder) = crate::golden(folder) else { return };
    let mut n_solved = 0;
    for row in index(&folder) {
        let file = &row["file"];
        let model = read_model(&folder.join(file)).unwrap();
        let solution = Highs.solve(&model, &Limits::default(), Start::Cold);
        check_case(file, &row["status"], &row[objective_column], &solution);
        n_solved += 1;
    }
    println!("{}: {n_solved} models", folder.display());
    assert!(n_solved > 0);
}

fn check_case(file: &str, status: &str, objective: &str, solution: &Solution) {
    if status == "Infeasible" {
        assert_eq!(solution.status, SolveStatus::Infeasible, "{file}");
        return;
    }
    assert_eq!(solution.status, SolveStatus::Optimal, "{file}: gap {:?}", solution.gap());
    let expected: f64 = objective.parse().unwrap();
    let found = solution.objective.unwrap();
    let distance = (found - expected).abs();
    assert!(distance <= 1e-6 * expected.abs().max(1.0), "{file}: {found}, expected {expected}");
}

#[test]
fn chronus_models_reach_their_proven_optimum() {
    check_folder("milp/chronus", "objective");
}

#[test]
fn synergy_models_reach_their_proven_optimum() {
    check_folder("milp/synergy", "mps_objective");
}
