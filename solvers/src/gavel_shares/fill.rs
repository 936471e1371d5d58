//! Water filling: the level of all rises until somebody cannot rise any more; that job stays, and the others go on.

use super::{Base, TimePlan, TimeShares};
use crate::error::FormulationError;
use crate::model::Sense;
use crate::solution::{Limits, Solver};

/// Speeds may fall this far below what was reached before, in parts of one: a solver's tolerance.
const SLACK: f64 = 1e-9;
/// A job can still rise if it can rise by more than this part of its level.
const RISE: f64 = 1e-4;
/// By this part of their level jobs are let rise to see who can.
const A_LITTLE: f64 = 1e-2;
/// Levels below this are taken for this.
const LEAST: f64 = 1e-3;

impl TimeShares {
    /// Raises `factors[i] * speed_i` evenly, by `weights(final)[i]` for each unit of the level, until every job is final: the
    /// lexicographic max-min. `weights` is asked before each step and is told which jobs are final; a job with the weight 0 waits.
    /// The plan's objective is the first level.
    pub fn fill(
        &self,
        factors: &[f64],
        weights: &dyn Fn(&[bool]) -> Vec<f64>,
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<TimePlan, FormulationError> {
        self.check_length("factors", factors.len())?;
        let mut is_final = vec![false; self.n_jobs];
        let mut reached = vec![0.0; self.n_jobs];
        let mut first = None;
        let mut parts = vec![vec![0.0; self.capacity.len()]; self.rows.len()];
        while is_final.contains(&false) {
            let weights = weights(&is_final);
            self.check_length("weights", weights.len())?;
            let rising: Vec<usize> =
                (0..self.n_jobs).filter(|job| !is_final[*job] && weights[*job] > 0.0).collect();
            if rising.is_empty() {
                break;
            }
            let mut base = self.at_least(factors, &reached)?;
            let level = base.model.continuous("level", 0.0, f64::INFINITY)?;
            base.model.set_cost(level, 1.0)?;
            for job in &rising {
                let name = format!("rise_{job}");
                base.speed_row(&name, *job, factors[*job], reached[*job], &[(level, -weights[*job])])?;
            }
            let plan = base.solve(solver, limits)?;
            first.get_or_insert(plan.objective);
            rising.iter().for_each(|job| reached[*job] += plan.objective * weights[*job]);
            parts = plan.parts;
            let stuck = self.stuck(factors, &reached, &rising, solver, limits)?;
            // Somebody must be: all of them, where only the tolerances say otherwise.
            let ended = if stuck.is_empty() { rising } else { stuck };
            ended.iter().for_each(|job| is_final[*job] = true);
        }
        Ok(TimePlan { objective: first.unwrap_or(0.0), parts })
    }

    /// The jobs that cannot rise while nobody falls.
    fn stuck(
        &self,
        factors: &[f64],
        reached: &[f64],
        rising: &[usize],
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<Vec<usize>, FormulationError> {
        // As many as can rise a little together; those that do not are asked again without them, until nobody does.
        let mut unknown = rising.to_vec();
        while !unknown.is_empty() {
            let mut base = self.at_least(factors, reached)?;
            for job in &unknown {
                let little = A_LITTLE * reached[*job].max(LEAST);
                let rise = base.model.continuous(&format!("little_{job}"), 0.0, little)?;
                base.model.set_cost(rise, 1.0 / little)?;
                let least = reached[*job] - SLACK * reached[*job].max(1.0);
                base.speed_row(&format!("more_{job}"), *job, factors[*job], least, &[(rise, -1.0)])?;
            }
            let Some(plan) = base.solve_if_feasible(solver, limits)? else { break };
            let speeds = self.speeds(&plan.parts);
            let n_before = unknown.len();
            unknown.retain(|job| {
                speeds[*job] * factors[*job] <= reached[*job] + RISE * reached[*job].max(LEAST)
            });
            if unknown.len() == n_before {
                break;
            }
        }
        Ok(unknown)
    }

    /// A model in which every job keeps what it has reached.
    fn at_least(&self, factors: &[f64], reached: &[f64]) -> Result<Base, FormulationError> {
        let mut base = self.base(Sense::Maximize)?;
        for job in 0..self.n_jobs {
            let least = reached[job] - SLACK * reached[job].max(1.0);
            if least > 0.0 {
                base.speed_row(&format!("keeps_{job}"), job, factors[job], least, &[])?;
            }
        }
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TimeMember, TimeRow};
    use super::*;
    use crate::Highs;

    #[test]
    fn who_is_stuck_stays_and_the_others_rise() {
        // The first two share the one GPU of type 0, the third has type 1 for itself.
        let row = |job, rates: [f64; 2]| TimeRow {
            gpus: 1.0,
            members: vec![TimeMember { job, rates: rates.into() }],
        };
        let rows = vec![row(0, [1.0, 0.0]), row(1, [1.0, 0.0]), row(2, [0.0, 1.0])];
        let shares = TimeShares { capacity: vec![1.0, 1.0], n_jobs: 3, rows };
        let fill = |weights: [f64; 3]| {
            let plan = shares.fill(&[1.0; 3], &|_| weights.to_vec(), &mut Highs, &Limits::default());
            let speeds = shares.speeds(&plan.expect("solved").parts);
            speeds.iter().map(|speed| (speed * 1e3).round() / 1e3).collect::<Vec<_>>()
        };
        assert_eq!(fill([1.0, 1.0, 1.0]), [0.5, 0.5, 1.0]);
        assert_eq!(fill([3.0, 1.0, 1.0]), [0.75, 0.25, 1.0]);
    }
}
