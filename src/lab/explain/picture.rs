//! An explanation as pictures: GPUs over time, and speed where it was not the best.

use super::Explanation;
use crate::report::{Axis, Figure, GREY, Line, Marks, PALETTE_LENGTH, TimeUnit, styles};

/// What there is to draw; nothing where the folder does not say what ran where.
pub(super) fn pictures(job: &Explanation, unit: TimeUnit) -> Vec<Figure> {
    if job.phases.is_empty() {
        return Vec::new();
    }
    let colour = styles([job.policy.as_str()]).first().copied().unwrap_or(0);
    [Some(gpus(job, colour, unit)), speed(job, colour, unit)].into_iter().flatten().collect()
}

fn gpus(job: &Explanation, colour: usize, unit: TimeUnit) -> Figure {
    let (from, to) = (job.arrival_s, job.last_s());
    // After its end it holds nothing, and does not wait either.
    let until = job.finish_s.unwrap_or(to);
    let held = steps(job.phases.iter().map(|phase| (phase.from_s, phase.to_s, phase.gpus)), from, until);
    let asked = f64::from(job.gpus);
    let mut lines = vec![
        line("asked", GREY, vec![(from, asked), (until, asked)]),
        line(&format!("held under {}", job.policy), colour, held),
    ];
    // Where no number of GPUs was enough, nothing is drawn.
    let shares = &job.deadline_shares;
    let ends = shares.iter().skip(1).map(|share| share.from_s).chain(job.finish_s).chain([to]);
    let needed = shares.iter().zip(ends).filter_map(|(share, end)| {
        let gpus = f64::from(share.gpus?);
        (end > share.from_s).then(|| vec![(share.from_s, gpus), (end, gpus)])
    });
    for (at, points) in needed.enumerate() {
        lines.push(line(if at == 0 { "its deadline asked for" } else { "" }, NEEDED, points));
    }
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(1.0, f64::max);
    let y = Axis::counts("GPUs", most * 1.05);
    lines.extend(job.deadline_s.map(|at| line("deadline", DEADLINE, vec![(at, 0.0), (at, most * 1.05)])));
    Figure {
        name: "gpus".into(),
        section: "Over time".into(),
        title: "GPUs over time".into(),
        caption: "From its submission on; at 0 it waits.".into(),
        x: Axis::time_in("time", from, to, unit),
        y,
        marks: Marks::Lines(lines),
    }
}

/// The dotted line of what a deadline asks for, and the dashed grey of the deadline itself.
const NEEDED: usize = 6 + 2 * PALETTE_LENGTH;
const DEADLINE: usize = GREY + PALETTE_LENGTH;

fn speed(job: &Explanation, colour: usize, unit: TimeUnit) -> Option<Figure> {
    if job.slow.is_empty() {
        return None;
    }
    let (from, to) = (job.arrival_s, job.last_s());
    let mut times: Vec<f64> = job.phases.iter().flat_map(|phase| [phase.from_s, phase.to_s]).collect();
    times.extend(job.slow.iter().flat_map(|slow| [slow.from_s, slow.to_s]));
    times.sort_by(f64::total_cmp);
    times.dedup();
    let periods = times.windows(2).filter_map(|ends| {
        let (from, to) = (ends[0], ends[1]);
        let middle = (from + to) / 2.0;
        job.phases.iter().find(|phase| phase.from_s <= middle && middle < phase.to_s)?;
        let slow = job.slow.iter().find(|slow| slow.from_s <= middle && middle < slow.to_s);
        Some((from, to, slow.map_or(1.0, |slow| slow.of_best)))
    });
    Some(Figure {
        name: "speed".into(),
        section: "Over time".into(),
        title: "Speed over time".into(),
        caption: "Compared with its best speed on the GPUs it held, with all the CPUs and memory it can use; at 0 it waits.".into(),
        x: Axis::time_in("time", from, to, unit),
        y: Axis::percent("speed (% of best)"),
        marks: Marks::Lines(vec![line("", colour, steps(periods, from, to))]),
    })
}

fn line(label: &str, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { label: label.to_owned(), colour, has_dots: false, points }
}

/// A line that has these values in these periods, and 0 between them.
fn steps(periods: impl Iterator<Item = (f64, f64, f64)>, from: f64, to: f64) -> Vec<(f64, f64)> {
    let mut points = vec![(from, 0.0)];
    let mut end = from;
    for (begins, ends, value) in periods {
        if begins > end {
            points.extend([(end, 0.0), (begins, 0.0)]);
        }
        points.extend([(begins, value), (ends, value)]);
        end = ends;
    }
    points.push((end, 0.0));
    points.push((to, 0.0));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_at_zero_between_periods() {
        let points = steps([(2.0, 3.0, 4.0), (3.0, 4.0, 2.0)].into_iter(), 0.0, 5.0);
        let expected = [
            (0.0, 0.0),
            (0.0, 0.0),
            (2.0, 0.0),
            (2.0, 4.0),
            (3.0, 4.0),
            (3.0, 2.0),
            (4.0, 2.0),
            (4.0, 0.0),
            (5.0, 0.0),
        ];
        assert_eq!(points, expected);
    }
}
