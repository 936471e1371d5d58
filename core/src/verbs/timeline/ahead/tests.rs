//! Plans for several jobs: who enters, who is left alone, who grows.

use std::sync::Arc;

use super::*;
use crate::cluster::{Cluster, NodeGroup};
use crate::ids::{JobId, NodeId, TenantId};
use crate::job::{Costs, Deadline, GpuRequest, JobSpec};
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
        table.insert(Arc::new(spec), Host::NONE, 1.0, 1.0);
    }
    Snapshot {
        now: Time::ZERO,
        round: Span::from_secs(10),
        jobs: Arc::new(table),
        nodes: Arc::new(NodeStates::all_up(&cluster)),
        cluster,
        guards: Arc::new(Guards::default()),
        tenants: Arc::default(),
    }
}

fn grow(ahead: &mut Ahead) {
    let limits = Limits { take: ahead.free_now(), stop_below: None };
    ahead.grow(limits, Planned::gpu_time_saved);
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
    assert_eq!(ahead.fits(&view, 1, Way::LeastShare, &PlanOrder::by_deadline(&view)), Ok(()));
}

#[test]
fn who_would_push_another_over_its_deadline_is_refused_with_its_name() {
    let view = snapshot(&[(290.0, Some(100)), (290.0, Some(100)), (80.0, Some(90)), (300.0, Some(90))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::LeastShare);
    let refused = ahead
        .fits(&view, 2, Way::LeastShare, &PlanOrder::by_deadline(&view))
        .expect_err("all eight GPUs are needed");
    assert_eq!(refused.whose, Some(1), "{refused:?}");
    assert_eq!(refused.in_the_way, [(0, 4), (2, 1)], "at the scarcest time");
    let refused = ahead
        .fits(&view, 3, Way::LeastShare, &PlanOrder::by_deadline(&view))
        .expect_err("too slow on any number of GPUs");
    assert_eq!((refused.whose, refused.shortfall.share), (None, None), "{refused:?}");
}

#[test]
fn newcomers_are_judged_beside_those_let_in_before_them() {
    // 8 GPUs for 100 s: two jobs of four fill them; the third is refused, and a small one later too.
    let jobs =
        [(290.0, Some(100)), (290.0, Some(100)), (290.0, Some(100)), (90.0, Some(100)), (90.0, Some(200))];
    let view = snapshot(&jobs);
    let empty = Ahead::new(&view);
    let verdicts =
        empty.judge(&view, &[0, 1, 2, 3, 4], Way::LeastShare, &PlanOrder::by_deadline(&view)).verdicts;
    assert_eq!(verdicts.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, false, true]);
    let refusal = verdicts[2].as_ref().expect_err("refused");
    assert_eq!((refusal.whose, &refusal.in_the_way[..]), (None, &[(0, 4), (1, 4)][..]));
}

#[test]
fn judging_together_lets_in_whom_judging_one_by_one_lets_in() {
    let mut state = 7_u64;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let jobs: Vec<(f64, Option<i64>)> =
        (0..60).map(|_| (20.0 + draw(900) as f64, Some(50 + draw(900) as i64))).collect();
    let view = snapshot(&jobs);
    let rows: Vec<u32> = (20..60).collect();
    let mut inside = Ahead::new(&view);
    inside.reserve(&view, &(0..5).collect::<Vec<_>>(), Way::LeastShare);
    let turns = PlanOrder::by_deadline(&view);
    let together = inside.judge(&view, &rows, Way::LeastShare, &turns).verdicts;
    let together: Vec<bool> = together.iter().map(Result::is_ok).collect();
    let mut one_by_one = Vec::new();
    for row in &rows {
        let is_in = inside.fits(&view, *row, Way::LeastShare, &turns).is_ok();
        one_by_one.push(is_in);
        if is_in {
            let mut entered: Vec<u32> = inside.planned().iter().map(|p| p.row).chain([*row]).collect();
            entered.sort_by_key(|row| (jobs[*row as usize].1, *row));
            inside = Ahead::new(&view);
            inside.reserve(&view, &entered, Way::LeastShare);
        }
    }
    assert_eq!(together, one_by_one);
    assert!(together.contains(&true) && together.contains(&false), "{together:?}");
}

#[test]
fn the_share_a_deadline_asks_for_is_that_of_a_job_alone() {
    let view = snapshot(&[(100.0, Some(100)), (150.0, Some(100)), (400.0, Some(100)), (1.0, None)]);
    let needed: Vec<_> = (0..4).map(|row| Ahead::share_needed(&view, row)).collect();
    let expected =
        [ShareNeeded::Gpus(1), ShareNeeded::Gpus(2), ShareNeeded::OutOfReach, ShareNeeded::NoDeadline];
    assert_eq!(needed, expected);
}

#[test]
fn spare_gpus_go_where_they_save_most() {
    let view = snapshot(&[(100.0, Some(100)), (100.0, None), (150.0, Some(100))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1, 2], Way::LeastShare);
    assert_eq!(shares(&ahead), [1, 0, 2], "the job without a deadline reserves nothing");
    grow(&mut ahead);
    // First every job has one GPU; then the second costs 0.2 GPU-seconds each; then the third and fourth of the job
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
    jobs.start(1, Time::ZERO, held, 3.0, Span::ZERO, Span::ZERO);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1, 2], Way::LeastShare);
    grow(&mut ahead);
    assert_eq!(shares(&ahead), [4, 2, 2], "a free restart: the first of equals grows");
    for planned in &mut ahead.planned {
        (planned.gpus, planned.change_cost) = (0, 0.75);
    }
    grow(&mut ahead);
    assert_eq!(shares(&ahead), [2, 4, 2], "a dear one: who has four keeps them");
}

#[test]
fn earliest_plans_take_all_they_can_in_order() {
    let view = snapshot(&[(300.0, Some(100)), (300.0, Some(101)), (30.0, Some(150))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::Earliest);
    assert_eq!(shares(&ahead), [4, 4]);
    assert_eq!(
        ahead.fits(&view, 2, Way::Earliest, &PlanOrder::by_deadline(&view)),
        Ok(()),
        "it waits for both and is in time"
    );
    assert_eq!(ahead.next_change(), Some(at(100)));
}

#[test]
fn lost_nodes_leave_less_to_plan_with() {
    let mut view = snapshot(&[(100.0, Some(100))]);
    Arc::make_mut(&mut view.nodes).is_up = vec![false];
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0], Way::LeastShare);
    grow(&mut ahead);
    assert_eq!(shares(&ahead), [0]);
    assert!(ahead.planned()[0].is_late);
}

#[test]
fn a_newcomer_is_judged_in_its_turn_of_whatever_order() {
    // All eight GPUs are needed for both; the newcomer is small and due first.
    let view = snapshot(&[(290.0, Some(100)), (290.0, Some(100)), (80.0, Some(90))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::LeastShare);
    let fits = |order: &[u32]| ahead.fits(&view, 2, Way::LeastShare, &PlanOrder::of(order, 3));
    assert_eq!(fits(&[2, 0, 1]).expect_err("planned first").whose, Some(1), "it makes the last one late");
    assert_eq!(fits(&[0, 1, 2]).expect_err("planned last").whose, None, "it is late itself");
    assert_eq!(fits(&[2]).expect_err("the others keep their plans").whose, None);
}

#[test]
fn growing_stops_where_it_is_told_to() {
    let view = snapshot(&[(100.0, Some(100)), (100.0, None)]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::LeastShare);
    let grown = |limits: Limits| {
        let mut ahead = ahead.clone();
        ahead.grow(limits, Planned::gpu_time_saved);
        shares(&ahead)
    };
    let free = ahead.free_now();
    assert_eq!(grown(Limits { take: free, stop_below: None }), [4, 4]);
    assert_eq!(
        grown(Limits { take: free, stop_below: Some(0.0) }),
        [1, 1],
        "a second GPU saves less than it costs"
    );
    assert_eq!(grown(Limits { take: 2, stop_below: None }), [2, 1]);
    let mut by_run_time = ahead.clone();
    by_run_time.grow(Limits { take: 3, stop_below: None }, Planned::time_saved);
    assert_eq!(
        shares(&by_run_time),
        [2, 2],
        "the first GPU of each is worth most, then the second of either"
    );
}

#[test]
fn gangs_begin_at_their_first_gap_and_only_so_many_wait_for_one() {
    // 8 GPUs; the jobs ask for 1 GPU each, so they are planned with it.
    let jobs = [(100.0, None); 10];
    let view = snapshot(&jobs);
    let rows: Vec<u32> = (0..10).collect();
    let planned = |most_waiting: usize| {
        let mut ahead = Ahead::new(&view);
        ahead.reserve_gangs(&view, &rows, most_waiting);
        ahead.planned().iter().map(|planned| planned.plan.start()).collect::<Vec<_>>()
    };
    let now = Some(Time::ZERO);
    assert!(planned(9)[..8].iter().all(|start| *start == now));
    assert_eq!(planned(9)[8], planned(9)[9], "both follow the first eight");
    assert!(planned(1)[8].is_some_and(|start| start > Time::ZERO));
    assert_eq!((planned(1)[9], planned(0)[8]), (None, None));
}

#[test]
fn plans_by_hand_hold_what_they_say_and_know_whether_they_suffice() {
    let view = snapshot(&[(100.0, Some(100)), (100.0, Some(60))]);
    let mut ahead = Ahead::new(&view);
    assert_eq!(ahead.share_until(&view, 0, at(100)), Some(1));
    assert_eq!(ahead.share_until(&view, 0, at(60)), Some(2), "56 seconds with two");
    assert_eq!(ahead.share_until(&view, 0, at(10)), None);
    assert_eq!(ahead.reserve_piece(&view, 0, 1, at(0), at(50)), Ok(()));
    assert!(ahead.planned()[0].is_late, "half of it is done");
    assert_eq!(ahead.reserve_piece(&view, 0, 2, at(60), at(90)), Ok(()));
    assert_eq!((ahead.planned()[0].is_late, ahead.planned()[0].plan.finish()), (false, Time(87_777_778)));
    assert_eq!(
        ahead.reserve_piece(&view, 0, 2, at(80), at(100)),
        Err(PieceError::Overlaps { until: at(90) })
    );
    assert_eq!(ahead.reserve_piece(&view, 1, 7, at(0), at(70)), Err(PieceError::Taken { free: 6 }));
    assert_eq!(ahead.timeline().free_at(at(55)), 8);
    ahead.forget(&[0]);
    assert_eq!((ahead.timeline().free_at(at(70)), ahead.planned().len()), (8, 0));
}
