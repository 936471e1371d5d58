//! One golden case: its name, how it is judged, and the result folder that it can leave.

use std::path::Path;

use rota_core::cluster::Cluster;
use rota_core::ledger::Ledger;
use rota_core::workload::Workload;
use rota_traces::error::InputError;

use super::table::Row;
use super::{CaseError, Verdict};
use crate::results::{ClusterTotals, Results, RunMeta, RunResult, Timing};

/// What a case comes to; an error is a case that cannot be run.
pub(super) type Judged = Result<Verdict, CaseError>;

/// One golden case.
pub struct Case {
    name: String,
    judge: Box<dyn Fn() -> Judged + Send + Sync>,
}

impl Case {
    pub(super) fn new(name: String, judge: impl Fn() -> Judged + Send + Sync + 'static) -> Self {
        Case { name, judge: Box::new(judge) }
    }

    pub(super) fn into_name(self) -> String {
        self.name
    }

    /// Runs the case. A file of it that cannot be read fails the case and nothing else.
    pub(super) fn judge(&self) -> Verdict {
        (self.judge)().unwrap_or_else(|error| Verdict::Failed(error.to_string()))
    }
}

/// The name of a case: it becomes a folder under `--out`.
pub(super) fn case_name(row: &Row<'_>, key: &'static str) -> Result<String, InputError> {
    let name = row.text(key);
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        return Err(row.expected(key, "a name that can be a folder"));
    }
    Ok(name.to_owned())
}

/// The verdict on a case that cannot be compared because the original crashed: its note in the table says so.
pub(super) fn skipped_by_note(note: &str) -> Option<Verdict> {
    note.contains("original crashes").then(|| Verdict::Skipped("the original crashes".into()))
}

/// One run of an original as a result folder.
pub(super) struct CaseRun<'a> {
    /// The original's name, as the title shows it.
    pub(super) system: &'a str,
    pub(super) policy: &'a str,
    pub(super) cluster: &'a Cluster,
    pub(super) workload: &'a Workload,
    pub(super) ledger: Ledger,
    /// Whether each job met its deadline, where the original has rules of its own for that.
    pub(super) is_met: Option<Vec<bool>>,
}

impl CaseRun<'_> {
    pub(super) fn write(self, out: &Path) -> Result<(), CaseError> {
        let meta = RunMeta {
            policy: self.policy.to_owned(),
            exact_estimates: true,
            reads_estimates: true,
            cluster: ClusterTotals::from(self.cluster),
            parameters: toml::Table::from_iter([("compat".to_owned(), "artifact".into())]),
            ..RunMeta::default()
        };
        let mut run = RunResult::new(meta, Timing::default(), self.workload, self.cluster, self.ledger);
        if let Some(is_met) = self.is_met {
            run.judge(is_met);
        }
        let title = match self.policy.eq_ignore_ascii_case(self.system) {
            true => format!("{} golden case", self.system),
            false => format!("{} golden case, {}", self.system, self.policy),
        };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Results { title, version, runs: vec![run], ..Results::default() }.write(out)?)
    }
}
