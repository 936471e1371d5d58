//! The table of figures, one row for each run: which columns there are, in which units, and which run is best.

use std::fmt;

use super::units::{TimeUnit, number, with_thousands};
use crate::results::{Results, RunResult, Summary};

/// Headings and cells, ready to be shown anywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryTable {
    /// One for each column; the first few name the run.
    pub headings: Vec<Heading>,
    /// How many columns name the run instead of measuring it.
    pub n_names: usize,
    /// One row for each run.
    pub rows: Vec<Vec<Cell>>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// A word or two, such as `avg JCT`.
    pub name: &'static str,
    /// In what; empty for names and counts.
    pub unit: &'static str,
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            "" => f.write_str(self.name),
            unit => write!(f, "{} ({unit})", self.name),
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is shown in it.
    pub text: String,
    /// Whether no run on the same cluster and load shows a better value, and some show a worse one. What is written alike
    /// is alike: a mark on one of two equal numbers would be a riddle.
    pub is_best: bool,
}

/// What is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A small value.
    Lower,
    /// A large value.
    Higher,
    /// It depends.
    Neither,
}

/// What one column of the table measures, for those who compute with its values.
#[derive(Clone, Copy)]
pub struct Measure {
    /// What is written above its column.
    pub heading: &'static str,
    /// Which of two values is better.
    pub better: Better,
    /// Its value: seconds, parts of 1, or a count.
    pub value: fn(&Summary) -> Option<f64>,
}

/// What the columns of the table measure, by heading.
pub fn measures() -> impl Iterator<Item = Measure> {
    COLUMNS.iter().map(|column| Measure {
        heading: column.heading,
        better: column.better,
        value: column.value,
    })
}

/// In what a column is shown.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// Seconds, in the one unit of the table.
    Time,
    /// How many times as long.
    Ratio,
    /// Seconds of a clock.
    Clock,
    Percent,
    Count,
}

struct Column {
    heading: &'static str,
    unit: Unit,
    better: Better,
    value: fn(&Summary) -> Option<f64>,
    /// Whether only a page has room for it.
    is_detail: bool,
}

const fn column(
    heading: &'static str,
    unit: Unit,
    better: Better,
    value: fn(&Summary) -> Option<f64>,
) -> Column {
    Column { heading, unit, better, value, is_detail: false }
}

const fn detail(
    heading: &'static str,
    unit: Unit,
    better: Better,
    value: fn(&Summary) -> Option<f64>,
) -> Column {
    Column { is_detail: true, ..column(heading, unit, better, value) }
}

const COLUMNS: [Column; 26] = [
    column("finished", Unit::Count, Better::Neither, |s| Some(s.finished as f64)),
    column("declined", Unit::Count, Better::Neither, |s| (s.declined > 0).then_some(s.declined as f64)),
    column("not done", Unit::Count, Better::Neither, |s| {
        (s.unfinished + s.failed > 0).then_some((s.unfinished + s.failed) as f64)
    }),
    column("avg JCT", Unit::Time, Better::Lower, |s| s.avg_jct_s),
    column("median", Unit::Time, Better::Lower, |s| s.median_jct_s),
    column("p95", Unit::Time, Better::Lower, |s| s.p95_jct_s),
    column("p99", Unit::Time, Better::Lower, |s| s.p99_jct_s),
    column("best effort", Unit::Time, Better::Lower, |s| s.avg_best_effort_jct_s),
    column("waiting", Unit::Time, Better::Lower, |s| s.avg_wait_s),
    detail("to first GPU", Unit::Time, Better::Neither, |s| s.avg_to_first_gpu_s),
    column("slowdown", Unit::Ratio, Better::Lower, |s| s.avg_slowdown),
    detail("finish-time ratio", Unit::Ratio, Better::Lower, |s| s.avg_finish_time_ratio),
    column("makespan", Unit::Time, Better::Lower, |s| s.makespan_s),
    detail("drain", Unit::Time, Better::Neither, |s| s.drain_s),
    column("in time", Unit::Percent, Better::Higher, |s| s.deadline_ratio),
    column("efficiency", Unit::Percent, Better::Neither, |s| {
        s.cluster_efficiency.filter(|_| s.deadline_jobs > 0)
    }),
    column("GPU use", Unit::Percent, Better::Neither, |s| s.gpu_util_loaded.or(s.gpu_util)),
    column("CPU use", Unit::Percent, Better::Neither, |s| s.cpu_util),
    column("data hits", Unit::Percent, Better::Higher, |s| s.data_hit_ratio),
    column("data wait", Unit::Time, Better::Lower, |s| s.data_wait_s),
    column("preempted", Unit::Count, Better::Lower, |s| Some(s.preemptions as f64)),
    column("goodput", Unit::Percent, Better::Higher, |s| s.faults.as_ref()?.goodput),
    column("lost", Unit::Percent, Better::Lower, |s| s.faults.as_ref()?.lost),
    column("recovery", Unit::Time, Better::Lower, |s| s.faults.as_ref()?.avg_recovery_s),
    detail("stopped by failures", Unit::Count, Better::Neither, |s| {
        s.faults.as_ref().map(|faults| faults.stops as f64)
    }),
    column("wall", Unit::Clock, Better::Neither, |s| Some(s.wall_s)),
];

impl SummaryTable {
    /// The table of all runs for a terminal. Columns in which no run has a value are left out.
    pub fn new(results: &Results) -> Self {
        Self::of(results, false)
    }

    /// The same with the columns that only a page has room for.
    pub fn detailed(results: &Results) -> Self {
        Self::of(results, true)
    }

    fn of(results: &Results, has_details: bool) -> Self {
        let runs = &results.runs;
        let is_known = |column: &&Column| runs.iter().any(|run| (column.value)(&run.summary).is_some());
        let is_shown = |column: &&Column| has_details || !column.is_detail;
        let unit = TimeUnit::for_table(largest(runs, |s| s.avg_jct_s));
        let mut table = Self::names(runs);
        for column in COLUMNS.iter().filter(is_shown).filter(is_known) {
            let largest = largest(runs, column.value);
            table.headings.push(Heading { name: column.heading, unit: column.unit_sign(unit) });
            let text = |run: &RunResult| {
                (column.value)(&run.summary).map(|v| column.text(v, largest, unit)).unwrap_or_default()
            };
            let texts: Vec<String> = runs.iter().map(text).collect();
            for (at, row) in table.rows.iter_mut().enumerate() {
                row.push(Cell { text: texts[at].clone(), is_best: is_best(column, at, &texts, runs) });
            }
        }
        table
    }

    /// Takes a column out; whether there was one of that name.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(at) = self.headings.iter().position(|heading| heading.name == name) else { return false };
        self.headings.remove(at);
        self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        true
    }

    /// The columns that say which run it is: load, cluster and seed only where they differ.
    fn names(runs: &[RunResult]) -> Self {
        type Name = (&'static str, fn(&RunResult) -> String);
        let optional: [Name; 3] = [
            ("cluster", |run| run.meta.cluster.name.clone()),
            ("jobs/h", |run| run.meta.jobs_per_hour.map(|load| load.to_string()).unwrap_or_default()),
            ("seed", |run| run.meta.seed.to_string()),
        ];
        let differ =
            |name: fn(&RunResult) -> String| runs.windows(2).any(|pair| name(&pair[0]) != name(&pair[1]));
        let mut names: Vec<Name> = optional.into_iter().filter(|(_, name)| differ(*name)).collect();
        names.push(("policy", |run| {
            let oracle = if run.meta.is_oracle() { " (oracle)" } else { "" };
            format!("{}{oracle}", run.meta.policy)
        }));
        SummaryTable {
            headings: names.iter().map(|(name, _)| Heading { name, unit: "" }).collect(),
            n_names: names.len(),
            rows: runs
                .iter()
                .map(|run| names.iter().map(|(_, name)| Cell { text: name(run), is_best: false }).collect())
                .collect(),
        }
    }
}

impl Column {
    fn unit_sign(&self, unit: TimeUnit) -> &'static str {
        match self.unit {
            Unit::Time => unit.sign,
            Unit::Clock => "s",
            Unit::Percent => "%",
            Unit::Ratio => "x",
            Unit::Count => "",
        }
    }

    fn text(&self, value: f64, largest: f64, unit: TimeUnit) -> String {
        match self.unit {
            Unit::Time => number(value / unit.seconds, largest / unit.seconds),
            Unit::Clock | Unit::Ratio => number(value, largest),
            Unit::Percent => format!("{:.1}", value * 100.0),
            Unit::Count => with_thousands(value),
        }
    }
}

fn largest(runs: &[RunResult], value: fn(&Summary) -> Option<f64>) -> f64 {
    runs.iter().filter_map(|run| value(&run.summary)).fold(0.0, f64::max)
}

/// Compared among runs with the same cluster and load.
fn is_best<'t>(column: &Column, at: usize, texts: &'t [String], runs: &[RunResult]) -> bool {
    let meta = &runs[at].meta;
    let is_alike = |(other, _): &(&RunResult, &String)| {
        other.meta.jobs_per_hour == meta.jobs_per_hour && other.meta.cluster.name == meta.cluster.name
    };
    let cost: fn(f64) -> f64 = match column.better {
        Better::Lower => |value| value,
        Better::Higher => |value| -value,
        Better::Neither => return false,
    };
    let known = |(other, text): (&RunResult, &'t String)| Some((cost((column.value)(&other.summary)?), text));
    let alike: Vec<(f64, &'t String)> = runs.iter().zip(texts).filter(is_alike).filter_map(known).collect();
    let best = alike.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, text)| *text);
    best == Some(&texts[at]) && alike.iter().any(|(_, text)| *text != &texts[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    fn cell<'a>(table: &'a SummaryTable, row: usize, heading: &str) -> &'a Cell {
        let at = table
            .headings
            .iter()
            .position(|h| h.name == heading)
            .unwrap_or_else(|| panic!("{:?}", table.headings));
        &table.rows[row][at]
    }

    #[test]
    fn the_best_of_each_load_is_marked_and_ties_are_not() {
        let mut runs = vec![run("las", 1, Some(2.0)), run("srtf", 1, Some(2.0)), run("fifo", 1, Some(9.0))];
        runs[1].summary.avg_jct_s = Some(60.0);
        let table = SummaryTable::new(&results(runs));
        assert!(!cell(&table, 0, "avg JCT").is_best && cell(&table, 1, "avg JCT").is_best);
        assert!(!cell(&table, 2, "avg JCT").is_best, "alone at its load");
        assert!(!cell(&table, 0, "median").is_best, "all alike");
        assert_eq!(cell(&table, 2, "jobs/h").text, "9");
        assert_eq!(cell(&table, 0, "avg JCT").text, "96.75");
        assert!(table.headings.contains(&Heading { name: "avg JCT", unit: "s" }));
    }

    #[test]
    fn what_is_written_alike_is_marked_alike() {
        let mut runs = vec![run("las", 1, None), run("srtf", 1, None), run("fifo", 1, None)];
        for (run, jct) in runs.iter_mut().zip([60.001, 60.002, 90.0]) {
            run.summary.avg_jct_s = Some(jct);
        }
        let marks = |runs: Vec<RunResult>| -> Vec<bool> {
            let table = SummaryTable::new(&results(runs));
            (0..table.rows.len()).map(|row| cell(&table, row, "avg JCT").is_best).collect()
        };
        assert_eq!(marks(runs.clone()), [true, true, false]);
        runs.truncate(2);
        assert_eq!(marks(runs), [false, false], "nobody shows a worse one");
    }

    #[test]
    fn only_what_differs_names_a_run() {
        let mut blind = run("las", 1, None);
        blind.meta.exact_estimates = true;
        let mut oracle = run("srtf", 1, None);
        (oracle.meta.exact_estimates, oracle.meta.reads_estimates) = (true, true);
        let table = SummaryTable::new(&results(vec![blind, oracle]));
        assert_eq!((table.n_names, table.headings[0].name), (1, "policy"));
        assert_eq!(
            (table.rows[0][0].text.as_str(), table.rows[1][0].text.as_str()),
            ("las", "srtf (oracle)")
        );
    }

    #[test]
    fn all_times_of_a_table_are_in_one_unit_and_details_are_for_pages() {
        let mut long = run("las", 1, None);
        long.summary.makespan_s = Some(1e7);
        let results = results(vec![long]);
        let units = |table: &SummaryTable| -> Vec<&str> {
            let is_time =
                |heading: &&Heading| ["s", "min", "h"].contains(&heading.unit) && heading.name != "wall";
            table.headings.iter().filter(is_time).map(|heading| heading.unit).collect()
        };
        let (short, detailed) = (SummaryTable::new(&results), SummaryTable::detailed(&results));
        assert!(units(&detailed).iter().all(|unit| *unit == "s"), "{:?}", detailed.headings);
        assert!(detailed.headings.iter().any(|heading| heading.name == "to first GPU"));
        assert!(short.headings.iter().all(|heading| heading.name != "to first GPU"));
    }
}
