//! The view: what a stage function is given.

use std::sync::Arc;

use rhai::{Array, Dynamic};
use rota_core::table::JobPhase;

use super::cluster::{ClusterValue, RoomValue};
use super::{FillValue, JobValue, Jobs, Queue, Rows};
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};

/// One instant, as a stage sees it.
#[derive(Clone, Debug)]
pub(crate) struct View(pub(crate) Arc<Session>);

impl View {
    /// Jobs that may run: admitted ones, and those this decision admits.
    pub(crate) fn jobs(&self) -> Jobs {
        let rows = self.0.stage().admitted.clone();
        Jobs::new(&self.0, rows)
    }

    fn jobs_in(&self, phase: JobPhase) -> Outcome<Jobs> {
        self.0.meter().charge(self.0.snapshot.jobs.len())?;
        Ok(Jobs::new(&self.0, Rows::Some(Arc::new(self.0.rows_in(phase)))))
    }

    /// The order stage's answer; before it has run, jobs by arrival.
    fn queue(&self) -> Queue {
        if let Some(rows) = &self.0.stage().queue {
            return Queue { session: Arc::clone(&self.0), rows: Arc::clone(rows) };
        }
        let jobs = self.jobs();
        let rows = jobs.positions_by_id().map(|position| jobs.row_at(position) as u32).collect();
        Queue::new(&self.0, rows)
    }

    fn fill(&self, queue: Dynamic) -> Outcome<FillValue> {
        Queue::from_value(&self.0, queue).map(FillValue::new)
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "View";
    registrar.class::<View>(OWNER, "One instant: what a stage function may know.");
    let engine = registrar.field(OWNER, "now: float", "The time, seconds.");
    engine.register_get("now", |view: &mut View| view.0.snapshot.now.as_secs_f64());
    let engine = registrar.field(OWNER, "round: float", "Time between rounds, seconds.");
    engine.register_get("round", |view: &mut View| view.0.snapshot.round.as_secs_f64());
    let engine = registrar.field(OWNER, "jobs: Jobs", "All jobs that may run. A job that has ended is in no set: what it used since the last decision is seen by nobody.");
    engine.register_get("jobs", |view: &mut View| view.jobs());
    let engine = registrar.field(
        OWNER,
        "everyone: Jobs",
        "All jobs there are: those that may run, and those that ask for admission or were declined in this round.",
    );
    engine.register_get("everyone", |view: &mut View| Jobs::new(&view.0, Rows::All));
    let engine = registrar.field(OWNER, "running: Jobs", "Jobs that hold GPUs.");
    engine.register_get("running", |view: &mut View| view.jobs_in(JobPhase::Running));
    let engine =
        registrar.field(OWNER, "waiting: Jobs", "Jobs admitted in an earlier round that hold no GPU.");
    engine.register_get("waiting", |view: &mut View| view.jobs_in(JobPhase::Waiting));
    let engine = registrar.field(
        OWNER,
        "asking: Jobs",
        "Jobs that arrived since the last decision and ask for admission.",
    );
    engine.register_get("asking", |view: &mut View| view.jobs_in(JobPhase::Asking));
    let engine = registrar.field(
        OWNER,
        "queue: Queue",
        "The jobs in the order of the `order` stage. In `admit`, which is asked before it, by arrival.",
    );
    engine.register_get("queue", |view: &mut View| view.queue());
    let engine = registrar.field(OWNER, "cluster: Cluster", "The cluster.");
    engine.register_get("cluster", |view: &mut View| ClusterValue(Arc::clone(&view.0)));
    let engine = registrar.field(
        OWNER,
        "nodes: Array",
        "The nodes that are up, with what the running jobs leave free.",
    );
    engine.register_get("nodes", |view: &mut View| -> Outcome<Array> { RoomValue::of_now(&view.0)?.nodes() });
    let engine = registrar.field(OWNER, "room: Room", "What the running jobs leave free.");
    engine.register_get("room", |view: &mut View| RoomValue::of_now(&view.0));
    let engine = registrar.method(OWNER, "job(number: int) -> Job", "One job by its number.");
    engine
        .register_fn("job", |view: View, number: i64| JobValue::from_value(&view.0, &Dynamic::from(number)));
    let engine = registrar.method(
        OWNER,
        "fill(queue: Queue) -> Fill",
        "Gives jobs GPUs in the order of the queue; see `Fill` for its options.",
    );
    engine.register_fn("fill", |view: View, queue: Queue| -> Outcome<FillValue> {
        match Arc::ptr_eq(&view.0, &queue.session) {
            true => Ok(FillValue::new(queue)),
            false => fail("this queue belongs to another round"),
        }
    });
    engine.register_fn("fill", |view: View, queue: Dynamic| view.fill(queue));
    registrar.unknown_field::<View>(OWNER);
}
