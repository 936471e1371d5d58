//! `rounds.csv`: the cluster after each decision, what the decision took, what it reached and could have reached, and
//! what the policy remarked.

use std::path::Path;

use rota_core::ledger::{Sample, Use};

use super::{ResultsError, RunResult, table_file};

const COLUMNS: [&str; 18] = [
    "time_s",
    "waiting",
    "running",
    "gpus_up",
    "gpus_held",
    "gpus_asked",
    "gpus_worth",
    "cpus_held",
    "cpus_used",
    "cpus_asked",
    "mem_gb_held",
    "mem_gb_used",
    "mem_gb_asked",
    "commands",
    "decide_s",
    "throughput",
    "throughput_bound",
    "notes",
];

/// What a decision reached: throughput relative to proportional shares, summed over the jobs that run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundBound {
    /// By the policy's plan.
    pub reached: f64,
    /// At most, for the same jobs with the same GPUs.
    pub bound: f64,
}

/// Samples, remarks with the index of their sample, and bounds where there are any.
pub(super) type Rounds = (Vec<Sample>, Vec<(usize, String)>, Vec<RoundBound>);

/// The decisions of all runs in one table.
pub(super) fn write(runs: &[RunResult], path: &Path) -> Result<(), ResultsError> {
    table_file::write(path, &COLUMNS, runs, |writer, run| {
        let mut by_sample: Vec<&(usize, String)> = run.notes.iter().collect();
        by_sample.sort_by_key(|note| note.0);
        let mut rest = by_sample.as_slice();
        for (index, sample) in run.samples.iter().enumerate() {
            let here = rest.partition_point(|note| note.0 <= index);
            let remarks: Vec<&str> = rest[..here].iter().map(|note| note.1.as_str()).collect();
            rest = &rest[here..];
            writer.cells(record(sample, run.bounds.get(index), remarks.join("; ")))?;
            writer.end_row()?;
        }
        Ok(())
    })
}

fn record(sample: &Sample, bound: Option<&RoundBound>, remarks: String) -> [String; 18] {
    let number = |value: f64| format!("{}", (value * 1e6).round() / 1e6);
    let known = |value: Option<f64>| value.map_or_else(String::new, number);
    [
        sample.time.to_string(),
        sample.waiting.to_string(),
        sample.running.to_string(),
        sample.gpus_up.to_string(),
        sample.gpus_held.to_string(),
        sample.gpus_asked.to_string(),
        number(sample.gpus_worth),
        number(sample.cpus.held),
        number(sample.cpus.used),
        number(sample.cpus.asked),
        number(sample.mem_gb.held),
        number(sample.mem_gb.used),
        number(sample.mem_gb.asked),
        sample.commands.to_string(),
        number(sample.decide_s),
        known(bound.map(|bound| bound.reached)),
        known(bound.map(|bound| bound.bound)),
        remarks,
    ]
}

/// The decisions of each of `n_runs` runs.
pub(super) fn read(path: &Path, n_runs: usize) -> Result<Vec<Rounds>, ResultsError> {
    let mut runs: Vec<Rounds> = vec![Default::default(); n_runs];
    table_file::read(path, &COLUMNS, |row| {
        let (samples, notes, bounds) = &mut runs[row.run(n_runs)?];
        if !row.text("notes").is_empty() {
            notes.push((samples.len(), row.text("notes").to_owned()));
        }
        if !row.text("throughput_bound").is_empty() {
            let (reached, bound) =
                (row.value("throughput", "number")?, row.value("throughput_bound", "number")?);
            bounds.push(RoundBound { reached, bound });
        }
        samples.push(Sample {
            time: row.known_time("time_s")?,
            waiting: row.value("waiting", "count")?,
            running: row.value("running", "count")?,
            gpus_up: row.value("gpus_up", "count")?,
            gpus_held: row.value("gpus_held", "count")?,
            gpus_asked: row.value("gpus_asked", "count")?,
            gpus_worth: row.value("gpus_worth", "number")?,
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
    Ok(runs)
}
