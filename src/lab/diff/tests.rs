use rota_core::time::Time;

use super::*;
use crate::results::samples::run;

fn at(a: &RunResult, b: &RunResult) -> Moment {
    match difference(a, b).parting {
        Parting::At(moment) => *moment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let run = run("las", 1, None);
    let difference = difference(&run, &run);
    assert!(matches!(difference.parting, Parting::Nowhere) && difference.settings.is_empty());
    assert!(difference.to_text("a", "b").contains("Every decision is the same."));
}

#[test]
fn the_earliest_stretch_that_differs_is_named_with_both_sides() {
    let a = run("las", 1, None);
    let mut b = a.clone();
    assert!(!a.timeline.is_empty(), "the sample has a timeline");
    let last = b.timeline.len() - 1;
    b.timeline[last].slice.host.cpu_micro += 1;
    let moment = at(&a, &b);
    assert_eq!(moment.time_s, a.timeline[last].from.as_secs_f64());
    assert_eq!((moment.only_a.len(), moment.only_b.len()), (1, 1));
    assert_eq!(moment.jobs[0].job_id, *a.jobs[a.timeline[last].job.index()].job_id);
    let text = difference(&a, &b).to_text("a", "b");
    assert!(text.contains("only in A:") && text.contains("holds GPU"), "{text}");
}

#[test]
fn without_a_timeline_starts_and_ends_are_compared() {
    let mut a = run("las", 1, None);
    a.timeline.clear();
    let mut b = a.clone();
    let job = b.jobs.iter().position(|job| job.start.is_some()).expect("one starts");
    b.jobs[job].start = b.jobs[job].start.map(|start| Time(start.0 + 1));
    let moment = at(&a, &b);
    assert!(!moment.has_timeline && moment.only_b.is_empty() && moment.only_a[0].what == What::Starts);
}

#[test]
fn other_jobs_are_said_to_be_other_jobs() {
    let a = run("las", 1, None);
    let mut b = run("srtf", 2, None);
    b.jobs[1].gpus += 1;
    let difference = difference(&a, &b);
    assert!(matches!(difference.parting, Parting::Jobs { index: 1, .. }));
    let text = difference.to_text("a", "b");
    assert!(text.contains("policy: las | srtf") && text.contains("number 2 is"), "{text}");
}
