//! Results in the log formats of the original programs, so that plot scripts written for those keep working.
//!
//! One file for each program. A column for which a result has no data is left empty, or has what the original writes
//! when it does not know; each file says which. Times stay in the result's own time base, in seconds.

mod chronus;
mod elasticflow;
mod synergy;

use std::path::{Path, PathBuf};

use rota_core::time::Time;

use crate::results::{Results, RunResult};

/// A program whose logs can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// `job.csv` and `scheduling_events.csv` of each run
    Elasticflow,
    /// `<policy>_<load>.csv` with the JCT of each job, `<policy>_avg_jct.csv`, and `job_completion.csv` of each run
    Synergy,
    /// `<policy>.csv`, `<policy>_resource.csv` and `<policy>_batch_placement_info.csv`, as ElasticFlow's port writes them
    Chronus,
}

/// A log that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The operating system refused.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// File that was to be written.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A log of another result is there.
    #[error("{} is there already and differs: choose another --out, or replace it with --overwrite", path.display())]
    Exists {
        /// The file that would be lost.
        path: PathBuf,
    },
    /// The run does not say what ran where.
    #[error("the run of {policy} has no timeline.csv, which {file} is made of: run it again with --timeline")]
    NoTimeline {
        /// Policy of the run.
        policy: String,
        /// Name of the log that cannot be written without it.
        file: &'static str,
    },
}

/// Writes the logs of every run; returns the files. Nothing is written if another result's log would be lost, unless
/// `overwrite`.
pub fn export(
    results: &Results,
    system: System,
    out: &Path,
    overwrite: bool,
) -> Result<Vec<PathBuf>, ExportError> {
    let mut files = Files { out: out.to_owned(), made: Vec::new() };
    let several = results.runs.len() > 1;
    for (run, name) in results.runs.iter().zip(results.run_names()) {
        let name = file_name(&name);
        match system {
            System::Elasticflow => elasticflow::write(run, several.then_some(name.as_str()), &mut files)?,
            System::Synergy => synergy::write_run(run, &name, &mut files),
            System::Chronus => chronus::write(run, &name, &mut files),
        }
    }
    if system == System::Synergy {
        synergy::write_averages(&results.runs, &mut files);
    }
    files.write_all(overwrite)
}

/// The files that a folder is to be filled with.
struct Files {
    out: PathBuf,
    made: Vec<(PathBuf, String)>,
}

impl Files {
    /// A file of lines that have no end yet.
    fn add(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        let mut text = String::new();
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        self.made.push((self.out.join(name), text));
    }

    fn write_all(self, overwrite: bool) -> Result<Vec<PathBuf>, ExportError> {
        let differs = |(path, text): &&(PathBuf, String)| {
            path.exists() && std::fs::read(path).ok().as_deref() != Some(text.as_bytes())
        };
        if let Some((path, _)) = self.made.iter().find(differs).filter(|_| !overwrite) {
            return Err(ExportError::Exists { path: path.clone() });
        }
        for (path, text) in &self.made {
            let wrong = |source| ExportError::Io { path: path.clone(), source };
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(wrong)?;
            }
            std::fs::write(path, text).map_err(wrong)?;
        }
        Ok(self.made.into_iter().map(|(path, _)| path).collect())
    }
}

/// Safe in a file name everywhere.
fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+._-".contains(c) { c } else { '_' };
    name.chars().map(safe).collect::<String>().trim_start_matches(['.', '_']).to_owned()
}

/// The originals count in whole seconds where they can.
fn seconds(time: Time) -> String {
    time.to_string()
}

/// Jobs that finished, by the time they ended; ties in the order of submission.
fn finished(run: &RunResult) -> Vec<(usize, Time)> {
    let mut finished: Vec<(usize, Time)> = run
        .jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| job.jct().is_some())
        .filter_map(|(at, job)| Some((at, job.finish?)))
        .collect();
    finished.sort_by_key(|(at, finish)| (*finish, *at));
    finished
}

#[cfg(test)]
mod tests;
