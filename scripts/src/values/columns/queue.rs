//! Queues: jobs in an order, most important first. `rank` makes them from columns.

use std::any::TypeId;
use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Position};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, Shared, fail};
use crate::values::node_rank;
use crate::values::rank::{self, Key};
use crate::values::{Column, JobValue, number, type_label};

/// The most keys `rank` takes.
const MAX_KEYS: usize = 6;

/// Jobs in an order.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) session: Arc<Session>,
    pub(crate) rows: Arc<Vec<u32>>,
}

impl Queue {
    pub(crate) fn new(session: &Arc<Session>, rows: Vec<u32>) -> Queue {
        Queue { session: Arc::clone(session), rows: Arc::new(rows) }
    }

    /// Whether a value may be read as a queue.
    pub(crate) fn can_be(value: &Dynamic) -> bool {
        value.is::<Queue>() || value.is::<crate::values::Jobs>() || value.is_array()
    }

    /// What an `order` stage or a verb was given: a queue, a set of jobs, or an array of jobs.
    pub(crate) fn from_value(session: &Arc<Session>, value: Dynamic) -> Outcome<Queue> {
        if let Some(queue) = value.read_lock::<Queue>() {
            return Ok(queue.clone());
        }
        if let Some(jobs) = value.read_lock::<crate::values::Jobs>() {
            jobs.refuse_steps("queue")?;
            let rows = jobs.positions_by_id().map(|position| jobs.row_at(position) as u32).collect();
            return Ok(Queue::new(session, rows));
        }
        let label = type_label(&value).to_owned();
        let Ok(array) = value.into_array() else {
            return fail(format!("expected a Queue (what `rank` returns) or an array of jobs, got {label}"));
        };
        let mut seen = vec![false; session.snapshot.jobs.len()];
        let mut rows = Vec::with_capacity(array.len());
        for item in array {
            let job = JobValue::from_value(session, &item)?;
            if std::mem::replace(&mut seen[job.row()], true) {
                return fail(format!("job {} is in the order twice", job.id()));
            }
            rows.push(job.row() as u32);
        }
        Ok(Queue::new(session, rows))
    }

    fn at(&self, index: i64) -> Outcome<JobValue> {
        match usize::try_from(index).ok().and_then(|i| self.rows.get(i)) {
            Some(row) => Ok(JobValue::new(&self.session, *row)),
            None => fail(format!(
                "index {index} is outside of a queue of {} jobs (0 is the first)",
                self.rows.len()
            )),
        }
    }
}

impl IntoIterator for Queue {
    type Item = JobValue;
    type IntoIter = Box<dyn Iterator<Item = JobValue>>;

    fn into_iter(self) -> Self::IntoIter {
        let session = self.session;
        Box::new((0..self.rows.len()).map(move |i| JobValue::new(&session, self.rows[i])))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    const OWNER: &str = "Queue";
    registrar.class::<Queue>(OWNER, "Jobs in an order, most important first. Loops go from the front.");
    registrar.engine().register_iterator::<Queue>();
    registrar
        .field(OWNER, "len: int", "How many jobs.")
        .register_get("len", |q: &mut Queue| q.rows.len() as i64);
    registrar
        .method(OWNER, "[index: int] -> Job", "The job at a position, 0 first.")
        .register_indexer_get(|queue: &mut Queue, index: i64| queue.at(index));
    registrar.method(OWNER, "first(count: int) -> Queue", "The first so many jobs.").register_fn(
        "first",
        |queue: Queue, count: i64| -> Outcome<Queue> {
            let Ok(count) = usize::try_from(count) else {
                return fail(format!("first: {count} jobs cannot be taken"));
            };
            Ok(Queue::new(&queue.session, queue.rows[..count.min(queue.rows.len())].to_vec()))
        },
    );
    registrar
        .method(OWNER, "reversed() -> Queue", "Last job first.")
        .register_fn("reversed", |queue: Queue| {
            Queue::new(&queue.session, queue.rows.iter().rev().copied().collect())
        });
    registrar
        .method(
            OWNER,
            "then(others: Queue) -> Queue",
            "These jobs, then those of the other queue that are not here.",
        )
        .register_fn("then", then);
    registrar
        .method(OWNER, "contains(job: Job) -> bool", "Whether a job is in it, also written `job in queue`.")
        .register_fn("contains", |queue: Queue, job: JobValue| -> Outcome<bool> {
            queue.session.meter().charge(queue.rows.len())?;
            Ok(queue.rows.contains(&(job.row() as u32)))
        });
    registrar.unknown_field::<Queue>(OWNER);
    registrar.engine().register_fn("to_string", |q: &mut Queue| {
        ImmutableString::from(format!("queue of {} jobs", q.rows.len()))
    });
    register_rank(registrar, shared);
}

fn then(front: Queue, back: Queue) -> Outcome<Queue> {
    front.session.meter().charge(front.rows.len() + back.rows.len())?;
    let mut seen = vec![false; front.session.snapshot.jobs.len()];
    let rows = front.rows.iter().chain(back.rows.iter());
    let rows = rows.copied().filter(|row| !std::mem::replace(&mut seen[*row as usize], true)).collect();
    Ok(Queue::new(&front.session, rows))
}

fn register_rank(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    registrar.function(
        "rank(key: Column, ...) -> Queue",
        "Orders the jobs of the columns by the first key, smallest first; equal ones by the next key, up to six; last \
         by arrival, then id. Keys may also be numbers, which change nothing. A key that is not a number is an error.",
    );
    for n_keys in 1..=MAX_KEYS {
        // Columns only is the common case and found at once; any mix with numbers takes the second way.
        for kind in [TypeId::of::<Column>(), TypeId::of::<Dynamic>()] {
            let shared = Arc::clone(shared);
            registrar.engine().register_raw_fn("rank", vec![kind; n_keys], move |ctx, args| {
                // Copied: the first may be a variable, which the script goes on using.
                let keys: Array = args.iter().map(|arg| arg.flatten_clone()).collect();
                match node_rank::is_of_nodes(&keys) {
                    true => node_rank::rank(&ctx, keys).map(Dynamic::from),
                    false => rank_values(&shared, keys, ctx.call_position()).map(Dynamic::from),
                }
            });
        }
    }
}

fn rank_values(shared: &Shared, values: Array, written: Position) -> Outcome<Queue> {
    let mut keys: Vec<Key> = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let position = index + 1;
        match number(&value) {
            Some(constant) if constant.is_nan() => {
                return fail(format!("rank: key {position} is not a number (NaN)"));
            }
            Some(_) => {}
            None => {
                let label = type_label(&value).to_owned();
                match value.try_cast::<Column>() {
                    Some(column) => keys.push(Key { position, column }),
                    None => {
                        return fail(format!(
                            "rank: key {position} must be a column or a number, got {label}"
                        ));
                    }
                }
            }
        }
    }
    rank::rank(shared, keys, written)
}
