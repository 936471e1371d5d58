//! Iteration times from a command's own words: a pattern with named groups, looked for in every line.
//!
//! `(?<iteration>\d+)` is how many iterations are done, timed by when the line came; `(?<seconds>[\d.]+)` is the time of
//! one iteration and `(?<rate>[\d.]+)` iterations per second, as the command reckons them.

use regex::Regex;

/// A pattern that says one of the three.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// So many iterations are done.
    Iterations(f64),
    /// An iteration takes so many seconds.
    Seconds(f64),
}

/// A pattern that is none.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// No regular expression.
    #[error("--pattern: {0}")]
    Syntax(#[from] regex::Error),
    /// It names nothing.
    #[error(
        "--pattern `{0}`: name a group `iteration`, `seconds` or `rate`, as in 'step (?<iteration>\\d+)' or 'time (?<seconds>[\\d.]+)'"
    )]
    NoGroup(String),
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(text)?;
        let is_known =
            regex.capture_names().flatten().any(|name| ["iteration", "seconds", "rate"].contains(&name));
        if is_known { Ok(Pattern { regex }) } else { Err(PatternError::NoGroup(text.to_owned())) }
    }
}

impl Pattern {
    /// What a line says, if it says something.
    pub fn read(&self, line: &str) -> Option<Said> {
        let found = self.regex.captures(line)?;
        let number =
            |name: &str| found.name(name)?.as_str().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        let seconds = number("seconds").or_else(|| number("rate").map(|rate| 1.0 / rate));
        seconds.map(Said::Seconds).or_else(|| number("iteration").map(Said::Iterations))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.regex.as_str())
    }
}
