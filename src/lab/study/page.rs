//! The study's page: what was found for each group with intervals, figures, comparisons, every run.

use std::path::Path;

use maud::{Markup, html};

use super::figures::figures;
use super::pairs::best;
use super::table::runs_table;
use super::terminal::{GroupTable, asked_by, best_sentences, figure_name, sentence};
use super::{Group, Pair, Study, StudyError};
use crate::report::html::{self, Cell};
use crate::report::{self, Figure, PlotOptions, with_thousands};
use crate::results::replace_file;

/// Runs that the page lists; all are in the tables.
const MAX_RUNS: usize = 2_000;
/// Comparisons that the page lists; all are in the tables.
const MAX_PAIRS: usize = 2_000;

/// Writes `report.html`, and each figure into `plots/`.
pub(super) fn write(
    study: &Study,
    groups: &[Group],
    pairs: &[Pair],
    out: &Path,
    options: &PlotOptions,
) -> Result<(), StudyError> {
    let figures = figures(groups, pairs);
    let page = to_html(study, groups, pairs, &figures)?;
    replace_file(&out.join("report.html"), page.as_bytes())?;
    Ok(report::write_figures_as(&figures, out, options)?)
}

fn to_html(
    study: &Study,
    groups: &[Group],
    pairs: &[Pair],
    figures: &[Figure],
) -> Result<String, StudyError> {
    let n_failed = study.failures().count();
    let facts = html! {
        p {
            (with_thousands(study.runs.len() as f64)) " runs in " (with_thousands(groups.len() as f64)) " groups"
            @if n_failed > 0 { ", " (with_thousands(n_failed as f64)) " failed" }
            " · Rota " (env!("CARGO_PKG_VERSION"))
        }
    };
    let body = html! {
        (remarks(study))
        @if !figures.is_empty() { (html::section("Figures", &html::plots(figures)?)) }
        @if !groups.is_empty() { (group_table(study, groups)) }
        @if !pairs.is_empty() { (comparisons(pairs)) }
        (runs(study))
    };
    Ok(html::document(&study.title, &facts, &body, ""))
}

fn remarks(study: &Study) -> Markup {
    let failed = study.failures().map(|(run, why)| format!("{}: {why}", run.name()));
    let lists: [(&str, Vec<String>); 2] = [
        ("Stopped before its end", study.stopped.iter().cloned().collect()),
        ("Failed runs", failed.collect()),
    ];
    let shown = lists.iter().filter(|(_, lines)| !lines.is_empty());
    html! {
        @for (heading, lines) in shown { (html::section(heading, &html::list(lines))) }
        @if !study.remarks.is_empty() { (html::section("Remarks", &html::printed(&study.remarks))) }
    }
}

fn group_table(study: &Study, groups: &[Group]) -> Markup {
    let best = best(&study.runs, groups);
    let GroupTable { names, headings, rows } = GroupTable::new(groups);
    let headings = headings.iter().map(|(heading, unit)| format!("{heading} ({unit})"));
    let n_names = names.len();
    let columns = html::columns(names.into_iter().chain(["runs".to_owned()]).chain(headings), n_names);
    let content = html! {
        (html::tall_table(&columns, &plain(rows)))
        @if groups.iter().any(|group| group.seeds.len() > 1) {
            p { "Means over seeds, ± half of the 95 % confidence interval (bootstrap, 2,000 resamples)." }
        }
        @for sentence in best_sentences(&best) { p { (sentence) "." } }
    };
    html::section("Results", &content)
}

fn comparisons(pairs: &[Pair]) -> Markup {
    let headings = ["asked", "figure", "policy", "baseline", "ratio", "interval", "pairs", "smaller in"];
    let row = |pair: &Pair| {
        let ratio = &pair.comparison.ratio;
        vec![
            asked_by(pair, pairs),
            figure_name(pair.figure).to_owned(),
            pair.policy.clone(),
            pair.baseline.clone(),
            format!("{:.3}", ratio.mean),
            format!("{:.3} … {:.3}", ratio.low, ratio.high),
            pair.comparison.difference.n.to_string(),
            pair.comparison.n_smaller.to_string(),
        ]
    };
    let mut rows: Vec<Vec<String>> = pairs.iter().take(MAX_PAIRS).map(row).collect();
    // Where all were asked the same, there is nothing to say about it.
    let n_left_out = usize::from(rows.iter().all(|row| row[0].is_empty()));
    rows.iter_mut().for_each(|row| drop(row.drain(..n_left_out)));
    let content = html! {
        @if let [first, ..] = pairs { p { "For example: " (sentence(first, pairs).trim_start()) "." } }
        @if pairs.len() > MAX_PAIRS {
            p { "The first " (with_thousands(MAX_PAIRS as f64)) " of " (with_thousands(pairs.len() as f64)) " comparisons; all are in pairs.csv and pairs.parquet." }
        }
        (html::tall_table(&html::columns(headings.into_iter().skip(n_left_out), 4 - n_left_out), &plain(rows)))
    };
    html::foldable("Compared on the same seeds", true, &content)
}

fn runs(study: &Study) -> Markup {
    let table = runs_table(&study.runs);
    let headings = table.columns.iter().map(|column| column.name.as_str());
    let n_rows = table.n_rows();
    let rows: Vec<Vec<String>> = (0..n_rows.min(MAX_RUNS))
        .map(|row| table.columns.iter().map(|column| column.values.text(row)).collect())
        .collect();
    let content = html! {
        p { "Also in runs.csv and runs.parquet." }
        @if n_rows > MAX_RUNS { p { "The first " (with_thousands(MAX_RUNS as f64)) " of " (with_thousands(n_rows as f64)) " runs." } }
        (html::tall_table(&html::columns(headings, 2), &plain(rows)))
    };
    html::foldable("Runs", false, &content)
}

fn plain(rows: Vec<Vec<String>>) -> Vec<Vec<Cell>> {
    rows.into_iter().map(|row| row.into_iter().map(Cell::Plain).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::batch::samples::{done, failed};
    use super::super::{groups, pairs};
    use super::*;

    fn study() -> Study {
        let mut runs = Vec::new();
        for load in [4.0, 8.0] {
            for seed in 1..=3 {
                runs.push(done("las<b>", load, seed, 3_600.0 * load * seed as f64));
                runs.push(done("srtf", load, seed, 1_800.0 * load * seed as f64));
            }
        }
        runs.push(failed("odd", "<script>"));
        Study { title: "a & b".into(), remarks: vec!["<i>".into()], runs, stopped: None }
    }

    #[test]
    fn what_was_asked_is_a_column_only_where_it_differs() {
        let study = study();
        let has_column = |runs| comparisons(&pairs(runs)).into_string().contains(">asked</th>");
        assert!(has_column(&study.runs) && !has_column(&study.runs[..6]));
    }

    #[test]
    fn nothing_a_user_wrote_becomes_markup() {
        let study = study();
        let groups = groups(&study.runs);
        let page = to_html(&study, &groups, &pairs(&study.runs), &figures(&groups, &[])).expect("a page");
        for markup in ["las<b>", "<i>", "odd: <script>"] {
            assert!(!page.contains(markup), "{markup} came through");
        }
        assert!(page.contains("a &amp; b") && page.contains("1 failed"));
    }
}
