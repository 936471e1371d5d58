//! Phase 1 over classes of like jobs: how many of each class run at which level.
//!
//! Jobs of one model and one GPU count are interchangeable, and a model that tells them apart makes the solver prove
//! so. Counting them instead has the same optimum and, for 128 jobs of ten models, a tenth of the variables.

use super::offer::{limit, offer};
use super::{Level, amount, check_levels, undominated};
use crate::error::FormulationError;
use crate::model::{Model, Sense, Variable};
use crate::solution::Solution;

/// Like jobs: their levels, how many they are, and the throughput none of them may fall below.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelClass {
    /// Ways to run one of them.
    pub levels: Vec<Level>,
    /// The least throughput acceptable.
    pub floor: f64,
    /// How many jobs.
    pub count: u32,
}

/// Levels for all jobs within the cluster's CPUs and memory, for the most throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassProblem {
    /// CPUs of the cluster.
    pub cpus: f64,
    /// Memory of the cluster.
    pub memory: f64,
    /// The kinds of jobs, each with how many there are.
    pub classes: Vec<LevelClass>,
}

/// The model of a [`ClassProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct ClassModel {
    /// What a solver is given.
    pub model: Model,
    /// Per class: level position and its variable.
    offered: Vec<Vec<(usize, Variable)>>,
}

impl LevelClass {
    /// Positions of the levels worth offering: no other is as fast for no more CPUs and no more memory.
    pub fn worth_offering(&self) -> Vec<usize> {
        undominated(&self.levels)
    }
}

impl ClassProblem {
    /// Builds the model: maximise throughput.
    pub fn model(&self) -> Result<ClassModel, FormulationError> {
        self.check()?;
        let mut model = Model::new(Sense::Maximize);
        let mut offered = Vec::with_capacity(self.classes.len());
        for (k, class) in self.classes.iter().enumerate() {
            offered.push(offer(&mut model, &class.levels, class.floor, |model, level| {
                model.integer(&format!("n_{k}_{level}"), 0.0, f64::from(class.count))
            })?);
        }
        limit(&mut model, (self.cpus, self.memory), || {
            self.classes.iter().map(|class| class.levels.as_slice()).zip(&offered)
        })?;
        for (k, (class, variables)) in self.classes.iter().zip(&offered).enumerate() {
            let count = f64::from(class.count);
            let every = variables.iter().map(|&(_, variable)| (variable, 1.0));
            model.row(&format!("all_{k}"), count, count, every)?;
        }
        Ok(ClassModel { model, offered })
    }

    fn check(&self) -> Result<(), FormulationError> {
        amount(self.cpus, || "cpus".into())?;
        amount(self.memory, || "memory".into())?;
        for (k, class) in self.classes.iter().enumerate() {
            check_levels(&class.levels, class.floor, || format!("class {k}"))?;
        }
        Ok(())
    }
}

impl ClassModel {
    /// For each class its levels in use and how many jobs run at each.
    pub fn decode(&self, solution: &Solution) -> Result<Vec<Vec<(usize, u32)>>, FormulationError> {
        if !solution.status.has_values() {
            return Err(FormulationError::NoValues { status: solution.status.to_string() });
        }
        let count = |&(level, variable): &(usize, Variable)| {
            let count = solution.value(variable).unwrap_or(0.0) as u32;
            (count > 0).then_some((level, count))
        };
        Ok(self.offered.iter().map(|variables| variables.iter().filter_map(count).collect()).collect())
    }

    /// Values for one level for all jobs of each class, as a start; `None` if a level is not on offer.
    pub fn encode(&self, problem: &ClassProblem, level_of: &[usize]) -> Option<Vec<f64>> {
        let mut values = vec![0.0; self.model.n_variables()];
        for ((variables, class), &level) in self.offered.iter().zip(&problem.classes).zip(level_of) {
            let (_, variable) = variables.iter().find(|&&(offered, _)| offered == level)?;
            values[variable.index()] = f64::from(class.count);
        }
        (level_of.len() == self.offered.len()).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synergy_opt::{LevelJob, LevelProblem, Shape};
    use crate::{Highs, Limits, Solver, Start};

    #[test]
    fn counting_like_jobs_has_the_optimum_of_telling_them_apart() {
        let level = |cpus, memory, throughput| Level { cpus, memory, throughput };
        let kinds = [
            (vec![level(1.0, 20.0, 1.0)], 1.0, 3),
            (vec![level(3.0, 60.0, 1.0), level(6.0, 60.0, 1.7), level(12.0, 120.0, 2.9)], 1.0, 4),
            (vec![level(3.0, 60.0, 1.0), level(4.0, 60.0, 1.15), level(1.0, 20.0, 0.1)], 1.0, 2),
        ];
        let classes = kinds.iter().map(|(levels, floor, count)| LevelClass {
            levels: levels.clone(),
            floor: *floor,
            count: *count,
        });
        let problem = ClassProblem { cpus: 41.0, memory: 620.0, classes: classes.collect() };
        let built = problem.model().unwrap();
        let counted = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        let jobs = kinds.iter().flat_map(|(levels, floor, count)| {
            vec![LevelJob { levels: levels.clone(), floor: *floor }; *count as usize]
        });
        let apart = LevelProblem { cpus: 41.0, memory: 620.0, jobs: jobs.collect() };
        let apart = Highs.solve(&apart.model(Shape::Whole).unwrap().model, &Limits::default(), Start::Cold);
        assert!((counted.objective.unwrap() - apart.objective.unwrap()).abs() < 1e-9);
        let decoded = built.decode(&counted).unwrap();
        let counts: Vec<u32> = decoded.iter().map(|levels| levels.iter().map(|(_, n)| n).sum()).collect();
        assert_eq!(counts, [3, 4, 2]);
        assert!(built.encode(&problem, &[0, 0, 0]).is_some() && built.encode(&problem, &[0, 0, 2]).is_none());
    }
}
