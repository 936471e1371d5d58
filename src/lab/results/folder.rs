//! The folder on disk: which files there are, and how they appear together or not at all.
//!
//! A folder is built next to its final path under a hidden name and renamed. What is there already is replaced only
//! if every file in it is one that Rota writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::summary::SummaryFile;
use super::{
    FORMAT, Input, JobRow, Results, ResultsError, RunMeta, RunResult, Summary, Window, config, jobs, rounds,
    timeline,
};

const SUMMARY: &str = "summary.json";
const CONFIG: &str = "config.toml";
/// Up to this format each of several runs had tables of its own, named after its policy.
const FILES_BY_RUN: u32 = 1;

/// A folder in the making, next to its final path. Dropped before [`Staging::commit`] it leaves no trace.
#[derive(Debug)]
pub struct Staging {
    target: PathBuf,
    staged: PathBuf,
}

impl Staging {
    /// Makes an empty folder to be filled; refuses when the target is something that must not be replaced.
    pub fn new(target: &Path) -> Result<Self, ResultsError> {
        let target = resolve(target)?;
        check_replaceable(&target)?;
        let parent = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(ResultsError::io("create", parent))?;
        let staged = free_sibling(&target, "writing");
        fs::create_dir(&staged).map_err(ResultsError::io("create", &staged))?;
        Ok(Staging { target, staged })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.staged
    }

    /// Puts the folder in its place.
    pub fn commit(self) -> Result<(), ResultsError> {
        check_replaceable(&self.target)?;
        if !self.target.exists() {
            return fs::rename(&self.staged, &self.target).map_err(ResultsError::io("create", &self.target));
        }
        let old = free_sibling(&self.target, "replaced");
        fs::rename(&self.target, &old).map_err(ResultsError::io("replace", &self.target))?;
        if let Err(error) = fs::rename(&self.staged, &self.target) {
            fs::rename(&old, &self.target).map_err(ResultsError::io("restore", &self.target))?;
            return Err(ResultsError::io("create", &self.target)(error));
        }
        fs::remove_dir_all(&old).map_err(ResultsError::io("remove", &old))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a commit there is nothing under this name; before, a leftover is all an error here would cost.
        let _ = fs::remove_dir_all(&self.staged);
    }
}

/// Replaces one file, so that readers see the old or the new one.
pub fn replace_file(path: &Path, contents: &[u8]) -> Result<(), ResultsError> {
    let staged = free_sibling(path, "writing");
    fs::write(&staged, contents).map_err(ResultsError::io("write", &staged))?;
    fs::rename(&staged, path).map_err(|error| {
        let _ = fs::remove_file(&staged);
        ResultsError::io("replace", path)(error)
    })
}

/// A path that has a name and is not a link: `.`, `a/..` and links become the paths they mean.
fn resolve(path: &Path) -> Result<PathBuf, ResultsError> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::path::absolute(path).map_err(ResultsError::io("resolve", path))
        }
        Err(error) => Err(ResultsError::io("resolve", path)(error)),
    }
}

fn check_replaceable(target: &Path) -> Result<(), ResultsError> {
    if !target.exists() {
        return Ok(());
    }
    if !target.is_dir() {
        return Err(ResultsError::IsFile { path: target.to_owned() });
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(target).map_err(ResultsError::io("read", target))? {
        names.push(
            entry.map_err(ResultsError::io("read", target))?.file_name().to_string_lossy().into_owned(),
        );
    }
    names.sort_unstable();
    let has_summary = names.iter().any(|name| name == SUMMARY);
    match names.into_iter().find(|name| !has_summary || !is_ours(name)) {
        Some(found) => Err(ResultsError::NotOurs { dir: target.to_owned(), found }),
        None => Ok(()),
    }
}

fn is_ours(name: &str) -> bool {
    let is_table = |kind: &str| {
        let rest = name.strip_prefix(kind).and_then(|rest| rest.strip_suffix(".csv"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    matches!(name, SUMMARY | CONFIG | "report.html" | "plots")
        || ["jobs", "rounds", "timeline"].iter().any(|k| is_table(k))
}

/// A hidden name next to `path` that is not taken.
fn free_sibling(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let sibling = |n: u32| path.with_file_name(format!(".{name}.{what}-{}-{n}", std::process::id()));
    (0..).map(sibling).find(|sibling| !sibling.exists()).expect("some number is free")
}

/// What a run is asked to be, as far as that is known before it begins.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Version of this program.
    pub version: &'a str,
    /// Options as resolved.
    pub settings: &'a toml::Table,
    /// What is read, with checksums.
    pub inputs: &'a [Input],
    /// Policy and load of each run.
    pub runs: Vec<(&'a str, Option<f64>)>,
    /// Jobs that count, in every run.
    pub window: Option<Window>,
}

/// Refuses a folder that holds results of another request. Those of the same one may be replaced: they come out equal.
pub fn refuse_other_results(dir: &Path, request: &Request<'_>) -> Result<(), ResultsError> {
    if !holds_results(dir) {
        return Ok(());
    }
    // A folder whose settings cannot be read holds something else.
    let is_same = config::read(&dir.join(CONFIG)).is_ok_and(|found| {
        let runs: Vec<_> = found.runs.iter().map(|run| (run.policy.as_str(), run.jobs_per_hour)).collect();
        found.version == request.version
            && found.settings == *request.settings
            && found.inputs == request.inputs
            && runs == request.runs
            && found.runs.iter().all(|run| run.window == request.window)
    });
    if is_same { Ok(()) } else { Err(ResultsError::OtherResults { dir: dir.to_owned() }) }
}

/// Whether a folder holds the results of a run.
pub(super) fn holds_results(dir: &Path) -> bool {
    dir.join(SUMMARY).exists()
}

/// Refuses a folder that holds any results.
pub fn refuse_results(dir: &Path) -> Result<(), ResultsError> {
    match holds_results(dir) {
        true => Err(ResultsError::OtherResults { dir: dir.to_owned() }),
        false => Ok(()),
    }
}

pub(super) fn write(results: &Results, dir: &Path) -> Result<(), ResultsError> {
    let write_text = |name: &str, text: String| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(ResultsError::io("write", &path))
    };
    write_text(SUMMARY, results.to_json())?;
    write_text(CONFIG, config::to_toml(results).map_err(|e| ResultsError::malformed(&dir.join(CONFIG), e))?)?;
    jobs::write(&results.runs, &dir.join("jobs.csv"))?;
    rounds::write(&results.runs, &dir.join("rounds.csv"))?;
    if results.runs.iter().any(|run| !run.timeline.is_empty()) {
        timeline::write(&results.runs, &dir.join("timeline.csv"))?;
    }
    Ok(())
}

pub(super) fn read(dir: &Path) -> Result<Results, ResultsError> {
    let SummaryFile { format, runs: figures, .. } = read_summary(dir)?;
    let path = dir.join(CONFIG);
    let config = config::read(&path)?;
    if figures.len() != config.runs.len() {
        let why = format!("speaks of {} runs, {SUMMARY} of {}", config.runs.len(), figures.len());
        return Err(ResultsError::malformed(&path, why));
    }
    let tables = match format {
        ..=FILES_BY_RUN => {
            let suffixes = suffixes_by_run(&config.runs.iter().collect::<Vec<_>>());
            let each = suffixes.iter().map(|suffix| Ok(tables(dir, suffix, 1)?.remove(0)));
            each.collect::<Result<Vec<_>, ResultsError>>()?
        }
        _ => tables(dir, "", figures.len())?,
    };
    let run = |((meta, summary), tables): ((RunMeta, Summary), Tables)| {
        let (jobs, (samples, notes, bounds), (timeline, nodes)) = tables;
        RunResult { meta, summary, jobs, samples, notes, bounds, timeline, nodes }
    };
    let runs = config.runs.into_iter().zip(figures).zip(tables).map(run).collect();
    Ok(Results {
        title: config.title,
        version: config.version,
        settings: config.settings,
        inputs: config.inputs,
        runs,
    })
}

/// What the tables say of one run.
type Tables = (Vec<JobRow>, rounds::Rounds, timeline::Timeline);

fn tables(dir: &Path, suffix: &str, n_runs: usize) -> Result<Vec<Tables>, ResultsError> {
    let jobs = jobs::read(&dir.join(format!("jobs{suffix}.csv")), n_runs)?;
    let rounds = rounds::read(&dir.join(format!("rounds{suffix}.csv")), n_runs)?;
    let path = dir.join(format!("timeline{suffix}.csv"));
    let timelines =
        if path.exists() { timeline::read(&path, &jobs)? } else { vec![Default::default(); n_runs] };
    Ok(jobs
        .into_iter()
        .zip(rounds)
        .zip(timelines)
        .map(|((jobs, rounds), line)| (jobs, rounds, line))
        .collect())
}

fn read_summary(dir: &Path) -> Result<SummaryFile, ResultsError> {
    let path = dir.join(SUMMARY);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ResultsError::NoSummary { dir: dir.to_owned() },
        _ => ResultsError::io("read", &path)(error),
    })?;
    let wrong = |e: serde_json::Error| ResultsError::malformed(&path, e);
    let value: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    match format {
        None => Err(ResultsError::malformed(&path, "has no `format`")),
        Some(found) if found > u64::from(FORMAT) => Err(ResultsError::Format { path, found }),
        Some(_) => serde_json::from_value(value).map_err(wrong),
    }
}

/// What came between `jobs` and `.csv` when each run had files of its own: nothing for a single one.
fn suffixes_by_run(runs: &[&RunMeta]) -> Vec<String> {
    if runs.len() == 1 { vec![String::new()] } else { suffixes(runs) }
}

/// What tells the pictures of runs apart: the policy, with load and seed where the policy alone does not.
pub(crate) fn suffixes(runs: &[&RunMeta]) -> Vec<String> {
    let mut names: Vec<String> = runs.iter().map(|run| format!("-{}", file_name(&run.policy))).collect();
    append_where_alike(&mut names, |at| {
        let load = runs[at].jobs_per_hour.map(|load| format!("-{load}-per-hour")).unwrap_or_default();
        format!("{load}-seed{}", runs[at].seed)
    });
    append_where_alike(&mut names, |at| format!("-{}", at + 1));
    names
}

fn append_where_alike(names: &mut [String], more: impl Fn(usize) -> String) {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for name in names.iter() {
        *count.entry(name.clone()).or_default() += 1;
    }
    for (at, name) in names.iter_mut().enumerate() {
        if count[name.as_str()] > 1 {
            name.push_str(&more(at));
        }
    }
}

/// A policy may be a path: what is left of it is safe in a file name everywhere.
fn file_name(policy: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+._-".contains(c) { c } else { '_' };
    let name: String = policy.chars().take(80).map(safe).collect();
    let name = name.trim_start_matches(['.', '_']);
    if name.is_empty() { "policy".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
