//! Drawing outages: everything that can fail has its own stream of numbers, so that nodes which are added do not change
//! the failures of the others.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rota_core::cluster::Cluster;
use rota_core::time::Time;

use super::{Cause, Kind, MOST_OUTAGES, Outage, Part};
use crate::error::InputError;
use crate::generate::draws::{self, Purpose};

/// Adds the outages of one cause that begin before `end`; `index` tells causes apart.
pub(super) fn draw(
    cause: &Cause,
    index: usize,
    cluster: &Cluster,
    end: Time,
    seed: u64,
    outages: &mut Vec<Outage>,
) -> Result<(), InputError> {
    for (number, what) in parts(cause.of, cluster) {
        let mut rng = draws::branched_stream(seed, Purpose::Faults, index as u16, number);
        let mut now = Time::ZERO;
        loop {
            now = now + cause.between.draw(&mut rng);
            if now >= end {
                break;
            }
            let mut fail = |what: Part, rng: &mut ChaCha8Rng| {
                let to = now + cause.repair.draw(rng);
                let loses_checkpoints = draws_yes(rng, cause.loses_checkpoints);
                outages.push(Outage { from: now, to, what, speed: cause.speed, loses_checkpoints });
                to
            };
            let to = fail(what, &mut rng);
            if let (Part::Node(failed), true) = (what, cause.together > 0.0) {
                let rack = cluster.node(failed).map(|node| node.rack);
                let others =
                    cluster.nodes().iter().filter(|node| Some(node.rack) == rack && node.id != failed);
                for other in others {
                    if draws_yes(&mut rng, cause.together) {
                        fail(Part::Node(other.id), &mut rng);
                    }
                }
            }
            now = to;
            if outages.len() > MOST_OUTAGES {
                let what = format!("fewer than {MOST_OUTAGES} failures: a longer mean time between them");
                return Err(InputError::expected("faults", what));
            }
        }
    }
    Ok(())
}

/// Nothing is drawn where the answer is clear: a chance of 0 does not change the rest.
fn draws_yes(rng: &mut ChaCha8Rng, chance: f64) -> bool {
    chance > 0.0 && rng.random::<f64>() < chance
}

/// Everything of a kind, numbered.
fn parts(kind: Kind, cluster: &Cluster) -> Vec<(u32, Part)> {
    let nodes = cluster.nodes();
    match kind {
        Kind::Node => nodes.iter().map(|node| (node.id.0, Part::Node(node.id))).collect(),
        Kind::Gpu => {
            let gpus = nodes.iter().flat_map(|node| (0..node.n_gpus).map(|gpu| (node.id, gpu)));
            gpus.map(|(node, gpu)| (node.0 << 6 | gpu, Part::Gpu(node, gpu))).collect()
        }
        Kind::Rack => {
            let mut racks: Vec<u32> = nodes.iter().map(|node| node.rack).collect();
            racks.sort_unstable();
            racks.dedup();
            racks.into_iter().map(|rack| (rack, Part::Rack(rack))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use rota_core::fault::{Change, Fault};
    use rota_core::time::Span;

    use super::super::{FaultPlan, Law};
    use super::*;
    use crate::cluster;

    const DAY: Span = Span::from_secs(86_400);

    fn plan(of: Kind) -> FaultPlan {
        let plan = FaultPlan::of_nodes(DAY, Span::from_secs(3_600)).expect("sound");
        let cause = Cause { of, ..plan.causes[0] };
        FaultPlan { causes: vec![cause], ..plan }
    }

    fn faults(plan: &FaultPlan, name: &str, days: i64) -> Vec<Fault> {
        plan.faults(&cluster::load(name).expect("built in"), Time(days * DAY.0), 7).expect("sound")
    }

    fn n_failures(faults: &[Fault]) -> f64 {
        faults.iter().filter(|f| matches!(f.change, Change::NodeFails { .. })).count() as f64
    }

    #[test]
    fn nodes_fail_as_often_as_the_mean_says_under_every_law() {
        let laws = [Law::exponential(DAY), Law::weibull(DAY, 0.7), Law::log_normal(DAY, 1.0)];
        for law in laws {
            let mut plan = plan(Kind::Node);
            plan.causes[0].between = law.expect("sound");
            let n_failures = n_failures(&faults(&plan, "philly", 100));
            let expected = 64.0 * 100.0 * 24.0 / 25.0;
            assert!((n_failures / expected - 1.0).abs() < 0.05, "{plan:?}: {n_failures} of {expected}");
        }
    }

    #[test]
    fn every_node_alternates_and_the_whole_is_in_order() {
        let faults = faults(&plan(Kind::Node), "small", 30);
        assert!(faults.is_sorted_by_key(Fault::rank));
        for node in 0..4 {
            let of_node: Vec<bool> = faults
                .iter()
                .filter(|f| f.node.0 == node)
                .map(|f| matches!(f.change, Change::NodeReturns))
                .collect();
            assert!(of_node.len() > 20 && of_node.len().is_multiple_of(2));
            assert!(of_node.iter().enumerate().all(|(i, is_up)| *is_up == (i % 2 == 1)));
        }
    }

    #[test]
    fn a_larger_cluster_fails_the_same_where_it_was() {
        for kind in [Kind::Node, Kind::Gpu] {
            let small = faults(&plan(kind), "small", 30);
            let large = faults(&plan(kind), "default", 30);
            assert_eq!(small, large.into_iter().filter(|f| f.node.0 < 4).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_fail_together_as_often_as_the_chance_says() {
        let mut plan = plan(Kind::Node);
        let outages = |plan: &FaultPlan| {
            plan.drawn(&cluster::load("default").expect("built in"), Time(100 * DAY.0), 7).expect("sound")
        };
        let alone = outages(&plan).len() as f64;
        plan.causes[0].together = 0.2;
        // `default` has 16 nodes in one rack: three of the 15 others go with each that fails.
        let together = outages(&plan).len() as f64;
        assert!((together / alone - 4.0).abs() < 0.2, "{alone} alone, {together} together");
    }

    #[test]
    fn failures_without_end_are_refused() {
        let plan = FaultPlan::of_nodes(Span::from_secs(1), Span::from_secs(1)).expect("sound");
        let cluster = cluster::load("philly").expect("built in");
        assert!(plan.faults(&cluster, Time(1_000 * DAY.0), 1).is_err());
    }
}
