//! Synergy-OPT (OSDI'22 §4.1 and appendix; formulation as in the published code).
//!
//! ```text
//!  LevelProblem ──▶ a CPU/memory level per job: multiple-choice knapsack over the whole cluster
//!  ClassProblem ──▶ the same, counting like jobs instead of telling them apart
//!       │             its objective is the idealised upper bound: servers are ignored
//!       ├▶ relaxed     a bound on that by prices, in microseconds and without a solver
//!       ▼ demands
//!  PlacementProblem ──▶ jobs onto servers: exact ILP with consolidation, or LP and rounding; `pack` is the start
//!
//!  JointProblem ──▶ level and server at once: the true optimum, and the slowest
//! ```
//!
//! The original stops at the upper bound and spreads jobs in fractions; what is decoded here is a schedule
//! that can run: whole GPUs on named servers, nothing oversubscribed.

mod classes;
mod eject;
mod joint;
mod levels;
mod offer;
mod pack;
mod placement;
mod relaxed;

pub use classes::{ClassModel, ClassProblem, LevelClass};
pub use joint::{JointJob, JointModel, JointPlacement, JointProblem};
pub use levels::{LevelJob, LevelModel, LevelProblem, Shape};
pub use pack::pack;
pub use placement::{PlacementModel, PlacementProblem};
pub use relaxed::{Offered, Relaxed, relaxed, worth_offering};

use crate::error::FormulationError;

/// One way to run a job: the CPUs and memory that all of its GPUs together take, and how fast it is then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// CPUs of the whole job.
    pub cpus: f64,
    /// Memory of the whole job, in any unit used throughout.
    pub memory: f64,
    /// Throughput, in any unit used throughout.
    pub throughput: f64,
}

/// What a server has, or what is free on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// GPUs.
    pub gpus: u32,
    /// CPUs.
    pub cpus: f64,
    /// Memory.
    pub memory: f64,
}

/// What a job takes in all; a part of its GPUs takes the same part of CPUs and memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// GPUs, at least one.
    pub gpus: u32,
    /// CPUs.
    pub cpus: f64,
    /// Memory.
    pub memory: f64,
}

/// GPUs of one job on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The server, by position.
    pub server: usize,
    /// How many GPUs there.
    pub gpus: u32,
}

/// Whether a job that fits on one server may be spread over several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gangs {
    /// It stays whole; only a job larger than every server is spread.
    Whole,
    /// It may be spread, over as few servers as possible.
    Split,
}

/// Whether a job may stay without a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Every job must be placed; otherwise the model is infeasible.
    Forbidden,
    /// Jobs may stay out; as many GPUs as possible are placed.
    Allowed,
}

impl Server {
    /// How many GPUs of a job fit here, each with its share of CPUs and memory.
    fn units(&self, job: &Demand) -> u32 {
        let per_gpu = |amount: f64| amount / f64::from(job.gpus.max(1));
        let fits = |free: f64, each: f64| {
            if each <= 0.0 { f64::INFINITY } else { (free / each * (1.0 + 1e-12) + 1e-12).floor() }
        };
        let by_cpus = fits(self.cpus, per_gpu(job.cpus));
        let by_memory = fits(self.memory, per_gpu(job.memory));
        // a float cast saturates: below 0 is 0
        let most = by_cpus.min(by_memory).min(f64::from(self.gpus));
        (most as u32).min(job.gpus)
    }

    /// Takes GPUs of a job out of what is free.
    fn take(&mut self, job: &Demand, gpus: u32) {
        let part = f64::from(gpus) / f64::from(job.gpus.max(1));
        self.gpus -= gpus;
        self.cpus -= job.cpus * part;
        self.memory -= job.memory * part;
    }

    /// Puts GPUs of a job back.
    fn give(&mut self, job: &Demand, gpus: u32) {
        let part = f64::from(gpus) / f64::from(job.gpus.max(1));
        self.gpus += gpus;
        self.cpus += job.cpus * part;
        self.memory += job.memory * part;
    }
}

/// Refuses amounts that are negative or no numbers.
fn amount(value: f64, location: impl Fn() -> String) -> Result<(), FormulationError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(FormulationError::BadInput { location: location(), value, expected: "a finite amount of at least 0" })
}

/// Refuses levels, and a floor of throughput, that are negative or no numbers; `owner` names the job or class.
fn check_levels(levels: &[Level], floor: f64, owner: impl Fn() -> String) -> Result<(), FormulationError> {
    amount(floor, || format!("{}, floor", owner()))?;
    for (l, level) in levels.iter().enumerate() {
        let values = [("cpus", level.cpus), ("memory", level.memory), ("throughput", level.throughput)];
        for (what, value) in values {
            amount(value, || format!("{}, level {l}, {what}", owner()))?;
        }
    }
    Ok(())
}

/// Positions of the levels worth offering: no other level is as fast for no more CPUs and no more memory.
fn undominated(levels: &[Level]) -> Vec<usize> {
    let beats = |a: usize, b: usize| {
        let (first, second) = (&levels[a], &levels[b]);
        let is_as_good = first.throughput >= second.throughput
            && first.cpus <= second.cpus
            && first.memory <= second.memory;
        is_as_good && (first != second || a < b)
    };
    (0..levels.len()).filter(|&b| !(0..levels.len()).any(|a| a != b && beats(a, b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_costs_more_for_nothing_is_not_offered() {
        let level = |cpus, memory, throughput| Level { cpus, memory, throughput };
        let levels = [level(1.0, 1.0, 1.0), level(2.0, 1.0, 1.0), level(2.0, 2.0, 3.0), level(2.0, 2.0, 3.0)];
        assert_eq!(undominated(&levels), [0, 2]);
    }

    #[test]
    fn units_are_limited_by_the_scarcest_resource() {
        let server = Server { gpus: 8, cpus: 7.0, memory: 100.0 };
        assert_eq!(server.units(&Demand { gpus: 4, cpus: 12.0, memory: 10.0 }), 2);
        assert_eq!(server.units(&Demand { gpus: 4, cpus: 4.0, memory: 10.0 }), 4);
        assert_eq!(server.units(&Demand { gpus: 1, cpus: 8.0, memory: 0.0 }), 0);
    }
}
