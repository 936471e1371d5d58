//! The step function and the plans made on it, on small examples and on random ones against a naive model.

use proptest::prelude::*;

use super::*;
use crate::time::Span;

const fn at(seconds: i64) -> Time {
    Time(seconds * 1_000_000)
}

fn grid() -> Grid {
    Grid::even(Time::ZERO, Span::from_secs(10), Span::from_secs(1))
}

fn speeds() -> Speeds {
    Speeds::new([(1, 1.0), (2, 2.0), (4, 3.0)]).expect("levels")
}

fn free(timeline: &Timeline) -> Vec<(i64, i32)> {
    timeline.steps().iter().map(|s| (s.from.0 / 1_000_000, s.free)).collect()
}

fn steps(plan: &Reservation) -> Vec<(i64, u32)> {
    plan.steps().iter().map(|s| (s.0.0 / 1_000_000, s.1)).collect()
}

#[test]
fn what_is_reserved_is_not_free_until_its_end() {
    let mut timeline = Timeline::new(at(0), 8);
    timeline.reserve(&Reservation::flat(at(10), 3, at(30), at(30)));
    timeline.reserve(&Reservation::flat(at(0), 5, at(20), at(20)));
    assert_eq!(free(&timeline), [(0, 3), (10, 0), (20, 5), (30, 8)]);
    assert_eq!((timeline.free_at(at(19)), timeline.free_at(at(20)), timeline.free_at(at(99))), (0, 5, 8));
    assert_eq!(timeline.least_free(at(20), at(60)), 5);
    assert_eq!(timeline.least_free(at(5), at(11)), 0);
    assert_eq!(timeline.next_change(at(10)), Some(at(20)));
    assert_eq!((timeline.horizon(), timeline.next_change(at(30))), (at(30), None));
}

#[test]
fn releasing_undoes_reserving() {
    let mut timeline = Timeline::new(at(0), 8);
    timeline.reserve(&Reservation::flat(at(10), 3, at(30), at(30)));
    let before = timeline.clone();
    let plan =
        timeline.least_share(&Need { speeds: &speeds(), work: 70.0, deadline: at(40) }, &grid(), at(0));
    let plan = plan.expect("there is room");
    timeline.reserve(&plan);
    assert_ne!(timeline, before);
    timeline.release(&plan);
    assert_eq!(timeline, before);
}

#[test]
fn the_least_share_runs_late_and_wide_before_early_and_wider() {
    let timeline = Timeline::new(at(0), 8);
    let plan =
        |work| timeline.least_share(&Need { speeds: &speeds(), work, deadline: at(40) }, &grid(), at(0));
    assert_eq!(steps(&plan(40.0).expect("one GPU is just enough")), [(0, 1)]);
    let tight = plan(41.0).expect("two GPUs");
    assert_eq!((steps(&tight), tight.finish(), tight.end()), (vec![(0, 2)], at(21), at(30)));
}

#[test]
fn before_the_critical_point_it_runs_at_the_level_below() {
    let mut timeline = Timeline::new(at(0), 8);
    timeline.reserve(&Reservation::flat(at(0), 1, at(10), at(10)));
    let plan =
        timeline.least_share(&Need { speeds: &speeds(), work: 56.0, deadline: at(40) }, &grid(), at(0));
    let plan = plan.expect("two levels");
    assert_eq!(steps(&plan), [(0, 1), (10, 2)], "10 on one GPU, then 46 of 60 on two");
    assert_eq!((plan.finish(), plan.end()), (at(33), at(40)));
}

#[test]
fn where_little_is_free_it_makes_do_with_less() {
    let mut timeline = Timeline::new(at(0), 4);
    timeline.reserve(&Reservation::flat(at(10), 3, at(20), at(20)));
    timeline.reserve(&Reservation::flat(at(20), 4, at(30), at(30)));
    let plan =
        timeline.least_share(&Need { speeds: &speeds(), work: 70.0, deadline: at(40) }, &grid(), at(0));
    let plan = plan.expect("30 + 10 + 0 + 30");
    assert_eq!(steps(&plan), [(0, 4), (10, 1), (20, 0), (30, 4)]);
    timeline.reserve(&plan);
    assert_eq!(free(&timeline), [(0, 0), (40, 4)]);
}

#[test]
fn a_job_that_cannot_make_it_is_told_why() {
    let mut timeline = Timeline::new(at(0), 4);
    timeline.reserve(&Reservation::flat(at(10), 3, at(30), at(30)));
    let wide = speeds();
    let why = |work, deadline| {
        let need = Need { speeds: &wide, work, deadline };
        timeline.least_share(&need, &grid(), at(0)).expect_err("it cannot make it")
    };
    let scarce = why(100.0, at(40));
    assert_eq!((scarce.share, scarce.scarcest), (Some(4), Some((at(10), at(30), 1))));
    assert_eq!(
        scarce.to_string(),
        "needs 4 GPUs from 0 s to its deadline 40 s, but from 10 s to 30 s only 1 are free: 80 % of its work can be \
         done in time"
    );
    assert_eq!(
        why(1_000.0, at(40)).to_string(),
        "no number of GPUs it can use would finish it by its deadline 40 s: with 4, the fastest, it takes 333 s of the \
         40 s from 0 s on"
    );
    assert_eq!(why(1.0, at(0)).to_string(), "its deadline 0 s had passed at 0 s");
}

#[test]
fn the_earliest_plan_takes_what_is_free_at_once() {
    let mut timeline = Timeline::new(at(0), 4);
    timeline.reserve(&Reservation::flat(at(0), 3, at(20), at(20)));
    let need = Need { speeds: &speeds(), work: 50.0, deadline: at(100) };
    let plan = timeline.earliest(&need, &grid(), at(0));
    assert_eq!((steps(&plan), plan.finish(), plan.end()), (vec![(0, 1), (20, 4)], at(30), at(30)));
    let short = Need { work: 5.0, ..need };
    let plan = timeline.earliest(&short, &grid(), at(0));
    assert_eq!((steps(&plan), plan.finish(), plan.end()), (vec![(0, 1)], at(5), at(10)));
}

#[test]
fn without_a_deadline_the_least_share_waits_until_all_is_free() {
    let mut timeline = Timeline::new(at(0), 4);
    timeline.reserve(&Reservation::flat(at(0), 1, at(20), at(20)));
    let need = Need { speeds: &speeds(), work: 5.0, deadline: Need::NEVER };
    let plan = timeline.least_share(&need, &grid(), at(0)).expect("there is time enough");
    assert_eq!(steps(&plan), [(0, 0), (20, 1)]);
}

/// Free GPUs per second, counted one second at a time.
struct Naive(Vec<i32>);

impl Naive {
    fn change(&mut self, plan: &Reservation, sign: i32) {
        for (second, free) in self.0.iter_mut().enumerate() {
            let now = at(second as i64);
            let held = plan.steps().iter().rev().find(|s| s.0 <= now).map_or(0, |s| s.1);
            if now < plan.end() {
                *free += sign * held as i32;
            }
        }
    }
}

proptest! {
    #[test]
    fn reserving_agrees_with_counting_second_by_second(
        jobs in prop::collection::vec((1.0..200.0_f64, 1_i64..300, any::<bool>()), 1..25)
    ) {
        let (speeds, grid) = (speeds(), grid());
        let mut timeline = Timeline::new(at(0), 6);
        let mut naive = Naive(vec![6; 4_000]);
        let mut plans = Vec::new();
        for (work, deadline, is_patient) in jobs {
            let need = Need { speeds: &speeds, work, deadline: at(deadline) };
            let plan = match timeline.least_share(&need, &grid, at(0)) {
                Ok(plan) if is_patient => plan,
                _ => timeline.earliest(&need, &grid, at(0)),
            };
            timeline.reserve(&plan);
            naive.change(&plan, -1);
            plans.push(plan);
            timeline.assert_sane();
            for second in 0..naive.0.len() {
                prop_assert_eq!(timeline.free_at(at(second as i64)), naive.0[second], "second {}", second);
                prop_assert!(naive.0[second] >= 0, "never more than there is");
            }
        }
        for plan in plans.iter().rev() {
            timeline.release(plan);
            timeline.assert_sane();
        }
        prop_assert_eq!(timeline, Timeline::new(at(0), 6));
    }

    #[test]
    fn a_plan_that_claims_to_meet_its_deadline_does_the_work(
        blocks in prop::collection::vec((0_i64..20, 1_i64..10, 1_u32..4), 0..12),
        work in 1.0..150.0_f64,
        deadline in 5_i64..200,
    ) {
        let (speeds, grid) = (speeds(), grid());
        let mut timeline = Timeline::new(at(0), 12);
        for (begin, length, gpus) in blocks {
            let end = at((begin + length) * 10);
            if timeline.least_free(at(begin * 10), end) >= gpus as i32 {
                timeline.reserve(&Reservation::flat(at(begin * 10), gpus, end, end));
            }
        }
        let need = Need { speeds: &speeds, work, deadline: at(deadline) };
        if let Ok(plan) = timeline.least_share(&need, &grid, at(0)) {
            let stop = plan.finish().min(at(deadline));
            let mut done = 0.0;
            for (i, step) in plan.steps().iter().enumerate() {
                let end = plan.steps().get(i + 1).map_or(stop, |s| s.0.min(stop));
                done += (end - step.0).as_secs_f64().max(0.0) * speeds.rate(step.1);
            }
            prop_assert!(done >= work * (1.0 - 1e-9), "{} of {}", done, work);
        } else {
            let widest = timeline.earliest(&need, &grid, at(0));
            prop_assert!(widest.finish() >= at(deadline), "declined, but {:?} makes it by {}", widest, deadline);
        }
    }
}

#[test]
fn a_plan_holds_nothing_beyond_its_end() {
    let mut timeline = Timeline::new(at(0), 8);
    let mut plan = Reservation::none(at(0));
    plan.push(at(0), 2);
    plan.push(at(60), 0);
    let plan = plan.close(at(40), at(35));
    timeline.reserve(&plan);
    assert_eq!((timeline.free_at(at(39)), timeline.free_at(at(40))), (6, 8), "its next step comes later");
    timeline.release(&plan);
    assert_eq!(timeline, Timeline::new(at(0), 8));
}

#[test]
fn free_gpus_can_be_set_over_a_stretch_or_for_ever() {
    let mut timeline = Timeline::new(at(0), 8);
    timeline.reserve(&Reservation::flat(at(10), 3, at(30), at(30)));
    timeline.overwrite_free(at(5), Some(at(20)), 1);
    let seen: Vec<_> = timeline.steps().iter().map(|step| (step.from, step.free)).collect();
    assert_eq!(seen, [(at(0), 8), (at(5), 1), (at(20), 5), (at(30), 8)]);
    timeline.overwrite_free(at(20), None, 1);
    assert_eq!(timeline.steps().len(), 2, "what is alike is one");
    timeline.assert_sane();
}
