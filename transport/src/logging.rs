//! The log of a daemon: lines on standard error, filtered by level and target.
//!
//! Head and agent write through `tracing`; the target of a line is the module that wrote it. Under systemd the journal
//! adds the time to every line itself, so none is printed; colours are used on terminals only.

use std::io::IsTerminal as _;
use std::str::FromStr as _;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// The filter of a daemon started without one.
pub const DEFAULT_FILTER: &str = "info";

/// Why no log was set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter is neither a level nor a list of `TARGET=LEVEL`.
    #[error(
        "log filter `{filter}`: {why}; write a level (error, warn, info, debug, trace, off) \
         or a list such as `info,rota_head=debug`"
    )]
    BadFilter {
        /// The filter as it was given.
        filter: String,
        /// What the parser found wrong.
        why: String,
    },
    /// This process has a log already.
    #[error("the log cannot be set up: {0}")]
    Taken(#[from] TryInitError),
}

/// Which lines are written: a level for all (`debug`), or levels by target (`info,rota_head=debug`).
#[derive(Clone, Debug, PartialEq)]
pub struct LogFilter(Targets);

impl LogFilter {
    /// Reads a filter; usable as a parser of a command-line option.
    pub fn parse(text: &str) -> Result<Self, LoggingError> {
        let bad = |why: String| LoggingError::BadFilter { filter: text.to_owned(), why };
        if text.trim().is_empty() {
            return Err(bad("is empty".into()));
        }
        // A single word that is not a level would be taken as a target, and nothing else would be logged.
        let is_misspelt =
            |part: &str| !part.contains('=') && tracing::level_filters::LevelFilter::from_str(part).is_err();
        if let Some(part) = text.split(',').map(str::trim).find(|part| is_misspelt(part)) {
            return Err(bad(format!("`{part}` is not a level")));
        }
        Targets::from_str(text).map(LogFilter).map_err(|error| bad(error.to_string()))
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        LogFilter(Targets::new().with_default(tracing::Level::INFO))
    }
}

/// Sends every line of this process that passes the filter to standard error. To be called once in a process.
pub fn init(filter: LogFilter) -> Result<(), LoggingError> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(true);
    // systemd sets JOURNAL_STREAM when standard error goes to its journal.
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some_and(|stream| !stream.is_empty());
    let lines = if is_journal { lines.without_time().boxed() } else { lines.boxed() };
    tracing_subscriber::registry().with(lines.with_filter(filter.0)).try_init()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_are_filters_and_misspelt_levels_are_not() {
        for good in ["info", "off", "warn,rota_head=debug", "info, rota_transport::quic=trace"] {
            LogFilter::parse(good).unwrap_or_else(|error| panic!("{good}: {error}"));
        }
        for bad in ["", "verbose", "info,rota_head", "rota_head=loud"] {
            let error = LogFilter::parse(bad).expect_err(bad).to_string();
            assert!(error.contains(bad), "{error}");
        }
    }

    #[test]
    fn the_default_filter_is_the_one_it_is_called() {
        assert_eq!(LogFilter::parse(DEFAULT_FILTER).ok(), Some(LogFilter::default()));
    }
}
