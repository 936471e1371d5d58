//! Every defect of the original alone, on a case so small that its sentence can be seen in it; and that proved plans are
//! as good as solved ones.

use std::sync::Arc;

use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::time::Time;
use rota_solvers::{Highs, Limits, Solver as _, Start};

use super::*;
use crate::artifact::fixtures;

/// Submitted, minutes of work, GPUs, and the steps of its deadline after submission with their values.
type Line = (i64, i64, u32, &'static [(i64, f64)]);

fn minutes(minutes: i64) -> Time {
    Time(minutes * 60_000_000)
}

fn cluster(n_nodes: u32) -> Cluster {
    Cluster::new("small", &[fixtures::group(n_nodes, "gpu", 8, Host::NONE)]).expect("a cluster")
}

fn workload(lines: &[Line]) -> Workload {
    let profile = Arc::new(Profile::plain("m", 1.0));
    let spec = |(index, (submit, work, gpus, steps)): (usize, &Line)| {
        let due = |step: &(i64, f64)| (minutes(submit + step.0), step.1);
        let deadline = match steps {
            [] => Deadline::None,
            [(time, _)] => Deadline::Strict(minutes(submit + time)),
            steps => Deadline::Soft(steps.iter().map(due).collect()),
        };
        let job = fixtures::job(index, &profile, GpuRequest::fixed(*gpus), (work * 60) as f64, submit * 60);
        JobSpec { deadline, ..job }
    };
    fixtures::workload(lines.iter().enumerate().map(spec))
}

/// What runs, and what comes of it without and with a defect.
struct Case {
    defect: Defect,
    settings: ChronusSettings<'static>,
    n_nodes: u32,
    lines: &'static [Line],
    mended: &'static str,
    original: &'static str,
}

/// For each job: a(ccepted), r(efused) or b(est effort) on arrival, start and end in minutes.
fn words(case: &Case, defects: Defects) -> String {
    let settings = ChronusSettings { defects, ..case.settings };
    let run = match run(&cluster(case.n_nodes), &workload(case.lines), &settings, &mut Highs) {
        Ok(run) => run,
        Err(ArtifactError::Aborts { .. }) => return "aborts".to_owned(),
        Err(error) => panic!("{error}"),
    };
    let mut admissions = run.admissions.clone();
    admissions.sort_by_key(|admission| admission.job);
    let word = |(admission, fate): (&Admission, &Fate)| {
        let letter = match admission.class {
            Class::Accepted => "a",
            Class::Unaccepted => "r",
            Class::BestEffort => "b",
            Class::Lowest => "l",
        };
        format!("{letter}:{}-{:.1}", fate.start.unwrap_or(-1), fate.end.unwrap_or(-1.0))
    };
    admissions.iter().zip(&run.fates).map(word).collect::<Vec<_>>().join(" ")
}

const SOFT: &[(i64, f64)] = &[(50, 10.0), (100, 8.0), (200, 5.0)];
const FAR: &[(i64, f64)] = &[(300, 10.0)];

#[test]
fn each_defect_alone_does_what_its_sentence_says() {
    let minutes = ChronusSettings::minutes();
    let case = |defect, lines, mended, original| Case {
        defect,
        settings: minutes,
        n_nodes: 1,
        lines,
        mended,
        original,
    };
    let cases = [
        // The first cannot make its first step, whatever is free; the second can.
        case(
            Defect::RefusedLinger,
            &[(19, 60, 3, SOFT), (20, 55, 1, &[(120, 10.0)])],
            "r:20-85.2 a:20-76.0",
            "r:20-85.2 r:20-76.5",
        ),
        // Two GPUs and six are eight; two and eight are not.
        case(
            Defect::GangRounding,
            &[(18, 50, 2, &[(90, 10.0)]), (28, 10, 6, SOFT)],
            "a:20-71.0 a:30-41.8",
            "a:20-72.0 r:30-43.6",
        ),
        // Started at 23, last looked at at 20, and its start costs 1.8 minutes.
        case(
            Defect::UnearnedCredit,
            &[(0, 20, 3, SOFT), (3, 25, 6, FAR)],
            "r:0-22.6 a:23-49.8",
            "r:0-22.6 a:23-45.0",
        ),
        // The first is gone at 86, which is even.
        case(
            Defect::OddTicks,
            &[(17, 60, 3, &[(80, 10.0), (130, 8.0)]), (23, 45, 6, FAR)],
            "r:20-85.2 a:86-134.6",
            "r:20-85.2 a:87-135.6",
        ),
        // Who takes the place of the first at 32: 125 GPU-minutes, or 240.
        case(
            Defect::LongestFirst,
            &[(0, 30, 4, FAR), (19, 30, 8, FAR), (24, 25, 5, FAR)],
            "a:0-31.5 a:40-67.0 a:32-87.3",
            "a:0-31.5 a:32-64.0 a:64-90.7",
        ),
        // Ten minutes between looks are two leases of five.
        Case {
            settings: ChronusSettings {
                lease: 5,
                check: 10,
                slot: 10,
                objective: Objective::Minimize,
                ..minutes
            },
            ..case(Defect::ClearsOneLease, &[(0, 60, 1, FAR)], "a:0-63.5", "aborts")
        },
        // The night has 480 minutes; eight leases of 20 have 160.
        Case {
            settings: ChronusSettings { power: PowerSaving::Aggressive, ..minutes },
            n_nodes: 12,
            ..case(Defect::NightLeases, &[(200, 30, 96, &[])], "b:480-517.6", "b:200-237.6")
        },
    ];
    let mut wrong = String::new();
    for case in &cases {
        let (mended, original) = (words(case, Defects::NONE), words(case, Defects::only(case.defect)));
        if mended != case.mended || original != case.original {
            wrong += &format!("{}: {mended:?}, with it {original:?}\n", case.defect);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Sixty jobs of one to eight GPUs on two nodes: most are promised a deadline, and leases are scarce.
#[test]
fn a_proved_plan_reaches_the_optimum_of_the_model() {
    let steps: [&'static [(i64, f64)]; 3] = [SOFT, FAR, &[]];
    let line = |job: i64| {
        let gpus = [1, 1, 2, 4, 8, 1, 3][job as usize % 7];
        (7 * job % 190, 15 + 37 * job % 110, gpus, steps[job as usize % 3])
    };
    let mut lines: Vec<Line> = (0..60).map(line).collect();
    lines.sort_by_key(|line| line.0);
    let settings = ChronusSettings { plans: Plans::Proved, lease: 10, ..ChronusSettings::minutes() };
    for objective in [Objective::Minimize, Objective::Maximize, Objective::Adaptive] {
        let settings = ChronusSettings { objective, ..settings };
        let run = run(&cluster(2), &workload(&lines), &settings, &mut Highs).expect("it runs");
        assert!(run.solves.len() > 20, "{} leases had something to decide", run.solves.len());
        for solve in &run.solves {
            let model = solve.problem.model().expect("a model");
            let best = Highs.solve(&model.model, &Limits::default(), Start::Cold).objective;
            let apart = solve.objective.zip(best).map(|(found, best)| (found - best).abs());
            assert!(
                apart.is_some_and(|apart| apart < 1e-6),
                "at {}: {:?}, {best:?}",
                solve.time,
                solve.objective
            );
        }
    }
}
