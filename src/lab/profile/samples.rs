//! From reports of progress to the time of an iteration and its confidence interval.

/// Reports are grouped into at most this many samples: more would add no information, because neighbouring reports are
/// correlated.
const MOST_STRETCHES: usize = 20;

/// The time of an iteration, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Seconds of an iteration.
    pub iteration_s: f64,
    /// Half the width of the interval; infinite when there is one sample only.
    pub within_s: f64,
}

impl Estimate {
    /// The mean of samples and its interval by Student's t; none without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let n = samples.len() as f64;
        let mean = (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / n)?;
        let within_s = match samples.len() {
            1 => f64::INFINITY,
            len => {
                let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
                student_t(len - 1) * (squares / (n - 1.0) / n).sqrt()
            }
        };
        Some(Estimate { iteration_s: mean, within_s })
    }

    /// Iterations per second.
    pub fn rate(&self) -> f64 {
        1.0 / self.iteration_s
    }

    /// Half the width of the interval relative to the time itself.
    pub fn relative(&self) -> f64 {
        self.within_s / self.iteration_s
    }
}

/// Seconds of an iteration in each stretch of a run, from (seconds, iterations done) as reported. The first `warm_up`
/// iterations are left out: they load data and compile.
pub fn iteration_times(reports: &[(f64, f64)], warm_up: f64) -> Vec<f64> {
    let Some(first) = reports.first() else { return Vec::new() };
    let mut counted: Vec<(f64, f64)> = Vec::new();
    for report in reports.iter().filter(|report| report.1 - first.1 >= warm_up) {
        match counted.last() {
            // A report that repeats the last one, or a clock that does not advance, carries no information.
            Some(last) if report.1 <= last.1 || report.0 <= last.0 => {}
            _ => counted.push(*report),
        }
    }
    let (Some(start), Some(end)) = (counted.first().copied(), counted.last().copied()) else {
        return Vec::new();
    };
    let stretches = MOST_STRETCHES.min(counted.len().saturating_sub(1));
    let length = (end.1 - start.1) / stretches.max(1) as f64;
    let mut times = Vec::new();
    let mut from = start;
    for report in &counted {
        let done = report.1 - from.1;
        // Samples of similar length have the same weight; a short remainder at the end would not.
        if done >= length * 0.75 && done > 0.0 {
            times.push((report.0 - from.0) / done);
            from = *report;
        }
    }
    times
}

/// The 97.5 % quantile of Student's t.
fn student_t(degrees: usize) -> f64 {
    const BY_DEGREES: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    BY_DEGREES.get(degrees.saturating_sub(1)).copied().unwrap_or(1.96)
}
