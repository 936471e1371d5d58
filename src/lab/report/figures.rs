//! Which figures a set of results calls for, and what each shows.
//!
//! Runs are drawn together when they have the same cluster and load; of several seeds the first is drawn
//! over time, and all count in the curve against load.

use super::figure::stairs;
use super::style::styles;
use super::units::with_thousands;
use super::{Axis, Bar, Figure, Line, Marks, Whisker, bound_gap, failures, fairness, over_time, thin};
use crate::results::{JobRow, Results, RunMeta, RunResult, file_suffixes};

/// The most lines that can be distinguished in one figure.
pub(crate) const MAX_LINES: usize = 16;
/// Runs whose resources over time are drawn, three figures each.
const MAX_RUNS_OVER_TIME: usize = 12;
/// Points closer than this part of the width are one.
const THIN_STEP: f64 = 1.0 / 600.0;

/// Heading of what is drawn for all policies together.
pub(super) const COMPARISON: &str = "Results";

/// Every figure there is something to draw for.
pub fn figures(results: &Results) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(jct_against_load(&results.runs));
    let groups = groups(&results.runs);
    let unit = over_time::time_unit(&results.runs);
    for (group, suffix) in groups.iter().zip(group_suffixes(&groups)) {
        let suffix = suffix.as_str();
        figures.extend(jct_cdf(group, suffix));
        figures.extend(deadlines(group, suffix));
        figures.extend(over_time::curves(group, suffix, unit));
        figures.extend(fairness::waiting(group, suffix));
        figures.extend(fairness::preemptions(group, suffix));
        figures.extend(fairness::tenants(group, suffix));
        figures.extend(failures::goodput(group, suffix));
        figures.extend(bound_gap::bound_gap(group, suffix, unit));
    }
    let metas: Vec<&RunMeta> = results.runs.iter().map(|run| &run.meta).collect();
    let names = results.run_names();
    for ((run, suffix), name) in
        results.runs.iter().zip(file_suffixes(&metas)).zip(&names).take(MAX_RUNS_OVER_TIME)
    {
        let name = (names.len() > 1).then_some(name);
        figures.extend(over_time::resources(run, &suffix, name, unit));
    }
    figures
}

/// What a page shows that is drawn again while someone waits: completion times, deadlines, and jobs and GPUs over time, of
/// runs with the same cluster and load.
pub fn comparison(runs: &[&RunResult]) -> Vec<Figure> {
    let unit = over_time::time_unit(runs.iter().copied());
    let mut figures = Vec::new();
    figures.extend(jct_cdf(runs, ""));
    figures.extend(deadlines(runs, ""));
    figures.extend(over_time::curves(runs, "", unit));
    figures.extend(over_time::gpu_use(runs, "", unit));
    figures
}

/// Runs with the same cluster and load, one for each policy.
fn groups(runs: &[RunResult]) -> Vec<Vec<&RunResult>> {
    let mut groups: Vec<Vec<&RunResult>> = Vec::new();
    let key = |run: &RunResult| (run.meta.cluster.name.clone(), run.meta.jobs_per_hour.map(f64::to_bits));
    for run in runs {
        match groups.iter_mut().find(|group| key(group[0]) == key(run)) {
            None => groups.push(vec![run]),
            Some(group) if group.iter().any(|other| other.meta.policy == run.meta.policy) => {}
            Some(group) => group.push(run),
        }
    }
    groups
}

/// How the names of a group's files end: with its load, where that tells the groups apart, else with a number from the second on.
fn group_suffixes(groups: &[Vec<&RunResult>]) -> Vec<String> {
    let loads: Vec<Option<f64>> =
        groups.iter().map(|group| group.first().and_then(|run| run.meta.jobs_per_hour)).collect();
    let is_told = |(at, load): (usize, &Option<f64>)| load.is_some() && !loads[..at].contains(load);
    let by_load = loads.len() > 1 && loads.iter().enumerate().all(is_told);
    let suffix = |(at, load): (usize, &Option<f64>)| match load {
        Some(load) if by_load => format!("-{load}-per-hour"),
        _ if at > 0 => format!("-{}", at + 1),
        _ => String::new(),
    };
    loads.iter().enumerate().map(suffix).collect()
}

pub(super) fn group_title(title: &str, group: &[&RunResult]) -> String {
    match group.first().and_then(|run| run.meta.jobs_per_hour) {
        Some(load) => format!("{title}, {load} jobs/h"),
        None => title.to_owned(),
    }
}

pub(super) fn too_many(n_lines: usize) -> String {
    if n_lines > MAX_LINES {
        format!(" The first {MAX_LINES} of {n_lines} policies are drawn.")
    } else {
        String::new()
    }
}

pub(super) fn hidden_note(n_lines: usize) -> &'static str {
    if n_lines > 1 { " Where curves coincide, the last in the legend is on top." } else { "" }
}

fn jct_cdf(group: &[&RunResult], suffix: &str) -> Option<Figure> {
    let curves: Vec<(&str, Vec<f64>)> = group
        .iter()
        .map(|run| (run.meta.policy.as_str(), run.ascending_s(JobRow::jct)))
        .filter(|(_, jcts)| !jcts.is_empty())
        .collect();
    let longest = curves.iter().filter_map(|(_, jcts)| jcts.last()).copied().fold(0.0, f64::max);
    let shortest = curves.iter().filter_map(|(_, jcts)| jcts.first()).copied().fold(f64::INFINITY, f64::min);
    if curves.is_empty() {
        return None;
    }
    let x = Axis::log_time("job completion time", shortest, longest);
    let y = Axis::percent("jobs finished within (%)");
    let styles = styles(curves.iter().map(|(policy, _)| *policy));
    let lines = curves.iter().take(MAX_LINES).zip(styles).map(|((policy, jcts), colour)| {
        let share = |n: usize| n as f64 / jcts.len() as f64;
        let steps: Vec<(f64, f64)> = jcts.iter().enumerate().map(|(at, jct)| (*jct, share(at + 1))).collect();
        let mut points = vec![(jcts[0], 0.0)];
        points.extend(stairs(&steps, longest));
        let points = thin::by_distance(&points, |p| (x.place(p.0), y.place(p.1)), THIN_STEP);
        Line { label: (*policy).to_owned(), colour, has_dots: false, points }
    });
    let lines = lines.collect();
    let measured = group.iter().map(|run| run.summary.measured).max().unwrap_or(0);
    Some(Figure {
        name: format!("jct-cdf{suffix}"),
        section: COMPARISON.into(),
        title: group_title("Job completion time", group),
        caption: format!(
            "Share of finished jobs that took at most so long from submission to finish; up to {} jobs per curve.{}{}",
            with_thousands(measured as f64),
            hidden_note(curves.len()),
            too_many(curves.len())
        ),
        x,
        y,
        marks: Marks::Lines(lines),
    })
}

fn jct_against_load(runs: &[RunResult]) -> Option<Figure> {
    let mut loads: Vec<f64> = runs.iter().filter_map(|run| run.meta.jobs_per_hour).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    if loads.len() < 2 {
        return None;
    }
    let mut policies: Vec<&str> = Vec::new();
    for run in runs {
        if !policies.contains(&run.meta.policy.as_str()) {
            policies.push(&run.meta.policy);
        }
    }
    let over_seeds = |policy: &str, load: f64| {
        let of_seeds: Vec<f64> = runs
            .iter()
            .filter(|run| run.meta.policy == policy && run.meta.jobs_per_hour == Some(load))
            .filter_map(|run| run.summary.avg_jct_s.map(|jct| jct / 3_600.0))
            .collect();
        crate::statistics::interval(&of_seeds)
    };
    let mut whiskers: Vec<Whisker> = Vec::new();
    let lines: Vec<Line> = policies
        .iter()
        .take(MAX_LINES)
        .zip(styles(policies.iter().copied()))
        .map(|(policy, colour)| {
            let known: Vec<_> =
                loads.iter().filter_map(|load| Some((*load, over_seeds(policy, *load)?))).collect();
            let of_several = known.iter().filter(|(_, interval)| interval.n > 1);
            whiskers.extend(of_several.map(|(at, interval)| Whisker {
                colour,
                at: *at,
                low: interval.low,
                high: interval.high,
            }));
            let points = known.iter().map(|(load, interval)| (*load, interval.mean)).collect();
            Line { label: (*policy).to_owned(), colour, has_dots: true, points }
        })
        .collect();
    let (least, highest) = extremes(&lines, &whiskers);
    let y = Axis::spanning("average JCT (h)", least, highest);
    let seeds = if whiskers.is_empty() { "" } else { " Means over seeds, with 95 % confidence intervals." };
    Some(Figure {
        name: "jct-load".into(),
        section: COMPARISON.into(),
        title: "Average job completion time against load".into(),
        caption: format!("Lower is better.{seeds}{}{}", y.note(), too_many(policies.len())),
        x: Axis::at_values("jobs per hour", &loads),
        y,
        marks: Marks::Measured(lines, whiskers),
    })
}

/// The least and the largest value of lines and of the intervals at their points.
pub(crate) fn extremes(lines: &[Line], whiskers: &[Whisker]) -> (f64, f64) {
    let points = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let ends = whiskers.iter().flat_map(|whisker| [whisker.low, whisker.high]);
    points.chain(ends).fold((f64::INFINITY, 0.0), |(lo, hi), value| (lo.min(value), hi.max(value)))
}

fn deadlines(group: &[&RunResult], suffix: &str) -> Option<Figure> {
    let with_ratio: Vec<(&RunResult, f64)> =
        group.iter().filter_map(|run| Some((*run, run.summary.deadline_ratio?))).take(MAX_LINES).collect();
    let n_jobs = with_ratio.iter().map(|(run, _)| run.summary.deadline_jobs).max()?;
    let names: Vec<String> = with_ratio.iter().map(|(run, _)| run.meta.policy.clone()).collect();
    let styles = styles(names.iter().map(String::as_str));
    let bars = with_ratio.iter().zip(styles).map(|((_, ratio), colour)| Bar {
        colour,
        value: *ratio,
        text: format!("{:.1} %", ratio * 100.0),
    });
    Some(Figure {
        name: format!("deadlines{suffix}"),
        section: COMPARISON.into(),
        title: group_title("Deadlines met", group),
        caption: format!(
            "Of {} jobs with a deadline; declined jobs count as not met.",
            with_thousands(n_jobs as f64)
        ),
        x: Axis::percent("jobs with a deadline (%)"),
        y: Axis::names(&names),
        marks: Marks::Bars(bars.collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};

    fn named<'a>(figures: &'a [Figure], name: &str) -> &'a Figure {
        figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no figure {name}"))
    }

    fn lines(figure: &Figure) -> &[Line] {
        match &figure.marks {
            Marks::Lines(lines) | Marks::Measured(lines, _) => lines,
            _ => panic!("{} has no lines", figure.name),
        }
    }

    #[test]
    fn the_cdf_rises_by_one_job_at_each_completion_time() {
        let figures = figures(&results(vec![run("las", 1, None)]));
        let curve = &lines(named(&figures, "jct-cdf"))[0].points;
        let share = |n: f64| n / 3.0;
        assert_eq!(
            curve,
            &[
                (50.0, 0.0),
                (50.0, share(1.0)),
                (90.0, share(1.0)),
                (90.0, share(2.0)),
                (150.25, share(2.0)),
                (150.25, share(3.0))
            ]
        );
    }

    #[test]
    fn several_loads_give_a_curve_and_a_cdf_for_each() {
        let mut runs = vec![run("las", 1, Some(8.0)), run("las", 2, Some(8.0)), run("las", 1, Some(4.0))];
        runs[0].summary.avg_jct_s = Some(3_600.0);
        runs[1].summary.avg_jct_s = Some(7_200.0);
        runs[2].summary.avg_jct_s = Some(1_800.0);
        let figures = figures(&results(runs));
        assert_eq!(
            lines(named(&figures, "jct-load"))[0].points,
            [(4.0, 0.5), (8.0, 1.5)],
            "seeds are averaged"
        );
        assert_eq!(named(&figures, "jct-cdf-8-per-hour").title, "Job completion time, 8 jobs/h");
        assert_eq!(named(&figures, "jct-cdf-4-per-hour").title, "Job completion time, 4 jobs/h");
        assert!(figures.iter().any(|f| f.name == "gpus-las-8-per-hour-seed2"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let mut run = run("las", 1, None);
        run.jobs.clear();
        run.samples.clear();
        run.recount();
        assert_eq!(figures(&results(vec![run])), []);
        assert_eq!(figures(&results(vec![])), []);
    }
}
