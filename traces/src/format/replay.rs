//! Synergy's record and replay file: `id,model,arrival,iterations,gpus`, no heading.
//!
//! The original turns a model it does not know into alexnet; here it is an error.

use std::fmt::Write as _;

use csv::StringRecord;
use rota_core::workload::Workload;

use super::{Head, Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::{Rows, UniqueNames};
use crate::source::Source;

/// Five cells, of which the last three are numbers.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    matches!(head.cells(), [_, model, numbers @ ..] if numbers.len() == 3
        && model.parse::<f64>().is_err()
        && numbers.iter().all(|cell| cell.parse::<f64>().is_ok()))
}

/// Reads a replay file.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let header = StringRecord::from(vec!["id", "model", "arrival", "iterations", "gpus"]);
    let models = Models::new(setting);
    let mut names = UniqueNames::default();
    let mut list = JobList::default();
    let dropped = Rows::without_header(source, header)?.each(setting.bad_rows, |row| {
        let profile = &models.find(row, 1)?.profile;
        let (arrival, work, gpus) = (row.arrival(2)?, row.positive(3)?, row.gpus(4)?);
        list.at_line(row.line);
        list.push(JobList::plain(names.take(row, 0)?, profile.clone(), gpus, work, arrival), work);
        Ok(())
    })?;
    Ok(Imported { dropped, ..Imported::of(list) })
}

/// Writes a replay file. What the format cannot say (tenants, deadlines, batches) is left out, and iterations are
/// rounded to whole ones.
pub fn write(workload: &Workload) -> String {
    let mut text = String::with_capacity(workload.jobs.len() * 32);
    for (job, truth) in workload.jobs.iter().zip(&workload.truths) {
        let arrival_s = job.arrival.as_secs_f64();
        // Writing to a String cannot fail. `{:?}` keeps the decimal point that the original writes: `8.0`.
        let _ = writeln!(
            text,
            "{},{},{arrival_s:?},{},{}",
            job.name,
            job.profile.name,
            truth.work.round().max(1.0),
            job.gpus.asked
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use crate::rows::BadRows;

    const FILE: &str = "0,alexnet,8.0,23349,1\n1,gnmt,126.5,26435,2\n2,res50,1000.001,13451,1\n";

    #[test]
    fn a_replay_file_is_written_as_it_was_read() {
        let (cluster, profiles) = built_in("default", "synergy");
        let read =
            read(&Source::new("r.trace", FILE), &Setting::new(&cluster, &profiles)).expect("a replay file");
        assert_eq!(write(&read.workload), FILE);
        assert_eq!(read.workload.check(), Ok(()));
    }

    #[test]
    fn jobs_are_numbered_by_arrival_and_then_by_line() {
        let (cluster, profiles) = built_in("default", "synergy");
        let text = "a,lstm,5,10,1\nb,lstm,.123,10,1\nc,lstm,5,10,1\n";
        let read =
            read(&Source::new("r.trace", text), &Setting::new(&cluster, &profiles)).expect("a replay file");
        let names: Vec<_> = read.workload.jobs.iter().map(|j| (j.id.0, &*j.name)).collect();
        assert_eq!(names, [(0, "b"), (1, "a"), (2, "c")]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("0,alexnet,8.0,23349\n", "t.trace:1: expected 5 cells, got 4"),
            (
                "0,lstm,8.0,1,1\n1,lstm,soon,1,1\n",
                "t.trace:2, column 3 (arrival): got \"soon\", expected a time in seconds, not negative",
            ),
            (
                "0,lstm,8.0,0,1\n",
                "t.trace:1, column 4 (iterations): got \"0\", expected a number greater than 0",
            ),
            (
                "0,lstm,8.0,1,-1\n",
                "t.trace:1, column 5 (gpus): got \"-1\", expected a whole number of GPUs, at least 1",
            ),
        ] {
            assert_eq!(message(super::read, "t.trace", text), expected);
        }
        let unknown = message(super::read, "t.trace", "0,vgg,8.0,1,1\n");
        assert!(
            unknown.starts_with(
                "t.trace:1, column 2 (model): got \"vgg\", expected a model of synergy: alexnet, res18,"
            ),
            "{unknown}"
        );
    }

    #[test]
    fn bad_rows_can_be_left_out() {
        let (cluster, profiles) = built_in("default", "synergy");
        let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &profiles) };
        let read = read(&Source::new("r.trace", format!("{FILE}3,vgg,1,1,1\n")), &setting).expect("the rest");
        assert_eq!((read.workload.jobs.len(), read.dropped.len(), read.dropped[0].line), (3, 1, 4));
    }
}
