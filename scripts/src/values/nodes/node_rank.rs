//! Placements by rank: `rank` over columns of nodes, and what a placement may demand besides.

use std::sync::{Arc, PoisonError};

use rhai::{Array, Dynamic, Engine, EvalAltResult, FnPtr, NativeCallContext, Position};
use rota_core::place::formula::Term;
use rota_core::place::{Ask, NodeRank, Place, Ranked, SplitTable, Spots, Terms};
use rota_core::room::Room;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, Shared, fail};
use crate::values::node_columns::{NodeColumn, Recording, gang_and_nodes};
use crate::values::placement::{Failure, Placement};
use crate::values::{AskedBefore, number, type_label};

/// Operations on nodes for the price of one row of a native verb: a few make up the work of a row.
const OPERATIONS_PER_ROW: usize = 4;

/// Splits of one number of GPUs that a table may have.
const MAX_SPLITS: usize = 64;

/// A rank as a script wrote it, and as the core runs it.
#[derive(Clone, Debug)]
pub(crate) struct RankValue {
    recording: Recording,
    terms: Terms,
    rank: NodeRank,
    /// The file and the position of `rank`, for errors that come up when a job is placed.
    written: (String, Position),
}

impl RankValue {
    fn new(recording: &Recording, terms: Terms, written: (String, Position)) -> Outcome<RankValue> {
        let rank = NodeRank::new(&recording.lock().unwrap_or_else(PoisonError::into_inner), &terms);
        match rank {
            Some(rank) => Ok(RankValue { recording: Arc::clone(recording), terms, rank, written }),
            None => fail("rank: a column of nodes uses one that was written later"),
        }
    }

    /// An error where `rank` is written.
    fn blame(&self, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
        if error.is_system_exception() {
            return error;
        }
        let (file, position) = &self.written;
        let mut error = error;
        error.set_position(*position);
        Box::new(EvalAltResult::ErrorInFunctionCall("rank".to_owned(), file.clone(), error, *position))
    }

    /// An error where both `within` and `one_by_one` are wanted.
    fn refuse_within_one_by_one(&self, is_within: bool, is_one_by_one: bool) -> Outcome<()> {
        match is_within && is_one_by_one {
            true => fail(
                "`within` looks for a place of the whole job, `one_by_one` for one of each GPU: leave one out",
            ),
            false => Ok(()),
        }
    }

    fn one_by_one(&self) -> Outcome<Placement> {
        self.refuse_within_one_by_one(self.terms.within.is_some(), true)?;
        let terms = Terms { is_one_by_one: true, ..self.terms.clone() };
        RankValue::new(&self.recording, terms, self.written.clone())
            .map(|rank| Placement::Ranked(Arc::new(rank)))
    }

    fn with(&self, column: &NodeColumn, change: impl FnOnce(&mut Terms, Term)) -> Outcome<Placement> {
        if !Arc::ptr_eq(&self.recording, &column.recording) {
            return fail("columns of nodes of two placements: take both from the same `nodes`");
        }
        let mut terms = self.terms.clone();
        change(&mut terms, column.term);
        RankValue::new(&self.recording, terms, self.written.clone())
            .map(|rank| Placement::Ranked(Arc::new(rank)))
    }
}

/// Whether `rank` was called with columns of nodes.
pub(crate) fn is_of_nodes(keys: &[Dynamic]) -> bool {
    keys.iter().any(|key| key.is::<NodeColumn>())
}

/// A placement from the keys of `rank`.
pub(crate) fn rank(ctx: &NativeCallContext<'_>, keys: Array) -> Outcome<Placement> {
    let mut columns: Vec<NodeColumn> = Vec::with_capacity(keys.len());
    for (index, key) in keys.into_iter().enumerate() {
        let position = index + 1;
        match number(&key) {
            Some(constant) if constant.is_nan() => {
                return fail(format!("rank: key {position} is not a number (NaN)"));
            }
            Some(_) => continue,
            None => {}
        }
        let label = type_label(&key).to_owned();
        match key.try_cast::<NodeColumn>() {
            Some(column) => {
                columns.first().map_or(Ok(()), |first| first.same_placement(&column))?;
                columns.push(column);
            }
            None => {
                return fail(format!(
                    "rank: key {position} must be a column of nodes or a number like the other keys, got {label}"
                ));
            }
        }
    }
    let Some(first) = columns.first() else { return fail("rank: at least one key must be a column") };
    let terms = Terms { keys: columns.iter().map(|column| column.term).collect(), ..Terms::default() };
    let written = (ctx.call_source().unwrap_or_default().to_owned(), ctx.call_position());
    RankValue::new(&first.recording, terms, written).map(|rank| Placement::Ranked(Arc::new(rank)))
}

/// A rank at work: its work counts as the script's, and a key that is not a number is the script's error.
pub(crate) struct CountedRank<'a> {
    ranked: Ranked<'a>,
    rank: &'a RankValue,
    session: &'a Session,
    failure: &'a Failure,
}

impl<'a> CountedRank<'a> {
    pub(crate) fn new(rank: &'a RankValue, session: &'a Session, failure: &'a Failure) -> Self {
        CountedRank { ranked: Ranked::new(&rank.rank), rank, session, failure }
    }
}

impl Place for CountedRank<'_> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        if self.failure.borrow().is_some() {
            return None;
        }
        let found = self.ranked.place(room, ask);
        let outcome = match self.ranked.odd {
            None => self.session.meter().charge(self.ranked.work / OPERATIONS_PER_ROW),
            Some(odd) => {
                let what = odd.key.map_or("a condition".to_owned(), |key| format!("key {key}"));
                let job = self.session.snapshot.jobs.id(ask.row);
                fail(format!("rank: {what} of node {} for job {job} is not a number (NaN)", odd.node))
            }
        };
        match outcome {
            Ok(()) => found,
            Err(error) => {
                self.failure.borrow_mut().get_or_insert_with(|| self.rank.blame(error));
                None
            }
        }
    }
}

impl Placement {
    fn ranked(&self, verb: &str) -> Outcome<&RankValue> {
        match self {
            Placement::Ranked(rank) => Ok(rank),
            _ => fail(format!(
                "{verb}: only what `rank` returns has nodes to choose from; say it right behind `rank(...)`"
            )),
        }
    }
}

fn place_by(engine: &Engine, shared: &Shared, rule: FnPtr) -> Outcome<Placement> {
    let closure = shared.closure(rule);
    if let Some(placement) = shared.placed_before(&closure)? {
        return Ok(placement);
    }
    let answer = closure.call(engine, &shared.meter, gang_and_nodes())?;
    let label = type_label(&answer).to_owned();
    match answer.try_cast::<Placement>() {
        Some(placement) => {
            shared.keep_placement(AskedBefore::new(&closure, &placement));
            Ok(placement)
        }
        None => fail(format!(
            "place_by: the closure |job, nodes| must return a Placement, such as rank(...), got {label}"
        )),
    }
}

/// A table of splits from arrays: for each number of GPUs, 1 first, the splits allowed.
pub(super) fn splits(verb: &str, table: &Array) -> Outcome<SplitTable> {
    let read = |(index, splits): (usize, &Dynamic)| -> Outcome<Vec<Vec<u32>>> {
        let gpus = index as u32 + 1;
        let splits: Vec<Vec<u32>> = numbers(splits).unwrap_or_default();
        let is_sound = splits.iter().all(|split| split.iter().sum::<u32>() == gpus);
        match is_sound && (1..=MAX_SPLITS).contains(&splits.len()) {
            true => Ok(splits),
            false => fail(format!(
                "{verb}: entry {index} must be an array of splits of {gpus} GPUs, such as [[{gpus}]]: whole numbers that add up to it, {MAX_SPLITS} splits at most"
            )),
        }
    };
    table.iter().enumerate().map(read).collect()
}

fn numbers(splits: &Dynamic) -> Option<Vec<Vec<u32>>> {
    let splits = splits.read_lock::<Array>()?;
    let part = |part: &Dynamic| u32::try_from(part.as_int().ok()?).ok().filter(|gpus| *gpus > 0);
    let split = |split: &Dynamic| {
        let mut parts = split.read_lock::<Array>()?.iter().map(part).collect::<Option<Vec<u32>>>()?;
        parts.sort_unstable_by_key(|gpus| std::cmp::Reverse(*gpus));
        (parts.len() <= 64 && parts.iter().all(|gpus| *gpus <= 4096)).then_some(parts)
    };
    splits.iter().map(split).collect()
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    registrar.function(
        "rank(key: NodeColumn, ...) -> Placement",
        "In `fn place(job, nodes)`: the job goes to the node with the smallest first key, equal ones by the next key, up to six; \
         last by node number. It takes all it can of that node, the GPUs with the lowest numbers, then goes on to the next node \
         until it has all its GPUs.",
    );
    let shared = Arc::clone(shared);
    registrar
        .function(
            "place_by(rule: Fn) -> Placement",
            "A placement by columns of nodes where there is a view: the closure `|job, nodes|` is asked once and returns what \
             `fn place(job, nodes)` would. In later rounds it is asked again only if numbers or texts that it uses from around it have changed; \
             what it takes from a view or a set of jobs has it asked in every round."
        )
        .register_fn("place_by", move |ctx: NativeCallContext, rule: FnPtr| place_by(ctx.engine(), &shared, rule));
    of_ranks(registrar);
    of_all(registrar);
}

fn of_ranks(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Placement";
    registrar
        .method(
            OWNER,
            "only(condition: NodeColumn) -> Placement",
            "Of `rank(...)`: only the nodes for which the condition is not 0. A second `only` replaces the first.",
        )
        .register_fn("only", |placement: Placement, condition: NodeColumn| {
            placement.ranked("only")?.with(&condition, |terms, term| terms.only = Some(term))
        });
    registrar
        .method(
            OWNER,
            "within(group: NodeColumn) -> Placement",
            "Of `rank(...)`: the whole job on nodes that have the same number in `group`, such as `nodes.rack`; of several groups \
             in the one where it needs the fewest nodes, then in that of the lowest node.",
        )
        .register_fn("within", |placement: Placement, group: NodeColumn| {
            let rank = placement.ranked("within")?;
            rank.refuse_within_one_by_one(true, rank.terms.is_one_by_one)?;
            rank.with(&group, |terms, term| terms.within = Some(term))
        });
    registrar
        .method(
            OWNER,
            "from_top(condition: NodeColumn) -> Placement",
            "Of `rank(...)`: which GPUs of a node are taken, the highest numbers where the condition is not 0, else the lowest.",
        )
        .register_fn("from_top", |placement: Placement, condition: NodeColumn| {
            placement.ranked("from_top")?.with(&condition, |terms, term| terms.from_top = Some(term))
        });
    registrar
        .method(
            OWNER,
            "one_by_one() -> Placement",
            "Of `rank(...)`: each GPU of a job is placed by itself, on the first node that has room for it. All columns are computed \
             anew after each, so that what is free is what the GPUs before leave.",
        )
        .register_fn("one_by_one", |placement: Placement| placement.ranked("one_by_one")?.one_by_one());
}

fn of_all(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Placement";
    registrar
        .method(
            OWNER,
            "or_else(other: Placement) -> Placement",
            "Another placement where this one finds nothing.",
        )
        .register_fn("or_else", |first: Placement, other: Placement| {
            Placement::OrElse(Arc::new((first, other))).bounded()
        });
    registrar
        .method(
            OWNER,
            "compact() -> Placement",
            "A job waits rather than be spread over more nodes than it needs.",
        )
        .register_fn("compact", |placement: Placement| Placement::Compact(Arc::new(placement)).bounded());
    registrar
        .method(
            OWNER,
            "splits(table: Array) -> Placement",
            "A job waits unless it is split in one of the ways of the table: its first entry has the splits of 1 GPU, the second of 2 \
             GPUs, and so on, as in `[[[1]], [[2], [1, 1]]]`. Jobs that are too wide for the table must be compact.",
        )
        .register_fn("splits", |placement: Placement, table: Array| -> Outcome<Placement> {
            Placement::Splits(Arc::new((placement, splits("splits", &table)?))).bounded()
        });
}
