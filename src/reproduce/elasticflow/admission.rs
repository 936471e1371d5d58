//! How far ElasticFlow's greedy admission is from the optimum: instant by instant in the same state, and over whole runs.
//!
//! Instant by instant, the greedy policy runs the trace and a second policy with the model, which remembers nothing, is
//! asked the same question each time somebody wants to enter; its answers are counted and dropped. Over whole runs each
//! policy lives with what it admitted.

use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use rota_core::plan::{Plan, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{Settings, simulate};
use rota_core::snapshot::Snapshot;
use rota_core::table::Phase;
use rota_scripts::{Limits, ScriptPolicy};
use rota_traces::profile;

use super::run::{Loaded, n_declined, n_met};
use super::study::load;
use super::{Panel, ReproduceError, Watch, figures};

/// The greedy policy.
const GREEDY: &str = "elasticflow";
/// The policy with the model.
const MODEL: &str = "elasticflow-opt";

/// What was asked and answered over one trace, in jobs with a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Answers {
    /// Instants at which somebody asked.
    pub instants: usize,
    /// Jobs that asked.
    pub asked: usize,
    /// Jobs the greedy let in.
    pub greedy: usize,
    /// Jobs the model would have let in, each time in the greedy's state.
    pub model: usize,
    /// Jobs that no plan exceeds, likewise.
    pub at_most: usize,
    /// Instants at which the model let more in.
    pub better: usize,
    /// Instants at which it let fewer in: none.
    pub worse: usize,
}

/// One policy over one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct WholeRun {
    /// Jobs refused.
    pub declined: usize,
    /// Jobs done by their deadline.
    pub met: usize,
}

/// One trace.
#[derive(Clone, Debug)]
pub struct AdmissionRow {
    /// The trace.
    pub panel: Panel,
    /// Its jobs.
    pub n_jobs: usize,
    /// The same questions to both.
    pub answers: Answers,
    /// The greedy by itself.
    pub greedy: WholeRun,
    /// The model by itself.
    pub model: WholeRun,
}

/// Both comparisons; traces are looked for in `folders`.
pub fn admission(folders: &[PathBuf], watch: &dyn Watch) -> Result<Vec<AdmissionRow>, ReproduceError> {
    let profiles = profile::load("elasticflow-a100")?;
    let panels = figures::scarce().into_iter();
    let loaded = panels.map(|panel| load(panel, folders, &profiles)).collect::<Result<Vec<_>, _>>()?;
    let n_jobs: u64 = loaded.iter().map(|loaded| loaded.workload.jobs.len() as u64).sum();
    watch.begin(2 * n_jobs, 2 * loaded.len());
    loaded.par_iter().map(|loaded| row(loaded, watch)).collect()
}

fn row(loaded: &Loaded, watch: &dyn Watch) -> Result<AdmissionRow, ReproduceError> {
    let n_jobs = loaded.workload.jobs.len();
    let mut both = SideBySide {
        greedy: ScriptPolicy::load(GREEDY, Limits::default())?,
        model: ScriptPolicy::load(MODEL, Limits::default())?,
        answers: Answers::default(),
    };
    let greedy = whole_run(loaded, GREEDY, &mut both)?;
    watch.ended(n_jobs as u64);
    watch.run_done();
    let model = whole_run(loaded, MODEL, &mut ScriptPolicy::load(MODEL, Limits::default())?)?;
    watch.ended(n_jobs as u64);
    watch.run_done();
    Ok(AdmissionRow { panel: loaded.panel, n_jobs, answers: both.answers, greedy, model })
}

fn whole_run(
    loaded: &Loaded,
    name: &'static str,
    policy: &mut dyn Policy,
) -> Result<WholeRun, ReproduceError> {
    let settings = Settings { round: loaded.panel.slot, ..Settings::default() };
    let (cluster, workload) = (Arc::clone(&loaded.cluster), Arc::clone(&loaded.workload));
    let ledger = simulate(cluster, workload, Vec::new(), policy, &settings, &mut |_| {});
    let ledger =
        ledger.map_err(|error| ReproduceError::Run { policy: name, panel: loaded.panel.name, error })?;
    let (met, declined) = (n_met(&loaded.workload, &ledger.outcomes), n_declined(&ledger.outcomes));
    Ok(WholeRun { declined, met })
}

/// Runs the greedy and asks the model the same.
struct SideBySide {
    greedy: ScriptPolicy,
    model: ScriptPolicy,
    answers: Answers,
}

impl Policy for SideBySide {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.greedy.decide(snapshot)?;
        let jobs = &snapshot.jobs;
        let has_deadline = |row: usize| jobs.spec(row).deadline.first().is_some();
        let asks = |row: &usize| jobs.phase(*row) == Phase::Asking && has_deadline(*row);
        let n_asking = if jobs.n_asking() == 0 { 0 } else { (0..jobs.len()).filter(asks).count() };
        if n_asking > 0 {
            self.model.restore_memory("")?;
            let other = self.model.decide(snapshot)?;
            self.answers.count(snapshot, n_asking, &plan, &other);
        }
        Ok(plan)
    }
}

impl Answers {
    fn count(&mut self, snapshot: &Snapshot, n_asking: usize, greedy: &Plan, model: &Plan) {
        let enters = |plan: &Plan| {
            let admitted = plan.verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Admit);
            let rows = admitted.filter_map(|(job, _)| snapshot.jobs.row(*job));
            rows.filter(|row| snapshot.jobs.spec(*row).deadline.first().is_some()).count()
        };
        let (greedy, by_model) = (enters(greedy), enters(model));
        self.instants += 1;
        self.asked += n_asking;
        self.greedy += greedy;
        self.model += by_model;
        self.at_most += model.notes.iter().find_map(|note| bound_in(note)).unwrap_or(by_model).max(by_model);
        self.better += usize::from(by_model > greedy);
        self.worse += usize::from(by_model < greedy);
    }
}

/// The bound that the policy notes when it has asked a model.
fn bound_in(note: &str) -> Option<usize> {
    let (_, rest) = note.strip_prefix("shares: ")?.split_once("at most ")?;
    rest.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_read_from_the_policys_note() {
        assert_eq!(bound_in("shares: optimal, 2 enter, 1 one by one, at most 3"), Some(3));
        assert_eq!(
            bound_in("shares: optimal, 2 enter, 1 one by one, at most 3, 1 plans of the model"),
            Some(3)
        );
        assert_eq!(bound_in("milp: optimal, at most 3"), None);
    }
}
