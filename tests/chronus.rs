//! Chronus: golden cases of the original carried here, and those of the shared folder where it is; and what the shipped
//! policy promises where the original breaks its word.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::ids::{JobId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::ledger::{Ledger, Outcome, Status};
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::time::{Span, Time};
use rota_core::workload::{Truth, Workload};
use rota_lab::conform::{Options, SystemReport, conform};
use rota_scripts::{Limits, ScriptPolicy};
use rota_solvers::{Limits as SolveLimits, Model, Solution, SolveStatus, Solver, Start};
use rota_test_support::need;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn chronus(golden: &Path) -> SystemReport {
    let options =
        Options { golden: golden.to_owned(), systems: vec!["chronus".into()], out: None, first_round: None };
    conform(&options, &|_, _| ()).expect("a report").systems.remove(0)
}

fn assert_none_failed(report: &SystemReport) {
    let failed: Vec<_> = report.failed().collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn carried_cases_come_out_as_in_the_original() {
    let report = chronus(&Path::new(ROOT).join("tests/data"));
    assert_none_failed(&report);
    assert_eq!((report.n_equal(), report.skipped().count()), (21, 2), "the original aborts in two of them");
}

#[test]
fn every_golden_case_at_hand_comes_out_as_in_the_original() {
    let Some(golden) = need::shared_path("golden") else { return };
    let report = chronus(&golden);
    assert_none_failed(&report);
    let index = fs::read_to_string(golden.join("chronus/index.csv")).expect("a list of cases");
    let n_cases = index.lines().count() - 1;
    let n_aborted = index.lines().skip(1).filter(|row| row.split(',').nth(4) != Some("")).count();
    assert_eq!(index.lines().next().and_then(|row| row.split(',').nth(4)), Some("error"));
    assert!(n_cases - n_aborted > 40, "{n_aborted} of {n_cases} cases abort in the original");
    assert_eq!((report.n_equal(), report.skipped().count()), (n_cases - n_aborted, n_aborted));
}

#[test]
fn a_changed_expectation_fails_its_case_and_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let from = Path::new(ROOT).join("tests/data/chronus");
    let to = dir.path().join("chronus");
    for (file, find, replace) in [
        ("index.csv", "", ""),
        ("cases/base_single/case.json", "", ""),
        ("cases/base_single/trace.csv", "", ""),
        ("cases/base_single/expected_highs.json", "\"class\": \"ACCEPTED\"", "\"class\": \"UNACCEPTED\""),
    ] {
        let text = fs::read_to_string(from.join(file)).expect(file);
        assert!(text.contains(find), "{file} has {find}");
        fs::create_dir_all(to.join(file).parent().expect("a folder")).expect("a folder");
        fs::write(to.join(file), text.replace(find, replace)).expect(file);
    }
    let report = chronus(dir.path());
    let why = report.failed().find(|(case, _)| *case == "base_single").expect("it was changed").1;
    assert!(why.contains("job 0 became ACCEPTED"), "{why}");
}

/// Minutes in a lease, and in a round.
const LEASE: i64 = 20;
const ROUND: i64 = 5;

/// A job: GPUs, minute of arrival, minutes of work, minutes after arrival with what they are worth.
type Asked<'a> = (u32, i64, i64, &'a [(i64, f64)]);

fn minutes(n: i64) -> Time {
    Time::ZERO + Span::from_secs(60 * n)
}

fn workload(jobs: &[Asked<'_>]) -> Arc<Workload> {
    let profile = Arc::new(Profile::plain("plain", 1.0));
    let spec = |(id, &(gpus, arrival, work, steps)): (usize, &Asked<'_>)| {
        let step = |&(after, value): &(i64, f64)| (minutes(arrival + after), value);
        let deadline = match steps {
            [] => Deadline::None,
            [(after, _)] => Deadline::Strict(minutes(arrival + after)),
            steps => Deadline::Soft(steps.iter().map(step).collect()),
        };
        Arc::new(JobSpec {
            id: JobId::from(id),
            name: id.to_string().into(),
            tenant: TenantId(0),
            priority: 0,
            profile: Arc::clone(&profile),
            batch: 0,
            gpus: GpuRequest::fixed(gpus),
            gpu_type: None,
            estimated_work: 60.0 * work as f64,
            arrival: minutes(arrival),
            deadline,
            dataset: None,
            costs: None,
        })
    };
    let truths = jobs.iter().map(|job| Truth::of(60.0 * job.2 as f64)).collect();
    let jobs = jobs.iter().enumerate().map(spec).collect();
    Arc::new(Workload { jobs, truths, tenants: vec!["somebody".into()], datasets: Vec::new() })
}

fn nodes(count: u32) -> Arc<Cluster> {
    let group = NodeGroup {
        count,
        racks: 1,
        gpu_type: "gpu".into(),
        n_gpus: 8,
        gpu_mem_bytes: 0,
        host: Host::from_units(64.0, 256.0, 0.0),
        cache_bytes: 0,
        fetch_bps: 0,
    };
    Arc::new(Cluster::new("test", &[group]).expect("a cluster"))
}

fn policy(name: &str, set: &[(&str, &str)]) -> ScriptPolicy {
    let mut policy = ScriptPolicy::load(name, Limits::default()).expect("a shipped policy");
    for (key, value) in set {
        policy.set(key, value).expect("a parameter");
    }
    policy
}

fn run_on(n_nodes: u32, workload: &Arc<Workload>, policy: &mut ScriptPolicy) -> Ledger {
    let settings = RunSettings {
        round: Span::from_secs(60 * ROUND),
        is_paranoid: true,
        keeps_timeline: true,
        ..RunSettings::default()
    };
    let jobs = Arc::clone(workload);
    simulate(nodes(n_nodes), jobs, Vec::new(), policy, &settings, &mut |_| ())
        .unwrap_or_else(|e| panic!("{e}"))
}

fn is_met(workload: &Workload, ledger: &Ledger, job: usize) -> bool {
    let Outcome { status, finish, .. } = &ledger.outcomes[job];
    let last = workload.jobs[job].deadline.last();
    *status == Status::Finished && finish.zip(last).is_some_and(|(finish, last)| finish <= last)
}

#[test]
fn a_declined_job_takes_no_capacity() {
    // The first can never make it; the original lets its leases count against the second, which comes with it.
    let jobs = workload(&[(8, 1, 400, &[(120, 10.0)]), (8, 1, 60, &[(120, 10.0)])]);
    for refused in ["decline", "run"] {
        let ledger = run_on(1, &jobs, &mut policy("chronus", &[("refused", refused)]));
        assert!(is_met(&jobs, &ledger, 1), "{refused}: {:?}", ledger.outcomes);
        let expected = if refused == "decline" { Status::Declined } else { Status::Finished };
        assert_eq!(ledger.outcomes[0].status, expected);
    }
}

#[test]
fn an_expired_step_harms_no_other_job() {
    // The wide job is promised its second step, and the first lies behind it when the next lease is given out. In the
    // original's model the row of such a step reaches into that of the job before it.
    let jobs = workload(&[
        (8, 0, 40, &[(400, 10.0)]),
        (8, 1, 40, &[(25, 10.0), (300, 8.0)]),
        (8, 41, 40, &[(300, 10.0)]),
    ]);
    let ledger = run_on(1, &jobs, &mut policy("chronus", &[("refused", "decline"), ("steps", "9")]));
    assert!((0..3).all(|job| is_met(&jobs, &ledger, job)), "{:?}", ledger.outcomes);
}

/// Never has an answer.
struct Silent;

impl Solver for Silent {
    fn solve(&mut self, _: &Model, _: &SolveLimits, _: Start<'_>) -> Solution {
        Solution::without_values(SolveStatus::LimitWithout, std::time::Duration::ZERO)
    }
}

#[test]
fn a_solve_without_an_answer_falls_back_and_says_so() {
    // The widest gang first leaves the lease unfilled, which five and three would fill: nothing is proved.
    let steps: &[(i64, f64)] = &[(201, 10.0)];
    let jobs = workload(&[(6, 1, 30, steps), (5, 1, 30, steps), (3, 1, 30, steps), (2, 1, 30, &[])]);
    let mut chronus = policy("chronus", &[("objective", "maximize")]);
    chronus.use_solver(Box::new(Silent));
    let ledger = run_on(1, &jobs, &mut chronus);
    assert!(ledger.notes.iter().any(|(_, note)| note.contains("FELL BACK")), "{:?}", ledger.notes);
    assert!(ledger.outcomes.iter().all(|outcome| outcome.status == Status::Finished));
}

#[test]
fn nodes_are_left_off_at_night_and_promises_hold() {
    let jobs: Vec<Asked<'_>> = (0..12).map(|n| (4, 5 * n, 30, &[(600, 10.0)][..])).collect();
    let jobs = workload(&jobs);
    let set = [("power", "aggressive"), ("keep_nodes", "2")];
    let ledger = run_on(6, &jobs, &mut policy("chronus", &set));
    assert!((0..12).all(|job| is_met(&jobs, &ledger, job)), "{:?}", ledger.outcomes);
    let is_night = |from: Time| from >= minutes(LEASE) && from < minutes(480);
    let used = ledger.timeline.iter().filter(|stretch| is_night(stretch.from)).map(|s| s.slice.node.0).max();
    let all_day = run_on(6, &jobs, &mut policy("chronus", &[]));
    let used_by_day = all_day.timeline.iter().filter(|s| is_night(s.from)).map(|s| s.slice.node.0).max();
    assert!(used < used_by_day, "{used:?} of {used_by_day:?}");
}

#[test]
fn whoever_comes_at_night_finds_nodes_turned_on_when_saving_is_conservative() {
    // Nobody is there at midnight, so that one node stays on; then come six jobs that fill one each.
    let jobs: Vec<Asked<'_>> = (0..6).map(|_| (8, 1, 30, &[][..])).collect();
    let jobs = workload(&jobs);
    let most_at_once = |power| {
        let ledger = run_on(6, &jobs, &mut policy("chronus", &[("power", power), ("keep_nodes", "1")]));
        let is_night = |from: Time| from < minutes(480);
        let nodes = ledger.timeline.iter().filter(|s| is_night(s.from)).map(|s| s.slice.node.0);
        1 + nodes.max().expect("somebody ran")
    };
    assert_eq!(most_at_once("conservative"), 6, "they come on with the next lease");
    assert_eq!(most_at_once("aggressive"), 1, "only plans turn nodes on");
}

/// GPUs, minutes after the job before, minutes of work, steps of the deadline with their values.
type Drawn = (u32, i64, i64, Vec<(i64, f64)>);

fn asked() -> impl Strategy<Value = Vec<Drawn>> {
    let steps = (0..4_usize, 20..400_i64, 10..100_i64).prop_map(|(n_steps, first, apart)| {
        let values = [10.0, 8.0, 5.0, 2.0];
        (0..n_steps).map(|step| (first + apart * step as i64, values[step])).collect::<Vec<_>>()
    });
    let job = (
        prop_oneof![Just(1_u32), Just(2), Just(3), Just(4), Just(8), Just(12)],
        0..10_i64,
        1..120_i64,
        steps,
    );
    proptest::collection::vec(job, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever runs where: work takes its time, and nobody ends before it was done.
    #[test]
    fn a_job_never_gets_credit_for_time_it_did_not_run(
        drawn in asked(),
        objective in prop_oneof![Just("minimize"), Just("maximize"), Just("random"), Just("adaptive")],
        placement in prop_oneof![Just(""), Just("+switch-consolidate"), Just("+switch-splits"), Just("+random"), Just("+local-search")],
    ) {
        let mut at = 0;
        let jobs: Vec<_> = drawn.iter().map(|(gpus, wait, work, steps)| {
            at += wait;
            (*gpus, at, *work, steps.as_slice())
        }).collect();
        let jobs = workload(&jobs);
        let ledger = run_on(3, &jobs, &mut policy(&format!("chronus{placement}"), &[("objective", objective)]));
        for (job, outcome) in jobs.jobs.iter().zip(&ledger.outcomes) {
            prop_assert_eq!(outcome.status, Status::Finished, "{} {:?}", job.name, outcome.reason);
            let work = Span::from_secs_f64(job.estimated_work);
            let start = outcome.start.expect("it ran");
            prop_assert!(start >= job.arrival && outcome.finish.expect("it ended") - start >= work);
            let service = Span(work.0 * i64::from(job.gpus.asked));
            prop_assert!((outcome.service.0 - service.0).abs() <= i64::from(job.gpus.asked), "{:?}", outcome.service);
        }
    }
}

/// What carries Chronus' ideas: the word in the driver, the word in the host's verb, and the word in the script.
const SHARED_VERBS: [(&str, &str, &str, &str, &str, &str, &str); 3] = [
    // verb, file of the driver, word there, file of the host, word there, script, word there
    (
        "admission by packing",
        "src/artifact/chronus/admit.rs",
        "packs(&",
        "src/models/leases/book.rs",
        "packs(&",
        "policies/chronus.rhai",
        "book.promise(",
    ),
    (
        "the lease model",
        "src/artifact/chronus/lease.rs",
        "LeaseProblem {",
        "src/models/leases/term.rs",
        "LeaseProblem {",
        "policies/chronus.rhai",
        "book.term(",
    ),
    (
        "nodes below a switch",
        "src/artifact/chronus/machines.rs",
        "fewest_nodes(",
        "src/values/nodes/placement.rs",
        "SwitchConsolidate",
        // The shipped script ranks nodes; its twin test compares it with the verb, decision by decision.
        "tests/twins.rs",
        "(\"switch-consolidate\", \"switch_consolidate()\")",
    ),
];

#[test]
fn the_driver_and_the_shipped_policy_share_their_verbs() {
    let read = |file: &str| fs::read_to_string(Path::new(ROOT).join("scripts").join(file)).expect(file);
    for (verb, driver, in_driver, host, in_host, script, in_script) in SHARED_VERBS {
        for (file, word) in [(driver, in_driver), (host, in_host), (script, in_script)] {
            assert!(read(file).contains(word), "{verb}: {file} does not use `{word}`");
        }
    }
}
