//! Goals that are found by asking again and again whether given speeds can be met: finish-time ratios and the makespan.

use super::{TimePlan, TimeShares};
use crate::error::FormulationError;
use crate::solution::{Limits, Solver};

/// A ratio is found to this part of itself.
const PRECISION: f64 = 1e-9;

/// What finish-time fairness knows of each job.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishTimes {
    /// Seconds since it arrived.
    pub waited_s: Vec<f64>,
    /// Work left.
    pub left: Vec<f64>,
    /// Seconds that it would take in all with its own part of the cluster.
    pub alone_s: Vec<f64>,
    /// Its weight: the time that its work takes counts so many times.
    pub weights: Vec<f64>,
}

/// How the shortest makespan is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makespan {
    /// One linear model, exact.
    Exact,
    /// The original's bisection: from 100 to a million seconds, until they are within 5 %.
    Bisected,
}

impl TimeShares {
    /// The smallest worst ratio of a job's time in all to the time it would take with its own part of the cluster.
    pub fn least_worst_ratio(
        &self,
        times: &FinishTimes,
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<TimePlan, FormulationError> {
        for (what, found) in [
            ("times since arrival", times.waited_s.len()),
            ("work left", times.left.len()),
            ("times alone", times.alone_s.len()),
            ("weights", times.weights.len()),
        ] {
            self.check_length(what, found)?;
        }
        let ratios = times.waited_s.iter().zip(&times.alone_s).map(|(waited, alone)| waited / alone);
        let mut low = ratios.fold(0.0, f64::max);
        let mut high = (low * 2.0).max(1.0);
        let mut best = None;
        while best.is_none() {
            best = self.meets(&times.speeds_at(high), solver, limits)?;
            if best.is_none() {
                (low, high) = (high, high * 2.0);
            }
            if !high.is_finite() {
                return Err(FormulationError::NoValues { status: "without a ratio that can be met".into() });
            }
        }
        while high - low > PRECISION * high {
            let middle = (low + high) / 2.0;
            match self.meets(&times.speeds_at(middle), solver, limits)? {
                Some(plan) => (best, high) = (Some(plan), middle),
                None => low = middle,
            }
        }
        let parts = best.map(|plan| plan.parts).unwrap_or_default();
        Ok(TimePlan { objective: high, parts })
    }

    /// The shortest time in which all the work that is left can be done.
    pub fn shortest(
        &self,
        left: &[f64],
        how: Makespan,
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<TimePlan, FormulationError> {
        self.check_length("work left", left.len())?;
        if how == Makespan::Exact {
            let factors: Vec<f64> =
                left.iter().map(|left| if *left > 0.0 { 1.0 / left } else { 0.0 }).collect();
            let plan = self.max_min(&factors, solver, limits)?;
            return Ok(TimePlan { objective: 1.0 / plan.objective, ..plan });
        }
        let (mut low, mut high, mut top) = (100.0, 1e6, 1e6);
        let mut best = None;
        loop {
            while 1.05 * low < high {
                let middle = (low + high) / 2.0;
                let needed: Vec<f64> = left.iter().map(|left| left / middle).collect();
                match self.meets(&needed, solver, limits)? {
                    Some(plan) => {
                        best = Some(TimePlan { objective: middle, ..plan });
                        high = middle;
                    }
                    None => low = middle,
                }
            }
            if let Some(best) = best {
                return Ok(best);
            }
            (low, high, top) = (top, top * 10.0, top * 10.0);
            if !top.is_finite() {
                return Err(FormulationError::NoValues {
                    status: "without a makespan that can be met".into(),
                });
            }
        }
    }
}

impl FinishTimes {
    /// The speeds with which no job exceeds a ratio; one that has exceeded it already cannot.
    fn speeds_at(&self, ratio: f64) -> Vec<f64> {
        let jobs = self.waited_s.iter().zip(&self.left).zip(self.alone_s.iter().zip(&self.weights));
        jobs.map(|((waited, left), (alone, weight))| {
            let remaining_s = (ratio * alone - waited).max(f64::MIN_POSITIVE);
            left / remaining_s * weight
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::two;
    use super::*;
    use crate::Highs;

    #[test]
    fn the_makespan_is_the_slowest_job_with_the_best_split() {
        // 300 and 200 units at 3 and 2 in a second: 100 s when each has its type.
        let plan =
            two().shortest(&[300.0, 200.0], Makespan::Exact, &mut Highs, &Limits::default()).expect("solved");
        assert!((plan.objective - 100.0).abs() < 1e-6, "{}", plan.objective);
        let by_steps =
            two().shortest(&[3e5, 2e5], Makespan::Bisected, &mut Highs, &Limits::default()).expect("solved");
        assert!(by_steps.objective >= 1e5 && by_steps.objective <= 1.05e5, "{}", by_steps.objective);
    }

    #[test]
    fn a_job_that_waited_sets_the_ratio() {
        let times = FinishTimes {
            waited_s: vec![50.0, 0.0],
            left: vec![300.0, 200.0],
            alone_s: vec![100.0, 200.0],
            weights: vec![1.0, 1.0],
        };
        // The first runs at 3 at best: (50 + 100) / 100.
        let plan = two().least_worst_ratio(&times, &mut Highs, &Limits::default()).expect("solved");
        assert!((plan.objective - 1.5).abs() < 1e-6, "{}", plan.objective);
    }
}
