//! A search over splits: of all the ways a gang may be split over nodes, the one that runs fastest by its profile.
//!
//! Chronus' artifact has a local search that returns before it searches. Here every allowed split is tried below every
//! switch and across all of them; the profile says how fast it is on so many nodes.

use super::switch::{spares, spots};
use super::{Ask, Place, Spots};
use crate::profile::Shape;
use crate::room::Room;
use crate::switches::{Part, Spare, allowed_splits, fewest_nodes, is_consolidated, take_in_order};

/// The fastest allowed split; of equally fast ones the one that leaves the fewest free GPUs on the nodes it uses, then
/// the one below a single switch, then the lowest nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalSearch;

/// A split with its places, and what speaks for it.
struct Candidate {
    parts: Vec<Part>,
    rate: f64,
    left_over: u32,
}

impl Place for LocalSearch {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        let nodes = spares(room, ask);
        let Some(splits) = allowed_splits(ask.gpus) else { return wide(room, ask, &nodes) };
        let mut best: Option<Candidate> = None;
        let groups = nodes.chunk_by(|a, b| a.switch == b.switch).chain(std::iter::once(nodes.as_slice()));
        for group in groups {
            for parts in splits.iter().filter_map(|split| tightest(group, split)) {
                let candidate = Candidate::of(room, ask, parts);
                if best.as_ref().is_none_or(|best| candidate.beats(best)) {
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

    fn beats(&self, other: &Candidate) -> bool {
        self.rate > other.rate || self.rate == other.rate && self.left_over < other.left_over
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
