//! A search over splits: of all the ways a gang may be split over nodes, the best by merits that the caller names.
//!
//! Chronus' artifact has a local search that returns before it searches. Here every split of a table is tried below every
//! switch and across all of them; the profile says how fast it is on so many nodes.

use std::cmp::Ordering;

use super::switch::{spares, spots};
use super::{Ask, Place, SplitTable, Spots};
use crate::profile::Shape;
use crate::room::Room;
use crate::switches::{Part, Spare, allowed_splits, fewest_nodes, is_consolidated, take_in_order};

/// The best split of a table. Of equally good ones, the one below a single switch, then the one that the table has
/// first. Gangs that are too wide for the table are on the fewest nodes, else on the emptiest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSearch {
    /// The splits that are tried, for each number of GPUs, 1 first.
    pub splits: SplitTable,
    /// What makes a split better than another; the next one counts where the one before is equal.
    pub prefer: Vec<Merit>,
}

/// What speaks for a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merit {
    /// It runs fastest by the job's profile.
    Fastest,
    /// It leaves the fewest free GPUs on the nodes it uses.
    Tightest,
    /// It uses the fewest nodes.
    FewestNodes,
    /// It spans the fewest switches.
    FewestSwitches,
}

impl Default for LocalSearch {
    /// Chronus' splits of up to eight GPUs, the fastest and then the tightest.
    fn default() -> Self {
        let of_size = |gpus| allowed_splits(gpus).map(|all| all.iter().map(|split| split.to_vec()).collect());
        LocalSearch {
            splits: (1..).map_while(of_size).collect(),
            prefer: vec![Merit::Fastest, Merit::Tightest],
        }
    }
}

/// A split with its places, and what speaks for it.
struct Candidate {
    parts: Vec<Part>,
    rate: f64,
    left_over: u32,
}

/// A search at work in one walk.
#[derive(Clone, Debug)]
pub struct Searching<'a> {
    search: &'a LocalSearch,
    /// Steps of work of the last job that was placed: nodes looked at for a part.
    pub work: usize,
}

impl<'a> Searching<'a> {
    /// Ready to place jobs.
    pub fn new(search: &'a LocalSearch) -> Self {
        Searching { search, work: 0 }
    }
}

impl Place for Searching<'_> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let nodes = spares(room, ask);
        self.work = nodes.len();
        let Some(splits) = self.search.splits.get((ask.gpus as usize).wrapping_sub(1)) else {
            return wide(room, ask, &nodes);
        };
        // Each part looks at all nodes twice: below its switch, and across switches.
        self.work += 2 * nodes.len() * splits.iter().map(Vec::len).sum::<usize>();
        let mut best: Option<Candidate> = None;
        let groups = nodes.chunk_by(|a, b| a.switch == b.switch).chain(std::iter::once(nodes.as_slice()));
        for group in groups {
            for parts in splits.iter().filter_map(|split| tightest(group, split)) {
                let candidate = Candidate::of(room, ask, parts);
                if best.as_ref().is_none_or(|best| candidate.beats(best, &self.search.prefer)) {
                    best = Some(candidate);
                }
            }
        }
        best.map(|best| spots(room, &best.parts))
    }
}

impl Candidate {
    fn of(room: &Room, ask: &Ask<'_>, parts: Vec<Part>) -> Self {
        let left_over = parts.iter().map(|part| part.spare.free - part.gpus).sum();
        let rate = rate(room, ask, &parts);
        Candidate { parts, rate, left_over }
    }

    fn n_switches(&self) -> usize {
        let mut switches: Vec<u32> = self.parts.iter().map(|part| part.spare.switch).collect();
        switches.sort_unstable();
        switches.dedup();
        switches.len()
    }

    fn beats(&self, other: &Candidate, prefer: &[Merit]) -> bool {
        let compare = |merit: &Merit| match merit {
            Merit::Fastest => other.rate.total_cmp(&self.rate),
            Merit::Tightest => self.left_over.cmp(&other.left_over),
            Merit::FewestNodes => self.parts.len().cmp(&other.parts.len()),
            Merit::FewestSwitches => self.n_switches().cmp(&other.n_switches()),
        };
        prefer.iter().map(compare).find(|order| order.is_ne()) == Some(Ordering::Less)
    }
}

/// Iterations per second on the nodes of these parts.
fn rate(room: &Room, ask: &Ask<'_>, parts: &[Part]) -> f64 {
    let cluster = room.cluster();
    let spec = ask.snapshot.jobs.spec(ask.row);
    let node = parts.first().and_then(|part| cluster.node(part.spare.node));
    let Some(gpu_type) = node.and_then(|node| cluster.gpu_types().get(node.gpu_type.index())) else {
        return 0.0;
    };
    spec.profile.rate(&Shape {
        gpus: ask.gpus,
        n_nodes: parts.len() as u32,
        per_gpu: ask.per_gpu,
        gpu_type,
        batch: spec.batch,
    })
}

/// Each part, widest first, on the fullest node that still holds it.
fn tightest(nodes: &[Spare], split: &[u32]) -> Option<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::with_capacity(split.len());
    for &gpus in split {
        let is_used = |spare: &&Spare| parts.iter().any(|part| part.spare.node == spare.node);
        let holding = nodes.iter().filter(|spare| spare.free >= gpus && !is_used(spare));
        let spare = *holding.min_by_key(|spare| (spare.free, spare.node))?;
        parts.push(Part { spare, gpus });
    }
    Some(parts)
}

/// Gangs without a list of splits: consolidated if that can be, else on the emptiest nodes.
fn wide(room: &Room, ask: &Ask<'_>, nodes: &[Spare]) -> Option<Spots> {
    if let Some(parts) = fewest_nodes(nodes, ask.gpus).filter(|parts| is_consolidated(parts, ask.gpus)) {
        return Some(spots(room, &parts));
    }
    let mut emptiest = nodes.to_vec();
    emptiest.sort_by_key(|spare| (std::cmp::Reverse(spare.free), spare.node));
    let parts = take_in_order(emptiest.iter(), ask.gpus);
    (parts.iter().map(|part| part.gpus).sum::<u32>() == ask.gpus).then(|| spots(room, &parts))
}
