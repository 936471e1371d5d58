//! The comparison: each published trace under Chronus and the baselines, all runs in parallel.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use rota_core::cluster::{Cluster, ClusterError, NodeGroup};
use rota_core::job::Deadline;
use rota_core::ledger::{Ledger, Status};
use rota_core::resources::Host;
use rota_core::simulation::{Settings, SimulationError, simulate};
use rota_core::workload::Workload;
use rota_scripts::{Limits, LoadError, ScriptPolicy};
use rota_traces::error::InputError;
use rota_traces::format::{Setting, chronus};
use rota_traces::profile;
use rota_traces::source::Source;

use super::{ORIGIN, POLICIES, ROUND, TRACES};

/// Jobs and nodes of a quick study: a fifteenth of a trace on a third of the cluster.
const QUICK: (usize, u32) = (2_000, 40);

/// Nodes of the authors' batch script.
const NODES: u32 = 120;

/// What to compare.
#[derive(Clone, Debug)]
pub struct ChronusOptions {
    /// Only the first jobs of each trace.
    pub is_quick: bool,
    /// Folders in which traces are looked for.
    pub folders: Vec<PathBuf>,
}

/// The comparison.
#[derive(Clone, Debug)]
pub struct ChronusStudy {
    /// One for each trace.
    pub rows: Vec<TraceRow>,
    /// Nodes of eight GPUs.
    pub n_nodes: u32,
    /// Wall-clock time from reading to the end.
    pub wall_s: f64,
}

/// One trace.
#[derive(Clone, Debug)]
pub struct TraceRow {
    /// Its name.
    pub trace: &'static str,
    /// Its jobs.
    pub n_jobs: usize,
    /// By policy.
    pub figures: Vec<Figures>,
}

/// What came of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Figures {
    /// Jobs with a deadline.
    pub deadline_jobs: usize,
    /// Of these, the part that met no step of it.
    pub miss_rate: f64,
    /// The part of all value that was lost: a step missed counts with what it is worth.
    pub lost_value: f64,
    /// Average completion time of best-effort jobs, seconds; nothing where there are none.
    pub best_effort_jct_s: Option<f64>,
    /// Solves that ended without an answer, where packed plans were used instead.
    pub n_fallbacks: usize,
    /// Wall-clock time of the run.
    pub wall_s: f64,
}

/// A comparison that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ChronusError {
    /// A trace is not there.
    #[error(
        "{file} is in none of the folders {folders:?}; it is published at {ORIGIN}: fetch it and name its folder with --traces"
    )]
    Missing {
        /// The trace.
        file: String,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// A trace cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The cluster cannot be.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A shipped policy does not compile.
    #[error(transparent)]
    Policy(#[from] LoadError),
    /// A run had to stop.
    #[error("{policy} on {trace}: {error}")]
    Run {
        /// The policy.
        policy: &'static str,
        /// On what.
        trace: &'static str,
        /// What went wrong.
        error: SimulationError,
    },
}

/// Runs the comparison; `done` hears of each run that is complete.
pub fn study(options: &ChronusOptions, done: &(dyn Fn() + Sync)) -> Result<ChronusStudy, ChronusError> {
    let began = Instant::now();
    let n_nodes = if options.is_quick { QUICK.1 } else { NODES };
    let cluster = Arc::new(servers(n_nodes)?);
    let mut loaded = Vec::new();
    for trace in TRACES {
        let workload = Arc::new(load(trace, options, &cluster)?);
        loaded.extend(POLICIES.map(|policy| (trace, policy, Arc::clone(&workload))));
    }
    let runs: Result<Vec<Figures>, ChronusError> = loaded
        .par_iter()
        .map(|(trace, policy, workload)| {
            let figures = run(&cluster, workload, policy, trace);
            done();
            figures
        })
        .collect();
    let runs = runs?;
    let row = |(index, trace): (usize, &'static str)| TraceRow {
        trace,
        n_jobs: loaded[index * POLICIES.len()].2.jobs.len(),
        figures: runs[index * POLICIES.len()..][..POLICIES.len()].to_vec(),
    };
    let rows = TRACES.into_iter().enumerate().map(row).collect();
    Ok(ChronusStudy { rows, n_nodes, wall_s: began.elapsed().as_secs_f64() })
}

fn servers(n_nodes: u32) -> Result<Cluster, ClusterError> {
    let group = NodeGroup {
        count: n_nodes,
        racks: 1,
        gpu_type: "gpu".into(),
        n_gpus: 8,
        gpu_mem_bytes: 0,
        host: Host::from_units(128.0, 256.0, 0.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    Cluster::new(format!("{n_nodes} x 8"), &[group])
}

fn load(trace: &str, options: &ChronusOptions, cluster: &Cluster) -> Result<Workload, ChronusError> {
    let file = format!("trace_job_Philly_{trace}.csv");
    let path = options.folders.iter().map(|folder| folder.join(&file)).find(|path| path.exists());
    let path = path.ok_or(ChronusError::Missing { file, folders: options.folders.clone() })?;
    let profiles = profile::load("synergy")?;
    let mut workload = chronus::read(&Source::open(&path)?, &Setting::new(cluster, &profiles))?.workload;
    if options.is_quick {
        workload.jobs.truncate(QUICK.0);
        workload.truths.truncate(QUICK.0);
    }
    Ok(workload)
}

fn run(
    cluster: &Arc<Cluster>,
    workload: &Arc<Workload>,
    policy: &'static str,
    trace: &'static str,
) -> Result<Figures, ChronusError> {
    let began = Instant::now();
    let mut words = policy.split(' ');
    let mut script = ScriptPolicy::load(words.next().unwrap_or(policy), Limits::default())?;
    for (key, value) in words.filter_map(|setting| setting.split_once('=')) {
        script.set(key, value).expect("a setting of a shipped policy");
    }
    let settings = Settings { round: ROUND, ..Settings::default() };
    let (cluster, jobs) = (Arc::clone(cluster), Arc::clone(workload));
    let ledger = simulate(cluster, jobs, Vec::new(), &mut script, &settings, &mut |_| ());
    let ledger = ledger.map_err(|error| ChronusError::Run { policy, trace, error })?;
    Ok(Figures { wall_s: began.elapsed().as_secs_f64(), ..figures(workload, &ledger) })
}

fn figures(workload: &Workload, ledger: &Ledger) -> Figures {
    let (mut n_deadlines, mut n_missed, mut value, mut kept) = (0, 0, 0.0, 0.0);
    let (mut n_best_effort, mut best_effort_s) = (0_usize, 0.0);
    for (job, outcome) in workload.jobs.iter().zip(&ledger.outcomes) {
        let finish = outcome.finish.filter(|_| outcome.status == Status::Finished);
        let steps = match &job.deadline {
            Deadline::None => {
                n_best_effort += usize::from(finish.is_some());
                best_effort_s += finish.map_or(0.0, |finish| (finish - job.arrival).as_secs_f64());
                continue;
            }
            Deadline::Strict(time) => vec![(*time, 1.0)],
            Deadline::Soft(steps) => steps.clone(),
        };
        let worth = steps.iter().find(|(time, _)| finish.is_some_and(|finish| finish <= *time));
        let most = steps.first().map_or(1.0, |step| step.1);
        n_deadlines += 1;
        n_missed += usize::from(worth.is_none());
        value += 1.0;
        kept += worth.map_or(0.0, |step| step.1 / most);
    }
    let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    Figures {
        deadline_jobs: n_deadlines,
        miss_rate: part(n_missed as f64, n_deadlines as f64),
        lost_value: part(value - kept, value),
        best_effort_jct_s: (n_best_effort > 0).then(|| best_effort_s / n_best_effort as f64),
        n_fallbacks: ledger.notes.iter().filter(|(_, note)| note.contains("FELL BACK")).count(),
        wall_s: 0.0,
    }
}
