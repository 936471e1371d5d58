//! Phase 1: a CPU and memory level for every job, cluster-wide.
//!
//! Only undominated levels become variables, and in the whole-number model only those that reach the floor,
//! which makes the floor rows unnecessary: typically 5 to 10 binaries per job instead of 45.

use super::offer::{limit, offer};
use super::{Level, amount, check_levels};
use crate::error::FormulationError;
use crate::model::{Kind, Model, Sense, Variable};
use crate::solution::Solution;

/// A job's levels and the throughput it must not fall below (its fair share).
#[derive(Clone, Debug, PartialEq)]
pub struct LevelJob {
    /// Ways to run it.
    pub levels: Vec<Level>,
    /// The least throughput acceptable.
    pub floor: f64,
}

/// Levels for all jobs within the cluster's CPUs and memory, for the most throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelProblem {
    /// CPUs of the cluster.
    pub cpus: f64,
    /// Memory of the cluster.
    pub memory: f64,
    /// The jobs, which have their GPUs already.
    pub jobs: Vec<LevelJob>,
}

/// Whether a job has one level, or a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One level per job.
    Whole,
    /// A convex mixture of levels: the LP relaxation.
    Relaxed,
}

/// The model of a [`LevelProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct LevelModel {
    /// What a solver is given.
    pub model: Model,
    /// Per job: level position and its variable.
    offered: Vec<Vec<(usize, Variable)>>,
}

impl LevelProblem {
    /// Builds the model: maximise throughput.
    pub fn model(&self, shape: Shape) -> Result<LevelModel, FormulationError> {
        self.check()?;
        let mut model = Model::new(Sense::Maximize);
        let kind = if shape == Shape::Whole { Kind::Integer } else { Kind::Continuous };
        let mut offered = Vec::with_capacity(self.jobs.len());
        for (j, job) in self.jobs.iter().enumerate() {
            let floor = if shape == Shape::Relaxed { f64::NEG_INFINITY } else { job.floor };
            offered.push(offer(&mut model, &job.levels, floor, |model, level| {
                model.variable(&format!("y_{j}_{level}"), kind, 0.0, 1.0)
            })?);
        }
        limit(&mut model, (self.cpus, self.memory), || {
            self.jobs.iter().map(|job| job.levels.as_slice()).zip(&offered)
        })?;
        for (j, (job, variables)) in self.jobs.iter().zip(&offered).enumerate() {
            model.row(
                &format!("one_{j}"),
                1.0,
                1.0,
                variables.iter().map(|&(_, variable)| (variable, 1.0)),
            )?;
            if shape == Shape::Relaxed {
                let speeds = variables.iter().map(|&(level, x)| (x, job.levels[level].throughput));
                model.row(&format!("floor_{j}"), job.floor, f64::INFINITY, speeds)?;
            }
        }
        Ok(LevelModel { model, offered })
    }

    fn check(&self) -> Result<(), FormulationError> {
        amount(self.cpus, || "cpus".into())?;
        amount(self.memory, || "memory".into())?;
        for (j, job) in self.jobs.iter().enumerate() {
            check_levels(&job.levels, job.floor, || format!("job {j}"))?;
        }
        Ok(())
    }
}

impl LevelModel {
    /// The level of each job; of a mixture, the level with the largest part.
    pub fn decode(&self, solution: &Solution) -> Result<Vec<usize>, FormulationError> {
        let parts = self.parts(solution)?;
        let largest = |parts: Vec<(usize, f64)>| {
            parts.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
        };
        Ok(parts.into_iter().map(|parts| largest(parts).map_or(0, |(level, _)| level)).collect())
    }

    /// The parts of each job's levels that are not zero.
    pub fn parts(&self, solution: &Solution) -> Result<Vec<Vec<(usize, f64)>>, FormulationError> {
        if !solution.status.has_values() {
            return Err(FormulationError::NoValues { status: solution.status.to_string() });
        }
        let part = |&(level, variable): &(usize, Variable)| {
            solution.value(variable).filter(|&value| value > 0.0).map(|value| (level, value))
        };
        Ok(self.offered.iter().map(|variables| variables.iter().filter_map(part).collect()).collect())
    }

    /// Values for a choice of levels, as a start; `None` if a level is not on offer.
    pub fn encode(&self, choice: &[usize]) -> Option<Vec<f64>> {
        let mut values = vec![0.0; self.model.n_variables()];
        for (variables, &level) in self.offered.iter().zip(choice) {
            let (_, variable) = variables.iter().find(|&&(offered, _)| offered == level)?;
            values[variable.index()] = 1.0;
        }
        (choice.len() == self.offered.len()).then_some(values)
    }
}
