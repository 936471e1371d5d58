//! From outages to faults: a node is up again when everything that took it down is over.

use std::collections::BTreeMap;

use rota_core::cluster::Cluster;
use rota_core::fault::{Change, Fault};
use rota_core::ids::NodeId;
use rota_core::time::Time;

use super::{Outage, Part};

/// What a node or a GPU goes through.
#[derive(Clone, Copy)]
struct Stretch {
    from: Time,
    to: Time,
    speed: f64,
    loses_checkpoints: bool,
}

/// Failures and returns, by time.
pub(super) fn faults(outages: &[Outage], cluster: &Cluster) -> Vec<Fault> {
    let mut down: BTreeMap<(NodeId, Option<u32>), Vec<Stretch>> = BTreeMap::new();
    let mut slow: BTreeMap<NodeId, Vec<Stretch>> = BTreeMap::new();
    for outage in outages {
        let Outage { from, to, loses_checkpoints, .. } = *outage;
        let stretch = Stretch { from, to, speed: outage.speed.unwrap_or(0.0), loses_checkpoints };
        match (outage.what, outage.speed) {
            (Part::Gpu(node, gpu), _) => down.entry((node, Some(gpu))).or_default().push(stretch),
            (what, None) => {
                nodes(what, cluster).for_each(|node| down.entry((node, None)).or_default().push(stretch));
            }
            (what, Some(_)) => {
                nodes(what, cluster).for_each(|node| slow.entry(node).or_default().push(stretch));
            }
        }
    }
    let mut faults = Vec::new();
    for ((node, gpu), stretches) in &mut down {
        for Stretch { from, to, loses_checkpoints, .. } in united(stretches) {
            let (fails, returns) = match *gpu {
                Some(gpu) => (Change::GpuFails { gpu, loses_checkpoints }, Change::GpuReturns { gpu }),
                None => (Change::NodeFails { loses_checkpoints }, Change::NodeReturns),
            };
            faults.push(Fault { time: from, node: *node, change: fails });
            faults.push(Fault { time: to, node: *node, change: returns });
        }
    }
    for (node, stretches) in &slow {
        faults.extend(speeds(stretches).map(|(time, to)| Fault {
            time,
            node: *node,
            change: Change::Slows { to },
        }));
    }
    faults.sort_by_key(Fault::rank);
    faults
}

fn nodes(what: Part, cluster: &Cluster) -> impl Iterator<Item = NodeId> {
    let is_part = move |node: &&rota_core::cluster::Node| match what {
        Part::Node(id) | Part::Gpu(id, _) => node.id == id,
        Part::Rack(rack) => node.rack == rack,
    };
    cluster.nodes().iter().filter(is_part).map(|node| node.id)
}

/// Stretches that touch become one; it loses checkpoints when the first of them does.
fn united(stretches: &mut [Stretch]) -> Vec<Stretch> {
    stretches.sort_by_key(|stretch| (stretch.from, stretch.to));
    let mut all: Vec<Stretch> = Vec::new();
    for stretch in stretches.iter() {
        match all.last_mut() {
            Some(last) if stretch.from <= last.to => last.to = last.to.max(stretch.to),
            _ => all.push(*stretch),
        }
    }
    all
}

/// The speed of a node whenever it changes: of several causes the slowest counts.
fn speeds(stretches: &[Stretch]) -> impl Iterator<Item = (Time, f64)> {
    let mut times: Vec<Time> = stretches.iter().flat_map(|stretch| [stretch.from, stretch.to]).collect();
    times.sort_unstable();
    times.dedup();
    let mut now = 1.0;
    times.into_iter().filter_map(move |time| {
        let there = stretches.iter().filter(|stretch| (stretch.from..stretch.to).contains(&time));
        let speed = there.map(|stretch| stretch.speed).fold(1.0, f64::min);
        let before = std::mem::replace(&mut now, speed);
        (speed != before).then_some((time, speed))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster;

    fn outage(from: i64, to: i64, what: Part, speed: Option<f64>) -> Outage {
        Outage { from: Time(from), to: Time(to), what, speed, loses_checkpoints: false }
    }

    fn told(outages: &[Outage]) -> Vec<(i64, u32, Change)> {
        let cluster = cluster::load("small").expect("built in");
        faults(outages, &cluster).iter().map(|f| (f.time.0, f.node.0, f.change)).collect()
    }

    #[test]
    fn a_node_is_back_when_everything_that_took_it_down_is_over() {
        let node = Part::Node(NodeId(1));
        let told = told(&[outage(10, 30, Part::Rack(0), None), outage(20, 50, node, None)]);
        let of_node: Vec<_> = told.iter().filter(|(_, node, _)| *node == 1).map(|(time, ..)| *time).collect();
        assert_eq!(of_node, [10, 50]);
        let of_other: Vec<_> =
            told.iter().filter(|(_, node, _)| *node == 0).map(|(time, ..)| *time).collect();
        assert_eq!(of_other, [10, 30], "the rest of the rack is back earlier");
    }

    #[test]
    fn a_gpu_fails_by_itself() {
        let gpu = 3;
        let told = told(&[outage(10, 30, Part::Gpu(NodeId(1), gpu), None)]);
        let fails = Change::GpuFails { gpu, loses_checkpoints: false };
        assert_eq!(told, [(10, 1, fails), (30, 1, Change::GpuReturns { gpu })]);
    }

    #[test]
    fn of_two_reasons_to_be_slow_the_slower_counts() {
        let node = Part::Node(NodeId(2));
        let told = told(&[outage(10, 40, node, Some(0.5)), outage(20, 30, node, Some(0.25))]);
        let slows = |to| Change::Slows { to };
        assert_eq!(
            told,
            [(10, 2, slows(0.5)), (20, 2, slows(0.25)), (30, 2, slows(0.5)), (40, 2, slows(1.0))]
        );
    }
}
