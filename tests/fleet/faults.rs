//! Heads and agents that are killed: nothing is lost, nothing runs twice at once.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::oracle::{assert_no_doubles, oracle, submit_witnesses};
use rota_test_support::need;

const SHORT_LEASE: [&str; 8] = ["--round", "1s", "--lease", "6s", "--heartbeat", "1s", "--when-lost", "stop"];

#[test]
fn a_head_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let n_kills = if need::is_long_tier() { 20 } else { 3 };
    let mut cluster = Cluster::start(2, 4, &SHORT_LEASE);
    let per_kill = 3;
    for kill in 0..n_kills {
        submit_witnesses(&cluster, per_kill, 2);
        // Anywhere between the submission and the end of what was submitted.
        std::thread::sleep(Duration::from_millis(137 * (kill * 7 % 13)));
        cluster.kill_head();
        cluster.start_head();
        cluster.until("the head is back", |cluster| cluster.status()["is_ready"] == true);
    }
    let n_jobs = n_kills as usize * per_kill as usize;
    cluster.until_all_finished(n_jobs);
    assert_no_doubles(&cluster, n_jobs);
    assert_eq!(cluster.status()["epoch"], n_kills + 1);
}

#[test]
fn jobs_that_start_in_one_round_on_one_node_are_launched_once_each() {
    let cluster = Cluster::start(1, 4, &SHORT_LEASE);
    submit_witnesses(&cluster, 4, 1);
    cluster.until_all_finished(4);
    for job in cluster.jobs() {
        assert_eq!(job["incarnation"], 1, "{job:#}");
    }
    assert_no_doubles(&cluster, 4);
}

#[test]
fn running_jobs_do_not_notice_that_the_head_was_restarted() {
    let mut cluster = Cluster::start(1, 2, &["--round", "1s"]);
    submit_witnesses(&cluster, 2, 5);
    cluster.until("both run", |cluster| oracle(cluster).matches("begin").count() == 2);
    cluster.kill_head();
    cluster.start_head();
    cluster.until_all_finished(2);
    for job in cluster.jobs() {
        assert_eq!(job["incarnation"], 1, "{job:#}");
    }
    assert_no_doubles(&cluster, 2);
    let log = cluster.agent_log(0);
    assert!(log.contains("reset by peer"), "the new head told it that the old connection is gone:\n{log}");
}

#[test]
fn a_dead_agent_is_noticed_and_its_jobs_run_elsewhere_after_its_lease() {
    let mut cluster = Cluster::start(2, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 2, 8);
    cluster.until("both run", |cluster| oracle(cluster).matches("begin").count() == 2);
    let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
    let index = node.trim_start_matches("node").parse().expect("a number");
    cluster.kill_agent(index);
    let killed = Instant::now();
    let state_of = |cluster: &Cluster| {
        let nodes = cluster.nodes();
        nodes.iter().find(|n| n["name"] == *node).map(|n| n["state"].clone()).unwrap_or_default()
    };
    cluster.until("it is noticed", |cluster| state_of(cluster) != "up");
    // A promise to operators, but no measure of a machine that also compiles.
    if need::is_long_tier() {
        assert!(killed.elapsed() < Duration::from_secs(10), "noticed after {:?}", killed.elapsed());
    }
    cluster.until("it is lost", |cluster| state_of(cluster) == "lost");
    cluster.until_all_finished(2);
    assert_no_doubles(&cluster, 2);
    cluster.start_agent(index, 2);
    cluster.until("it is back", |cluster| state_of(cluster) == "up");
}

#[test]
fn an_agent_that_comes_back_within_its_lease_keeps_its_jobs() {
    let mut cluster = Cluster::start(1, 2, &["--round", "1s"]);
    submit_witnesses(&cluster, 2, 6);
    cluster.until("both run", |cluster| oracle(cluster).matches("begin").count() == 2);
    cluster.kill_agent(0);
    cluster.start_agent(0, 2);
    cluster.until_all_finished(2);
    for job in cluster.jobs() {
        assert_eq!(job["incarnation"], 1, "{job:#}");
    }
    assert_no_doubles(&cluster, 2);
}

#[test]
fn a_gpu_that_turns_bad_is_taken_out_of_service_and_its_nodes_other_jobs_go_on() {
    let policy = ["--policy", "fifo+proportional"];
    let cluster = Cluster::start(1, 2, &[&SHORT_LEASE[..], &policy].concat());
    submit_witnesses(&cluster, 2, 3);
    cluster.until("both run", |cluster| oracle(cluster).matches("begin").count() == 2);
    let faults = cluster.folder.path().join("node0/bad-gpus");
    std::fs::write(&faults, "1 fell off the bus\n").expect("written");
    cluster.until("it is noticed", |cluster| {
        let nodes = cluster.nodes();
        nodes[0]["state"] == "up" && nodes[0]["reason"].as_str().is_some_and(|text| text.contains("fell off"))
    });
    cluster.until_all_finished(2);
    let mut launches: Vec<_> = cluster.jobs().iter().map(|job| job["incarnation"].clone()).collect();
    launches.sort_by_key(|launch| launch.as_u64());
    assert_eq!(launches, [1, 2], "one went on, the other was launched again when a good GPU was free");
    assert_no_doubles(&cluster, 2);
    std::fs::remove_file(&faults).expect("removed");
    cluster.until("it is back", |cluster| cluster.nodes()[0]["reason"] == "");
    let events = cluster.rota(&["events"]);
    assert!(
        events.contains("gpu-lost") && events.contains("gpu-returned") && !events.contains("node-lost"),
        "{events}"
    );
}

#[test]
fn a_second_head_on_one_state_directory_is_refused() {
    let cluster = Cluster::start(1, 1, &[]);
    let (state, credentials) = (cluster.path("head"), cluster.path("pki/head"));
    let error = cluster
        .try_rota(&["head", "--listen", "127.0.0.1:0", "--state", &state, "--credentials", &credentials])
        .expect_err("refused");
    assert!(error.contains("another head uses this state directory"), "{error}");
}
