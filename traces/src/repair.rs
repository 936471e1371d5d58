//! Mends what a check finds and what can be mended without guessing, and keeps a record of every change.
//!
//! | finding | change |
//! |---|---|
//! | a row that makes no sense, a job that can never run, a name that is there twice | left out |
//! | a deadline that is over when its job arrives | removed |
//! | a trace that begins years after time 0 | begins at 0; deadlines move with it |
//!
//! Everything else stays: whether durations are in the wrong unit, only a person can say.

use std::collections::HashSet;
use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ids::JobId;
use rota_core::job::{Deadline, JobSpec};
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

use crate::check::{Finding, FoundAt, Rule, check};
use crate::format::Lines;
use crate::rows::DroppedRow;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Line of the file (for JSON, the number of the job), if it is about one.
    pub line: Option<u64>,
    /// The job's name; empty where it is not known, or where all are meant.
    pub job: String,
    /// What was changed; `row` when all of it was left out.
    pub column: String,
    /// What was there.
    pub from: String,
    /// What is there now.
    pub to: String,
    /// The rule that asks for it, and why.
    pub why: String,
}

/// A mended workload and what was changed.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// The jobs that are left.
    pub workload: Workload,
    /// Every change, in the order of the findings.
    pub changes: Vec<Change>,
}

/// What a finding leads to.
enum Remedy {
    LeaveOut,
    RemoveDeadline,
    BeginAtZero,
}

/// Mends what was read.
pub fn repair(workload: &Workload, dropped: &[DroppedRow], lines: &Lines, cluster: &Cluster) -> Repaired {
    let mut changes = Vec::new();
    let mut left_out: HashSet<JobId> = HashSet::new();
    let mut no_deadline: HashSet<JobId> = HashSet::new();
    let mut earlier = Span(0);
    for finding in check(workload, dropped, lines, cluster) {
        let Some(remedy) = remedy(finding.rule) else { continue };
        let id = finding.at.id;
        let (column, to) = match remedy {
            Remedy::LeaveOut => {
                // One job may break several rules, but is left out once.
                if id.is_some_and(|id| !left_out.insert(id)) {
                    continue;
                }
                ("row", "(left out)".to_owned())
            }
            Remedy::RemoveDeadline => {
                no_deadline.extend(id);
                ("deadline_s", String::new())
            }
            Remedy::BeginAtZero => {
                earlier = workload.jobs.first().map_or(Span(0), |job| job.arrival - Time::ZERO);
                ("arrival_s", "0; every arrival and deadline is that much earlier".to_owned())
            }
        };
        changes.push(change(finding, column, to));
    }
    let workload = mended(workload, &left_out, &no_deadline, earlier);
    Repaired { workload, changes }
}

fn remedy(rule: Rule) -> Option<Remedy> {
    match rule {
        Rule::Unreadable | Rule::TooManyGpus | Rule::TooMuchGpuMemory | Rule::NoWork | Rule::SameName => {
            Some(Remedy::LeaveOut)
        }
        Rule::DeadlineBeforeArrival => Some(Remedy::RemoveDeadline),
        Rule::LateBegin => Some(Remedy::BeginAtZero),
        _ => None,
    }
}

fn change(finding: Finding, column: &str, to: String) -> Change {
    let FoundAt { line, column: heading, job, .. } = finding.at;
    let heading =
        heading.filter(|_| column == "row").map(|heading| format!("{heading}: ")).unwrap_or_default();
    Change {
        line,
        job: job.unwrap_or_default(),
        column: column.to_owned(),
        from: finding.value.unwrap_or_default(),
        to,
        why: format!("{}: {heading}{}", finding.rule.name(), finding.message),
    }
}

fn mended(
    all: &Workload,
    left_out: &HashSet<JobId>,
    no_deadline: &HashSet<JobId>,
    earlier: Span,
) -> Workload {
    let mut workload =
        Workload { tenants: all.tenants.clone(), datasets: all.datasets.clone(), ..Workload::default() };
    let kept = all.jobs.iter().zip(&all.truths).filter(|(job, _)| !left_out.contains(&job.id));
    for (index, (job, truth)) in kept.enumerate() {
        let mut job = JobSpec::clone(job);
        if no_deadline.contains(&job.id) {
            job.deadline = Deadline::None;
        }
        job.id = JobId::from(index);
        job.arrival = job.arrival - earlier;
        match &mut job.deadline {
            Deadline::None => {}
            Deadline::Strict(time) => *time = *time - earlier,
            Deadline::Soft(steps) => steps.iter_mut().for_each(|(time, _)| *time = *time - earlier),
        }
        workload.jobs.push(Arc::new(job));
        workload.truths.push(*truth);
    }
    workload
}

/// The record of changes as a table.
pub fn record(changes: &[Change]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = || -> Result<(), csv::Error> {
        writer.write_record(["line", "job", "column", "from", "to", "why"])?;
        for change in changes {
            let line = change.line.map(|line| line.to_string()).unwrap_or_default();
            writer.write_record([
                &line,
                &change.job,
                &change.column,
                &change.from,
                &change.to,
                &change.why,
            ])?;
        }
        Ok(writer.flush()?)
    };
    write().expect("memory takes whatever is written");
    String::from_utf8(writer.into_inner().expect("memory takes whatever is written"))
        .expect("text was written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Severity;
    use crate::format::tests::built_in;
    use crate::format::{Setting, rota, write_rota};
    use crate::rows::BadRows;
    use crate::source::Source;

    #[test]
    fn what_is_mended_has_no_error_left_and_every_change_is_recorded() {
        let (cluster, profiles) = built_in("small", "synergy");
        let text = "job_id,arrival_s,gpus,duration_s,deadline_s\na,1600000000,1,60,1600000100\nb,1600000010,33,60,\n\
            c,soon,1,60,\na,1600000020,1,60,\nd,1600000030,1,60,1600000005\n";
        let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &profiles) };
        let imported = rota::read(&Source::new("t.csv", text), &setting).expect("some rows");
        let repaired = repair(&imported.workload, &imported.dropped, &imported.lines, &cluster);
        assert_eq!(
            write_rota(&repaired.workload, &cluster),
            "job_id,arrival_s,gpus,iterations,deadline_s\na,0,1,60,100\nd,30,1,60,\n"
        );
        assert_eq!(
            record(&repaired.changes),
            "line,job,column,from,to,why\n\
             4,,row,soon,(left out),\"unreadable-row: arrival_s: expected a time in seconds, not negative\"\n\
             5,,row,a,(left out),unreadable-row: job_id: expected a name that no other job has (line 2 has it)\n\
             3,b,row,33,(left out),too-many-gpus: gpus: the cluster has 32 GPUs for it\n\
             6,d,deadline_s,1600000005,,deadline-before-arrival: the job arrives at 1600000030\n\
             2,,arrival_s,1600000000,0; every arrival and deadline is that much earlier,\"late-begin: is when the first job arrives: these seem to be seconds since 1970, and time should begin at 0\"\n"
        );
        let again = check(&repaired.workload, &[], &Lines::default(), &cluster);
        assert!(again.iter().all(|finding| finding.severity() < Severity::Warning));
    }
}
