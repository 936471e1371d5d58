//! ElasticFlow's admission and allocation as one MILP (ASPLOS'23 §4, where both are greedy): per job and time
//! slot a GPU level, such that every admitted job has done its work by its deadline.
//!
//! ```text
//!  a_j admitted, x[j,l,t] the part of slot t that job j runs at level l
//!  sum_l x[j,l,t] <= usable_jt a_j                 each job and slot; usable_jt: the part of t before j's deadline
//!  sum rate_l length_t x[j,l,t] >= work_j a_j      each job
//!  sum gpus_l x[j,l,t] <= gpus_t                   each slot
//! ```
//! With [`Pace::Parts`] the x are continuous: no plan of any kind, however finely it cuts its time, is excluded, so
//! the answer is a bound, and must be arranged in time before it can be run. With [`Pace::Whole`] they are binary: a
//! job keeps one level all through a slot, and the answer can be run as it is.
//!
//! First the most worth is admitted; then, with that worth held, the least GPU time spent. The two are two
//! models, not one with weights: a weight small enough to be safe drowns in a solver's tolerance. What the model looks
//! like is in `model`.

mod model;

pub use model::ShareModel;

use crate::error::FormulationError;
use crate::solution::{Limits, Solution, Solver, Start};

/// One speed a job can run at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareLevel {
    /// GPUs, at least one.
    pub gpus: u32,
    /// Work done in a second.
    pub rate: f64,
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
    /// Time until its deadline, counted from the beginning of the first slot; may be beyond the last.
    pub deadline_s: f64,
    /// What admitting it is worth; 1 counts jobs.
    pub worth: f64,
    /// Whether it may be declined.
    pub admission: Admission,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareSlot {
    /// How long it is.
    pub length_s: f64,
    /// GPUs there are.
    pub gpus: u32,
}

/// How a job may use a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pace {
    /// Any part of it, at several levels one after another.
    #[default]
    Parts,
    /// All of it or nothing of it, at one level.
    Whole,
}

/// Jobs, and the time there is for them.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareProblem {
    /// Slots, one after another.
    pub slots: Vec<ShareSlot>,
    /// The jobs that want GPUs in these slots.
    pub jobs: Vec<ShareJob>,
    /// How they use slots.
    pub pace: Pace,
}

/// What is best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShareGoal {
    /// The most worth admitted.
    AdmitMost,
    /// The least GPU time spent while at least this worth is admitted.
    SaveGpuTime {
        /// The worth to keep.
        worth: f64,
    },
}

/// One level of one job in one slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareRun {
    /// Which slot.
    pub slot: usize,
    /// GPUs.
    pub gpus: u32,
    /// The part of the slot, more than 0 and at most 1.
    pub part: f64,
}

/// The answer: who is admitted, and what each job runs at when.
#[derive(Clone, Debug, PartialEq)]
pub struct SharePlan {
    /// Whether the job is admitted.
    pub admitted: Vec<bool>,
    /// Per job, slot by slot.
    pub runs: Vec<Vec<ShareRun>>,
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

/// Admits the most worth, then saves GPU time if more is admitted than `enough`. A plan given as start is never lost.
pub fn solve_shares(
    problem: &ShareProblem,
    solver: &mut dyn Solver,
    limits: &Limits,
    start: Option<&SharePlan>,
    enough: f64,
) -> Result<ShareAnswer, FormulationError> {
    let built = problem.model(ShareGoal::AdmitMost)?;
    let values = start.and_then(|plan| built.encode(plan));
    let admit = solver.solve(&built.model, limits, values.as_deref().map_or(Start::Cold, Start::Values));
    let Some(worth) = admit.objective else { return Ok(ShareAnswer { plan: None, admit, save: None }) };
    let first = built.decode(&admit)?;
    if worth <= enough {
        return Ok(ShareAnswer { plan: Some(first), admit, save: None });
    }
    let built = problem.model(ShareGoal::SaveGpuTime { worth })?;
    let values = built.encode(&first);
    let save = solver.solve(&built.model, limits, values.as_deref().map_or(Start::Cold, Start::Values));
    let plan = if save.status.has_values() { built.decode(&save)? } else { first };
    Ok(ShareAnswer { plan: Some(plan), admit, save: Some(save) })
}

impl ShareProblem {
    /// Work a job does in its runs of a plan.
    pub fn work_done(&self, job: usize, runs: &[ShareRun]) -> f64 {
        let rate = |gpus: u32| {
            let level = self.jobs[job].levels.iter().find(|level| level.gpus == gpus);
            level.map_or(0.0, |level| level.rate)
        };
        let seconds = |run: &ShareRun| match self.pace {
            Pace::Parts => run.part * self.slots[run.slot].length_s,
            Pace::Whole => run.part * self.usable_s(&self.jobs[job], run.slot),
        };
        runs.iter().map(|run| rate(run.gpus) * seconds(run)).sum()
    }

    /// Seconds of a slot before a job's deadline.
    pub fn usable_s(&self, job: &ShareJob, slot: usize) -> f64 {
        let begin: f64 = self.slots[..slot].iter().map(|slot| slot.length_s).sum();
        (job.deadline_s - begin).clamp(0.0, self.slots[slot].length_s)
    }

    fn check(&self) -> Result<(), FormulationError> {
        let bad = |location: String, value: f64, expected: &'static str| {
            Err(FormulationError::BadInput { location, value, expected })
        };
        let is_amount = |value: f64| value.is_finite() && value >= 0.0;
        for (t, slot) in self.slots.iter().enumerate() {
            if !(is_amount(slot.length_s) && slot.length_s > 0.0) {
                return bad(format!("slot {t}, length"), slot.length_s, "a finite time of more than 0 s");
            }
        }
        for (j, job) in self.jobs.iter().enumerate() {
            let amounts = [("work", job.work), ("worth", job.worth)];
            if let Some((what, value)) = amounts.into_iter().find(|(_, value)| !is_amount(*value)) {
                return bad(format!("job {j}, {what}"), value, "a finite amount of at least 0");
            }
            if job.deadline_s.is_nan() {
                return bad(format!("job {j}, deadline"), job.deadline_s, "a time");
            }
            for (l, level) in job.levels.iter().enumerate() {
                if !is_amount(level.rate) {
                    return bad(
                        format!("job {j}, level {l}, rate"),
                        level.rate,
                        "a finite speed of at least 0",
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
