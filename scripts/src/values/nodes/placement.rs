//! On which GPUs jobs run: what a `place` stage answers, and its translation into the core's strategies.

use std::sync::Arc;

use rhai::{Engine, FnPtr};
use rota_core::buddy::Buddy;
use rota_core::ids::NodeId;
use rota_core::place::{
    Ask, ByScore, Compact, Consolidate, FirstFit, LocalData, LocalSearch, OrElse, Place, RandomNodes,
    SplitTable, Splits, Spots, SwitchConsolidate, SwitchSplits,
};
use rota_core::room::Room;

use crate::language::reference::Registrar;
use crate::language::session::{Closure, Outcome, Session, Shared, fail};
use crate::values::local_search::CountedSearch;
use crate::values::node_rank::{CountedRank, RankValue};
use crate::values::{JobValue, NodeValue, number, type_label};

/// Placements that one placement may be made of.
const MAX_PARTS: usize = 32;

/// A strategy for finding GPUs.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    FirstFit,
    Consolidate,
    Buddy,
    SwitchConsolidate,
    SwitchSplits,
    LocalSearch(Arc<LocalSearch>),
    Random(u64),
    LocalData(Arc<Placement>),
    ByScore(Closure),
    Ranked(Arc<RankValue>),
    OrElse(Arc<(Placement, Placement)>),
    Compact(Arc<Placement>),
    Splits(Arc<(Placement, SplitTable)>),
}

impl Placement {
    /// How many placements it is made of, itself included.
    fn n_parts(&self) -> usize {
        1 + match self {
            Placement::LocalData(inner) | Placement::Compact(inner) => inner.n_parts(),
            Placement::Splits(inner) => inner.0.n_parts(),
            Placement::OrElse(both) => both.0.n_parts() + both.1.n_parts(),
            _ => 0,
        }
    }

    /// Itself, unless it is made of too many.
    pub(super) fn bounded(self) -> Outcome<Placement> {
        match self.n_parts() {
            n_parts if n_parts > MAX_PARTS => {
                fail(format!("a placement is made of more than {MAX_PARTS} placements"))
            }
            _ => Ok(self),
        }
    }

    /// Whether it says the same at every decision: it was written with columns of nodes, and holds nothing of this one.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Placement::ByScore(_) => false,
            Placement::LocalData(inner) | Placement::Compact(inner) => inner.is_lasting(),
            Placement::Splits(inner) => inner.0.is_lasting(),
            Placement::OrElse(both) => both.0.is_lasting() && both.1.is_lasting(),
            _ => true,
        }
    }
}

/// Where errors of closures wait until the walk they happened in has ended.
pub(crate) type Failure = std::cell::RefCell<Option<Box<rhai::EvalAltResult>>>;

/// A placement at work in one walk.
pub(crate) struct Strategy<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) session: &'a Arc<Session>,
    pub(crate) failure: &'a Failure,
}

impl<'a> Strategy<'a> {
    /// The core's strategy for a placement.
    pub(crate) fn build(&self, placement: &'a Placement) -> Box<dyn Place + 'a> {
        match placement {
            Placement::FirstFit => Box::new(FirstFit),
            Placement::Consolidate => Box::new(Consolidate::default()),
            Placement::Buddy => Box::new(Buddy::default()),
            Placement::SwitchConsolidate => Box::new(SwitchConsolidate),
            Placement::SwitchSplits => Box::new(SwitchSplits),
            Placement::LocalSearch(search) => {
                Box::new(CountedSearch::new(search, self.session, self.failure))
            }
            Placement::Random(seed) => Box::new(RandomNodes { seed: *seed }),
            Placement::LocalData(other) => Box::new(LocalData(self.build(other))),
            Placement::ByScore(closure) => Box::new(self.by_score(closure)),
            Placement::Ranked(rank) => Box::new(CountedRank::new(rank, self.session, self.failure)),
            Placement::OrElse(both) => Box::new(OrElse(self.build(&both.0), self.build(&both.1))),
            Placement::Compact(inner) => Box::new(Compact(self.build(inner))),
            Placement::Splits(inner) => Box::new(Splits { placement: self.build(&inner.0), table: &inner.1 }),
        }
    }

    fn by_score(&self, closure: &'a Closure) -> impl Place + 'a {
        let Strategy { engine, session, failure } = *self;
        let score = move |room: &Room, ask: &Ask<'_>, node: NodeId| -> Option<f64> {
            let handle = NodeValue::new(session, node, room.free_on(node));
            let job = JobValue::new(session, ask.row as u32);
            match closure
                .call(engine, session.meter(), (handle, job))
                .and_then(|value| score_of(&value, node).map_err(|error| closure.blame(error)))
            {
                Ok(score) => score,
                Err(error) => {
                    failure.borrow_mut().get_or_insert(error);
                    None
                }
            }
        };
        Guarded { inner: ByScore(score), failure }
    }
}

fn score_of(value: &rhai::Dynamic, node: NodeId) -> Outcome<Option<f64>> {
    if value.is_unit() {
        return Ok(None);
    }
    match number(value) {
        Some(score) if score.is_nan() => {
            fail(format!("by_score: the score of node {node} is not a number (NaN)"))
        }
        Some(score) => Ok(Some(score)),
        None => fail(format!(
            "by_score: the score of node {node} must be a number or (), got {}",
            type_label(value)
        )),
    }
}

/// Finds nothing any more once a closure has failed, so that a walk ends soon.
struct Guarded<'a, P> {
    inner: P,
    failure: &'a Failure,
}

impl<P: Place> Place for Guarded<'_, P> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        if self.failure.borrow().is_some() { None } else { self.inner.place(room, ask) }
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    registrar.class::<Placement>("Placement", "How GPUs are found for a job: what a `place` stage returns.");
    registrar
        .function(
            "first_fit() -> Placement",
            "The first GPUs in id order whose node has CPUs and memory left; gangs may be spread.",
        )
        .register_fn("first_fit", || Placement::FirstFit);
    registrar
        .function(
            "consolidate() -> Placement",
            "A gang on the fullest node that holds it whole, else on the fullest nodes together.",
        )
        .register_fn("consolidate", || Placement::Consolidate);
    registrar
        .function(
            "buddy() -> Placement",
            "The smallest gap that holds the gang, in an aligned block, or whole free nodes: gangs of power-of-two size leave \
             no splinters.",
        )
        .register_fn("buddy", || Placement::Buddy);
    registrar
        .function(
            "local_data(otherwise: Placement) -> Placement",
            "The fullest node that has the job's data set in its cache; where there is none, the other strategy.",
        )
        .register_fn("local_data", |otherwise: Placement| {
            Placement::LocalData(Arc::new(otherwise)).bounded()
        });
    register_topology(registrar);
    let shared = Arc::clone(shared);
    registrar
        .function(
            "by_score(score: Fn) -> Placement",
            "Nodes with the highest score first; a closure `|node, job|` gives it, or `()` for a node that cannot be used. \
             Flexible but slow: it is asked for every node and job.",
        )
        .register_fn("by_score", move |score: FnPtr| Placement::ByScore(shared.closure(score)));
}

fn register_topology(registrar: &mut Registrar<'_>) {
    registrar
        .function(
            "switch_consolidate() -> Placement",
            "The fewest nodes below one switch (rack), the fullest that hold the gang first; a gang waits rather than be \
             spread over more nodes than it needs.",
        )
        .register_fn("switch_consolidate", || Placement::SwitchConsolidate);
    registrar
        .function(
            "switch_splits() -> Placement",
            "As `switch_consolidate`, but gangs of up to eight may be split in the ways of a short list, such as 4+4 or 6+2.",
        )
        .register_fn("switch_splits", || Placement::SwitchSplits);
    registrar
        .function(
            "random_nodes(seed: int) -> Placement",
            "Each GPU on a random node with room; the draw depends on seed, time and job only.",
        )
        .register_fn("random_nodes", |seed: i64| Placement::Random(seed as u64));
}
