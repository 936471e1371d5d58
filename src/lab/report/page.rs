//! `report.html`: everything on one page that needs nothing else, neither files nor a network.

use std::cmp::Ordering;

use maud::{Markup, html};

use super::html::{Cell, Column, choice, document, foldable, plots, section, table};
use super::job_table::{JobTable, job_table};
use super::on_the_table::on_the_table_sentence;
use super::{Figure, ReportError, SummaryTable, by, figures, promises, timeline, with_thousands};
use crate::results::{Results, config_toml};

const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("timeline.js"));

/// The page as text.
pub fn to_html(results: &Results) -> Result<String, ReportError> {
    page(results, &figures(results), &Markup::default())
}

/// The page with a section of the caller's own after the summary.
pub(super) fn page(results: &Results, figures: &[Figure], own: &Markup) -> Result<String, ReportError> {
    let body = html! {
        (summary(results))
        (own)
        (sections(figures)?)
        (by::sections(results))
        (timeline::section(results))
        (jobs(results))
        (configuration(results)?)
    };
    Ok(document(&results.title, &facts(results), &body, SCRIPT))
}

/// What a reader must know before the first number.
fn facts(results: &Results) -> Markup {
    let mut clusters: Vec<String> = Vec::new();
    for cluster in results.runs.iter().map(|run| &run.meta.cluster) {
        let text = format!(
            "{}: {} nodes, {} GPUs",
            cluster.name,
            with_thousands(cluster.nodes as f64),
            with_thousands(f64::from(cluster.gpus))
        );
        if !clusters.contains(&text) {
            clusters.push(text);
        }
    }
    let n_oracles = results.runs.iter().filter(|run| run.meta.is_oracle()).count();
    let n_estimating =
        results.runs.iter().filter(|run| run.meta.reads_estimates && !run.meta.is_oracle()).count();
    let estimates = match (n_oracles, n_estimating) {
        (0, 0) => "No policy looked at how long jobs will take.".to_owned(),
        (0, _) => "Policies saw estimates of how long jobs take, not the truth.".to_owned(),
        (n, _) if n == results.runs.len() => {
            "The policies decide by exact run times (an oracle): a real cluster does not know them."
                .to_owned()
        }
        (n, _) => format!(
            "{n} of {} runs decide by exact run times (oracle), which a real cluster does not know.",
            results.runs.len()
        ),
    };
    let window = results.runs.iter().find_map(|run| run.meta.window);
    html! {
        p { "Cluster " (clusters.join("; ")) " · Rota " (results.version) }
        p { (estimates) }
        @if let Some(window) = window {
            p { "Averages and percentiles count jobs " (window.to_string()) " in the order of submission." }
        }
    }
}

fn summary(results: &Results) -> Markup {
    let summary = SummaryTable::detailed(results);
    let columns: Vec<Column> = summary
        .headings
        .iter()
        .enumerate()
        .map(|(at, heading)| Column { heading: heading.to_string(), is_text: at < summary.n_names })
        .collect();
    let cell = |(at, cell): (usize, &super::Cell)| match (at + 1).cmp(&summary.n_names) {
        Ordering::Equal => Cell::RowName(cell.text.clone()),
        Ordering::Greater if cell.is_best => Cell::Best(cell.text.clone()),
        Ordering::Less | Ordering::Greater => Cell::Plain(cell.text.clone()),
    };
    let rows: Vec<Vec<Cell>> =
        summary.rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect();
    let has_best = rows.iter().flatten().any(|cell| matches!(cell, Cell::Best(_)));
    let left = on_the_table_sentence(results);
    let content = html! {
        div.many { (table(&columns, &rows)) }
        @if has_best { p { "Bold on colour: best of its column." } }
        p {
            "Waiting is completion time less time with GPUs. Slowdown is completion time over the time a job takes alone with "
            "the GPUs it asked for; the finish-time ratio, over the time with an equal part of the cluster. GPU use is between "
            "the first and the last arrival; after that, the cluster drains."
        }
        @if !left.is_empty() { p { (left) } }
        @for broken in promises(results).lines() { p { (broken) } }
    };
    section("Summary", &content)
}

/// Figures under their headings. The first two sections are open, the others closed.
fn sections(figures: &[Figure]) -> Result<Markup, ReportError> {
    let sections = figures.chunk_by(|a, b| a.section == b.section).enumerate().map(|(index, section)| {
        let heading = section.first().map_or("", |figure| figure.section.as_str());
        Ok(foldable(heading, index < 2, &plots(section)?))
    });
    let sections = sections.collect::<Result<Vec<_>, ReportError>>()?;
    Ok(html! { @for section in &sections { (section) } })
}

fn jobs(results: &Results) -> Markup {
    let JobTable { data, every } = job_table(results);
    let content = html! {
        @if every > 1 {
            p { "To keep this page light, every " (every) "th job is listed here; jobs.csv has all of them." }
        }
        div.controls {
            @if results.runs.len() > 1 { (choice("job-run", results.run_names())) }
            select #job-status aria-label="status" {
                option value="" { "any status" }
                @for status in ["finished", "declined", "unfinished", "failed"] { option { (status) } }
            }
            input #job-filter type="search" placeholder="filter: words that must occur" aria-label="filter";
            span id="job-count" class="quiet" role="status" {}
        }
        div.scroll.tall { table #jobs { thead { tr {} } tbody {} } }
        button #job-more.more type="button" hidden { "show more" }
        noscript { p { "This table needs JavaScript; jobs.csv next to this page has the same data." } }
        (data)
    };
    section("Jobs", &content)
}

fn configuration(results: &Results) -> Result<Markup, ReportError> {
    let text = config_toml(results)?;
    Ok(foldable("Configuration", false, &html! { div.scroll { pre { (text) } } }))
}

#[cfg(test)]
mod tests;
