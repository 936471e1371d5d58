//! The study's page: what was found for each group with intervals, figures, comparisons, every run.

use std::fmt::Write;
use std::path::Path;

use super::pairs::asked;
use super::table::runs_table;
use super::terminal::{cell, job_time_unit, sentence, telling_names};
use super::{FIGURES, Group, Pair, Study, StudyError};
use crate::report::{
    self, Axis, Bar, Figure, Line, MAX_LINES, Marks, PALETTE_LENGTH, TimeUnit, Whisker, escape, frame, inline,
};
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
    let facts = format!(
        "<p>{} runs in {} groups{} · Rota {}</p>\n",
        study.runs.len(),
        groups.len(),
        if n_failed > 0 { format!(", {n_failed} failed") } else { String::new() },
        env!("CARGO_PKG_VERSION")
    );
    let mut body = String::new();
    body.push_str(&remarks(study));
    if !figures.is_empty() {
        body.push_str("<section>\n<h2>Figures</h2>\n<div class=\"plots\">\n");
        for figure in figures {
            body.push_str(&inline(figure)?);
        }
        body.push_str("</div>\n</section>\n");
    }
    body.push_str(&group_table(groups));
    body.push_str(&comparisons(pairs));
    body.push_str(&runs(study));
    Ok(frame(&study.title, &facts, &body, ""))
}

fn remarks(study: &Study) -> String {
    let mut html = String::new();
    let mut list = |heading: &str, lines: &mut dyn Iterator<Item = String>| {
        let item = |line: String| match line.contains('\n') {
            true => format!("<li><pre>{}</pre></li>\n", escape(&line)),
            false => format!("<li>{}</li>\n", escape(&line)),
        };
        let items: String = lines.map(item).collect();
        if !items.is_empty() {
            let _ = write!(html, "<section>\n<h2>{heading}</h2>\n<ul>\n{items}</ul>\n</section>\n");
        }
    };
    list("Stopped before its end", &mut study.stopped.iter().cloned());
    list("Failed runs", &mut study.failures().map(|(run, why)| format!("{}: {why}", run.name())));
    list("Remarks", &mut study.remarks.iter().cloned());
    html
}

fn group_table(groups: &[Group]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let names = telling_names(groups);
    let unit = job_time_unit(groups);
    let shown: Vec<&(&str, &str)> = FIGURES
        .iter()
        .filter(|(figure, _)| groups.iter().any(|group| group.figure(figure).is_some()))
        .collect();
    let mut headings: Vec<String> = names.clone();
    headings.push("runs".into());
    headings.extend(shown.iter().map(|(figure, heading)| {
        format!("{heading} ({})", if figure.ends_with("_s") { unit.sign } else { "%" })
    }));
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|group| {
            let mut row: Vec<String> = names.iter().map(|name| group.setting(name)).collect();
            row.push(group.seeds.len().to_string());
            row.extend(shown.iter().map(|(figure, _)| cell(group, figure, unit)));
            row
        })
        .collect();
    format!(
        "<section>\n<h2>Results</h2>\n<div class=\"tall\">{}</div><p>Means over seeds, ± half of the 95 % interval of confidence (bootstrap, 2000 resamples).</p>\n</section>\n",
        html_table(&headings, &rows, names.len())
    )
}

fn comparisons(pairs: &[Pair]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let headings = ["asked", "figure", "policy", "baseline", "ratio", "interval", "pairs", "smaller in"]
        .map(str::to_owned);
    let rows: Vec<Vec<String>> = pairs
        .iter()
        .map(|pair| {
            let ratio = &pair.comparison.ratio;
            vec![
                asked(pair, pairs),
                FIGURES
                    .iter()
                    .find(|(name, _)| *name == pair.figure)
                    .map_or("", |(_, shown)| shown)
                    .to_owned(),
                pair.policy.clone(),
                pair.baseline.clone(),
                format!("{:.3}", ratio.mean),
                format!("{:.3} … {:.3}", ratio.low, ratio.high),
                pair.comparison.difference.n.to_string(),
                pair.comparison.n_smaller.to_string(),
            ]
        })
        .collect();
    let first: String = pairs
        .iter()
        .take(1)
        .map(|pair| format!("<p>For example:{}.</p>\n", escape(&sentence(pair, pairs))))
        .collect();
    format!(
        "<details open>\n<summary><h2>Compared on the same seeds</h2></summary>\n{first}{}</details>\n",
        html_table(&headings, &rows, 4)
    )
}

fn runs(study: &Study) -> String {
    let table = runs_table(&study.runs);
    let headings: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let n_rows = table.n_rows();
    let rows: Vec<Vec<String>> = (0..n_rows.min(MAX_RUNS))
        .map(|row| table.columns.iter().map(|column| column.values.text(row)).collect())
        .collect();
    let note = if n_rows > MAX_RUNS {
        format!("<p>The first {MAX_RUNS} of {n_rows} runs.</p>\n")
    } else {
        String::new()
    };
    format!(
        "<details>\n<summary><h2>Runs</h2></summary>\n<p>Also in runs.csv and runs.parquet.</p>\n{note}<div class=\"tall\">{}</div></details>\n",
        html_table(&headings, &rows, 2)
    )
}

fn html_table(headings: &[String], rows: &[Vec<String>], n_names: usize) -> String {
    let class = |at: usize| if at < n_names { " class=\"text\"" } else { "" };
    let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for (at, heading) in headings.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(at), escape(heading));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (at, text) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(at), escape(text));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    html
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

fn curve(groups: &[Group], against: &str, figure: &str, heading: &str, unit: TimeUnit) -> Option<Figure> {
    let names: Vec<String> = telling_names(groups).into_iter().filter(|name| name != against).collect();
    let label = |group: &Group| names.iter().map(|name| group.setting(name)).collect::<Vec<_>>().join(", ");
    let mut labels: Vec<String> = Vec::new();
    let (mut lines, mut whiskers, mut values): (Vec<Line>, Vec<Whisker>, Vec<f64>) = Default::default();
    for group in groups {
        let Some(spread) = group.figure(figure) else { continue };
        let x: f64 = group.setting(against).parse().ok()?;
        let label = label(group);
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
    let y = match figure.ends_with("_s") {
        true => Axis::from_zero(format!("{heading} ({})", unit.sign), highest),
        false => Axis::percent(format!("{heading} (%)")),
    };
    Some(Figure {
        name: figure.trim_end_matches("_s").replace('_', "-"),
        section: "Figures".into(),
        title: format!("{heading} against {}", against.replace('_', " ")),
        caption: match whiskers.is_empty() {
            true => "One run at each point.".into(),
            false => "Means over seeds; the whiskers are 95 % intervals of confidence.".into(),
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
    let label = |group: &&Group| names.iter().map(|name| group.setting(name)).collect::<Vec<_>>().join(", ");
    let labels: Vec<String> = shown.iter().map(label).collect();
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
        caption: "Means over seeds, ± half of the 95 % interval of confidence.".into(),
        x: match figure.ends_with("_s") {
            true => Axis::from_zero(format!("{heading} ({})", unit.sign), highest),
            false => Axis::percent(format!("{heading} (%)")),
        },
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
