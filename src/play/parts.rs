//! The texts of a policy. Shipped scripts are found by name; of the files on this machine only those that were named on the
//! command line can be read and written.

use std::collections::BTreeSet;
use std::path::Path;

use rota_lab::results::{ResultsError, replace_file};
use rota_scripts::{FindTextError, LoadError, ScriptPolicy, Source, shipped};
use sha2::{Digest, Sha256};

/// Texts larger than this are not policies.
const MAX_TEXT: u64 = 1 << 20;

/// The files that may be read and written.
pub(crate) struct Files(BTreeSet<String>);

/// One part of a policy in the editor.
#[derive(Debug, serde::Serialize)]
pub(crate) struct PartText {
    /// Its name in the policy's name.
    name: String,
    /// File or name, as messages call it.
    file: String,
    text: String,
    /// Whether it can be saved to its file; a shipped script is a copy.
    is_file: bool,
    /// Changes when the file does.
    version: String,
}

/// A text that cannot be saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    #[error("{0} was not named on the command line, so it is not written")]
    NotNamed(String),
    #[error("{0} was changed by another program since it was read here")]
    Changed(String),
    #[error(transparent)]
    Write(#[from] ResultsError),
}

impl Files {
    /// The files in the names of these policies.
    pub(crate) fn named_in<'a>(policies: impl IntoIterator<Item = &'a str>) -> Result<Self, LoadError> {
        let mut files = BTreeSet::new();
        for policy in policies {
            let sources = ScriptPolicy::sources_of(policy)?;
            files.extend(sources.into_iter().filter(|source| !is_shipped(source)).map(|source| source.file));
        }
        Ok(Files(files))
    }

    /// The parts of a policy as they are now.
    pub(crate) fn sources(&self, policy: &str) -> Result<Vec<Source>, LoadError> {
        ScriptPolicy::sources_from(policy, &|path| {
            if !self.0.contains(path) {
                let reason = "was not named on the command line, so it is not read".to_owned();
                return Err(FindTextError::Refused { reason });
            }
            read(path).map(|text| (path.to_owned(), text))
        })
    }

    /// The parts of a policy with other texts, in their order. Where there are fewer texts, the rest are as they are.
    pub(crate) fn edited(&self, policy: &str, texts: &[String]) -> Result<Vec<Source>, LoadError> {
        let mut sources = self.sources(policy)?;
        sources.iter_mut().zip(texts).for_each(|(source, text)| source.text.clone_from(text));
        Ok(sources)
    }

    /// What the editor shows of a policy.
    pub(crate) fn parts(&self, policy: &str) -> Result<Vec<PartText>, LoadError> {
        let part = |source: Source| PartText {
            is_file: self.0.contains(&source.file),
            version: version(&source.text),
            name: source.name,
            file: source.file,
            text: source.text,
        };
        Ok(self.sources(policy)?.into_iter().map(part).collect())
    }

    /// Writes a text to its file, unless the file has another version than the one that was edited; its new version.
    pub(crate) fn save(&self, file: &str, text: &str, edited_version: &str) -> Result<String, SaveError> {
        if !self.0.contains(file) {
            return Err(SaveError::NotNamed(file.to_owned()));
        }
        if read(file).is_ok_and(|present| version(&present) != edited_version && present != text) {
            return Err(SaveError::Changed(file.to_owned()));
        }
        replace_file(Path::new(file), text.as_bytes())?;
        Ok(version(text))
    }

    /// Every file with its text as it is on the disk now; those that cannot be read are left out.
    pub(crate) fn on_disk(&self) -> Vec<(String, String, String)> {
        let found = |file: &String| read(file).ok().map(|text| (file.clone(), version(&text), text));
        self.0.iter().filter_map(found).collect()
    }
}

fn is_shipped(source: &Source) -> bool {
    shipped::ALL.iter().any(|script| script.file == source.file)
}

fn read(path: &str) -> Result<String, FindTextError> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_TEXT {
        let reason = format!("has {size} bytes: more than {MAX_TEXT}, so it is no policy");
        return Err(FindTextError::Refused { reason });
    }
    Ok(std::fs::read_to_string(path)?)
}

/// Short, and another one for another text.
fn version(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_files_are_read_and_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (mine, other) = (path("mine.rhai"), path("other.rhai"));
        for file in [&mine, &other] {
            std::fs::write(file, "fn order(jobs, now) { rank(jobs.gpus) }").expect("written");
        }
        let files = Files::named_in([format!("{mine}+tune").as_str(), "las"]).expect("policies");
        let parts = files.parts(&format!("{mine}+tune")).expect("parts");
        assert_eq!((parts[0].is_file, parts[1].is_file), (true, false));
        assert!(files.sources(&other).is_err());
        assert!(matches!(files.save(&other, "", "x"), Err(SaveError::NotNamed(_))));
        assert!(matches!(files.save("policies/las.rhai", "", "x"), Err(SaveError::NotNamed(_))));
        let saved = files.save(&mine, "// new", &parts[0].version).expect("saved");
        assert_eq!(std::fs::read_to_string(&mine).expect("text"), "// new");
        std::fs::write(&mine, "// by another editor").expect("written");
        assert!(matches!(files.save(&mine, "// newer", &saved), Err(SaveError::Changed(_))));
    }
}
