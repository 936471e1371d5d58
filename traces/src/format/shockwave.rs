//! Shockwave's traces (NSDI'23): Gavel's fields with a mode and a duration, 12 between tabs, no heading.
//!
//! | field | meaning |
//! |---|---|
//! | 1 | job type, `ResNet-18 (batch size 32)` |
//! | 6 | total steps; not used, because the duration says how long they take |
//! | 7 | GPUs (scale factor) |
//! | 8 | mode: `static`, `accordion` or `gns` (the batch size changes while it trains; here it does not) |
//! | 9, 10 | priority weight; SLO, negative for none |
//! | 11, 12 | duration and arrival, seconds |

use csv::StringRecord;
use rota_core::job::Deadline;
use rota_core::time::Time;

use super::gavel::job_type;
use super::{Head, Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::{Rows, parse_time};
use crate::source::Source;

const FIELDS: [&str; 12] = [
    "job type",
    "command",
    "working directory",
    "steps argument",
    "needs data",
    "total steps",
    "scale factor",
    "mode",
    "priority weight",
    "SLO",
    "duration",
    "arrival",
];
const MODES: [&str; 3] = ["static", "accordion", "gns"];

/// Twelve fields, of which the eighth is a mode.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    let fields = head.tabbed();
    fields.len() == FIELDS.len() && MODES.contains(&fields[7])
}

/// Reads the trace.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let mut models = Models::new(setting);
    let mut list = JobList::default();
    let mut n_dynamic = 0_u64;
    let rows = Rows::tabbed(source, StringRecord::from(FIELDS.to_vec()))?;
    let dropped = rows.each(setting.bad_rows, |row| {
        let (model, _) =
            job_type(row.text(0)).ok_or_else(|| row.expected(0, "a job type such as LM (batch size 10)"))?;
        if !MODES.contains(&row.text(7)) {
            return Err(row.expected(7, format!("one of {}", MODES.join(", "))));
        }
        let (work, arrival) = (row.run_time(10)?, row.arrival(11)?);
        let name = row.index.to_string();
        let mut spec = JobList::plain(&name, models.plain(model), row.gpus(6)?, work, arrival);
        spec.priority = row.number(8)?.round().clamp(-1e6, 1e6) as i32;
        if row.number(9)? > 0.0 {
            let after = parse_time(row.text(9), 1.0).ok_or_else(|| row.expected(9, "seconds"))?;
            spec.deadline = Deadline::Strict(arrival + (after - Time::ZERO));
        }
        list.at_line(row.line);
        list.push(spec, work);
        n_dynamic += u64::from(row.text(7) != "static");
        Ok(())
    })?;
    let mut remarks =
        vec!["models have no profiles here: a job takes its duration whatever it gets".to_owned()];
    if n_dynamic > 0 {
        remarks.push(format!("{n_dynamic} jobs change their batch size in the original; here they do not"));
    }
    Ok(Imported { dropped, remarks, ..Imported::of(list) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use rota_test_support::need;

    #[test]
    fn mistakes_are_named() {
        let row = "LM (batch size 10)\tpython3\tlm\t--steps\t1\t9\t1\tsometimes\t1\t-1.0\t1418\t0\n";
        assert_eq!(
            message(read, "s.trace", row),
            "s.trace:1, column 8 (mode): got \"sometimes\", expected one of static, accordion, gns"
        );
    }

    #[test]
    fn the_public_traces_have_as_many_jobs_as_their_names_say() {
        let Some(folder) = need::shared_path("traces/shockwave") else { return };
        let (cluster, profiles) = built_in("default", "synergy");
        let mut n_files = 0;
        for file in std::fs::read_dir(folder).expect("a folder") {
            let path = file.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
            if !name.ends_with(".trace") {
                continue;
            }
            let source = Source::open(&path).expect("readable");
            let read = crate::format::read(&source, None, &Setting::new(&cluster, &profiles)).expect("sound");
            assert_eq!(name.split('_').next(), Some(read.workload.jobs.len().to_string().as_str()), "{name}");
            n_files += 1;
        }
        assert_eq!(n_files, 5);
    }
}
