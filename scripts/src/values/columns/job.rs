//! One job, for closures and loops.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString};
use rota_core::ids::{GpuTypeId, JobId};
use rota_core::job::JobSpec;
use rota_core::resources::Host;
use rota_core::snapshot::Snapshot;
use rota_core::table::{Field, JobPhase};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::type_label;

/// Fields that are whole numbers when read of one job.
const WHOLE: &[Field] = &[Field::Priority, Field::Gpus, Field::Held, Field::Tenant, Field::Preemptions];

/// One job of one decision.
#[derive(Clone, Debug)]
pub(crate) struct JobValue {
    session: Arc<Session>,
    row: u32,
}

impl JobValue {
    pub(crate) fn new(session: &Arc<Session>, row: u32) -> JobValue {
        JobValue { session: Arc::clone(session), row }
    }

    /// A job handle, or a job by its number.
    pub(crate) fn from_value(session: &Arc<Session>, value: &Dynamic) -> Outcome<JobValue> {
        if let Some(job) = value.read_lock::<JobValue>() {
            return Ok(job.clone());
        }
        let Ok(number) = value.as_int() else {
            return fail(format!("expected a job or its number, got {}", type_label(value)));
        };
        let id = u32::try_from(number).ok().map(JobId);
        match id.and_then(|id| session.snapshot.jobs.row(id)) {
            Some(row) => Ok(JobValue::new(session, row as u32)),
            None => fail(format!("job {number} has ended or never arrived")),
        }
    }

    pub(crate) fn row(&self) -> usize {
        self.row as usize
    }

    pub(crate) fn id(&self) -> JobId {
        self.session.snapshot.jobs.id(self.row())
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.session.snapshot
    }

    fn spec(&self) -> &JobSpec {
        self.session.snapshot.jobs.spec(self.row())
    }

    fn fair_share(&self) -> Host {
        let node = self.session.snapshot.cluster.largest_node(self.spec().gpu_type);
        node.map_or(Host::NONE, |n| n.share_per_gpu().times(self.spec().gpus.asked))
    }

    /// Estimated iterations per second with so many GPUs at the proportional share of the largest node.
    fn rate(&self, gpus: i64) -> Outcome<f64> {
        let Ok(gpus) = u32::try_from(gpus) else { return fail(format!("rate: {gpus} GPUs")) };
        Ok(self.session.speeds().rate(&self.session.snapshot, self.row, gpus))
    }

    fn gpu_type_name(&self, gpu_type: Option<GpuTypeId>) -> &str {
        gpu_type
            .and_then(|t| self.session.snapshot.cluster.gpu_types().get(t.index()))
            .map_or("", String::as_str)
    }

    fn phase(&self) -> &'static str {
        match self.session.snapshot.jobs.phase(self.row()) {
            JobPhase::Asking => "asking",
            JobPhase::Waiting => "waiting",
            JobPhase::Running => "running",
        }
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Job";
    registrar.class::<JobValue>(
        OWNER,
        "One job. Numbers of all jobs at once are columns of `Jobs` under the same names.",
    );
    for (field, name, doc) in Field::ALL {
        let field = *field;
        let value = move |job: &JobValue| job.session.snapshot.jobs.column(field)[job.row()];
        if WHOLE.contains(&field) {
            registrar
                .field(OWNER, format!("{name}: int"), doc.trim())
                .register_get(*name, move |job: &mut JobValue| value(job) as i64);
        } else {
            registrar
                .field(OWNER, format!("{name}: float"), doc.trim())
                .register_get(*name, move |job: &mut JobValue| value(job));
        }
    }
    identity(registrar);
    needs(registrar);
    registrar.unknown_field::<JobValue>(OWNER);
    let engine = registrar.engine();
    engine.register_fn("==", |a: JobValue, b: JobValue| a.row == b.row);
    engine.register_fn("!=", |a: JobValue, b: JobValue| a.row != b.row);
    engine.register_fn("to_string", |job: &mut JobValue| ImmutableString::from(format!("job {}", job.id())));
}

fn identity(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Job";
    registrar
        .field(OWNER, "id: int", "Its number, in the order of arrival.")
        .register_get("id", |job: &mut JobValue| i64::from(job.id().0));
    registrar
        .field(OWNER, "name: String", "Its name in the trace.")
        .register_get("name", |job: &mut JobValue| ImmutableString::from(&*job.spec().name));
    registrar
        .field(OWNER, "tenant_name: String", "The name of its tenant.")
        .register_get("tenant_name", |job: &mut JobValue| {
            ImmutableString::from(job.session.tenant_name(job.spec().tenant))
        });
    registrar
        .field(OWNER, "model: String", "The name of its model.")
        .register_get("model", |job: &mut JobValue| ImmutableString::from(&*job.spec().profile.name));
    registrar
        .field(OWNER, "class: String", "The class of its model, such as `vision`.")
        .register_get("class", |job: &mut JobValue| ImmutableString::from(&*job.spec().profile.class));
    registrar
        .field(OWNER, "phase: String", "`asking`, `waiting` or `running`.")
        .register_get("phase", |job: &mut JobValue| ImmutableString::from(job.phase()));
    registrar
        .field(OWNER, "is_running: bool", "Whether it holds GPUs now.")
        .register_get("is_running", |job: &mut JobValue| job.phase() == "running");
    registrar.field(OWNER, "nodes: Array", "Numbers of the nodes it runs on.").register_get(
        "nodes",
        |job: &mut JobValue| -> Array {
            let held = job.session.snapshot.jobs.allocation(job.row());
            held.slices.iter().map(|s| Dynamic::from(i64::from(s.node.0))).collect()
        },
    );
    registrar
        .field(OWNER, "share_held: Share", "CPUs, memory and storage rate it holds now.")
        .register_get("share_held", |job: &mut JobValue| {
            job.session.snapshot.jobs.allocation(job.row()).host()
        });
}

fn needs(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Job";
    registrar
        .field(OWNER, "demand: Share", "What it asks for at best, in all, cut to what a node can give.")
        .register_get("demand", |job: &mut JobValue| {
            job.session.snapshot.jobs.demand_per_gpu(job.row()).times(job.spec().gpus.asked)
        });
    registrar
        .field(OWNER, "fair_share: Share", "The proportional share of the GPUs it asks for, in all.")
        .register_get("fair_share", |job: &mut JobValue| job.fair_share());
    registrar
        .field(
            OWNER,
            "levels: Array",
            "GPU counts an elastic job can run with, ascending; one count when it is not elastic.",
        )
        .register_get("levels", |job: &mut JobValue| -> Array {
            let gpus = &job.spec().gpus;
            match gpus.levels.is_empty() {
                true => vec![Dynamic::from(i64::from(gpus.asked))],
                false => gpus.levels.iter().map(|l| Dynamic::from(i64::from(*l))).collect(),
            }
        });
    registrar
        .field(OWNER, "min_gpus: int", "The fewest GPUs it runs with.")
        .register_get("min_gpus", |job: &mut JobValue| i64::from(job.spec().gpus.min()));
    registrar
        .field(OWNER, "max_gpus: int", "The most GPUs it can use.")
        .register_get("max_gpus", |job: &mut JobValue| i64::from(job.spec().gpus.max()));
    registrar
        .field(OWNER, "gpu_type: String", "The only GPU type it may run on; empty when any will do.")
        .register_get("gpu_type", |job: &mut JobValue| {
            ImmutableString::from(job.gpu_type_name(job.spec().gpu_type))
        });
    registrar.field(OWNER, "batch: int", "Its global batch size.").register_get(
        "batch",
        |job: &mut JobValue| {
            let spec = job.spec();
            i64::from(if spec.batch == 0 { spec.profile.batch } else { spec.batch })
        },
    );
    registrar
        .method(
            OWNER,
            "rate(gpus: int) -> float",
            "Estimated iterations per second with so many GPUs, each with its proportional share.",
        )
        .register_fn("rate", |job: JobValue, gpus: i64| job.rate(gpus));
}
