//! Which format a file is in, by its structure: every format says what it recognises, and exactly one must.
//!
//! Nothing is decided by the order of the formats. A file that several recognise is refused with their names, one that none
//! recognises with what comes closest.

use super::near;
use super::{Format, FormatEntry};
use crate::error::InputError;
use crate::source::Source;

/// The beginning of a file, as recognisers see it.
pub(crate) struct Head<'s> {
    /// The first line with something on it.
    pub(crate) first: &'s str,
    /// Its cells, cut as the file's tables are.
    cells: Vec<&'s str>,
    /// Whether the file is JSON.
    pub(crate) is_json: bool,
    /// The whole text, for what the first line does not show.
    pub(crate) text: &'s str,
}

impl<'s> Head<'s> {
    pub(crate) fn of(source: &'s Source) -> Self {
        let text = source.text.trim_start();
        let first = text.lines().next().unwrap_or("");
        let cells = first.split(source.separator()).map(|cell| cell.trim().trim_matches('"')).collect();
        Head { first, cells, is_json: text.starts_with(['[', '{']) || source.has_extension("json"), text }
    }

    /// Whether all of these headings are there.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.cells.contains(name))
    }

    /// Whether one of these headings is there.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.cells.contains(name))
    }

    /// The cells of the first line.
    pub(crate) fn cells(&self) -> &[&'s str] {
        &self.cells
    }

    /// The first line cut at tabs, for tables without headings.
    pub(crate) fn tabbed(&self) -> Vec<&'s str> {
        self.first.split('\t').map(str::trim).collect()
    }
}

/// The one format that the file is in; a table whose columns the user has named is Rota's.
pub fn detect(source: &Source) -> Result<Format, InputError> {
    if source.columns().is_some() {
        return Ok(Format::Rota);
    }
    let head = Head::of(source);
    let found: Vec<&FormatEntry> = Format::ALL.iter().filter(|entry| (entry.recognises)(&head)).collect();
    match found.as_slice() {
        [only] => Ok(only.format),
        [] => Err(near::unknown(source, &head)),
        several => {
            let names: Vec<_> = several.iter().map(|entry| entry.name).collect();
            let problem =
                format!("could be in the formats {}: name the right one with --format", names.join(" and "));
            Err(InputError::problem(&source.name, problem).at_line(1).got(head.first))
        }
    }
}
