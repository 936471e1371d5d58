//! Placement by rank: nodes in the order of keys computed for the job, as a script writes them with `rank(...)`; the gang
//! takes what it can of each node in turn.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::formula::{Candidates, Formula, Operation, Results, Term, group_indices};
use super::{Ask, FirstFit, Place, Spots};
use crate::allocation::GpuSet;
use crate::ids::NodeId;
use crate::room::Room;

/// Which nodes a job goes to first.
#[derive(Clone, Debug)]
pub struct NodeRank {
    formula: Formula,
    /// Smallest first; equal ones by the next key, then by node number.
    keys: SmallVec<[Term; 4]>,
    /// Only nodes where this is not 0.
    only: Option<Term>,
    /// The whole gang on nodes for which this is the same.
    within: Option<Term>,
    /// The highest GPUs of a node where this is not 0, else the lowest.
    from_top: Option<Term>,
    /// Whether each GPU of a job is placed by itself, all computed anew after each.
    is_one_by_one: bool,
    /// What `only` says of the job alone: where it is 0, nothing else has to be computed.
    gate: Option<(Formula, Term)>,
}

/// The terms of a rank, among the operations of a script.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Keys, smallest first.
    pub keys: Vec<Term>,
    /// Only nodes where this is not 0.
    pub only: Option<Term>,
    /// The whole gang on nodes for which this is the same.
    pub within: Option<Term>,
    /// The highest GPUs of a node where this is not 0, else the lowest.
    pub from_top: Option<Term>,
    /// Whether each GPU of a job is placed by itself, all computed anew after each; `within` has no meaning then.
    pub is_one_by_one: bool,
}

impl NodeRank {
    /// A rank by these terms; `None` where an operation uses a later one.
    pub fn new(operations: &[Operation], terms: &Terms) -> Option<NodeRank> {
        let others = [terms.only, terms.within, terms.from_top];
        let wanted: Vec<Term> = terms.keys.iter().copied().chain(others.into_iter().flatten()).collect();
        let (formula, places) = Formula::new(operations, &wanted)?;
        let mut places = places.into_iter();
        let keys = places.by_ref().take(terms.keys.len()).collect();
        let [only, within, from_top] = others.map(|term| term.and_then(|_| places.next()));
        let gate = match only.filter(|only| formula.is_scalar(*only)).and(terms.only) {
            Some(only) => Formula::new(operations, &[only]).map(|(gate, places)| (gate, places[0])),
            None => None,
        };
        let is_one_by_one = terms.is_one_by_one;
        Some(NodeRank { formula, keys, only, within, from_top, is_one_by_one, gate })
    }

    /// How many operations it takes for each node.
    pub fn n_operations(&self) -> usize {
        self.formula.len()
    }

    /// Whether nodes are simply taken in the order of their numbers, the lowest GPUs first.
    fn is_first_fit(&self) -> bool {
        let is_idle = |key: &Term| self.formula.is_id(*key) || self.formula.constant(*key).is_some();
        self.keys.iter().all(is_idle)
            && self.only.is_none()
            && self.within.is_none()
            && !self.is_one_by_one
            && self.from_top.is_none_or(|term| self.formula.constant(term) == Some(0.0))
    }

    /// All terms; keys with their position, 1 first.
    fn terms(&self) -> impl Iterator<Item = (Option<usize>, Term)> + '_ {
        let keys = self.keys.iter().enumerate().map(|(index, key)| (Some(index + 1), *key));
        keys.chain([self.only, self.within, self.from_top].into_iter().flatten().map(|term| (None, term)))
    }
}

/// A key that is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddKey {
    /// Which key, 1 first; `None` for what `only`, `within` or `from_top` were given.
    pub key: Option<usize>,
    /// Of which node.
    pub node: NodeId,
}

/// A rank at work in one walk.
#[derive(Clone, Debug)]
pub struct Ranked<'a> {
    rank: &'a NodeRank,
    is_first_fit: bool,
    candidates: Candidates,
    results: Results,
    order: Vec<usize>,
    /// Steps of work of the last job that was placed: operations on one node.
    pub work: usize,
    /// Set when a key of the last job that was placed was not a number: nothing was found then.
    pub odd: Option<OddKey>,
}

impl<'a> Ranked<'a> {
    /// Ready to place jobs.
    pub fn new(rank: &'a NodeRank) -> Self {
        Ranked {
            is_first_fit: rank.is_first_fit(),
            rank,
            candidates: Candidates::default(),
            results: Results::default(),
            order: Vec::new(),
            work: 0,
            odd: None,
        }
    }
}

impl Place for Ranked<'_> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        if self.is_first_fit {
            self.work = 1;
            return FirstFit.place(room, ask);
        }
        self.odd = None;
        if let Some((gate, term)) = &self.rank.gate {
            self.work = gate.len();
            self.candidates.nodes.clear();
            self.results.compute(gate, room, ask, &self.candidates);
            if self.results.at(gate, *term, 0) == 0.0 {
                return None;
            }
        }
        self.candidates.find(room, ask);
        if self.rank.is_one_by_one {
            return self.one_by_one(room, ask);
        }
        self.work = self.work_of_one();
        self.compute(room, ask)?;
        let mut order = std::mem::take(&mut self.order);
        let found = self.choose(ask, &mut order);
        self.order = order;
        found
    }
}

/// The keys that differ from node to node.
struct Keys<'a>(SmallVec<[&'a [f64]; 4]>);

impl<'a> Keys<'a> {
    fn new(rank: &NodeRank, results: &'a Results) -> Self {
        let terms = rank.keys.iter().filter(|term| !rank.formula.is_scalar(**term));
        Keys(terms.map(|term| results.column(*term)).collect())
    }

    /// Whether a candidate goes before another one that has a lower number.
    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        for key in &self.0 {
            if key[a] != key[b] {
                return key[a] < key[b];
            }
        }
        false
    }

    /// The candidate that goes before all others; they are given by ascending number.
    fn first(&self, mut nodes: impl Iterator<Item = usize>) -> Option<usize> {
        let first = nodes.next()?;
        Some(nodes.fold(first, |best, n| if self.is_before(n, best) { n } else { best }))
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let keys = self.0.iter().map(|key| key[a].partial_cmp(&key[b]).unwrap_or(Ordering::Equal));
        keys.fold(Ordering::Equal, Ordering::then).then(a.cmp(&b))
    }
}

impl Ranked<'_> {
    /// Steps of work to compute all for one job, or for one GPU of it.
    fn work_of_one(&self) -> usize {
        (self.candidates.nodes.len() + 1) * (self.rank.n_operations() + self.rank.keys.len() + 1)
    }

    /// Computes all for the candidates; nothing where a key is not a number.
    fn compute(&mut self, room: &Room, ask: &Ask<'_>) -> Option<()> {
        self.results.compute(&self.rank.formula, room, ask, &self.candidates);
        self.odd = self.find_odd();
        self.odd.is_none().then_some(())
    }

    /// Each GPU on the first node that has room for it, given those placed before.
    fn one_by_one(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        self.work = self.candidates.nodes.len();
        let n_nodes = self.candidates.nodes.len();
        let has_room: u64 = (0..n_nodes).map(|n| u64::from(self.fitting(ask, n, ask.gpus))).sum();
        if has_room < u64::from(ask.gpus) {
            return None;
        }
        let mut spots = Spots::new();
        for n_placed in 0..ask.gpus {
            self.candidates.n_placed = n_placed;
            self.work += self.work_of_one();
            self.compute(room, ask)?;
            let keys = Keys::new(self.rank, &self.results);
            let nodes = (0..n_nodes).filter(|n| self.is_meant(*n) && self.fitting(ask, *n, 1) == 1);
            let n = keys.first(nodes)?;
            let (node, gpu) = self.spot(n, 1);
            let (_, free, host) = &mut self.candidates.nodes[n];
            *free = free.without(gpu);
            *host = host.saturating_sub(&ask.per_gpu);
            match spots.iter_mut().find(|spot| spot.0 == node) {
                Some((_, gpus)) => *gpus = gpus.or(gpu),
                None => spots.push((node, gpu)),
            }
        }
        spots.sort_unstable_by_key(|(node, _)| *node);
        Some(spots)
    }

    /// Whether `only` allows a candidate.
    fn is_meant(&self, n: usize) -> bool {
        self.rank.only.is_none_or(|only| self.results.at(&self.rank.formula, only, n) != 0.0)
    }

    fn find_odd(&self) -> Option<OddKey> {
        let formula = &self.rank.formula;
        let first = self.candidates.nodes.first()?.0;
        for (key, term) in self.rank.terms() {
            let column = self.results.column(term);
            let is_odd = match formula.is_scalar(term) {
                true => self.results.at(formula, term, 0).is_nan(),
                false => column.iter().fold(false, |odd, number| odd | number.is_nan()),
            };
            if is_odd {
                let position = column.iter().position(|number| number.is_nan());
                return Some(OddKey { key, node: position.map_or(first, |n| self.candidates.nodes[n].0) });
            }
        }
        None
    }

    fn choose(&self, ask: &Ask<'_>, order: &mut Vec<usize>) -> Option<Spots> {
        let keys = Keys::new(self.rank, &self.results);
        let nodes = (0..self.candidates.nodes.len()).filter(|n| self.is_meant(*n));
        if let Some(group) = self.rank.within {
            order.clear();
            order.extend(nodes);
            return self.within(ask, &keys, group, order);
        }
        let first = keys.first(nodes.clone())?;
        if let Some(spots) = self.whole(ask, first) {
            return Some(spots);
        }
        order.clear();
        order.extend(nodes);
        order.sort_unstable_by(|a, b| keys.compare(*a, *b));
        self.gather(ask, order)
    }

    /// The whole gang on one node, if that holds it.
    fn whole(&self, ask: &Ask<'_>, n: usize) -> Option<Spots> {
        let holds = self.fitting(ask, n, ask.gpus) == ask.gpus;
        holds.then(|| SmallVec::from_slice(&[self.spot(n, ask.gpus)]))
    }

    /// In the group that holds the gang on the fewest nodes; of several in that of the lowest node.
    fn within(&self, ask: &Ask<'_>, keys: &Keys<'_>, group: Term, nodes: &mut [usize]) -> Option<Spots> {
        let number = |n: usize| self.results.at(&self.rank.formula, group, n);
        let groups = group_indices((0..self.candidates.nodes.len()).map(number));
        if !nodes.is_sorted_by_key(|n| groups[*n]) {
            nodes.sort_unstable_by_key(|n| (groups[*n], *n));
        }
        let mut best: Option<Spots> = None;
        for nodes in nodes.chunk_by_mut(|a, b| groups[*a] == groups[*b]) {
            if let Some(spots) = keys.first(nodes.iter().copied()).and_then(|first| self.whole(ask, first)) {
                return Some(spots);
            }
            let room: u64 = nodes.iter().map(|n| u64::from(self.fitting(ask, *n, ask.gpus))).sum();
            if room < u64::from(ask.gpus) {
                continue;
            }
            nodes.sort_unstable_by(|a, b| keys.compare(*a, *b));
            let found = self.gather(ask, nodes);
            let n_nodes = best.as_ref().map_or(usize::MAX, |best| best.len());
            best = found.filter(|found| found.len() < n_nodes).or(best);
        }
        best
    }

    /// Takes from nodes in the order given until the gang is whole.
    fn gather(&self, ask: &Ask<'_>, nodes: &[usize]) -> Option<Spots> {
        let mut spots = Spots::new();
        let mut left = ask.gpus;
        for n in nodes {
            let count = self.fitting(ask, *n, left);
            if count > 0 {
                spots.push(self.spot(*n, count));
                left -= count;
            }
            if left == 0 {
                spots.sort_unstable_by_key(|(node, _)| *node);
                return Some(spots);
            }
        }
        None
    }

    fn fitting(&self, ask: &Ask<'_>, n: usize, want: u32) -> u32 {
        let (_, free, host) = &self.candidates.nodes[n];
        ask.fitting(*free, host, want)
    }

    fn spot(&self, n: usize, count: u32) -> (NodeId, GpuSet) {
        let (node, free, _) = self.candidates.nodes[n];
        let is_from_top = |term| self.results.at(&self.rank.formula, term, n) != 0.0;
        match self.rank.from_top.is_some_and(is_from_top) {
            true => (node, free.highest(count)),
            false => (node, free.lowest(count)),
        }
    }
}
