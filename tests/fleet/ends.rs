//! How jobs end: what is done is not run again, and what fails is run again only where that was asked for.

use std::path::Path;

use crate::cluster::Cluster;

/// A job that ignores the signal to stop and ends with success when a file appears. It writes a line at each start.
fn stubborn(cluster: &Cluster) -> String {
    let folder = cluster.folder.path().display();
    format!(
        "echo start >> {folder}/starts; trap '' TERM; while [ ! -e {folder}/end ]; do sleep 0.1; done; exit 0"
    )
}

fn n_starts(cluster: &Cluster) -> usize {
    let text = std::fs::read_to_string(cluster.folder.path().join("starts")).unwrap_or_default();
    text.lines().count()
}

fn let_it_end(cluster: &Cluster) {
    std::fs::write(cluster.folder.path().join("end"), "").expect("written");
}

/// Submits a stubborn job, waits until it runs, and drains its node; the node's number.
fn submit_and_drain(cluster: &Cluster) -> usize {
    cluster.rota(&["submit", "--grace", "10m", "--", "/bin/sh", "-c", &stubborn(cluster)]);
    cluster.until("it runs", |cluster| n_starts(cluster) == 1 && cluster.jobs()[0]["state"] == "running");
    let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
    cluster.rota(&["drain", &node]);
    node.trim_start_matches("node").parse().expect("a number")
}

fn assert_finished_once(cluster: &Cluster) {
    cluster.until("it is finished", |cluster| cluster.jobs()[0]["state"] == "finished");
    assert_eq!(n_starts(cluster), 1, "{:#?}", cluster.jobs());
}

#[test]
fn a_job_that_ends_with_success_though_it_was_told_to_stop_is_not_run_again() {
    let cluster = Cluster::start(2, 1, &["--round", "1s"]);
    submit_and_drain(&cluster);
    cluster.until("it was told", |cluster| {
        let text = std::fs::read_to_string(cluster.path("node0/attempts/0.1/states.jsonl"));
        let other = std::fs::read_to_string(cluster.path("node1/attempts/0.1/states.jsonl"));
        [text, other].into_iter().flatten().any(|text| text.contains("stopping"))
    });
    let_it_end(&cluster);
    assert_finished_once(&cluster);
}

#[test]
fn that_it_has_succeeded_is_known_after_the_head_was_killed_meanwhile() {
    let mut cluster = Cluster::start(2, 1, &["--round", "1s"]);
    let index = submit_and_drain(&cluster);
    cluster.kill_head();
    let_it_end(&cluster);
    let states = cluster.path(&format!("node{index}/attempts/0.1/states.jsonl"));
    cluster.until("it has ended", |_| {
        let text = std::fs::read_to_string(Path::new(&states)).unwrap_or_default();
        text.contains("ended")
    });
    cluster.start_head();
    assert_finished_once(&cluster);
}

#[test]
fn a_job_that_was_being_stopped_when_the_head_was_killed_is_not_started_elsewhere_before_it_is_gone() {
    let mut cluster = Cluster::start_behind_relays(2, 1, &["--round", "1s", "--lease", "10m"]);
    let index = submit_and_drain(&cluster);
    cluster.kill_head();
    cluster.relay(index).cut();
    cluster.set_wait_for(1);
    cluster.start_head();
    // The other node is there and free.
    cluster.until("rounds are held", |cluster| {
        let status = cluster.status();
        status["is_ready"] == true && status["n_rounds"].as_u64() > Some(3)
    });
    assert_eq!(n_starts(&cluster), 1, "{:#?}", cluster.jobs());
    cluster.relay(index).mend();
    let_it_end(&cluster);
    assert_finished_once(&cluster);
}

#[test]
fn a_failing_job_is_launched_once_unless_retries_are_asked_for() {
    let cluster = Cluster::start(1, 1, &["--round", "1s"]);
    let script = format!("echo start >> {}/starts; exit 3", cluster.folder.path().display());
    let error =
        cluster.try_rota(&["submit", "--wait", "--", "/bin/sh", "-c", &script]).expect_err("it fails");
    assert!(error.contains("ended with code 3"), "{error}");
    assert_eq!(n_starts(&cluster), 1);
}

#[test]
fn a_job_is_tried_again_after_a_wait_that_doubles_and_that_a_restart_of_the_head_does_not_shorten() {
    // Ten seconds of the head's time are two here.
    let mut cluster = Cluster::start(1, 1, &["--round", "1s", "--time-scale", "5"]);
    let script = format!("echo start >> {}/starts; exit 3", cluster.folder.path().display());
    cluster.rota(&["submit", "--retries", "2", "--", "/bin/sh", "-c", &script]);
    cluster.until("it waits", |cluster| {
        let job = &cluster.jobs()[0];
        job["state"] == "waiting" && job["reason"].as_str().is_some_and(|text| text.contains("tried again"))
    });
    cluster.kill_head();
    cluster.start_head();
    cluster.until("it is given up", |cluster| {
        cluster.jobs().first().is_some_and(|job| job["state"] == "failed")
    });
    let job = &cluster.jobs()[0];
    assert!(job["reason"].as_str().is_some_and(|text| text.contains("failed 3 times")), "{job:#}");
    assert_eq!(n_starts(&cluster), 3);
    let events = cluster.rota(&["events", "--json"]);
    let events: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let times = |kind: &str| -> Vec<f64> {
        let of_kind = events.iter().filter(|event| event["kind"] == kind);
        of_kind.map(|event| event["time_s"].as_f64().expect("a time")).collect()
    };
    let (failed, resumed) = (times("job-requeued"), times("job-resumed"));
    let waits: Vec<f64> = failed.iter().zip(&resumed).map(|(from, to)| to - from).collect();
    assert!(matches!(waits[..], [first, second] if first >= 10.0 && second >= 20.0), "{waits:?}");
}
