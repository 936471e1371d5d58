//! The GPU timeline as data for the page's canvas: which job on which GPU when.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{html, with_thousands};
use crate::results::{Results, RunResult};

/// Bars that a page carries of one run; about four megabytes.
const MAX_BARS: usize = 120_000;
/// Runs that a page carries.
const MAX_RUNS: usize = 8;

/// The section of the page; empty when no run records what ran where.
pub(super) fn section(results: &Results) -> Markup {
    let names = results.run_names();
    let shown: Vec<(&RunResult, &String)> =
        results.runs.iter().zip(&names).filter(|(run, _)| !run.timeline.is_empty()).take(MAX_RUNS).collect();
    if shown.is_empty() {
        return Markup::default();
    }
    let runs: Vec<Value> = shown.iter().map(|(run, _)| data(run)).collect();
    let is_cut = shown.iter().any(|(run, _)| n_bars(run) > MAX_BARS);
    html! {
        section #timeline {
            h2 { "Who ran where" }
            @if is_cut { p { "Only the first " (with_thousands(MAX_BARS as f64)) " bars of a run are here; timeline.csv has all." } }
            div.controls {
                @if shown.len() > 1 { (html::choice("timeline-run", shown.iter().map(|(_, name)| name))) }
                label { "colour by " select #timeline-colour {
                    @for by in ["model", "tenant", "job"] { option value=(by) { (by) } }
                } }
                input #timeline-find type="search" placeholder="a job's name" aria-label="find a job";
                button type="button" data-zoom="0.6" aria-label="zoom in" { "+" }
                button type="button" data-zoom="1.667" aria-label="zoom out" { "−" }
                button type="button" data-zoom="0" { "all" }
            }
            ul #timeline-legend {}
            canvas tabindex="0" role="img" aria-label="which job held which GPU when" {}
            p #timeline-tip role="status" {}
            p {
                "A row for each GPU, a bar for each stretch in which a job held it. Drag to move; Ctrl and the wheel zoom in time, Shift and the wheel in both; "
                "keys + − 0 and arrows work too."
            }
            (html::data("timeline-data", &json!({ "runs": runs })))
        }
    }
}

fn n_bars(run: &RunResult) -> usize {
    run.timeline.iter().map(|stretch| stretch.slice.gpus.len() as usize).sum()
}

fn data(run: &RunResult) -> Value {
    let rows = gpu_rows(run);
    let row_of: BTreeMap<(usize, u32), usize> = rows.iter().enumerate().map(|(at, gpu)| (*gpu, at)).collect();
    let mut stretches: Vec<_> = run.timeline.iter().collect();
    stretches.sort_by_key(|stretch| (stretch.from, stretch.job));
    let seconds = |micros: i64| (micros as f64 / 1e5).round() / 10.0;
    let bars: Vec<Value> = stretches
        .iter()
        .flat_map(|stretch| stretch.slice.gpus.iter().map(move |gpu| (stretch, gpu)))
        .take(MAX_BARS)
        .filter_map(|(stretch, gpu)| {
            let row = row_of.get(&(stretch.slice.node.index(), gpu))?;
            Some(json!([stretch.job.index(), row, seconds(stretch.from.0), seconds(stretch.to.0)]))
        })
        .collect();
    let name = |node: usize| run.nodes.get(node).cloned().unwrap_or_else(|| node.to_string());
    let jobs: Vec<Value> =
        run.jobs.iter().map(|job| json!([&*job.job_id, &*job.model, job.gpus, &*job.tenant])).collect();
    let from = stretches.iter().map(|stretch| stretch.from.0).min().unwrap_or(0);
    let to = stretches.iter().map(|stretch| stretch.to.0).max().unwrap_or(0).max(from + 1_000_000);
    json!({
        "from": seconds(from),
        "to": seconds(to),
        "rows": rows.iter().map(|(node, gpu)| json!([name(*node), gpu])).collect::<Vec<_>>(),
        "jobs": jobs,
        "bars": bars,
    })
}

/// The rows of a timeline: every GPU that any job held, as the number of its node and its own, in the order of the nodes' names. A
/// folder that was read again numbers nodes as they appear in it.
pub fn gpu_rows(run: &RunResult) -> Vec<(usize, u32)> {
    let mut rows: Vec<(usize, u32)> = run
        .timeline
        .iter()
        .flat_map(|stretch| stretch.slice.gpus.iter().map(move |gpu| (stretch.slice.node.index(), gpu)))
        .collect();
    rows.sort_unstable();
    rows.dedup();
    rows.sort_by_cached_key(|(node, gpu)| (run.nodes.get(*node).map(|name| counted(name)), *node, *gpu));
    rows
}

/// A name in parts of text and number, so that `node2` comes before `node10`.
fn counted(name: &str) -> Vec<(&str, u64)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, after) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let (digits, after) = after.split_at(after.find(|c| !is_digit(c)).unwrap_or(after.len()));
        parts.push((text, digits.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    #[test]
    fn every_gpu_of_a_stretch_is_a_bar_on_its_row() {
        let value = data(&run("las", 1, None));
        assert_eq!(value["rows"].as_array().map(Vec::len), Some(2));
        assert_eq!(value["bars"][1], json!([1, 1, 1030.0, 1160.3]));
        assert_eq!((value["from"].as_f64(), value["to"].as_f64()), (Some(1030.0), Some(1160.3)));
    }

    #[test]
    fn nodes_stand_in_the_order_of_their_names_whenever_they_were_used() {
        let mut run = run("las", 1, None);
        let other = run.timeline[0].slice.node.index() + 1;
        let mut later = run.timeline[0];
        later.slice.node = rota_core::ids::NodeId::from(other);
        run.timeline.push(later);
        run.nodes = vec![String::new(); other + 1];
        (run.nodes[other - 1], run.nodes[other]) = ("node10".into(), "node2".into());
        let names: Vec<Value> =
            data(&run)["rows"].as_array().into_iter().flatten().map(|row| row[0].clone()).collect();
        assert_eq!((&names[0], names.last()), (&json!("node2"), Some(&json!("node10"))));
    }

    #[test]
    fn runs_without_a_timeline_have_no_section() {
        let mut run = run("las", 1, None);
        run.timeline.clear();
        assert_eq!(section(&results(vec![run])).0, "");
    }

    #[test]
    fn a_job_cannot_end_the_script_element() {
        let mut run = run("las", 1, None);
        run.jobs[1].job_id = "</script><b>".into();
        assert!(!section(&results(vec![run])).0.contains("</script><b>"));
    }
}
