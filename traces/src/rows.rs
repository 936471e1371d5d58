//! Tables of text, row by row: finds columns by their headings and turns cells into numbers. Errors of every reader name
//! file, line, column, value and what was expected. What the columns mean is known to the readers.

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

impl<'s> Rows<'s> {
    /// A table with headings.
    pub(crate) fn with_header(source: &'s Source) -> Result<Self, InputError> {
        let mut rows = Self::without_header(source, StringRecord::new());
        let mut header = StringRecord::new();
        rows.reader.read_record(&mut header).map_err(|e| csv_error(rows.file, &e))?;
        header.trim();
        if header.is_empty() {
            return Err(InputError::expected(rows.file, "a line of column headings").at_line(1));
        }
        rows.header = header;
        Ok(rows)
    }

    /// A table whose columns are fixed.
    pub(crate) fn without_header(source: &'s Source, header: StringRecord) -> Self {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(source.separator() as u8)
            .trim(csv::Trim::All)
            .from_reader(source.text.as_bytes());
        Rows { file: &source.name, header, reader }
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

    /// The first heading that is not among `known`, with its number from 1.
    pub(crate) fn unknown_column(&self, known: &[&str]) -> Option<(u64, &str)> {
        let mut headings = self.header.iter().enumerate();
        headings.find(|(_, h)| !known.contains(h)).map(|(i, h)| (i as u64 + 1, h))
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
            let line = record.position().map_or(0, csv::Position::line);
            let row = Row { file: self.file, header: &self.header, record: &record, line, index };
            match row.check_width().and_then(|()| take(&row)) {
                Ok(()) => {}
                Err(reason) if mode == BadRows::Skip => dropped.push(DroppedRow { line, reason }),
                Err(reason) => return Err(reason),
            }
            index += 1;
        }
        Ok(dropped)
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
            Ok(value) if value > 0.0 && value <= MOST_SECONDS => Ok(value),
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
}
