//! Figures of waiting times, preemptions and the fairness between tenants.
//!
//! A job's finish-time ratio is its completion time over the time it held GPUs: 1 is a job that never waited. Themis
//! (NSDI'20, §3) compares with the time on a fair part of the cluster, which a result folder does not know; the order
//! of tenants is the same where their jobs are alike.

use super::figure::{PALETTE, stairs};
use super::figures::{COMPARISON, MAX_LINES, group_name, group_title, too_many};
use super::units::with_thousands;
use super::{Axis, Bar, Figure, Line, Marks, thin};
use crate::results::{JobRow, RunResult, Window};

/// The most tenants that are drawn.
const MAX_TENANTS: usize = 20;
const THIN_STEP: f64 = 1.0 / 600.0;

/// The distribution of the time until the first GPU.
pub(super) fn queueing(group: &[&RunResult], index: usize) -> Option<Figure> {
    let curves: Vec<(&str, Vec<f64>)> = group
        .iter()
        .map(|run| (run.meta.policy.as_str(), run.ascending_s(JobRow::queue)))
        .filter(|(_, waits)| !waits.is_empty())
        .take(MAX_LINES)
        .collect();
    let longest = curves.iter().filter_map(|(_, waits)| waits.last()).copied().fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let (x, y) = (
        Axis::log_time("time until the first GPU", 1.0_f64.min(longest / 2.0), longest),
        Axis::percent("jobs started within (%)"),
    );
    let line = |(colour, (policy, waits)): (usize, &(&str, Vec<f64>))| {
        let share = |n: usize| n as f64 / waits.len() as f64;
        let steps: Vec<(f64, f64)> =
            waits.iter().enumerate().map(|(at, wait)| (*wait, share(at + 1))).collect();
        let points = thin::by_distance(&stairs(&steps, longest), |p| (x.place(p.0), y.place(p.1)), THIN_STEP);
        Line { label: (*policy).to_owned(), colour, has_dots: false, points }
    };
    Some(Figure {
        name: group_name("queueing", index),
        section: COMPARISON.into(),
        title: group_title("Time until the first GPU", group),
        caption: format!(
            "Share of jobs that started within so long of their submission; jobs that started at once are at the left edge.{}",
            too_many(group.len())
        ),
        marks: Marks::Lines(curves.iter().enumerate().map(line).collect()),
        x,
        y,
    })
}

/// How often jobs were stopped before their end.
pub(super) fn preemptions(group: &[&RunResult], index: usize) -> Option<Figure> {
    let shown: Vec<&&RunResult> = group.iter().take(MAX_LINES).collect();
    let most = shown.iter().map(|run| run.summary.preemptions).max().filter(|most| *most > 0)?;
    let names: Vec<String> = shown.iter().map(|run| run.meta.policy.clone()).collect();
    let bars = shown.iter().enumerate().map(|(at, run)| Bar {
        colour: at % PALETTE.len(),
        value: run.summary.preemptions as f64,
        text: with_thousands(run.summary.preemptions as f64),
    });
    Some(Figure {
        name: group_name("preemptions", index),
        section: COMPARISON.into(),
        title: group_title("Preemptions", group),
        caption: "Jobs stopped before their end, each time counted.".into(),
        x: Axis::from_zero("preemptions", most as f64),
        y: Axis::names(&names),
        marks: Marks::Bars(bars.collect()),
    })
}

/// A comparison of tenants, a figure for each policy; none where there is one tenant.
pub(super) fn tenants(group: &[&RunResult], index: usize) -> Vec<Figure> {
    let shown = group.iter().take(4).enumerate();
    shown.filter_map(|(at, run)| tenants_of(run, &format!("-{}", index * 4 + at + 1))).collect()
}

fn tenants_of(run: &RunResult, suffix: &str) -> Option<Figure> {
    let ratios = ratios(run);
    if ratios.len() < 2 {
        return None;
    }
    let names: Vec<String> = ratios.iter().take(MAX_TENANTS).map(|(tenant, ..)| tenant.clone()).collect();
    let highest = ratios.iter().take(MAX_TENANTS).map(|(_, ratio, _)| *ratio).fold(1.0, f64::max);
    let bars = ratios.iter().take(MAX_TENANTS).enumerate().map(|(at, (_, ratio, n_jobs))| Bar {
        colour: at % PALETTE.len(),
        value: *ratio,
        text: format!("{ratio:.2}, {n_jobs} jobs"),
    });
    let jain = jain(&ratios.iter().map(|(_, ratio, _)| *ratio).collect::<Vec<_>>());
    Some(Figure {
        name: format!("tenants{suffix}"),
        section: COMPARISON.into(),
        title: format!("Tenants under {}", run.meta.policy),
        caption: format!(
            "Mean finish-time ratio of each tenant's jobs: completion time over time with GPUs, 1 is no waiting. Jain's index over {} tenants: {jain:.3} (1 is all alike).{}",
            ratios.len(),
            if ratios.len() > MAX_TENANTS {
                format!(" The {MAX_TENANTS} worst off are drawn.")
            } else {
                String::new()
            }
        ),
        x: Axis::from_zero("finish-time ratio", highest),
        y: Axis::names(&names),
        marks: Marks::Bars(bars.collect()),
    })
}

/// Tenants with their mean finish-time ratio and the number of jobs it is the mean of, the worst off first.
fn ratios(run: &RunResult) -> Vec<(String, f64, usize)> {
    let mut by_tenant: std::collections::BTreeMap<&str, (f64, usize)> = Default::default();
    for job in Window::of(run.meta.window, &run.jobs) {
        if let Some(ratio) = finish_time_ratio(job) {
            let entry = by_tenant.entry(&job.tenant).or_default();
            *entry = (entry.0 + ratio, entry.1 + 1);
        }
    }
    let mut ratios: Vec<(String, f64, usize)> =
        by_tenant.into_iter().map(|(tenant, (sum, n))| (tenant.to_owned(), sum / n as f64, n)).collect();
    ratios.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    ratios
}

/// Completion time over the time with GPUs; elastic jobs count by the GPUs they asked for.
fn finish_time_ratio(job: &JobRow) -> Option<f64> {
    let held_s = job.service.as_secs_f64() / f64::from(job.gpus.max(1));
    let jct_s = job.jct()?.as_secs_f64();
    (held_s > 0.0).then(|| jct_s / held_s)
}

/// Jain's index of fairness (Jain, Chiu, Hawe, 1984): 1 when all are alike, 1/n when one has everything.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use rota_core::time::Span;

    use super::*;
    use crate::results::samples::run;

    #[test]
    fn jains_index_is_one_for_equals_and_small_for_one_winner() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }

    #[test]
    fn tenants_are_ranked_by_how_long_their_jobs_took() {
        let mut run = run("las", 1, None);
        for (at, job) in run.jobs.iter_mut().enumerate() {
            job.tenant = if at == 0 { "calm".into() } else { "hurried".into() };
            job.gpus = 1;
            job.service = if at == 0 { job.jct().unwrap_or(Span::ZERO) } else { Span::from_secs(10) };
        }
        let ratios = ratios(&run);
        assert_eq!((ratios[1].0.as_str(), ratios[1].1), ("calm", 1.0));
        assert_eq!(ratios[0].0, "hurried");
        assert!(ratios[0].1 > 5.0, "{ratios:?}");
        assert!(tenants_of(&run, "").is_some_and(|figure| figure.caption.contains("Jain's index over 2")));
    }

    #[test]
    fn one_tenant_is_not_compared_with_itself() {
        let mut run = run("las", 1, None);
        run.jobs.iter_mut().for_each(|job| job.tenant = "one".into());
        assert_eq!(tenants_of(&run, ""), None);
    }
}
