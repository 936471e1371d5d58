//! Iteration times from a command's output: a pattern with named groups, matched against every line.
//!
//! `(?<iteration>\d+)` is how many iterations are done, timed by when the line was written; `(?<seconds>[\d.]+)` is the time of
//! one iteration and `(?<rate>[\d.]+)` iterations per second, as the command computes them.

use regex::Regex;

/// A pattern that says one of the three.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

/// What is read from a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// The number of iterations done.
    Iterations(f64),
    /// The seconds that an iteration takes.
    Seconds(f64),
}

/// A text that cannot serve as a pattern.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// It is not a regular expression.
    #[error("--pattern: {0}")]
    Syntax(#[from] regex::Error),
    /// It names none of the groups.
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
    /// What a line says, if it matches.
    pub fn read(&self, line: &str) -> Option<Reading> {
        let found = self.regex.captures(line)?;
        let number =
            |name: &str| found.name(name)?.as_str().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        let seconds = number("seconds").or_else(|| number("rate").map(|rate| 1.0 / rate));
        seconds.map(Reading::Seconds).or_else(|| number("iteration").map(Reading::Iterations))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.regex.as_str())
    }
}
