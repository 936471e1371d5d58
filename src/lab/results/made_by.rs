//! Folders that a command fills file by file (studies, figures of papers, golden cases, profiles) say which command that was, so
//! that no other one writes over them by mistake.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder::replace_file;
use super::{ResultsError, folder};

/// The file's name in such a folder.
pub const MADE_BY: &str = "made-by.toml";

/// The command that a folder's files come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// What was asked, as on a command line and without what does not matter for the results: `study loads.rhai --quick`.
    pub command: String,
    /// Version of the program, where the results depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl MadeBy {
    /// A command whose results depend on the program.
    pub fn new(command: impl Into<String>) -> Self {
        MadeBy { command: command.into(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) }
    }

    /// A command that only measures something else.
    pub fn of_any_version(command: impl Into<String>) -> Self {
        MadeBy { command: command.into(), version: None }
    }

    /// Takes a folder for this command: a new or empty one, or one that the same command began or filled before.
    ///
    /// Any other is refused, unless the user said that it may be overwritten; then those of its entries that are in `written`,
    /// which the command would write itself, are removed, so that no file of the former results is left among the new ones.
    pub fn take(&self, dir: &Path, may_overwrite: bool, written: &[&str]) -> Result<(), ResultsError> {
        let file = dir.join(MADE_BY);
        match self.refusal(dir)? {
            None if file.exists() => return Ok(()),
            None => {}
            Some(error) if !may_overwrite => return Err(error),
            Some(_) => written.iter().try_for_each(|name| remove(&dir.join(name)))?,
        }
        fs::create_dir_all(dir).map_err(ResultsError::io("create", dir))?;
        let text = toml::to_string(self).map_err(|error| ResultsError::malformed(&file, error))?;
        replace_file(&file, text.as_bytes())
    }

    /// Why the folder is not this command's.
    fn refusal(&self, dir: &Path) -> Result<Option<ResultsError>, ResultsError> {
        if dir.exists() && !dir.is_dir() {
            return Err(ResultsError::IsFile { path: dir.to_owned() });
        }
        let Some(found) = first_entry(dir)? else { return Ok(None) };
        let dir = dir.to_owned();
        match read(&dir.join(MADE_BY)) {
            Some(there) if there == *self => Ok(None),
            Some(there) => Ok(Some(ResultsError::MadeByOther { dir, there: there.command })),
            None if folder::holds_results(&dir) => Ok(Some(ResultsError::OtherResults { dir })),
            None => Ok(Some(ResultsError::NotOurs { dir, found })),
        }
    }
}

fn read(file: &Path) -> Option<MadeBy> {
    toml::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// Something in a folder, the first by name; what a process that was killed left behind does not count.
fn first_entry(dir: &Path) -> Result<Option<String>, ResultsError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ResultsError::io("read", dir)(error)),
    };
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        names.push(entry.map_err(ResultsError::io("read", dir))?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| !(name.starts_with('.') && name.contains(".writing-")));
    Ok(names.into_iter().min())
}

fn remove(path: &PathBuf) -> Result<(), ResultsError> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ResultsError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_for_the_command_that_began_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("out");
        let (study, other) = (MadeBy::new("study a.rhai"), MadeBy::new("study b.rhai"));
        study.take(&out, false, &[]).expect("a new folder");
        fs::write(out.join("report.html"), "a").expect("written");
        fs::write(out.join("notes.txt"), "mine").expect("written");
        study.take(&out, false, &["report.html"]).expect("the same study");
        assert!(out.join("report.html").exists(), "the same command goes on");
        let refused = other.take(&out, false, &["report.html"]).expect_err("of another study").to_string();
        assert!(refused.contains("study a.rhai") && refused.contains("--overwrite"), "{refused}");
        assert!(out.join("report.html").exists(), "nothing is lost");
        other.take(&out, true, &["report.html", "plots"]).expect("it may be overwritten");
        assert!(!out.join("report.html").exists() && out.join("notes.txt").exists());
        assert!(study.take(&out, false, &[]).is_err(), "now it is the other's");
    }

    #[test]
    fn folders_of_other_things_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let study = MadeBy::new("study a.rhai");
        fs::write(dir.path().join("thesis.tex"), "years").expect("written");
        let refused = study.take(dir.path(), false, &[]).expect_err("not ours").to_string();
        assert!(refused.contains("thesis.tex"), "{refused}");
        fs::write(dir.path().join("summary.json"), "{}").expect("written");
        let refused = study.take(dir.path(), false, &[]).expect_err("a run's").to_string();
        assert!(refused.contains("results of another run"), "{refused}");
        assert!(study.take(&dir.path().join("thesis.tex"), true, &[]).is_err(), "a file is no folder");
    }
}
