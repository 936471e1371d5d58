//! How far ElasticFlow's greedy admission is from the optimum: instant by instant in the same state, and over whole runs.
//!
//! Instant by instant, the greedy policy runs the trace and a second policy with the model, which remembers nothing, is
//! asked the same question each time a job arrives; its answers are counted and dropped. Over whole runs each
//! policy lives with what it admitted.

use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use rota_core::cluster::Cluster;
use rota_core::ledger::{Outcome, Status};
use rota_core::plan::{Plan, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, simulate};
use rota_core::snapshot::Snapshot;
use rota_core::table::JobPhase;
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_scripts::{Limits, ScriptPolicy};
use rota_traces::format::{Setting, elasticflow};
use rota_traces::profile::{self, ProfileSet};
use rota_traces::source::Source;

use super::servers;
use crate::reproduce::ReproduceError;
use crate::reproduce::evidence::Row;
use crate::reproduce::quantity::{BROKEN, ENTERED, MET, WORSE_INSTANTS};

/// The greedy policy.
const GREEDY: &str = "elasticflow";
/// The policy with the model.
const MODEL: &str = "elasticflow-opt";

/// Not a policy: the bound that no plan exceeds.
const ANY_PLAN: &str = "any plan";

/// A trace and the cluster it runs on: so small that jobs are declined which alone would have made it. Two of the traces
/// decline none of these on the figures' clusters.
struct Scarce {
    trace: &'static str,
    nodes: u32,
    round: Span,
}

/// In the order of the files that the comparison needs.
const SCARCE: [Scarce; 3] = [
    Scarce { trace: "195job", nodes: 16, round: Span::from_secs(240) },
    Scarce { trace: "cluster10", nodes: 4, round: Span::from_secs(60) },
    Scarce { trace: "philly_103959", nodes: 4, round: Span::from_secs(60) },
];

/// What was asked and answered over one trace, in jobs with a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answers {
    /// Jobs that asked.
    asked: usize,
    /// Jobs the greedy admission admitted.
    greedy: usize,
    /// Jobs the model would have admitted, each time in the state of the greedy admission.
    model: usize,
    /// Jobs that no plan exceeds, likewise.
    at_most: usize,
    /// Instants at which the model admitted fewer: none.
    worse: usize,
}

/// One policy over one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WholeRun {
    /// Jobs with a deadline.
    n_jobs: usize,
    /// Jobs refused.
    declined: usize,
    /// Jobs done by their deadline.
    met: usize,
}

/// A trace that has been read.
struct Loaded {
    scarce: &'static Scarce,
    cluster: Arc<Cluster>,
    workload: Arc<Workload>,
}

/// Runs of the comparison.
pub fn n_runs() -> usize {
    2 * SCARCE.len()
}

/// Both comparisons as rows, over the traces in `files`; `done` is called for each run that is complete.
pub fn admission(files: &[PathBuf], done: &(dyn Fn() + Sync)) -> Result<Vec<Row>, ReproduceError> {
    let profiles = profile::load("elasticflow-a100")?;
    let loaded = SCARCE.iter().zip(files).map(|(scarce, file)| load(scarce, file, &profiles));
    let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
    let rows: Result<Vec<_>, _> = loaded.par_iter().map(|loaded| rows(loaded, done)).collect();
    Ok(rows?.concat())
}

fn load(
    scarce: &'static Scarce,
    file: &std::path::Path,
    profiles: &ProfileSet,
) -> Result<Loaded, ReproduceError> {
    let cluster = Arc::new(servers(scarce.nodes)?);
    let source = Source::open(file)?;
    let workload = elasticflow::read(&source, &Setting::new(&cluster, profiles))?.workload;
    workload.check().map_err(|error| ReproduceError::Workload { file: scarce.trace, error })?;
    Ok(Loaded { scarce, cluster, workload: Arc::new(workload) })
}

fn rows(loaded: &Loaded, done: &(dyn Fn() + Sync)) -> Result<Vec<Row>, ReproduceError> {
    let mut both = SideBySide {
        greedy: ScriptPolicy::load(GREEDY, Limits::default())?,
        model: ScriptPolicy::load(MODEL, Limits::default())?,
        answers: Answers::default(),
    };
    let greedy = whole_run(loaded, GREEDY, &mut both)?;
    done();
    let model = whole_run(loaded, MODEL, &mut ScriptPolicy::load(MODEL, Limits::default())?)?;
    done();
    let Answers { asked, greedy: by_greedy, model: by_model, at_most, worse } = both.answers;
    let row = |policy: &str, numbers: &[(&str, usize)]| Row {
        policy: policy.to_owned(),
        at: [("trace".to_owned(), loaded.scarce.trace.to_owned())].into(),
        seed: None,
        numbers: numbers.iter().map(|(name, value)| ((*name).to_owned(), *value as f64)).collect(),
    };
    let whole = |run: &WholeRun| {
        [("declined", run.declined), (MET.name, run.met), (BROKEN.name, run.n_jobs - run.declined - run.met)]
    };
    let same_state = |entered: usize| [("asked", asked), (ENTERED.name, entered)];
    Ok(vec![
        row(GREEDY, &[&same_state(by_greedy)[..], &whole(&greedy)].concat()),
        row(MODEL, &[&same_state(by_model)[..], &whole(&model), &[(WORSE_INSTANTS.name, worse)]].concat()),
        row(ANY_PLAN, &same_state(at_most)),
    ])
}

fn whole_run(
    loaded: &Loaded,
    name: &'static str,
    policy: &mut dyn Policy,
) -> Result<WholeRun, ReproduceError> {
    let settings = RunSettings { round: loaded.scarce.round, ..RunSettings::default() };
    let (cluster, workload) = (Arc::clone(&loaded.cluster), Arc::clone(&loaded.workload));
    let ledger = simulate(cluster, workload, Vec::new(), policy, &settings, &mut |_| {});
    let ledger =
        ledger.map_err(|error| ReproduceError::Run { policy: name, trace: loaded.scarce.trace, error })?;
    Ok(WholeRun::of(&loaded.workload, &ledger.outcomes))
}

impl WholeRun {
    fn of(workload: &Workload, outcomes: &[Outcome]) -> Self {
        let mut run = WholeRun::default();
        for (job, outcome) in workload.jobs.iter().zip(outcomes) {
            let Some(deadline) = job.deadline.first() else { continue };
            let finish = outcome.finish.filter(|_| outcome.status == Status::Finished);
            run.n_jobs += 1;
            run.declined += usize::from(outcome.status == Status::Declined);
            run.met += usize::from(finish.is_some_and(|finish| finish <= deadline));
        }
        run
    }
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
        let asks = |row: &usize| jobs.phase(*row) == JobPhase::Asking && has_deadline(*row);
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
        self.asked += n_asking;
        self.greedy += greedy;
        self.model += by_model;
        self.at_most += model.notes.iter().find_map(|note| bound_in(note)).unwrap_or(by_model).max(by_model);
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
