//! Small results made by hand, for tests here and in `report`.

use std::sync::Arc;

use rota_core::allocation::{GpuSet, Slice, WHOLE_GPU};
use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::ids::{JobId, NodeId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::ledger::{Ledger, Outcome, Sample, Status, Stretch, Use};
use rota_core::profile::Profile;
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_core::workload::{Truth, Workload};

use super::{ClusterTotals, Input, Results, RunMeta, RunResult, Timing};

pub(crate) fn seconds(s: f64) -> Time {
    Time::from_secs_f64(s)
}

/// Two nodes of 4 GPUs, 12 CPUs and 250 GB.
pub(crate) fn cluster() -> Cluster {
    let host = Host::from_units(12.0, 250.0, 500.0);
    let group = NodeGroup {
        count: 2,
        racks: 1,
        gpu_type: "V100".into(),
        n_gpus: 4,
        gpu_mem_bytes: 0,
        host,
        cache_bytes: 0,
        fetch_bps: 0,
    };
    Cluster::new("two", &[group]).expect("a cluster")
}

/// Jobs that arrive every ten seconds; every second one has a deadline 100 s after its arrival.
pub(crate) fn workload(n_jobs: usize) -> Workload {
    let profile = Arc::new(Profile::plain("resnet18", 1.0));
    let spec = |index: usize| {
        let arrival = seconds(1000.0 + 10.0 * index as f64);
        let deadline =
            if index % 2 == 1 { Deadline::Strict(arrival + Span::from_secs(100)) } else { Deadline::None };
        Arc::new(JobSpec {
            id: JobId::from(index),
            name: format!("job-{index}").into(),
            tenant: TenantId(index as u32 % 2),
            priority: 0,
            profile: profile.clone(),
            batch: 0,
            gpus: GpuRequest::fixed(1 + index as u32 % 4),
            gpu_type: None,
            estimated_work: 1.0,
            arrival,
            deadline,
            dataset: None,
            costs: None,
        })
    };
    Workload {
        jobs: (0..n_jobs).map(spec).collect(),
        truths: vec![Truth::of(1.0); n_jobs],
        tenants: vec!["vision".into(), "speech, and more".into()],
        datasets: Vec::new(),
    }
}

/// A job that started `queue_s` and finished `jct_s` after it arrived.
pub(crate) fn finished(job: &JobSpec, queue_s: f64, jct_s: f64) -> Outcome {
    Outcome {
        status: Status::Finished,
        start: Some(job.arrival + Span::from_secs_f64(queue_s)),
        finish: Some(job.arrival + Span::from_secs_f64(jct_s)),
        service: Span::from_secs_f64((jct_s - queue_s) * f64::from(job.gpus.asked)),
        ran: Span::from_secs_f64(jct_s - queue_s),
        preemptions: 1,
        reason: String::new(),
    }
}

/// A job that never ran.
pub(crate) fn without_start(status: Status, finish: Option<Time>, reason: &str) -> Outcome {
    Outcome { status, finish, ..Outcome::unfinished(reason) }
}

/// Five jobs: completion times 50, 150.25, 90 s; one declined, one unfinished.
pub(crate) fn ledger(workload: &Workload) -> Ledger {
    let jobs = &workload.jobs;
    let sample = |time_s: f64, waiting, gpus_held: u32| Sample {
        time: seconds(time_s),
        waiting,
        running: gpus_held,
        gpus_up: 8,
        gpus_held,
        gpus_asked: u64::from(gpus_held) + 3,
        gpus_worth: f64::from(gpus_held) / 2.0,
        cpus: Use { held: 9.0, used: 6.5, asked: 12.0 },
        mem_gb: Use { held: 200.0, used: 120.0, asked: 180.0 },
        decide_s: 0.000_25,
        commands: 1,
    };
    Ledger {
        outcomes: vec![
            finished(&jobs[0], 0.0, 50.0),
            finished(&jobs[1], 20.0, 150.25),
            finished(&jobs[2], 10.0, 90.0),
            without_start(
                Status::Declined,
                Some(jobs[3].arrival),
                "3 GPUs short at 1130 s, \"see\" <timeline>",
            ),
            without_start(Status::Unfinished, None, ""),
        ],
        shares: Vec::new(),
        samples: vec![sample(1000.0, 0, 1), sample(1030.0, 2, 6), sample(1110.0, 1, 3)],
        timeline: vec![Stretch {
            job: JobId(1),
            slice: Slice {
                node: NodeId(1),
                gpus: GpuSet(0b1010),
                share: WHOLE_GPU,
                host: Host { cpu_micro: 3_500_000, mem_bytes: 62_500_000_001, storage_bps: 0 },
            },
            from: seconds(1030.0),
            to: seconds(1160.25),
        }],
        notes: vec![(1, "solver: optimal".into()), (1, "gap 0".into())],
        data: None,
        faults: None,
        n_decisions: 3,
        n_skipped: 4,
        gpu_time: 641_000_000,
        worth_time_s: 320.5,
        cpu_time_s: 961.5,
        first: Some(seconds(1000.0)),
        last: Some(seconds(1160.25)),
        loaded: Some((seconds(1040.0), 160_000_000)),
        digest: "d1ce".into(),
    }
}

pub(crate) fn run(policy: &str, seed: u64, jobs_per_hour: Option<f64>) -> RunResult {
    let (cluster, workload) = (cluster(), workload(5));
    let meta = RunMeta {
        policy: policy.into(),
        seed,
        jobs_per_hour,
        cluster: ClusterTotals::from(&cluster),
        ..RunMeta::default()
    };
    let ledger = ledger(&workload);
    RunResult::new(meta, Timing { wall_s: 0.5, decide_s: 0.25 }, &workload, &cluster, ledger)
}

pub(crate) fn results(runs: Vec<RunResult>) -> Results {
    let settings = toml::Table::from_iter([("round".to_owned(), toml::Value::from("5m"))]);
    Results {
        title: "A small run".into(),
        version: "0.0.0".into(),
        settings,
        inputs: vec![Input::of_bytes("trace", "small.csv", b"abc")],
        runs,
    }
}
