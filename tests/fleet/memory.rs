//! A policy with private memory on a live cluster: what it remembers survives a head that is killed, and a replay of the
//! journal remembers the same.

use serde_json::Value;

use crate::cluster::Cluster;

/// Counts its decisions: for seven the highest priority goes first, for the next eight the lowest, and so on.
const COUNTING: &str = "fn order(jobs, now) {
    this.n = (this.n ?? 0) + 1;
    if this.n % 16 < 8 { rank(-jobs.priority) } else { rank(jobs.priority) }
}
";

/// How many decisions the policy remembered after each plan in the journal.
fn counts(cluster: &Cluster) -> Vec<u64> {
    let file = cluster.path("journal.jsonl");
    cluster.rota(&["replay", &cluster.path("head"), "--journal-out", &file]);
    let text = std::fs::read_to_string(&file).expect("a journal");
    let plans = text.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        line.as_array().and_then(|cells| cells.last()).filter(|record| record["kind"] == "planned").cloned()
    });
    let remembered = plans.filter_map(|plan| plan["memory"].as_str().map(str::to_owned));
    let numbers = remembered.map(|memory| memory.chars().filter(char::is_ascii_digit).collect::<String>());
    numbers.filter_map(|digits| digits.parse().ok()).collect()
}

#[test]
fn a_policys_memory_goes_on_counting_over_a_killed_head_and_in_a_replay() {
    let mut cluster = Cluster::start(1, 1, &["--round", "1s"]);
    let script = cluster.path("counting.rhai");
    std::fs::write(&script, COUNTING).expect("written");
    cluster.rota(&["policy", "set", &script]);
    for priority in ["1", "2"] {
        cluster.rota(&["submit", "--emulate", "--gpus", "1", "--time", "12s", "--priority", priority]);
    }
    // In the middle of the decisions in which the lowest goes first: a policy that forgot would turn round.
    cluster.until("the policy has changed its mind", |cluster| {
        cluster.status()["n_rounds"].as_u64() >= Some(11)
            && cluster.jobs().iter().any(|job| job["id"] == 0 && job["state"] == "running")
    });
    cluster.kill_head();
    let before = counts(&cluster);
    assert!(before.len() >= 2, "{before:?}");
    cluster.start_head();
    cluster.until_all_finished(2);
    cluster.kill_head();
    let after = counts(&cluster);
    assert!(after.len() > before.len(), "plans were accepted after the restart: {before:?}, {after:?}");
    let expected: Vec<u64> = (1..=after.len() as u64).collect();
    assert_eq!(after, expected, "every accepted plan counted once, none twice, none forgotten");
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--json"]);
    let replayed: Value = serde_json::from_str(&replayed).expect("JSON");
    assert_eq!(replayed["equal"], replayed["plans"], "{replayed}");
    let without = cluster.rota(&["replay", &cluster.path("head"), "-p", "fifo", "--json"]);
    let without: Value = serde_json::from_str(&without).expect("JSON");
    assert!(without["equal"].as_u64() < without["plans"].as_u64(), "the memory matters: {without}");
}
