//! `report.html`: everything on one page that needs nothing else, neither files nor a network.
//!
//! Whatever came from a user goes through [`escape`] or, in the job table, through JSON into text nodes. The page
//! forbids itself to load anything, so a slip would show.

use std::cmp::Ordering;
use std::fmt::Write;

use super::figure::{GRID, INK, PALETTE, PAPER};
use super::job_table::{JobTable, job_table};
use super::{Figure, ReportError, SummaryTable, figures, on_the_table, timeline, to_svg};
use crate::results::{Results, config_toml};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const TIMELINE_SCRIPT: &str = include_str!("timeline.js");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The page as text.
pub fn to_html(results: &Results) -> Result<String, ReportError> {
    page(results, &figures(results), "")
}

/// The page with a section of somebody's own after the summary.
pub(super) fn page(results: &Results, figures: &[Figure], own: &str) -> Result<String, ReportError> {
    let mut body = summary(results);
    body.push_str(own);
    body.push_str(&sections(figures)?);
    body.push_str(&timeline::section(results));
    body.push_str(&jobs(results));
    body.push_str(&configuration(results)?);
    Ok(frame(&results.title, &facts(results), &body, &format!("{SCRIPT}{TIMELINE_SCRIPT}")))
}

/// A page around its contents: what it may load (nothing), how it looks, its heading.
pub(crate) fn frame(title: &str, facts: &str, body: &str, script: &str) -> String {
    let title = escape(if title.is_empty() { "Rota" } else { title });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{facts}</header>\n\
         {body}<script>\n{script}</script>\n</body>\n</html>\n",
        dark_plots(),
    )
}

/// Text that stays text inside elements and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// Figures are drawn in light colours; on a dark screen each is exchanged for its dark twin.
fn dark_plots() -> String {
    let mut rules = String::from("@media screen and (prefers-color-scheme: dark) {\n");
    for shade in PALETTE.iter().chain([&INK, &GRID, &PAPER]) {
        for property in ["fill", "stroke"] {
            let _ = writeln!(
                rules,
                "  figure svg [{property}=\"{}\"] {{ {property}: {}; }}",
                shade.light, shade.dark
            );
        }
    }
    rules.push_str("}\n");
    rules
}

/// What a reader must know before the first number.
fn facts(results: &Results) -> String {
    let mut clusters: Vec<String> = Vec::new();
    for cluster in results.runs.iter().map(|run| &run.meta.cluster) {
        let text = format!("{}: {} nodes, {} GPUs", cluster.name, cluster.nodes, cluster.gpus);
        if !clusters.contains(&text) {
            clusters.push(text);
        }
    }
    let exact = results.runs.iter().filter(|run| run.meta.exact_estimates).count();
    let estimates = match exact {
        0 => "Policies saw estimates, not the truth.".to_owned(),
        n if n == results.runs.len() => {
            "Policies saw exact run times (an oracle): a real cluster does not know them.".to_owned()
        }
        n => format!("{n} of {} runs saw exact run times (an oracle), as marked.", results.runs.len()),
    };
    let mut text = format!(
        "<p>Cluster {} · Rota {}</p>\n<p>{estimates}</p>\n",
        escape(&clusters.join("; ")),
        escape(&results.version)
    );
    if let Some(window) = results.runs.iter().find_map(|run| run.meta.window) {
        let _ =
            writeln!(text, "<p>Averages and percentiles count jobs {window} in the order of submission.</p>");
    }
    text
}

fn summary(results: &Results) -> String {
    let table = SummaryTable::new(results);
    let mut html = String::from("<section>\n<h2>Summary</h2>\n<div class=\"scroll\"><table>\n<thead><tr>");
    let class = |at: usize| if at < table.n_names { " class=\"text\"" } else { "" };
    for (at, heading) in table.headings.iter().enumerate() {
        let unit = if heading.unit.is_empty() { String::new() } else { format!(" ({})", heading.unit) };
        let _ = write!(html, "<th scope=\"col\"{}>{}{unit}</th>", class(at), escape(heading.name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let text = escape(&cell.text);
            let _ = match (at + 1).cmp(&table.n_names) {
                Ordering::Less => write!(html, "<td class=\"text\">{text}</td>"),
                // A policy is long where it is composed: let it break between its parts.
                Ordering::Equal => {
                    write!(html, "<th scope=\"row\" class=\"text\">{}</th>", text.replace('+', "+<wbr>"))
                }
                Ordering::Greater if cell.is_best => write!(html, "<td class=\"best\">{text}</td>"),
                Ordering::Greater => write!(html, "<td>{text}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    if table.rows.iter().flatten().any(|cell| cell.is_best) {
        html.push_str("<p>Bold on colour: best of its column.</p>\n");
    }
    let left = on_the_table(results);
    if !left.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escape(left.trim_end()));
    }
    html.push_str("</section>\n");
    html
}

/// Figures under their headings. The first section is open; more of the same kind fold away.
fn sections(figures: &[Figure]) -> Result<String, ReportError> {
    let mut html = String::new();
    for (index, section) in figures.chunk_by(|a, b| a.section == b.section).enumerate() {
        let heading = section.first().map(|figure| escape(&figure.section)).unwrap_or_default();
        let open = if index < 2 { " open" } else { "" };
        let _ =
            write!(html, "<details{open}>\n<summary><h2>{heading}</h2></summary>\n<div class=\"plots\">\n");
        for figure in section {
            html.push_str(&inline(figure)?);
        }
        html.push_str("</div>\n</details>\n");
    }
    Ok(html)
}

/// A figure as an element of a page.
pub(crate) fn inline(figure: &Figure) -> Result<String, ReportError> {
    let svg = to_svg(figure)?;
    // Its size is the page's affair; the view box keeps its shape.
    let body = svg.find("viewBox").map_or("", |at| &svg[at..]);
    let label = escape(&figure.title);
    Ok(format!(
        "<figure><svg role=\"img\" aria-label=\"{label}\" {body}<figcaption>{}</figcaption></figure>\n",
        escape(&figure.caption)
    ))
}

fn jobs(results: &Results) -> String {
    let JobTable { json, every } = job_table(results);
    let runs = if results.runs.len() > 1 {
        let options: String =
            results.run_names().iter().map(|name| format!("<option>{}</option>", escape(name))).collect();
        format!("<select id=\"job-run\" aria-label=\"run\">{options}</select>\n")
    } else {
        String::new()
    };
    let thinned = if every > 1 {
        format!(
            "<p>To keep this page light, every {every}th job is listed here; jobs.csv has all of them.</p>\n"
        )
    } else {
        String::new()
    };
    format!(
        "<section>\n<h2>Jobs</h2>\n{thinned}<div class=\"controls\">\n{runs}\
         <select id=\"job-status\" aria-label=\"status\"><option value=\"\">any status</option><option>finished</option>\
         <option>declined</option><option>unfinished</option><option>failed</option></select>\n\
         <input id=\"job-filter\" type=\"search\" placeholder=\"filter: words that must occur\" aria-label=\"filter\">\n\
         <span id=\"job-count\" class=\"quiet\" role=\"status\"></span>\n</div>\n\
         <div class=\"scroll tall\"><table id=\"jobs\"><thead><tr></tr></thead><tbody></tbody></table></div>\n\
         <button id=\"job-more\" class=\"more\" type=\"button\" hidden>show more</button>\n\
         <noscript><p>This table needs JavaScript; jobs.csv beside this page has the same.</p></noscript>\n\
         <script type=\"application/json\" id=\"job-data\">{json}</script>\n</section>\n"
    )
}

fn configuration(results: &Results) -> Result<String, ReportError> {
    Ok(format!(
        "<details>\n<summary><h2>Configuration</h2></summary>\n<div class=\"scroll\"><pre>{}</pre></div>\n</details>\n",
        escape(&config_toml(results)?)
    ))
}

#[cfg(test)]
mod tests;
