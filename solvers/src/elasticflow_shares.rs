//! ElasticFlow's admission and allocation as one MILP (ASPLOS'23 §4, where both are greedy): per job and time
//! slot a GPU level, such that every admitted job has done its work by its deadline.
//!
//! ```text
//!  a_j admitted, x[j,l,t] job j runs at level l in slot t (from its first slot up to its deadline)
//!  sum_l x[j,l,t] <= a_j                       each job and slot
//!  sum work_l x[j,l,t] >= work_j a_j           each job
//!  sum gpus_l x[j,l,t] <= capacity_t           each slot
//! ```
//! First the most worth is admitted; then, with that worth held, the least GPU time spent. The two are two
//! models, not one with weights: a weight small enough to be safe drowns in a solver's tolerance.

use crate::error::FormulationError;
use crate::model::{Model, Sense, Variable};
use crate::solution::{Limits, Solution, Solver, Start};

/// One speed a job can run at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareLevel {
    /// GPUs, at least one.
    pub gpus: u32,
    /// Work done in one slot.
    pub work: f64,
}

/// Whether a job's admission is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Its deadline has been promised and must hold.
    Promised,
    /// It may be declined.
    Open,
}

/// A job with work to do before a deadline.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareJob {
    /// Its speeds.
    pub levels: Vec<ShareLevel>,
    /// Work left.
    pub work: f64,
    /// The first slot it may run in.
    pub first_slot: usize,
    /// The first slot it may no longer run in; beyond the horizon counts as the horizon.
    pub deadline_slot: usize,
    /// What admitting it is worth; 1 counts jobs.
    pub worth: f64,
    /// Whether it may be declined.
    pub admission: Admission,
}

/// Jobs, and the GPUs there are in each slot.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareProblem {
    /// GPUs per slot.
    pub capacity: Vec<u32>,
    /// The jobs.
    pub jobs: Vec<ShareJob>,
}

/// What is best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShareGoal {
    /// The most worth admitted.
    AdmitMost,
    /// The fewest GPU slots spent while at least this worth is admitted.
    SaveGpuTime {
        /// The worth to keep.
        worth: f64,
    },
}

/// The answer: who is admitted, and GPUs per job and slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharePlan {
    /// Whether the job is admitted.
    pub admitted: Vec<bool>,
    /// GPUs per slot of the horizon.
    pub gpus: Vec<Vec<u32>>,
}

/// The model of a [`ShareProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct ShareModel {
    /// The model.
    pub model: Model,
    admitted: Vec<Variable>,
    /// Per job: slot, GPUs, variable.
    runs: Vec<Vec<(usize, u32, Variable)>>,
    n_slots: usize,
}

/// Both solves of [`solve_shares`].
#[derive(Clone, Debug)]
pub struct ShareAnswer {
    /// The plan, if any was found.
    pub plan: Option<SharePlan>,
    /// The solve for the most worth: its objective, bound and gap.
    pub admit: Solution,
    /// The solve for the least GPU time, if there was anything to save.
    pub save: Option<Solution>,
}

/// Admits the most worth, then saves GPU time. A plan given as start is never lost.
pub fn solve_shares(
    problem: &ShareProblem,
    solver: &mut dyn Solver,
    limits: &Limits,
    start: Option<&SharePlan>,
) -> Result<ShareAnswer, FormulationError> {
    let built = problem.model(ShareGoal::AdmitMost)?;
    let values = start.and_then(|plan| built.encode(problem, plan));
    let admit = solver.solve(&built.model, limits, values.as_deref().map_or(Start::Cold, Start::Values));
    let Some(worth) = admit.objective else { return Ok(ShareAnswer { plan: None, admit, save: None }) };
    let first = built.decode(&admit)?;
    let built = problem.model(ShareGoal::SaveGpuTime { worth })?;
    let values = built.encode(problem, &first);
    let save = solver.solve(&built.model, limits, values.as_deref().map_or(Start::Cold, Start::Values));
    let plan = if save.status.has_values() { built.decode(&save)? } else { first };
    Ok(ShareAnswer { plan: Some(plan), admit, save: Some(save) })
}

impl ShareProblem {
    /// Builds the model for one of the two goals.
    pub fn model(&self, goal: ShareGoal) -> Result<ShareModel, FormulationError> {
        self.check()?;
        let mut model = Model::new(Sense::Maximize);
        let mut admitted = Vec::with_capacity(self.jobs.len());
        let mut runs = Vec::with_capacity(self.jobs.len());
        for (j, job) in self.jobs.iter().enumerate() {
            let least = if job.admission == Admission::Promised { 1.0 } else { 0.0 };
            admitted.push(model.integer(&format!("a_{j}"), least, 1.0)?);
            let mut of_job = Vec::new();
            for t in self.slots(job) {
                for l in useful_levels(&job.levels, self.capacity[t]) {
                    let variable = model.binary(&format!("x_{j}_{l}_{t}"))?;
                    of_job.push((t, job.levels[l].gpus, variable, job.levels[l].work));
                }
            }
            add_job_rows(&mut model, j, job, admitted[j], &of_job)?;
            runs.push(of_job.into_iter().map(|(t, gpus, variable, _)| (t, gpus, variable)).collect());
        }
        let mut built = ShareModel { model, admitted, runs, n_slots: self.capacity.len() };
        self.add_capacity_rows(&mut built)?;
        self.set_goal(&mut built, goal)?;
        Ok(built)
    }

    /// The slots a job may run in.
    fn slots(&self, job: &ShareJob) -> std::ops::Range<usize> {
        job.first_slot..job.deadline_slot.min(self.capacity.len())
    }

    fn add_capacity_rows(&self, built: &mut ShareModel) -> Result<(), FormulationError> {
        let mut in_slot: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.capacity.len()];
        for &(t, gpus, variable) in built.runs.iter().flatten() {
            in_slot[t].push((variable, f64::from(gpus)));
        }
        for (t, terms) in in_slot.into_iter().enumerate() {
            let capacity = f64::from(self.capacity[t]);
            built.model.row(&format!("capacity_{t}"), f64::NEG_INFINITY, capacity, terms)?;
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
                for &(_, gpus, variable) in built.runs.iter().flatten() {
                    built.model.set_cost(variable, f64::from(gpus))?;
                }
                let all: Vec<_> =
                    built.admitted.iter().zip(&self.jobs).map(|(&a, job)| (a, job.worth)).collect();
                // the worth was summed from the same numbers: forgive only rounding
                built.model.row("worth", worth - 1e-9 * worth.abs(), f64::INFINITY, all)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), FormulationError> {
        let bad = |place: String, value: f64, expected: &'static str| {
            Err(FormulationError::BadInput { place, value, expected })
        };
        for (j, job) in self.jobs.iter().enumerate() {
            if !(job.work.is_finite() && job.work >= 0.0) {
                return bad(format!("job {j}, work"), job.work, "a finite amount of at least 0");
            }
            if !(job.worth.is_finite() && job.worth >= 0.0) {
                return bad(format!("job {j}, worth"), job.worth, "a finite amount of at least 0");
            }
            for (l, level) in job.levels.iter().enumerate() {
                if !(level.work.is_finite() && level.work >= 0.0) {
                    return bad(
                        format!("job {j}, level {l}, work"),
                        level.work,
                        "a finite amount of at least 0",
                    );
                }
                if level.gpus == 0 {
                    return bad(format!("job {j}, level {l}, gpus"), 0.0, "at least 1");
                }
            }
        }
        Ok(())
    }
}

/// A slot, GPUs, the variable and its work.
type Run = (usize, u32, Variable, f64);

fn add_job_rows(
    model: &mut Model,
    j: usize,
    job: &ShareJob,
    admitted: Variable,
    runs: &[Run],
) -> Result<(), FormulationError> {
    for in_slot in runs.chunk_by(|a, b| a.0 == b.0) {
        let terms = in_slot.iter().map(|&(_, _, variable, _)| (variable, 1.0));
        let name = format!("level_{j}_{}", in_slot[0].0);
        model.row(&name, f64::NEG_INFINITY, 0.0, terms.chain([(admitted, -1.0)]))?;
    }
    if job.work > 0.0 {
        // in parts of the job's work, so that tolerances mean the same for every job
        let terms = runs.iter().map(|&(_, _, variable, work)| (variable, work / job.work));
        model.row(&format!("work_{j}"), 0.0, f64::INFINITY, terms.chain([(admitted, -1.0)]))?;
    }
    Ok(())
}

/// Levels that fit the slot and do more work than any with no more GPUs.
fn useful_levels(levels: &[ShareLevel], capacity: u32) -> impl Iterator<Item = usize> + '_ {
    let beats = |a: usize, b: usize| {
        let (first, second) = (levels[a], levels[b]);
        first.gpus <= second.gpus && first.work >= second.work && (first != second || a < b)
    };
    (0..levels.len()).filter(move |&b| {
        let is_beaten = (0..levels.len()).any(|a| a != b && beats(a, b));
        levels[b].gpus <= capacity && levels[b].work > 0.0 && !is_beaten
    })
}

impl ShareModel {
    /// The plan a solution says.
    pub fn decode(&self, solution: &Solution) -> Result<SharePlan, FormulationError> {
        if !solution.status.has_values() {
            return Err(FormulationError::NoValues { status: solution.status.to_string() });
        }
        let is_one = |variable: Variable| solution.value(variable) == Some(1.0);
        let admitted: Vec<bool> = self.admitted.iter().map(|&a| is_one(a)).collect();
        let mut gpus = vec![vec![0; self.n_slots]; self.admitted.len()];
        for (row, runs) in gpus.iter_mut().zip(&self.runs) {
            for &(t, n_gpus, variable) in runs {
                if is_one(variable) {
                    row[t] = n_gpus;
                }
            }
        }
        Ok(SharePlan { admitted, gpus })
    }

    /// Values for a plan, as a start; `None` if it runs a job at a level or in a slot the model does not have.
    pub fn encode(&self, problem: &ShareProblem, plan: &SharePlan) -> Option<Vec<f64>> {
        if plan.admitted.len() != self.admitted.len() || plan.gpus.len() != problem.jobs.len() {
            return None;
        }
        let mut values = vec![0.0; self.model.n_variables()];
        for (j, runs) in self.runs.iter().enumerate() {
            values[self.admitted[j].index()] = f64::from(u8::from(plan.admitted[j]));
            for (t, &gpus) in plan.gpus[j].iter().enumerate().filter(|&(_, &gpus)| gpus > 0) {
                let (_, _, variable) = runs.iter().find(|run| (run.0, run.1) == (t, gpus))?;
                values[variable.index()] = 1.0;
            }
        }
        Some(values)
    }
}
