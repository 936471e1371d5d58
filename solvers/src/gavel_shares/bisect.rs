//! Goals that are found by solving again and again: finish-time ratios, and the makespan in steps as the original has it.

use super::{TimePlan, TimeShares};
use crate::error::FormulationError;
use crate::solution::{Limits, Solver};

/// A ratio is found to this part of itself.
const PRECISION: f64 = 1e-9;
/// Five steps are usual.
const MOST_STEPS: usize = 60;

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
        // The plan that exceeds by most the speeds which some ratio needs reaches a smaller ratio, unless there is none (Dinkelbach
        // 1967). The first ratio is one that the best equal split of all time reaches.
        let mut best = self.max_min(&times.needs_at(None), solver, limits)?;
        best.objective = times.worst_ratio(&self.speeds(&best.parts));
        for _ in 0..MOST_STEPS {
            if !best.objective.is_finite() {
                return Err(FormulationError::NoValues { status: "without a ratio that can be met".into() });
            }
            let mut next = self.max_min(&times.needs_at(Some(best.objective)), solver, limits)?;
            next.objective = times.worst_ratio(&self.speeds(&next.parts));
            let gain = best.objective - next.objective;
            if gain > 0.0 {
                best = next;
            }
            if gain <= PRECISION * best.objective {
                break;
            }
        }
        Ok(best)
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
    /// One over the speed with which each job has this ratio; without one, over that with which it ends in the time that it would
    /// take alone, so that none is beyond it at once.
    fn needs_at(&self, ratio: Option<f64>) -> Vec<f64> {
        let jobs = self.waited_s.iter().zip(&self.left).zip(self.alone_s.iter().zip(&self.weights));
        jobs.map(|((waited, left), (alone, weight))| {
            let remaining_s = ratio.map_or(*alone, |ratio| ratio * alone - waited);
            if *left > 0.0 { remaining_s / (left * weight) } else { 0.0 }
        })
        .collect()
    }

    /// The largest ratio of any job with these speeds.
    fn worst_ratio(&self, speeds: &[f64]) -> f64 {
        let jobs =
            self.waited_s.iter().zip(&self.left).zip(self.alone_s.iter().zip(&self.weights)).zip(speeds);
        jobs.map(|(((waited, left), (alone, weight)), speed)| {
            let work_s = if *left > 0.0 { left * weight / speed } else { 0.0 };
            (waited + work_s) / alone
        })
        .fold(0.0, f64::max)
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
