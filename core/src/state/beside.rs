//! Jobs that have the same GPUs at the same time, as the scheduler sees them: how fast each is beside the other.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::cluster::Cluster;
use crate::ids::NodeId;
use crate::table::JobTable;
use crate::time::Time;

/// Brings the estimated rates of all jobs that may have a mate up to date; says whether there are any.
pub(super) fn settle(jobs: &mut JobTable, cluster: &Cluster, now: Time) -> bool {
    let mut there: BTreeMap<(NodeId, u64), SmallVec<[usize; 2]>> = BTreeMap::new();
    for row in 0..jobs.len() {
        if let Some(first) = jobs.allocation(row).slices.first().filter(|first| first.is_beside()) {
            there.entry((first.node, first.gpus.0)).or_default().push(row);
        }
    }
    for rows in there.values() {
        for row in rows {
            let (spec, held) = (jobs.spec(*row), jobs.allocation(*row));
            let rate = match rows.iter().find(|other| *other != row) {
                Some(mate) => spec.rate_beside(jobs.spec(*mate), held, cluster),
                None => spec.rate(held, cluster),
            };
            if rate != jobs.rate(*row) {
                let held = held.clone();
                jobs.resize(*row, now, held, rate);
            }
        }
    }
    !there.is_empty()
}
