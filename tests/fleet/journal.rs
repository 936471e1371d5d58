//! The cluster's state without processes: what records do to it, and that reading them back does the same.

use rota_core::ids::{Incarnation, JobId, NodeId};
use rota_core::plan::Plan;
use rota_core::policy::Policy as _;
use rota_core::time::{Span, Time};
use rota_head::replay::replay;
use rota_head::{ClusterState, PlanRecord, ProfileText, Record, Rules, Standing};
use rota_scripts::{Limits, ScriptPolicy};
use rota_transport::message::JobRequest;
use rota_transport::value::{Iterations, Text};
use serde_json::json;

const ROUND: Span = Span::from_secs(60);

fn empty() -> ClusterState {
    ClusterState::new(&rules()).expect("built in")
}

fn rules() -> Rules {
    Rules { round: ROUND, ..Rules::plain(ProfileText::load("synergy").expect("built in")) }
}

fn request(gpus: u32) -> Box<JobRequest> {
    let mut request = JobRequest::emulated(gpus);
    request.model = Text::cut("res50");
    request.work = Iterations::new(1000.0).expect("a count");
    request.start.most_failures = 2;
    Box::new(request)
}

fn at(seconds: i64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// A journal as a head would write it: two nodes, three jobs, rounds decided by the policy, a failure and a lost node.
fn written(policy: &str) -> Vec<(Time, Record)> {
    let mut script = ScriptPolicy::load(policy, Limits::default()).expect("shipped");
    let (mut cluster, mut journal) = (empty(), Vec::new());
    let mut write = |cluster: &mut ClusterState, seconds: i64, record: Record| {
        cluster.apply(at(seconds), &record);
        journal.push((at(seconds), record));
    };
    let policy_set = Record::PolicySet {
        policy: policy.into(),
        set: Vec::new(),
        user: "ada".into(),
        digest: String::new(),
        texts: Vec::new(),
        files: Vec::new(),
    };
    write(&mut cluster, 0, policy_set);
    for node in 0..2 {
        let record = json!({ "kind": "node-joined", "node": node, "name": format!("node{node}"), "rack": 0, "has": {
            "gpu_type": "V100", "n_gpus": 4, "gpu_mem_bytes": 0,
            "host": { "cpu_micro": 24_000_000, "mem_bytes": 500_000_000_000_u64, "storage_bps": 500_000_000 },
        }});
        write(&mut cluster, 1, serde_json::from_value(record).expect("a record"));
    }
    for (job, gpus) in [(0, 1), (1, 4), (2, 2)] {
        let (job, user) = (JobId(job), "ada".to_owned());
        write(&mut cluster, 2, Record::JobReceived { job, user, key: 7, request: request(gpus) });
        write(&mut cluster, 2, Record::JobSubmitted { job });
    }
    for round in 1..=6_u64 {
        let seconds = 60 * round as i64;
        if round == 3 {
            let (job, incarnation, done) = (JobId(0), Incarnation(1), 33.3);
            let reason = "on node0 it ended with code 1".to_owned();
            write(
                &mut cluster,
                seconds,
                Record::JobRequeued { job, incarnation, done, reason, is_failure: true, not_before: None },
            );
        }
        if round == 5 {
            write(&mut cluster, seconds, Record::NodeLost { node: NodeId(1), reason: "gone".into() });
        }
        write(&mut cluster, seconds, Record::RoundBegan { round, protects: None });
        let snapshot = cluster.snapshot(at(seconds));
        let plan: Plan = script.decide(&snapshot).expect("decides");
        drop(snapshot);
        let (plan, memory) = (PlanRecord::from(&plan), script.memory());
        let planned = Record::Planned { round, plan, memory, keeps_memory: false };
        write(&mut cluster, seconds, planned);
        cluster.scheduler().assert_sane();
    }
    journal
}

#[test]
fn a_journal_read_back_from_its_text_gives_the_same_state() {
    let journal = written("las+tune");
    let (mut first, mut again) = (empty(), empty());
    for (time, record) in &journal {
        let text = serde_json::to_string(record).expect("JSON");
        let back: Record = serde_json::from_str(&text).expect("a record");
        assert_eq!(&back, record);
        let (first, again) = (first.apply(*time, record), again.apply(*time, &back));
        assert_eq!(first.orders, again.orders);
    }
    assert_eq!(first.jobs().len(), 3);
    assert_eq!(first.jobs()[&JobId(0)].n_failures, 1);
    assert_eq!(first.answered("ada", 7), Some(&[JobId(0), JobId(1), JobId(2)][..]));
    again.scheduler().assert_sane();
}

#[test]
fn the_same_policy_replays_equal_and_another_does_not() {
    for policy in ["las+tune", "fifo+proportional", "elasticflow"] {
        let journal = written(policy);
        let same = replay(&journal, &rules(), None).expect("replays");
        assert_eq!((same.n_plans, same.n_equal, same.first_difference), (6, 6, None), "{policy}");
    }
    let journal = written("las+tune");
    let other = Some(("las+proportional", &[][..]));
    let other = replay(&journal, &rules(), other).expect("replays");
    assert!(other.n_equal < other.n_plans, "{other:?}");
}

#[test]
fn a_policy_that_is_set_while_a_round_is_decided_is_the_one_that_answered() {
    let mut journal = written("elasticflow");
    // The first round again, as if las+tune had decided until it was asked.
    let position = |journal: &[(Time, Record)], kind: &str| {
        journal.iter().position(|(_, r)| r.kind() == kind).expect(kind)
    };
    let set = position(&journal, "policy-set");
    let elasticflow = journal.remove(set);
    let began = position(&journal, "round-began");
    journal.insert(began + 1, (journal[began].0, elasticflow.1));
    let (policy, user) = ("las+tune".to_owned(), "ada".to_owned());
    let earlier = Record::PolicySet {
        policy,
        set: Vec::new(),
        user,
        digest: String::new(),
        texts: Vec::new(),
        files: Vec::new(),
    };
    journal.insert(0, (at(0), earlier));
    let replayed = replay(&journal, &rules(), None).expect("replays");
    assert_eq!((replayed.n_plans, replayed.n_equal), (6, 6), "{replayed:?}");
}

#[test]
fn work_that_was_saved_is_not_taken_back_by_a_late_report() {
    let mut cluster = empty();
    let job = JobId(0);
    cluster.apply(at(0), &Record::JobReceived { job, user: "ada".into(), key: 1, request: request(1) });
    for (incarnation, done) in [(1, 50.0), (2, 80.0), (1, 50.0)] {
        let incarnation = Incarnation(incarnation);
        cluster.apply(at(1), &Record::JobStopped { job, incarnation, done });
    }
    assert_eq!(cluster.jobs()[&JobId(0)].done, 80.0);
}

#[test]
fn a_job_is_held_until_it_is_submitted_and_can_be_withdrawn_before() {
    let mut cluster = empty();
    let job = JobId(0);
    cluster.apply(at(0), &Record::JobReceived { job, user: "ada".into(), key: 1, request: request(1) });
    assert_eq!((cluster.jobs()[&JobId(0)].standing, cluster.scheduler().jobs().len()), (Standing::Held, 0));
    let applied = cluster.apply(at(1), &Record::JobCancelled { job, user: "ada".into() });
    assert!(applied.orders.is_empty() && applied.event.is_none());
    assert_eq!(cluster.jobs()[&JobId(0)].standing, Standing::Cancelled);
}
