//! Several result folders on one page: which settings differ, and how the figures differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use maud::{Markup, html};
use rota_scripts::shipped;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::html::{self, Cell};
use super::page::page;
use super::units::number;
use super::{ReportError, TimeUnit, figures, with_thousands};
use crate::results::{Input, Results, RunResult, replace_file};

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
        title: title(folders),
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

/// Which folders, and what was run in the first; where each ran one policy, both are named.
fn title(folders: &[(String, Results)]) -> String {
    match folders {
        [] => String::new(),
        [(name, results)] => format!("{name}: {}", results.title),
        [(base, results), others @ ..] => {
            let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
            let what = two_policies(results, others).unwrap_or_else(|| results.title.clone());
            format!("{} against {base}: {what}", names.join(", "))
        }
    }
}

/// The base's title with both policies in it, where two folders with one run each ran different ones.
fn two_policies(base: &Results, others: &[(String, Results)]) -> Option<String> {
    let [(_, other)] = others else { return None };
    let ([before], [after]) = (base.runs.as_slice(), other.runs.as_slice()) else { return None };
    let (before, after) = (&before.meta.policy, &after.meta.policy);
    let (_, asked) = base.title.split_once(": ").filter(|_| before != after)?;
    Some(format!("{after} against {before}: {asked}"))
}

fn differences(folders: &[(String, Results)]) -> Markup {
    let [(base_name, base), others @ ..] = folders else { return Markup::default() };
    let against = |(name, results): &(String, Results)| {
        let content = html! {
            (settings_list((base_name, base), (name, results)))
            (scripts(base, results))
            h3 { "Figures that changed" }
            (figures_table((base_name, base), (name, results)))
        };
        html::section(&format!("{name} against {base_name}"), &content)
    };
    html! { @for other in others { (against(other)) } }
}

fn settings_list((base_name, base): (&str, &Results), (name, other): (&str, &Results)) -> Markup {
    let inputs = |results: &Results| -> BTreeMap<String, String> {
        let named = |input: &Input| {
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
    let row = |name: &String| {
        let (a, b) = (of_base.get(name), of_other.get(name));
        let text = |value: Option<&String>| {
            Cell::Plain(value.map_or("–", |value| value.trim_matches('"')).to_owned())
        };
        (a != b).then(|| vec![Cell::RowName(name.replace('_', " ")), text(a), text(b)])
    };
    let rows: Vec<Vec<Cell>> = names.into_iter().filter_map(row).collect();
    match rows.is_empty() {
        true => html! { p { "The same settings and inputs." } },
        false => html::table(&html::columns(["what was asked", base_name, name], 3), &rows),
    }
}

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// How the scripts differ. A script that was changed in its place has its old name; where each side has one script that the
/// other has not, each is the other's new form.
fn scripts(base: &Results, other: &Results) -> Markup {
    let (of_base, of_other) = (texts(base), texts(other));
    let is_in = |texts: &[(&str, &str)], name: &str| texts.iter().any(|(known, _)| *known == name);
    let only = |here: &[(&'_ str, &'_ str)], there: &[(&str, &str)]| -> usize {
        here.iter().filter(|(name, _)| !is_in(there, name)).count()
    };
    let is_exchange = only(&of_base, &of_other) == 1 && only(&of_other, &of_base) == 1;
    let former = |name: &str| match is_in(&of_base, name) {
        true => of_base.iter().find(|(former, _)| *former == name),
        false => of_base.iter().find(|(former, _)| is_exchange && !is_in(&of_other, former)),
    };
    let changed = of_other.iter().filter_map(|script| Some((former(script.0)?, script)));
    let changed: Vec<_> = changed.filter(|((_, before), (_, after))| before != after).collect();
    html! {
        @for ((old_name, before), (name, after)) in changed {
            h3 { @if old_name != name { (old_name) " → " } (name) }
            div.scroll { pre.diff {
                @for (tag, line) in difference(before, after) {
                    @match tag {
                        ChangeTag::Delete => del { "- " (line) },
                        ChangeTag::Insert => ins { "+ " (line) },
                        ChangeTag::Equal => span { "  " (line) },
                    }
                }
            } }
        }
    }
}

/// The scripts of a folder with their text: kept in it, or that of the shipped script with the same checksum.
fn texts(results: &Results) -> Vec<(&str, &str)> {
    let shipped = |input: &Input| {
        let script = shipped::ALL.iter().find(|script| script.file == input.name)?;
        let now = Input::of_bytes("policy", script.file, script.source.as_bytes());
        (now.sha256 == input.sha256).then_some(script.source)
    };
    let scripts = results.inputs.iter().filter(|input| input.role == "policy");
    scripts
        .filter_map(|input| Some((input.name.as_str(), input.text.as_deref().or_else(|| shipped(input))?)))
        .collect()
}

/// The lines that changed, with some around them.
fn difference(before: &str, after: &str) -> Vec<(ChangeTag, String)> {
    let diff = TextDiff::from_lines(before, after);
    let groups = diff.grouped_ops(CONTEXT);
    let changes = groups.iter().flatten().flat_map(|op| diff.iter_changes(op));
    changes.map(|change| (change.tag(), change.value().trim_end_matches(['\r', '\n']).to_owned())).collect()
}

/// A row for each figure that changed, a column for each run that has a counterpart.
fn figures_table((base_name, base): (&str, &Results), (name, other): (&str, &Results)) -> Markup {
    let pairs = counterparts((base_name, base), (name, other));
    let longest = pairs.iter().flat_map(|(_, a, b)| [a, b]).filter_map(|run| run.summary.avg_jct_s);
    let unit = TimeUnit::for_table(longest.fold(0.0, f64::max));
    let mut rows: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for (at, (_, before, after)) in pairs.iter().enumerate() {
        for (figure, from, to) in changed(before, after) {
            let (heading, scale) = named(&figure, unit);
            let (from, to) = (from * scale, to * scale);
            let largest = from.abs().max(to.abs());
            let text = |value: f64| match figure_is_count(&figure) {
                true => with_thousands(value),
                false => number(value, largest),
            };
            // What reads the same in both columns has not changed for a reader.
            if text(from) == text(to) {
                continue;
            }
            let part = (to - from) / from.abs() * 100.0;
            let cell = match from {
                0.0 => format!("{} → {}", text(from), text(to)),
                _ => format!("{} → {} ({part:+.1} %)", text(from), text(to)),
            };
            let place = FIRST.iter().position(|first| *first == figure).unwrap_or(FIRST.len());
            rows.entry((place, heading)).or_insert_with(|| vec![String::new(); pairs.len()])[at] = cell;
        }
    }
    if pairs.is_empty() {
        return html! { p { "No policy was run in both." } };
    }
    if rows.is_empty() {
        return html! { p { "Every figure is the same, as far as it is shown." } };
    }
    let names = pairs.iter().map(|(name, ..)| name.as_str());
    let row = |((_, figure), cells): ((usize, String), Vec<String>)| -> Vec<Cell> {
        [Cell::RowName(figure)].into_iter().chain(cells.into_iter().map(Cell::Plain)).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
    html::table(&html::columns(["figure"].into_iter().chain(names), 1), &rows)
}

/// Figures in the order of the summary; the others follow by name.
const FIRST: [&str; 20] = [
    "finished",
    "avg_jct_s",
    "median_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "avg_best_effort_jct_s",
    "avg_wait_s",
    "p99_wait_s",
    "avg_to_first_gpu_s",
    "avg_slowdown",
    "p99_slowdown",
    "avg_finish_time_ratio",
    "p99_finish_time_ratio",
    "makespan_s",
    "drain_s",
    "deadline_ratio",
    "gpu_util_loaded",
    "gpu_util",
    "cpu_util",
    "preemptions",
];

/// How a figure of `summary.json` is called for people, with its unit, and what its numbers are multiplied with.
fn named(figure: &str, unit: TimeUnit) -> (String, f64) {
    let words = |text: &str| {
        let word = |word: &str| match word {
            "avg" => "average".to_owned(),
            "wait" => "waiting".to_owned(),
            "jct" => "JCT".to_owned(),
            "gpu" => "GPU".to_owned(),
            "cpu" => "CPU".to_owned(),
            "util" => "use".to_owned(),
            other => other.to_owned(),
        };
        text.split('_').map(word).collect::<Vec<_>>().join(" ").replace("finish time", "finish-time")
    };
    // The summary's GPU use ends with the last arrival.
    match figure {
        "gpu_util_loaded" => return ("GPU use (%)".to_owned(), 100.0),
        "gpu_util" => return ("GPU use, with the drain (%)".to_owned(), 100.0),
        _ => {}
    }
    match figure.strip_suffix("_s") {
        Some(time) => (format!("{} ({})", words(time), unit.sign), 1.0 / unit.seconds),
        None if PARTS.contains(&figure) => (format!("{} (%)", words(figure)), 100.0),
        None if !figure_is_count(figure) => (format!("{} (x)", words(figure)), 1.0),
        None => (words(figure), 1.0),
    }
}

/// Figures that are parts of a whole.
const PARTS: [&str; 6] =
    ["deadline_ratio", "gpu_util", "gpu_util_loaded", "cpu_util", "cluster_efficiency", "data_hit_ratio"];

fn figure_is_count(figure: &str) -> bool {
    !figure.ends_with("_s")
        && !PARTS.contains(&figure)
        && !figure.contains("slowdown")
        && !figure.contains("ratio")
}

/// Runs of the same policy, load and seed, with what they are called; where each folder has one run, these two whatever they
/// are.
fn counterparts<'a>(
    (base_name, base): (&str, &'a Results),
    (name, other): (&str, &'a Results),
) -> Vec<(String, &'a RunResult, &'a RunResult)> {
    if let ([a], [b]) = (base.runs.as_slice(), other.runs.as_slice()) {
        return vec![(format!("{base_name} → {name}"), a, b)];
    }
    let key =
        |run: &RunResult| (run.meta.policy.clone(), run.meta.jobs_per_hour.map(f64::to_bits), run.meta.seed);
    let twin = |(name, run): (String, &'a RunResult)| {
        base.runs.iter().find(|candidate| key(candidate) == key(run)).map(|found| (name, found, run))
    };
    other.run_names().into_iter().zip(&other.runs).filter_map(twin).collect()
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
        let script =
            |text: &str| Input { text: Some(text.into()), ..Input::of_bytes("policy", "./mine.rhai", b"") };
        let mut before = before;
        before.inputs.push(script("fn order(jobs, now) {\n    rank(jobs.gpus)\n}\n"));
        after.inputs.push(script("fn order(jobs, now) {\n    rank(-jobs.gpus)\n}\n"));
        let page = to_html(&[("old".into(), before), ("new".into(), after)]).expect("a page");
        assert!(page.contains("new against old") && page.contains("+100.0 %"), "no difference is shown");
        assert!(page.contains("las (old)") && page.contains("./mine.rhai (new)"));
        assert!(page.contains("trace small.csv"), "the input that changed is named");
        assert!(page.contains("<del>-     rank(jobs.gpus)"), "the script's old line is shown");
        assert!(page.contains("<ins>+     rank(-jobs.gpus)"), "and its new one");
        assert!(page.contains("average JCT (s)") && page.contains("96.8 → 193.5"), "values have units");
    }

    #[test]
    fn a_script_in_the_place_of_a_shipped_one_is_compared_with_it() {
        let las = shipped::find("las").expect("shipped");
        let (mut before, mut after) =
            (results(vec![run("las", 1, None)]), results(vec![run("./mine.rhai", 1, None)]));
        before.inputs.push(Input::of_bytes("policy", las.file, las.source.as_bytes()));
        let mine = las.source.replace("jobs.service", "jobs.service / jobs.gpus");
        let own =
            Input { text: Some(mine.clone()), ..Input::of_bytes("policy", "./mine.rhai", mine.as_bytes()) };
        after.inputs.push(own);
        let page = scripts(&before, &after).into_string();
        assert!(page.contains("policies/las.rhai → ./mine.rhai"), "{page}");
        assert!(
            page.contains("jobs.service)</del>") && page.contains("jobs.service / jobs.gpus)</ins>"),
            "{page}"
        );
        // The text of another version of Rota is not at hand.
        before.inputs.last_mut().expect("a script").sha256 = "0".repeat(64);
        assert_eq!(scripts(&before, &after).into_string(), "");
    }

    #[test]
    fn equal_folders_are_reported_as_equal() {
        let one = results(vec![run("las", 1, None)]);
        let page = to_html(&[("a".into(), one.clone()), ("b".into(), one)]).expect("a page");
        assert!(page.contains("Every figure is the same") && page.contains("The same settings and inputs."));
    }
}
