//! Plans for several jobs: who enters, who is left alone, who grows.

use std::sync::Arc;

use super::*;
use crate::cluster::NodeGroup;
use crate::ids::{JobId, TenantId};
use crate::job::{Costs, Deadline, GpuRequest};
use crate::profile::{Profile, ScaleCurve};
use crate::resources::Host;
use crate::snapshot::{Guards, NodeStates};
use crate::table::JobTable;
use crate::time::Span;

pub(super) const fn at(seconds: i64) -> Time {
    Time(seconds * 1_000_000)
}

/// A cluster of 8 GPUs and elastic jobs: (iterations, deadline in seconds or none). Speeds 1, 1.8 and 3 with 1, 2 and 4.
pub(super) fn snapshot(jobs: &[(f64, Option<i64>)]) -> Snapshot {
    snapshot_with(Costs::default(), jobs)
}

/// The same with what a restart costs.
pub(super) fn snapshot_with(costs: Costs, jobs: &[(f64, Option<i64>)]) -> Snapshot {
    let group = NodeGroup {
        count: 1,
        racks: 1,
        gpu_type: "A100".into(),
        n_gpus: 8,
        gpu_mem_bytes: 0,
        host: Host::from_units(64.0, 256.0, 0.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    let cluster = Arc::new(Cluster::new("eight", &[group]).expect("a cluster"));
    let curve = ScaleCurve { gpu_type: String::new(), batch: 64, points: vec![(1, 1.0), (2, 1.8), (4, 3.0)] };
    let profile = Arc::new(Profile { scale: vec![curve], batch: 64, ..Profile::plain("m", 1.0) });
    let mut table = JobTable::default();
    for (index, (work, deadline)) in jobs.iter().enumerate() {
        let spec = JobSpec {
            id: JobId::from(index),
            name: index.to_string().into(),
            tenant: TenantId(0),
            priority: 0,
            profile: Arc::clone(&profile),
            batch: 64,
            gpus: GpuRequest { asked: 1, levels: [1, 2, 4].into() },
            gpu_type: None,
            estimated_work: *work,
            arrival: Time::ZERO,
            deadline: deadline.map_or(Deadline::None, |seconds| Deadline::Strict(at(seconds))),
            dataset: None,
            costs: Some(costs),
        };
        table.insert(Arc::new(spec), Host::NONE, 1.0);
    }
    Snapshot {
        now: Time::ZERO,
        round: Span::from_secs(10),
        jobs: Arc::new(table),
        nodes: Arc::new(NodeStates::all_up(&cluster)),
        cluster,
        guards: Arc::new(Guards::default()),
    }
}

fn shares(ahead: &Ahead) -> Vec<u32> {
    ahead.planned().iter().map(|planned| planned.gpus).collect()
}

#[test]
fn every_deadline_holds_with_the_least_shares() {
    let view = snapshot(&[(100.0, Some(100)), (280.0, Some(100)), (290.0, Some(100))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1, 2], Way::LeastShare);
    assert_eq!(shares(&ahead), [1, 4, 0], "the third finds only three free GPUs");
    assert!(ahead.of(2).is_some_and(|planned| planned.is_late));
    assert_eq!(ahead.timeline().free_at(at(0)), 3);
}

#[test]
fn a_late_job_keeps_nobody_out() {
    let view = snapshot(&[(1_000.0, Some(50)), (100.0, Some(100))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0], Way::LeastShare);
    assert!(ahead.planned()[0].is_late);
    assert_eq!(ahead.fits(&view, 1, Way::LeastShare), Ok(()));
}

#[test]
fn who_would_push_another_over_its_deadline_is_refused_with_its_name() {
    let view = snapshot(&[(290.0, Some(100)), (290.0, Some(100)), (80.0, Some(90)), (300.0, Some(90))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::LeastShare);
    let refused = ahead.fits(&view, 2, Way::LeastShare).expect_err("all eight GPUs are needed");
    assert!(matches!(refused, Refusal::Other { row: 1, .. }), "{refused:?}");
    let refused = ahead.fits(&view, 3, Way::LeastShare).expect_err("too slow on any number of GPUs");
    assert!(matches!(&refused, Refusal::Own(why) if why.share.is_none()), "{refused:?}");
}

#[test]
fn spare_gpus_go_where_they_save_most() {
    let view = snapshot(&[(100.0, Some(100)), (100.0, None), (150.0, Some(100))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1, 2], Way::LeastShare);
    assert_eq!(shares(&ahead), [1, 0, 2], "the job without a deadline reserves nothing");
    ahead.grow();
    // First everybody has one GPU; then the second costs 0.2 GPU-seconds each; then the third and fourth of the job
    // that would otherwise run with two cost least.
    assert_eq!(shares(&ahead).iter().sum::<u32>(), 8, "nothing is left over");
    assert_eq!(shares(&ahead), [2, 2, 4]);
}

#[test]
fn changing_gpus_is_weighed_against_what_it_costs() {
    let mut view = snapshot(&[(1_000.0, None), (1_000.0, None), (1_000.0, None)]);
    let free = Ahead::new(&view);
    assert!(free.next_change().is_none());
    let jobs = Arc::make_mut(&mut view.jobs);
    let held = crate::allocation::Allocation {
        slices: [crate::allocation::Slice {
            node: NodeId(0),
            gpus: crate::allocation::GpuSet::first(4),
            share: crate::allocation::WHOLE_GPU,
            host: Host::NONE,
        }]
        .into_iter()
        .collect(),
    };
    jobs.start(1, Time::ZERO, held, 3.0, Span::ZERO);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1, 2], Way::LeastShare);
    ahead.grow();
    assert_eq!(shares(&ahead), [4, 2, 2], "a free restart: the first of equals grows");
    for planned in &mut ahead.planned {
        (planned.gpus, planned.change_cost) = (0, 0.75);
    }
    ahead.grow();
    assert_eq!(shares(&ahead), [2, 4, 2], "a dear one: who has four keeps them");
}

#[test]
fn earliest_plans_take_all_they_can_in_order() {
    let view = snapshot(&[(300.0, Some(100)), (300.0, Some(101)), (30.0, Some(150))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::Earliest);
    assert_eq!(shares(&ahead), [4, 4]);
    assert_eq!(ahead.fits(&view, 2, Way::Earliest), Ok(()), "it waits for both and is in time");
    assert_eq!(ahead.next_change(), Some(at(100)));
}

#[test]
fn lost_nodes_leave_less_to_plan_with() {
    let mut view = snapshot(&[(100.0, Some(100))]);
    Arc::make_mut(&mut view.nodes).is_up = vec![false];
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0], Way::LeastShare);
    ahead.grow();
    assert_eq!(shares(&ahead), [0]);
    assert!(ahead.planned()[0].is_late);
}
