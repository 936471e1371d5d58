//! Figures of waiting times, preemptions and the fairness between tenants.

use super::figure::{GREY, stairs};
use super::figures::{COMPARISON, MAX_LINES, group_title, too_many};
use super::style::styles;
use super::units::with_thousands;
use super::{Axis, Bar, Figure, Line, Marks, thin};
use crate::results::{JobRow, RunResult, Window};

/// The most tenants that are drawn.
const MAX_TENANTS: usize = 20;
const THIN_STEP: f64 = 1.0 / 600.0;

/// The distribution of waiting: completion time less time with GPUs.
pub(super) fn waiting(group: &[&RunResult], suffix: &str) -> Option<Figure> {
    let curves: Vec<(&str, Vec<f64>)> = group
        .iter()
        .map(|run| (run.meta.policy.as_str(), run.ascending_s(JobRow::wait)))
        .filter(|(_, waits)| !waits.is_empty())
        .take(MAX_LINES)
        .collect();
    let longest = curves.iter().filter_map(|(_, waits)| waits.last()).copied().fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    // Nobody reads the difference between a second and a minute without GPUs.
    let (x, y) = (
        Axis::log_time("time without GPUs", 60.0_f64.min(longest / 2.0), longest),
        Axis::percent("jobs that waited at most (%)"),
    );
    let line = |((policy, waits), colour): (&(&str, Vec<f64>), usize)| {
        let share = |n: usize| n as f64 / waits.len() as f64;
        let steps: Vec<(f64, f64)> =
            waits.iter().enumerate().map(|(at, wait)| (*wait, share(at + 1))).collect();
        let points = thin::by_distance(&stairs(&steps, longest), |p| (x.place(p.0), y.place(p.1)), THIN_STEP);
        let points = points.into_iter().map(|(wait, share)| (x.within(wait), share)).collect();
        Line { label: (*policy).to_owned(), colour, has_dots: false, points }
    };
    let styles = styles(curves.iter().map(|(policy, _)| *policy));
    Some(Figure {
        name: format!("waiting{suffix}"),
        section: COMPARISON.into(),
        title: group_title("Waiting", group),
        caption: format!(
            "Share of finished jobs that spent at most so long without GPUs between submission and finish; those below the left edge are on it.{}",
            too_many(group.len())
        ),
        marks: Marks::Lines(curves.iter().zip(styles).map(line).collect()),
        x,
        y,
    })
}

/// How often jobs were stopped before their end.
pub(super) fn preemptions(group: &[&RunResult], suffix: &str) -> Option<Figure> {
    let shown: Vec<&&RunResult> = group.iter().take(MAX_LINES).collect();
    let most = shown.iter().map(|run| run.summary.preemptions).max().filter(|most| *most > 0)?;
    let names: Vec<String> = shown.iter().map(|run| run.meta.policy.clone()).collect();
    let styles = styles(names.iter().map(String::as_str));
    let bars = shown.iter().zip(styles).map(|(run, colour)| Bar {
        colour,
        value: run.summary.preemptions as f64,
        text: with_thousands(run.summary.preemptions as f64),
    });
    Some(Figure {
        name: format!("preemptions{suffix}"),
        section: COMPARISON.into(),
        title: group_title("Preemptions", group),
        caption: "Jobs stopped before their end, each time counted.".into(),
        x: Axis::from_zero("preemptions", most as f64),
        y: Axis::names(&names),
        marks: Marks::Bars(bars.collect()),
    })
}

/// A comparison of tenants, a figure for each policy; none where there is one tenant.
pub(super) fn tenants(group: &[&RunResult], suffix: &str) -> Vec<Figure> {
    let shown = group.iter().take(4).enumerate();
    shown.filter_map(|(at, run)| tenants_of(run, &format!("-{}{suffix}", at + 1))).collect()
}

fn tenants_of(run: &RunResult, suffix: &str) -> Option<Figure> {
    let ratios = ratios(run);
    if ratios.len() < 2 {
        return None;
    }
    let names: Vec<String> = ratios.iter().take(MAX_TENANTS).map(|(tenant, ..)| tenant.clone()).collect();
    let highest = ratios.iter().take(MAX_TENANTS).map(|(_, ratio, _)| *ratio).fold(1.0, f64::max);
    let bars = ratios.iter().take(MAX_TENANTS).enumerate().map(|(at, (_, ratio, n_jobs))| Bar {
        colour: at % GREY,
        value: *ratio,
        text: format!("{ratio:.2}, {n_jobs} jobs"),
    });
    let jain = jain(&ratios.iter().map(|(_, ratio, _)| *ratio).collect::<Vec<_>>());
    Some(Figure {
        name: format!("tenants{suffix}"),
        section: COMPARISON.into(),
        title: format!("Tenants under {}", run.meta.policy),
        caption: format!(
            "Mean finish-time ratio of each tenant's jobs: completion time over the time with a fair part of the cluster; above 1 a tenant fared worse than that. Jain's index over {} tenants: {jain:.3} (1 is all alike).{}",
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
        if let Some(ratio) = job.finish_time_ratio() {
            let entry = by_tenant.entry(&job.tenant).or_default();
            *entry = (entry.0 + ratio, entry.1 + 1);
        }
    }
    let mut ratios: Vec<(String, f64, usize)> =
        by_tenant.into_iter().map(|(tenant, (sum, n))| (tenant.to_owned(), sum / n as f64, n)).collect();
    ratios.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    ratios
}

/// Jain's index of fairness (Jain, Chiu, Hawe, 1984): 1 when all are alike, 1/n when one has everything.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
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
            job.fairness_micro = Some(if at == 0 { 1_000_000 } else { 7_500_000 });
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
