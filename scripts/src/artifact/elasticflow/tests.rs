//! A dozen jobs on two nodes of four GPUs through every scheduler. What is expected was computed by an executable form
//! of the original's rules, kept apart from this program; the golden cases of real runs are compared elsewhere.

use std::sync::Arc;

use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::profile::{Profile, ScaleCurve};
use rota_core::resources::Host;
use rota_core::time::Time;

use super::*;
use crate::artifact::fixtures;

/// Submitted, iterations, deadline, GPUs, run time, best effort.
const JOBS: [(i64, f64, i64, u32, i64, bool); 12] = [
    (0, 7537.0, 1571, 8, 1346, false),
    (650, 3742.0, 4089, 1, 3742, false),
    (687, 3990.0, 3245, 1, 3990, false),
    (887, 13113.0, 3671, 4, 3857, false),
    (1537, 2650.0, 3456, 1, 2650, true),
    (1574, 4909.0, 2532, 4, 1444, false),
    (1984, 3420.0, 6147, 1, 3420, false),
    (2021, 15842.0, 4568, 8, 2829, false),
    (2058, 3869.0, 4011, 1, 3869, false),
    (2095, 3873.0, 4611, 1, 3873, true),
    (2295, 2508.0, 5526, 1, 2508, false),
    (2332, 3128.0, 4450, 1, 3128, false),
];

pub(super) fn cluster() -> Cluster {
    Cluster::new("two", &[fixtures::group(2, "A100", 4, Host::NONE)]).expect("a cluster")
}

/// A model whose speed by GPUs is this.
pub(super) fn profile(points: &[(u32, f64)]) -> Arc<Profile> {
    let curve = ScaleCurve { gpu_type: "A100".into(), batch: 64, points: points.to_vec() };
    Arc::new(Profile { scale: vec![curve], ..Profile::plain("m", 1.0) })
}

fn workload() -> (Workload, Vec<Span>) {
    let profile = profile(&[(1, 1.0), (2, 1.9), (4, 3.4), (8, 5.6), (16, 8.0), (32, 9.0), (64, 9.5)]);
    let spec = |(index, job): (usize, &(i64, f64, i64, u32, i64, bool))| {
        let gpus = GpuRequest { asked: job.3, levels: [1, 2, 4, 8, 16, 32].into() };
        let deadline = if job.5 { Deadline::None } else { Deadline::Strict(Time(job.2 * 1_000_000)) };
        JobSpec { batch: 64, deadline, ..fixtures::job(index, &profile, gpus, job.1, job.0) }
    };
    let durations = JOBS.iter().map(|job| Span::from_secs(job.4)).collect();
    (fixtures::workload(JOBS.iter().enumerate().map(spec)), durations)
}

/// One word for each job: m(et), x (missed), d(eclined) or b(est effort), with start and end.
fn outcomes(name: &str) -> String {
    let (workload, durations) = workload();
    let scheduler = Scheduler::parse(name).expect("a scheduler");
    let settings = ElasticflowSettings {
        durations: Some(&durations),
        ..ElasticflowSettings::new(scheduler, Span::from_secs(60))
    };
    let run = run(&cluster(), &workload, &settings).expect("a run");
    let word = |(judgement, outcome): (&Judgement, &rota_core::ledger::Outcome)| {
        let letter = match judgement {
            Judgement::Met => "m",
            Judgement::Missed => "x",
            Judgement::Declined => "d",
            Judgement::BestEffortDone => "b",
            Judgement::Unfinished => "u",
        };
        let time = |time: Option<Time>| time.map(|time| time.to_string()).unwrap_or_default();
        format!("{letter}:{}-{}", time(outcome.start), time(outcome.finish))
    };
    run.judgements.iter().zip(&run.ledger.outcomes).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_job_fares_as_in_the_original() {
    for (name, expected) in [
        (
            "ef-accessctrl",
            "m:0-1369 m:1369-4101 m:1369-3139 d:- b:1537-5727 m:1597-2537 m:4101-5485 d:- d:- b:4101-5969 m:4101-4883 \
             m:3139-4101",
        ),
        (
            "ef",
            "m:0-1369 x:6083-6805 m:1369-3139 x:1369-5361 b:11433-12215 x:1597-2537 x:10771-11433 x:7407-10289 \
             x:5361-6083 b:11433-12457 x:10289-10771 x:6805-7407",
        ),
        (
            "edf",
            "m:0-1346 x:5969-6638 m:1346-2936 x:2936-5278 b:11085-11559 m:1597-2474 x:10474-11085 x:7197-10026 \
             x:5278-5969 b:11559-12251 x:10026-10474 x:6638-7197",
        ),
        (
            "edf-accessctrl",
            "m:0-1362 m:2970-3641 m:1362-2970 d:- b:5265-5741 m:1597-2486 m:4652-5265 d:- d:- b:5741-6435 m:4202-4652 \
             m:3641-4202",
        ),
        (
            "gandiva",
            "m:0-1386 x:1537-5303 x:6952-10942 x:1537-5442 b:1537-4211 x:1597-6904 m:1984-5420 x:10972-13801 \
             x:2104-5981 b:2104-8129 x:2295-7844 x:2332-8580",
        ),
        (
            "dlas-gpu",
            "x:0-8467 x:650-4396 x:710-4704 x:887-10682 b:1537-4191 x:1984-7340 m:1984-5742 x:6314-11961 x:3060-7701 \
             b:3060-7705 x:3060-5572 x:3060-6192",
        ),
    ] {
        assert_eq!(outcomes(name), expected, "{name}");
    }
}

#[test]
fn themis_ends_every_job_at_a_lease() {
    let text = outcomes("themis");
    for word in text.split(' ') {
        let end: i64 = word.rsplit('-').next().and_then(|end| end.parse().ok()).unwrap_or(-1);
        assert_eq!(end % 60, 0, "{word} in {text}");
    }
}

#[test]
fn what_the_original_cannot_handle_is_refused_by_name() {
    assert!(Scheduler::parse("fifo").is_err());
    let (mut workload, _) = workload();
    let settings = |slot| ElasticflowSettings::new(Scheduler::Gandiva, Span::from_secs(slot));
    assert_eq!(
        run(&cluster(), &workload, &settings(0)).expect_err("no slot").to_string(),
        "a slot of 0 s: the original needs whole seconds, one at least"
    );
    Arc::make_mut(&mut workload.jobs[3]).gpus.asked = 16;
    assert_eq!(
        run(&cluster(), &workload, &settings(60)).expect_err("too wide").to_string(),
        "job 3: asks for 16 GPUs, which have no class on this cluster"
    );
}
