//! Ordering: native sorting by keys, so that a script never compares two jobs itself.
//!
//! Sorting starts from the order of the last decision, because the next one is nearly the same and the standard
//! stable sort takes linear time on what is nearly sorted. Keys that are equal for all jobs are dropped, and a job
//! is sorted as one machine word of key, id and row, so that no comparison follows a pointer.

use rhai::{Dynamic, Engine, Position};
use rota_core::ids::JobId;
use rota_core::table::Field;

use crate::language::session::{Closure, Outcome, Shared, fail};
use crate::policy::account::OrderMade;
use crate::values::{Column, JobValue, Jobs, Queue, number, type_label};

/// `rank` calls of one decision whose order is remembered.
const MAX_HINTS: usize = 4;

/// One key of `rank`.
pub(crate) struct Key {
    /// Its position among the arguments, 1 first.
    pub(crate) position: usize,
    pub(crate) column: Column,
}

impl Key {
    /// Its position with its value for each job.
    fn by_job(&self) -> (usize, Vec<(JobId, f64)>) {
        let jobs = &self.column.jobs;
        let table = &jobs.session.snapshot.jobs;
        (
            self.position,
            jobs.rows().map(|row| table.id(row)).zip(self.column.values().iter().copied()).collect(),
        )
    }
}

/// Orders by the keys; ties by arrival, then id.
pub(crate) fn rank(shared: &Shared, mut keys: Vec<Key>, written: Position) -> Outcome<Queue> {
    let Some(first) = keys.first() else {
        return fail("rank: at least one key must be a column, such as `jobs.arrival`");
    };
    let jobs = first.column.jobs.clone();
    jobs.refuse_steps("rank")?;
    shared.meter.charge(jobs.len() * (1 + keys.len()))?;
    for key in &keys {
        first.column.same_jobs(&key.column)?;
        refuse_nan(key)?;
    }
    let told = shared.has_account().then(|| keys.iter().map(Key::by_job).collect());
    drop_idle_keys(&mut keys);
    let values: Vec<&[f64]> = keys.iter().map(|key| key.column.values()).collect();
    let mut items = start(shared, &jobs, values.first().copied());
    sort(&mut items, &values, &jobs);
    let queue = Queue::new(&jobs.session, items.iter().map(|item| item.row()).collect());
    remember(shared, &jobs, &items);
    if let Some(keys) = told {
        tell(shared, &queue, written, keys, &[]);
    }
    Ok(queue)
}

/// The order where no stage says one: the more important first, those alike by arrival.
pub(crate) fn by_default(shared: &Shared, jobs: &Jobs) -> Queue {
    let priorities = jobs.session.snapshot.jobs.column(Field::Priority);
    let keys: Option<Vec<f64>> =
        differ(priorities).then(|| jobs.rows().map(|row| -priorities[row]).collect());
    let mut items = start(shared, jobs, keys.as_deref());
    items.sort();
    remember(shared, jobs, &items);
    let queue = Queue::new(&jobs.session, items.iter().map(|item| item.row()).collect());
    if shared.has_account() {
        let arrivals = jobs.session.snapshot.jobs.column(Field::Arrival);
        let by_job = |value: &dyn Fn(usize) -> f64| {
            jobs.rows().map(|row| (jobs.session.snapshot.jobs.id(row), value(row))).collect()
        };
        let keys = vec![(1, by_job(&|row| 0.0 - priorities[row])), (2, by_job(&|row| arrivals[row]))];
        tell(shared, &queue, Position::NONE, keys, &["-priority", "arrival"]);
    }
    queue
}

/// Orders by what a closure says of each job: a number, or an array of numbers compared one by one.
pub(crate) fn order_by(engine: &Engine, jobs: &Jobs, key: &Closure, written: Position) -> Outcome<Queue> {
    let session = &jobs.session;
    jobs.refuse_steps("order_by")?;
    let mut keyed = Vec::with_capacity(jobs.len());
    for position in jobs.positions_by_id() {
        let job = JobValue::new(session, jobs.row_at(position) as u32);
        let id = job.id();
        let value = key.call(engine, session.meter(), (job.clone(),))?;
        let Some(numbers) = numbers(&value) else {
            return fail(format!(
                "order_by: the key of job {id} must be a number or an array of numbers, got {}",
                type_label(&value)
            ));
        };
        if numbers.iter().any(|n| n.is_nan()) {
            return fail(format!("order_by: the key of job {id} is not a number (NaN)"));
        }
        keyed.push((numbers, job.row() as u32));
    }
    keyed.sort_by(|a, b| compare(&a.0, &b.0));
    let queue = Queue::new(session, keyed.iter().map(|(_, row)| *row).collect());
    if session.shared.has_account() {
        let n_keys = keyed.iter().map(|(numbers, _)| numbers.len()).max().unwrap_or(0);
        let at = |n: usize| {
            let values = keyed.iter().filter_map(|(numbers, row)| Some((*row, *numbers.get(n)?)));
            values.map(|(row, value)| (session.snapshot.jobs.id(row as usize), value)).collect()
        };
        tell(&session.shared, &queue, written, (0..n_keys).map(|n| (n + 1, at(n))).collect(), &CLOSURE_KEYS);
    }
    Ok(queue)
}

/// What the numbers of a closure are called: it may have any.
const CLOSURE_KEYS: [&str; 3] = ["the closure's number", "its second number", "its third number"];

/// Notes an order for somebody who looks at the decision.
fn tell(
    shared: &Shared,
    queue: &Queue,
    position: Position,
    keys: Vec<(usize, Vec<(JobId, f64)>)>,
    texts: &'static [&'static str],
) {
    let part = shared.call_state().part;
    shared.note_order(OrderMade { part, position, rows: std::sync::Arc::clone(&queue.rows), keys, texts });
}

fn numbers(value: &Dynamic) -> Option<Vec<f64>> {
    match value.read_lock::<rhai::Array>() {
        Some(array) => array.iter().map(number).collect(),
        None => number(value).map(|n| vec![n]),
    }
}

fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let pairs = a.iter().zip(b).map(|(x, y)| ordered_bits(*x).cmp(&ordered_bits(*y)));
    pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(a.len().cmp(&b.len()))
}

/// Key, id and row of a job in one word that sorts by key, then id. Ids go up with arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item(u128);

impl Item {
    fn new(key: f64, id: JobId, row: usize) -> Item {
        Item(u128::from(ordered_bits(key)) << 64 | u128::from(id.0) << 32 | row as u128)
    }

    fn key_bits(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn id(self) -> JobId {
        JobId((self.0 >> 32) as u32)
    }

    fn row(self) -> u32 {
        self.0 as u32
    }
}

/// Bits that sort as the number does; both zeros are equal.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn refuse_nan(key: &Key) -> Outcome<()> {
    let values = key.column.values();
    // Looking at all of them keeps the common pass free of branches.
    if !values.iter().fold(false, |is_odd, v| is_odd | v.is_nan()) {
        return Ok(());
    }
    match values.iter().position(|v| v.is_nan()) {
        None => Ok(()),
        Some(position) => {
            let jobs = &key.column.jobs;
            let id = jobs.session.snapshot.jobs.id(jobs.row_at(position));
            fail(format!("rank: key {} of job {id} is not a number (NaN)", key.position))
        }
    }
}

/// Drops keys that cannot change the order: equal for all jobs, or the arrival at the end, by which ties go anyway.
fn drop_idle_keys(keys: &mut Vec<Key>) {
    keys.retain(|key| differ(key.column.values()));
    while keys.last().is_some_and(|key| key.column.is_field(Field::Arrival)) {
        keys.pop();
    }
}

/// Whether not all numbers are the same; in stretches, each of which is looked through without branches.
fn differ(values: &[f64]) -> bool {
    const STRETCH: usize = 64;
    let Some(first) = values.first() else { return false };
    !values.chunks(STRETCH).all(|some| some.iter().fold(true, |is_same, v| is_same & (v == first)))
}

/// All jobs of the set, in the order of the last decision as far as it is known; later ones at the end.
fn start(shared: &Shared, jobs: &Jobs, key: Option<&[f64]>) -> Vec<Item> {
    let table = &jobs.session.snapshot.jobs;
    let mut items = Vec::with_capacity(jobs.len());
    if !jobs.is_all() {
        items.extend((0..jobs.len()).map(|position| {
            let row = jobs.row_at(position);
            Item::new(key.map_or(0.0, |k| k[position]), table.id(row), row)
        }));
        return items;
    }
    let mut state = shared.call_state();
    let call = state.n_rank_calls;
    let mut is_listed = vec![false; table.len()];
    if let Some(hint) = state.rank_hints.get_mut(call) {
        for id in hint.iter() {
            if let Some(row) = table.row(JobId(*id)) {
                is_listed[row] = true;
                items.push(Item::new(key.map_or(0.0, |k| k[row]), JobId(*id), row));
            }
        }
    }
    if items.len() < table.len() {
        let later = is_listed.iter().enumerate().filter(|(_, listed)| !**listed).map(|(row, _)| row);
        items.extend(later.map(|row| Item::new(key.map_or(0.0, |k| k[row]), table.id(row), row)));
    }
    items
}

fn sort(items: &mut [Item], keys: &[&[f64]], jobs: &Jobs) {
    items.sort();
    let Some((_, rest)) = keys.split_first().filter(|(_, rest)| !rest.is_empty()) else { return };
    for group in items.chunk_by_mut(|a, b| a.key_bits() == b.key_bits()).filter(|group| group.len() > 1) {
        for item in group.iter_mut() {
            let position = jobs.position_of(item.row() as usize).unwrap_or_default();
            *item = Item::new(rest[0][position], item.id(), item.row() as usize);
        }
        sort(group, rest, jobs);
    }
}

fn remember(shared: &Shared, jobs: &Jobs, items: &[Item]) {
    if !jobs.is_all() {
        return;
    }
    let mut state = shared.call_state();
    let call = state.n_rank_calls;
    state.n_rank_calls += 1;
    if call >= MAX_HINTS {
        return;
    }
    if state.rank_hints.len() <= call {
        state.rank_hints.resize(call + 1, Vec::new());
    }
    let hint = &mut state.rank_hints[call];
    hint.clear();
    hint.extend(items.iter().map(|item| item.id().0));
}
