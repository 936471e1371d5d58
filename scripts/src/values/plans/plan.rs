//! Plans: which jobs run with what. `Fill` makes them; a script may also write its own, job by job.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString};
use rota_core::allocation::{Allocation, Slice};
use rota_core::fill::{Granted, plan_of};
use rota_core::plan::{Hold, Plan, Run, Verdict, Wake};
use rota_core::time::Time;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, Shared, fail};
use crate::values::JobValue;
use crate::values::plans::entry;

/// A plan in the making.
#[derive(Clone, Debug)]
pub(crate) struct PlanValue {
    session: Arc<Session>,
    pub(crate) plan: Plan,
    /// Jobs whose admission is decided at a later round.
    pub(crate) wait: Vec<rota_core::ids::JobId>,
    /// Whether the script set the time of the next decision.
    pub(crate) has_wake: bool,
}

impl PlanValue {
    pub(crate) fn new(session: &Arc<Session>) -> PlanValue {
        PlanValue { session: Arc::clone(session), plan: Plan::default(), wait: Vec::new(), has_wake: false }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What a walk gave.
    pub(crate) fn of(session: &Arc<Session>, granted: Vec<Granted>) -> PlanValue {
        PlanValue { plan: plan_of(&session.snapshot, granted), ..PlanValue::new(session) }
    }

    fn push(&mut self, job: &Dynamic, what: impl FnOnce(&JobValue) -> Outcome<Hold>) -> Outcome<()> {
        self.session.meter().charge(0)?;
        let job = JobValue::from_value(&self.session, job)?;
        let what = what(&job)?;
        self.plan.run.push(Run { job: job.id(), what });
        Ok(())
    }

    fn run(&mut self, job: &Dynamic, slices: Array) -> Outcome<()> {
        let session = Arc::clone(&self.session);
        self.push(job, |job| {
            let mut read: Vec<Slice> =
                slices.into_iter().map(|s| entry::read("run", &session, s)).collect::<Outcome<_>>()?;
            if let Some(empty) = read.iter().find(|s| s.gpus.is_empty()) {
                return fail(format!(
                    "run: job {} gets no GPU on node {}: leave the entry out",
                    job.id(),
                    empty.node
                ));
            }
            read.sort_by_key(|s| s.node);
            if let Some(pair) = read.windows(2).find(|pair| pair[0].node == pair[1].node) {
                return fail(format!(
                    "run: job {} has two entries for node {}: join them",
                    job.id(),
                    pair[0].node
                ));
            }
            Ok(Hold::Take(Allocation { slices: read.into_iter().collect() }))
        })
    }

    fn keep(&mut self, job: &Dynamic) -> Outcome<()> {
        let session = Arc::clone(&self.session);
        self.push(job, |job| match session.snapshot.jobs.allocation(job.row()).is_empty() {
            true => fail(format!("keep: job {} does not run, so there is nothing to keep", job.id())),
            false => Ok(Hold::Keep),
        })
    }

    fn wake_at(&mut self, time: f64) -> Outcome<()> {
        if !time.is_finite() {
            return fail(format!("wake_at: {time} is not a time"));
        }
        self.set_wake(Wake::AtOrOnChange(Time::from_secs_f64(time)));
        Ok(())
    }

    fn set_wake(&mut self, wake: Wake) {
        self.plan.wake = wake;
        self.has_wake = true;
    }

    fn verdict(&mut self, job: &Dynamic, verdict: Verdict) -> Outcome<()> {
        let job = JobValue::from_value(&self.session, job)?;
        self.plan.verdicts.push((job.id(), verdict));
        Ok(())
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    const OWNER: &str = "Plan";
    registrar.class::<PlanValue>(
        OWNER,
        "Which jobs run, and with what. A job that is not in the plan does not run.",
    );
    let shared = Arc::clone(shared);
    registrar
        .function("plan() -> Plan", "An empty plan, to be written job by job.")
        .register_fn("plan", move || shared.session().map(|session| PlanValue::new(&session)));
    let engine = registrar.method(
        OWNER,
        "run(job, where: Array)",
        "The job (or its number) runs with exactly this, one entry for each node: \
         `plan.run(job, [#{node: 3, gpus: [0, 1], cpus: 6, mem_gb: 125}])`; also `storage`, or `host`, a Share, for all three, \
         and `share` of each GPU below 1 to time-slice, or `beside: true` for GPUs that another job has at the same time.",
    );
    engine.register_fn("run", |plan: &mut PlanValue, job: Dynamic, slices: Array| plan.run(&job, slices));
    let engine = registrar.method(OWNER, "keep(job)", "The job goes on with what it has.");
    engine.register_fn("keep", |plan: &mut PlanValue, job: Dynamic| plan.keep(&job));
    let engine = registrar.method(
        OWNER,
        "accept(job)",
        "A job that asks for admission is admitted, as are those that the plan does not mention.",
    );
    engine.register_fn("accept", |plan: &mut PlanValue, job: Dynamic| plan.verdict(&job, Verdict::Admit));
    let engine = registrar.method(
        OWNER,
        "decline(job, reason: String)",
        "A job that asks for admission is refused for good.",
    );
    engine.register_fn("decline", |plan: &mut PlanValue, job: Dynamic, reason: ImmutableString| {
        plan.verdict(&job, Verdict::Decline(reason.to_string()))
    });
    let engine = registrar.method(
        OWNER,
        "wait(job)",
        "A job that asks for admission is asked about again at the next decision.",
    );
    engine.register_fn("wait", |plan: &mut PlanValue, job: Dynamic| -> Outcome<()> {
        let job = JobValue::from_value(&plan.session, &job)?;
        plan.wait.push(job.id());
        Ok(())
    });
    wakes(registrar);
    registrar.unknown_field::<PlanValue>(OWNER);
}

fn wakes(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Plan";
    let engine = registrar.method(
        OWNER,
        "wake_at(time: float)",
        "Nothing will change before this time (seconds) unless a job or node comes or goes.",
    );
    engine.register_fn("wake_at", PlanValue::wake_at);
    engine.register_fn("wake_at", |plan: &mut PlanValue, time: i64| plan.wake_at(time as f64));
    let engine =
        registrar.method(OWNER, "wake_on_change()", "Nothing will change until a job or node comes or goes.");
    engine.register_fn("wake_on_change", |plan: &mut PlanValue| plan.set_wake(Wake::OnChange));
    let engine = registrar.method(OWNER, "wake_next_round()", "Ask again at the next round.");
    engine.register_fn("wake_next_round", |plan: &mut PlanValue| plan.set_wake(Wake::NextRound));
    let engine = registrar.method(OWNER, "note(text: String)", "A remark for the record of this round.");
    engine.register_fn("note", |plan: &mut PlanValue, text: ImmutableString| plan.session.shared.note(&text));
    let engine = registrar.field(OWNER, "len: int", "How many jobs it runs.");
    engine.register_get("len", |plan: &mut PlanValue| plan.plan.run.len() as i64);
}
