//! Plans from outside: what they come to, and that nothing is believed.

use proptest::prelude::*;

use super::super::tests::{at, snapshot, snapshot_with};
use super::*;
use crate::job::Costs;
use crate::timeline::Part;

const RATES: [(u32, f64); 3] = [(1, 1.0), (2, 1.8), (4, 3.0)];

#[test]
fn a_course_is_followed_to_the_end_of_the_work() {
    let view = snapshot(&[(240.0, Some(200))]);
    let mut ahead = Ahead::new(&view);
    assert!(ahead.follow(&view, 0, &[(at(0), 2), (at(50), 0), (at(100), 4), (at(200), 0)]));
    let planned = &ahead.planned()[0];
    assert_eq!(
        (planned.gpus, planned.is_late, planned.plan.finish()),
        (2, false, at(150)),
        "90 on two, 150 on four"
    );
    assert_eq!(ahead.timeline().free_at(at(120)), 4);
    assert_eq!(ahead.timeline().free_at(at(150)), 8, "what is left of the course is given back");
}

#[test]
fn a_course_that_ends_too_late_is_not_followed() {
    let view = snapshot(&[(240.0, Some(200))]);
    let mut ahead = Ahead::new(&view);
    assert!(!ahead.follow(&view, 0, &[(at(0), 1), (at(400), 0)]), "200 of 240 are done at the deadline");
    assert!(!ahead.follow(&view, 0, &[(at(0), 4), (at(70), 0)]), "it stops before the work is done");
    assert!(!ahead.follow(&view, 0, &[(at(0), 3), (at(200), 0)]), "it cannot run on three GPUs");
    assert!(!ahead.follow(&view, 0, &[]), "nothing is no plan");
    assert!(ahead.planned().is_empty());
    assert_eq!(ahead.timeline().free_at(at(0)), 8);
}

#[test]
fn every_change_after_the_first_launch_costs_a_restart() {
    let costs = Costs { restart: Span::from_secs(10), checkpoint: Span::from_secs(5), ..Costs::default() };
    let view = snapshot_with(costs, &[(100.0, Some(115)), (100.0, Some(114))]);
    let course = [(at(0), 1), (at(50), 2), (at(60), 1), (at(200), 0)];
    let mut ahead = Ahead::new(&view);
    // 50 on one, nothing of the ten seconds on two, and 50 on one after another restart
    assert!(!ahead.follow(&view, 0, &course), "done at 125 s");
    let steady = [(at(0), 1), (at(200), 0)];
    assert!(ahead.follow(&view, 0, &steady), "the first launch is free");
    let paused = [(at(0), 1), (at(50), 0), (at(50), 1), (at(200), 0)];
    assert!(ahead.follow(&view, 1, &paused), "no time without GPUs is no pause");
}

#[test]
fn nobody_follows_a_course_over_gpus_that_are_taken() {
    let view = snapshot(&[(240.0, Some(200)), (100.0, Some(100))]);
    let mut ahead = Ahead::new(&view);
    ahead.block(5, at(30), at(60));
    assert!(!ahead.follow(&view, 0, &[(at(0), 4), (at(200), 0)]));
    assert!(ahead.follow(&view, 0, &[(at(0), 2), (at(60), 4), (at(200), 0)]));
    assert!(!ahead.follow(&view, 1, &[(at(0), 2), (at(100), 0)]), "one GPU is free from 30 s to 60 s");
}

#[test]
fn who_is_forgotten_leaves_its_gpus() {
    let view = snapshot(&[(240.0, Some(200)), (100.0, Some(100))]);
    let mut ahead = Ahead::new(&view);
    ahead.reserve(&view, &[0, 1], Way::LeastShare);
    ahead.forget(&[0, 1]);
    assert!(ahead.planned().is_empty());
    assert_eq!(ahead.timeline(), Ahead::new(&view).timeline());
}

/// Checks plans second by second: never more GPUs than there are, and every job in time does its work.
fn audit(ahead: &Ahead, horizon_s: i64) -> Result<(), TestCaseError> {
    let mut done = vec![0.0; ahead.planned().len()];
    for second in 0..horizon_s {
        let mut used = 0;
        for (planned, done) in ahead.planned().iter().zip(&mut done) {
            let step = planned.plan.steps().iter().rev().find(|step| step.0 <= at(second));
            let gpus = step.map_or(0, |step| if at(second) < planned.plan.end() { step.1 } else { 0 });
            used += gpus;
            if at(second) < planned.deadline {
                *done += RATES.iter().find(|level| level.0 == gpus).map_or(0.0, |level| level.1);
            }
        }
        prop_assert!(used <= 8, "{} GPUs at {} s", used, second);
    }
    for (planned, done) in ahead.planned().iter().zip(done).filter(|(planned, _)| !planned.is_late) {
        prop_assert!(done >= planned.work() - 1e-6, "row {}: {} of {}", planned.row, done, planned.work());
    }
    Ok(())
}

proptest! {
    #[test]
    fn entering_one_by_one_is_planning_all_by_deadline(
        jobs in prop::collection::vec((10.0..300.0_f64, 1_i64..40), 1..10)
    ) {
        let jobs: Vec<_> = jobs.into_iter().map(|(work, tens)| (work, Some(tens * 10))).collect();
        let view = snapshot(&jobs);
        let mut ahead = Ahead::new(&view);
        let mut entered: Vec<u32> = (0..jobs.len() as u32).collect();
        entered.retain(|row| ahead.enter(&view, *row, Way::LeastShare).is_ok());
        entered.sort_by_key(|row| (jobs[*row as usize].1, *row));
        let mut again = Ahead::new(&view);
        again.reserve(&view, &entered, Way::LeastShare);
        prop_assert_eq!(ahead.timeline(), again.timeline());
        audit(&ahead, 400)?;
    }

    #[test]
    fn whatever_a_model_says_what_is_followed_holds(
        jobs in prop::collection::vec((10.0..300.0_f64, 1_i64..30), 1..8),
        parts in prop::collection::vec((0_usize..8, 0_usize..3, 0_usize..3, 1.0..100.0_f64), 0..30),
    ) {
        let jobs: Vec<_> = jobs.into_iter().map(|(work, tens)| (work, Some(tens * 10))).collect();
        let view = snapshot(&jobs);
        let mut ahead = Ahead::new(&view);
        let rows: Vec<u32> = (0..jobs.len() as u32).collect();
        let mut by_job = vec![Vec::new(); jobs.len()];
        for (job, slot, level, seconds) in parts {
            by_job[job % jobs.len()].push(Part { slot, gpus: RATES[level].0, seconds });
        }
        let planned = ahead.unplanned(&view, &rows);
        let courses = ahead.arrange(&[at(60), at(130), at(300)], &planned, &by_job);
        for (row, course) in rows.iter().zip(&courses) {
            ahead.follow(&view, *row, course);
        }
        audit(&ahead, 310)?;
    }
}
