//! Results kept by a hash of everything they depend on: one file for each run, written completely or not at all.
//!
//! A file is written next to its final path, flushed to the disk and renamed. It ends with a checksum of itself, so that a file
//! cut short by a crash counts as missing. Nothing in it depends on a clock but `wall_s` and
//! `decide_s`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::StudyError;
use crate::results::{JobRow, MADE_BY, RunResult};
use crate::statistics::quantile;

const FOLDER: &str = "cache";
const FORMAT: u32 = 1;
/// Files that a study writes next to its cache.
const TABLES: [&str; 4] = ["runs", "groups", "pairs", "timing"];

/// A hash of everything that a result depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    hex: String,
    number: u64,
}

impl Key {
    /// The key of a list of texts; where one ends and the next begins matters.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let bytes = hasher.finalize();
        let number = bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        Key { hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect(), number }
    }

    /// In hexadecimal.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Its first bits, by which runs are divided among shards.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// What is kept of a run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// Every number of the summary; `None` where the run has none.
    pub numbers: BTreeMap<String, Option<f64>>,
    /// Digest over all events and commands.
    pub digest: String,
    /// Job completion times in seconds: the 0th to 100th percentile; empty when no job was done.
    pub jct_percentiles_s: Vec<f64>,
}

impl Figures {
    /// What is kept of a result.
    pub fn of(result: &RunResult) -> Self {
        let summary = serde_json::to_value(&result.summary).unwrap_or_default();
        let is_number = |value: &serde_json::Value| value.is_number() || value.is_null();
        let numbers = summary.as_object().into_iter().flatten().filter(|(_, value)| is_number(value));
        let jcts = result.ascending_s(JobRow::jct);
        Figures {
            numbers: numbers.map(|(name, value)| (name.clone(), value.as_f64())).collect(),
            digest: result.summary.digest.clone(),
            jct_percentiles_s: (0..=100).filter_map(|at| quantile(&jcts, f64::from(at) / 100.0)).collect(),
        }
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Entry {
    format: u32,
    key: String,
    figures: Figures,
}

/// The folder of results, and others that may be read.
#[derive(Debug)]
pub struct Cache {
    own: PathBuf,
    others: Vec<PathBuf>,
}

impl Cache {
    /// The cache of a study's folder, which is made if it is not there; refuses a folder of other things.
    pub fn open(out: &Path, also_from: &[PathBuf]) -> Result<Self, StudyError> {
        Self::check(out)?;
        let own = out.join(FOLDER);
        fs::create_dir_all(&own).map_err(io("create", &own))?;
        let mut others = Vec::new();
        for dir in also_from {
            let other = dir.join(FOLDER);
            if !other.is_dir() {
                return Err(StudyError::NoCache { dir: dir.clone() });
            }
            others.push(other);
        }
        Ok(Cache { own, others })
    }

    /// Refuses a folder of other things.
    pub fn check(out: &Path) -> Result<(), StudyError> {
        refuse_foreign(out)
    }

    /// What is kept under a key; a file that is cut short or of another format counts as missing. What another folder has is
    /// carried over.
    pub fn read(&self, key: &Key) -> Result<Option<Figures>, StudyError> {
        if let Some(figures) = read_entry(&self.own.join(file_name(key)), key) {
            return Ok(Some(figures));
        }
        let found = self.others.iter().find_map(|other| read_entry(&other.join(file_name(key)), key));
        if let Some(figures) = &found {
            self.write(key, figures)?;
        }
        Ok(found)
    }

    /// Keeps a result.
    pub fn write(&self, key: &Key, figures: &Figures) -> Result<(), StudyError> {
        let entry = Entry { format: FORMAT, key: key.hex.clone(), figures: figures.clone() };
        let mut text = serde_json::to_string(&entry).expect("numbers and text are plain JSON");
        text.push_str(&format!("\n{}\n", Key::new([text.as_str()]).hex));
        let path = self.own.join(file_name(key));
        // Of two processes that keep the same result each has a name of its own until the rename.
        let staged = self.own.join(format!(".{}.{}", key.hex, std::process::id()));
        let written = File::create(&staged).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(io("write", &staged))?;
        fs::rename(&staged, &path).map_err(io("create", &path))
    }
}

fn file_name(key: &Key) -> String {
    format!("{}.json", key.hex)
}

fn read_entry(path: &Path, key: &Key) -> Option<Figures> {
    let text = fs::read_to_string(path).ok()?;
    let (entry, sum) = text.trim_end().rsplit_once('\n')?;
    if Key::new([entry]).hex != sum {
        return None;
    }
    let entry: Entry = serde_json::from_str(entry).ok()?;
    (entry.format == FORMAT && entry.key == key.hex).then_some(entry.figures)
}

/// A folder is ours when all in it is; leftovers of a killed process are.
fn refuse_foreign(out: &Path) -> Result<(), StudyError> {
    let Ok(entries) = fs::read_dir(out) else { return Ok(()) };
    for entry in entries {
        let name = entry.map_err(io("read", out))?.file_name().to_string_lossy().into_owned();
        let stem = name.split('.').next().unwrap_or("");
        let is_table = TABLES.contains(&stem) && (name.ends_with(".csv") || name.ends_with(".parquet"));
        let is_ours = is_table
            || matches!(name.as_str(), FOLDER | MADE_BY | "report.html" | "plots" | "shards" | "tasks")
            || (name.starts_with('.') && name.contains(".writing-"));
        if !is_ours {
            return Err(StudyError::NotOurs { dir: out.to_owned(), found: name });
        }
    }
    Ok(())
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StudyError {
    let path = path.to_owned();
    move |source| StudyError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        Figures {
            numbers: [("avg_jct_s".into(), Some(0.1 + 0.2)), ("deadline_ratio".into(), None)].into(),
            digest: "abc".into(),
            jct_percentiles_s: vec![1.0, 1.0 / 3.0],
        }
    }

    #[test]
    fn a_result_comes_back_to_the_last_bit() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(&dir.path().join("study"), &[]).expect("a cache");
        let key = Key::new(["a", "b"]);
        assert_eq!(cache.read(&key).expect("readable"), None);
        cache.write(&key, &figures()).expect("written");
        assert_eq!(cache.read(&key).expect("readable"), Some(figures()));
    }

    #[test]
    fn a_file_cut_short_anywhere_is_a_missing_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(dir.path(), &[]).expect("a cache");
        let key = Key::new(["x"]);
        cache.write(&key, &figures()).expect("written");
        let path = dir.path().join("cache").join(file_name(&key));
        let whole = fs::read(&path).expect("a file");
        for end in 0..whole.len() - 1 {
            fs::write(&path, &whole[..end]).expect("cut");
            assert_eq!(cache.read(&key).expect("readable"), None, "cut at {end} of {}", whole.len());
        }
    }

    #[test]
    fn keys_tell_apart_what_differs_in_its_parts() {
        assert_ne!(Key::new(["ab", "c"]), Key::new(["a", "bc"]));
        assert_eq!(Key::new(["ab", "c"]), Key::new(["ab", "c"]));
    }

    #[test]
    fn a_folder_of_other_things_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("thesis.tex"), "years of work").expect("a file");
        let error = Cache::open(dir.path(), &[]).expect_err("not ours").to_string();
        assert!(error.contains("thesis.tex"), "{error}");
    }
}
