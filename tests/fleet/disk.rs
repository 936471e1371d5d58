//! A head whose disk refuses: what runs goes on, questions are answered, changes are refused, and nothing is lost.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::oracle::{assert_no_doubles, oracle, submit_witnesses, try_submit_witnesses};

/// Jobs would be stopped a few seconds after the head falls silent.
const SHORT_LEASE: [&str; 8] =
    ["--round", "1s", "--lease", "4s", "--heartbeat", "500ms", "--when-lost", "stop"];

/// Lets the journal grow no further.
fn fill_disk(cluster: &Cluster) {
    let log = std::fs::metadata(cluster.path("head/head.sqlite-wal")).expect("a log").len();
    cluster.limit_head_files(Some(log));
}

#[test]
fn while_the_disk_refuses_jobs_go_on_questions_are_answered_and_changes_are_refused() {
    let cluster = Cluster::start(1, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 1, 12);
    submit_witnesses(&cluster, 1, 2);
    cluster.until("both run", |cluster| oracle(cluster).matches("begin").count() == 2);
    let n_events = cluster.rota(&["events"]).lines().count();
    fill_disk(&cluster);
    let since = Instant::now();
    let error = try_submit_witnesses(&cluster, 1, 1).expect_err("refused");
    assert!(error.contains("cannot write its journal"), "{error}");
    for change in [&["cancel", "0"][..], &["drain", "node0"], &["policy", "set", "fifo"]] {
        let error = cluster.try_rota(change).expect_err("refused");
        assert!(error.contains("cannot write its journal"), "{change:?}: {error}");
    }
    // The short job ends meanwhile; its agent keeps the report.
    cluster.until("the short job has ended", |cluster| oracle(cluster).contains("end 1"));
    while since.elapsed() < Duration::from_secs(9) {
        let status = cluster.status();
        let trouble = status["trouble"].as_str().unwrap_or_default().to_owned();
        assert!(trouble.contains("head.sqlite"), "{status:#}");
        assert_eq!(cluster.nodes()[0]["state"], "up", "{:#?}", cluster.nodes());
        assert_eq!(cluster.jobs()[0]["state"], "running");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(cluster.rota(&["events"]).lines().count() >= n_events);
    assert!(cluster.rota(&["explain", "0"]).contains("runs"));
    cluster.limit_head_files(None);
    cluster.until_all_finished(2);
    for job in cluster.jobs() {
        assert_eq!(job["incarnation"], 1, "{job:#}");
    }
    assert_no_doubles(&cluster, 2);
    // The refused job was not taken in, and the next one is.
    submit_witnesses(&cluster, 1, 1);
    cluster.until_all_finished(3);
    assert_eq!(cluster.status()["trouble"], "");
}

#[test]
fn a_head_killed_while_its_disk_refuses_learns_again_what_agents_reported() {
    let mut cluster = Cluster::start(1, 1, &SHORT_LEASE);
    submit_witnesses(&cluster, 1, 2);
    cluster.until("it runs", |cluster| oracle(cluster).contains("begin 0"));
    fill_disk(&cluster);
    try_submit_witnesses(&cluster, 1, 1).expect_err("refused");
    cluster.until("it has ended", |cluster| oracle(cluster).contains("end 0"));
    cluster.kill_head();
    cluster.start_head();
    cluster.until_all_finished(1);
    assert_eq!(cluster.jobs()[0]["incarnation"], 1);
}
