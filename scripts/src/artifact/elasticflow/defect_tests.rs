//! Every defect of the original alone, on a case so small that its sentence can be seen in it.

use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::ledger::Outcome;
use rota_core::time::Time;

use super::*;
use crate::artifact::fixtures;

/// Submitted, iterations, deadline, GPUs asked for, best effort.
type Line = (i64, f64, i64, u32, bool);

fn at(seconds: i64) -> Time {
    Time(seconds * 1_000_000)
}

/// Jobs that gain from up to 8 GPUs but should not have more than 4.
fn workload(lines: &[Line]) -> Workload {
    let profile = tests::profile(&[(1, 1.0), (2, 1.9), (4, 3.4), (8, 3.5)]);
    let spec = |(index, line): (usize, &Line)| {
        let gpus = GpuRequest { asked: line.3, levels: [1, 2, 4].into() };
        let deadline = if line.4 { Deadline::None } else { Deadline::Strict(at(line.2)) };
        JobSpec { batch: 64, deadline, ..fixtures::job(index, &profile, gpus, line.1, line.0) }
    };
    fixtures::workload(lines.iter().enumerate().map(spec))
}

/// One word for each job: m(et), x (missed), d(eclined), b(est effort) or u(nfinished), with start and end.
fn words(scheduler: Scheduler, slot_s: i64, lines: &[Line], defects: Defects) -> String {
    let settings =
        ElasticflowSettings { defects, ..ElasticflowSettings::new(scheduler, Span::from_secs(slot_s)) };
    let run = run(&tests::cluster(), &workload(lines), &settings).expect("a run");
    let word = |(judgement, outcome): (&Judgement, &Outcome)| {
        let letter = match judgement {
            Judgement::Met => "m",
            Judgement::Missed => "x",
            Judgement::Declined => return "d".to_owned(),
            Judgement::BestEffortDone => "b",
            Judgement::Unfinished => return "u".to_owned(),
        };
        let time = |time: Option<Time>| time.map(|time| time.to_string()).unwrap_or_default();
        format!("{letter}:{}-{}", time(outcome.start), time(outcome.finish))
    };
    run.judgements.iter().zip(&run.ledger.outcomes).map(word).collect::<Vec<_>>().join(" ")
}

/// What runs, and what comes of it without and with a defect.
struct Case {
    defect: Defect,
    scheduler: Scheduler,
    slot_s: i64,
    lines: &'static [Line],
    mended: &'static str,
    original: &'static str,
}

const fn case(
    defect: Defect,
    scheduler: Scheduler,
    lines: &'static [Line],
    mended: &'static str,
    original: &'static str,
) -> Case {
    Case { defect, scheduler, slot_s: 60, lines, mended, original }
}

/// 59 seconds of work on four GPUs, which cost 8 to start.
const ONE: &[Line] = &[(200, 200.0, 290, 4, true)];
const TWO: &[Line] = &[(50, 850.0, 1040, 4, false), (100, 800.0, 1030, 8, false)];

const CASES: &[Case] = &[
    // The first cannot be in time, the second can.
    case(
        Defect::JointAdmission,
        Scheduler::ElasticFlow,
        &[(50, 400.0, 80, 2, false), (50, 850.0, 980, 4, false)],
        "d m:50-308",
        "d d",
    ),
    // The first is late; before the others it is done sooner, and the third has to wait.
    case(
        Defect::LateJobsFirst,
        Scheduler::ElasticFlowOpen,
        &[(100, 1000.0, 310, 8, false), (150, 500.0, 360, 4, false), (250, 750.0, 1120, 4, false)],
        "x:100-461 m:160-316 m:250-529",
        "x:100-403 m:160-316 m:370-593",
    ),
    // 148 seconds of work and 8 of starting in 150.
    case(Defect::PlansWithoutCosts, Scheduler::ElasticFlow, &[(100, 500.0, 250, 2, false)], "d", "x:100-256"),
    // Done at 267; its slot ends at 260, and 8 seconds are added to that.
    case(Defect::PlannedEnd, Scheduler::ElasticFlow, ONE, "b:200-267", "b:200-268"),
    // The second is stopped for the third at 120, and has ended at 255 without having gone on.
    case(
        Defect::StaleEnd,
        Scheduler::EdfAdmission,
        &[
            (0, 700.0, 630, 8, false),
            (50, 50.0, 800, 4, false),
            (50, 550.0, 320, 4, false),
            (100, 550.0, 790, 4, false),
        ],
        "m:0-214 m:60-291 m:60-230 m:214-378",
        "m:0-214 m:60-255 m:60-230 m:214-378",
    ),
    // Two seconds in a second round.
    case(
        Defect::OverheadEveryRound,
        Scheduler::ElasticFlowOpen,
        TWO,
        "m:50-309 m:110-354",
        "m:50-311 m:110-356",
    ),
    // Slots of two seconds: all jobs restart in every other round.
    Case {
        slot_s: 2,
        ..case(
            Defect::RestartBySlot,
            Scheduler::Gandiva,
            &[(0, 100.0, 900, 1, false), (10, 20.0, 900, 1, false), (20, 20.0, 900, 1, false)],
            "m:0-102 m:10-32 m:20-42",
            "m:0-200 m:10-52 m:20-60",
        )
    },
    case(Defect::StartsFree, Scheduler::Edf, ONE, "b:200-267", "b:200-259"),
    case(
        Defect::GrowthSign,
        Scheduler::ElasticFlowOpen,
        &[(50, 550.0, 740, 2, false), (50, 200.0, 620, 2, true), (100, 150.0, 190, 8, true)],
        "m:50-253 b:50-129 b:110-157",
        "m:50-252 b:50-117 b:110-186",
    ),
    // Side by side on four GPUs each, or one after another on all eight.
    case(
        Defect::EdfWidth,
        Scheduler::Edf,
        &[(0, 700.0, 1000, 4, false), (0, 700.0, 1001, 4, false)],
        "m:0-214 m:0-214",
        "m:0-210 m:210-412",
    ),
    // The seat of the first is free from 109 on, and the last seat of a node is one.
    case(
        Defect::GandivaSeats,
        Scheduler::Gandiva,
        &[(50, 100.0, 920, 2, false), (50, 850.0, 980, 2, true), (50, 700.0, 1220, 4, false)],
        "m:50-109 b:50-504 m:50-264",
        "m:50-109 b:50-504 m:530-744",
    ),
    case(
        Defect::GandivaRearrange,
        Scheduler::Gandiva,
        &[(50, 800.0, 680, 4, false), (50, 250.0, 980, 1, true), (200, 550.0, 1250, 4, false)],
        "m:50-354 b:50-304 m:230-460",
        "m:50-354 b:50-304 m:230-520",
    ),
    // Rounds at 260, 320 and 380: none on a whole minute.
    case(
        Defect::GandivaMinuteTurns,
        Scheduler::Gandiva,
        &[(200, 550.0, 470, 8, false), (250, 50.0, 1120, 8, false)],
        "m:200-428 m:260-345",
        "m:200-368 m:260-405",
    ),
    // Nothing happens from 0 to 1,000.
    case(
        Defect::GandivaArrivalsOnly,
        Scheduler::Gandiva,
        &[(0, 550.0, 5000, 8, false), (0, 550.0, 5000, 8, false), (1000, 50.0, 5000, 1, false)],
        "m:0-288 m:0-348 m:1000-1054",
        "m:0-168 m:0-1158 m:1180-1230",
    ),
    // Both wait for the first; the third is behind one that is seated.
    case(
        Defect::GandivaSkipsWaiting,
        Scheduler::Gandiva,
        &[(50, 500.0, 440, 4, false), (100, 750.0, 970, 8, false), (150, 650.0, 900, 8, false)],
        "m:50-206 m:230-635 m:230-666",
        "m:50-206 m:230-455 m:470-666",
    ),
    // 3,250 GPU-seconds on 8 GPUs are over at 416; looked at at 100, the original thinks of later.
    case(
        Defect::TiresiasUnits,
        Scheduler::Tiresias,
        &[(0, 7000.0, 9000, 8, false), (100, 350.0, 9000, 8, false)],
        "m:0-2130 m:417-527",
        "m:0-2130 m:495-605",
    ),
    case(Defect::TiresiasStartCost, Scheduler::Tiresias, ONE, "b:200-267", "b:200-259"),
    case(Defect::ThemisClock, Scheduler::Themis, TWO, "m:-445 m:-609", "m:-513 m:-619"),
    case(
        Defect::ThemisShare,
        Scheduler::Themis,
        &[(50, 950.0, 620, 1, false), (150, 850.0, 240, 8, false)],
        "x:-1324 x:-763",
        "x:-1132 x:-1343",
    ),
    case(Defect::ThemisReceipts, Scheduler::Themis, TWO, "m:-445 m:-609", "m:-377 m:-599"),
    case(Defect::ThemisWholeLeases, Scheduler::Themis, ONE, "b:-267", "b:-320"),
];

#[test]
fn each_defect_alone_does_what_its_sentence_says() {
    let mut wrong = String::new();
    for case in CASES {
        let mended = words(case.scheduler, case.slot_s, case.lines, Defects::NONE);
        let original = words(case.scheduler, case.slot_s, case.lines, Defects::only(case.defect));
        if mended != case.mended || original != case.original {
            wrong += &format!("{}: {mended:?}, with it {original:?}\n", case.defect);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// It is of no consequence in a run that was looked at: what is free now is counted apart from the plans.
#[test]
fn spare_gpus_are_reserved_up_to_the_deadline_or_while_they_are_held() {
    use plans::Charge;
    use rota_core::timeline::{Grid, Need, Reservation, Speeds, Timeline};

    let speeds = Speeds::new(vec![(1, 1.0), (2, 1.9), (4, 3.4)]).expect("speeds");
    let need = Need { speeds: &speeds, work: 3_400.0, deadline: at(300) };
    let free_after_deadline = |charge| {
        let grid = Grid::even(at(0), Span::from_secs(60), Span::from_secs(1));
        let mut timeline = Timeline::new(at(0), 8);
        timeline.reserve(&Reservation::flat(at(0), 4, at(600), at(600)));
        plans::scaled(&mut timeline, &grid, &need, at(0), 4, charge);
        timeline.free_at(at(400))
    };
    assert_eq!(free_after_deadline(Charge::UpToDeadline), 4, "trial-uncharged");
    assert_eq!(free_after_deadline(Charge::WhileHeld), 0);
}

/// Stopped for the next two from 60 to 120, the first is a second late; the last has all the time in the world.
#[test]
fn a_late_job_keeps_an_easy_one_out() {
    let lines = [
        (0, 680.0, 269, 4, false),
        (50, 136.0, 130, 4, false),
        (50, 136.0, 131, 4, false),
        (200, 34.0, 900, 4, false),
    ];
    let last = |defects| {
        let words = words(Scheduler::EdfAdmission, 60, &lines, defects);
        assert!(words.starts_with("x:0-"), "{words}");
        words.rsplit(' ').next().map(str::to_owned)
    };
    assert_eq!(last(Defects::NONE).as_deref(), Some("m:200-212"));
    assert_eq!(last(Defects::only(Defect::LateJobBlocks)).as_deref(), Some("d"));
}

/// Two plans of four GPUs end in one slot, the second of them not at its end.
#[test]
fn a_plan_gives_back_what_it_held_or_what_was_free_before() {
    use rota_core::timeline::{Grid, Need, Speeds, Timeline};

    let speeds = Speeds::new(vec![(1, 1.0), (2, 1.9), (4, 3.4)]).expect("speeds");
    let grid = Grid::even(at(0), Span::from_secs(60), Span::from_secs(1));
    let free_afterwards = |earliest: fn(&mut Timeline, &Grid, &Need<'_>, Time) -> (u32, Time)| {
        let mut timeline = Timeline::new(at(0), 8);
        for work in [340.0, 374.0] {
            earliest(&mut timeline, &grid, &Need { speeds: &speeds, work, deadline: at(300) }, at(0));
        }
        timeline.free_at(at(130))
    };
    assert_eq!(free_afterwards(plans::earliest_overwriting), 4, "edf-free-count");
    assert_eq!(free_afterwards(plans::earliest), 8);
}
