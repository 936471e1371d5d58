//! Figure of how far decisions are from the solver's bound, where `--bound` asked for it.

use super::figure::stairs;
use super::figures::{COMPARISON, MAX_LINES, group_title, too_many};
use super::style::styles;
use super::{Axis, Figure, Line, Marks, TimeUnit, thin};
use crate::results::RunResult;

/// Parts that a long run is averaged over.
const N_PARTS: usize = 240;

/// The throughput that decisions leave unused, one line for each policy; `None` when no run has bounds.
pub(super) fn bound_gap(group: &[&RunResult], suffix: &str, unit: TimeUnit) -> Option<Figure> {
    let drawn: Vec<&&RunResult> = group.iter().filter(|run| !run.bounds.is_empty()).take(MAX_LINES).collect();
    let time =
        |run: &RunResult, at: usize| run.samples.get(at).map_or(0.0, |sample| sample.time.as_secs_f64());
    let begin = drawn.iter().map(|run| time(run, 0)).fold(f64::INFINITY, f64::min);
    let end = drawn
        .iter()
        .map(|run| time(run, run.samples.len().saturating_sub(1)))
        .fold(f64::NEG_INFINITY, f64::max);
    if drawn.is_empty() {
        return None;
    }
    let line = |(run, colour): (&&&RunResult, usize)| {
        let gap = |bound: &crate::results::RoundBound| {
            if bound.bound > 0.0 { (1.0 - bound.reached / bound.bound).max(0.0) } else { 0.0 }
        };
        let gaps: Vec<(f64, f64)> =
            run.bounds.iter().enumerate().map(|(at, bound)| (time(run, at), gap(bound))).collect();
        let (steps, _) = thin::by_averaging(&gaps, end, N_PARTS);
        Line { label: run.meta.policy.clone(), colour, has_dots: false, points: stairs(&steps, end) }
    };
    let styles = styles(drawn.iter().map(|run| run.meta.policy.as_str()));
    let lines: Vec<Line> = drawn.iter().zip(styles).map(line).collect();
    let mean = |run: &RunResult| {
        let (reached, bound) =
            run.bounds.iter().fold((0.0, 0.0), |sum, b| (sum.0 + b.reached, sum.1 + b.bound));
        if bound > 0.0 { 100.0 * (1.0 - reached / bound) } else { 0.0 }
    };
    let means: Vec<String> =
        drawn.iter().map(|run| format!("{} {:.1} %", run.meta.policy, mean(run))).collect();
    Some(Figure {
        name: format!("bound-gap{suffix}"),
        section: COMPARISON.into(),
        title: group_title("Throughput left unused", group),
        caption: format!(
            "Part of the throughput that the jobs of each decision could have had at most, by the solver's bound over all CPU and memory levels, servers ignored. Over all decisions: {}.{}",
            means.join(", "),
            too_many(group.len())
        ),
        x: Axis::time_in("time", begin, end, unit),
        y: Axis::percent("left unused (%)"),
        marks: Marks::Lines(lines),
    })
}
