//! From jobs and slots to variables and rows, and back.

use super::{Admission, Pace, ShareGoal, ShareJob, ShareLevel, SharePlan, ShareProblem, ShareRun};
use crate::error::FormulationError;
use crate::model::{Model, Sense, Variable};
use crate::solution::Solution;

/// Parts of a slot smaller than this are a solver's dust.
const DUST: f64 = 1e-9;

/// The model of a [`ShareProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct ShareModel {
    /// What a solver is given.
    pub model: Model,
    admitted: Vec<Variable>,
    /// Per job, slot by slot.
    runs: Vec<Vec<RunVariable>>,
}

/// A variable `x[j,l,t]`.
#[derive(Clone, Copy, Debug)]
struct RunVariable {
    slot: usize,
    gpus: u32,
    variable: Variable,
    /// Work done when it is 1.
    work: f64,
}

impl ShareProblem {
    /// Builds the model for one of the two goals.
    pub fn model(&self, goal: ShareGoal) -> Result<ShareModel, FormulationError> {
        self.check()?;
        let mut built =
            ShareModel { model: Model::new(Sense::Maximize), admitted: Vec::new(), runs: Vec::new() };
        for (j, job) in self.jobs.iter().enumerate() {
            let least = if job.admission == Admission::Promised { 1.0 } else { 0.0 };
            let admitted = built.model.integer(&format!("a_{j}"), least, 1.0)?;
            built.admitted.push(admitted);
            let runs = self.add_job(&mut built.model, j, job, admitted)?;
            built.runs.push(runs);
        }
        self.add_capacity_rows(&mut built)?;
        self.set_goal(&mut built, goal)?;
        Ok(built)
    }

    /// The variables of one job, and the rows that only it is in.
    fn add_job(
        &self,
        model: &mut Model,
        j: usize,
        job: &ShareJob,
        admitted: Variable,
    ) -> Result<Vec<RunVariable>, FormulationError> {
        let mut runs = Vec::new();
        for (t, slot) in self.slots.iter().enumerate() {
            let usable_s = self.usable_s(job, t);
            if usable_s <= 0.0 {
                break;
            }
            let (most, seconds) = match self.pace {
                Pace::Parts => (usable_s / slot.length_s, slot.length_s),
                Pace::Whole => (1.0, usable_s),
            };
            let first = runs.len();
            for l in useful_levels(&job.levels, slot.gpus) {
                let name = format!("x_{j}_{l}_{t}");
                let variable = match self.pace {
                    Pace::Parts => model.continuous(&name, 0.0, most)?,
                    Pace::Whole => model.binary(&name)?,
                };
                let ShareLevel { gpus, rate } = job.levels[l];
                runs.push(RunVariable { slot: t, gpus, variable, work: rate * seconds });
            }
            let terms = runs[first..].iter().map(|run| (run.variable, 1.0)).chain([(admitted, -most)]);
            model.row(&format!("time_{j}_{t}"), f64::NEG_INFINITY, 0.0, terms)?;
        }
        if job.work > 0.0 {
            // in parts of the job's work, so that tolerances mean the same for every job
            let terms = runs.iter().map(|run| (run.variable, run.work / job.work));
            model.row(&format!("work_{j}"), 0.0, f64::INFINITY, terms.chain([(admitted, -1.0)]))?;
        }
        Ok(runs)
    }

    fn add_capacity_rows(&self, built: &mut ShareModel) -> Result<(), FormulationError> {
        let mut in_slot: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.slots.len()];
        for run in built.runs.iter().flatten() {
            in_slot[run.slot].push((run.variable, f64::from(run.gpus)));
        }
        for (t, terms) in in_slot.into_iter().enumerate() {
            let gpus = f64::from(self.slots[t].gpus);
            built.model.row(&format!("gpus_{t}"), f64::NEG_INFINITY, gpus, terms)?;
        }
        Ok(())
    }

    fn set_goal(&self, built: &mut ShareModel, goal: ShareGoal) -> Result<(), FormulationError> {
        match goal {
            ShareGoal::AdmitMost => {
                for (&variable, job) in built.admitted.iter().zip(&self.jobs) {
                    built.model.set_cost(variable, job.worth)?;
                }
            }
            ShareGoal::SaveGpuTime { worth } => {
                built.model.set_sense(Sense::Minimize);
                let total_s: f64 = self.slots.iter().map(|slot| slot.length_s).sum();
                for run in built.runs.iter().flatten() {
                    // in parts of all the time there is, so that a week's seconds do not swamp the tolerance
                    let part = self.slots[run.slot].length_s / total_s;
                    built.model.set_cost(run.variable, f64::from(run.gpus) * part)?;
                }
                let all: Vec<_> =
                    built.admitted.iter().zip(&self.jobs).map(|(&a, job)| (a, job.worth)).collect();
                // the worth was summed from the same numbers: forgive only rounding
                built.model.row("worth", worth - 1e-9 * worth.abs(), f64::INFINITY, all)?;
            }
        }
        Ok(())
    }
}

/// Levels that fit the slot and are faster than any with no more GPUs.
fn useful_levels(levels: &[ShareLevel], gpus: u32) -> impl Iterator<Item = usize> + '_ {
    let beats = |a: usize, b: usize| {
        let (first, second) = (levels[a], levels[b]);
        first.gpus <= second.gpus && first.rate >= second.rate && (first != second || a < b)
    };
    (0..levels.len()).filter(move |&b| {
        let is_beaten = (0..levels.len()).any(|a| a != b && beats(a, b));
        levels[b].gpus <= gpus && levels[b].rate > 0.0 && !is_beaten
    })
}

impl ShareModel {
    /// The plan a solution says.
    pub fn decode(&self, solution: &Solution) -> Result<SharePlan, FormulationError> {
        if !solution.status.has_values() {
            return Err(FormulationError::NoValues { status: solution.status.to_string() });
        }
        let value = |variable: Variable| solution.value(variable).unwrap_or(0.0);
        let admitted: Vec<bool> = self.admitted.iter().map(|&a| value(a) == 1.0).collect();
        let plan_of = |(runs, &is_admitted): (&Vec<RunVariable>, &bool)| {
            let runs =
                runs.iter().map(|run| ShareRun { slot: run.slot, gpus: run.gpus, part: value(run.variable) });
            runs.filter(|run| is_admitted && run.part > DUST).collect()
        };
        let runs = self.runs.iter().zip(&admitted).map(plan_of).collect();
        Ok(SharePlan { admitted, runs })
    }

    /// Values for a plan, as a start; `None` if it runs a job at a level or in a slot the model does not have.
    pub fn encode(&self, plan: &SharePlan) -> Option<Vec<f64>> {
        if plan.admitted.len() != self.admitted.len() || plan.runs.len() != self.runs.len() {
            return None;
        }
        let mut values = vec![0.0; self.model.n_variables()];
        for (j, known) in self.runs.iter().enumerate() {
            values[self.admitted[j].index()] = f64::from(u8::from(plan.admitted[j]));
            for run in &plan.runs[j] {
                let same = known.iter().find(|known| (known.slot, known.gpus) == (run.slot, run.gpus))?;
                values[same.variable.index()] += run.part;
            }
        }
        Some(values)
    }
}
