//! A study on a terminal: what was found for each group, and how policies compare.

use std::fmt::Write;

use comfy_table::Table;
use rota_scripts::study::Interval;

use super::groups::{Kind, kind};
use super::pairs::{Best, asked, best};
use super::{FIGURES, Group, Pair, Study};
use crate::report::{TimeUnit, align_numbers, plain_table, with_thousands};

/// Rows that a terminal shows; the files have all.
const MAX_ROWS: usize = 60;
/// Settings up to which each has a sentence on what is best in it.
const MOST_SENTENCES: usize = 8;

pub(super) fn to_text(study: &Study, groups: &[Group], pairs: &[Pair]) -> String {
    within(study, groups, pairs, Table::new().width().map(usize::from))
}

/// On a terminal that is too narrow for all columns some are left out, which a line says.
fn within(study: &Study, groups: &[Group], pairs: &[Pair], width: Option<usize>) -> String {
    let mut text = format!("{}\n", study.title);
    if !groups.is_empty() {
        let (table, n_left_out) = group_table(groups, width);
        let _ = writeln!(text, "{table}");
        if n_left_out > 0 {
            let _ = writeln!(text, "{n_left_out} more columns on a wider terminal, or in groups.csv");
        }
    }
    if groups.len() > MAX_ROWS {
        let n_groups = with_thousands(groups.len() as f64);
        let _ = writeln!(text, "{MAX_ROWS} of {n_groups} rows; all are in groups.csv");
    }
    if groups.iter().any(|group| group.seeds.len() > 1) {
        text.push_str("means over seeds, ± half of the 95 % confidence interval (bootstrap)\n");
    }
    text.push_str(&comparisons(pairs));
    for sentence in best_sentences(&best(&study.runs, groups)) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

/// What is best in each setting; counted where there are too many settings to read one by one.
pub(super) fn best_sentences(all: &[Best]) -> Vec<String> {
    if all.len() <= MOST_SENTENCES {
        return all.iter().map(|found| best_sentence(found, all)).collect();
    }
    let mut counts: Vec<(&str, usize, usize)> = Vec::new();
    for found in all {
        let at = counts.iter().position(|count| count.0 == found.name).unwrap_or_else(|| {
            counts.push((&found.name, 0, 0));
            counts.len() - 1
        });
        counts[at].1 += 1;
        counts[at].2 += usize::from(found.is_clear());
    }
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let of_each = counts
        .iter()
        .map(|(name, n, n_clear)| format!("{name} in {n} (told apart from the next in {n_clear})"));
    let of_each: Vec<String> = of_each.collect();
    vec![format!("Lowest avg JCT, by {} settings: {}", all.len(), of_each.join(", "))]
}

/// What is best, and whether it is told apart from the next.
fn best_sentence(best: &Best, all: &[Best]) -> String {
    let asked = asked(&best.settings, all.iter().map(|best| &best.settings));
    let asked = if asked.is_empty() { asked } else { format!(" ({asked})") };
    let Best { name, next, ratio, n, .. } = best;
    let (mean, ends) = (ratio.mean, ends(ratio));
    let n = with_thousands(*n as f64);
    match best.is_clear() {
        false if [ratio.low, mean, ratio.high].into_iter().all(is_one) => {
            let names = match best.n_lowest.saturating_sub(2) {
                0 => format!("{name} and {next}"),
                others => format!("{name}, {next} and {} more", with_thousands(others as f64)),
            };
            format!("Lowest avg JCT of {n}: {names}, which have the same on {} seeds{asked}", ratio.n)
        }
        true => format!(
            "Lowest avg JCT of {n}: {name}; that of the next, {next}, is {mean:.3} x as high {ends}{asked}"
        ),
        false => format!(
            "Lowest avg JCT of {n}: {name}, but not told apart from the next, {next}: {mean:.3} x as high {ends} on {} seeds{asked}",
            ratio.n
        ),
    }
}

/// Names that tell groups apart.
pub(super) fn telling_names(groups: &[Group]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in groups.iter().flat_map(|group| &group.settings) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let differs =
        |name: &String| groups.windows(2).any(|pair| pair[0].setting(name) != pair[1].setting(name));
    let mut telling: Vec<String> =
        names.into_iter().filter(|name| name == "policy" || differs(name)).collect();
    telling.sort_by_key(|name| name == "policy");
    telling
}

/// The groups as a table, for any medium.
pub(super) struct GroupTable {
    /// Settings that tell groups apart, one column each; a column with the number of runs follows.
    pub(super) names: Vec<String>,
    /// Figures with their units, one column each.
    pub(super) headings: Vec<(&'static str, &'static str)>,
    /// One row for each group.
    pub(super) rows: Vec<Vec<String>>,
}

impl GroupTable {
    pub(super) fn new(groups: &[Group]) -> Self {
        let names = telling_names(groups);
        let unit = job_time_unit(groups);
        let is_known = |figure: &str| groups.iter().any(|group| group.figure(figure).is_some());
        let shown: Vec<(&str, &str)> =
            FIGURES.iter().filter(|(figure, _)| is_known(figure)).copied().collect();
        let row = |group: &Group| {
            let mut row: Vec<String> = names.iter().map(|name| group.setting(name)).collect();
            row.push(group.seeds.len().to_string());
            row.extend(shown.iter().map(|(figure, _)| cell(group, figure, unit)));
            row
        };
        let rows = groups.iter().map(row).collect();
        let sign = |figure: &str| match kind(figure) {
            Kind::Time => unit.sign,
            Kind::Part => "%",
            Kind::Ratio => "x",
        };
        let headings = shown.iter().map(|(figure, heading)| (*heading, sign(figure))).collect();
        GroupTable { names, headings, rows }
    }

    /// Without this figure, if it is there.
    fn remove(&mut self, name: &str) {
        let Some(at) = self.headings.iter().position(|(heading, _)| *heading == name) else { return };
        self.headings.remove(at);
        // Names and the number of runs come first.
        let column = self.names.len() + 1 + at;
        self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
    }
}

/// What a narrow terminal can do without, the most dispensable first.
const DISPENSABLE: [&str; 6] =
    ["finish-time ratio", "GPU use", "makespan", "slowdown", "median JCT", "p99 JCT"];

/// As many columns as fit, and how many do not.
fn group_table(groups: &[Group], width: Option<usize>) -> (Table, usize) {
    let mut shown = GroupTable::new(groups);
    let n_columns = shown.headings.len();
    let mut table = drawn(&shown);
    for name in DISPENSABLE {
        let is_wide = |line: &str| width.is_some_and(|width| line.chars().count() > width);
        if !table.trim_fmt().lines().any(is_wide) {
            break;
        }
        shown.remove(name);
        table = drawn(&shown);
    }
    (table, n_columns - shown.headings.len())
}

fn drawn(GroupTable { names, headings, rows }: &GroupTable) -> Table {
    let mut table = plain_table();
    let headings = headings.iter().map(|(heading, unit)| format!("{heading}\n{unit}"));
    table.set_header(names.iter().cloned().chain(["runs".to_owned()]).chain(headings));
    for row in rows.iter().take(MAX_ROWS) {
        table.add_row(row);
    }
    align_numbers(&mut table, names.len());
    table
}

/// The unit in which times of jobs read best.
pub(super) fn job_time_unit(groups: &[Group]) -> TimeUnit {
    let means = groups.iter().filter_map(|group| group.figure("avg_jct_s")).map(|spread| spread.mean.mean);
    TimeUnit::for_table(means.fold(0.0, f64::max))
}

/// A figure of a group: times in `unit`, parts in percent.
pub(super) fn cell(group: &Group, figure: &str, unit: TimeUnit) -> String {
    let Some(spread) = group.figure(figure) else { return String::new() };
    let (scale, digits) = match kind(figure) {
        Kind::Time => (1.0 / unit.seconds, 2),
        Kind::Part => (100.0, 1),
        Kind::Ratio => (1.0, 2),
    };
    let mean = spread.mean.mean * scale;
    let half = (spread.mean.high - spread.mean.low) / 2.0 * scale;
    match spread.mean.n {
        1 => format!("{mean:.digits$}"),
        _ => format!("{mean:.digits$} ± {half:.digits$}"),
    }
}

/// Comparisons of one question up to which all are said; beyond, only those that show a difference.
const MAX_SAID: usize = 12;

/// Each policy against the first that was asked the same, by the first figure that both have.
fn comparisons(pairs: &[Pair]) -> String {
    let mut shown: Vec<&Pair> = Vec::new();
    for pair in pairs {
        let is_alike = |other: &&Pair| other.settings == pair.settings;
        let first = pairs.iter().find(is_alike).map(|first| &first.baseline);
        let is_new = !shown.iter().any(|other| is_alike(other) && other.policy == pair.policy);
        if first == Some(&pair.baseline) && is_new {
            shown.push(pair);
        }
    }
    let mut text = String::new();
    for question in shown.chunk_by(|a, b| a.settings == b.settings) {
        let is_told = |pair: &&&Pair| question.len() <= MAX_SAID || verdict(pair) != UNCLEAR;
        let told: Vec<&&Pair> = question.iter().filter(is_told).collect();
        for pair in told.iter().take(MAX_ROWS) {
            let _ = writeln!(text, "{}", sentence(pair, pairs));
        }
        if told.len() < question.len() {
            let n = question.len() - told.len();
            let _ = writeln!(
                text,
                "  of {} others, {n} {} no clear difference to {}",
                question.len(),
                if n == 1 { "shows" } else { "show" },
                question[0].baseline
            );
        }
        if told.len() > MAX_ROWS {
            text.push_str("  more comparisons are in pairs.csv\n");
        }
    }
    if text.is_empty() { text } else { format!("\nCompared on the same seeds:\n{text}") }
}

const UNCLEAR: &str = "no clear difference";

fn verdict(pair: &Pair) -> &'static str {
    match &pair.comparison.ratio {
        ratio if ratio.high < 1.0 => "lower",
        ratio if ratio.low > 1.0 => "higher",
        _ => UNCLEAR,
    }
}

/// What a comparison was asked that the others were not.
pub(super) fn asked_by(pair: &Pair, all: &[Pair]) -> String {
    asked(&pair.settings, all.iter().map(|pair| &pair.settings))
}

/// A comparison in words.
pub(super) fn sentence(pair: &Pair, all: &[Pair]) -> String {
    let ratio = &pair.comparison.ratio;
    let (name, asked) = (figure_name(pair.figure), asked_by(pair, all));
    let asked = if asked.is_empty() { asked } else { format!(" ({asked})") };
    let verdict = verdict(pair);
    format!(
        "  {name} of {} is {:.3} x that of {} {} on {} seeds: {verdict}{asked}",
        pair.policy,
        ratio.mean,
        pair.baseline,
        ends(ratio),
        pair.comparison.difference.n
    )
}

/// Both ends of an interval around a ratio. An end that would read as 1 without being 1 has more digits, since its side of 1 is the
/// verdict.
fn ends(ratio: &Interval) -> String {
    let end = |value: f64| match format!("{value:.3}") {
        text if text == "1.000" && !is_one(value) => format!("{value:.6}"),
        text => text,
    };
    format!("[{}, {}]", end(ratio.low), end(ratio.high))
}

/// Apart from what is lost when many numbers are added up.
fn is_one(ratio: f64) -> bool {
    (ratio - 1.0).abs() < 5e-7
}

/// How a figure is called in tables.
pub(super) fn figure_name(figure: &str) -> &str {
    FIGURES.iter().find(|(name, _)| *name == figure).map_or(figure, |(_, shown)| shown)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::batch::samples::done;
    use super::super::{Outcome, groups, pairs};
    use super::*;

    #[test]
    fn a_terminal_shows_means_with_intervals_and_the_comparison_in_words() {
        let runs = vec![
            done("las", 4.0, 1, 36_000.0),
            done("las", 4.0, 2, 72_000.0),
            done("srtf", 4.0, 1, 18_000.0),
            done("srtf", 4.0, 2, 36_000.0),
        ];
        let study = Study { title: "toy".into(), remarks: Vec::new(), runs: runs.clone(), stopped: None };
        let text = to_text(&study, &groups(&runs), &pairs(&runs));
        assert!(text.contains("15.00 ± 5.00") && text.contains("7.50 ± 2.50"), "{text}");
        assert!(
            text.contains("avg JCT of srtf is 0.500 x that of las [0.500, 0.500] on 2 seeds: lower"),
            "{text}"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_is_told() {
        let mut runs = vec![done("las", 4.0, 1, 36_000.0), done("las", 4.0, 2, 72_000.0)];
        for run in &mut runs {
            let Outcome::Done(figures) = &mut run.outcome else { panic!("it is done") };
            let names = FIGURES.iter().map(|(name, _)| *name).filter(|name| !name.contains("data"));
            Arc::make_mut(figures).numbers.extend(names.map(|name| (name.to_owned(), Some(0.5))));
        }
        let study = Study { title: "toy".into(), remarks: Vec::new(), runs: runs.clone(), stopped: None };
        let text = |width| within(&study, &groups(&runs), &[], width);
        let (wide, narrow) = (text(None), text(Some(90)));
        assert!(wide.contains("finish-time ratio") && !wide.contains("more columns"), "{wide}");
        assert!(
            narrow.contains("avg JCT") && narrow.contains("more columns on a wider terminal"),
            "{narrow}"
        );
        assert!(narrow.lines().all(|line| line.chars().count() <= 90), "{narrow}");
    }

    #[test]
    fn an_end_next_to_1_shows_its_side() {
        let interval =
            |low, high| Interval { low, high, ..crate::statistics::interval(&[1.0]).expect("one") };
        assert_eq!(ends(&interval(1.00004, 1.2)), "[1.000040, 1.200]");
        assert_eq!(ends(&interval(0.9, 1.0)), "[0.900, 1.000]");
    }

    #[test]
    fn the_two_lowest_may_be_the_same() {
        let mut runs = Vec::new();
        for (policy, jct) in [("las", 10.0), ("srtf", 10.0), ("fifo", 40.0)] {
            runs.extend((1..=2).map(|seed| done(policy, 4.0, seed, jct)));
        }
        let said = best_sentences(&best(&runs, &groups(&runs)));
        assert_eq!(said, ["Lowest avg JCT of 3: las and srtf, which have the same on 2 seeds"]);
        runs.extend((1..=2).map(|seed| done("drf", 4.0, seed, 10.0)));
        let said = best_sentences(&best(&runs, &groups(&runs)));
        assert_eq!(said, ["Lowest avg JCT of 4: las, srtf and 1 more, which have the same on 2 seeds"]);
    }

    #[test]
    fn many_settings_are_counted_instead_of_listed() {
        let mut runs = Vec::new();
        for load in 1..=9 {
            // las is ahead at the lowest load, srtf at all others; fifo equals srtf at the highest.
            let srtf = if load == 1 { 30.0 } else { 10.0 };
            let fifo = if load == 9 { 10.0 } else { 40.0 };
            for (policy, jct) in [("las", 20.0), ("srtf", srtf), ("fifo", fifo)] {
                runs.extend((1..=2).map(|seed| done(policy, f64::from(load), seed, jct)));
            }
        }
        let all = best(&runs, &groups(&runs));
        assert_eq!(best_sentences(&all[..8]).len(), 8);
        let counted = best_sentences(&all);
        assert_eq!(counted.len(), 1, "{counted:?}");
        assert!(counted[0].starts_with("Lowest avg JCT, by 9 settings: srtf in "), "{counted:?}");
        assert!(counted[0].contains("las in 1 (told apart from the next in 1)"), "{counted:?}");
        assert_eq!(all.iter().filter(|found| found.is_clear()).count(), 8, "the tie is not clear");
    }
}
