//! Fewer points that look the same: a page of a million decisions must stay light.

/// Keeps a point when it is at least `step` away from the last one kept, in either direction of a plot whose
/// sides have length 1. Ends always stay, and so does the point before each jump, so that steps stay steps.
pub(super) fn by_distance(
    points: &[(f64, f64)],
    place: impl Fn((f64, f64)) -> (f64, f64),
    step: f64,
) -> Vec<(f64, f64)> {
    let is_far = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() >= step || (a.1 - b.1).abs() >= step;
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut last = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut skipped: Option<(f64, f64)> = None;
    for (index, point) in points.iter().enumerate() {
        let at = place(*point);
        if is_far(at, last) || index + 1 == points.len() {
            kept.extend(skipped.take().filter(|before| is_far(place(*before), at)));
            kept.push(*point);
            last = at;
        } else {
            skipped = Some(*point);
        }
    }
    kept
}

/// A step function given by its values from each time on, until `end`: as it is when it has few steps, else its
/// average over `n_parts` equal parts. Also returns the length of a part if it was averaged.
pub(super) fn by_averaging(steps: &[(f64, f64)], end: f64, n_parts: usize) -> (Vec<(f64, f64)>, Option<f64>) {
    let Some(&(begin, _)) = steps.first() else { return (Vec::new(), None) };
    if steps.len() <= n_parts || end <= begin {
        return (steps.to_vec(), None);
    }
    let part = (end - begin) / n_parts as f64;
    let mut areas = vec![0.0; n_parts];
    let ends = steps.iter().skip(1).map(|step| step.0).chain([end]);
    for (&(from, value), to) in steps.iter().zip(ends) {
        add_area(&mut areas, (from - begin) / part, (to.min(end) - begin) / part, value);
    }
    (areas.into_iter().enumerate().map(|(at, area)| (begin + at as f64 * part, area)).collect(), Some(part))
}

/// Adds `value` x length to every part of length 1 that [from, to) overlaps.
fn add_area(areas: &mut [f64], from: f64, to: f64, value: f64) {
    let mut at = from.max(0.0);
    while at < to {
        let part = at as usize;
        let Some(area) = areas.get_mut(part) else { return };
        let until = to.min((part + 1) as f64);
        *area += value * (until - at);
        at = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends_and_its_jump() {
        let curve: Vec<(f64, f64)> =
            (0..=10_000).map(|i| (f64::from(i) / 10_000.0, if i < 5_000 { 0.0 } else { 1.0 })).collect();
        let thin = by_distance(&curve, |p| p, 0.01);
        assert!((100..=120).contains(&thin.len()), "{} points", thin.len());
        assert_eq!((thin[0], thin[thin.len() - 1]), (curve[0], curve[10_000]));
        assert!(thin.contains(&curve[4_999]) && thin.contains(&curve[5_000]));
    }

    #[test]
    fn averaging_keeps_the_area_under_the_steps() {
        let steps: Vec<(f64, f64)> = (0..1_000).map(|i| (f64::from(i) * 1.7, f64::from(i % 7))).collect();
        let end = 1_705.0;
        let (parts, length) = by_averaging(&steps, end, 64);
        let length = length.expect("averaged");
        let ends = steps.iter().skip(1).map(|s| s.0).chain([end]);
        let area: f64 = steps.iter().zip(ends).map(|(s, to)| s.1 * (to - s.0)).sum();
        let averaged: f64 = parts.iter().map(|p| p.1 * length).sum();
        assert!((area - averaged).abs() < 1e-6 * area, "{area} became {averaged}");
        assert_eq!(parts.len(), 64);
    }

    #[test]
    fn few_steps_stay_as_they_are() {
        let steps = [(0.0, 1.0), (5.0, 2.0)];
        assert_eq!(by_averaging(&steps, 9.0, 64), (steps.to_vec(), None));
        assert_eq!(by_averaging(&[], 9.0, 64), (vec![], None));
    }
}
