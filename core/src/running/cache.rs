//! Data sets in the nodes' local caches: fetching one takes time at a rate, least recently used ones make room.

use std::collections::{BTreeMap, BTreeSet};

use crate::allocation::Allocation;
use crate::cluster::Cluster;
use crate::event::Event;
use crate::ids::{DatasetId, NodeId};
use crate::ledger::DataUse;
use crate::time::{Span, Time};
use crate::workload::Dataset;

/// What every node has cached, in the simulated world.
#[derive(Debug, Default)]
pub struct Caches {
    datasets: Vec<Dataset>,
    /// Cache size and fetch rate of each node; empty when no data sets are in play.
    nodes: Vec<(u64, u64)>,
    /// Data sets by node, with the time of last use.
    held: BTreeMap<NodeId, BTreeMap<DatasetId, (Time, u64)>>,
    uses: u64,
    books: DataUse,
}

impl Caches {
    /// Empty caches, except that a data set is always at home.
    pub fn new(cluster: &Cluster, datasets: &[Dataset]) -> Self {
        if datasets.is_empty() {
            return Caches::default();
        }
        let nodes = cluster.nodes().iter().map(|n| (n.cache_bytes, n.fetch_bps)).collect();
        Caches {
            datasets: datasets.to_vec(),
            nodes,
            held: BTreeMap::new(),
            uses: 0,
            books: DataUse::default(),
        }
    }

    /// Time until every node of the allocation has the data; reports what was cached and evicted for it.
    pub fn fetch(
        &mut self,
        dataset: Option<DatasetId>,
        allocation: &Allocation,
        now: Time,
        reports: &mut Vec<Event>,
    ) -> Span {
        let Some(id) = dataset else { return Span::ZERO };
        let Some(data) = self.datasets.get(id.index()).cloned() else { return Span::ZERO };
        let nodes: BTreeSet<_> = allocation.slices.iter().map(|s| s.node).collect();
        let mut longest = Span::ZERO;
        for node in nodes {
            self.uses += 1;
            let uses = self.uses;
            if data.home == Some(node) {
                self.books.hits += 1;
                continue;
            }
            if let Some(used) = self.held.entry(node).or_default().get_mut(&id) {
                *used = (now, uses);
                self.books.hits += 1;
                continue;
            }
            self.books.fetches += 1;
            self.books.fetched_bytes += data.bytes;
            let (capacity, rate) = self.nodes.get(node.index()).copied().unwrap_or_default();
            if rate > 0 {
                longest = longest.max(Span::from_secs_f64(data.bytes as f64 / rate as f64));
            }
            if data.bytes <= capacity {
                self.make_room(node, capacity - data.bytes, reports);
                self.held.entry(node).or_default().insert(id, (now, uses));
                reports.push(Event::DataCached { node, dataset: id });
            }
        }
        self.books.waited += longest;
        longest
    }

    /// What was found and fetched so far; nothing when no data sets are in play.
    pub fn books(&self) -> Option<DataUse> {
        (!self.datasets.is_empty()).then_some(self.books)
    }

    /// Evicts the least recently used until no more than `allowed` bytes are held.
    fn make_room(&mut self, node: NodeId, allowed: u64, reports: &mut Vec<Event>) {
        let Some(held) = self.held.get_mut(&node) else { return };
        let bytes_of = |id: &DatasetId| self.datasets.get(id.index()).map_or(0, |d| d.bytes);
        while held.keys().map(bytes_of).sum::<u64>() > allowed {
            let Some(oldest) = held.iter().min_by_key(|(id, used)| (**used, **id)).map(|(id, _)| *id) else {
                return;
            };
            held.remove(&oldest);
            reports.push(Event::DataEvicted { node, dataset: oldest });
        }
    }
}
