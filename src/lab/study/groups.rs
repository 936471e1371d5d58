//! Runs that differ in their seed alone, and what is known of each figure over them.

use rota_scripts::study::{Interval, Settings};

use super::table::{figure_names, flattened, setting_text, settings_columns};
use super::{Column, Outcome, Ran, Table};
use crate::statistics::{deviation, interval, quantile};

/// Figures worth a place in tables and pages, with how they are shown; the rest are in the files.
pub const FIGURES: [(&str, &str); 11] = [
    ("avg_jct_s", "avg JCT"),
    ("median_jct_s", "median JCT"),
    ("p99_jct_s", "p99 JCT"),
    ("makespan_s", "makespan"),
    ("avg_wait_s", "waiting"),
    ("avg_slowdown", "slowdown"),
    ("avg_finish_time_ratio", "finish-time ratio"),
    ("deadline_ratio", "in time"),
    ("gpu_util_loaded", "GPU use"),
    ("data_wait_s", "data wait"),
    ("data_hit_ratio", "data hits"),
];

/// What the numbers of a figure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Seconds.
    Time,
    /// Part of a whole.
    Part,
    /// How many times as long.
    Ratio,
}

pub(super) fn kind(figure: &str) -> Kind {
    match figure {
        _ if figure.ends_with("_s") => Kind::Time,
        "avg_slowdown" | "avg_finish_time_ratio" => Kind::Ratio,
        _ => Kind::Part,
    }
}

/// Runs that differ in their seed alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Every setting but the seed.
    pub settings: Settings,
    /// Each run's seed, with its place among all runs.
    pub seeds: Vec<(String, usize)>,
    /// What is known of each figure that any of them has.
    pub figures: Vec<(String, Spread)>,
}

/// A figure over the runs of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Mean and its interval.
    pub mean: Interval,
    /// Median.
    pub median: f64,
    /// Standard deviation; `None` of one run.
    pub deviation: Option<f64>,
    /// Least, 5th and 95th percentile, most.
    pub range: [f64; 4],
}

impl Group {
    /// What is known of a figure.
    pub fn figure(&self, name: &str) -> Option<&Spread> {
        self.figures.iter().find(|(figure, _)| figure == name).map(|(_, spread)| spread)
    }

    /// A setting as text; empty when it was not given.
    pub fn setting(&self, name: &str) -> String {
        let found = self.settings.iter().find(|(key, _)| key == name);
        found.map(|(_, setting)| setting_text(setting)).unwrap_or_default()
    }
}

/// The groups of a study, in the order of their first runs.
pub fn groups(runs: &[Ran]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| matches!(run.outcome, Outcome::Done(_))) {
        let mut settings = flattened(&run.settings);
        settings.retain(|(name, _)| name != "seed");
        let member = (run.setting("seed"), at);
        match groups.iter_mut().find(|group| group.settings == settings) {
            Some(group) => group.seeds.push(member),
            None => groups.push(Group { settings, seeds: vec![member], figures: Vec::new() }),
        }
    }
    let names = figure_names(runs);
    for group in &mut groups {
        for name in &names {
            let values: Vec<f64> = group.seeds.iter().filter_map(|(_, at)| runs[*at].figure(name)).collect();
            group.figures.extend(spread(&values).map(|spread| (name.clone(), spread)));
        }
    }
    groups
}

fn spread(values: &[f64]) -> Option<Spread> {
    let mut ascending = values.to_vec();
    ascending.sort_by(f64::total_cmp);
    let at = |q: f64| quantile(&ascending, q);
    Some(Spread {
        mean: interval(values)?,
        median: at(0.5)?,
        deviation: deviation(values),
        range: [at(0.0)?, at(0.05)?, at(0.95)?, at(1.0)?],
    })
}

/// A number of a spread, with its column's name.
type Named = (&'static str, fn(&Spread) -> Option<f64>);

/// A row for each group and figure.
pub(super) fn table(groups: &[Group]) -> Table {
    let rows: Vec<(&Group, &str, &Spread)> = groups
        .iter()
        .flat_map(|group| group.figures.iter().map(move |(name, spread)| (group, name.as_str(), spread)))
        .collect();
    let settings: Vec<Settings> = rows.iter().map(|(group, ..)| group.settings.clone()).collect();
    let mut columns = settings_columns(&settings);
    columns.push(Column::text("figure", rows.iter().map(|(_, name, _)| Some((*name).to_owned())).collect()));
    columns.push(Column::whole("n", rows.iter().map(|(.., spread)| Some(spread.mean.n as i64)).collect()));
    let numbers: [Named; 9] = [
        ("mean", |spread| Some(spread.mean.mean)),
        ("mean_low", |spread| Some(spread.mean.low)),
        ("mean_high", |spread| Some(spread.mean.high)),
        ("median", |spread| Some(spread.median)),
        ("deviation", |spread| spread.deviation),
        ("min", |spread| Some(spread.range[0])),
        ("p5", |spread| Some(spread.range[1])),
        ("p95", |spread| Some(spread.range[2])),
        ("max", |spread| Some(spread.range[3])),
    ];
    for (name, number) in numbers {
        columns.push(Column::number(name, rows.iter().map(|(.., spread)| number(spread)).collect()));
    }
    Table { columns }
}

#[cfg(test)]
mod tests {
    use super::super::batch::samples::{done, failed};
    use super::*;

    #[test]
    fn runs_that_differ_in_their_seed_alone_are_one_group() {
        let runs = [
            done("las", 4.0, 1, 10.0),
            done("srtf", 4.0, 1, 8.0),
            done("las", 4.0, 2, 20.0),
            failed("las", "out of luck"),
        ];
        let groups = groups(&runs);
        assert_eq!(groups.len(), 2);
        let spread = groups[0].figure("avg_jct_s").expect("a figure");
        assert_eq!(
            (spread.mean.n, spread.mean.mean, spread.median, spread.range),
            (2, 15.0, 15.0, [10.0, 10.5, 19.5, 20.0])
        );
        assert_eq!(table(&groups).n_rows(), 2);
    }
}
