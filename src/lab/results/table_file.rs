//! CSV files as tables with named columns: opening, headers, and errors that name the line and column of a bad value.

use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use rota_core::time::Time;

use super::{ResultsError, RunResult, decimal};

/// Columns that say of which run a row is. The number is its place in `summary.json`, from 1; load and seed make a sweep
/// readable without that file.
const RUN_COLUMNS: [&str; 4] = ["run", "policy", "jobs_per_hour", "seed"];

/// A table in the making; every row begins with the run it is of.
pub(super) struct TableWriter {
    csv: csv::Writer<File>,
    run: [String; RUN_COLUMNS.len()],
    is_fresh: bool,
}

impl TableWriter {
    /// The next cells of the row.
    pub(super) fn cells<C: AsRef<[u8]>>(&mut self, cells: impl IntoIterator<Item = C>) -> csv::Result<()> {
        if std::mem::take(&mut self.is_fresh) {
            self.run.iter().try_for_each(|cell| self.csv.write_field(cell))?;
        }
        cells.into_iter().try_for_each(|cell| self.csv.write_field(cell))
    }

    /// Ends the row.
    pub(super) fn end_row(&mut self) -> csv::Result<()> {
        self.is_fresh = true;
        self.csv.write_record(None::<&[u8]>)
    }
}

/// Writes one table of all runs: the header, then what `rows` writes for each run.
pub(super) fn write(
    path: &Path,
    columns: &[&str],
    runs: &[RunResult],
    mut rows: impl FnMut(&mut TableWriter, &RunResult) -> csv::Result<()>,
) -> Result<(), ResultsError> {
    let file = File::create(path).map_err(ResultsError::io("create", path))?;
    let csv = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(file);
    let mut writer = TableWriter { csv, run: Default::default(), is_fresh: true };
    let mut written = writer.csv.write_record(RUN_COLUMNS.iter().chain(columns));
    for (at, run) in runs.iter().enumerate() {
        let load = run.meta.jobs_per_hour.map(|load| load.to_string()).unwrap_or_default();
        writer.run = [(at + 1).to_string(), run.meta.policy.clone(), load, run.meta.seed.to_string()];
        written = written.and_then(|()| rows(&mut writer, run));
    }
    written
        .map_err(std::io::Error::from)
        .and_then(|()| writer.csv.flush())
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
    places.extend(optional.iter().chain(&["run"]).filter_map(also));
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

    /// The place of the run that the row is of; the only one where the table does not say.
    pub(super) fn run(&self, n_runs: usize) -> Result<usize, ResultsError> {
        let number = match self.text("run") {
            "" => Some(1),
            text => text.parse::<usize>().ok(),
        };
        let place = number.and_then(|number| number.checked_sub(1)).filter(|place| *place < n_runs);
        place.ok_or_else(|| self.wrong("run", "run of this folder"))
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
