//! Sets of jobs: all that a policy decides about, or some of them.

use std::sync::Arc;

use rhai::{FnPtr, ImmutableString, NativeCallContext};
use rota_core::resources::Host;
use rota_core::table::Field;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::cluster::ClusterValue;
use crate::values::rank;
use crate::values::{Column, JobValue, Queue, RoomValue, deadlines};

/// A set of jobs of one decision.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    pub(crate) session: Arc<Session>,
    rows: Rows,
}

/// Which rows of the table.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// Every one, in the table's order.
    All,
    /// These, by ascending job id.
    Some(Arc<Vec<u32>>),
    /// Jobs that may stand here several times, once for each step they could take: to compute with, not to order or plan.
    Steps(Arc<Vec<u32>>),
}

impl Jobs {
    pub(crate) fn new(session: &Arc<Session>, rows: Rows) -> Jobs {
        Jobs { session: Arc::clone(session), rows }
    }

    pub(crate) fn is_all(&self) -> bool {
        matches!(self.rows, Rows::All)
    }

    pub(crate) fn len(&self) -> usize {
        match &self.rows {
            Rows::All => self.session.snapshot.jobs.len(),
            Rows::Some(rows) | Rows::Steps(rows) => rows.len(),
        }
    }

    /// The rows in the order in which columns of this set hold their numbers.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|position| self.row_at(position))
    }

    /// The row behind a position in a column.
    pub(crate) fn row_at(&self, position: usize) -> usize {
        match &self.rows {
            Rows::All => position,
            Rows::Some(rows) | Rows::Steps(rows) => rows[position] as usize,
        }
    }

    /// Places in columns by ascending job id.
    pub(crate) fn positions_by_id(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match &self.rows {
            Rows::All => Box::new(self.session.rows_by_id().iter().map(|row| *row as usize)),
            Rows::Some(rows) | Rows::Steps(rows) => Box::new(0..rows.len()),
        }
    }

    /// Where columns of this set hold the number of a row.
    pub(crate) fn position_of(&self, row: usize) -> Option<usize> {
        match &self.rows {
            Rows::All => Some(row),
            Rows::Steps(_) => None,
            Rows::Some(rows) => {
                let table = &self.session.snapshot.jobs;
                rows.binary_search_by_key(&table.id(row), |r| table.id(*r as usize)).ok()
            }
        }
    }

    pub(crate) fn is_same(&self, other: &Jobs) -> bool {
        Arc::ptr_eq(&self.session, &other.session)
            && match (&self.rows, &other.rows) {
                (Rows::All, Rows::All) => true,
                (Rows::Some(a), Rows::Some(b)) => Arc::ptr_eq(a, b) || a == b,
                (Rows::Steps(a), Rows::Steps(b)) => Arc::ptr_eq(a, b),
                _ => false,
            }
    }

    /// The job at a position by ascending id.
    fn at(&self, index: i64) -> Outcome<JobValue> {
        let rows = match &self.rows {
            Rows::All => self.session.rows_by_id(),
            Rows::Some(rows) | Rows::Steps(rows) => rows,
        };
        match usize::try_from(index).ok().and_then(|i| rows.get(i)) {
            Some(row) => Ok(JobValue::new(&self.session, *row)),
            None => fail(format!("index {index} is outside of {} jobs (0 is the first)", rows.len())),
        }
    }

    fn filter(&self, condition: &Column) -> Outcome<Jobs> {
        if !self.is_same(&condition.jobs) {
            return fail(format!(
                "the condition is of {} jobs, the set has {}",
                condition.jobs.len(),
                self.len()
            ));
        }
        self.session.meter().charge(self.len())?;
        let values = condition.values();
        let rows: Vec<u32> =
            self.positions_by_id().filter(|p| values[*p] != 0.0).map(|p| self.row_at(p) as u32).collect();
        Ok(self.some(rows))
    }

    /// Some of these, in the same order.
    pub(crate) fn some(&self, rows: Vec<u32>) -> Jobs {
        let rows = match self.rows {
            Rows::Steps(_) => Rows::Steps(Arc::new(rows)),
            Rows::All | Rows::Some(_) => Rows::Some(Arc::new(rows)),
        };
        Jobs::new(&self.session, rows)
    }

    /// An error where a job may stand several times.
    pub(crate) fn refuse_steps(&self, verb: &str) -> Outcome<()> {
        match self.rows {
            Rows::Steps(_) => {
                fail(format!("{verb}: these are steps of jobs, not jobs: they can only be computed with"))
            }
            Rows::All | Rows::Some(_) => Ok(()),
        }
    }
}

impl IntoIterator for Jobs {
    type Item = JobValue;
    type IntoIter = Box<dyn Iterator<Item = JobValue>>;

    fn into_iter(self) -> Self::IntoIter {
        let rows: Vec<u32> = self.positions_by_id().map(|position| self.row_at(position) as u32).collect();
        let session = self.session;
        Box::new(rows.into_iter().map(move |row| JobValue::new(&session, row)))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Jobs";
    registrar.class::<Jobs>(
        OWNER,
        "A set of jobs. Its fields are columns: one number for each job. Loops go by ascending job id.",
    );
    registrar.engine().register_iterator::<Jobs>();
    for (field, name, doc) in Field::ALL {
        registrar
            .field(OWNER, format!("{name}: Column"), doc.trim())
            .register_get(*name, move |jobs: &mut Jobs| Column::field(jobs, *field));
    }
    held(registrar);
    deadlines::register(registrar);
    let engine = registrar.field(OWNER, "cluster: Cluster", "The cluster, as `view.cluster`.");
    engine.register_get("cluster", |jobs: &mut Jobs| ClusterValue(Arc::clone(&jobs.session)));
    let engine = registrar.field(OWNER, "room: Room", "What the running jobs leave free, as `view.room`.");
    engine.register_get("room", |jobs: &mut Jobs| RoomValue::of_now(&jobs.session));
    registrar
        .field(OWNER, "round: float", "Time between rounds, seconds, as `view.round`.")
        .register_get("round", |jobs: &mut Jobs| jobs.session.snapshot.round.as_secs_f64());
    registrar
        .field(OWNER, "len: int", "How many jobs.")
        .register_get("len", |jobs: &mut Jobs| jobs.len() as i64);
    registrar
        .field(OWNER, "id: Column", "Its number: `where(jobs.id == job.id, a, b)` chooses for one job.")
        .register_get("id", |jobs: &mut Jobs| {
            let table = &jobs.session.snapshot.jobs;
            Column::compute(jobs, jobs.rows().map(|row| f64::from(table.id(row).0)))
        });
    registrar
        .method(OWNER, "[index: int] -> Job", "The job at a position, by ascending id, 0 first.")
        .register_indexer_get(|jobs: &mut Jobs, index: i64| jobs.at(index));
    registrar
        .method(
            OWNER,
            "filter(condition: Column) -> Jobs",
            "The jobs for which the condition is not 0: `jobs.filter(jobs.gpus > 4)`.",
        )
        .register_fn("filter", |jobs: Jobs, condition: Column| jobs.filter(&condition));
    registrar
        .method(
            OWNER,
            "contains(job: Job) -> bool",
            "Whether a job is one of these, also written `job in jobs`.",
        )
        .register_fn("contains", |jobs: Jobs, job: JobValue| -> Outcome<bool> {
            jobs.refuse_steps("contains")?;
            Ok(jobs.position_of(job.row()).is_some())
        });
    registrar
        .method(OWNER, "order_by(key: Fn) -> Queue", "Orders by a number (or an array of them) that a closure `|job|` gives for each job, smallest first. Flexible but slow: prefer `rank` with columns.")
        .register_fn("order_by", |ctx: NativeCallContext, jobs: Jobs, key: FnPtr| -> Outcome<Queue> {
            let closure = jobs.session.shared.closure(key);
            rank::order_by(ctx.engine(), &jobs, &closure, ctx.call_position())
        });
    registrar.unknown_field::<Jobs>(OWNER);
    registrar.engine().register_fn("filter", |_: Jobs, _: FnPtr| -> Outcome<Jobs> {
        fail("`filter` takes a column as its condition, as in `jobs.filter(jobs.gpus > 4)`")
    });
    registrar
        .engine()
        .register_fn("to_string", |jobs: &mut Jobs| ImmutableString::from(format!("{} jobs", jobs.len())));
}

/// Columns of what jobs hold besides GPUs, computed on demand because few policies use them.
fn held(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Jobs";
    type Amount = fn(&Host) -> f64;
    let columns: [(&str, &str, Amount); 3] = [
        ("cpus_held", "CPUs held now.", Host::cpus),
        ("mem_held", "Memory held now, gigabytes.", Host::mem_gb),
        ("storage_held", "Storage rate held now, megabytes per second.", Host::storage_mb_per_s),
    ];
    for (name, doc, amount) in columns {
        registrar.field(OWNER, format!("{name}: Column"), doc).register_get(name, move |jobs: &mut Jobs| {
            let table = &jobs.session.snapshot.jobs;
            Column::compute(jobs, jobs.rows().map(|row| amount(&table.allocation(row).host())))
        });
    }
}
