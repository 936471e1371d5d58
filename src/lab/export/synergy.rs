//! Synergy's CSVs: for each run the completion times with their distribution, and for each policy the average
//! completion time at each load.
//!
//! The original names columns after its series, and its own scripts read them by position: row number, series, seconds,
//! fraction of all jobs that took at most this long.

use super::{Files, file_name, finished};
use crate::results::{RunResult, Window};

pub(super) fn write_run(run: &RunResult, name: &str, files: &mut Files) {
    let load = run.meta.jobs_per_hour.map(|load| format!("_{load:.1}")).unwrap_or_default();
    let policy = file_name(&run.meta.policy);
    files.add(&format!("{policy}{load}.csv"), rows(run, true));
    files.add(&format!("{name}/job_completion.csv"), rows(run, false));
}

/// Completion times in the order of completion, or in ascending order with `is_sorted`.
fn rows(run: &RunResult, is_sorted: bool) -> Vec<String> {
    let counted = Window::of(run.meta.window, &run.jobs).len();
    let first = run.meta.window.map_or(0, |window| window.bounds().0 as usize);
    let jcts: Vec<(usize, f64)> = finished(run)
        .into_iter()
        .filter(|(at, _)| (first..first + counted).contains(at))
        .filter_map(|(at, _)| Some((at, run.jobs[at].jct()?.as_secs_f64())))
        .collect();
    let mut ascending: Vec<f64> = jcts.iter().map(|(_, jct)| *jct).collect();
    ascending.sort_by(f64::total_cmp);
    // Equal values share the average of their ranks.
    let part = |jct: f64| {
        let below = ascending.partition_point(|other| *other < jct);
        let up_to = ascending.partition_point(|other| *other <= jct);
        (below + up_to + 1) as f64 / 2.0 / ascending.len() as f64
    };
    let mut numbered: Vec<(usize, usize, f64)> =
        jcts.iter().enumerate().map(|(number, (at, jct))| (number, *at, *jct)).collect();
    if is_sorted {
        numbered.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)));
    }
    let mut rows = vec![",job_id,jct (seconds),cdf".to_owned()];
    rows.extend(
        numbered
            .iter()
            .map(|(number, at, jct)| format!("{number},{},{jct},{}", run.jobs[*at].job_id, part(*jct))),
    );
    rows
}

/// `load,hours` without a heading, a file for each policy.
pub(super) fn write_averages(runs: &[RunResult], files: &mut Files) {
    let mut policies: Vec<&str> = runs.iter().map(|run| run.meta.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    for policy in policies {
        let mut points: Vec<(f64, f64)> = runs
            .iter()
            .filter(|run| run.meta.policy == policy)
            .filter_map(|run| Some((run.meta.jobs_per_hour?, run.summary.avg_jct_s? / 3_600.0)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            let rows = points.iter().map(|(load, hours)| format!("{load},{hours}"));
            files.add(&format!("{}_avg_jct.csv", file_name(policy)), rows);
        }
    }
}
