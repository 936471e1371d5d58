//! Synergy's OPT cases: the original logged the job set of every round and the throughput its phase 1 reached; ours
//! must reach the same. Times of jobs are not compared, because equal optima give different jobs more.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::workload::Workload;
use rota_scripts::artifact::synergy::phase_one;
use rota_solvers::{Highs, Limits, SolveStatus, Solver, Start};
use serde::Deserialize;

/// Throughputs closer than this part of themselves are equal.
const TOLERANCE: f64 = 1e-6;

/// One line of the original's log. Lines of phase 2 have neither jobs nor an objective.
#[derive(Deserialize)]
struct Logged {
    phase: u32,
    obj: Option<f64>,
    #[serde(default)]
    ids: Vec<u64>,
}

/// The first round whose optimum differs; `None` when all are equal, an error when the log makes no sense.
pub(super) fn first_difference(
    log: &Path,
    cluster: &Cluster,
    workload: &Workload,
) -> anyhow::Result<Option<String>> {
    let text = std::fs::read_to_string(log).with_context(|| log.display().to_string())?;
    let rounds: Vec<Logged> = serde_json::from_str(&text).with_context(|| log.display().to_string())?;
    let jobs: BTreeMap<&str, &JobSpec> = workload.jobs.iter().map(|job| (&*job.name, &**job)).collect();
    let mut solved: BTreeMap<&[u64], f64> = BTreeMap::new();
    for (round, logged) in rounds.iter().filter(|logged| logged.phase == 1).enumerate() {
        let expected =
            logged.obj.with_context(|| format!("{}: phase 1 without an objective", log.display()))?;
        let got = match solved.get(logged.ids.as_slice()) {
            Some(known) => *known,
            None => {
                let reached = best(cluster, &jobs, &logged.ids)?;
                solved.insert(&logged.ids, reached);
                reached
            }
        };
        if (got - expected).abs() > TOLERANCE * expected.abs().max(1.0) {
            let n_jobs = logged.ids.len();
            return Ok(Some(format!(
                "round {round}: expected a throughput of {expected} for {n_jobs} jobs, got {got}"
            )));
        }
    }
    Ok(None)
}

/// The proven best throughput of a job set.
fn best(cluster: &Cluster, jobs: &BTreeMap<&str, &JobSpec>, ids: &[u64]) -> anyhow::Result<f64> {
    let find = |id: &u64| {
        jobs.get(id.to_string().as_str()).copied().with_context(|| format!("job {id} is not in the input"))
    };
    let set: Vec<&JobSpec> = ids.iter().map(find).collect::<anyhow::Result<_>>()?;
    let built = phase_one(cluster, &set)?.model()?;
    let limits = Limits { wall: std::time::Duration::from_secs(1800), ..Limits::default() };
    let solution = Highs.solve(&built.model, &limits, Start::Cold);
    match (&solution.status, solution.objective) {
        (SolveStatus::Optimal, Some(objective)) => Ok(objective),
        (status, _) => anyhow::bail!("{} jobs: the solve ended {status}", ids.len()),
    }
}
