//! Plans: which jobs run with what. `Fill` makes them; a script may also write its own, job by job.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Map};
use rota_core::allocation::{Allocation, GpuSet, Slice, WHOLE_GPU};
use rota_core::cluster::MAX_GPUS_PER_NODE;
use rota_core::fill::{Granted, plan_of};
use rota_core::ids::NodeId;
use rota_core::plan::{Hold, Plan, Run, Verdict, Wake};
use rota_core::time::Time;

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, Shared, fail};
use crate::values::share::checked;
use crate::values::{JobValue, number, type_label};

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
                slices.into_iter().map(|s| slice(&session, job, s)).collect::<Outcome<_>>()?;
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

/// One entry of `run`: `#{node: 3, gpus: [0, 1], cpus: 6, mem_gb: 125}`.
fn slice(session: &Session, job: &JobValue, value: Dynamic) -> Outcome<Slice> {
    const KEYS: [&str; 6] = ["node", "gpus", "cpus", "mem_gb", "storage", "share"];
    let label = type_label(&value).to_owned();
    let Some(map) = value.try_cast::<Map>() else {
        return fail(format!(
            "run: expected entries like #{{node: 0, gpus: [0], cpus: 3, mem_gb: 60}}, got {}",
            label
        ));
    };
    if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let hint = nearest::hint(key, KEYS).unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
        return fail(format!("run: `{key}` means nothing in an entry: {hint}"));
    }
    let amount = |key: &str, otherwise: f64| match map.get(key) {
        None => Ok(otherwise),
        Some(value) => match number(value) {
            Some(amount) if amount >= 0.0 => Ok(amount),
            _ => fail(format!("run: `{key}` must be a number that is not negative, got {value}")),
        },
    };
    let node = node(session, map.get("node"))?;
    let share = amount("share", 1.0)?;
    if !(0.001..=1.0).contains(&share) {
        return fail(format!("run: a share of {share} of a GPU: it goes from 0.001 to 1"));
    }
    Ok(Slice {
        node,
        gpus: gpus(session, job, node, map.get("gpus"))?,
        share: (share * f64::from(WHOLE_GPU)).round() as u16,
        host: checked(amount("cpus", 0.0)?, amount("mem_gb", 0.0)?, amount("storage", 0.0)?)?,
    })
}

fn node(session: &Session, value: Option<&Dynamic>) -> Outcome<NodeId> {
    let n_nodes = session.snapshot.cluster.nodes().len();
    let number = value.and_then(|v| v.as_int().ok());
    match number.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < n_nodes) {
        Some(index) => Ok(NodeId::from(index)),
        None => match value {
            Some(value) => fail(format!("run: there is no node {value}: nodes go from 0 to {}", n_nodes - 1)),
            None => fail("run: an entry lacks its `node`"),
        },
    }
}

fn gpus(session: &Session, job: &JobValue, node: NodeId, value: Option<&Dynamic>) -> Outcome<GpuSet> {
    let n_gpus = i64::from(session.snapshot.cluster.nodes()[node.index()].n_gpus.min(MAX_GPUS_PER_NODE));
    let Some(array) = value.and_then(|v| v.read_lock::<Array>()) else {
        return fail("run: `gpus` must be an array of GPU numbers, such as [0, 1]");
    };
    let mut set = GpuSet::NONE;
    for item in array.iter() {
        match item.as_int() {
            Ok(gpu) if (0..n_gpus).contains(&gpu) => set = set.or(GpuSet(1 << gpu)),
            _ => {
                return fail(format!("run: node {node} has no GPU {item}: they go from 0 to {}", n_gpus - 1));
            }
        }
    }
    match set.is_empty() {
        true => fail(format!("run: job {} gets no GPU on node {node}: leave the entry out", job.id())),
        false => Ok(set),
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
         `plan.run(job, [#{node: 3, gpus: [0, 1], cpus: 6, mem_gb: 125}])`; also `storage`, and `share` of each GPU \
         below 1 to time-slice.",
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
