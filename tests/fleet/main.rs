//! The live cluster end to end: real processes on loopback, emulated GPUs, a user's commands.

mod accounts;
mod breaking;
#[path = "../play/browser.rs"]
mod browser;
mod cluster;
mod decider;
mod deploy;
mod disk;
mod elastic;
mod ends;
mod faults;
mod first_job;
mod forecast;
mod gpemu;
mod greedy;
mod identities;
mod joining;
mod journal;
mod memory;
mod network;
mod operate;
mod oracle;
mod page;
mod patience;
mod profile;
mod programs;
#[path = "../play/readable.rs"]
mod readable;
mod relay;
mod restores;
mod roles;
mod strangers;
mod study;
mod upkeep;
mod web;

use cluster::Cluster;

/// Rounds every 30 s of jobs' time, sixty of which are a second here.
const FAST: [&str; 6] = ["--time-scale", "60", "--round", "30s", "--profiles", "synergy"];

fn submit(cluster: &Cluster, args: &[&str]) {
    cluster.rota(&[&["submit", "--emulate"][..], args].concat());
}

#[test]
fn gangs_elastic_jobs_and_deadlines_finish_under_two_policies_and_replay_equal() {
    let (n_agents, n_gpus, copies) = (8, 8, "12");
    let cluster = Cluster::start(n_agents, n_gpus, &FAST);
    submit(&cluster, &["--model", "res50", "--gpus", "1", "--iterations", "300", "--array", copies]);
    submit(&cluster, &["--model", "res50", "--gpus", "4", "--iterations", "200", "--array", copies]);
    // A gang that fits no node alone.
    let gang = (n_gpus + 2).to_string();
    submit(&cluster, &["--gpus", &gang, "--time", "120s", "--array", copies]);
    cluster.until("a job runs", |cluster| cluster.jobs().iter().any(|job| job["state"] == "running"));
    cluster.rota(&["policy", "set", "elasticflow"]);
    submit(&cluster, &["--levels", "1,2,4", "--time", "100s", "--deadline", "10h", "--array", copies]);
    submit(&cluster, &["--gpus", "2", "--time", "60s", "--deadline", "20h", "--array", copies]);
    let n_jobs = 5 * copies.parse::<usize>().expect("a number");
    cluster.until_all_finished(n_jobs);
    let jobs = cluster.jobs();
    for job in &jobs {
        assert_eq!(job["done"], job["work"], "{job:#}");
    }
    let in_time = |job: &&serde_json::Value| job["ended_s"].as_f64() <= job["deadline_s"].as_f64();
    assert_eq!(jobs.iter().filter(|job| job["deadline_s"].is_f64()).filter(in_time).count(), 24);
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--json"]);
    let replayed: serde_json::Value = serde_json::from_str(&replayed).expect("JSON");
    assert!(replayed["plans"].as_u64() > Some(2), "{replayed}");
    assert_eq!(replayed["equal"], replayed["plans"], "{replayed}");
}

#[test]
fn commands_answer_and_refuse_in_plain_words() {
    let cluster = Cluster::start(2, 2, &["--round", "1s"]);
    let nodes = cluster.rota(&["nodes"]);
    assert!(nodes.contains("node0") && nodes.contains("up"), "{nodes}");
    assert!(cluster.rota(&["top", "--once"]).contains("policy las+tune"));
    let out = cluster.rota(&[
        "submit",
        "--gpus",
        "1",
        "--time",
        "1m",
        "--wait",
        "--",
        "/bin/sh",
        "-c",
        "echo rank $RANK of $WORLD_SIZE with $ROTA_CPUS CPUs",
    ]);
    assert_eq!(out, "job 0\n");
    // Half of the node's GPUs, and half of its CPUs, though nobody said what the job needs.
    assert_eq!(cluster.rota(&["logs", "0"]), "rank 0 of 1 with 12 CPUs\n");
    assert!(cluster.rota(&["explain", "0"]).contains("finished"));
    let error = cluster.try_rota(&["submit", "--gpus", "1", "--time", "1m", "--wait", "--", "/bin/false"]);
    assert!(error.as_ref().is_err_and(|e| e.contains("ended with code 1")), "{error:?}");
    cluster.rota(&["submit", "--gpus", "99", "--time", "1m", "--", "/bin/true"]);
    cluster.until("too large a job is declined", |cluster| cluster.jobs()[2]["state"] == "declined");
    let refused: [(&[&str], &str); 9] = [
        (&["jobs", "77"], "no such job"),
        (&["drain", "node1", "--undo"], "node1 is not drained"),
        (&["submit", "--array", "0", "--", "/bin/true"], "--array"),
        (&["cancel", "77"], "no such job"),
        (&["logs", "77"], "no such job"),
        (&["drain", "nowhere"], "no such node"),
        (&["policy", "set", "nonsense"], "nonsense"),
        (&["submit", "--emulate", "--gpus", "1"], "amount of work"),
        (&["submit", "--emulate", "--model", "nonsense", "--iterations", "9"], "no model `nonsense`"),
    ];
    for (args, word) in refused {
        let error = cluster.try_rota(args).expect_err("refused");
        assert!(error.contains(word), "{args:?}: {error}");
    }
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("it runs", |cluster| cluster.jobs()[3]["state"] == "running");
    assert!(cluster.rota(&["whatif", "-p", "fifo+proportional"]).contains("nothing would change"));
    let node = cluster.jobs()[3]["nodes"][0].as_str().expect("a node").to_owned();
    cluster.rota(&["drain", &node]);
    cluster.until("it moved away", |cluster| {
        let job = &cluster.jobs()[3];
        job["state"] == "running" && job["nodes"][0] != *node
    });
    cluster.rota(&["cancel", "3"]);
    cluster.until("it is gone", |cluster| cluster.nodes().iter().all(|node| node["n_busy"] == 0));
    assert!(cluster.rota(&["events"]).contains("job-cancelled"));
}

#[test]
fn a_script_is_reloaded_when_it_changes_and_kept_when_the_new_text_is_bad() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("mine.rhai");
    let policies = folder.path().display().to_string();
    let cluster = Cluster::start(1, 2, &["--round", "1s", "--policy-dir", &policies]);
    std::fs::write(&script, "fn order(jobs, now) { rank(jobs.arrival) }\n").expect("written");
    cluster.rota(&["policy", "set", "mine.rhai"]);
    // With no job there to decide about, made-up ones show what is wrong; no round is waited for.
    std::fs::write(&script, "fn order(jobs, now) { rank(jobs.folly) }\n").expect("written");
    cluster.until("the head complains before any job is there", |cluster| {
        cluster.status()["trouble"].as_str().is_some_and(|text| text.contains("folly"))
    });
    let error = cluster.try_rota(&["policy", "reload"]).expect_err("it is bad");
    assert!(error.contains("a dry run with made-up jobs failed") && error.contains("folly"), "{error}");
    std::fs::write(&script, "fn order(jobs, now) { rank(jobs.arrival) }\n").expect("written");
    cluster.until("the first text is taken again", |cluster| cluster.status()["trouble"] == "");
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("it runs", |cluster| cluster.jobs()[0]["state"] == "running");
    std::fs::write(&script, "fn order(jobs, now) { rank(jobs.nonsense) }\n").expect("written");
    cluster.until("the head complains", |cluster| {
        cluster.status()["trouble"].as_str().is_some_and(|text| text.contains("nonsense"))
    });
    assert_eq!(cluster.jobs()[0]["state"], "running", "what runs is kept");
    // The old text stays in use, and its good decisions do not hide that the new one is bad.
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("the old text decided", |cluster| cluster.jobs()[1]["state"] == "running");
    let top = cluster.rota(&["top", "--once"]);
    let named = top.lines().find(|line| line.starts_with("trouble: ")).unwrap_or_else(|| panic!("{top}"));
    assert!(named.contains("mine.rhai") && named.contains("nonsense"), "{top}");
    std::fs::write(&script, "fn order(jobs, now) { rank(-jobs.arrival) }\n").expect("written");
    cluster.until("the good text is taken", |cluster| cluster.status()["trouble"] == "");
    assert_eq!(cluster.jobs()[0]["state"], "running");
}

#[test]
fn jobs_that_take_turns_change_places_at_rounds_and_not_as_fast_as_they_start() {
    let cluster = Cluster::start(1, 1, &["--round", "1s"]);
    cluster.rota(&["submit", "--array", "3", "--", "/bin/sleep", "600"]);
    cluster.until("somebody had a second turn", |cluster| {
        cluster.jobs().iter().any(|job| job["incarnation"].as_u64() >= Some(2))
    });
    let status = cluster.status();
    let (rounds, now_s) = (status["n_rounds"].as_f64(), status["now_s"].as_f64());
    // One for the arrivals, and one for each multiple of their length.
    let most = now_s.map(|now_s| now_s + 2.0);
    assert!(rounds > Some(1.0) && rounds <= most, "{status:#}");
}

#[test]
fn stopping_a_local_cluster_stops_its_jobs_at_once_and_they_go_on_when_it_starts_again() {
    let home = tempfile::tempdir().expect("a folder");
    let rota = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(args)
            .env("ROTA_HOME", home.path())
            .env_remove("ROTA_HEAD")
            .output()
            .expect("rota runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "rota {args:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mark = home.path().join("pid").display().to_string();
    let is_alive = || {
        let pid = std::fs::read_to_string(&mark).unwrap_or_default();
        !pid.trim().is_empty() && std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
    };
    let until_it_runs = || {
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !is_alive() {
            assert!(std::time::Instant::now() < limit, "the job does not run");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let up = ["up", "1", "--gpus", "1", "--round", "1s", "--log", "warn"];
    rota(&up);
    let pids = std::fs::read_to_string(home.path().join("pids")).expect("a list");
    let commands = pids.lines().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")));
    let commands: Vec<_> = commands.map(|command| command.expect("it runs")).collect();
    assert_eq!(commands.len(), 2, "a head and an agent");
    assert!(commands.iter().all(|command| command.contains("\0--log\0warn\0")), "{commands:?}");
    rota(&["submit", "--", "/bin/sh", "-c", &format!("echo $$ > {mark}; exec sleep 600")]);
    until_it_runs();
    rota(&["up", "--stop"]);
    assert!(!is_alive(), "nothing is left running");
    rota(&up);
    until_it_runs();
    let jobs = rota(&["jobs"]);
    assert!(jobs.contains('?') && jobs.contains("node0"), "nobody knows how long it runs:\n{jobs}");
    rota(&["up", "--stop"]);
    assert!(!is_alive(), "nothing is left running");
}
