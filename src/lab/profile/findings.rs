//! What was measured so far, kept line by line in a file, so that an interrupted sweep can be resumed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::grid::Point;
use super::samples::Estimate;

/// One run of one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Resources and batch it was run with.
    pub point: Point,
    /// Seconds of an iteration in each stretch of it; none when it failed.
    pub iteration_s: Vec<f64>,
    /// How long it took in all.
    pub wall_s: f64,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether it only warmed caches up, and does not count.
    #[serde(default)]
    pub is_warm_up: bool,
}

/// All runs by point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    runs: Vec<Run>,
    by_point: BTreeMap<Point, Vec<usize>>,
}

impl Findings {
    /// Adds a run.
    pub fn add(&mut self, run: Run) {
        if !run.is_warm_up {
            self.by_point.entry(run.point).or_default().push(self.runs.len());
        }
        self.runs.push(run);
    }

    /// Every run in order, including those that only warmed up.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Points with at least one run.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.by_point.keys().copied()
    }

    /// How often a point was run.
    pub fn n_runs(&self, point: &Point) -> u32 {
        self.by_point.get(point).map_or(0, |runs| runs.len() as u32)
    }

    /// The time of an iteration at a point, of all its runs that did not fail.
    pub fn at(&self, point: &Point) -> Option<Estimate> {
        let runs = self.by_point.get(point)?.iter().filter_map(|index| self.runs.get(*index));
        let samples: Vec<f64> = runs.flat_map(|run| run.iteration_s.iter().copied()).collect();
        Estimate::of(&samples)
    }

    /// Why a point has no time, if every run of it failed.
    pub fn failure(&self, point: &Point) -> Option<&str> {
        let runs = self.by_point.get(point)?;
        let last = runs.last().and_then(|index| self.runs.get(*index))?;
        last.failure.as_deref().filter(|_| self.at(point).is_none())
    }

    /// Seconds all runs took.
    pub fn wall_s(&self) -> f64 {
        self.runs.iter().map(|run| run.wall_s).sum()
    }
}

/// A file of runs that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FindingsError {
    /// The file system refuses.
    #[error("{}: {source}", path.display())]
    File {
        /// File with the runs.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A line that does not hold a run.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// File with the runs.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Message of the parser.
        why: String,
    },
    /// Runs of another command or grid.
    #[error("{}: holds runs of something else; give another --out, or replace them with --overwrite\n  there: {there}\n  now:   {now}", path.display())]
    Other {
        /// File with the runs.
        path: PathBuf,
        /// What its runs are of.
        there: String,
        /// What is asked for.
        now: String,
    },
}

/// A file of runs: its first line says what they are of.
#[derive(Debug)]
pub struct FindingsFile {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Heading {
    format: u32,
    of: String,
}

impl FindingsFile {
    /// Opens or begins the file of a sweep, and returns what is in it. `of` names everything the numbers depend on.
    pub fn open(path: &Path, of: &str) -> Result<(Self, Findings), FindingsError> {
        let file = FindingsFile { path: path.to_owned() };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(FindingsError::File { path: path.to_owned(), source }),
        };
        if text.is_empty() {
            file.append(&Heading { format: 1, of: of.to_owned() })?;
            return Ok((file, Findings::default()));
        }
        let wrong =
            |line: usize, why: String| FindingsError::Line { path: path.to_owned(), line: line + 1, why };
        let mut findings = Findings::default();
        // A line without a line end was being written when the machine went down; its run is repeated.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for (at, line) in whole.lines().enumerate() {
            if at == 0 {
                let heading: Heading = serde_json::from_str(line).map_err(|e| wrong(at, e.to_string()))?;
                if heading.of != of {
                    let (path, now) = (path.to_owned(), of.to_owned());
                    return Err(FindingsError::Other { path, there: heading.of, now });
                }
                continue;
            }
            let run: Run = serde_json::from_str(line).map_err(|e| wrong(at, e.to_string()))?;
            if let Some(bad) =
                run.iteration_s.iter().find(|seconds| !(seconds.is_finite() && **seconds > 0.0))
            {
                return Err(wrong(at, format!("an iteration of {bad} seconds")));
            }
            findings.add(run);
        }
        if whole.len() + 1 < text.len() {
            fs::write(path, format!("{whole}\n"))
                .map_err(|source| FindingsError::File { path: path.to_owned(), source })?;
        }
        Ok((file, findings))
    }

    /// Appends a run.
    pub fn add(&self, run: &Run) -> Result<(), FindingsError> {
        self.append(run)
    }

    fn append(&self, value: &impl Serialize) -> Result<(), FindingsError> {
        let line = serde_json::to_string(value).unwrap_or_default() + "\n";
        let file = fs::OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|source| FindingsError::File { path: self.path.clone(), source })
    }
}
