//! Phase 1 of Synergy-OPT exactly as the original states it: levels straight from the speed table, whatever a server
//! can give, one CPU and one memory row for the whole cluster, speeds not weighted by GPUs.
//!
//! The original pays every job the speed of its level, whether or not servers could give it (its phase 2 is solved and not
//! used), so its OPT is a bound and no schedule. Equal optima are many; which one a run follows depends on the solver
//! there. Here jobs of one model and GPU count get the levels of their class in the order of the queue, the fastest first.

use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::profile::HostCurve;
use rota_solvers::synergy_opt::{ClassProblem, Level, LevelClass};
use rota_solvers::{FormulationError, Highs, Limits, Solver as _, Start};

/// Numbers closer than this are the same level: the original looks its fair share up by equality.
const SAME: f64 = 1e-9;

/// The original's problem for the jobs of one round.
pub fn phase_one(cluster: &Cluster, jobs: &[&JobSpec]) -> Result<ClassProblem, FormulationError> {
    Ok(by_class(cluster, jobs)?.0)
}

/// The problem, and the class of each job.
fn by_class(cluster: &Cluster, jobs: &[&JobSpec]) -> Result<(ClassProblem, Vec<usize>), FormulationError> {
    let host = cluster.host_total();
    let gpus = f64::from(cluster.n_gpus());
    let fair = (host.cpus() / gpus, host.mem_gb() / gpus);
    let mut problem = ClassProblem { cpus: host.cpus(), memory: host.mem_gb(), classes: Vec::new() };
    let mut kinds: Vec<(&str, u32)> = Vec::new();
    let mut class_of = Vec::with_capacity(jobs.len());
    for job in jobs {
        let kind = (job.profile.name.as_str(), job.gpus.asked);
        let known = kinds.iter().position(|known| *known == kind);
        class_of.push(known.unwrap_or(kinds.len()));
        match known {
            Some(known) => problem.classes[known].count += 1,
            None => {
                kinds.push(kind);
                problem.classes.push(class(job, fair)?);
            }
        }
    }
    Ok((problem, class_of))
}

/// The speed that each job of a round is paid, relative to its proportional share; the jobs are in the order of the queue.
pub(super) fn speeds(cluster: &Cluster, jobs: &[&JobSpec]) -> Result<Vec<f64>, FormulationError> {
    let (problem, class_of) = by_class(cluster, jobs)?;
    let built = problem.model()?;
    let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
    let mut left: Vec<Vec<(f64, u32)>> = Vec::with_capacity(problem.classes.len());
    for (class, levels) in problem.classes.iter().zip(built.decode(&solution)?) {
        let speed = |(level, count): (usize, u32)| (class.levels[level].throughput, count);
        let mut levels: Vec<(f64, u32)> = levels.into_iter().map(speed).collect();
        // The fastest is last, where it is taken from.
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
        left.push(levels);
    }
    let mut next = |class: usize| {
        let levels = &mut left[class];
        let (speed, count) = levels.last_mut()?;
        let speed = *speed;
        *count -= 1;
        if *count == 0 {
            levels.pop();
        }
        Some(speed)
    };
    // A level for every job is a row of the model.
    Ok(class_of.into_iter().map(|class| next(class).unwrap_or(1.0)).collect())
}

fn class(job: &JobSpec, fair: (f64, f64)) -> Result<LevelClass, FormulationError> {
    let missing = |value, expected| {
        let location = format!("job {}, model {}", job.name, job.profile.name);
        FormulationError::BadInput { location, value, expected }
    };
    let table = job.profile.host.as_ref().ok_or_else(|| missing(0.0, "a speed table"))?;
    let find =
        |levels: &[f64], share: f64| levels.iter().position(|level| (level - share).abs() <= SAME * share);
    let fair_cpus =
        find(table.cpus(), fair.0).ok_or_else(|| missing(fair.0, "a fair share of CPUs on the table"))?;
    let fair_mem =
        find(table.mem_gb(), fair.1).ok_or_else(|| missing(fair.1, "a fair share of memory on the table"))?;
    let floor = table.at_level(fair_cpus, fair_mem);
    Ok(LevelClass { levels: levels(table, f64::from(job.gpus.asked)), floor, count: 1 })
}

fn levels(table: &HostCurve, gpus: f64) -> Vec<Level> {
    let mut levels = Vec::new();
    for (c, cpus) in table.cpus().iter().enumerate() {
        for (m, mem_gb) in table.mem_gb().iter().enumerate() {
            levels.push(Level { cpus: gpus * cpus, memory: gpus * mem_gb, throughput: table.at_level(c, m) });
        }
    }
    levels
}
