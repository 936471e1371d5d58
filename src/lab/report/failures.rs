//! What failures cost: the GPU time whose work did not count.

use super::figures::{COMPARISON, MAX_LINES, group_title};
use super::style::styles;
use super::{Axis, Bar, Figure, Marks};
use crate::results::{Faults, RunResult};

/// GPU time that was lost, spent on restarts or held by jobs that failed; none where nothing could fail.
pub(super) fn goodput(group: &[&RunResult], suffix: &str) -> Option<Figure> {
    let shown = group.iter().take(MAX_LINES);
    let runs: Vec<(&str, &Faults, f64)> = shown
        .filter_map(|run| {
            let faults = run.summary.faults.as_ref()?;
            Some((run.meta.policy.as_str(), faults, faults.goodput?))
        })
        .collect();
    let most = runs.iter().map(|(_, _, goodput)| 1.0 - goodput).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let names: Vec<String> = runs.iter().map(|(policy, ..)| (*policy).to_owned()).collect();
    let styles = styles(names.iter().map(String::as_str));
    let bars = runs.iter().zip(styles).map(|((_, faults, goodput), colour)| {
        let wasted_h = faults.lost_h + faults.overhead_h + faults.premature_h;
        let percent = |hours: f64| 100.0 * (1.0 - goodput) * hours / wasted_h;
        let text = format!(
            "lost {:.2}, restarts {:.2}, failed jobs {:.2}",
            percent(faults.lost_h),
            percent(faults.overhead_h),
            percent(faults.premature_h)
        );
        Bar { colour, value: 100.0 * (1.0 - goodput), text }
    });
    Some(Figure {
        name: format!("goodput{suffix}"),
        section: COMPARISON.into(),
        title: group_title("GPU time that came to nothing", group),
        caption: "GPU time held whose work was lost in failures, in which jobs restarted or waited for data, or that jobs used which failed \
                  or were killed, in percent of all GPU time held; the rest is goodput."
            .into(),
        x: Axis::from_zero("GPU time held (%)", 100.0 * most),
        y: Axis::names(&names),
        marks: Marks::Bars(bars.collect()),
    })
}
