//! The share of jobs that were done within a time: from completion times, or through published points.

use serde::Serialize;

/// A step function from hours to shares of jobs; both ascend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    steps: Vec<(f64, f64)>,
    /// Jobs behind it.
    n_jobs: usize,
}

impl Curve {
    /// That of completion times in hours; nothing of none.
    pub fn of_times(mut hours: Vec<f64>) -> Option<Self> {
        hours.retain(|hour| hour.is_finite());
        hours.sort_by(f64::total_cmp);
        let n_jobs = hours.len();
        let steps = (1..).zip(hours).map(|(n, hour)| (hour, f64::from(n) / n_jobs as f64)).collect();
        (n_jobs > 0).then_some(Curve { steps, n_jobs })
    }

    /// Through published points, put in order; a share that falls, as digitised ones do, stays as high as it was.
    pub fn through(mut points: Vec<(f64, f64)>, n_jobs: usize) -> Option<Self> {
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut highest = 0.0_f64;
        for point in &mut points {
            highest = highest.max(point.1);
            point.1 = highest;
        }
        (!points.is_empty()).then_some(Curve { steps: points, n_jobs })
    }

    /// Its steps: hours, and the share of jobs done by then.
    pub fn steps(&self) -> &[(f64, f64)] {
        &self.steps
    }

    /// Jobs behind it.
    pub fn n_jobs(&self) -> usize {
        self.n_jobs
    }

    /// The average, of the share that it shows.
    pub fn mean_h(&self) -> f64 {
        let mut before = 0.0;
        let weighted = |(hour, share): &(f64, f64)| {
            let weight = share - before;
            before = *share;
            hour * weight
        };
        let sum: f64 = self.steps.iter().map(weighted).sum();
        sum / self.steps.last().map_or(1.0, |last| last.1)
    }

    /// The time within which this share of the jobs is done; none when it does not come so far.
    pub fn quantile_h(&self, share: f64) -> Option<f64> {
        // Shares such as 36/40 are written as .9, and may be a last digit below it.
        self.steps.iter().find(|step| step.1 >= share - 1e-9).map(|step| step.0)
    }

    /// The share that is done by a time.
    fn at(&self, hour: f64) -> f64 {
        let n_passed = self.steps.partition_point(|step| step.0 <= hour);
        n_passed.checked_sub(1).map_or(0.0, |last| self.steps[last].1)
    }

    /// The largest difference between the shares of two curves at any time (Kolmogorov and Smirnov's).
    pub fn distance(&self, other: &Curve) -> f64 {
        let times = self.steps.iter().chain(&other.steps).map(|step| step.0);
        times.map(|hour| (self.at(hour) - other.at(hour)).abs()).fold(0.0, f64::max)
    }

    /// The distance that two draws of the same kind of jobs exceed one time in twenty (Smirnov's two-sample test, 5 %).
    pub fn usual_distance(&self, other: &Curve) -> f64 {
        let (a, b) = (self.n_jobs as f64, other.n_jobs as f64);
        1.358 * ((a + b) / (a * b)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_computed_by_hand() {
        let curve = Curve::of_times(vec![4.0, 1.0, 2.0, 1.0]).expect("four");
        assert_eq!(curve.mean_h(), 2.0);
        assert_eq!((curve.quantile_h(0.5), curve.quantile_h(0.75)), (Some(1.0), Some(2.0)));
        assert_eq!((curve.at(0.9), curve.at(1.0), curve.at(3.9), curve.at(9.0)), (0.0, 0.5, 0.75, 1.0));
        let later = Curve::of_times(vec![2.0, 2.0, 2.0, 5.0]).expect("four");
        assert_eq!(curve.distance(&later), 0.5, "between one and two hours");
        assert_eq!(later.distance(&curve), 0.5);
        assert_eq!(curve.distance(&curve), 0.0);
        let forty = Curve { n_jobs: 40, ..curve };
        assert!((forty.usual_distance(&forty) - 0.304).abs() < 0.001);
        assert_eq!(Curve::of_times(Vec::new()), None);
    }

    #[test]
    fn digitised_points_are_put_in_order() {
        let curve = Curve::through(vec![(2.0, 0.4), (1.0, 0.5), (3.0, 0.8)], 100).expect("points");
        assert_eq!(curve.steps(), [(1.0, 0.5), (2.0, 0.5), (3.0, 0.8)]);
        assert!((curve.mean_h() - (0.5 + 0.3 * 3.0) / 0.8).abs() < 1e-12, "of what it shows");
        assert_eq!(curve.quantile_h(0.9), None);
    }
}
