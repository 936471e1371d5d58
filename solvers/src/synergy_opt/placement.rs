//! Phase 2: jobs onto servers, with what the original lacks: gangs larger
//! than a server, spreading over as few servers as possible, and jobs left out instead of a crash.
//!
//! A job kept whole is one binary per server it fits on. A spread job has GPUs per server (integer) and a
//! binary "uses it", whose sum is what consolidation minimises.

use super::{Demand, Gangs, LeftOut, Part, Server, amount, pack::pack_rest};
use crate::error::FormulationError;
use crate::model::{Kind, Model, Sense, Variable};
use crate::solution::Solution;

/// Servers, and jobs to be placed on them.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementProblem {
    /// What is free on each server.
    pub servers: Vec<Server>,
    /// What each job takes.
    pub jobs: Vec<Demand>,
}

/// The model of a [`PlacementProblem`], and the way back.
#[derive(Clone, Debug)]
pub struct PlacementModel {
    /// What a solver is given.
    pub model: Model,
    jobs: Vec<JobVariables>,
}

/// The variables of one job.
#[derive(Clone, Debug)]
struct JobVariables {
    gpus: u32,
    /// 1 if placed; absent when it must be.
    placed: Option<Variable>,
    spots: Vec<Spot>,
}

/// One job on one server.
#[derive(Clone, Copy, Debug)]
struct Spot {
    server: usize,
    /// Whole jobs: all GPUs here. Spread jobs: any GPUs here.
    uses: Variable,
    /// Spread jobs: how many GPUs here.
    gpus: Option<Variable>,
}

impl PlacementProblem {
    /// The exact model: fewest servers per job, after most GPUs placed where jobs may be left out.
    pub fn model(&self, gangs: Gangs, left_out: LeftOut) -> Result<PlacementModel, FormulationError> {
        self.check()?;
        let mut model = Model::new(Sense::Minimize);
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let most_used = (self.jobs.len() * self.servers.len()) as f64 + 1.0;
        for (j, job) in self.jobs.iter().enumerate() {
            let placed = match left_out {
                LeftOut::Forbidden => None,
                LeftOut::Allowed => {
                    let placed = model.binary(&format!("p_{j}"))?;
                    // one GPU placed outweighs all servers that could be saved
                    model.set_cost(placed, -most_used * f64::from(job.gpus))?;
                    model.set_offset(model.offset() + most_used * f64::from(job.gpus))?;
                    Some(placed)
                }
            };
            let spots = self.spots(&mut model, j, gangs)?;
            jobs.push(JobVariables { gpus: job.gpus, placed, spots });
        }
        for (j, job) in jobs.iter().enumerate() {
            add_job_rows(&mut model, j, job)?;
        }
        self.add_server_rows(&mut model, &jobs)?;
        Ok(PlacementModel { model, jobs })
    }

    /// The LP: any part of a job on any server. Always feasible when totals fit; [`PlacementProblem::round`]
    /// makes whole jobs of it.
    pub fn relaxed_model(&self) -> Result<PlacementModel, FormulationError> {
        self.check()?;
        let mut model = Model::new(Sense::Minimize);
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for (j, job) in self.jobs.iter().enumerate() {
            let mut spots = Vec::with_capacity(self.servers.len());
            for server in 0..self.servers.len() {
                let uses = model.continuous(&format!("x_{j}_{server}"), 0.0, 1.0)?;
                // low servers first: vertices then leave few jobs in pieces
                model.set_cost(uses, (server * job.gpus as usize) as f64)?;
                spots.push(Spot { server, uses, gpus: None });
            }
            jobs.push(JobVariables { gpus: job.gpus, placed: None, spots });
        }
        for (j, job) in jobs.iter().enumerate() {
            model.row(&format!("all_{j}"), 1.0, 1.0, job.spots.iter().map(|spot| (spot.uses, 1.0)))?;
        }
        self.add_server_rows(&mut model, &jobs)?;
        Ok(PlacementModel { model, jobs })
    }

    /// Rounds a solved LP: jobs it kept whole stay where they are, the others are packed into what is left.
    /// A job that fits nowhere is left out (its list is empty).
    pub fn round(
        &self,
        relaxed: &PlacementModel,
        solution: &Solution,
        gangs: Gangs,
    ) -> Result<Vec<Vec<Part>>, FormulationError> {
        const WHOLE: f64 = 1.0 - 1e-6;
        with_values(solution)?;
        let mut free = self.servers.clone();
        let mut placed = vec![Vec::new(); self.jobs.len()];
        for ((parts, variables), job) in placed.iter_mut().zip(&relaxed.jobs).zip(&self.jobs) {
            let whole = variables.spots.iter().find(|spot| solution.value(spot.uses) >= Some(WHOLE));
            if let Some(spot) = whole
                && free[spot.server].units(job) == job.gpus
            {
                free[spot.server].take(job, job.gpus);
                parts.push(Part { server: spot.server, gpus: job.gpus });
            }
        }
        pack_rest(self, gangs, &mut free, &mut placed);
        Ok(placed)
    }

    /// The variables of one job on every server it fits on.
    fn spots(&self, model: &mut Model, j: usize, gangs: Gangs) -> Result<Vec<Spot>, FormulationError> {
        let job = &self.jobs[j];
        let is_whole = gangs == Gangs::Whole && self.fits_one_server(job) || job.gpus == 1;
        let mut spots = Vec::new();
        for (server, room) in self.servers.iter().enumerate() {
            let units = room.units(job);
            if units == 0 || (is_whole && units < job.gpus) {
                continue;
            }
            let uses = model.binary(&format!("x_{j}_{server}"))?;
            model.set_cost(uses, 1.0)?;
            let gpus = if is_whole {
                None
            } else {
                Some(model.variable(&format!("n_{j}_{server}"), Kind::Integer, 0.0, f64::from(units))?)
            };
            spots.push(Spot { server, uses, gpus });
        }
        Ok(spots)
    }

    /// Whether the job is no larger than the largest server, in GPUs.
    fn fits_one_server(&self, job: &Demand) -> bool {
        self.servers.iter().any(|server| server.gpus >= job.gpus)
    }

    fn add_server_rows(&self, model: &mut Model, jobs: &[JobVariables]) -> Result<(), FormulationError> {
        let mut on_server: Vec<Vec<(usize, Variable, f64)>> = vec![Vec::new(); self.servers.len()];
        for (j, job) in jobs.iter().enumerate() {
            for spot in &job.spots {
                // GPUs that one unit of the variable stands for
                let (variable, gpus) = match spot.gpus {
                    Some(gpus) => (gpus, 1.0),
                    None => (spot.uses, f64::from(job.gpus)),
                };
                on_server[spot.server].push((j, variable, gpus));
            }
        }
        for (s, (server, here)) in self.servers.iter().zip(&on_server).enumerate() {
            let sum = |amount: fn(&Demand) -> f64| {
                let jobs = &self.jobs;
                here.iter().map(move |&(j, x, gpus)| (x, amount(&jobs[j]) * gpus / f64::from(jobs[j].gpus)))
            };
            let none = f64::NEG_INFINITY;
            model.row(&format!("gpus_{s}"), none, f64::from(server.gpus), sum(|job| f64::from(job.gpus)))?;
            model.row(&format!("cpus_{s}"), none, server.cpus, sum(|job| job.cpus))?;
            model.row(&format!("memory_{s}"), none, server.memory, sum(|job| job.memory))?;
        }
        Ok(())
    }

    /// Refuses what makes no problem.
    pub(super) fn check(&self) -> Result<(), FormulationError> {
        for (s, server) in self.servers.iter().enumerate() {
            amount(server.cpus, || format!("server {s}, cpus"))?;
            amount(server.memory, || format!("server {s}, memory"))?;
        }
        for (j, job) in self.jobs.iter().enumerate() {
            amount(job.cpus, || format!("job {j}, cpus"))?;
            amount(job.memory, || format!("job {j}, memory"))?;
            if job.gpus == 0 {
                let location = format!("job {j}, gpus");
                return Err(FormulationError::BadInput { location, value: 0.0, expected: "at least 1" });
            }
        }
        Ok(())
    }
}

fn add_job_rows(model: &mut Model, j: usize, job: &JobVariables) -> Result<(), FormulationError> {
    let gpus = f64::from(job.gpus);
    let is_spread = job.spots.iter().any(|spot| spot.gpus.is_some());
    let each = if is_spread { gpus } else { 1.0 };
    let sum = job.spots.iter().map(|spot| (spot.gpus.unwrap_or(spot.uses), 1.0));
    match job.placed {
        None => model.row(&format!("all_{j}"), each, each, sum)?,
        Some(placed) => model.row(&format!("all_{j}"), 0.0, 0.0, sum.chain([(placed, -each)]))?,
    };
    for spot in &job.spots {
        if let Some(n) = spot.gpus {
            let units = model.range(n).upper;
            let name = format!("uses_{j}_{}", spot.server);
            model.row(&name, f64::NEG_INFINITY, 0.0, [(n, 1.0), (spot.uses, -units)])?;
        }
    }
    if is_spread {
        // follows from the rows above for whole numbers, not for the relaxation
        let largest = job.spots.iter().filter_map(|spot| spot.gpus).map(|n| model.range(n).upper);
        let fewest = (gpus / largest.fold(1.0, f64::max)).ceil();
        let uses = job.spots.iter().map(|spot| (spot.uses, 1.0));
        let name = format!("fewest_{j}");
        match job.placed {
            None => model.row(&name, fewest, f64::INFINITY, uses)?,
            Some(placed) => model.row(&name, 0.0, f64::INFINITY, uses.chain([(placed, -fewest)]))?,
        };
    }
    Ok(())
}

impl PlacementModel {
    /// Where each job's GPUs are; empty for a job left out.
    pub fn decode(&self, solution: &Solution) -> Result<Vec<Vec<Part>>, FormulationError> {
        with_values(solution)?;
        let part = |job: &JobVariables, spot: &Spot| {
            let gpus = match spot.gpus {
                Some(n) => solution.value(n).unwrap_or(0.0) as u32,
                None if solution.value(spot.uses) == Some(1.0) => job.gpus,
                None => 0,
            };
            (gpus > 0).then_some(Part { server: spot.server, gpus })
        };
        let parts = |job: &JobVariables| job.spots.iter().filter_map(|spot| part(job, spot)).collect();
        Ok(self.jobs.iter().map(parts).collect())
    }

    /// Values for a placement, as a start; `None` if the model has no such spot or forbids leaving jobs out.
    pub fn encode(&self, placement: &[Vec<Part>]) -> Option<Vec<f64>> {
        let mut values = vec![0.0; self.model.n_variables()];
        for (job, parts) in self.jobs.iter().zip(placement) {
            match job.placed {
                Some(placed) => values[placed.index()] = if parts.is_empty() { 0.0 } else { 1.0 },
                None if parts.is_empty() => return None,
                None => {}
            }
            for part in parts {
                let spot = job.spots.iter().find(|spot| spot.server == part.server)?;
                values[spot.uses.index()] = 1.0;
                match spot.gpus {
                    Some(n) => values[n.index()] = f64::from(part.gpus),
                    None if part.gpus != job.gpus => return None,
                    None => {}
                }
            }
        }
        (placement.len() == self.jobs.len()).then_some(values)
    }
}

fn with_values(solution: &Solution) -> Result<(), FormulationError> {
    if solution.status.has_values() {
        Ok(())
    } else {
        Err(FormulationError::NoValues { status: solution.status.to_string() })
    }
}
