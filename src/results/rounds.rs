//! `rounds.csv`: the cluster after each decision, what the decision took, and what the policy remarked.

use std::path::Path;

use rota_core::ledger::{Sample, Use};

use super::{ResultsError, table_file};

const COLUMNS: [&str; 15] = [
    "time_s",
    "waiting",
    "running",
    "gpus_up",
    "gpus_held",
    "gpus_asked",
    "cpus_held",
    "cpus_used",
    "cpus_asked",
    "mem_gb_held",
    "mem_gb_used",
    "mem_gb_asked",
    "commands",
    "decide_s",
    "notes",
];

/// Samples, and remarks with the index of their sample.
type Rounds = (Vec<Sample>, Vec<(usize, String)>);

pub(super) fn write(samples: &[Sample], notes: &[(usize, String)], path: &Path) -> Result<(), ResultsError> {
    let mut by_sample: Vec<&(usize, String)> = notes.iter().collect();
    by_sample.sort_by_key(|note| note.0);
    let mut rest = by_sample.as_slice();
    table_file::write(path, &COLUMNS, |writer| {
        for (index, sample) in samples.iter().enumerate() {
            let here = rest.partition_point(|note| note.0 <= index);
            let remarks: Vec<&str> = rest[..here].iter().map(|note| note.1.as_str()).collect();
            rest = &rest[here..];
            writer.write_record(record(sample, remarks.join("; ")))?;
        }
        Ok(())
    })
}

fn record(sample: &Sample, remarks: String) -> [String; 15] {
    let number = |value: f64| format!("{}", (value * 1e6).round() / 1e6);
    [
        sample.time.to_string(),
        sample.waiting.to_string(),
        sample.running.to_string(),
        sample.gpus_up.to_string(),
        sample.gpus_held.to_string(),
        sample.gpus_asked.to_string(),
        number(sample.cpus.held),
        number(sample.cpus.used),
        number(sample.cpus.asked),
        number(sample.mem_gb.held),
        number(sample.mem_gb.used),
        number(sample.mem_gb.asked),
        sample.commands.to_string(),
        number(sample.decide_s),
        remarks,
    ]
}

pub(super) fn read(path: &Path) -> Result<Rounds, ResultsError> {
    let (mut samples, mut notes) = (Vec::new(), Vec::new());
    table_file::read(path, &COLUMNS, |row| {
        if !row.text("notes").is_empty() {
            notes.push((samples.len(), row.text("notes").to_owned()));
        }
        samples.push(Sample {
            time: row.known_time("time_s")?,
            waiting: row.value("waiting", "count")?,
            running: row.value("running", "count")?,
            gpus_up: row.value("gpus_up", "count")?,
            gpus_held: row.value("gpus_held", "count")?,
            gpus_asked: row.value("gpus_asked", "count")?,
            cpus: Use {
                held: row.value("cpus_held", "number")?,
                used: row.value("cpus_used", "number")?,
                asked: row.value("cpus_asked", "number")?,
            },
            mem_gb: Use {
                held: row.value("mem_gb_held", "number")?,
                used: row.value("mem_gb_used", "number")?,
                asked: row.value("mem_gb_asked", "number")?,
            },
            commands: row.value("commands", "count")?,
            decide_s: row.value("decide_s", "number")?,
        });
        Ok(())
    })?;
    Ok((samples, notes))
}
