//! Tables of one's own as Rota's: `--map arrival_s=submit:min,gpus=num_gpus` says which column is which, and in which unit.
//!
//! Lines and columns keep their places, so that errors name those of the file. Columns that are not named become remarks (`#name`).

use std::borrow::Cow;

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
    /// The table in Rota's words: its rows are translated as they are read.
    pub fn apply(self, source: Source) -> Source {
        source.with_columns(self)
    }

    /// The new headings, each with the unit of its column.
    pub(crate) fn headings(
        &self,
        file: &str,
        header: &StringRecord,
    ) -> Result<Vec<(String, f64)>, InputError> {
        if let Some(missing) = self.columns.iter().find(|c| !header.iter().any(|theirs| theirs == c.theirs)) {
            let near = header.iter().find(|theirs| strsim::damerau_levenshtein(theirs, &missing.theirs) <= 2);
            let unit = missing
                .theirs
                .rsplit_once(':')
                .filter(|(name, _)| header.iter().any(|theirs| theirs == *name));
            let units = || UNITS.map(|(name, _)| name).join(", ");
            let hint = match (unit, near) {
                (Some((_, unit)), _) => format!(" ({unit} is no unit; units are {})", units()),
                (None, Some(near)) => format!(" (did you mean {near}?)"),
                (None, None) => String::new(),
            };
            let what = format!("a column {} as {OPTION} says{hint}", missing.theirs);
            let got = header.iter().collect::<Vec<_>>().join(",");
            return Err(InputError::expected(file, what).at_line(1).got(got));
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
pub(crate) fn in_seconds<'c>(cell: &'c str, unit_s: f64, first_date_s: &mut Option<i64>) -> Cow<'c, str> {
    if unit_s == 1.0 || cell.is_empty() {
        return Cow::Borrowed(cell);
    }
    if unit_s == 0.0 {
        return match dates::parse(cell) {
            Some(date_s) => Cow::Owned((date_s - *first_date_s.get_or_insert(date_s)).to_string()),
            None => Cow::Borrowed(cell),
        };
    }
    cell.parse::<f64>().map_or(Cow::Borrowed(cell), |number| Cow::Owned((number * unit_s).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::format::{Setting, read};
    use rota_core::time::Time;
    use rota_core::workload::Workload;

    fn mapped(map: &str, text: &str) -> Result<Source, InputError> {
        Ok(map.parse::<ColumnMap>()?.apply(Source::new("t.csv", text)))
    }

    fn read_mapped(map: &str, text: &str) -> Result<Workload, InputError> {
        let (cluster, profiles) = built_in("default", "synergy");
        Ok(read(&mapped(map, text)?, None, &Setting::new(&cluster, &profiles))?.workload)
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
        let map = "job_id=id,arrival_s=submit:min,gpus=gpu,duration_s=hours:h";
        let error =
            read_mapped(map, "x,id,submit,gpu,hours\n\n\n-,a,2,one,1.5\n").expect_err("one").to_string();
        assert_eq!(
            error,
            "t.csv:4, column 4 (gpus): got \"one\", expected a whole number of GPUs, at least 1"
        );
        let text = "x,id,submit,gpu,hours\n-,a,2,1,1.5\n";
        let error = read_mapped("job_id=id,gpus=gpus", text).expect_err("gpus").to_string();
        assert!(error.contains("expected a column gpus as --map says (did you mean gpu?)"), "{error}");
        let error = read_mapped("job_id=id,arrival_s=submit:hours", text).expect_err("hours").to_string();
        assert!(error.ends_with("(hours is no unit; units are ms, s, min, h, d, date)"), "{error}");
        for (map, what) in
            [("when=x", "one of Rota's columns"), ("gpus=gpu:h", "a unit only"), ("gpus", "pairs such as")]
        {
            assert!(mapped(map, text).expect_err(map).to_string().contains(what), "{map}");
        }
    }

    #[test]
    fn dates_and_short_units_are_read_too() {
        let map = "job_id=id,arrival_s=at:date,gpus=gpu,duration_s=took:ms";
        let text = "id,at,gpu,took\na,2026-01-31 07:00:00,1,1500\nb,2026-01-31 07:10:00,1,2000\n";
        let jobs = read_mapped(map, text).expect("sound");
        assert_eq!((jobs.jobs[1].arrival, jobs.truths[0].work), (Time::from_secs_f64(600.0), 1.5));
    }
}
