//! GPUs over future time slots by a model instead of a heuristic, for scripts: whether a set of deadlines can hold at
//! all, and the plan that holds them with least GPU time. The formulation is `rota_solvers::elasticflow_shares`.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Map};
use rota_core::ids::GpuTypeId;
use rota_core::snapshot::Snapshot;
use rota_core::table::Field;
use rota_solvers::elasticflow_shares::{Admission, ShareJob, ShareLevel, SharePlan, ShareProblem, solve_shares};

use super::{Column, JobValue, Jobs, Queue, View, number};
use crate::optimum::fair_rate;
use crate::reference::Registrar;
use crate::session::{Outcome, Session, fail};
use crate::solving;

/// The most slots a plan looks ahead.
const MOST_SLOTS: i64 = 200;

/// A plan by slots, or the reason there is none.
#[derive(Clone, Debug)]
pub(crate) struct BestShares {
    session: Arc<Session>,
    rows: Arc<Vec<u32>>,
    plan: Option<Arc<SharePlan>>,
    status: ImmutableString,
    slot_s: f64,
}

impl View {
    fn best_shares(&self, jobs: Dynamic, newcomer: Option<&JobValue>, n_slots: i64) -> Outcome<BestShares> {
        if !(1..=MOST_SLOTS).contains(&n_slots) {
            return fail(format!("best_shares: {n_slots} slots: from 1 to {MOST_SLOTS}"));
        }
        let session = &self.0;
        let snapshot = &session.snapshot;
        let deadlines = snapshot.jobs.column(Field::Deadline);
        let now = snapshot.now.as_secs_f64();
        let queue = Queue::from_value(session, jobs)?;
        let mut rows: Vec<u32> = queue.rows.iter().copied().filter(|row| deadlines[*row as usize].is_finite()).collect();
        let newcomer = newcomer.map(|job| job.row() as u32);
        rows.retain(|row| Some(*row) != newcomer);
        rows.extend(newcomer);
        let last = rows.iter().map(|row| deadlines[*row as usize]).fold(now, f64::max);
        let round = snapshot.round.as_secs_f64().max(1.0);
        let slot_s = (((last - now) / n_slots as f64 / round).ceil() * round).max(round);
        session.meter().charge(rows.len() * n_slots as usize)?;
        let mut problem = problem(snapshot, &rows, slot_s, n_slots as usize);
        // A promise that is broken already keeps nobody out.
        let keeps: Vec<bool> = rows.iter().zip(&problem.jobs).map(|(row, job)| Some(*row) == newcomer || can_hold(job)).collect();
        let mut keep = keeps.iter();
        rows.retain(|_| keep.next() == Some(&true));
        let mut keep = keeps.iter();
        problem.jobs.retain(|_| keep.next() == Some(&true));
        let limits = solving::limits(session.meter(), 0.01, 200);
        let answer = solve_shares(&problem, &mut **session.shared.solving.solver(), &limits, None);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return fail(format!("best_shares: {error}")),
        };
        let status = ImmutableString::from(answer.admit.status.word());
        Ok(BestShares { session: Arc::clone(session), rows: Arc::new(rows), plan: answer.plan.map(Arc::new), status, slot_s })
    }
}

/// Every job is promised: the question is whether all deadlines can hold.
fn problem(snapshot: &Snapshot, rows: &[u32], slot_s: f64, n_slots: usize) -> ShareProblem {
    let (jobs, now) = (&snapshot.jobs, snapshot.now.as_secs_f64());
    let job = |row: &u32| {
        let row = *row as usize;
        let spec = jobs.spec(row);
        let gpu_type = spec.gpu_type.unwrap_or(GpuTypeId(0));
        let counts: Vec<u32> = if spec.gpus.levels.is_empty() { vec![spec.gpus.asked] } else { spec.gpus.levels.to_vec() };
        let restart_s = spec.costs().restart.as_secs_f64();
        let level = |gpus: &u32| {
            let rate = fair_rate(&snapshot.cluster, spec, *gpus, gpu_type);
            ShareLevel { gpus: *gpus, work: rate * slot_s }
        };
        let levels: Vec<ShareLevel> = counts.iter().map(level).collect();
        let slowest = levels.first().map_or(0.0, |level| level.work / slot_s);
        let left = (jobs.column(Field::Work)[row] - jobs.done(row)).max(0.0);
        ShareJob {
            levels,
            // A change of GPUs costs a restart; one is planned for.
            work: left + restart_s * slowest,
            first_slot: 0,
            deadline_slot: ((jobs.column(Field::Deadline)[row] - now) / slot_s).max(0.0).floor() as usize,
            worth: 1.0,
            admission: Admission::Promised,
        }
    };
    ShareProblem { capacity: vec![snapshot.n_gpus_up(); n_slots], jobs: rows.iter().map(job).collect() }
}

/// Whether a job alone in the cluster would make it.
fn can_hold(job: &ShareJob) -> bool {
    let fastest = job.levels.iter().map(|level| level.work).fold(0.0, f64::max);
    fastest * job.deadline_slot as f64 >= job.work
}

impl BestShares {
    /// As plain data, to be followed in later rounds with `planned`.
    fn to_map(&self) -> Outcome<Map> {
        let Some(plan) = &self.plan else { return fail(format!("best_shares: there is no plan, the solve ended {}", self.status)) };
        let mut gpus = Map::new();
        for (row, slots) in self.rows.iter().zip(&plan.gpus) {
            let slots: Array = slots.iter().map(|gpus| Dynamic::from(i64::from(*gpus))).collect();
            gpus.insert(self.session.snapshot.jobs.id(*row as usize).to_string().into(), Dynamic::from(slots));
        }
        let mut map = Map::new();
        map.insert("from".into(), Dynamic::from(self.session.snapshot.now.as_secs_f64()));
        map.insert("slot".into(), Dynamic::from(self.slot_s));
        map.insert("gpus".into(), Dynamic::from(gpus));
        Ok(map)
    }
}

/// GPUs each job has now in a plan that `to_map` made; 0 for jobs that are not in it.
fn planned(jobs: &Jobs, plan: &Map) -> Outcome<Column> {
    let of = |key: &str| plan.get(key).and_then(number);
    let (Some(from), Some(slot_s)) = (of("from"), of("slot")) else {
        return fail("planned: takes what `best_shares(…).to_map()` made");
    };
    let slot = ((jobs.session.snapshot.now.as_secs_f64() - from) / slot_s.max(1.0)).max(0.0) as usize;
    let gpus = plan.get("gpus").and_then(|gpus| gpus.read_lock::<Map>());
    jobs.session.meter().charge(jobs.len() * 16)?;
    let now = |row: usize| {
        let slots = gpus.as_ref()?.get(jobs.session.snapshot.jobs.id(row).to_string().as_str())?;
        slots.read_lock::<Array>()?.get(slot).and_then(number)
    };
    Column::compute(jobs, jobs.rows().map(|row| now(row).unwrap_or(0.0)))
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "BestShares";
    let engine = registrar.method(
        "View",
        "best_shares(jobs, newcomer: Job, slots: int) -> BestShares",
        "GPUs for each job with a deadline in so many time slots from now, by a model: all deadlines hold, with least \
         GPU time. Jobs that cannot make it any more are left aside, the newcomer (which may be left out) is not.",
    );
    engine.register_fn("best_shares", |view: View, jobs: Dynamic, slots: i64| view.best_shares(jobs, None, slots));
    engine.register_fn("best_shares", |view: View, jobs: Dynamic, newcomer: JobValue, slots: i64| {
        view.best_shares(jobs, Some(&newcomer), slots)
    });
    let engine = registrar.method("Jobs", "planned(plan: Map) -> Column", "GPUs each job has now in a plan kept with `to_map`; 0 for jobs not in it.");
    engine.register_fn("planned", |jobs: Jobs, plan: Map| planned(&jobs, &plan));
    registrar.class::<BestShares>(OWNER, "A plan by time slots that holds every deadline, if there is one.");
    let engine = registrar.field(OWNER, "holds: bool", "Whether there is a plan.");
    engine.register_get("holds", |best: &mut BestShares| best.plan.is_some());
    let engine = registrar.field(OWNER, "status: String", "How the solve ended.");
    engine.register_get("status", |best: &mut BestShares| best.status.clone());
    let engine = registrar.method(OWNER, "to_map() -> Map", "The plan as plain data, for private memory.");
    engine.register_fn("to_map", |best: BestShares| best.to_map());
    registrar.unknown_field::<BestShares>(OWNER);
}
