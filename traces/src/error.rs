//! The one error of everything that reads: which file, where in it, what was found there, what was expected.

use std::fmt;

/// Input that cannot be used, in one sentence: `jobs.csv:3, column 4 (gpus): got "two", expected a whole number`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file's display name, or that of a built-in or of the options.
    pub file: String,
    /// Where in the file, as far as that is known.
    pub location: Location,
    /// The text that was found there, if there was any.
    pub value: Option<String>,
    /// What is wrong with it, as a clause: `expected …`.
    pub problem: String,
}

/// A place in a file, as exactly as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Line, from 1; 0 when it is not known.
    pub line: u64,
    /// Column, from 1: the cell of a table, the character of other texts; 0 when it is not known.
    pub column: u64,
    /// What is named there: a column's heading, a key, a job.
    pub name: Option<String>,
}

/// Values longer than this are cut in messages.
const SHOWN_CHARS: usize = 60;

impl InputError {
    /// Something else was expected somewhere in `file`.
    pub fn expected(file: &str, what: impl fmt::Display) -> Self {
        Self::problem(file, format!("expected {what}"))
    }

    /// Something is wrong in `file`; `problem` is a complete clause.
    pub fn problem(file: &str, problem: impl Into<String>) -> Self {
        InputError {
            file: file.to_owned(),
            location: Location::default(),
            value: None,
            problem: problem.into(),
        }
    }

    /// The same, at a line.
    pub fn at_line(mut self, line: u64) -> Self {
        self.location.line = line;
        self
    }

    /// The same, at a column.
    pub fn at_column(mut self, column: u64) -> Self {
        self.location.column = column;
        self
    }

    /// The same, at something that has a name.
    pub fn at_name(mut self, name: impl Into<String>) -> Self {
        self.location.name = Some(name.into());
        self
    }

    /// The same, with the text that was found there.
    pub fn got(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// A mistake in a TOML text: the library's message with our way of naming places.
    pub(crate) fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().trim_end_matches('.').replace('\n', ", ");
        let mut wrong = Self::problem(file, message);
        if let Some(span) = error.span() {
            let before = text.get(..span.start).unwrap_or("");
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            wrong.location.line = before.matches('\n').count() as u64 + 1;
            wrong.location.column = before.get(line_start..).map_or(0, |l| l.chars().count()) as u64 + 1;
            let here = text.get(span).unwrap_or("");
            if !here.is_empty() && !here.contains('\n') {
                wrong.value = Some(here.trim_matches('"').to_owned());
            }
        }
        wrong
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: ", self.file, self.location)?;
        if let Some(value) = &self.value {
            let shown: String = value.chars().take(SHOWN_CHARS).collect();
            let cut = if shown.len() < value.len() { "…" } else { "" };
            write!(f, "got \"{}{cut}\", ", shown.escape_debug())?;
        }
        f.write_str(&self.problem)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        match (self.column, &self.name) {
            (0, None) => Ok(()),
            (0, Some(name)) => write!(f, ", {name}"),
            (column, None) => write!(f, ", column {column}"),
            (column, Some(name)) => write!(f, ", column {column} ({name})"),
        }
    }
}

impl std::error::Error for InputError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_sentence_with_place_value_and_expectation() {
        let error = InputError::expected("jobs.csv", "a whole number")
            .at_line(3)
            .at_column(4)
            .at_name("gpus")
            .got("two");
        assert_eq!(error.to_string(), "jobs.csv:3, column 4 (gpus): got \"two\", expected a whole number");
        assert_eq!(InputError::expected("x.json", "a list").to_string(), "x.json: expected a list");
    }

    #[test]
    fn long_and_unprintable_values_are_cut_and_escaped() {
        let text =
            InputError::expected("f", "less").got("\u{1b}[31m".to_owned() + &"x".repeat(500)).to_string();
        assert!(text.starts_with("f: got \"\\u{1b}[31mxx"), "{text}");
        assert!(text.ends_with("x…\", expected less") && text.len() < 120, "{text}");
    }
}
