//! The settings file of the agent: the options of its command line as keys of a TOML file. Options on the command line
//! take precedence over the file.
//!
//! Keys are the long names of options, values are written as on the command line. Unknown keys and values that an option
//! does not accept are refused with file and line. No option is listed here: every new one is a new key.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command};
use toml::{Spanned, Table, Value};

/// The option that names the file.
pub const OPTION: &str = "settings";

/// A settings file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A file that cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The settings file.
        path: PathBuf,
        /// The error of reading or parsing it.
        why: String,
    },
    /// An unknown key, or a value that its option does not accept.
    #[error("{}, line {line}: {key} = {value}: {why}", path.display())]
    Line {
        /// The settings file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The option's long name.
        key: String,
        /// The value as it is in the file.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Reads the command line, and the settings file if it names one. The outer error is one of the file, the inner one of the
/// command line, with clap's own message.
pub fn parse(
    command: Command,
    words: Vec<OsString>,
) -> Result<Result<ArgMatches, clap::Error>, SettingsError> {
    let command = command.args_override_self(true);
    let Some(path) = named_file(&words) else { return Ok(command.clone().try_get_matches_from(words)) };
    let entries = read(&path, &command)?;
    // Options of the file go before those of the user, and after the name of a command.
    let n_first = 1 + usize::from(words.get(1).is_some_and(|word| command.find_subcommand(word).is_some()));
    let (first, given) = words.split_at(n_first.min(words.len()));
    let mut all = first.to_vec();
    all.extend(entries.iter().flat_map(|entry| entry.words.iter().map(OsString::from)));
    all.extend_from_slice(given);
    Ok(match command.clone().try_get_matches_from(&all) {
        Ok(matches) => Ok(matches),
        Err(error) => match entries.iter().find(|entry| is_blamed(entry, &error, given)) {
            Some(entry) => return Err(entry.wrong(&path, &reason(&error))),
            None => Err(error),
        },
    })
}

/// One key with its value.
struct Entry {
    line: usize,
    key: String,
    value: String,
    words: Vec<String>,
}

impl Entry {
    fn wrong(&self, path: &Path, why: &str) -> SettingsError {
        let (key, value, why) = (self.key.clone(), self.value.clone(), why.to_owned());
        SettingsError::Line { path: path.to_owned(), line: self.line, key, value, why }
    }
}

fn named_file(words: &[OsString]) -> Option<PathBuf> {
    let option = format!("--{OPTION}");
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == option {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = text.strip_prefix(&format!("{option}=")) {
            return Some(PathBuf::from(path));
        }
    }
    None
}

fn read(path: &Path, command: &Command) -> Result<Vec<Entry>, SettingsError> {
    let wrong = |why: String| SettingsError::File { path: path.to_owned(), why };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    // The parser's message names line and column.
    text.parse::<Table>().map_err(|error| wrong(error.to_string()))?;
    let lines: std::collections::BTreeMap<String, Spanned<Value>> =
        toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut entries = Vec::new();
    for (key, value) in lines {
        let line = 1 + text.get(..value.span().start).unwrap_or_default().matches('\n').count();
        let value = value.into_inner();
        let mut entry = Entry { line, value: value.to_string(), words: Vec::new(), key };
        let is_option = |arg: &&clap::Arg| arg.get_long() == Some(&entry.key) && entry.key != OPTION;
        let Some(option) = command.get_arguments().find(is_option) else {
            return Err(entry.wrong(path, "there is no such option; `rota-agent --help` lists them"));
        };
        let is_list = matches!(option.get_action(), clap::ArgAction::Append);
        let Some(values) = texts(&value, is_list) else {
            return Err(entry.wrong(
                path,
                if is_list { "expected a list of texts" } else { "expected a text or a number" },
            ));
        };
        entry.words = values.into_iter().map(|value| format!("--{}={value}", entry.key)).collect();
        entries.push(entry);
    }
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

/// A value as it would be typed.
fn texts(value: &Value, is_list: bool) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(number) => Some(vec![number.to_string()]),
        Value::Float(number) => Some(vec![number.to_string()]),
        Value::Array(values) if is_list => {
            values.iter().map(|value| texts(value, false)).try_fold(Vec::new(), |mut all, more| {
                all.extend(more?);
                Some(all)
            })
        }
        _ => None,
    }
}

/// Whether an error is about an option that the file set and the user did not.
fn is_blamed(entry: &Entry, error: &clap::Error, given: &[OsString]) -> bool {
    let option = format!("--{}", entry.key);
    let is_it = |text: &str| text == option || text.split([' ', '=']).next() == Some(option.as_str());
    let is_named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => is_it(text),
        Some(ContextValue::Strings(texts)) => texts.iter().any(|text| is_it(text)),
        _ => false,
    };
    let is_given = |word: &OsString| is_it(&OsStr::to_string_lossy(word));
    is_named && !given.iter().any(is_given)
}

/// Why a value is refused, without the option's name, which clap repeats.
fn reason(error: &clap::Error) -> String {
    use std::error::Error as _;
    if let Some(source) = error.source() {
        return source.to_string();
    }
    let rendered = error.render().to_string();
    rendered.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    use crate::options::{HeadOptions, LaunchOptions, NodeOptions};

    fn command() -> Command {
        let command = HeadOptions::augment_args(Command::new("rota-agent"));
        let command = LaunchOptions::augment_args(NodeOptions::augment_args(command));
        command.arg(clap::Arg::new(OPTION).long(OPTION)).subcommand(Command::new("emulate"))
    }

    fn parse_with(file: &str, words: &[&str]) -> Result<Result<ArgMatches, clap::Error>, SettingsError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("agent.toml");
        std::fs::write(&path, file).expect("written");
        let named = ["rota-agent".to_owned(), "--settings".to_owned(), path.display().to_string()];
        parse(
            command(),
            named.into_iter().chain(words.iter().map(|w| (*w).to_owned())).map(Into::into).collect(),
        )
    }

    fn error_of(file: &str, words: &[&str]) -> String {
        let error = parse_with(file, words).expect_err("refused").to_string();
        error.split_once("agent.toml").expect("it names the file").1.to_owned()
    }

    #[test]
    fn a_file_sets_options_and_the_command_line_goes_before_it() {
        let file = "head = \"head:4433\"\ngpus = \"0-3\"\nrack = 7\ncontainer-option = [\"--ipc=host\", \"--init\"]\n";
        let matches = parse_with(file, &["--rack", "9"]).expect("a good file").expect("good words");
        let head = HeadOptions::from_arg_matches(&matches).expect("options");
        let node = NodeOptions::from_arg_matches(&matches).expect("options");
        let launch = LaunchOptions::from_arg_matches(&matches).expect("options");
        assert_eq!(head.head.as_deref(), Some("head:4433"));
        assert_eq!((node.gpus.expect("set").to_string().as_str(), node.rack), ("0-3", 9));
        assert_eq!(launch.container_option, ["--ipc=host", "--init"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_value() {
        assert_eq!(
            error_of("# ours\n\ngpu = \"0-3\"\n", &[]),
            ", line 3: gpu = \"0-3\": there is no such option; `rota-agent --help` lists them"
        );
        let error = error_of("head = \"h:1\"\ngpus = \"0-\"\n", &[]);
        assert!(error.starts_with(", line 2: gpus = \"0-\": "), "{error}");
        let error = error_of("emulate-gpus = 65\n", &[]);
        assert!(error.starts_with(", line 1: emulate-gpus = 65: 65 is not in 1..=64"), "{error}");
        assert_eq!(error_of("rack = true\n", &[]), ", line 1: rack = true: expected a text or a number");
        let error = error_of("head = \n", &[]);
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_bad_value_that_the_command_line_replaces_is_still_refused_and_a_bad_word_is_the_users() {
        let file = "rack = \"x\"\n";
        assert!(parse_with(file, &["--gpus", "0"]).is_err());
        let error =
            parse_with("rack = 1\n", &["--gpus", "0-"]).expect("a good file").expect_err("a bad word");
        assert!(error.to_string().contains("--gpus"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let words = ["rota-agent", "--settings", "/none/agent.toml"].map(OsString::from).to_vec();
        let error = parse(command(), words).expect_err("no file").to_string();
        assert!(error.starts_with("/none/agent.toml: "), "{error}");
    }
}
