//! Chronus' cases, three ways: with its solver's recorded answers, solved again, and with a solver that found no answer.
//!
//! ```text
//! index.csv ─▶ case.json, trace.csv ─▶ driver ◀─ Audited: recorded X and S, each solve repeated by HiGHS
//!                                        │
//!              expected_*.json ─────▶ compare ─▶ admission, models, leases, outcomes
//! ```

mod compare;
mod golden;

use std::path::{Path, PathBuf};

use rota_core::cluster::Cluster;
use rota_core::workload::Workload;
use rota_scripts::artifact::chronus::{self as artifact, ChronusSettings, Run};
use rota_solvers::{Highs, Limits, Model, Recorded, Solution, Solver, Start};
use rota_traces::error::InputError;
use rota_traces::format::{Setting, chronus};
use rota_traces::profile;
use rota_traces::source::Source;

use super::case::CaseRun;
use super::compare::is_close;
use super::table::{Row, Table};
use super::{Case, CaseError, ConformError, Judged, Options, Verdict, case_name};
use compare::{first_difference, miss_difference, objective_difference};
use golden::{CaseFile, Expected, Failure};

/// The cases of `index.csv`.
pub(super) fn cases(folder: &Path, options: &Options) -> Result<Vec<Case>, ConformError> {
    let table = Table::open(&folder.join("index.csv"), &["case", "error", "tie_sensitive"])?;
    let case = |row: Row<'_>| {
        let name = case_name(&row, "case")?;
        let golden = GoldenCase {
            folder: folder.join("cases").join(&name),
            is_unique: row.text("tie_sensitive") == "no",
            out: options.out.as_ref().map(|out| out.join("chronus").join(&name)),
        };
        Ok(Case::new(name, move || golden.judge()))
    };
    table.rows().map(case).collect()
}

/// A row of the case table.
struct GoldenCase {
    folder: PathBuf,
    /// Whether another solver found the same schedule.
    is_unique: bool,
    out: Option<PathBuf>,
}

/// A case read in.
struct Inputs {
    file: CaseFile,
    cluster: Cluster,
    workload: Workload,
    expectations: Vec<i64>,
}

impl GoldenCase {
    fn judge(&self) -> Judged {
        let inputs = self.inputs()?;
        let failure: Failure = golden::read(&self.folder, "expected_highs.json")?;
        if let Some(error) = failure.error {
            return Ok(match inputs.run(&mut Highs) {
                Err(_) => {
                    Verdict::Skipped("the original aborts, and this driver ends with an error too".into())
                }
                Ok(_) => {
                    Verdict::Failed(format!("expected an error, because the original ends with {error}"))
                }
            });
        }
        let expected: Expected = golden::read(&self.folder, "expected_highs.json")?;
        let (run, mut difference) = self.replay(&inputs, &expected)?;
        for name in ["expected_gurobi.json", "expected_nosolution.json"] {
            if difference.is_none() && golden::has(&self.folder, name) {
                let expected: Expected = golden::read(&self.folder, name)?;
                difference = self.replay(&inputs, &expected)?.1.map(|text| format!("{name}: {text}"));
            }
        }
        if difference.is_none() && self.is_unique {
            difference = miss_difference(&expected, &inputs.run(&mut Highs)?);
        }
        if let Some(out) = &self.out {
            let (system, policy, is_met) = ("Chronus", "chronus", None);
            let Inputs { cluster, workload, .. } = &inputs;
            CaseRun { system, policy, cluster, workload, ledger: run.ledger, is_met }.write(out)?;
        }
        Ok(Verdict::of(difference))
    }

    fn inputs(&self) -> Result<Inputs, InputError> {
        let file: CaseFile = golden::read(&self.folder, "case.json")?;
        let (cluster, profiles) = (file.cluster()?, profile::load("synergy")?);
        let source = Source::open(&self.folder.join("trace.csv"))?;
        let unit_s = file.unit().as_secs_f64();
        let workload = chronus::read_in_units(&source, &Setting::new(&cluster, &profiles), unit_s)?.workload;
        let expectations = golden::expectations(&source, &workload)?;
        Ok(Inputs { file, cluster, workload, expectations })
    }

    /// Feeds the recorded answers back, and solves each model with HiGHS as well. Where the answers were not kept, those
    /// of HiGHS are used, and objectives and ends are compared.
    fn replay(&self, inputs: &Inputs, expected: &Expected) -> Result<(Run, Option<String>), CaseError> {
        let recordings: Option<Vec<_>> = expected.milp.iter().map(golden::Milp::recording).collect();
        let Some(recordings) = recordings else {
            let run = inputs.run(&mut Highs)?;
            let difference = objective_difference(&expected.milp, &run);
            let difference = difference.or_else(|| first_difference(expected, &run, &inputs.workload));
            return Ok((run, difference));
        };
        let mut solver = Audited { recorded: Recorded::new(recordings), first_difference: None };
        let run = inputs.run(&mut solver)?;
        let difference = first_difference(expected, &run, &inputs.workload);
        Ok((run, difference.or(solver.first_difference)))
    }
}

impl Inputs {
    fn run(&self, solver: &mut dyn Solver) -> Result<Run, CaseError> {
        let settings: ChronusSettings<'_> = self.file.settings(&self.expectations)?;
        Ok(artifact::run(&self.cluster, &self.workload, &settings, solver)?)
    }
}

/// Answers from the recording, and solves each model itself to compare objectives.
struct Audited {
    recorded: Recorded,
    first_difference: Option<String>,
}

impl Solver for Audited {
    fn solve(&mut self, model: &Model, limits: &Limits, start: Start<'_>) -> Solution {
        let recorded = self.recorded.solve(model, limits, start);
        // A recording without an answer has no objective to compare with.
        if let Some(wanted) = recorded.objective {
            let own = Highs.solve(model, limits, Start::Cold);
            let is_equal = own.objective.is_some_and(|found| is_close(wanted, found));
            if !is_equal && self.first_difference.is_none() {
                let found = own.objective.map_or_else(|| own.status.to_string(), |found| found.to_string());
                self.first_difference =
                    Some(format!("solving ourselves, the objective is {found}, expected {wanted}"));
            }
        }
        recorded
    }
}
