//! Tables of named, typed columns, and the one that a study is about: a row for each run.

use std::collections::BTreeSet;

use rota_scripts::study::{Setting, Settings};

use super::{Outcome, Ran, StudyError, parquet_file};

/// A table; all columns are of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// All of the same length.
    pub columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Heading in the file.
    pub name: String,
    /// One value for each row, from the top.
    pub values: Values,
}

/// Values of one type, any of which may be missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
}

/// Figures that come first in a table, in this order; the rest follow by name.
const FIRST: [&str; 25] = [
    "jobs",
    "finished",
    "declined",
    "unfinished",
    "failed",
    "measured",
    "avg_jct_s",
    "median_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "makespan_s",
    "avg_wait_s",
    "avg_to_first_gpu_s",
    "avg_slowdown",
    "avg_finish_time_ratio",
    "deadline_jobs",
    "deadline_met",
    "deadline_ratio",
    "met",
    "missed",
    "gpu_util",
    "cpu_util",
    "rounds",
    "rounds_skipped",
    "preemptions",
];
/// Figures of a clock, which are different each time, and what the settings say already.
const LEFT_OUT: [&str; 4] = ["wall_s", "decide_s", "seed", "jobs_per_hour"];

impl Table {
    /// Rows.
    pub fn n_rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// As CSV; a missing value is empty.
    pub fn to_csv(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let written = writer.write_record(self.columns.iter().map(|column| &column.name)).and_then(|()| {
            (0..self.n_rows()).try_for_each(|row| {
                writer.write_record(self.columns.iter().map(|column| column.values.text(row)))
            })
        });
        written.expect("every row has a cell for each column, and memory takes all");
        writer.into_inner().expect("memory takes all")
    }

    /// As Parquet.
    pub fn to_parquet(&self) -> Result<Vec<u8>, StudyError> {
        Ok(parquet_file::to_bytes(self)?)
    }
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>, values: Vec<Option<String>>) -> Self {
        Column { name: name.into(), values: Values::Text(values) }
    }

    /// A column of whole numbers.
    pub fn whole(name: impl Into<String>, values: Vec<Option<i64>>) -> Self {
        Column { name: name.into(), values: Values::Whole(values) }
    }

    /// A column of numbers; whole where all are.
    pub fn number(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < 1e15;
        let mut known = values.iter().flatten().peekable();
        let values = if known.peek().is_some() && known.all(is_whole) {
            Values::Whole(values.iter().map(|value| value.map(|value| value as i64)).collect())
        } else {
            Values::Number(values)
        };
        Column { name: name.into(), values }
    }

    /// A column of settings: numbers where all are, else words.
    fn settings(name: &str, values: &[Option<&Setting>]) -> Self {
        let number = |setting: &Setting| match setting {
            Setting::Whole(whole) => Some(*whole as f64),
            Setting::Number(number) => Some(*number),
            _ => None,
        };
        let numbers: Vec<Option<f64>> = values.iter().map(|value| value.and_then(number)).collect();
        let is_number =
            values.iter().zip(&numbers).all(|(value, number)| value.is_none() || number.is_some());
        if is_number {
            return Column::number(name, numbers);
        }
        Column::text(name, values.iter().map(|value| value.map(setting_text)).collect())
    }
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them as text; empty when it is missing.
    pub fn text(&self, row: usize) -> String {
        let text = match self {
            Values::Text(values) => values.get(row).cloned().flatten(),
            Values::Whole(values) => values.get(row).copied().flatten().map(|value| value.to_string()),
            Values::Number(values) => values.get(row).copied().flatten().map(|value| value.to_string()),
        };
        text.unwrap_or_default()
    }
}

/// A row for each run that was run here or before: settings, what came of it, figures.
pub fn runs_table(runs: &[Ran]) -> Table {
    let shown: Vec<(usize, &Ran)> =
        runs.iter().enumerate().filter(|(_, run)| run.outcome != Outcome::Elsewhere).collect();
    let mut columns = vec![Column::whole("run", shown.iter().map(|(at, _)| Some(*at as i64 + 1)).collect())];
    let flat: Vec<Settings> = shown.iter().map(|(_, run)| flattened(&run.settings)).collect();
    columns.extend(settings_columns(&flat));
    let words =
        |word: fn(&Outcome) -> Option<String>| shown.iter().map(|(_, run)| word(&run.outcome)).collect();
    columns.push(Column::text("status", words(|outcome| Some(status(outcome).to_owned()))));
    for name in figure_names(runs) {
        let number = |(_, run): &(usize, &Ran)| run.figure(&name);
        columns.push(Column::number(figure_column(&name), shown.iter().map(number).collect()));
    }
    columns.push(Column::text(
        "digest",
        words(|outcome| match outcome {
            Outcome::Done(figures) => Some(figures.digest.clone()),
            Outcome::Failed(_) | Outcome::Elsewhere => None,
        }),
    ));
    columns.push(Column::text(
        "error",
        words(|outcome| match outcome {
            Outcome::Failed(why) => Some(why.clone()),
            Outcome::Done(_) | Outcome::Elsewhere => None,
        }),
    ));
    Table { columns }
}

/// What a figure's column is called. `jobs` is an option too, and a table with two columns of one name cannot be read by
/// everything, so the figure has another name whether the option is set or not.
fn figure_column(figure: &str) -> &str {
    if figure == "jobs" { "jobs_submitted" } else { figure }
}

/// What only a clock knows: how long each run took when it was run.
pub(super) fn timing(runs: &[Ran]) -> Table {
    let column = |name: &str| Column::number(name, runs.iter().map(|run| run.figure(name)).collect());
    let numbers = (1..=runs.len() as i64).map(Some).collect();
    Table { columns: vec![Column::whole("run", numbers), column("wall_s"), column("decide_s")] }
}

impl Ran {
    /// A figure, if it was run and has it.
    pub fn figure(&self, name: &str) -> Option<f64> {
        match &self.outcome {
            Outcome::Done(figures) => figures.numbers.get(name).copied().flatten(),
            Outcome::Failed(_) | Outcome::Elsewhere => None,
        }
    }

    /// A setting as text; empty when it was not given.
    pub fn setting(&self, name: &str) -> String {
        let found = self.settings.iter().find(|(key, _)| key == name);
        found.map(|(_, setting)| setting_text(setting)).unwrap_or_default()
    }

    /// What to call it in a message: its settings in one line.
    pub fn name(&self) -> String {
        let settings = flattened(&self.settings);
        let named: Vec<String> =
            settings.iter().map(|(name, setting)| format!("{name} {}", setting_text(setting))).collect();
        named.join(", ")
    }
}

fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Elsewhere => "elsewhere",
    }
}

/// A column for each name that occurs; `policy` first, `seed` last, the rest by name.
pub(super) fn settings_columns(rows: &[Settings]) -> Vec<Column> {
    let names: BTreeSet<&str> = rows.iter().flatten().map(|(name, _)| name.as_str()).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| match *name {
        "policy" => 0,
        "seed" => 2,
        _ => 1,
    });
    let value = |row: &'_ Settings, name: &str| row.iter().position(|(key, _)| key == name);
    let column = |name: &str| {
        let values: Vec<Option<&Setting>> =
            rows.iter().map(|row| value(row, name).map(|at| &row[at].1)).collect();
        Column::settings(name, &values)
    };
    names.into_iter().map(column).collect()
}

/// Settings with `set: #{ a: 1 }` as `set.a`.
pub(super) fn flattened(settings: &Settings) -> Settings {
    let mut flat = Vec::new();
    for (name, setting) in settings {
        match setting {
            Setting::Pairs(pairs) => {
                flat.extend(pairs.iter().map(|(key, value)| (format!("{name}.{key}"), value.clone())));
            }
            other => flat.push((name.clone(), other.clone())),
        }
    }
    flat
}

/// A setting as one would type it.
pub(super) fn setting_text(setting: &Setting) -> String {
    match setting {
        Setting::Flag(flag) => flag.to_string(),
        Setting::Whole(whole) => whole.to_string(),
        Setting::Number(number) => number.to_string(),
        Setting::Text(text) => text.clone(),
        Setting::List(values) => values.iter().map(setting_text).collect::<Vec<_>>().join(","),
        Setting::Pairs(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{key}={}", setting_text(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Names of the figures that any run has.
pub(super) fn figure_names(runs: &[Ran]) -> Vec<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        if let Outcome::Done(figures) = &run.outcome {
            names.extend(figures.numbers.keys().cloned());
        }
    }
    let mut ordered: Vec<String> =
        FIRST.iter().map(|name| (*name).to_owned()).filter(|name| names.remove(name)).collect();
    ordered.extend(names.into_iter().filter(|name| !LEFT_OUT.contains(&name.as_str())));
    ordered
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::batch::samples::{done, failed};
    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_run_and_no_clock() {
        let runs = [done("las", 4.0, 1, 10.0), done("srtf", 8.5, 1, 20.5), failed("odd", "no such policy")];
        let csv = String::from_utf8(runs_table(&runs).to_csv()).expect("text");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "run,policy,jobs_per_hour,seed,status,avg_jct_s,digest,error");
        assert_eq!(lines[1], "1,las,4,1,done,10,d,");
        assert_eq!(lines[2], "2,srtf,8.5,1,done,20.5,d,");
        assert_eq!(lines[3], "3,odd,,,failed,,,no such policy");
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let mut run = done("las", 4.0, 1, 10.0);
        run.settings.push(("jobs".into(), Setting::Whole(100)));
        let Outcome::Done(figures) = &mut run.outcome else { panic!("it is done") };
        Arc::make_mut(figures).numbers.insert("jobs".into(), Some(100.0));
        let table = runs_table(&[run]);
        let mut names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert!(names.contains(&"jobs") && names.contains(&"jobs_submitted"), "{names:?}");
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn parameters_of_policies_are_columns_of_their_own() {
        let mut run = done("las", 4.0, 1, 10.0);
        run.settings.push(("set".into(), Setting::Pairs(vec![("threshold".into(), Setting::Whole(5))])));
        let table = runs_table(&[run]);
        assert!(table.columns.iter().any(|column| column.name == "set.threshold"), "{table:?}");
    }
}
