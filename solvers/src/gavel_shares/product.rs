//! The largest product of speeds, by planes that touch the logarithm from above.

use super::{TimePlan, TimeShares};
use crate::error::FormulationError;
use crate::model::Sense;
use crate::solution::{Limits, Solver};

/// The mean logarithm is found to this.
const PRECISION: f64 = 1e-8;
const MOST_PLANES: usize = 200;
/// Logarithms of speeds are looked for between the negative of this and this.
const MOST_LOG: f64 = 50.0;

impl TimeShares {
    /// The largest geometric mean of `factors[i] * speed_i`; the objective is that mean.
    pub fn max_product(
        &self,
        factors: &[f64],
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<TimePlan, FormulationError> {
        self.check_length("factors", factors.len())?;
        let n_jobs = self.n_jobs.max(1) as f64;
        let mut touched: Vec<Vec<f64>> = vec![vec![1.0; self.n_jobs]];
        loop {
            let mut base = self.base(Sense::Maximize)?;
            for (job, factor) in factors.iter().enumerate() {
                let log = base.model.continuous(&format!("log_{job}"), -MOST_LOG, MOST_LOG)?;
                base.model.set_cost(log, 1.0)?;
                for (plane, at) in touched.iter().enumerate() {
                    // log u <= log a + (u - a) / a
                    let name = format!("plane_{job}_{plane}");
                    base.speed_row(&name, job, factor / at[job], 1.0 - at[job].ln(), &[(log, -1.0)])?;
                }
            }
            let plan = base.solve(solver, limits)?;
            let speeds = self.speeds(&plan.parts);
            let reached: Vec<f64> =
                speeds.iter().zip(factors).map(|(speed, factor)| speed * factor).collect();
            let log = reached.iter().map(|u| u.max(1e-12).ln()).sum::<f64>() / n_jobs;
            if plan.objective / n_jobs - log < PRECISION || touched.len() == MOST_PLANES {
                return Ok(TimePlan { objective: (plan.objective / n_jobs).exp(), ..plan });
            }
            touched.push(reached.iter().map(|u| u.max(1e-6)).collect());
        }
    }

    /// For each job, the product over all others of their speed in `plan` to that without the job: what the others lose by it.
    /// Rows must have one job each.
    pub fn discounts(
        &self,
        plan: &TimePlan,
        factors: &[f64],
        solver: &mut dyn Solver,
        limits: &Limits,
    ) -> Result<Vec<f64>, FormulationError> {
        let with = self.speeds(&plan.parts);
        (0..self.n_jobs)
            .map(|left_out| {
                let rows =
                    self.rows.iter().filter(|row| row.members.iter().all(|member| member.job != left_out));
                let mut rows: Vec<_> = rows.cloned().collect();
                for member in rows.iter_mut().flat_map(|row| &mut row.members) {
                    member.job -= usize::from(member.job > left_out);
                }
                let others = TimeShares { capacity: self.capacity.clone(), n_jobs: self.n_jobs - 1, rows };
                let keep = |(job, number): (usize, &f64)| (job != left_out).then_some(*number);
                let factors: Vec<f64> = factors.iter().enumerate().filter_map(keep).collect();
                let without = others.speeds(&others.max_product(&factors, solver, limits)?.parts);
                let with = with.iter().enumerate().filter_map(keep);
                Ok(with.zip(without).map(|(with, without)| with / without).product())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TimeMember, TimeRow};
    use super::*;
    use crate::Highs;

    #[test]
    fn equals_share_equally_whatever_their_speed() {
        let row = |job, rate| TimeRow { gpus: 1.0, members: vec![TimeMember { job, rates: vec![rate] }] };
        let shares = TimeShares { capacity: vec![1.0], n_jobs: 2, rows: vec![row(0, 1.0), row(1, 9.0)] };
        let plan = shares.max_product(&[1.0, 1.0], &mut Highs, &Limits::default()).expect("solved");
        // Half of the time each: sqrt(0.5 * 4.5).
        assert!((plan.objective - 1.5).abs() < 1e-6, "{plan:?}");
        assert!((plan.parts[0][0] - 0.5).abs() < 1e-3, "{plan:?}");
        let discounts = shares.discounts(&plan, &[1.0, 1.0], &mut Highs, &Limits::default()).expect("solved");
        assert!(discounts.iter().all(|discount| (discount - 0.5).abs() < 1e-3), "{discounts:?}");
    }
}
