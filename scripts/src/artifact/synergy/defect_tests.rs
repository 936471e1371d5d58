//! Every defect of the original alone, on a case so small that its sentence can be seen in it.

use std::sync::Arc;

use rota_core::cluster::Cluster;
use rota_core::ids::TenantId;
use rota_core::job::{GpuRequest, JobSpec};
use rota_core::profile::{HostCurve, Profile};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

use super::*;
use crate::artifact::fixtures;
use crate::artifact::{Defect, Defects};

/// Arrival in seconds, iterations, GPUs, model (a name of [`MODELS`]).
type Line = (i64, f64, u32, &'static str);

/// Name, CPUs, gigabytes and megabytes per second for each GPU, seconds of an iteration, speed with all that. Each is
/// measured on a grid that says: with all of it that speed, with the smaller of it and the share 1, with less a half.
const MODELS: [(&str, [f64; 3], f64, f64); 5] = [
    ("cpu", [6.0, 62.5, 62.5], 1.0, 2.0),
    ("memory", [1.0, 125.0, 62.5], 1.0, 2.0),
    ("lean", [1.0, 20.0, 62.5], 1.0, 1.0),
    ("odd", [3.0, 62.5, 62.5], 0.7, 1.0),
    ("storage", [3.0, 62.5, 125.0], 1.0, 1.0),
];

fn profile(name: &str, per_gpu: [f64; 3], ideal: f64) -> Profile {
    let cpus = vec![1.0, 3.0, 6.0];
    let mem_gb = vec![20.0, 62.5, 125.0];
    let speed = |cpus: f64, mem_gb: f64| match (cpus >= per_gpu[0], mem_gb >= per_gpu[1]) {
        (true, true) => ideal,
        _ if cpus >= per_gpu[0].min(3.0) && mem_gb >= per_gpu[1].min(62.5) => 1.0,
        _ => 0.5,
    };
    let grid = cpus.iter().map(|c| mem_gb.iter().map(|m| speed(*c, *m)).collect()).collect();
    let curve = HostCurve::new(cpus, mem_gb, grid).expect("a grid");
    let [cpus, mem_gb, storage] = per_gpu;
    Profile {
        demand_per_gpu: Host::from_units(cpus, mem_gb, storage),
        host: Some(curve),
        ..Profile::plain(name, 1.0)
    }
}

fn workload(lines: &[Line]) -> Workload {
    let spec = |(index, &(arrival, work, gpus, model)): (usize, &Line)| {
        let known = MODELS.iter().find(|known| known.0 == model).expect("a model");
        let profile = Arc::new(profile(known.0, known.1, known.3));
        let job = fixtures::job(index, &profile, GpuRequest::fixed(gpus), work, arrival);
        JobSpec { tenant: TenantId((index % 2) as u32), ..job }
    };
    let workload = fixtures::workload(lines.iter().enumerate().map(spec));
    Workload { tenants: vec!["a".into(), "b".into()], ..workload }
}

/// Two servers of four GPUs, with 3 CPUs, 62.5 GB and 62.5 MB/s for each.
fn cluster() -> Arc<Cluster> {
    let group = fixtures::group(2, "V100", 4, Host::from_units(12.0, 250.0, 250.0));
    Arc::new(Cluster::new("two", &[group]).expect("a cluster"))
}

/// For each job: start, end in seconds, and the nodes it was on.
fn words(policy: &str, round_s: i64, lines: &[Line], defects: Defects) -> String {
    let models = MODELS
        .map(|(name, _, iteration_s, ideal_speedup)| (name.to_owned(), Model { iteration_s, ideal_speedup }));
    let scheme = Scheme::parse(policy, Allocation::Greedy).expect(policy);
    let round = Span::from_secs(round_s);
    let settings = SynergySettings { round, keeps_timeline: true, defects, ..SynergySettings::default() };
    let ledger = run(scheme, cluster(), &workload(lines), &Models::from(models), &settings, &mut |_| ());
    let ledger = ledger.expect("a run");
    let seconds = |time: Option<Time>| time.map_or(-1, |time| time.0 / 1_000_000);
    let word = |(job, outcome): (usize, &rota_core::ledger::Outcome)| {
        let nodes = ledger.timeline.iter().filter(|stretch| stretch.job.index() == job);
        let nodes: Vec<String> = nodes.map(|stretch| stretch.slice.node.0.to_string()).collect();
        format!("{}-{}@{}", seconds(outcome.start), seconds(outcome.finish), nodes.join(""))
    };
    ledger.outcomes.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// What runs, and what comes of it without and with a defect.
struct Case {
    defect: Defect,
    policy: &'static str,
    round_s: i64,
    lines: &'static [Line],
    /// Defects in both runs: looking back hides what a single pass gets wrong.
    both: Defects,
    mended: &'static str,
    original: &'static str,
}

const fn case(
    defect: Defect,
    policy: &'static str,
    lines: &'static [Line],
    mended: &'static str,
    original: &'static str,
) -> Case {
    Case { defect, policy, round_s: 300, lines, both: Defects::NONE, mended, original }
}

const SINGLE_PASS: Defects = Defects::only(Defect::OnePass);

/// Three that want twice their share of memory and one that wants twice its share of CPUs, on one server.
const LOWERED: &[Line] = &[
    (0, 600.0, 4, "lean"),
    (0, 600.0, 1, "memory"),
    (0, 600.0, 1, "cpu"),
    (0, 600.0, 1, "memory"),
    (0, 600.0, 1, "memory"),
];
const LOWERED_MENDED: &str = "0-600@0 0-600@1 0-300@1 0-450@11 0-600@1";
const LOWERED_ORIGINAL: &str = "0-600@0 0-600@1 0-600@1 0-600@1 0-600@1";

const CASES: &[Case] = &[
    // 428.57 iterations in a round.
    case(Defect::WholeIterations, "fifo+fair", &[(0, 4000.0, 1, "odd")], "0-2800@0", "0-2803@0"),
    case(Defect::LateEnds, "fifo+fair", &[(0, 50.0, 4, "odd")], "0-35@0", "0-300@0"),
    // The second is moved to the GPU that the first left.
    case(
        Defect::PlacedAnew,
        "fifo+fair",
        &[(0, 450.0, 1, "lean"), (200, 650.0, 1, "lean")],
        "0-450@0 300-950@0",
        "0-450@0 300-950@00",
    ),
    // A server has half the memory it asks for, and all the CPUs.
    case(Defect::TwoSpeeds, "fifo", &[(0, 600.0, 4, "memory")], "0-600@0", "0-300@0"),
    // 1,000 seconds at the share, 500 at twice its speed; the others have 700 and 800 left.
    case(
        Defect::StaleSpeeds,
        "srtf+tune",
        &[(0, 1000.0, 2, "cpu"), (0, 700.0, 4, "lean"), (0, 800.0, 4, "lean")],
        "900-1400@0 0-700@0 0-800@1",
        "0-500@0 0-700@1 600-1400@0",
    ),
    // At 300 the second has waited and its ratio is 1.7, the first one's is 1.
    case(
        Defect::FtfAscending,
        "ftf+fair",
        &[(0, 900.0, 8, "lean"), (100, 300.0, 8, "lean")],
        "0-1200@0101 300-600@01",
        "0-900@01 900-1200@01",
    ),
    // Two tenants without a thing, or all of the cluster against an eighth.
    case(
        Defect::DrfSort,
        "drf+fair",
        &[(0, 600.0, 8, "lean"), (0, 600.0, 1, "lean")],
        "0-600@01 600-1200@0",
        "600-1200@01 0-600@0",
    ),
    // All is free and the first fits it best; the second asks for less.
    case(
        Defect::TetrisProduct,
        "tetris+fair",
        &[(0, 900.0, 8, "cpu"), (0, 900.0, 2, "lean")],
        "0-1500@010101 300-1800@000",
        "900-1800@01 0-900@0",
    ),
    // The wide one is placed first under LAS, or where the first leaves room.
    case(
        Defect::TuneOrder,
        "las+tune",
        &[(0, 550.0, 1, "lean"), (0, 250.0, 4, "lean")],
        "0-550@0 0-250@01",
        "0-550@1 0-250@0",
    ),
    // The fifth gives up its CPUs for the seventh, though the first server has some to spare.
    case(
        Defect::OnePass,
        "fifo+tune",
        &[
            (0, 600.0, 1, "lean"),
            (0, 600.0, 1, "lean"),
            (0, 600.0, 1, "lean"),
            (0, 600.0, 1, "lean"),
            (0, 600.0, 1, "cpu"),
            (0, 600.0, 1, "cpu"),
            (0, 600.0, 1, "cpu"),
        ],
        "0-600@1 0-600@0 0-600@0 0-600@0 0-300@0 0-300@1 0-350@11",
        "0-600@0 0-600@0 0-600@0 0-600@0 0-450@11 0-300@1 0-450@11",
    ),
    // The fourth finds no CPUs; the last would take one of its GPUs.
    case(
        Defect::LasSelects,
        "las",
        &[
            (0, 300.0, 1, "cpu"),
            (0, 300.0, 1, "cpu"),
            (0, 300.0, 1, "cpu"),
            (0, 300.0, 4, "cpu"),
            (0, 300.0, 1, "lean"),
            (0, 300.0, 1, "lean"),
        ],
        "0-150@0 0-150@0 0-150@1 300-600@0 0-300@1 0-300@1",
        "0-150@0 0-150@0 0-150@1 300-600@0 0-300@1 300-600@1",
    ),
    // Lowered for want of memory, jobs that need one CPU get three, which the third had to give back.
    Case {
        both: SINGLE_PASS,
        ..case(Defect::LowerWholeShare, "fifo+tune", LOWERED, LOWERED_MENDED, LOWERED_ORIGINAL)
    },
    // The third has no memory to give and is asked all the same.
    Case {
        both: SINGLE_PASS,
        ..case(Defect::ReclaimUseless, "fifo+tune", LOWERED, LOWERED_MENDED, LOWERED_ORIGINAL)
    },
    // 3,600,000 seconds are 120 rounds of 30,000.
    Case {
        round_s: 30_000,
        ..case(
            Defect::AgePriority,
            "srtf+fair",
            &[(0, 4_000_000.0, 8, "lean"), (0, 5_000_000.0, 8, "lean")],
            "0-4000000@01 4020000-9020000@01",
            "0-7660000@0101 3660000-9020000@0101",
        )
    },
    // Two that ask for 125 MB/s are all that a server can feed.
    case(
        Defect::StorageRate,
        "fifo",
        &[(0, 300.0, 1, "storage"), (0, 300.0, 1, "storage"), (0, 300.0, 1, "storage")],
        "0-300@0 0-300@0 0-300@1",
        "0-300@0 0-300@0 0-300@0",
    ),
];

#[test]
fn each_defect_alone_does_what_its_sentence_says() {
    let mut wrong = String::new();
    for case in CASES {
        let mended = words(case.policy, case.round_s, case.lines, case.both);
        let original = words(case.policy, case.round_s, case.lines, case.both.with(case.defect));
        if mended != case.mended || original != case.original {
            wrong += &format!("{}: {mended:?}, with it {original:?}\n", case.defect);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
