//! A job against its profile: when the head corrects what it believes, by how much at most, and what follows from it.

use rota_core::allocation::{Allocation, GpuSet, Slice};
use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::resources::Host;
use rota_core::table::Field;
use rota_core::time::Time;
use rota_head::changes::changes;
use rota_head::pace::PaceWatch;
use rota_head::{ClusterState, PlanRecord, ProfileText, Record, Rules};
use rota_transport::message::JobRequest;
use rota_transport::value::{Iterations, Text};

fn at(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

/// Reports every ten seconds of a job that does `rate` a second where 10 are expected; the paces it is given.
fn paces(rate: f64, n_reports: u32, known: f64) -> Vec<f64> {
    let mut watch = PaceWatch::default();
    let reports = (0..n_reports).map(|n| f64::from(n) * 10.0);
    reports.filter_map(|seconds| watch.report(at(seconds), seconds * rate, 10.0, known)).collect()
}

#[test]
fn a_job_that_is_off_is_corrected_and_one_that_is_not_is_left_alone() {
    assert_eq!(paces(10.0, 100, 1.0), [] as [f64; 0], "as its profile says");
    assert_eq!(paces(11.0, 100, 1.0), [] as [f64; 0], "a tenth is nothing");
    let slow = paces(5.0, 13, 1.0);
    assert!(slow.len() == 1 && (slow[0] - 0.5).abs() < 1e-9, "{slow:?}");
    assert_eq!(paces(5.0, 100, 0.5), [] as [f64; 0], "it is known by now");
    assert_eq!(paces(5.0, 8, 1.0), [] as [f64; 0], "too early to say");
}

#[test]
fn corrections_have_bounds_and_begin_anew_with_other_resources() {
    assert_eq!(paces(0.001, 13, 1.0), [0.25]);
    assert_eq!(paces(1e6, 13, 1.0), [4.0]);
    let mut watch = PaceWatch::default();
    for n in 0..40 {
        // Its resources change all the time, and with them what is expected.
        let expected = 10.0 + f64::from(n / 6);
        assert_eq!(watch.report(at(f64::from(n)), f64::from(n), expected, 1.0), None);
    }
}

fn request() -> JobRequest {
    let work = Iterations::new(1000.0).expect("some");
    JobRequest { model: Text::cut("m"), work, ..JobRequest::emulated(2) }
}

fn received() -> Record {
    Record::JobReceived { job: JobId(0), user: "u".to_owned(), key: 1, request: Box::new(request()) }
}

#[test]
fn a_corrected_pace_changes_what_policies_see_and_only_within_bounds() {
    let text = "format = 1\n[[profile]]\nname = \"m\"\niteration_s = 0.5\n".to_owned();
    let rules = Rules::plain(ProfileText { name: "p".to_owned(), text });
    let mut cluster = ClusterState::new(&rules).expect("a profile");
    cluster.apply(
        at(0.0),
        &Record::NodeJoined {
            node: NodeId(0),
            name: "n".to_owned(),
            rack: 0,
            has: serde_json::from_value(serde_json::json!({
                "n_gpus": 4, "gpu_type": "V100", "gpu_mem_bytes": 0,
                "host": { "cpu_micro": 8_000_000, "mem_bytes": 64_000_000_000_u64, "storage_bps": 0 }
            }))
            .expect("a node"),
        },
    );
    cluster.apply(at(1.0), &received());
    cluster.apply(at(1.0), &Record::JobSubmitted { job: JobId(0) });
    let remaining = |cluster: &ClusterState| {
        let snapshot = cluster.scheduler().jobs();
        let row = snapshot.row(JobId(0)).expect("active");
        snapshot.column(Field::Remaining)[row]
    };
    assert!((remaining(&cluster) - 500.0).abs() < 1e-6, "1000 iterations at 2 a second");
    cluster.apply(at(2.0), &Record::JobPaced { job: JobId(0), pace: 0.5 });
    assert!((remaining(&cluster) - 1000.0).abs() < 1e-6, "half as fast");
    cluster.apply(at(3.0), &Record::JobPaced { job: JobId(0), pace: 1e9 });
    assert!((remaining(&cluster) - 125.0).abs() < 1e-6, "never more than four times as fast");
    let line = serde_json::to_string(&Record::JobPaced { job: JobId(0), pace: 0.5 }).expect("JSON");
    assert_eq!(line, r#"{"kind":"job-paced","job":0,"pace":0.5}"#);
}

/// GPUs `gpus` of a node.
fn on(node: u32, gpus: u32) -> Allocation {
    let slice = Slice { node: NodeId(node), gpus: GpuSet((1 << gpus) - 1), share: 1000, host: Host::NONE };
    Allocation { slices: [slice].into_iter().collect() }
}

#[test]
fn changes_are_read_off_a_journal() {
    let job = JobId(0);
    let planned = |allocation: Option<Allocation>| Record::Planned {
        round: 1,
        plan: serde_json::from_value::<PlanRecord>(serde_json::json!({
            "verdicts": [],
            "run": allocation.map(|allocation| (job, Some(allocation))).into_iter().collect::<Vec<_>>(),
            "wake": "next-round"
        }))
        .expect("a plan"),
        memory: String::new(),
        keeps_memory: false,
    };
    let started = |n| Record::JobStarted { job, incarnation: Incarnation(n) };
    let stopped = |n| Record::JobStopped { job, incarnation: Incarnation(n), done: 5.0 };
    let journal = [
        (at(0.0), received()),
        (at(1.0), planned(Some(on(0, 1)))),
        (at(2.0), started(1)),
        (at(10.0), planned(Some(on(0, 2)))),
        (at(11.5), stopped(1)),
        (at(14.0), started(2)),
        (at(20.0), planned(Some(on(1, 2)))),
        (at(21.0), stopped(2)),
        (at(22.0), started(3)),
        // It waits in between: that is no cost of a change.
        (at(30.0), planned(None)),
        (at(31.0), stopped(3)),
        (at(40.0), planned(Some(on(0, 4)))),
        (at(41.0), started(4)),
    ];
    let found = changes(&journal);
    let shown: Vec<_> = found
        .iter()
        .map(|o| (o.change.from, o.change.to, o.change.moved, o.change.checkpoint_s, o.change.restart_s))
        .collect();
    assert_eq!(shown, [(1, 2, false, 1.5, 2.5), (2, 2, true, 1.0, 1.0)]);
    assert!(found.iter().all(|o| o.model == "m"));
}
