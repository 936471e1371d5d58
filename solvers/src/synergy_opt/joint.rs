//! Level and server at once: the true optimum of one round.
//!
//! A job that fits on a server has one binary per undominated level and server it fits on at that level. A
//! larger gang has a binary per level, and GPUs per level and server, on as few servers as its GPUs allow.
//! Size grows as jobs x levels x servers: bound it before calling.

use super::{Demand, LeftOut, Level, Part, PlacementProblem, Server, check_levels, undominated};
use crate::error::FormulationError;
use crate::model::{Kind, Model, Sense, Variable};
use crate::solution::Solution;

/// A job with its GPUs, its levels, and the throughput it must not fall below when it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct JointJob {
    /// GPUs, at least one.
    pub gpus: u32,
    /// Ways to run it.
    pub levels: Vec<Level>,
    /// The least throughput acceptable.
    pub floor: f64,
}

/// Servers, and jobs to be given a level and a place.
#[derive(Clone, Debug, PartialEq)]
pub struct JointProblem {
    /// What is free on each server.
    pub servers: Vec<Server>,
    /// The jobs to place, each at one of its levels.
    pub jobs: Vec<JointJob>,
}

/// What a job got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointPlacement {
    /// The level, by position.
    pub level: usize,
    /// Its GPUs.
    pub parts: Vec<Part>,
}

/// The model of a [`JointProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct JointModel {
    /// What a solver is given.
    pub model: Model,
    choices: Vec<Choice>,
    n_jobs: usize,
}

/// GPUs of a job at a level on a server, per unit of a variable.
#[derive(Clone, Copy, Debug)]
struct Choice {
    job: usize,
    level: usize,
    server: usize,
    gpus_each: u32,
    variable: Variable,
}

impl JointProblem {
    /// Builds the model: maximise throughput; jobs left out count nothing.
    pub fn model(&self, left_out: LeftOut) -> Result<JointModel, FormulationError> {
        self.check()?;
        let mut model = Model::new(Sense::Maximize);
        let mut choices = Vec::new();
        for (j, job) in self.jobs.iter().enumerate() {
            let begin = choices.len();
            let levels: Vec<usize> = undominated(&job.levels)
                .into_iter()
                .filter(|&level| job.levels[level].throughput >= job.floor)
                .collect();
            let fewest = if left_out == LeftOut::Forbidden { 1.0 } else { 0.0 };
            if self.servers.iter().any(|server| server.gpus >= job.gpus) {
                self.add_whole(&mut model, j, &levels, &mut choices)?;
                let all = choices[begin..].iter().map(|choice| (choice.variable, 1.0));
                model.row(&format!("one_{j}"), fewest, 1.0, all)?;
            } else {
                self.add_gang(&mut model, j, &levels, fewest, &mut choices)?;
            }
        }
        self.add_server_rows(&mut model, &choices)?;
        Ok(JointModel { model, choices, n_jobs: self.jobs.len() })
    }

    fn demand(&self, j: usize, level: usize) -> Demand {
        let Level { cpus, memory, .. } = self.jobs[j].levels[level];
        Demand { gpus: self.jobs[j].gpus, cpus, memory }
    }

    fn add_whole(
        &self,
        model: &mut Model,
        j: usize,
        levels: &[usize],
        choices: &mut Vec<Choice>,
    ) -> Result<(), FormulationError> {
        let gpus = self.jobs[j].gpus;
        for &level in levels {
            let demand = self.demand(j, level);
            for (server, room) in self.servers.iter().enumerate() {
                if room.units(&demand) == gpus {
                    let variable = model.binary(&format!("y_{j}_{level}_{server}"))?;
                    model.set_cost(variable, self.jobs[j].levels[level].throughput)?;
                    choices.push(Choice { job: j, level, server, gpus_each: gpus, variable });
                }
            }
        }
        Ok(())
    }

    fn add_gang(
        &self,
        model: &mut Model,
        j: usize,
        levels: &[usize],
        fewest: f64,
        choices: &mut Vec<Choice>,
    ) -> Result<(), FormulationError> {
        let gpus = self.jobs[j].gpus;
        let largest = self.servers.iter().map(|server| server.gpus).max().unwrap_or(0).max(1);
        let mut uses = Vec::with_capacity(self.servers.len());
        for server in 0..self.servers.len() {
            uses.push(model.binary(&format!("u_{j}_{server}"))?);
        }
        let mut of_level = Vec::new();
        let mut on_server: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.servers.len()];
        for &level in levels {
            let chosen = model.binary(&format!("x_{j}_{level}"))?;
            model.set_cost(chosen, self.jobs[j].levels[level].throughput)?;
            of_level.push((chosen, 1.0));
            let demand = self.demand(j, level);
            let mut sum = vec![(chosen, -f64::from(gpus))];
            for (server, room) in self.servers.iter().enumerate() {
                let units = f64::from(room.units(&demand));
                if units > 0.0 {
                    let name = format!("n_{j}_{level}_{server}");
                    let variable = model.variable(&name, Kind::Integer, 0.0, units)?;
                    sum.push((variable, 1.0));
                    on_server[server].push((variable, 1.0));
                    choices.push(Choice { job: j, level, server, gpus_each: 1, variable });
                }
            }
            model.row(&format!("gang_{j}_{level}"), 0.0, 0.0, sum)?;
        }
        model.row(&format!("one_{j}"), fewest, 1.0, of_level)?;
        for (server, mut terms) in on_server.into_iter().enumerate() {
            terms.push((uses[server], -f64::from(self.servers[server].gpus.min(gpus))));
            model.row(&format!("uses_{j}_{server}"), f64::NEG_INFINITY, 0.0, terms)?;
        }
        let n_servers = f64::from(gpus.div_ceil(largest));
        let used = uses.into_iter().map(|variable| (variable, 1.0));
        model.row(&format!("fewest_{j}"), f64::NEG_INFINITY, n_servers, used)?;
        Ok(())
    }

    fn add_server_rows(&self, model: &mut Model, choices: &[Choice]) -> Result<(), FormulationError> {
        let mut here: Vec<Vec<&Choice>> = vec![Vec::new(); self.servers.len()];
        for choice in choices {
            here[choice.server].push(choice);
        }
        for (s, (server, here)) in self.servers.iter().zip(&here).enumerate() {
            let sum = |amount: fn(&Demand) -> f64| {
                here.iter().map(move |choice| {
                    let demand = self.demand(choice.job, choice.level);
                    let part = f64::from(choice.gpus_each) / f64::from(demand.gpus);
                    (choice.variable, amount(&demand) * part)
                })
            };
            let none = f64::NEG_INFINITY;
            model.row(&format!("gpus_{s}"), none, f64::from(server.gpus), sum(|job| f64::from(job.gpus)))?;
            model.row(&format!("cpus_{s}"), none, server.cpus, sum(|job| job.cpus))?;
            model.row(&format!("memory_{s}"), none, server.memory, sum(|job| job.memory))?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), FormulationError> {
        for (j, job) in self.jobs.iter().enumerate() {
            check_levels(&job.levels, job.floor, || format!("job {j}"))?;
        }
        let jobs = self.jobs.iter().map(|job| Demand { gpus: job.gpus, cpus: 0.0, memory: 0.0 }).collect();
        PlacementProblem { servers: self.servers.clone(), jobs }.check()
    }
}

impl JointModel {
    /// What each job got; `None` for a job left out.
    pub fn decode(&self, solution: &Solution) -> Result<Vec<Option<JointPlacement>>, FormulationError> {
        if !solution.status.has_values() {
            return Err(FormulationError::NoValues { status: solution.status.to_string() });
        }
        let mut plan: Vec<Option<JointPlacement>> = vec![None; self.n_jobs];
        for choice in &self.choices {
            let gpus = solution.value(choice.variable).unwrap_or(0.0) as u32 * choice.gpus_each;
            if gpus > 0 {
                let placement = plan[choice.job]
                    .get_or_insert_with(|| JointPlacement { level: choice.level, parts: Vec::new() });
                placement.parts.push(Part { server: choice.server, gpus });
            }
        }
        Ok(plan)
    }

    /// Values for a plan of jobs that each fit on one server, as a start; `None` if the model has no such choice.
    pub fn encode(&self, plan: &[Option<JointPlacement>]) -> Option<Vec<f64>> {
        let mut values = vec![0.0; self.model.n_variables()];
        for (job, placement) in plan.iter().enumerate() {
            let Some(JointPlacement { level, parts }) = placement else { continue };
            let [part] = &parts[..] else { return None };
            let choice = self.choices.iter().find(|choice| {
                (choice.job, choice.level, choice.server) == (job, *level, part.server)
                    && choice.gpus_each == part.gpus
            })?;
            values[choice.variable.index()] = 1.0;
        }
        (plan.len() == self.n_jobs).then_some(values)
    }
}
