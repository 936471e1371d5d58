//! Tables of text, row by row: finds columns by their headings and turns cells into numbers. Errors of every reader name
//! file, line, column, value and what was expected. What the columns mean is known to the readers.

use std::collections::HashMap;

use csv::StringRecord;
use rota_core::time::Time;

use crate::error::InputError;
use crate::source::Source;

/// What to do with a row that makes no sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRows {
    /// Stop at the first one.
    #[default]
    Refuse,
    /// Leave them out and say which.
    Skip,
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
    text: &'s str,
    header: StringRecord,
    reader: csv::Reader<&'s [u8]>,
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

/// Seconds beyond this (about 30,000 years) would not fit microseconds with room to add.
const MOST_SECONDS: f64 = 1e12;
/// A job that takes longer (100 years) is a mistake, most often one of units.
pub(crate) const MOST_RUN_S: f64 = 100.0 * 365.25 * 86_400.0;

impl<'s> Rows<'s> {
    /// A table with headings.
    pub(crate) fn with_header(source: &'s Source) -> Result<Self, InputError> {
        Self::separated(source, StringRecord::new(), source.separator(), true).headed()
    }

    /// A table with headings whose cells stand between bars, without quotes.
    pub(crate) fn piped(source: &'s Source) -> Result<Self, InputError> {
        Self::separated(source, StringRecord::new(), '|', false).headed()
    }

    /// A table whose columns are fixed.
    pub(crate) fn without_header(source: &'s Source, header: StringRecord) -> Self {
        Self::separated(source, header, source.separator(), true)
    }

    /// A table whose columns are fixed and whose cells stand between tabs, without quotes.
    pub(crate) fn tabbed(source: &'s Source, header: StringRecord) -> Self {
        Self::separated(source, header, '\t', false)
    }

    fn separated(source: &'s Source, header: StringRecord, separator: char, has_quotes: bool) -> Self {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator as u8)
            .quoting(has_quotes)
            .trim(csv::Trim::All)
            .from_reader(source.text.as_bytes());
        Rows { file: &source.name, text: &source.text, header, reader }
    }

    /// The same with its first line as headings.
    fn headed(mut self) -> Result<Self, InputError> {
        let mut header = StringRecord::new();
        self.reader.read_record(&mut header).map_err(|e| csv_error(self.file, &e))?;
        header.trim();
        if header.is_empty() {
            return Err(InputError::expected(self.file, "a line of column headings").at_line(1));
        }
        let line = line_of(self.text, &header);
        for (column, heading) in header.iter().enumerate() {
            if !heading.is_empty() && header.iter().take(column).any(|earlier| earlier == heading) {
                let wrong = InputError::expected(self.file, "each column once").at_line(line);
                return Err(wrong.at_column(column as u64 + 1).got(heading));
            }
        }
        self.header = header;
        Ok(self)
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
        while self.reader.read_record(&mut record).map_err(|e| csv_error(self.file, &e))? {
            let line = line_of(self.text, &record);
            let row = Row { file: self.file, header: &self.header, record: &record, line, index };
            hand_over(&row, mode, &mut dropped, &mut take)?;
            index += 1;
        }
        Ok(dropped)
    }
}

/// Hands every line to `take`, cut at blanks; lines that are empty or begin with `;` are remarks.
pub(crate) fn each_line(
    source: &Source,
    header: &StringRecord,
    mode: BadRows,
    mut take: impl FnMut(&Row<'_>) -> Result<(), InputError>,
) -> Result<Vec<DroppedRow>, InputError> {
    let mut dropped = Vec::new();
    let lines = (1..).zip(source.text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(';'));
    for (index, (line, text)) in lines.enumerate() {
        let record: StringRecord = text.split_whitespace().collect();
        let row = Row { file: &source.name, header, record: &record, line, index };
        hand_over(&row, mode, &mut dropped, &mut take)?;
    }
    Ok(dropped)
}

fn hand_over(
    row: &Row<'_>,
    mode: BadRows,
    dropped: &mut Vec<DroppedRow>,
    take: &mut impl FnMut(&Row<'_>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    match row.check_width().and_then(|()| take(row)) {
        Ok(()) => Ok(()),
        Err(reason) if mode == BadRows::Skip => {
            dropped.push(DroppedRow { line: row.line, reason });
            Ok(())
        }
        Err(reason) => Err(reason),
    }
}

/// The line that a record begins in. The reader counts from where it looked for the record: empty lines come first.
fn line_of(text: &str, record: &StringRecord) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let rest = text.as_bytes().get(position.byte() as usize..).unwrap_or_default();
    position.line() + rest.iter().take_while(|byte| **byte == b'\n').count() as u64
}

/// Names of jobs, each of which must be there once, with where they were first seen.
#[derive(Default)]
pub(crate) struct UniqueNames {
    seen: HashMap<String, u64>,
}

impl UniqueNames {
    /// The name in a cell.
    pub(crate) fn take<'r>(&mut self, row: &Row<'r>, column: usize) -> Result<&'r str, InputError> {
        let name = row.text(column);
        self.take_text(row, column, name).map(|_| name)
    }

    /// A name made of a cell and others.
    pub(crate) fn take_text(
        &mut self,
        row: &Row<'_>,
        column: usize,
        name: &str,
    ) -> Result<String, InputError> {
        if name.is_empty() {
            return Err(row.expected(column, "a name for the job"));
        }
        match self.seen.insert(name.to_owned(), row.line) {
            None => Ok(name.to_owned()),
            Some(first) => {
                let what = format!("a name that no other job has (line {first} has it)");
                self.seen.insert(name.to_owned(), first);
                Err(row.expected(column, what))
            }
        }
    }

    /// A name that is not from a table; the error is the number of the job that has it.
    pub(crate) fn take_name(&mut self, name: &str) -> Result<String, u64> {
        let number = self.seen.len() as u64 + 1;
        match self.seen.get(name) {
            Some(first) => Err(*first),
            None => {
                self.seen.insert(name.to_owned(), number);
                Ok(name.to_owned())
            }
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
        self.record.get(column).unwrap_or("")
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
