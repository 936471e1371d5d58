//! Tables of golden folders, by heading; errors name file, line and column.

use std::path::Path;

use csv::StringRecord;
use rota_core::time::Time;
use rota_traces::error::InputError;
use rota_traces::source::Source;

/// Times beyond this are garbage, not seconds.
const MOST_SECONDS: f64 = 1e12;

/// A table with the columns that were asked for.
pub(super) struct Table {
    file: String,
    header: StringRecord,
    rows: Vec<StringRecord>,
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row<'t> {
    table: &'t Table,
    record: &'t StringRecord,
}

impl Table {
    /// Reads a table that has at least these columns and one row; a compressed file is found with `.gz`.
    pub(super) fn open(path: &Path, columns: &[&str]) -> Result<Self, InputError> {
        Self::read(&Source::open(path)?, columns)
    }

    pub(super) fn read(source: &Source, columns: &[&str]) -> Result<Self, InputError> {
        let file = source.name.as_str();
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(source.text.as_bytes());
        let broken = |error: csv::Error| {
            let line = error.position().map_or(0, csv::Position::line);
            InputError::problem(file, format!("cannot be read as a table: {error}")).at_line(line)
        };
        let header = reader.headers().map_err(broken)?.clone();
        if let Some(missing) = columns.iter().find(|column| !header.iter().any(|name| name == **column)) {
            let found = header.iter().collect::<Vec<_>>().join(",");
            return Err(InputError::expected(file, format!("a column {missing}")).at_line(1).got(found));
        }
        let rows = reader.records().collect::<Result<Vec<_>, _>>().map_err(broken)?;
        if rows.is_empty() {
            return Err(InputError::expected(file, "at least one row"));
        }
        if let Some(odd) = rows.iter().find(|row| row.len() != header.len()) {
            let problem = format!("expected {} cells, got {}", header.len(), odd.len());
            return Err(InputError::problem(file, problem).at_line(line_of(odd)));
        }
        Ok(Table { file: source.name.clone(), header, rows })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|record| Row { table: self, record })
    }
}

fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

impl<'t> Row<'t> {
    /// The text of a cell; empty when there is no such column.
    pub(super) fn text(&self, column: &str) -> &'t str {
        let place = self.table.header.iter().position(|name| name == column);
        place.and_then(|place| self.record.get(place)).unwrap_or("")
    }

    /// A time in seconds, or nothing.
    pub(super) fn time(&self, column: &str) -> Result<Option<Time>, InputError> {
        match self.text(column) {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(seconds) if seconds.abs() <= MOST_SECONDS => Ok(Some(Time::from_secs_f64(seconds))),
                _ => Err(self.expected(column, "a time in seconds, or nothing")),
            },
        }
    }

    /// The error for a cell that does not hold `what`.
    pub(super) fn expected(&self, column: &str, what: impl std::fmt::Display) -> InputError {
        let place =
            self.table.header.iter().position(|name| name == column).map_or(0, |place| place as u64 + 1);
        let error = InputError::expected(&self.table.file, what).at_line(line_of(self.record));
        error.at_column(place).at_name(column).got(self.text(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<Table, InputError> {
        Table::read(&Source::new("cases.csv", text), &["case", "start_s"])
    }

    #[test]
    fn garbage_is_named_with_file_and_line() {
        for (text, message) in [
            ("case\na\n", "cases.csv:1: got \"case\", expected a column start_s"),
            ("case,start_s\n", "cases.csv: expected at least one row"),
            ("case,start_s\na,1\nb\n", "cases.csv:3: expected 2 cells, got 1"),
        ] {
            assert_eq!(table(text).err().map(|e| e.to_string()).as_deref(), Some(message), "{text}");
        }
        let rows = table("case,start_s\na,1.5\nb,\nc,soon\nd,1e99\n").expect("a table");
        let times: Vec<_> = rows.rows().map(|row| row.time("start_s").map_err(|e| e.to_string())).collect();
        assert_eq!(times[0], Ok(Some(Time(1_500_000))));
        assert_eq!(times[1], Ok(None));
        let message = "cases.csv:4, column 2 (start_s): got \"soon\", expected a time in seconds, or nothing";
        assert_eq!(times[2], Err(message.to_owned()));
        assert!(times[3].is_err());
    }
}
