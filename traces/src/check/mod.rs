//! What is wrong or odd in a trace, on a cluster: each finding with its rule, severity, row, column and value.
//!
//! A workload the engine cannot take at all is refused by `Workload::check`; here is what a person wants to know
//! before believing a result. `rules` has what can be found, `jobs` looks at each job, `whole` at all of them together.

mod jobs;
mod rules;
mod whole;

use std::fmt;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::workload::Workload;

use crate::format::Lines;
use crate::rows::DroppedRow;

pub use rules::{Rule, Severity};

/// Something wrong or odd.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which rule it breaks.
    pub rule: Rule,
    /// Where it was found.
    pub at: FoundAt,
    /// What was found there, if it is one value.
    pub value: Option<String>,
    /// What is wrong with it, as a clause.
    pub message: String,
}

/// Where something was found, as far as it is in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundAt {
    /// Line of the file (for JSON, the number of the job), from 1.
    pub line: Option<u64>,
    /// The file's heading, or Rota's where the job as a whole was looked at.
    pub column: Option<String>,
    /// The job's name in the trace.
    pub job: Option<String>,
    /// The job's number in the workload.
    pub id: Option<JobId>,
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    /// A row that makes no sense.
    pub fn of_row(row: &DroppedRow) -> Self {
        let reason = &row.reason;
        let at = FoundAt { line: Some(row.line), column: reason.location.name.clone(), ..FoundAt::default() };
        Finding { rule: Rule::Unreadable, at, value: reason.value.clone(), message: reason.problem.clone() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity().name())?;
        let FoundAt { line, column, job, .. } = &self.at;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(line.map(|line| format!("line {line}")));
        parts.extend(column.as_ref().map(|column| format!("column {column}")));
        parts.extend(job.as_ref().map(|job| format!("job {job}")));
        if !parts.is_empty() {
            write!(f, "{}: ", parts.join(", "))?;
        }
        match &self.value {
            Some(value) if self.rule.is_of_whole() => write!(f, "{value} ")?,
            Some(value) => write!(f, "got \"{}\", ", value.escape_debug())?,
            None => {}
        }
        write!(f, "{} [{}]", self.message, self.rule.name())
    }
}

/// Everything wrong or odd in what was read: rows first, then job by job, then what only all of them together show.
pub fn check(workload: &Workload, dropped: &[DroppedRow], lines: &Lines, cluster: &Cluster) -> Vec<Finding> {
    let mut findings: Vec<Finding> = dropped.iter().map(Finding::of_row).collect();
    let of_jobs = jobs::check(workload, cluster).into_iter().chain(whole::check(workload, cluster));
    findings.extend(of_jobs.map(|mut finding| {
        finding.at.line = finding.at.id.and_then(|id| lines.of(id));
        finding
    }));
    findings
}
