//! The claims of the figure, as predicates over all its cells; each is judged by every column that it is about.

use serde::Serialize;

use super::super::claims::{LEVEL, Outcome, Verdict};
use super::{Cell, Column, ORDERS, Study};

/// How far a deployment may be from its simulation.
const AS_SIMULATED: f64 = 0.05;
/// How far our gain may be from GPEmu's.
const AS_GAINED: f64 = 0.15;

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The claim's name.
    pub claim: &'static str,
    /// The column that it was judged by.
    pub of: &'static str,
    /// Whether it holds, and the numbers that decided.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Every claim: its name, and what it says.
pub const CLAIMS: [(&str, &str); 5] = [
    ("tune-ahead", "under every order the tuned allocation has the shorter average completion time"),
    ("as-simulated", "every average completion time is within 5 % of the simulator's"),
    ("gain-as-gpemu", "under every order the gain of tuning is GPEmu's within 15 %"),
    (
        "times-as-gpemu",
        "no curve differs from GPEmu's by more than two draws of the same kind of jobs do by chance (Smirnov's test, 5 %)",
    ),
    (
        "times-as-the-paper",
        "no curve differs from the paper's by more than two draws of the same kind of jobs do by chance",
    ),
];

/// What one comparison means: above 1 it supports a claim, below it contradicts it.
struct Finding {
    support: f64,
    text: String,
}

/// Judges every claim.
pub fn answers(study: &Study) -> Vec<Answer> {
    let cells = &study.cells;
    let mut answers: Vec<Answer> = Column::ALL.iter().map(|column| tune_ahead(cells, *column)).collect();
    answers.push(deployed_as_simulated(cells));
    answers.push(gain_as_gpemu(cells));
    answers.push(cdf_as(cells, Column::Gpemu, "times-as-gpemu"));
    answers.push(cdf_as(cells, Column::Paper, "times-as-the-paper"));
    answers
}

/// Under every order the tuned allocation has the shorter average completion time.
fn tune_ahead(cells: &[Cell], column: Column) -> Answer {
    let finding = |order: &'static str| {
        let gain = gain(cells, column, order)?;
        Some(Finding { support: gain, text: format!("{order}: {gain:.3}x") })
    };
    settle("tune-ahead", column.name(), all(ORDERS.map(finding)), LEVEL)
}

/// The average completion time of every cell is within 5 % of the simulator's.
fn deployed_as_simulated(cells: &[Cell]) -> Answer {
    let findings = cells.iter().map(|cell| {
        let apart = cell.deployed.mean_h() / cell.simulated.mean_h() - 1.0;
        let text = format!(
            "{}: {:+.1} %, at most {:.0} % either way",
            cell.policy(),
            apart * 100.0,
            AS_SIMULATED * 100.0
        );
        Some(Finding { support: AS_SIMULATED / apart.abs().max(1e-9), text })
    });
    settle("as-simulated", Column::Deployed.name(), all(findings), 0.0)
}

/// What tuning gains under every order is within 15 % of what it gained GPEmu.
fn gain_as_gpemu(cells: &[Cell]) -> Answer {
    let finding = |order: &'static str| {
        let (ours, theirs) = (gain(cells, Column::Deployed, order)?, gain(cells, Column::Gpemu, order)?);
        let apart = ours / theirs - 1.0;
        let text = format!("{order}: {ours:.2}x against {theirs:.2}x ({:+.0} %)", apart * 100.0);
        Some(Finding { support: AS_GAINED / apart.abs().max(1e-9), text })
    };
    settle("gain-as-gpemu", Column::Deployed.name(), all(ORDERS.map(finding)), 0.0)
}

/// Our completion times do not differ from the published ones by more than two draws of one kind of jobs do.
fn cdf_as(cells: &[Cell], column: Column, claim: &'static str) -> Answer {
    let findings = cells.iter().map(|cell| {
        let theirs = cell.curve(column)?;
        let (distance, usual) = (cell.deployed.distance(theirs), cell.deployed.usual_distance(theirs));
        let text = format!("{}: {distance:.2} apart at most, up to {usual:.2} is chance", cell.policy());
        Some(Finding { support: usual / distance.max(1e-9), text })
    });
    settle(claim, Column::Deployed.name(), all(findings), 0.0)
}

/// How many times shorter the tuned allocation's average is.
pub(super) fn gain(cells: &[Cell], column: Column, order: &str) -> Option<f64> {
    let mean = |allocation: &str| {
        let cell = cells.iter().find(|cell| cell.order == order && cell.allocation == allocation)?;
        Some(cell.curve(column)?.mean_h())
    };
    Some(mean("proportional")? / mean("tune")?)
}

/// All findings, or none when one is missing: a claim about all rows is not judged by some of them.
fn all(findings: impl IntoIterator<Item = Option<Finding>>) -> Vec<Finding> {
    let mut found = Vec::new();
    for finding in findings {
        match finding {
            Some(finding) => found.push(finding),
            None => return Vec::new(),
        }
    }
    found
}

/// The worst comparison decides; within `level` of 1 it is a tie.
fn settle(claim: &'static str, of: &'static str, findings: Vec<Finding>, level: f64) -> Answer {
    let worst = findings.iter().min_by(|a, b| a.support.total_cmp(&b.support));
    let why = worst.map_or("some of its numbers are missing", |worst| &worst.text).to_owned();
    let outcome = match worst.map(|worst| worst.support) {
        None => Outcome::NotComparable,
        Some(support) if (support - 1.0).abs() < level => Outcome::Tie,
        Some(support) if support < 1.0 => Outcome::DoesNotHold,
        Some(_) => Outcome::Holds,
    };
    Answer { claim, of, verdict: Verdict { outcome, why } }
}

#[cfg(test)]
mod tests {
    use super::super::{ALLOCATIONS, Curve};
    use super::*;

    /// Forty jobs of one to four hours, scaled.
    fn curve(scale: f64) -> Curve {
        let hours = (0..40).map(|n| scale * (1.0 + f64::from(n) * 3.0 / 39.0));
        Curve::of_times(hours.collect()).expect("forty")
    }

    /// A study in which everything holds; the change makes a counterexample of it.
    fn study(change: impl Fn(&mut Cell)) -> Study {
        let mut cells = Vec::new();
        for order in ORDERS {
            for allocation in ALLOCATIONS {
                let scale = if allocation == "tune" { 1.0 } else { 1.25 };
                let same = curve(scale);
                let mut cell = Cell {
                    order,
                    allocation,
                    deployed: same.clone(),
                    simulated: same.clone(),
                    gpemu: Some(same.clone()),
                    paper: Some(same),
                };
                change(&mut cell);
                cells.push(cell);
            }
        }
        Study { what: String::new(), is_quick: false, notes: Vec::new(), cells }
    }

    fn outcome(study: &Study, claim: &str, of: Column) -> Outcome {
        let answers = answers(study);
        let found = answers.iter().find(|answer| answer.claim == claim && answer.of == of.name());
        found.unwrap_or_else(|| panic!("{claim} of {}: {answers:#?}", of.name())).verdict.outcome
    }

    #[test]
    fn everything_holds_where_it_should() {
        let answers = answers(&study(|_| ()));
        assert!(answers.iter().all(|answer| answer.verdict.outcome == Outcome::Holds), "{answers:#?}");
        assert_eq!(answers.len(), 8);
        let asked: std::collections::BTreeSet<&str> = answers.iter().map(|answer| answer.claim).collect();
        assert_eq!(asked, CLAIMS.map(|(name, _)| name).into(), "every claim that is judged is listed");
    }

    #[test]
    fn each_claim_says_no_to_a_table_that_contradicts_it() {
        let is_tuned = |cell: &Cell| cell.order == "srtf" && cell.allocation == "tune";
        let slow = |cell: &mut Cell| {
            if is_tuned(cell) {
                cell.deployed = curve(1.5);
            }
        };
        let slow = study(slow);
        assert_eq!(outcome(&slow, "tune-ahead", Column::Deployed), Outcome::DoesNotHold, "one of two orders");
        assert_eq!(outcome(&slow, "tune-ahead", Column::Simulated), Outcome::Holds);
        assert_eq!(outcome(&slow, "as-simulated", Column::Deployed), Outcome::DoesNotHold);
        assert_eq!(outcome(&slow, "gain-as-gpemu", Column::Deployed), Outcome::DoesNotHold);
        let other = study(|cell| {
            if is_tuned(cell) {
                cell.gpemu = Some(curve(2.0));
                cell.paper = Some(curve(0.4));
            }
        });
        assert_eq!(outcome(&other, "times-as-gpemu", Column::Deployed), Outcome::DoesNotHold);
        assert_eq!(outcome(&other, "times-as-the-paper", Column::Deployed), Outcome::DoesNotHold);
    }

    #[test]
    fn level_averages_are_a_tie_and_missing_points_are_not_comparable() {
        let level = study(|cell| cell.deployed = curve(1.0));
        assert_eq!(outcome(&level, "tune-ahead", Column::Deployed), Outcome::Tie);
        let without = study(|cell| {
            if cell.order == "las" {
                cell.gpemu = None;
            }
        });
        for claim in ["gain-as-gpemu", "times-as-gpemu"] {
            assert_eq!(outcome(&without, claim, Column::Deployed), Outcome::NotComparable, "{claim}");
        }
        assert_eq!(outcome(&without, "tune-ahead", Column::Gpemu), Outcome::NotComparable);
    }
}
