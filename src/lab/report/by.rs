//! Results by what jobs are: GPUs asked for, model, tenant. One table for each, a row for each kind of job and run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use maud::{Markup, html};

use super::html::{self, Cell};
use super::terminal::{align_numbers, plain_table};
use super::units::{TimeUnit, number, with_thousands};
use crate::results::{JobRow, Results, RunResult, Window};
use crate::statistics::{mean, quantile};

/// Kinds of jobs that a table lists; those with the fewest jobs are put together.
const MAX_KINDS: usize = 12;

/// By what jobs are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// GPUs asked for.
    Gpus,
    /// Model.
    Model,
    /// Tenant.
    Tenant,
}

impl By {
    /// Every one.
    pub const ALL: [By; 3] = [By::Gpus, By::Model, By::Tenant];

    /// As on the command line, and above its column.
    pub const fn name(self) -> &'static str {
        match self {
            By::Gpus => "gpus",
            By::Model => "model",
            By::Tenant => "tenant",
        }
    }

    fn of(self, job: &JobRow) -> Cow<'_, str> {
        match self {
            By::Gpus => Cow::Owned(job.gpus.to_string()),
            By::Model => Cow::Borrowed(&job.model),
            By::Tenant => Cow::Borrowed(&job.tenant),
        }
    }
}

/// A text that names no kind of jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: gpus, model or tenant is expected")]
pub struct ByError {
    text: String,
}

impl FromStr for By {
    type Err = ByError;
    fn from_str(text: &str) -> Result<Self, ByError> {
        let found = By::ALL.into_iter().find(|by| by.name() == text);
        found.ok_or_else(|| ByError { text: text.to_owned() })
    }
}

/// The table of one way to tell jobs apart.
struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One figure of the jobs of a kind.
struct Shown {
    heading: &'static str,
    is_time: bool,
    value: fn(&[&JobRow]) -> Option<f64>,
}

const SHOWN: [Shown; 6] = [
    Shown { heading: "avg JCT", is_time: true, value: |jobs| mean(&seconds(jobs, |job| job.jct())) },
    Shown { heading: "median", is_time: true, value: |jobs| quantile(&seconds(jobs, |job| job.jct()), 0.5) },
    Shown { heading: "p99", is_time: true, value: |jobs| quantile(&seconds(jobs, |job| job.jct()), 0.99) },
    Shown { heading: "waiting", is_time: true, value: |jobs| mean(&seconds(jobs, |job| job.wait())) },
    Shown { heading: "slowdown (x)", is_time: false, value: |jobs| mean(&ratios(jobs, JobRow::slowdown)) },
    Shown {
        heading: "finish-time ratio (x)",
        is_time: false,
        value: |jobs| mean(&ratios(jobs, JobRow::finish_time_ratio)),
    },
];

fn seconds(jobs: &[&JobRow], length: fn(&JobRow) -> Option<rota_core::time::Span>) -> Vec<f64> {
    ratios(jobs, |job| length(job).map(rota_core::time::Span::as_secs_f64))
}

/// Ascending.
fn ratios(jobs: &[&JobRow], ratio: impl Fn(&JobRow) -> Option<f64>) -> Vec<f64> {
    let mut all: Vec<f64> = jobs.iter().filter_map(|job| ratio(job)).collect();
    all.sort_by(f64::total_cmp);
    all
}

impl Table {
    /// `None` where all jobs are of one kind.
    fn new(results: &Results, by: By) -> Option<Self> {
        let runs: Vec<Kinds<'_>> = results.runs.iter().map(|run| kinds_of(run, by)).collect();
        let kinds = most_jobs_first(&runs);
        if kinds.len() < 2 {
            return None;
        }
        let unit = TimeUnit::for_table(
            results.runs.iter().filter_map(|run| run.summary.avg_jct_s).fold(0.0, f64::max),
        );
        let others = if kinds.len() > MAX_KINDS { kinds[MAX_KINDS - 1..].to_vec() } else { Vec::new() };
        let alone = if others.is_empty() { kinds.len() } else { MAX_KINDS - 1 };
        let mut groups: Vec<(String, Vec<String>)> =
            kinds[..alone].iter().map(|kind| (kind.clone(), vec![kind.clone()])).collect();
        groups.sort_by(|a, b| natural(&a.0).cmp(&natural(&b.0)));
        if !others.is_empty() {
            groups.push((format!("{} others", others.len()), others));
        }
        let names = results.run_names();
        let mut values: Vec<(String, String, usize, Vec<Option<f64>>)> = Vec::new();
        for (shown, members) in &groups {
            for (run, name) in runs.iter().zip(&names) {
                let of_kind = members.iter().filter_map(|kind| run.get(kind.as_str()));
                let jobs: Vec<&JobRow> = of_kind.flatten().copied().collect();
                let figures = SHOWN.iter().map(|figure| (figure.value)(&jobs)).collect();
                values.push((shown.clone(), name.clone(), jobs.len(), figures));
            }
        }
        let largest = |at: usize| values.iter().filter_map(|row| row.3[at]).fold(0.0, f64::max);
        let cell = |(at, value): (usize, &Option<f64>)| {
            let scale = if SHOWN[at].is_time { unit.seconds } else { 1.0 };
            value.map(|value| number(value / scale, largest(at) / scale)).unwrap_or_default()
        };
        let row = |(kind, name, n_jobs, figures): &(String, String, usize, Vec<Option<f64>>)| {
            let head = [kind.clone(), name.clone(), with_thousands(*n_jobs as f64)];
            head.into_iter().chain(figures.iter().enumerate().map(cell)).collect()
        };
        let heading = |figure: &Shown| match figure.is_time {
            true => format!("{} ({})", figure.heading, unit.sign),
            false => figure.heading.to_owned(),
        };
        let first = if by == By::Gpus { "GPUs" } else { by.name() };
        let headings =
            [first, "policy", "jobs"].map(str::to_owned).into_iter().chain(SHOWN.iter().map(heading));
        Some(Table { headings: headings.collect(), rows: values.iter().map(row).collect() })
    }
}

/// The jobs of a run by their kind.
type Kinds<'a> = BTreeMap<Cow<'a, str>, Vec<&'a JobRow>>;

fn kinds_of(run: &RunResult, by: By) -> Kinds<'_> {
    let mut kinds = Kinds::new();
    for job in Window::of(run.meta.window, &run.jobs) {
        kinds.entry(by.of(job)).or_default().push(job);
    }
    kinds
}

/// The kinds of jobs of all runs, those with the most jobs first.
fn most_jobs_first(runs: &[Kinds<'_>]) -> Vec<String> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, jobs) in runs.iter().flatten() {
        *count.entry(kind).or_default() += jobs.len();
    }
    let mut kinds: Vec<(&str, usize)> = count.into_iter().collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| natural(a.0).cmp(&natural(b.0))));
    kinds.into_iter().map(|(kind, _)| kind.to_owned()).collect()
}

/// Numbers by size, before words by letters.
fn natural(text: &str) -> (u64, &str) {
    (text.parse().unwrap_or(u64::MAX), text)
}

/// The table for a terminal; says so where all jobs are of one kind.
pub fn by_text(results: &Results, by: By) -> String {
    let Some(table) = Table::new(results, by) else {
        return format!("by {}: all jobs are of one kind\n", by.name());
    };
    let mut text = plain_table();
    text.set_header(table.headings);
    text.add_rows(table.rows);
    align_numbers(&mut text, 2);
    format!("{text}\n")
}

/// The tables of a page; empty where nothing tells jobs apart.
pub(super) fn sections(results: &Results) -> Markup {
    let section = |by: By| {
        let table = Table::new(results, by)?;
        let row = |row: Vec<String>| -> Vec<Cell> {
            row.into_iter()
                .enumerate()
                .map(|(at, cell)| if at == 1 { Cell::RowName(cell) } else { Cell::Plain(cell) })
                .collect()
        };
        let rows: Vec<Vec<Cell>> = table.rows.into_iter().map(row).collect();
        let heading =
            if by == By::Gpus { "By GPUs asked for".to_owned() } else { format!("By {}", by.name()) };
        Some(html::foldable(&heading, false, &html::tall_table(&html::columns(table.headings, 2), &rows)))
    };
    html! { @for table in By::ALL.into_iter().filter_map(section) { (table) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    #[test]
    fn jobs_are_averaged_by_what_they_asked_for() {
        let text = by_text(&results(vec![run("las", 1, None), run("srtf", 1, None)]), By::Gpus);
        let of_two: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("2 ")).collect();
        assert_eq!(of_two.len(), 2, "{text}");
        assert!(
            of_two[0].contains("las") && of_two[0].contains("150.2") && of_two[0].contains("20.00"),
            "{text}"
        );
        assert!(by_text(&results(vec![run("las", 1, None)]), By::Model).contains("of one kind"));
    }

    #[test]
    fn rare_kinds_are_put_together_and_numbers_are_sorted_as_numbers() {
        let mut run = run("las", 1, None);
        run.jobs = (1..=40).map(|gpus| JobRow { gpus, ..run.jobs[0].clone() }).collect();
        let table = Table::new(&results(vec![run]), By::Gpus).expect("several kinds");
        let kinds: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!((kinds.len(), kinds[8], kinds[9], kinds[11]), (12, "9", "10", "29 others"));
    }
}
