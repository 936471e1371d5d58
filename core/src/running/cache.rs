//! Data sets in the nodes' local caches: fetching takes time, and the least recently used ones are evicted.
//!
//! A data set that the cache keeps is fetched by the node: when the job that needed it first is stopped, the node goes on,
//! and jobs that start there meanwhile wait for the rest. One that the cache has no room for passes through to its job and is
//! fetched only as long as that job is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::allocation::Allocation;
use crate::cluster::Cluster;
use crate::event::Event;
use crate::ids::{DatasetId, JobId, NodeId};
use crate::ledger::DataUse;
use crate::time::{Span, Time};
use crate::workload::Dataset;

/// What every node has cached, in the simulated world.
#[derive(Debug, Default)]
pub struct Caches {
    datasets: Vec<Dataset>,
    /// Cache size and fetch rate of each node; empty when no job reads a data set.
    nodes: Vec<(u64, u64)>,
    held: BTreeMap<NodeId, BTreeMap<DatasetId, Kept>>,
    /// Jobs that have begun to wait for data and were not stopped since.
    waits: BTreeMap<JobId, Wait>,
    uses: u64,
    /// Without `waits`, and with the rest of what is being fetched.
    totals: DataUse,
}

/// A data set in a node's cache, or on its way there.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Time and number of the last use.
    used: (Time, u64),
    /// When all of it is there.
    complete: Time,
}

/// A job's wait for its data.
#[derive(Clone, Debug)]
struct Wait {
    from: Time,
    until: Time,
    /// Size and rate of what passes through to it, node by node.
    through: Vec<(u64, u64)>,
}

impl Wait {
    /// What it adds to the totals if it ends, or is looked at, at `now`.
    fn so_far(&self, now: Time) -> (Span, u64) {
        let waited = (now.min(self.until) - self.from).max(Span::ZERO);
        let bytes = |(bytes, rate): &(u64, u64)| bytes_in(waited, *rate).min(*bytes);
        (waited, self.through.iter().map(bytes).sum())
    }
}

impl Caches {
    /// Empty caches, except that a data set is always on its home node.
    pub fn new(cluster: &Cluster, datasets: &[Dataset]) -> Self {
        if datasets.is_empty() {
            return Caches::default();
        }
        let nodes = cluster.nodes().iter().map(|n| (n.cache_bytes, n.fetch_bps)).collect();
        Caches { datasets: datasets.to_vec(), nodes, ..Caches::default() }
    }

    /// A job starts: the time until every node of the allocation has its data. Reports what was cached and evicted for it.
    pub fn begin(
        &mut self,
        job: JobId,
        dataset: Option<DatasetId>,
        allocation: &Allocation,
        now: Time,
        reports: &mut Vec<Event>,
    ) -> Span {
        let Some(id) = dataset else { return Span::ZERO };
        let Some(data) = self.datasets.get(id.index()).cloned() else { return Span::ZERO };
        let nodes: BTreeSet<_> = allocation.slices.iter().map(|s| s.node).collect();
        let mut wait = Wait { from: now, until: now, through: Vec::new() };
        for node in nodes {
            self.uses += 1;
            let used = (now, self.uses);
            if data.home == Some(node) {
                self.totals.hits += 1;
                continue;
            }
            if let Some(kept) = self.held.entry(node).or_default().get_mut(&id) {
                kept.used = used;
                wait.until = wait.until.max(kept.complete);
                if kept.complete <= now {
                    self.totals.hits += 1;
                } else {
                    self.totals.fetches += 1;
                }
                continue;
            }
            self.totals.fetches += 1;
            let (capacity, rate) = self.nodes.get(node.index()).copied().unwrap_or_default();
            let takes =
                if rate > 0 { Span::from_secs_f64(data.bytes as f64 / rate as f64) } else { Span::ZERO };
            let complete = now + takes;
            wait.until = wait.until.max(complete);
            if self.make_room(node, data.bytes, capacity, now, reports) {
                self.totals.fetched_bytes += data.bytes;
                self.held.entry(node).or_default().insert(id, Kept { used, complete });
                reports.push(Event::DataCached { node, dataset: id });
            } else if rate > 0 {
                wait.through.push((data.bytes, rate));
            } else {
                self.totals.fetched_bytes += data.bytes;
            }
        }
        let longest = wait.until - now;
        if longest > Span::ZERO {
            self.waits.insert(job, wait);
        }
        longest
    }

    /// A job was stopped or has ended: its wait counts for as long as it lasted.
    pub fn end(&mut self, job: JobId, now: Time) {
        if let Some(wait) = self.waits.remove(&job) {
            let (waited, bytes) = wait.so_far(now);
            self.totals.waited += waited;
            self.totals.fetched_bytes += bytes;
        }
    }

    /// What was found and fetched until `now`; nothing when no job reads a data set.
    pub fn data_use(&self, now: Time) -> Option<DataUse> {
        if self.datasets.is_empty() {
            return None;
        }
        let mut totals = self.totals;
        for wait in self.waits.values() {
            let (waited, bytes) = wait.so_far(now);
            totals.waited += waited;
            totals.fetched_bytes += bytes;
        }
        for (node, sets) in &self.held {
            let rate = self.nodes.get(node.index()).map_or(0, |(_, rate)| *rate);
            for (id, kept) in sets.iter().filter(|(_, kept)| kept.complete > now) {
                let rest = bytes_in(kept.complete - now, rate).min(self.bytes_of(*id));
                totals.fetched_bytes = totals.fetched_bytes.saturating_sub(rest);
            }
        }
        Some(totals)
    }

    fn bytes_of(&self, id: DatasetId) -> u64 {
        self.datasets.get(id.index()).map_or(0, |d| d.bytes)
    }

    /// Evicts the least recently used until so many bytes fit; does nothing if they cannot. What is being fetched stays.
    fn make_room(
        &mut self,
        node: NodeId,
        bytes: u64,
        capacity: u64,
        now: Time,
        reports: &mut Vec<Event>,
    ) -> bool {
        let held = self.held.entry(node).or_default();
        let bytes_of = |id: &DatasetId| self.datasets.get(id.index()).map_or(0, |d| d.bytes);
        let on_the_way: u64 =
            held.iter().filter(|(_, kept)| kept.complete > now).map(|(id, _)| bytes_of(id)).sum();
        let Some(allowed) = capacity.checked_sub(bytes).filter(|allowed| on_the_way <= *allowed) else {
            return false;
        };
        while held.keys().map(bytes_of).sum::<u64>() > allowed {
            let complete = held.iter().filter(|(_, kept)| kept.complete <= now);
            let Some(oldest) = complete.min_by_key(|(id, kept)| (kept.used, **id)).map(|(id, _)| *id) else {
                return false;
            };
            held.remove(&oldest);
            reports.push(Event::DataEvicted { node, dataset: oldest });
        }
        true
    }
}

/// Bytes fetched at a rate in a time.
fn bytes_in(span: Span, rate: u64) -> u64 {
    (span.as_secs_f64() * rate as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::{GpuSet, Slice, WHOLE_GPU};
    use crate::cluster::NodeGroup;
    use crate::resources::Host;

    /// One node that fetches a byte a second, and data sets of 1,000 bytes.
    fn caches(cache_bytes: u64, n_datasets: usize) -> Caches {
        let node = NodeGroup {
            count: 1,
            racks: 1,
            gpu_type: "V100".into(),
            n_gpus: 8,
            gpu_mem_bytes: 0,
            host: Host::NONE,
            cache_bytes,
            fetch_bps: 1,
        };
        let cluster = Cluster::new("one", &[node]).expect("a cluster");
        let dataset = |n: usize| Dataset { name: n.to_string(), bytes: 1_000, home: None };
        Caches::new(&cluster, &(0..n_datasets).map(dataset).collect::<Vec<_>>())
    }

    fn at(s: i64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    /// Starts a job on the node at a second; the seconds it has to wait.
    fn begin(caches: &mut Caches, job: u32, dataset: u32, s: i64) -> f64 {
        let slice = Slice { node: NodeId(0), gpus: GpuSet::first(1), share: WHOLE_GPU, host: Host::NONE };
        let allocation = Allocation { slices: [slice].into_iter().collect() };
        caches.begin(JobId(job), Some(DatasetId(dataset)), &allocation, at(s), &mut Vec::new()).as_secs_f64()
    }

    /// Seconds waited and bytes fetched until a second.
    fn used(caches: &Caches, s: i64) -> (f64, u64) {
        let totals = caches.data_use(at(s)).expect("data sets are in play");
        (totals.waited.as_secs_f64(), totals.fetched_bytes)
    }

    #[test]
    fn a_job_stopped_in_the_middle_has_waited_until_then_and_the_node_goes_on() {
        let mut caches = caches(1_000, 1);
        assert_eq!(begin(&mut caches, 0, 0, 0), 1_000.0);
        assert_eq!(used(&caches, 50), (50.0, 50));
        caches.end(JobId(0), at(100));
        assert_eq!(used(&caches, 100), (100.0, 100));
        assert_eq!(begin(&mut caches, 1, 0, 400), 600.0, "it waits for the rest");
        caches.end(JobId(1), at(2_000));
        assert_eq!(used(&caches, 2_000), (700.0, 1_000));
        assert_eq!(begin(&mut caches, 0, 0, 3_000), 0.0);
        assert_eq!(caches.data_use(at(3_000)).map(|totals| (totals.hits, totals.fetches)), Some((1, 2)));
    }

    #[test]
    fn what_the_cache_has_no_room_for_is_fetched_while_its_job_is_there() {
        let mut caches = caches(1_500, 2);
        assert_eq!(begin(&mut caches, 0, 0, 0), 1_000.0);
        assert_eq!(begin(&mut caches, 1, 1, 0), 1_000.0, "the first is on its way and is not evicted");
        caches.end(JobId(1), at(300));
        assert_eq!(used(&caches, 1_000), (1_300.0, 1_300));
        assert_eq!(begin(&mut caches, 1, 1, 1_000), 1_000.0, "nothing of it was kept");
        assert_eq!(begin(&mut caches, 2, 0, 1_000), 1_000.0, "it made room for the second");
    }
}
