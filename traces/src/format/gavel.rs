//! Gavel's traces (OSDI'20): fields between tabs, no heading. Two forms are around: 7 fields (its Philly files, which its own parser
//! no longer reads) and 10.
//!
//! | 7 | 10 | meaning |
//! |---|---|---|
//! | 1 | 1 | job type, `ResNet-18 (batch size 32)`: model and batch of Gavel's throughputs |
//! | 5 | 6 | total steps |
//! | 7 | 7 | GPUs (scale factor) |
//! | – | 8 | priority weight, rounded |
//! | – | 9 | SLO: seconds after the arrival by which it must end; negative for none |
//! | 6 | 10 | arrival, seconds |
//!
//! A trace has steps and no durations, so the profile set must have Gavel's throughputs (`rota profile import`).

use csv::StringRecord;
use rota_core::job::Deadline;

use super::{Head, Imported, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::{Row, Rows, parse_time};
use crate::source::Source;
use crate::speeds::Speeds;

const OLD: [&str; 7] =
    ["job type", "command", "steps argument", "needs data", "total steps", "arrival", "scale factor"];
const NEW: [&str; 10] = [
    "job type",
    "command",
    "working directory",
    "steps argument",
    "needs data",
    "total steps",
    "scale factor",
    "priority weight",
    "SLO",
    "arrival",
];

/// Seven or ten fields, of which the first names a batch or a model and the last is a number.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    let fields = head.tabbed();
    (fields.len() == OLD.len() || fields.len() == NEW.len())
        && fields.first().is_some_and(|first| first.parse::<f64>().is_err())
        && fields.last().is_some_and(|last| last.parse::<f64>().is_ok())
}

/// Reads either form.
pub(crate) fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let is_old = Head::of(source).tabbed().len() == OLD.len();
    let fields = if is_old { OLD.to_vec() } else { NEW.to_vec() };
    let at = |name: &str| fields.iter().position(|field| *field == name).unwrap_or(0);
    let (steps, gpus, arrival) = (at("total steps"), at("scale factor"), at("arrival"));
    let (weight, slo) = (at("priority weight"), at("SLO"));
    let mut speeds = Speeds::new(setting.cluster);
    let mut list = JobList::default();
    let rows = Rows::tabbed(source, StringRecord::from(fields.clone()))?;
    let dropped = rows.each(setting.bad_rows, |row| {
        let (model, batch) = job_type(row.text(0)).ok_or_else(|| row.expected(0, "a job type such as LM (batch size 10)"))?;
        let profile = setting.profiles.get(model).ok_or_else(|| {
            row.expected(0, format!(
                "a model of {}: {}. Gavel's own come from its throughputs: `rota profile import simulation_throughputs.json -o gavel.toml`, then --profiles gavel.toml",
                setting.profiles.name,
                setting.profiles.names()
            ))
        })?;
        let work = row.positive(steps)?;
        let arrival = row.arrival(arrival)?;
        let mut spec =
            JobList::plain(&row.index.to_string(), profile.clone(), row.gpus(gpus)?, work, arrival);
        spec.batch = batch;
        if !speeds.is_measured(&spec) {
            return Err(row.expected(0, format!("a model and batch measured on {}", setting.cluster.name)));
        }
        if !is_old {
            spec.priority = row.number(weight)?.round().clamp(-1e6, 1e6) as i32;
            spec.deadline = deadline(row, slo, arrival)?;
        }
        list.at_line(row.line);
        list.push(spec, work);
        Ok(())
    })?;
    Ok(Imported { dropped, ..Imported::of(list) })
}

fn deadline(row: &Row<'_>, slo: usize, arrival: rota_core::time::Time) -> Result<Deadline, InputError> {
    match row.number(slo)? {
        none if none <= 0.0 => Ok(Deadline::None),
        _ => {
            let after = parse_time(row.text(slo), 1.0).ok_or_else(|| row.expected(slo, "seconds"))?;
            Ok(Deadline::Strict(arrival + (after - rota_core::time::Time::ZERO)))
        }
    }
}

/// `ResNet-18 (batch size 32)`: model and batch; 0 where none is named.
pub(super) fn job_type(text: &str) -> Option<(&str, u32)> {
    match text.rsplit_once(" (batch size ") {
        Some((model, batch)) => Some((model, batch.strip_suffix(')')?.parse().ok()?)),
        None => (!text.is_empty()).then_some((text, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};
    use crate::profile;
    use rota_test_support::need;

    #[test]
    fn a_model_without_throughputs_is_refused_with_what_to_do() {
        let said = message(read, "g.trace", "LM (batch size 10)\tpython3\t-n\t1\t10000\t6.0\t1\n");
        assert!(said.starts_with("g.trace:1, column 1 (job type): got \"LM (batch size 10)\""), "{said}");
        assert!(said.contains("rota profile import"), "{said}");
    }

    #[test]
    fn the_public_traces_are_read_with_the_public_throughputs() {
        let Some(folder) = need::shared_path("traces") else { return };
        let table =
            Source::open(&folder.join("gavel-throughputs/simulation_throughputs.json")).expect("readable");
        let profiles = profile::import::import(
            profile::import::Origin::Gavel,
            &[table],
            &profile::import::ImportOptions::default(),
        )
        .expect("sound")
        .set;
        let (cluster, _) = built_in("default", "synergy");
        let profiles = profiles.on_any_gpu_type();
        let setting = Setting::new(&cluster, &profiles);
        let mut n_jobs = 0;
        for part in ["seed0", "physical_cluster"] {
            let files = std::fs::read_dir(folder.join("philly-gavel-msr").join(part)).expect("a folder");
            for file in files {
                let source = Source::open(&file.expect("an entry").path()).expect("readable");
                let read =
                    crate::format::read(&source, None, &setting).unwrap_or_else(|error| panic!("{error}"));
                n_jobs += read.workload.jobs.len();
            }
        }
        assert_eq!(n_jobs, 15_264 + 287);
    }
}
