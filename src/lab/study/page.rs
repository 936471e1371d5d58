//! The study's page: what was found for each group with intervals, figures, comparisons, every run.

use std::path::Path;

use maud::{Markup, html};

use super::pairs::asked;
use super::table::runs_table;
use super::terminal::{GroupTable, cell, figure_name, job_time_unit, sentence, telling_names};
use super::{FIGURES, Group, Pair, Study, StudyError};
use crate::report::html::{self, Cell};
use crate::report::{self, Axis, Bar, Figure, Line, MAX_LINES, Marks, PALETTE_LENGTH, TimeUnit, Whisker};
use crate::results::replace_file;

/// Runs that the page lists; all are in the tables.
const MAX_RUNS: usize = 2_000;

/// Writes `report.html`, and each figure into `plots/`.
pub(super) fn write(study: &Study, groups: &[Group], pairs: &[Pair], out: &Path) -> Result<(), StudyError> {
    let figures = figures(groups);
    let page = to_html(study, groups, pairs, &figures)?;
    replace_file(&out.join("report.html"), page.as_bytes())?;
    Ok(report::write_figures(&figures, out)?)
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
            (study.runs.len()) " runs in " (groups.len()) " groups"
            @if n_failed > 0 { ", " (n_failed) " failed" }
            " · Rota " (env!("CARGO_PKG_VERSION"))
        }
    };
    let body = html! {
        (remarks(study))
        @if !figures.is_empty() { (html::section("Figures", &html::plots(figures)?)) }
        @if !groups.is_empty() { (group_table(groups)) }
        @if !pairs.is_empty() { (comparisons(pairs)) }
        (runs(study))
    };
    Ok(html::document(&study.title, &facts, &body, ""))
}

fn remarks(study: &Study) -> Markup {
    let failed = study.failures().map(|(run, why)| format!("{}: {why}", run.name()));
    let lists: [(&str, Vec<String>); 3] = [
        ("Stopped before its end", study.stopped.iter().cloned().collect()),
        ("Failed runs", failed.collect()),
        ("Remarks", study.remarks.clone()),
    ];
    let shown = lists.iter().filter(|(_, lines)| !lines.is_empty());
    html! { @for (heading, lines) in shown { (html::section(heading, &html::list(lines))) } }
}

fn group_table(groups: &[Group]) -> Markup {
    let GroupTable { names, headings, rows } = GroupTable::new(groups);
    let headings = headings.iter().map(|(heading, unit)| format!("{heading} ({unit})"));
    let n_names = names.len();
    let columns = html::columns(names.into_iter().chain(["runs".to_owned()]).chain(headings), n_names);
    let content = html! {
        (html::tall_table(&columns, &plain(rows)))
        p { "Means over seeds, ± half of the 95 % confidence interval (bootstrap, 2000 resamples)." }
    };
    html::section("Results", &content)
}

fn comparisons(pairs: &[Pair]) -> Markup {
    let headings = ["asked", "figure", "policy", "baseline", "ratio", "interval", "pairs", "smaller in"];
    let row = |pair: &Pair| {
        let ratio = &pair.comparison.ratio;
        vec![
            asked(pair, pairs),
            figure_name(pair.figure).to_owned(),
            pair.policy.clone(),
            pair.baseline.clone(),
            format!("{:.3}", ratio.mean),
            format!("{:.3} … {:.3}", ratio.low, ratio.high),
            pair.comparison.difference.n.to_string(),
            pair.comparison.n_smaller.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = pairs.iter().map(row).collect();
    let content = html! {
        @if let [first, ..] = pairs { p { "For example: " (sentence(first, pairs).trim_start()) "." } }
        (html::table(&html::columns(headings, 4), &plain(rows)))
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
        @if n_rows > MAX_RUNS { p { "The first " (MAX_RUNS) " of " (n_rows) " runs." } }
        (html::tall_table(&html::columns(headings, 2), &plain(rows)))
    };
    html::foldable("Runs", false, &content)
}

fn plain(rows: Vec<Vec<String>>) -> Vec<Vec<Cell>> {
    rows.into_iter().map(|row| row.into_iter().map(Cell::Plain).collect()).collect()
}

/// One for each figure of the runs: against the number that varies, if one does, else bars.
fn figures(groups: &[Group]) -> Vec<Figure> {
    let unit = job_time_unit(groups);
    let against = varying_number(groups);
    let drawn = |(figure, heading): &(&'static str, &'static str)| match &against {
        Some(name) => curve(groups, name, figure, heading, unit),
        None => bars(groups, figure, heading, unit),
    };
    FIGURES.iter().filter_map(drawn).collect()
}

/// The setting on the axis: the load if it varies, else the first number that does.
fn varying_number(groups: &[Group]) -> Option<String> {
    let is_number = |name: &String| groups.iter().all(|group| group.setting(name).parse::<f64>().is_ok());
    let mut names: Vec<String> = telling_names(groups).into_iter().filter(is_number).collect();
    names.sort_by_key(|name| name != "jobs_per_hour");
    names.into_iter().next()
}

fn scale(figure: &str, unit: TimeUnit) -> f64 {
    if figure.ends_with("_s") { 1.0 / unit.seconds } else { 1.0 }
}

/// The axis that shows a figure: times from zero, parts in percent.
fn axis(figure: &str, heading: &str, unit: TimeUnit, highest: f64) -> Axis {
    match figure.ends_with("_s") {
        true => Axis::from_zero(format!("{heading} ({})", unit.sign), highest),
        false => Axis::percent(format!("{heading} (%)")),
    }
}

/// What tells a group from the others, in words.
fn label(group: &Group, names: &[String]) -> String {
    names.iter().map(|name| group.setting(name)).collect::<Vec<_>>().join(", ")
}

fn curve(groups: &[Group], against: &str, figure: &str, heading: &str, unit: TimeUnit) -> Option<Figure> {
    let names: Vec<String> = telling_names(groups).into_iter().filter(|name| name != against).collect();
    let mut labels: Vec<String> = Vec::new();
    let (mut lines, mut whiskers, mut values): (Vec<Line>, Vec<Whisker>, Vec<f64>) = Default::default();
    for group in groups {
        let Some(spread) = group.figure(figure) else { continue };
        let x: f64 = group.setting(against).parse().ok()?;
        let label = label(group, &names);
        let colour = labels.iter().position(|known| *known == label).unwrap_or_else(|| {
            labels.push(label.clone());
            lines.push(Line { label, colour: labels.len() - 1, has_dots: true, points: Vec::new() });
            labels.len() - 1
        });
        let scale = scale(figure, unit);
        lines[colour].points.push((x, spread.mean.mean * scale));
        values.push(x);
        if spread.mean.n < 2 {
            continue;
        }
        whiskers.push(Whisker {
            colour,
            at: x,
            low: spread.mean.low * scale,
            high: spread.mean.high * scale,
        });
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines.truncate(MAX_LINES);
    whiskers.retain(|whisker| whisker.colour < MAX_LINES);
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.len() < 2 {
        return None;
    }
    let highest = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    let highest = whiskers.iter().map(|whisker| whisker.high).fold(highest, f64::max);
    let y = axis(figure, heading, unit, highest);
    Some(Figure {
        name: figure.trim_end_matches("_s").replace('_', "-"),
        section: "Figures".into(),
        title: format!("{heading} against {}", against.replace('_', " ")),
        caption: match whiskers.is_empty() {
            true => "One run at each point.".into(),
            false => "Means over seeds; the whiskers are 95 % confidence intervals.".into(),
        },
        x: Axis::at_values(against.replace('_', " "), &values),
        y,
        marks: Marks::Measured(lines, whiskers),
    })
}

fn bars(groups: &[Group], figure: &str, heading: &str, unit: TimeUnit) -> Option<Figure> {
    let names = telling_names(groups);
    let shown: Vec<&Group> =
        groups.iter().filter(|group| group.figure(figure).is_some()).take(MAX_LINES).collect();
    let labels: Vec<String> = shown.iter().map(|group| label(group, &names)).collect();
    let bars: Vec<Bar> = shown
        .iter()
        .enumerate()
        .filter_map(|(at, group)| {
            let value = group.figure(figure)?.mean.mean * scale(figure, unit);
            Some(Bar { colour: at % PALETTE_LENGTH, value, text: cell(group, figure, unit) })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let highest = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    Some(Figure {
        name: figure.trim_end_matches("_s").replace('_', "-"),
        section: "Figures".into(),
        title: heading.to_owned(),
        caption: "Means over seeds, ± half of the 95 % confidence interval.".into(),
        x: axis(figure, heading, unit, highest),
        y: Axis::names(&labels),
        marks: Marks::Bars(bars),
    })
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
    fn a_varying_load_is_drawn_with_an_interval_at_each_point() {
        let figures = figures(&groups(&study().runs[..12]));
        let Marks::Measured(lines, whiskers) = &figures[0].marks else { panic!("{figures:?}") };
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].points, [(4.0, 4.0), (8.0, 8.0)]);
        assert_eq!(whiskers.len(), 4);
        assert!(whiskers.iter().all(|whisker| whisker.low < whisker.high));
    }

    #[test]
    fn nothing_a_user_wrote_becomes_markup() {
        let study = study();
        let groups = groups(&study.runs);
        let page = to_html(&study, &groups, &pairs(&study.runs), &figures(&groups)).expect("a page");
        for markup in ["las<b>", "<i>", "odd: <script>"] {
            assert!(!page.contains(markup), "{markup} came through");
        }
        assert!(page.contains("a &amp; b") && page.contains("1 failed"));
    }
}
