//! How Synergy's own training scripts get the name of their job and report their speed: each run has a job's name, and leaves
//! `PERF_<job>.txt` where it runs, with the average time of a batch in its first line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::grid::Point;

/// The name of a point's job; as Synergy's profiler does, it says what the job has.
pub fn job_name(model: &str, point: &Point) -> String {
    let cpus = point.cpus() * f64::from(point.gpus);
    let batch = if point.batch > 0 { format!("_batch_{}", point.batch) } else { String::new() };
    format!("{model}_gpu_{}{batch}_cpu_{cpus}", point.gpus)
}

/// A run that did not leave its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerfFileError {
    /// The file is not there.
    #[error("it ended successfully, but left no {}: does it accept --job-name?", path.display())]
    Missing {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The first line is not a time.
    #[error("{}:1: got \"{line}\", expected the average time of a batch in seconds", path.display())]
    NotATime {
        /// The file that the run left.
        path: PathBuf,
        /// Its first line.
        line: String,
    },
}

/// Where a run leaves its time.
pub struct PerfFile(PathBuf);

impl PerfFile {
    /// That of a job that runs in a folder; what an earlier run left there is removed, so that it is not mistaken for this one's.
    pub fn before_run(folder: &Path, job: &str) -> io::Result<Self> {
        let path = folder.join(format!("PERF_{job}.txt"));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(PerfFile(path)),
        }
    }

    /// Takes the average time of a batch out of it, in seconds; an error says what is there instead.
    pub fn take(&self) -> Result<f64, PerfFileError> {
        let text =
            fs::read_to_string(&self.0).map_err(|_| PerfFileError::Missing { path: self.0.clone() })?;
        let line = text.lines().next().unwrap_or_default().trim();
        match line.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds > 0.0 => {
                // If it cannot be removed now, it is removed before the next run.
                let _ = fs::remove_file(&self.0);
                Ok(seconds)
            }
            _ => Err(PerfFileError::NotATime { path: self.0.clone(), line: line.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_run_wrote_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let point = Point { gpus: 2, batch: 64, cpu_micro: 3_000_000, mem_bytes: 0 };
        let job = job_name("res18", &point);
        assert_eq!(job, "res18_gpu_2_batch_64_cpu_6");
        let path = folder.path().join("PERF_res18_gpu_2_batch_64_cpu_6.txt");
        fs::write(&path, "0.5\n50\n0\n").expect("written");
        let file = PerfFile::before_run(folder.path(), &job).expect("removed");
        assert_eq!(
            file.take(),
            Err(PerfFileError::Missing { path: path.clone() }),
            "nothing was written since"
        );
        fs::write(&path, "0.125\n50\n0\n").expect("written");
        assert_eq!(file.take(), Ok(0.125));
        assert!(!path.exists(), "nothing is left in the user's folder");
        for bad in ["", "soon\n", "-1\n", "nan\n"] {
            fs::write(&path, bad).expect("written");
            assert!(file.take().expect_err(bad).to_string().contains(":1: got"), "{bad}");
        }
    }
}
