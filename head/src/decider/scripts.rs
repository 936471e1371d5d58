//! Where the texts of a policy's own scripts come from: with a request, from the folder that the head names, or, for what the
//! head's own options name, from any path.
//!
//! A request never makes the head read a file outside its folder of policies.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use rota_scripts::{FindTextError, LoadError, ScriptPolicy, Source};

/// Where to look for scripts that are not shipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripts {
    /// Names and texts that came with a request.
    pub(crate) sent: Vec<(String, String)>,
    /// The folder that the head names.
    pub(crate) folder: Option<PathBuf>,
    /// Whether paths are read as well: only for policies that the head's own options or an earlier start name.
    pub(crate) reads_paths: bool,
    /// Names and texts of files as they were when they were last used: for those that cannot be read now.
    pub(crate) kept: Vec<(String, String)>,
    /// Whether these are used in any case, because the files' own texts are of no use.
    pub(crate) prefers_kept: bool,
}

/// The texts of a policy.
pub(crate) struct Texts {
    pub(crate) sources: Vec<Source>,
    /// Files that were read, to be watched, with their texts.
    pub(crate) files: Vec<ScriptFile>,
}

/// A script that comes from a file.
pub(crate) struct ScriptFile {
    /// As the policy names it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// What the file itself says, unless it cannot be read.
    pub(crate) in_file: Option<String>,
    /// Why the text is not the file's, but the one that was kept.
    pub(crate) why_kept: Option<String>,
}

impl ScriptFile {
    /// A sentence about a text that is not the file's; none if it is.
    pub(crate) fn why_kept(&self) -> Option<String> {
        let why = self.why_kept.as_ref()?;
        Some(format!("{}: {why}; the text in the journal is used", self.path.display()))
    }
}

impl Scripts {
    /// Any file of this machine, for programs that a person runs with their own rights.
    pub(crate) fn of_this_machine(sent: Vec<(String, String)>) -> Self {
        Scripts { sent, reads_paths: true, ..Scripts::default() }
    }

    /// The same, with kept texts in place of files.
    pub(crate) fn preferring_kept(&self) -> Self {
        Scripts { prefers_kept: true, ..self.clone() }
    }

    /// The same, from the files alone.
    pub(crate) fn without_kept(&self) -> Self {
        Scripts { prefers_kept: false, kept: Vec::new(), ..self.clone() }
    }

    /// The texts of a policy's parts.
    pub(crate) fn texts(&self, policy: &str) -> Result<Texts, LoadError> {
        let files = RefCell::new(Vec::new());
        let sources = ScriptPolicy::sources_from(policy, &|name| {
            if let Some((_, text)) = self.sent.iter().find(|(sent, _)| sent == name) {
                return Ok((name.to_owned(), text.clone()));
            }
            let path = self.path(name);
            let read =
                path.clone().and_then(|path| std::fs::read_to_string(&path).map_err(FindTextError::from));
            let kept = self.kept.iter().find(|(kept, _)| kept == name).map(|(_, text)| text.clone());
            let in_file = read.as_ref().ok().cloned();
            let (text, why_kept) = match (read, kept) {
                (Ok(text), Some(kept)) if self.prefers_kept && text != kept => {
                    (kept, Some("its text cannot be used".into()))
                }
                (Ok(text), _) => (text, None),
                (Err(why), Some(kept)) => (kept, Some(why.to_string())),
                (Err(why), None) => return Err(why),
            };
            let path = path.unwrap_or_else(|_| PathBuf::from(name));
            let shown = path.display().to_string();
            let name = name.to_owned();
            files.borrow_mut().push(ScriptFile { name, path, text: text.clone(), in_file, why_kept });
            Ok((shown, text))
        })?;
        Ok(Texts { sources, files: files.into_inner() })
    }

    fn path(&self, name: &str) -> Result<PathBuf, FindTextError> {
        let in_folder =
            self.folder.as_ref().filter(|_| is_file_name(name)).map(|folder| (folder, folder.join(name)));
        match in_folder {
            Some((folder, path)) if path.exists() => inside(folder, &path),
            _ if self.reads_paths => Ok(PathBuf::from(name)),
            Some(_) => refused("there is no such script in the head's folder of policies"),
            None if self.folder.is_some() => {
                refused("the head takes scripts of its folder by their file names, not by paths")
            }
            None => refused("the head has no folder of policies (--policy-dir): send the file's text"),
        }
    }
}

/// A file of the folder itself: a link out of it is not followed.
fn inside(folder: &Path, path: &Path) -> Result<PathBuf, FindTextError> {
    match path.canonicalize()?.parent() == Some(&folder.canonicalize()?) {
        true => Ok(path.to_owned()),
        false => refused("it is a link out of the head's folder of policies"),
    }
}

fn refused<T>(reason: &str) -> Result<T, FindTextError> {
    Err(FindTextError::Refused { reason: reason.to_owned() })
}

/// Whether a name is that of a script in a folder, and not a way out of it.
pub(crate) fn is_file_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.ends_with(".rhai") && !name.starts_with('.') && name.len() <= 255 && name.chars().all(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn order(jobs, now) { rank(jobs.arrival) }\n";

    #[test]
    fn a_request_reads_its_own_texts_and_the_folder_and_nothing_else() {
        let (folder, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
        let secret = outside.path().join("secret.rhai");
        std::fs::write(&secret, "root:hash").expect("written");
        std::fs::write(folder.path().join("site.rhai"), TEXT).expect("written");
        std::os::unix::fs::symlink(&secret, folder.path().join("link.rhai")).expect("linked");
        let scripts = Scripts {
            sent: vec![("mine.rhai".into(), TEXT.into())],
            folder: Some(folder.path().to_owned()),
            ..Scripts::default()
        };
        assert_eq!(scripts.texts("mine.rhai+tune").expect("sent").files.len(), 0);
        assert_eq!(scripts.texts("site.rhai+tune").expect("in the folder").files.len(), 1);
        let up = format!("../{}/secret.rhai", outside.path().file_name().expect("a name").to_string_lossy());
        for bad in [
            "/etc/passwd",
            &secret.display().to_string(),
            &up,
            "link.rhai",
            "none.rhai",
            "./site.rhai",
            ".rhai",
        ] {
            let error = scripts.texts(bad).err().unwrap_or_else(|| panic!("{bad} was read")).to_string();
            assert!(!error.contains("root:"), "{error}");
        }
        let without = Scripts::default().texts("site.rhai").err().expect("no folder").to_string();
        assert!(without.contains("--policy-dir"), "{without}");
        assert!(Scripts::of_this_machine(Vec::new()).texts(&secret.display().to_string()).is_ok());
    }
}
