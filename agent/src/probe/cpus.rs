//! Which CPUs a launch is bound to. The head decides how many; which ones depends on the machine's topology.
//!
//! Synergy's two ways (deployment of OSDI'22): plain takes the lowest free numbers, NUMA-aware the node with the fewest
//! free CPUs that still holds all, near the GPUs where possible, and otherwise fills node after node.

use std::collections::BTreeMap;

use super::{NumaNode, Topology};
use crate::options::CpuOrder;
use crate::ranges::Ranges;

/// The CPUs of a node and how much of each is taken.
#[derive(Clone, Debug)]
pub struct CpuPool {
    nodes: Vec<Ranges>,
    order: CpuOrder,
    /// Launches bound to each CPU.
    n_bound: BTreeMap<u32, u32>,
}

impl CpuPool {
    /// All of these CPUs are free.
    pub fn new(cpus: &Ranges, topology: &Topology, order: CpuOrder) -> Self {
        let of_node = |node: &NumaNode| node.cpus.and(cpus);
        let nodes = match order {
            CpuOrder::Numa => topology.numa.iter().map(of_node).filter(|node| !node.is_empty()).collect(),
            CpuOrder::Plain => vec![cpus.clone()],
        };
        CpuPool { nodes, order, n_bound: BTreeMap::new() }
    }

    /// Binds a launch that was granted so many CPUs. A part of a CPU takes one, which it may share: time is limited
    /// elsewhere. Empty when there are no CPUs to bind to.
    pub fn take(&mut self, cpu_micro: u64, near: &Ranges) -> Ranges {
        let wanted = usize::try_from(cpu_micro.div_ceil(1_000_000)).unwrap_or(usize::MAX);
        let mut ordered: Vec<u32> = Vec::new();
        for node in self.ordered_nodes(wanted, near) {
            ordered.extend(node.as_slice());
        }
        // Stable: within one load the order of nodes stays.
        ordered.sort_by_key(|cpu| self.load(*cpu));
        let taken: Ranges = ordered.into_iter().take(wanted).collect();
        self.bind(&taken);
        taken
    }

    /// Notes that a launch is bound to these CPUs: one found running after a restart.
    pub fn bind(&mut self, cpus: &Ranges) {
        for cpu in cpus.as_slice() {
            *self.n_bound.entry(*cpu).or_default() += 1;
        }
    }

    /// Frees the CPUs of a launch that has ended.
    pub fn give_back(&mut self, cpus: &Ranges) {
        for cpu in cpus.as_slice() {
            if let Some(n_bound) = self.n_bound.get_mut(cpu) {
                *n_bound = n_bound.saturating_sub(1);
            }
        }
    }

    fn load(&self, cpu: u32) -> u32 {
        self.n_bound.get(&cpu).copied().unwrap_or(0)
    }

    fn ordered_nodes(&self, wanted: usize, near: &Ranges) -> Vec<&Ranges> {
        let mut nodes: Vec<&Ranges> = self.nodes.iter().collect();
        if self.order == CpuOrder::Numa {
            let n_free = |node: &Ranges| node.as_slice().iter().filter(|cpu| self.load(**cpu) == 0).count();
            let is_far = |node: &Ranges| node.and(near).is_empty();
            nodes.sort_by_key(|node| (n_free(node) < wanted, is_far(node), n_free(node)));
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(order: CpuOrder) -> CpuPool {
        let node =
            |number: u32, cpus: &str| NumaNode { number, cpus: cpus.parse().expect("CPUs"), mem_bytes: 1 };
        let topology =
            Topology { numa: vec![node(0, "0-3,8-11"), node(1, "4-7,12-15")], ..Topology::default() };
        CpuPool::new(&"0-15".parse().expect("CPUs"), &topology, order)
    }

    fn cpus(text: &str) -> Ranges {
        text.parse().expect("CPUs")
    }

    #[test]
    fn plain_numbering_takes_the_lowest() {
        let mut pool = pool(CpuOrder::Plain);
        assert_eq!(pool.take(6_000_000, &cpus("4-7")), cpus("0-5"));
        assert_eq!(pool.take(2_500_000, &cpus("")), cpus("6-8"));
        pool.give_back(&cpus("0-5"));
        assert_eq!(pool.take(1_000_000, &cpus("")), cpus("0"));
    }

    #[test]
    fn numa_numbering_stays_near_the_gpus_and_then_packs() {
        let mut pool = pool(CpuOrder::Numa);
        assert_eq!(pool.take(4_000_000, &cpus("4-7")), cpus("4-7"), "near");
        assert_eq!(pool.take(3_000_000, &cpus("")), cpus("12-14"), "the fullest that holds it");
        assert_eq!(
            pool.take(6_000_000, &cpus("4-7")),
            cpus("0-3,8-9"),
            "near does not hold it, the other does"
        );
        assert_eq!(pool.take(3_000_000, &cpus("4-7")), cpus("10-11,15"), "no node holds it: what is free");
    }

    #[test]
    fn more_than_is_free_is_shared() {
        let mut pool = pool(CpuOrder::Plain);
        pool.take(15_000_000, &cpus(""));
        assert_eq!(pool.take(2_000_000, &cpus("")), cpus("0,15"), "the free one, and the lowest of the rest");
        assert_eq!(pool.take(99_000_000, &cpus("")).len(), 16, "no more than there are");
    }
}
