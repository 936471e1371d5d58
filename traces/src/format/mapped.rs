//! Tables of one's own as Rota's: `--map arrival_s=submit:min,gpus=num_gpus` says which column is which, and in which unit.
//!
//! Lines and columns keep their places, so that errors name those of the file. Columns that are not named become remarks (`#name`).

use csv::StringRecord;

use super::rota::COLUMNS;
use crate::dates;
use crate::error::InputError;
use crate::source::Source;

/// What errors call the option.
const OPTION: &str = "--map";

/// Units that a column of times may be in, with their seconds; 0 for dates.
const UNITS: [(&str, f64); 6] =
    [("ms", 0.001), ("s", 1.0), ("min", 60.0), ("h", 3_600.0), ("d", 86_400.0), ("date", 0.0)];

/// Which column of a table is which of Rota's.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMap {
    columns: Vec<MappedColumn>,
}

#[derive(Clone, Debug, PartialEq)]
struct MappedColumn {
    own: &'static str,
    theirs: String,
    unit_s: f64,
}

impl std::str::FromStr for ColumnMap {
    type Err = InputError;

    /// Pairs `OWN=THEIRS` or `OWN=THEIRS:UNIT`, separated by commas.
    fn from_str(text: &str) -> Result<Self, InputError> {
        let columns: Result<Vec<_>, _> =
            text.split(',').map(|pair| MappedColumn::parse(pair.trim())).collect();
        let columns = columns?;
        let is_twice = |at: usize| columns[..at].iter().any(|earlier| earlier.own == columns[at].own);
        match (0..columns.len()).find(|at| is_twice(*at)) {
            Some(at) => Err(InputError::expected(OPTION, "each column once").got(columns[at].own)),
            None => Ok(ColumnMap { columns }),
        }
    }
}

impl MappedColumn {
    fn parse(pair: &str) -> Result<Self, InputError> {
        let (own, theirs) = pair
            .split_once('=')
            .ok_or_else(|| InputError::expected(OPTION, "pairs such as arrival_s=submit_time").got(pair))?;
        let own = COLUMNS.iter().find(|column| **column == own).ok_or_else(|| {
            InputError::expected(OPTION, format!("one of Rota's columns: {}", COLUMNS.join(", "))).got(own)
        })?;
        let unit = theirs.rsplit_once(':').and_then(|(name, unit)| {
            let known = UNITS.iter().find(|(known, _)| *known == unit)?;
            Some((name, known.1))
        });
        let (theirs, unit_s) = unit.unwrap_or((theirs, 1.0));
        if unit_s != 1.0 && !own.ends_with("_s") {
            let what = "a unit only for a column of times (arrival_s, duration_s, deadline_s, …)";
            return Err(InputError::expected(OPTION, what).got(pair));
        }
        Ok(MappedColumn { own, theirs: theirs.to_owned(), unit_s })
    }
}

impl ColumnMap {
    /// The table in Rota's words.
    pub fn apply(&self, source: &Source) -> Result<Source, InputError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(source.separator() as u8)
            .trim(csv::Trim::All)
            .from_reader(source.text.as_bytes());
        let mut header = StringRecord::new();
        let wrong =
            |e: csv::Error| InputError::problem(&source.name, format!("cannot be read as a table: {e}"));
        reader.read_record(&mut header).map_err(wrong)?;
        let named = self.headings(source, &header)?;
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        writer.write_record(named.iter().map(|column| &column.0)).map_err(wrong)?;
        let mut record = StringRecord::new();
        let mut first_date_s = None;
        while reader.read_record(&mut record).map_err(wrong)? {
            let cells = record.iter().enumerate().map(|(at, cell)| match named.get(at) {
                Some((_, unit_s)) => in_seconds(cell, *unit_s, &mut first_date_s),
                None => cell.to_owned(),
            });
            writer.write_record(cells).map_err(wrong)?;
        }
        let bytes = writer.into_inner().map_err(|_| InputError::problem(&source.name, "cannot be mapped"))?;
        Source::from_bytes(source.name.clone(), bytes)
    }

    /// The new headings, each with the unit of its column.
    fn headings(&self, source: &Source, header: &StringRecord) -> Result<Vec<(String, f64)>, InputError> {
        if let Some(missing) = self.columns.iter().find(|c| !header.iter().any(|theirs| theirs == c.theirs)) {
            let near = header.iter().find(|theirs| strsim::damerau_levenshtein(theirs, &missing.theirs) <= 2);
            let hint = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            let what = format!("a column {} as {OPTION} says{hint}", missing.theirs);
            let got = header.iter().collect::<Vec<_>>().join(",");
            return Err(InputError::expected(&source.name, what).at_line(1).got(got));
        }
        let is_taken = |name: &str| self.columns.iter().any(|column| column.own == name);
        let heading = |theirs: &str| match self.columns.iter().find(|column| column.theirs == theirs) {
            Some(column) => (column.own.to_owned(), column.unit_s),
            // What Rota has by the same name keeps it.
            None if COLUMNS.contains(&theirs) && !is_taken(theirs) => (theirs.to_owned(), 1.0),
            None => (format!("#{theirs}"), 1.0),
        };
        Ok(header.iter().map(heading).collect())
    }
}

/// A cell in seconds; one that is not a number stays as it is, for the reader to refuse. Dates count from the first of the table.
fn in_seconds(cell: &str, unit_s: f64, first_date_s: &mut Option<i64>) -> String {
    if unit_s == 1.0 || cell.is_empty() {
        return cell.to_owned();
    }
    if unit_s == 0.0 {
        return match dates::parse(cell) {
            Some(date_s) => (date_s - *first_date_s.get_or_insert(date_s)).to_string(),
            None => cell.to_owned(),
        };
    }
    cell.parse::<f64>().map_or_else(|_| cell.to_owned(), |number| (number * unit_s).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, read};
    use rota_core::time::Time;

    fn mapped(map: &str, text: &str) -> Result<Source, InputError> {
        map.parse::<ColumnMap>()?.apply(&Source::new("t.csv", text))
    }

    #[test]
    fn a_table_of_ones_own_is_read_in_its_units() {
        let (cluster, profiles) = built_in("default", "synergy");
        let text = "id,submit,gpu,hours,who\na,2,1,1.5,ada\nb,3,4,0.5,bob\n";
        let source = mapped("job_id=id,arrival_s=submit:min,gpus=gpu,duration_s=hours:h,tenant=who", text)
            .expect("sound");
        let workload = read(&source, None, &Setting::new(&cluster, &profiles)).expect("sound").workload;
        assert_eq!(
            (workload.jobs[0].arrival, workload.truths[0].work),
            (Time::from_secs_f64(120.0), 5_400.0)
        );
        assert_eq!(workload.tenants, ["ada", "bob"]);
    }

    #[test]
    fn errors_name_the_place_in_the_file() {
        let (cluster, profiles) = built_in("default", "synergy");
        let text = "x,id,submit,gpu,hours\n-,a,2,one,1.5\n";
        let source =
            mapped("job_id=id,arrival_s=submit:min,gpus=gpu,duration_s=hours:h", text).expect("sound");
        let error = read(&source, None, &Setting::new(&cluster, &profiles)).expect_err("one").to_string();
        assert_eq!(
            error,
            "t.csv:2, column 4 (gpus): got \"one\", expected a whole number of GPUs, at least 1"
        );
        let error = mapped("job_id=id,gpus=gpus", text).expect_err("gpus").to_string();
        assert!(error.contains("expected a column gpus as --map says (did you mean gpu?)"), "{error}");
        for (map, what) in
            [("when=x", "one of Rota's columns"), ("gpus=gpu:h", "a unit only"), ("gpus", "pairs such as")]
        {
            assert!(mapped(map, text).expect_err(map).to_string().contains(what), "{map}");
        }
    }
}
