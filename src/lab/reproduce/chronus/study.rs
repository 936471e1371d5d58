//! The comparison: each published trace under Chronus and the baselines, all runs in parallel.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rota_core::cluster::Cluster;
use rota_core::job::Deadline;
use rota_core::ledger::{Ledger, Status};
use rota_core::simulation::{RunSettings, simulate};
use rota_core::workload::Workload;
use rota_scripts::artifact::Defects;
use rota_scripts::artifact::chronus as artifact;
use rota_scripts::{Limits, ScriptPolicy};
use rota_solvers::Highs;
use rota_traces::format::{Setting, chronus};
use rota_traces::profile;
use rota_traces::source::Source;

use super::{POLICIES, ROUND, TRACES};
use crate::reproduce::evidence::{Column, Evidence, Row};
use crate::reproduce::quantity::{BEST_EFFORT_JCT, LOST_VALUE, MISSES};
use crate::reproduce::{ReproduceError, servers};

/// Jobs and nodes of a quick study: a fifteenth of a trace on a third of the cluster.
const QUICK: (usize, u32) = (2_000, 40);

/// Nodes of the authors' batch script.
const NODES: u32 = 120;

/// CPUs of a node: more than any of its jobs asks for.
const CPUS: f64 = 128.0;

/// What to compare.
#[derive(Clone, Debug)]
pub struct ChronusOptions {
    /// Only the first jobs of each trace.
    pub is_quick: bool,
    /// The traces to run, one figure for each.
    pub files: Vec<PathBuf>,
    /// Whose rules are run.
    pub columns: Vec<Column>,
    /// Which of its defects the original shall have.
    pub defects: Defects,
}

/// What came of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    /// Jobs with a deadline.
    deadline_jobs: usize,
    /// Of these, the part that met no step of it.
    miss_rate: f64,
    /// The part of all value that was lost: a step missed counts with what it is worth.
    lost_value: f64,
    /// Average completion time of best-effort jobs, seconds; nothing where there are none.
    best_effort_jct_s: Option<f64>,
    /// Solves that ended without an answer, where packed plans were used instead.
    n_fallbacks: usize,
}

/// One run of the comparison: on a trace, by whose rules, which policy.
#[derive(Clone, Copy)]
struct Cell {
    trace: usize,
    column: Column,
    policy: &'static str,
}

/// Every run, trace by trace; of the original's rules there is Chronus alone, which ships no baseline that runs.
fn grid(columns: &[Column]) -> Vec<Cell> {
    let traces = 0..TRACES.len();
    let runs = traces.flat_map(|trace| {
        let original = columns.contains(&Column::Original).then_some((Column::Original, POLICIES[0]));
        let shipped = POLICIES.iter().filter(|_| columns.contains(&Column::Shipped));
        let runs = original.into_iter().chain(shipped.map(|policy| (Column::Shipped, *policy)));
        runs.map(move |(column, policy)| Cell { trace, column, policy })
    });
    runs.collect()
}

/// Runs of the comparison.
pub fn n_runs(columns: &[Column]) -> usize {
    grid(columns).len()
}

/// Runs the comparison; `done` is called for each run that is complete.
pub fn study(options: &ChronusOptions, done: &(dyn Fn() + Sync)) -> Result<Evidence, ReproduceError> {
    let cluster = Arc::new(servers(if options.is_quick { QUICK.1 } else { NODES }, "gpu", CPUS)?);
    let loaded = options.files.iter().map(|file| Ok(Arc::new(load(file, options.is_quick, &cluster)?)));
    let loaded = loaded.collect::<Result<Vec<_>, ReproduceError>>()?;
    let cells: Vec<Cell> =
        grid(&options.columns).into_iter().filter(|cell| cell.trace < loaded.len()).collect();
    let rows: Result<Vec<(Column, Row)>, ReproduceError> = cells
        .par_iter()
        .map(|Cell { trace, column, policy }| {
            let (workload, trace) = (&loaded[*trace], TRACES[*trace]);
            let figures = match column {
                Column::Original => original(&cluster, workload, options.defects, trace),
                _ => run(&cluster, workload, policy, trace),
            };
            done();
            Ok((*column, figures?.row(policy, trace)))
        })
        .collect();
    let mut evidence = Evidence::default();
    for column in &options.columns {
        evidence.rows.insert(*column, Vec::new());
    }
    for (column, row) in rows? {
        evidence.rows.entry(column).or_default().push(row);
    }
    Ok(evidence)
}

fn load(file: &Path, is_quick: bool, cluster: &Cluster) -> Result<Workload, ReproduceError> {
    let profiles = profile::load("synergy")?;
    let mut workload = chronus::read(&Source::open(file)?, &Setting::new(cluster, &profiles))?.workload;
    if is_quick {
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
) -> Result<Figures, ReproduceError> {
    let mut words = policy.split(' ');
    let mut script = ScriptPolicy::load(words.next().unwrap_or(policy), Limits::default())?;
    for (key, value) in words.filter_map(|setting| setting.split_once('=')) {
        script.set(key, value).expect("a setting of a shipped policy");
    }
    let settings = RunSettings { round: ROUND, ..RunSettings::default() };
    let (cluster, jobs) = (Arc::clone(cluster), Arc::clone(workload));
    let ledger = simulate(cluster, jobs, Vec::new(), &mut script, &settings, &mut |_| ());
    let ledger = ledger.map_err(|error| ReproduceError::Run { policy, trace, error })?;
    Ok(figures(workload, &ledger))
}

/// Chronus as its authors' program runs it, with leases of 20 minutes.
fn original(
    cluster: &Cluster,
    workload: &Workload,
    defects: Defects,
    trace: &'static str,
) -> Result<Figures, ReproduceError> {
    let settings = artifact::ChronusSettings { defects, ..artifact::ChronusSettings::minutes() };
    let run = artifact::run(cluster, workload, &settings, &mut Highs);
    let run = run.map_err(|error| ReproduceError::Chronus { trace, error })?;
    Ok(figures(workload, &run.ledger))
}

impl Figures {
    fn row(&self, policy: &str, trace: &str) -> Row {
        let best_effort = self.best_effort_jct_s.map(|jct_s| (BEST_EFFORT_JCT.name, jct_s));
        let numbers = [
            ("deadline_jobs", self.deadline_jobs as f64),
            (MISSES.name, self.miss_rate),
            (LOST_VALUE.name, self.lost_value),
            ("fallbacks", self.n_fallbacks as f64),
        ];
        Row {
            policy: policy.to_owned(),
            at: [("trace".to_owned(), trace.to_owned())].into(),
            seed: None,
            numbers: numbers
                .into_iter()
                .chain(best_effort)
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
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
    }
}
