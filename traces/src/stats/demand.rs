//! GPUs that jobs ask for over time, as if each ran at once, at the proportional share: what a cluster without an end would be asked
//! for. Where this is above what a cluster has, jobs must wait.

use rota_core::workload::Workload;

/// A step function: GPUs asked for from each moment on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    steps: Vec<(f64, f64)>,
}

/// A time in which more is asked for than there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Above {
    /// The most GPUs asked for at once.
    pub peak: f64,
    /// When that is, seconds.
    pub peak_at_s: f64,
    /// Since when more is asked for than there is, around the peak.
    pub from_s: f64,
    /// Until when.
    pub to_s: f64,
    /// The part of all time, from the first arrival to the last end, in which more is asked for than there is.
    pub share_of_time: f64,
}

impl Demand {
    /// Of jobs that take so many seconds each; jobs that never end are left out.
    pub fn of(workload: &Workload, durations_s: &[f64]) -> Self {
        let mut changes: Vec<(f64, f64)> = Vec::with_capacity(2 * workload.jobs.len());
        for (job, duration_s) in workload.jobs.iter().zip(durations_s).filter(|(_, s)| s.is_finite()) {
            let (arrival_s, gpus) = (job.arrival.as_secs_f64(), f64::from(job.gpus.asked));
            changes.extend([(arrival_s, gpus), (arrival_s + duration_s, -gpus)]);
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let mut gpus = 0.0;
        for (time_s, change) in changes {
            gpus += change;
            match steps.last_mut() {
                Some(last) if last.0 == time_s => last.1 = gpus,
                _ => steps.push((time_s, gpus)),
            }
        }
        Demand { steps }
    }

    /// The time around the peak in which more than `n_gpus` are asked for; `None` if it never is.
    pub fn worst_above(&self, n_gpus: f64) -> Option<Above> {
        let peak_at = (0..self.steps.len()).max_by(|a, b| self.steps[*a].1.total_cmp(&self.steps[*b].1))?;
        let (peak_at_s, peak) = self.steps[peak_at];
        if peak <= n_gpus {
            return None;
        }
        let is_above = |step: &&(f64, f64)| step.1 > n_gpus;
        let from = self.steps[..=peak_at].iter().rev().take_while(is_above).last();
        let to = self.steps[peak_at..].iter().find(|step| step.1 <= n_gpus);
        let above_s: f64 =
            self.spans().filter(|(_, _, gpus)| *gpus > n_gpus).map(|(from, to, _)| to - from).sum();
        let all_s = self.steps.last()?.0 - self.steps.first()?.0;
        Some(Above {
            peak,
            peak_at_s,
            from_s: from.map_or(peak_at_s, |step| step.0),
            to_s: to.map_or(peak_at_s, |step| step.0),
            share_of_time: above_s / all_s,
        })
    }

    /// The mean in each of `n` equal parts of the time from the first arrival to the last end, with where it begins.
    pub fn means(&self, n: usize) -> Vec<(f64, f64)> {
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else { return Vec::new() };
        let width = (last.0 - first.0) / n as f64;
        if width <= 0.0 {
            return vec![*first];
        }
        let mut sums = vec![0.0; n];
        for (from, to, gpus) in self.spans() {
            let at = |time: f64| (((time - first.0) / width) as usize).min(n - 1);
            for (bin, sum) in sums.iter_mut().enumerate().take(at(to) + 1).skip(at(from)) {
                let (begin, end) = (first.0 + bin as f64 * width, first.0 + (bin + 1) as f64 * width);
                *sum += gpus * (to.min(end) - from.max(begin)).max(0.0);
            }
        }
        sums.iter().enumerate().map(|(bin, sum)| (first.0 + bin as f64 * width, sum / width)).collect()
    }

    fn spans(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        self.steps.windows(2).map(|pair| (pair[0].0, pair[1].0, pair[0].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand() -> Demand {
        // 2 GPUs from 0 to 10, 4 more from 5 to 8.
        Demand { steps: vec![(0.0, 2.0), (5.0, 6.0), (8.0, 2.0), (10.0, 0.0)] }
    }

    #[test]
    fn the_time_around_the_peak_is_found() {
        let above = demand().worst_above(3.0).expect("6 are asked for");
        assert_eq!((above.peak, above.from_s, above.to_s, above.share_of_time), (6.0, 5.0, 8.0, 0.3));
        assert_eq!(demand().worst_above(6.0), None);
        assert_eq!(Demand::default().worst_above(0.0), None);
    }

    #[test]
    fn means_keep_the_area() {
        let means = demand().means(4);
        let area: f64 = means.iter().map(|(_, gpus)| gpus * 2.5).sum();
        assert!((area - 32.0).abs() < 1e-9, "{means:?}");
        assert_eq!(means[0], (0.0, 2.0));
    }
}
