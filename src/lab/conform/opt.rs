//! Synergy's OPT cases: the original logged the job set of every round and the throughput its phase 1 reached; ours
//! must reach the same. Times of jobs are not compared, because equal optima give different jobs more.

use std::collections::BTreeMap;
use std::path::Path;

use rota_core::cluster::Cluster;
use rota_core::job::JobSpec;
use rota_core::workload::Workload;
use rota_scripts::artifact::synergy::phase_one;
use rota_solvers::{Highs, Limits, SolveStatus, Solver, Start};
use rota_traces::error::InputError;
use rota_traces::source::Source;
use serde::Deserialize;

use super::CaseError;
use super::compare::is_close;

/// One line of the original's log. Lines of phase 2 have neither jobs nor an objective.
#[derive(Deserialize)]
struct Logged {
    phase: u32,
    obj: Option<f64>,
    #[serde(default)]
    ids: Vec<u64>,
}

/// The first round whose optimum differs; `None` when all are equal, an error when the log cannot be used.
pub(super) fn first_difference(
    log: &Path,
    cluster: &Cluster,
    workload: &Workload,
) -> Result<Option<String>, CaseError> {
    let source = Source::open(log)?;
    let rounds: Vec<Logged> = super::parse_json(&source)?;
    let jobs: BTreeMap<&str, &JobSpec> = workload.jobs.iter().map(|job| (&*job.name, &**job)).collect();
    let mut solved: BTreeMap<&[u64], f64> = BTreeMap::new();
    for (round, logged) in rounds.iter().filter(|logged| logged.phase == 1).enumerate() {
        let expected =
            logged.obj.ok_or_else(|| InputError::problem(&source.name, "phase 1 without an objective"))?;
        let got = match solved.get(logged.ids.as_slice()) {
            Some(known) => *known,
            None => {
                let reached = best(&source.name, cluster, &jobs, &logged.ids)?;
                solved.insert(&logged.ids, reached);
                reached
            }
        };
        if !is_close(expected, got) {
            let n_jobs = logged.ids.len();
            return Ok(Some(format!(
                "round {round}: expected a throughput of {expected} for {n_jobs} jobs, got {got}"
            )));
        }
    }
    Ok(None)
}

/// The proven best throughput of a job set of the log.
fn best(
    log: &str,
    cluster: &Cluster,
    jobs: &BTreeMap<&str, &JobSpec>,
    ids: &[u64],
) -> Result<f64, CaseError> {
    let find = |id: &u64| {
        let missing = || InputError::problem(log, format!("job {id} is not in the input"));
        jobs.get(id.to_string().as_str()).copied().ok_or_else(missing)
    };
    let set: Vec<&JobSpec> = ids.iter().map(find).collect::<Result<_, _>>()?;
    let built = phase_one(cluster, &set)?.model()?;
    let limits = Limits { wall: std::time::Duration::from_secs(1800), ..Limits::default() };
    let solution = Highs.solve(&built.model, &limits, Start::Cold);
    match (&solution.status, solution.objective) {
        (SolveStatus::Optimal, Some(objective)) => Ok(objective),
        (status, _) => Err(CaseError::Unsolved { n_jobs: ids.len(), status: status.clone() }),
    }
}
