//! Nodes that are left off at night: the leases up to the morning keep what is planned for them.

use rota_core::snapshot::Snapshot;

use super::book::LeaseBook;

/// How much is left off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    /// All that no plan needs in a lease.
    Aggressive,
    /// Fewer nodes: jobs planned in most leases of the night, and jobs without a plan, keep their GPUs throughout.
    Conservative,
}

impl LeaseBook {
    /// Plans the leases from the current one to the morning, `n_leases` in all. What is on stays on: asked again, it turns
    /// nodes on for jobs that came since.
    pub(crate) fn plan_night(
        &mut self,
        snapshot: &Snapshot,
        saving: Saving,
        n_leases: usize,
        keep_nodes: u32,
    ) {
        let first = self.current(snapshot.now);
        let mut demand = vec![0_i64; n_leases];
        for row in 0..snapshot.jobs.len() {
            self.reserve(snapshot, row, saving, &mut demand);
        }
        for (lease, gpus) in demand.into_iter().enumerate() {
            let needed = nodes_for(snapshot, gpus).max(keep_nodes);
            let n_on = self.nodes_on.entry(first + lease as i64).or_insert(needed);
            *n_on = (*n_on).max(needed);
        }
    }

    /// Nodes that are on in the current lease; `None` when all are.
    pub(crate) fn nodes_on_now(&self, snapshot: &Snapshot) -> Option<u32> {
        let n_nodes = snapshot.cluster.nodes().len() as u32;
        self.nodes_on.get(&self.current(snapshot.now)).copied().filter(|n_on| *n_on < n_nodes)
    }

    fn reserve(&self, snapshot: &Snapshot, row: usize, saving: Saving, demand: &mut [i64]) {
        let gpus = i64::from(snapshot.jobs.gpus()[row]);
        let promise = self.promises.get(&snapshot.jobs.id(row));
        let plan = promise.and_then(|promise| promise.plan.as_deref());
        let is_planned = |lease: usize| plan.is_some_and(|plan| plan.get(lease) == Some(&true));
        let n_planned = (0..demand.len()).filter(|lease| is_planned(*lease)).count();
        let throughout = match saving {
            Saving::Conservative => plan.is_none() || 2 * n_planned > demand.len(),
            // A promise without a plan yet must find room in any lease.
            Saving::Aggressive => promise.is_some() && plan.is_none(),
        };
        for (lease, demand) in demand.iter_mut().enumerate() {
            if throughout || is_planned(lease) {
                *demand += gpus;
            }
        }
    }
}

/// The fewest nodes, by number, whose GPUs are enough.
fn nodes_for(snapshot: &Snapshot, gpus: i64) -> u32 {
    let mut left = gpus;
    let mut n_nodes = 0;
    for (node, is_up) in snapshot.cluster.nodes().iter().zip(&snapshot.nodes.is_up) {
        if left <= 0 {
            break;
        }
        n_nodes += 1;
        left -= if *is_up { i64::from(node.n_gpus) } else { 0 };
    }
    n_nodes
}
