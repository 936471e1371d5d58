//! A head whose state is restored from an older copy: agents know better, an operator decides, and nothing runs twice.

use std::path::Path;

use crate::cluster::Cluster;
use crate::oracle::{assert_no_doubles, has_ended, n_begun, oracle, try_submit_witnesses};
use serde_json::Value;

/// Long enough that jobs outlive an operator who starts the head twice.
const LEASE: [&str; 6] = ["--round", "1s", "--lease", "15s", "--heartbeat", "1s"];

/// Copies the files of a state whose head is dead.
fn copy_state(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Puts an older copy in the place of the head's state.
fn restore(cluster: &Cluster, copy: &Path) {
    let state = cluster.folder.path().join("head");
    std::fs::remove_dir_all(&state).expect("removed");
    copy_state(copy, &state);
}

fn witness(cluster: &Cluster, seconds: u32) -> u64 {
    try_submit_witnesses(cluster, 1, seconds).expect("submitted")[0]
}

fn job(cluster: &Cluster, id: u64) -> Value {
    cluster.jobs().into_iter().find(|job| job["id"] == id).unwrap_or(Value::Null)
}

fn runs(cluster: &Cluster, id: u64) -> bool {
    job(cluster, id)["state"] == "running"
}

fn is_refused(cluster: &Cluster) -> bool {
    cluster.status()["trouble"].as_str().is_some_and(|text| text.contains("--accept-restore"))
}

#[test]
fn an_older_copy_of_the_state_is_not_obeyed_until_it_is_accepted_and_then_nothing_is_lost_or_run_twice() {
    // A policy that lets jobs run on: whoever begins again does so because it was lost.
    let mut cluster = Cluster::start(2, 4, &[&LEASE[..], &["--policy", "fifo+no-preempt"]].concat());
    let (ends, stays) = (witness(&cluster, 6), witness(&cluster, 45));
    cluster.until("both run", |cluster| runs(cluster, ends) && runs(cluster, stays));
    // While the head runs.
    let copy = cluster.folder.path().join("copy");
    let said = cluster.rota(&["head", "backup", &cluster.path("copy"), "--state", &cluster.path("head")]);
    assert!(said.contains("epoch 1"), "{said}");
    // None of this is in the copy: an end, a job that comes and goes, a job that stays.
    let (passes, comes) = (witness(&cluster, 1), witness(&cluster, 45));
    cluster.until("one has come and gone, one stays", |cluster| {
        let is_over = |id| job(cluster, id)["state"] == "finished";
        is_over(passes) && is_over(ends) && runs(cluster, comes)
    });
    cluster.kill_head();
    restore(&cluster, &copy);
    cluster.start_head();
    cluster.until("the head says what to do", is_refused);
    let waits = witness(&cluster, 1);
    cluster.until("an agent says so too", |cluster| cluster.agent_log(0).contains("--accept-restore"));
    assert_eq!(n_begun(&cluster, waits), usize::from(waits == passes), "no order is given");
    cluster.kill_head();
    restore(&cluster, &copy);
    cluster.start_head_with(&["--accept-restore"]);
    cluster.until("what runs is taken over", |cluster| runs(cluster, stays) && runs(cluster, comes));
    assert_eq!(job(&cluster, ends)["state"], "finished", "its node remembers");
    let new: Vec<_> = (0..6).map(|_| witness(&cluster, 1)).collect();
    assert!(new[0] > comes + 1_000, "numbers are not given twice: {new:?}");
    // On both nodes: the head hears their reports again.
    cluster.until("new jobs run to their end", |cluster| {
        new.iter().all(|id| job(cluster, *id)["state"] == "finished")
    });
    cluster.until("all have ended", |cluster| cluster.jobs().iter().all(|job| job["state"] == "finished"));
    for id in [ends, stays, comes] {
        assert_eq!(
            (n_begun(&cluster, id), has_ended(&cluster, id)),
            (1, true),
            "job {id}:\n{}",
            oracle(&cluster)
        );
    }
    assert_no_doubles(&cluster, 2);
    let events = cluster.rota(&["events"]);
    for kind in ["restore-accepted", "numbers-skipped", "job-adopted", "job-recalled"] {
        assert!(events.contains(kind), "{kind}:\n{events}");
    }
    // From here on the accepted state is the one that counts, and the agents know no other.
    cluster.kill_head();
    cluster.start_head();
    cluster.until("it goes on", |cluster| cluster.status()["is_ready"] == true);
    assert_eq!(cluster.status()["trouble"], "");
    cluster.kill_head();
    restore(&cluster, &copy);
    cluster.start_head();
    cluster.until("the copy is refused again", |cluster| {
        cluster.agent_log(0).matches("serves another state").count() > 0
    });
}

#[test]
fn a_job_that_waits_in_the_copy_and_runs_in_truth_goes_on_and_a_gang_too() {
    let mut cluster = Cluster::start(2, 2, &[&LEASE[..], &["--policy", "fifo+proportional"]].concat());
    let first = witness(&cluster, 3);
    cluster.until("it runs", |cluster| runs(cluster, first));
    let mark = cluster.path("gang");
    let script = format!("echo $RANK >> {mark}; sleep 40");
    cluster.rota(&["submit", "--gpus", "4", "--time", "40s", "--", "/bin/sh", "-c", &script]);
    let gang = first + 1;
    cluster.kill_head();
    let copy = cluster.folder.path().join("copy");
    copy_state(&cluster.folder.path().join("head"), &copy);
    cluster.start_head();
    cluster.until("the gang runs", |cluster| runs(cluster, gang));
    let launch = job(&cluster, gang)["incarnation"].clone();
    cluster.kill_head();
    restore(&cluster, &copy);
    cluster.start_head_with(&["--accept-restore"]);
    cluster.until("it is taken over", |cluster| runs(cluster, gang));
    assert_eq!(job(&cluster, gang)["incarnation"], launch);
    assert_eq!(job(&cluster, first)["state"], "finished");
    cluster.until_all_finished(2);
    let ranks = std::fs::read_to_string(cluster.path("gang")).expect("written");
    assert_eq!(ranks.lines().count(), 2, "each rank began once:\n{ranks}");
    assert_no_doubles(&cluster, 1);
}

#[test]
fn a_damaged_state_is_examined_repaired_and_used_again() {
    let mut cluster = Cluster::start(1, 2, &LEASE);
    let first = witness(&cluster, 1);
    cluster.until("it is done", |cluster| job(cluster, first)["state"] == "finished");
    let state = cluster.path("head");
    let fsck = |cluster: &Cluster, more: &[&str]| {
        cluster.try_rota(&[&["head", "fsck", "--state", &state][..], more].concat())
    };
    assert!(fsck(&cluster, &[]).is_ok_and(|said| said.contains("0 faults")), "while the head runs");
    let error = fsck(&cluster, &["--repair"]).expect_err("a head uses it");
    assert!(error.contains("another head uses this state directory"), "{error}");
    cluster.kill_head();
    // As a bad disk would: one byte of the record that the job is finished.
    let copy = cluster.folder.path().join("copy");
    cluster.rota(&["head", "backup", &cluster.path("copy"), "--state", &state]);
    let file = copy.join("head.sqlite");
    let mut bytes = std::fs::read(&file).expect("read");
    let wanted = br#""kind":"job-finished""#;
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).expect("it is there");
    bytes[at + 12] = b'X';
    std::fs::write(&file, bytes).expect("written");
    restore(&cluster, &copy);
    let error = fsck(&cluster, &[]).expect_err("damaged");
    assert!(error.contains("good up to line") && error.contains("--repair"), "{error}");
    let said = fsck(&cluster, &["--repair"]).expect("repaired");
    assert!(said.contains("journal line") && said.contains("--accept-restore"), "{said}");
    assert!(fsck(&cluster, &[]).is_ok_and(|said| said.contains("0 faults")));
    cluster.start_head_with(&["--accept-restore"]);
    cluster.until("it is ready", |cluster| cluster.status()["is_ready"] == true);
    let second = witness(&cluster, 1);
    cluster.until("it works", |cluster| job(cluster, second)["state"] == "finished");
    assert!(second > first + 1_000 && n_begun(&cluster, first) == 1, "{}", oracle(&cluster));
}

#[test]
fn jobs_that_ended_while_no_head_was_there_are_over_though_the_copy_does_not_know_them() {
    let mut cluster = Cluster::start(1, 2, &LEASE);
    let copy = cluster.folder.path().join("copy");
    cluster.rota(&["head", "backup", &cluster.path("copy"), "--state", &cluster.path("head")]);
    let unknown = witness(&cluster, 4);
    cluster.until("it runs", |cluster| runs(cluster, unknown));
    cluster.kill_head();
    cluster.until("it has ended", |cluster| has_ended(cluster, unknown));
    restore(&cluster, &copy);
    cluster.start_head_with(&["--accept-restore"]);
    cluster.until("it is known again", |cluster| job(cluster, unknown)["state"] == "finished");
    assert_eq!(n_begun(&cluster, unknown), 1, "{}", oracle(&cluster));
}
