//! The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, `;` before remarks, -1 for what is unknown.
//!
//! | field | meaning |
//! |---|---|
//! | 1 | job number |
//! | 2 | submit time, seconds |
//! | 4 | run time, seconds |
//! | 5, 8 | processors used, else those asked for: they count as GPUs |
//! | 11 | status: 1 is completed, 0 failed, 5 cancelled |
//! | 12 | user, the tenant |

use csv::StringRecord;
use rota_core::workload::RecordedEnd;

use super::accounts::{Account, Accounts};
use super::{Head, Imported, Setting};
use crate::error::InputError;
use crate::rows::{UniqueNames, each_line};
use crate::source::Source;

const FIELDS: [&str; 18] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "processors used",
    "CPU time",
    "memory used",
    "processors asked for",
    "time asked for",
    "memory asked for",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// Remarks begin with a semicolon; the first other line has 18 numbers.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    let mut lines =
        head.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(';'));
    let first: Vec<&str> = lines.next().unwrap_or("").split_whitespace().collect();
    first.len() == FIELDS.len() && first.iter().all(|field| field.parse::<f64>().is_ok())
}

/// Reads the log.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let mut names = UniqueNames::default();
    let mut accounts = Accounts::default();
    let header = StringRecord::from(FIELDS.to_vec());
    let dropped = each_line(source, &header, setting.bad_rows, |row| {
        let [submitted_s, run_s, used, asked] = [1, 3, 4, 7].map(|column| row.number(column));
        let (used, asked) = (used?, asked?);
        let user = row.text(11);
        accounts.add(&Account {
            name: names.take(row, 0)?,
            tenant: if user == "-1" { "" } else { user },
            submitted_s: submitted_s?,
            duration_s: run_s?,
            gpus: if used > 0.0 { used } else { asked },
            gpu_type: None,
            ended: match row.text(10) {
                "0" => RecordedEnd::Failed,
                "1" => RecordedEnd::Passed,
                "5" => RecordedEnd::Killed,
                _ => RecordedEnd::Unknown,
            },
            line: row.line,
        });
        Ok(())
    })?;
    let mut imported = accounts.finish(setting, dropped)?;
    imported.remarks.push("processors count as GPUs".to_owned());
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};

    #[test]
    fn processors_count_as_gpus_and_unknown_lengths_are_left_out() {
        let (cluster, profiles) = built_in("default", "synergy");
        let text = "; Version: 2.2\n;\n  1   0  3  100  4 -1 -1  4 200 -1 1 3 1 1 1 1 -1 -1\n\
            2 5 3 -1 4 -1 -1 4 200 -1 5 3 1 1 1 1 -1 -1\n3 9 3 50 -1 -1 -1 2 200 -1 0 -1 1 1 1 1 -1 -1\n";
        let source = Source::new("a.swf", text);
        let read = read(&source, &Setting::new(&cluster, &profiles)).expect("sound");
        let jobs: Vec<_> = read.workload.jobs.iter().map(|job| (&*job.name, job.gpus.asked)).collect();
        assert_eq!(jobs, [("1", 4), ("3", 2)]);
        assert_eq!(read.filtered.clauses(), ["1 row left out: never ran (line 4)"]);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            message(read, "a.swf", "; x\n1 soon 3 100 4 -1 -1 4 200 -1 1 3 1 1 1 1 -1 -1\n"),
            "a.swf:2, column 2 (submit time): got \"soon\", expected a number"
        );
        assert_eq!(message(read, "a.swf", "1 2 3\n"), "a.swf:1: expected 18 cells, got 3");
    }
}
