//! Phase 1 of Synergy-OPT exactly as the original states it: levels straight from the speed table, whatever a server
//! can give, one CPU and one memory row for the whole cluster, speeds not weighted by GPUs.

use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::profile::HostCurve;
use rota_solvers::FormulationError;
use rota_solvers::synergy_opt::{ClassProblem, Level, LevelClass};

/// Numbers closer than this are the same level: the original looks its fair share up by equality.
const SAME: f64 = 1e-9;

/// The original's problem for the jobs of one round.
pub fn phase_one(cluster: &Cluster, jobs: &[&JobSpec]) -> Result<ClassProblem, FormulationError> {
    let host = cluster.host_total();
    let gpus = f64::from(cluster.n_gpus());
    let fair = (host.cpus() / gpus, host.mem_gb() / gpus);
    let mut problem = ClassProblem { cpus: host.cpus(), memory: host.mem_gb(), classes: Vec::new() };
    let mut kinds: Vec<(&str, u32)> = Vec::new();
    for job in jobs {
        let kind = (job.profile.name.as_str(), job.gpus.asked);
        match kinds.iter().position(|known| *known == kind) {
            Some(known) => problem.classes[known].count += 1,
            None => {
                kinds.push(kind);
                problem.classes.push(class(job, fair)?);
            }
        }
    }
    Ok(problem)
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
