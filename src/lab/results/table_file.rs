//! CSV files as tables with named columns: opening, headers, and errors that name the line and column of a bad value.

use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use rota_core::time::Time;

use super::{ResultsError, decimal};

/// Writes a table: the header, then what `rows` writes.
pub(super) fn write(
    path: &Path,
    columns: &[&str],
    rows: impl FnOnce(&mut csv::Writer<File>) -> csv::Result<()>,
) -> Result<(), ResultsError> {
    let file = File::create(path).map_err(ResultsError::io("create", path))?;
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(file);
    let written = writer.write_record(columns).and_then(|()| rows(&mut writer));
    written
        .map_err(std::io::Error::from)
        .and_then(|()| writer.flush())
        .map_err(ResultsError::io("write", path))
}

/// Reads a table that has at least `columns`, in any order, and hands over row by row.
pub(super) fn read(
    path: &Path,
    columns: &[&'static str],
    each: impl FnMut(&Row<'_>) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    read_with(path, columns, &[], each)
}

/// The same with columns that may be missing: their cells are empty then.
pub(super) fn read_with(
    path: &Path,
    columns: &[&'static str],
    optional: &[&'static str],
    mut each: impl FnMut(&Row<'_>) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    let file = File::open(path).map_err(ResultsError::io("read", path))?;
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(file);
    let header = reader.headers().map_err(|e| ResultsError::malformed(path, e))?.clone();
    let mut places = Vec::with_capacity(columns.len());
    for column in columns {
        let place = header.iter().position(|name| name == *column);
        places.push((
            *column,
            place.ok_or_else(|| ResultsError::malformed(path, format!("has no column `{column}`")))?,
        ));
    }
    let also = |column: &&'static str| Some((*column, header.iter().position(|name| name == *column)?));
    places.extend(optional.iter().filter_map(also));
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| ResultsError::malformed(path, e))? {
        each(&Row { path, places: &places, record: &record })?;
    }
    Ok(())
}

/// One line of a table.
pub(super) struct Row<'a> {
    path: &'a Path,
    places: &'a [(&'static str, usize)],
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    /// The text of one of the columns that [`read`] was given.
    pub(super) fn text(&self, column: &'static str) -> &str {
        let place = self.places.iter().find(|(name, _)| *name == column).map(|(_, place)| *place);
        place.and_then(|place| self.record.get(place)).unwrap_or("")
    }

    /// A value that must be there.
    pub(super) fn value<T: FromStr>(
        &self,
        column: &'static str,
        expected: &'static str,
    ) -> Result<T, ResultsError> {
        self.text(column).parse().map_err(|_| self.wrong(column, expected))
    }

    /// A fixed-point number that must be there.
    pub(super) fn fixed(&self, column: &'static str, digits: u32) -> Result<i64, ResultsError> {
        decimal::parse(self.text(column), digits).ok_or_else(|| self.wrong(column, "number"))
    }

    /// A fixed-point number that is not negative.
    pub(super) fn amount(&self, column: &'static str, digits: u32) -> Result<u64, ResultsError> {
        u64::try_from(self.fixed(column, digits)?).map_err(|_| self.wrong(column, "amount"))
    }

    /// A time in seconds, or nothing.
    pub(super) fn time(&self, column: &'static str) -> Result<Option<Time>, ResultsError> {
        if self.text(column).is_empty() {
            Ok(None)
        } else {
            self.fixed(column, 6).map(|micros| Some(Time(micros)))
        }
    }

    /// A time in seconds that must be there.
    pub(super) fn known_time(&self, column: &'static str) -> Result<Time, ResultsError> {
        self.time(column)?.ok_or_else(|| self.wrong(column, "time in seconds"))
    }

    /// The error for a value that is not what it should be.
    pub(super) fn wrong(&self, column: &'static str, expected: &'static str) -> ResultsError {
        ResultsError::Value {
            path: self.path.to_owned(),
            line: self.record.position().map_or(0, csv::Position::line),
            column,
            value: self.text(column).to_owned(),
            expected,
        }
    }
}
