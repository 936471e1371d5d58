//! Several result folders on one page: which settings differ, and how the figures differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use maud::{Markup, html};
use serde_json::Value;

use super::html::{self, Cell};
use super::page::page;
use super::{ReportError, figures};
use crate::results::{Results, RunResult, replace_file};

/// Figures of a clock, which differ from run to run and mean nothing here, and what names a run.
const LEFT_OUT: [&str; 4] = ["wall_s", "decide_s", "seed", "jobs_per_hour"];

/// Writes one page of several folders, each with the name it is shown under; the first is what the others are compared
/// with.
pub fn write_together(folders: &[(String, Results)], path: &Path) -> Result<(), ReportError> {
    Ok(replace_file(path, to_html(folders)?.as_bytes())?)
}

fn to_html(folders: &[(String, Results)]) -> Result<String, ReportError> {
    let results = together(folders);
    let figures = figures(&results);
    page(&results, &figures, &differences(folders))
}

/// All runs as of one folder, each named after its policy and where it is from.
fn together(folders: &[(String, Results)]) -> Results {
    let mut all = Results {
        title: folders.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" | "),
        version: folders.first().map(|(_, results)| results.version.clone()).unwrap_or_default(),
        ..Results::default()
    };
    for (name, results) in folders {
        all.settings.insert(name.clone(), results.settings.clone().into());
        all.inputs.extend(results.inputs.iter().cloned());
        all.runs.extend(results.runs.iter().cloned().map(|mut run| {
            run.meta.policy = format!("{} ({name})", run.meta.policy);
            run.summary.policy = run.meta.policy.clone();
            run
        }));
    }
    all.inputs.dedup();
    all
}

fn differences(folders: &[(String, Results)]) -> Markup {
    let [(base_name, base), others @ ..] = folders else { return Markup::default() };
    let against = |(name, results): &(String, Results)| {
        let content = html! { (settings_list(base, results)) (figures_table(base, results)) };
        html::section(&format!("{name} against {base_name}"), &content)
    };
    html! { @for other in others { (against(other)) } }
}

fn settings_list(base: &Results, other: &Results) -> Markup {
    let inputs = |results: &Results| -> BTreeMap<String, String> {
        let named = |input: &crate::results::Input| {
            (format!("{} {}", input.role, input.name), input.sha256[..12.min(input.sha256.len())].to_owned())
        };
        results.inputs.iter().map(named).collect()
    };
    let settings = |results: &Results| -> BTreeMap<String, String> {
        results.settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
    };
    let (mut of_base, mut of_other) = (settings(base), settings(other));
    of_base.extend(inputs(base));
    of_other.extend(inputs(other));
    let names: BTreeSet<&String> = of_base.keys().chain(of_other.keys()).collect();
    let item = |name: &String| {
        let (a, b) = (of_base.get(name), of_other.get(name));
        let text = |value: Option<&String>| value.map_or("–", String::as_str).to_owned();
        (a != b).then(|| format!("{name}: {} → {}", text(a), text(b)))
    };
    let items: Vec<String> = names.into_iter().filter_map(item).collect();
    match items.is_empty() {
        true => html! { p { "The same settings and inputs." } },
        false => html::list(&items),
    }
}

/// A row for each figure that changed, a column for each run that has a counterpart.
fn figures_table(base: &Results, other: &Results) -> Markup {
    let pairs = counterparts(base, other);
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (at, (before, after)) in pairs.iter().enumerate() {
        for (figure, from, to) in changed(before, after) {
            let cell = match from {
                0.0 => format!("{} → {}", short(from), short(to)),
                _ => {
                    format!("{} → {} ({:+.1} %)", short(from), short(to), (to - from) / from.abs() * 100.0)
                }
            };
            rows.entry(figure).or_insert_with(|| vec![String::new(); pairs.len()])[at] = cell;
        }
    }
    if pairs.is_empty() {
        return html! { p { "No policy was run in both." } };
    }
    if rows.is_empty() {
        return html! { p { "Every figure is the same." } };
    }
    let names = pairs.iter().map(|(_, run)| run.meta.policy.as_str());
    let row = |(figure, cells): (String, Vec<String>)| -> Vec<Cell> {
        [Cell::RowName(figure)].into_iter().chain(cells.into_iter().map(Cell::Plain)).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
    html::table(&html::columns(["figure"].into_iter().chain(names), 1), &rows)
}

/// As many digits as a reader can use.
fn short(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.4}"),
    }
}

/// Runs of the same policy, load and seed; where each folder has one run, these two whatever they are.
fn counterparts<'a>(base: &'a Results, other: &'a Results) -> Vec<(&'a RunResult, &'a RunResult)> {
    if let ([a], [b]) = (base.runs.as_slice(), other.runs.as_slice()) {
        return vec![(a, b)];
    }
    let key =
        |run: &RunResult| (run.meta.policy.clone(), run.meta.jobs_per_hour.map(f64::to_bits), run.meta.seed);
    let twin = |run: &'a RunResult| {
        base.runs.iter().find(|candidate| key(candidate) == key(run)).map(|found| (found, run))
    };
    other.runs.iter().filter_map(twin).collect()
}

fn changed(before: &RunResult, after: &RunResult) -> Vec<(String, f64, f64)> {
    let numbers = |run: &RunResult| serde_json::to_value(&run.summary).unwrap_or_default();
    let (before, after) = (numbers(before), numbers(after));
    let both =
        |(name, value): (&String, &Value)| Some((name.clone(), value.as_f64()?, after.get(name)?.as_f64()?));
    let all = before.as_object().into_iter().flatten();
    all.filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
        .filter_map(both)
        .filter(|(_, a, b)| a != b)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    #[test]
    fn a_changed_policy_shows_as_a_difference() {
        let before = results(vec![run("las", 1, None)]);
        let mut changed = run("./mine.rhai", 1, None);
        changed.summary.avg_jct_s = Some(193.5);
        let mut after = results(vec![changed]);
        after.inputs[0].sha256 = "0".repeat(64);
        let page = to_html(&[("old".into(), before), ("new".into(), after)]).expect("a page");
        assert!(page.contains("new against old") && page.contains("+100.0 %"), "no difference is shown");
        assert!(page.contains("las (old)") && page.contains("./mine.rhai (new)"));
        assert!(page.contains("trace small.csv"), "the input that changed is named");
    }

    #[test]
    fn equal_folders_are_reported_as_equal() {
        let one = results(vec![run("las", 1, None)]);
        let page = to_html(&[("a".into(), one.clone()), ("b".into(), one)]).expect("a page");
        assert!(page.contains("Every figure is the same.") && page.contains("The same settings and inputs."));
    }
}
