//! Tables of text, row by row: finds columns by their headings and turns cells into numbers. Errors of every reader name
//! file, line, column, value and what was expected. What the columns mean is known to the readers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::rc::Rc;

use csv::StringRecord;
use rota_core::time::Time;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::InputError;
use crate::format::{ColumnMap, in_seconds};
use crate::plain_text::RowBytes;
use crate::source::Source;

/// What to do with a row that makes no sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRows {
    /// Stop at the first one.
    #[default]
    Refuse,
    /// Leave them out and say which; a file of which no job is left is an error.
    Skip,
    /// Leave them out and say which, were it all of them: for a check, which is to list them.
    List,
}

impl BadRows {
    /// Whether the rest is read.
    pub(crate) fn are_left_out(self) -> bool {
        self != BadRows::Refuse
    }
}

/// A row that was left out because it made no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedRow {
    /// Its line (for JSON, the number of the job), from 1.
    pub line: u64,
    /// What is wrong with it, with its place.
    pub reason: InputError,
}

/// A table of which the headings are known.
pub(crate) struct Rows<'s> {
    file: &'s str,
    header: StringRecord,
    reader: csv::Reader<Box<dyn Read + 's>>,
    row_bytes: RowBytes,
    translation: Option<Translation<'s>>,
}

/// How a table of the user's own becomes Rota's.
struct Translation<'s> {
    columns: &'s ColumnMap,
    /// Seconds in a unit of each column.
    units: Vec<f64>,
    first_date_s: Option<i64>,
    original: StringRecord,
}

/// One row of a table, whose cells it turns into values.
pub(crate) struct Row<'r> {
    file: &'r str,
    header: &'r StringRecord,
    record: &'r StringRecord,
    /// Its line in the file, from 1.
    pub(crate) line: u64,
    /// Its number among the data rows, from 0.
    pub(crate) index: usize,
}

/// Bytes that are read from a file at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Seconds beyond this (about 30,000 years) would not fit microseconds with room to add.
const MOST_SECONDS: f64 = 1e12;
/// A job that takes longer (100 years) is a mistake, most often one of units.
pub(crate) const MOST_RUN_S: f64 = 100.0 * 365.25 * 86_400.0;

impl<'s> Rows<'s> {
    /// A table with headings.
    pub(crate) fn with_header(source: &'s Source) -> Result<Self, InputError> {
        Self::separated(source, StringRecord::new(), source.separator(), true)?.headed()
    }

    /// A table with headings whose cells stand between bars, without quotes.
    pub(crate) fn piped(source: &'s Source) -> Result<Self, InputError> {
        Self::separated(source, StringRecord::new(), '|', false)?.headed()
    }

    /// A table whose columns are fixed.
    pub(crate) fn without_header(source: &'s Source, header: StringRecord) -> Result<Self, InputError> {
        Self::separated(source, header, source.separator(), true)
    }

    /// A table whose columns are fixed and whose cells stand between tabs, without quotes.
    pub(crate) fn tabbed(source: &'s Source, header: StringRecord) -> Result<Self, InputError> {
        Self::separated(source, header, '\t', false)
    }

    fn separated(
        source: &'s Source,
        header: StringRecord,
        separator: char,
        has_quotes: bool,
    ) -> Result<Self, InputError> {
        let row_bytes = RowBytes::default();
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator as u8)
            .terminator(csv::Terminator::Any(b'\n'))
            .quoting(has_quotes)
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(source.lines(Rc::clone(&row_bytes))?);
        let translation = source.columns().map(|columns| Translation {
            columns,
            units: Vec::new(),
            first_date_s: None,
            original: StringRecord::new(),
        });
        Ok(Rows { file: &source.name, header, reader, row_bytes, translation })
    }

    /// The same with its first line as headings.
    fn headed(mut self) -> Result<Self, InputError> {
        let mut header = StringRecord::new();
        let line = self.next_record(&mut header)?.unwrap_or(1);
        header.trim();
        if header.is_empty() {
            return Err(InputError::expected(self.file, "a line of column headings").at_line(1));
        }
        for (column, heading) in header.iter().enumerate() {
            if !heading.is_empty() && header.iter().take(column).any(|earlier| earlier == heading) {
                let wrong = InputError::expected(self.file, "each column once").at_line(line);
                return Err(wrong.at_column(column as u64 + 1).got(heading));
            }
        }
        self.header = header;
        if let Some(translation) = &mut self.translation {
            let named = translation.columns.headings(self.file, &self.header)?;
            self.header = named.iter().map(|(heading, _)| heading.as_str()).collect();
            translation.units = named.into_iter().map(|(_, unit_s)| unit_s).collect();
        }
        Ok(self)
    }

    /// The next row and the line it begins in; `None` at the end. The library counts lines from where it looked for the row, empty
    /// ones first, so the line follows from where it ended.
    fn next_record(&mut self, record: &mut StringRecord) -> Result<Option<u64>, InputError> {
        self.row_bytes.set(0);
        let is_row = self.reader.read_record(record).map_err(|e| csv_error(self.file, &e))?;
        let within = memchr::memchr_iter(b'\n', record.as_slice().as_bytes()).count() as u64;
        Ok(is_row.then(|| self.reader.position().line().saturating_sub(within + 1).max(1)))
    }

    /// The column with one of these headings.
    pub(crate) fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.header.iter().position(|h| h == *name))
    }

    /// The column with one of these headings, which must be there.
    pub(crate) fn need(&self, names: &[&str]) -> Result<usize, InputError> {
        self.find(names).ok_or_else(|| {
            InputError::expected(self.file, format!("a column {}", names.join(" or ")))
                .at_line(1)
                .got(self.header.iter().collect::<Vec<_>>().join(","))
        })
    }

    /// The first heading that is not among `known` and not a remark, with its number from 1.
    pub(crate) fn unknown_column(&self, known: &[&str]) -> Option<(u64, &str)> {
        let mut headings = self.header.iter().enumerate();
        headings.find(|(_, h)| !known.contains(h) && !h.starts_with('#')).map(|(i, h)| (i as u64 + 1, h))
    }

    /// Hands every row to `take`; rows it refuses end the reading or are collected, as `mode` says.
    pub(crate) fn each(
        mut self,
        mode: BadRows,
        mut take: impl FnMut(&Row<'_>) -> Result<(), InputError>,
    ) -> Result<Vec<DroppedRow>, InputError> {
        let mut record = StringRecord::new();
        let mut dropped = Vec::new();
        let mut index = 0;
        while let Some(line) = self.next_record(&mut record)? {
            if let Some(translation) = &mut self.translation {
                translation.apply(&mut record);
            }
            let row = Row { file: self.file, header: &self.header, record: &record, line, index };
            hand_over(&row, mode, &mut dropped, &mut take)?;
            index += 1;
        }
        Ok(dropped)
    }
}

impl Translation<'_> {
    fn apply(&mut self, record: &mut StringRecord) {
        std::mem::swap(record, &mut self.original);
        record.clear();
        for (at, cell) in self.original.iter().enumerate() {
            let unit_s = self.units.get(at).copied().unwrap_or(1.0);
            record.push_field(&in_seconds(cell.trim(), unit_s, &mut self.first_date_s));
        }
    }
}

/// Hands every line to `take`, cut at blanks; lines that are empty or begin with `;` are remarks.
pub(crate) fn each_line(
    source: &Source,
    header: &StringRecord,
    mode: BadRows,
    mut take: impl FnMut(&Row<'_>) -> Result<(), InputError>,
) -> Result<Vec<DroppedRow>, InputError> {
    let row_bytes = RowBytes::default();
    let mut lines = BufReader::with_capacity(BUFFER_BYTES, source.lines(Rc::clone(&row_bytes))?);
    let (mut dropped, mut record, mut text) = (Vec::new(), StringRecord::new(), String::new());
    let (mut line, mut index) = (0, 0);
    loop {
        row_bytes.set(0);
        text.clear();
        line += 1;
        let read = lines.read_line(&mut text);
        let n_bytes = read
            .map_err(|e| InputError::problem(&source.name, format!("cannot be read: {e}")).at_line(line))?;
        if n_bytes == 0 {
            return Ok(dropped);
        }
        let text = text.trim();
        if text.is_empty() || text.starts_with(';') {
            continue;
        }
        record.clear();
        text.split_whitespace().for_each(|cell| record.push_field(cell));
        let row = Row { file: &source.name, header, record: &record, line, index };
        hand_over(&row, mode, &mut dropped, &mut take)?;
        index += 1;
    }
}

fn hand_over(
    row: &Row<'_>,
    mode: BadRows,
    dropped: &mut Vec<DroppedRow>,
    take: &mut impl FnMut(&Row<'_>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    match row.check_width().and_then(|()| take(row)) {
        Ok(()) => Ok(()),
        Err(reason) if mode.are_left_out() => {
            dropped.push(DroppedRow { line: row.line, reason });
            Ok(())
        }
        Err(reason) => Err(reason),
    }
}

/// Names of jobs, each of which must be there once, with where they were first seen. Names are kept as their 128-bit hashes: a
/// million of them fit in 50 MB, however long they are.
#[derive(Default)]
pub(crate) struct UniqueNames {
    seen: HashMap<u128, u64, BuildHasherDefault<AsIs>>,
}

/// The hasher of what is a hash already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

impl UniqueNames {
    /// The name in a cell.
    pub(crate) fn take<'r>(&mut self, row: &Row<'r>, column: usize) -> Result<&'r str, InputError> {
        let name = row.text(column);
        self.take_text(row, column, name)?;
        Ok(name)
    }

    /// The name in a cell, or the row's number where there is none.
    pub(crate) fn take_or_number(
        &mut self,
        row: &Row<'_>,
        column: Option<usize>,
    ) -> Result<String, InputError> {
        match row.maybe(column) {
            Some((column, _)) => self.take(row, column).map(str::to_owned),
            None => Ok(row.index.to_string()),
        }
    }

    /// A name made of a cell and others.
    pub(crate) fn take_text(&mut self, row: &Row<'_>, column: usize, name: &str) -> Result<(), InputError> {
        if name.is_empty() {
            return Err(row.expected(column, "a name for the job"));
        }
        match self.seen.entry(xxh3_128(name.as_bytes())) {
            Entry::Vacant(new) => {
                new.insert(row.line);
                Ok(())
            }
            Entry::Occupied(first) => {
                Err(row
                    .expected(column, format!("a name that no other job has (line {} has it)", first.get())))
            }
        }
    }

    /// A name that is not from a table, of job number `number`; the error is the number of the job that has it.
    pub(crate) fn take_name(&mut self, name: &str, number: u64) -> Result<(), u64> {
        match self.seen.entry(xxh3_128(name.as_bytes())) {
            Entry::Vacant(new) => {
                new.insert(number);
                Ok(())
            }
            Entry::Occupied(first) => Err(*first.get()),
        }
    }
}

impl<'r> Row<'r> {
    fn check_width(&self) -> Result<(), InputError> {
        if self.record.len() == self.header.len() {
            return Ok(());
        }
        let problem = format!("expected {} cells, got {}", self.header.len(), self.record.len());
        Err(InputError::problem(self.file, problem).at_line(self.line))
    }

    /// The text of a cell.
    pub(crate) fn text(&self, column: usize) -> &'r str {
        self.record.get(column).unwrap_or("").trim()
    }

    /// The text of a cell that may be missing: no such column, or nothing in it.
    pub(crate) fn maybe(&self, column: Option<usize>) -> Option<(usize, &'r str)> {
        column.map(|c| (c, self.text(c))).filter(|(_, text)| !text.is_empty())
    }

    /// The error for a cell that holds something else than `what`.
    pub(crate) fn expected(&self, column: usize, what: impl std::fmt::Display) -> InputError {
        InputError::expected(self.file, what)
            .at_line(self.line)
            .at_column(column as u64 + 1)
            .at_name(self.header.get(column).unwrap_or("?"))
            .got(self.text(column))
    }

    /// A length of time that may be nothing.
    pub(crate) fn seconds(&self, column: usize) -> Result<f64, InputError> {
        match self.text(column).parse::<f64>() {
            Ok(value) if (0.0..=MOST_SECONDS).contains(&value) => Ok(value),
            _ => Err(self.expected(column, "a length of time, not negative")),
        }
    }

    /// A length of time that is something.
    pub(crate) fn run_time(&self, column: usize) -> Result<f64, InputError> {
        match self.text(column).parse::<f64>() {
            Ok(value) if value > 0.0 && value <= MOST_RUN_S => Ok(value),
            Ok(value) if value > MOST_RUN_S => Err(self.expected(column, "at most 100 years, in seconds")),
            _ => Err(self.expected(column, "a length of time greater than 0")),
        }
    }

    /// A number greater than zero.
    pub(crate) fn positive(&self, column: usize) -> Result<f64, InputError> {
        match self.text(column).parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
            _ => Err(self.expected(column, "a number greater than 0")),
        }
    }

    /// Any number that is finite.
    pub(crate) fn number(&self, column: usize) -> Result<f64, InputError> {
        let number = self.text(column).parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.expected(column, "a number"))
    }

    /// A number of GPUs that may be none, or a part of one.
    pub(crate) fn number_of_gpus(&self, column: usize) -> Result<f64, InputError> {
        match self.text(column).parse::<f64>() {
            Ok(gpus) if (0.0..=f64::from(u32::MAX)).contains(&gpus) => Ok(gpus),
            _ => Err(self.expected(column, "a number of GPUs, 0 or more")),
        }
    }

    /// When a job arrives, in seconds.
    pub(crate) fn arrival(&self, column: usize) -> Result<Time, InputError> {
        let time = parse_time(self.text(column), 1.0).filter(|time| *time >= Time::ZERO);
        time.ok_or_else(|| self.expected(column, "a time in seconds, not negative"))
    }

    /// A whole number of GPUs, at least one.
    pub(crate) fn gpus(&self, column: usize) -> Result<u32, InputError> {
        match self.text(column).parse::<u32>() {
            Ok(gpus) if gpus > 0 => Ok(gpus),
            _ => Err(self.expected(column, "a whole number of GPUs, at least 1")),
        }
    }

    /// A whole number.
    pub(crate) fn whole<T: std::str::FromStr>(&self, column: usize) -> Result<T, InputError> {
        self.text(column).parse().map_err(|_| self.expected(column, "a whole number"))
    }

    /// A point in time, in seconds times `unit_s`.
    pub(crate) fn time(&self, column: usize, unit_s: f64) -> Result<Time, InputError> {
        parse_time(self.text(column), unit_s).ok_or_else(|| self.expected(column, "a time as a number"))
    }
}

/// A point in time from a number in units of `unit_s` seconds.
pub(crate) fn parse_time(text: &str, unit_s: f64) -> Option<Time> {
    let seconds = text.parse::<f64>().ok()? * unit_s;
    (seconds.abs() <= MOST_SECONDS).then(|| Time::from_secs_f64(seconds))
}

fn csv_error(file: &str, error: &csv::Error) -> InputError {
    let line = error.position().map_or(0, csv::Position::line);
    InputError::problem(file, format!("cannot be read as a table: {error}")).at_line(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, mode: BadRows) -> Result<(Vec<u32>, Vec<DroppedRow>), InputError> {
        let source = Source::new("t.csv", text);
        let rows = Rows::with_header(&source)?;
        let gpus = rows.need(&["gpus", "num_gpu"])?;
        let mut seen = Vec::new();
        let dropped = rows.each(mode, |row| row.gpus(gpus).map(|g| seen.push(g)))?;
        Ok((seen, dropped))
    }

    #[test]
    fn a_bad_cell_is_named_with_its_place() {
        let error = read("job,num_gpu\na,1\nb,two\n", BadRows::Refuse).expect_err("two");
        assert_eq!(
            error.to_string(),
            "t.csv:3, column 2 (num_gpu): got \"two\", expected a whole number of GPUs, at least 1"
        );
    }

    #[test]
    fn bad_rows_are_collected_when_asked() {
        let (seen, dropped) = read("job,gpus\na,1\nb\nc,0\nd,4\n", BadRows::Skip).expect("rest is fine");
        assert_eq!(seen, [1, 4]);
        assert_eq!(dropped.iter().map(|d| d.line).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(dropped[0].reason.to_string(), "t.csv:3: expected 2 cells, got 1");
    }

    #[test]
    fn missing_columns_and_empty_files_are_named() {
        let error = read("job,cpus\n", BadRows::Skip).expect_err("no gpus");
        assert_eq!(error.to_string(), "t.csv:1: got \"job,cpus\", expected a column gpus or num_gpu");
        assert_eq!(
            read("", BadRows::Skip).expect_err("empty").to_string(),
            "t.csv:1: expected a line of column headings"
        );
    }

    #[test]
    fn a_column_that_is_there_twice_is_named() {
        let error = read("gpus,job,gpus\n1,a,2\n", BadRows::Refuse).expect_err("twice");
        assert_eq!(error.to_string(), "t.csv:1, column 3: got \"gpus\", expected each column once");
    }

    #[test]
    fn lines_are_counted_as_an_editor_counts_them() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("gpus{end}{end}1{end}{end}{end}two{end}");
            let source = Source::from_bytes("t.csv", text.into_bytes()).expect("text");
            let rows = Rows::with_header(&source).expect("headings");
            let error = rows.each(BadRows::Refuse, |row| row.gpus(0).map(drop)).expect_err("two");
            assert!(
                error.to_string().starts_with("t.csv:6, column 1 (gpus): got \"two\""),
                "{end:?}: {error}"
            );
        }
    }
}
