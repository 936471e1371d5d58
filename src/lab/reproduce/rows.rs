//! From the runs of a study to the rows of a figure.

use std::path::Path;

use rota_scripts::study::{Setting, Settings};

use super::evidence::{At, Row};
use super::quantity::{BEST_EFFORT_GAIN, BEST_EFFORT_JCT};
use crate::study::{Outcome, Ran};

/// The policy with whose best-effort jobs those of the others are compared.
const BASELINE: &str = "gandiva";

/// The rows of all runs that are complete; `along` are the settings by which rows differ.
pub fn rows(runs: &[Ran], along: &[&str]) -> Vec<Row> {
    let row = |run: &Ran| {
        let Outcome::Done(figures) = &run.outcome else { return None };
        let numbers = figures.numbers.iter().filter_map(|(name, value)| Some((name.clone(), (*value)?)));
        Some(Row {
            policy: text(run, "policy").unwrap_or_default(),
            at: at_of(run, along),
            seed: text(run, "seed"),
            numbers: numbers.collect(),
        })
    };
    with_gains(runs.iter().filter_map(row).collect())
}

/// The settings of a run among those by which rows differ; a trace goes by its name.
pub fn at_of(run: &Ran, along: &[&str]) -> At {
    let value = |name: &str| {
        let value = text(run, name)?;
        let stem = Path::new(&value).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Some((name.to_owned(), if name == "trace" { stem? } else { value }))
    };
    along.iter().filter_map(|name| value(name)).collect()
}

/// The seed that a run draws its jobs with.
pub fn seed_of(settings: &Settings) -> Option<String> {
    in_words(settings, "seed")
}

fn text(run: &Ran, name: &str) -> Option<String> {
    in_words(&run.settings, name)
}

fn in_words(settings: &Settings, name: &str) -> Option<String> {
    let (_, setting) = settings.iter().find(|(key, _)| key == name)?;
    Some(match setting {
        Setting::Text(text) => text.clone(),
        Setting::Whole(whole) => whole.to_string(),
        Setting::Number(number) => number.to_string(),
        Setting::Flag(flag) => flag.to_string(),
        Setting::List(_) | Setting::Pairs(_) => return None,
    })
}

/// The paper gives best-effort times relative to Gandiva's, which therefore is 1 wherever another policy has a number.
pub fn with_baseline(mut published: Vec<Row>) -> Vec<Row> {
    let name = BEST_EFFORT_GAIN.name;
    let mut places: Vec<At> =
        published.iter().filter(|row| row.numbers.contains_key(name)).map(|row| row.at.clone()).collect();
    places.dedup();
    for at in places {
        match published.iter_mut().find(|row| row.policy == BASELINE && row.at == at) {
            Some(row) => {
                row.numbers.entry(name.to_owned()).or_insert(1.0);
            }
            None => published.push(Row {
                policy: BASELINE.to_owned(),
                at,
                seed: None,
                numbers: [(name.to_owned(), 1.0)].into(),
            }),
        }
    }
    published
}

/// How many times sooner best-effort jobs end than under Gandiva with the same jobs: a number that no single run has.
fn with_gains(mut rows: Vec<Row>) -> Vec<Row> {
    let jct = |row: &Row| row.numbers.get(BEST_EFFORT_JCT.name).copied();
    let baselines: Vec<Row> = rows.iter().filter(|row| row.policy == BASELINE).cloned().collect();
    for row in &mut rows {
        let same = baselines.iter().find(|other| other.at == row.at && other.seed == row.seed);
        if let Some((theirs, own)) = same.and_then(jct).zip(jct(row)).filter(|(_, own)| *own > 0.0) {
            row.numbers.insert(BEST_EFFORT_GAIN.name.to_owned(), theirs / own);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_effort_jobs_are_measured_against_gandiva_with_the_same_jobs() {
        let row = |policy: &str, seed: &str, jct: f64| Row {
            policy: policy.into(),
            at: At::new(),
            seed: Some(seed.into()),
            numbers: [(BEST_EFFORT_JCT.name.into(), jct)].into(),
        };
        let rows = with_gains(vec![
            row("gandiva", "1", 300.0),
            row("gandiva", "2", 100.0),
            row("elasticflow", "1", 200.0),
            row("elasticflow", "3", 200.0),
        ]);
        let gain = |at: usize| rows[at].numbers.get(BEST_EFFORT_GAIN.name).copied();
        assert_eq!((gain(1), gain(2), gain(3)), (Some(1.0), Some(1.5), None));
    }

    #[test]
    fn the_published_baseline_of_a_ratio_is_one() {
        let row = |policy: &str, gain: f64| Row {
            policy: policy.into(),
            at: [("best_effort".to_owned(), "0.1".to_owned())].into(),
            seed: None,
            numbers: [(BEST_EFFORT_GAIN.name.to_owned(), gain)].into(),
        };
        let rows = with_baseline(vec![row("elasticflow", 1.6), row("edf", 0.1)]);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2], row("gandiva", 1.0));
    }
}
