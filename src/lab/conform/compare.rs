//! Compares two runs of the same jobs: the earliest moment at which they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use rota_core::ledger::Ledger;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;
use rota_traces::error::InputError;

use super::table::Table;

/// Times closer than this are equal.
const TOLERANCE: Span = Span(1_000);

/// Objectives and rates closer than this, relative to the expected one, are equal.
const RELATIVE_TOLERANCE: f64 = 1e-6;

/// Whether a number is the expected one, but for rounding.
pub(super) fn is_close(expected: f64, got: f64) -> bool {
    (got - expected).abs() <= RELATIVE_TOLERANCE * expected.abs().max(1.0)
}

/// What became of a job, in the original or in our run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) start: Option<Time>,
    pub(super) finish: Option<Time>,
}

/// Rounds, to say in which one something happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    pub(super) first: Time,
    pub(super) length: Span,
}

/// The first difference of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    text: String,
    n_more: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.n_more {
            0 => Ok(()),
            1 => f.write_str("; 1 more difference later"),
            n => write!(f, "; {n} more differences later"),
        }
    }
}

/// Reads what the original did, by the job's name.
pub(super) fn expected(path: &Path, start: &str, finish: &str) -> Result<BTreeMap<String, Fate>, InputError> {
    let table = Table::open(path, &["job_id", start, finish])?;
    let mut fates = BTreeMap::new();
    for row in table.rows() {
        let fate = Fate { start: row.time(start)?, finish: row.time(finish)? };
        if fates.insert(row.text("job_id").to_owned(), fate).is_some() {
            return Err(row.expected("job_id", "every job once"));
        }
    }
    Ok(fates)
}

/// What our run did, by the job's name.
pub(super) fn got(workload: &Workload, ledger: &Ledger) -> BTreeMap<String, Fate> {
    let jobs = workload.jobs.iter().zip(&ledger.outcomes);
    jobs.map(|(job, outcome)| (job.name.to_string(), Fate { start: outcome.start, finish: outcome.finish }))
        .collect()
}

/// The earliest difference, or `None` when all jobs start and finish alike.
pub(super) fn first_difference(
    expected: &BTreeMap<String, Fate>,
    got: &BTreeMap<String, Fate>,
    rounds: Rounds,
) -> Option<Difference> {
    let names: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
    let mut found: Vec<(Time, String)> = Vec::new();
    for name in names {
        let (e, g) = match (expected.get(name), got.get(name)) {
            (Some(e), Some(g)) => (e, g),
            (Some(_), None) => return Some(only(format!("job {name}: expected, but not in the input"))),
            _ => return Some(only(format!("job {name}: in the input, but nothing is expected of it"))),
        };
        for (verb, e, g) in [("start", e.start, g.start), ("finish", e.finish, g.finish)] {
            if !is_equal(e, g) {
                let earliest = e.into_iter().chain(g).min().unwrap_or(Time::MAX);
                found.push((
                    earliest,
                    format!(
                        "job {name}: expected to {verb} {}, got {}",
                        rounds.describe(e),
                        rounds.describe(g)
                    ),
                ));
            }
        }
    }
    // Stable: of several at one moment, the first by name and then the start.
    found.sort_by_key(|(time, _)| *time);
    let n_more = found.len().saturating_sub(1);
    found.into_iter().next().map(|(_, text)| Difference { text, n_more })
}

fn only(text: String) -> Difference {
    Difference { text, n_more: 0 }
}

fn is_equal(a: Option<Time>, b: Option<Time>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Span((a - b).0.abs()) <= TOLERANCE,
        (None, None) => true,
        _ => false,
    }
}

impl Rounds {
    fn describe(&self, time: Option<Time>) -> String {
        let Some(time) = time else { return "never".to_owned() };
        let round = (time - self.first).0.div_euclid(self.length.0.max(1));
        format!("at {time} s (round {round})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: Rounds = Rounds { first: Time(1_000_000), length: Span::from_secs(300) };

    fn run(jobs: &[(&str, Option<i64>, Option<i64>)]) -> BTreeMap<String, Fate> {
        let time = |seconds: Option<i64>| seconds.map(|s| Time(s * 1_000_000));
        jobs.iter()
            .map(|(name, s, f)| ((*name).to_owned(), Fate { start: time(*s), finish: time(*f) }))
            .collect()
    }

    fn difference(
        expected: &[(&str, Option<i64>, Option<i64>)],
        got: &[(&str, Option<i64>, Option<i64>)],
    ) -> String {
        first_difference(&run(expected), &run(got), ROUNDS).map_or("equal".into(), |d| d.to_string())
    }

    #[test]
    fn the_earliest_difference_is_named_with_its_round() {
        let expected = [("a", Some(1), Some(901)), ("b", Some(301), Some(601))];
        assert_eq!(difference(&expected, &expected), "equal");
        assert_eq!(
            difference(&expected, &[("a", Some(1), Some(1201)), ("b", Some(1), Some(601))]),
            "job b: expected to start at 301 s (round 1), got at 1 s (round 0); 1 more difference later"
        );
        assert_eq!(
            difference(&expected, &[("a", Some(1), None), ("b", Some(301), Some(601))]),
            "job a: expected to finish at 901 s (round 3), got never"
        );
    }

    #[test]
    fn jobs_of_one_side_only_are_named() {
        let one = [("a", Some(1), Some(901))];
        let two = [("a", Some(1), Some(901)), ("b", None, None)];
        assert_eq!(difference(&one, &two), "job b: in the input, but nothing is expected of it");
        assert_eq!(difference(&two, &one), "job b: expected, but not in the input");
    }

    #[test]
    fn a_millisecond_is_forgiven_and_no_more() {
        let at =
            |micros| BTreeMap::from([("a".to_owned(), Fate { start: Some(Time(micros)), finish: None })]);
        assert_eq!(first_difference(&at(0), &at(1_000), ROUNDS), None);
        assert!(first_difference(&at(0), &at(1_001), ROUNDS).is_some());
    }
}
