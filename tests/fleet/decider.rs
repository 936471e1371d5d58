//! Policies and solvers cannot hold the head: they decide in processes of their own, which are killed when they take too long.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Cluster;

/// Solves a market-split model, which no solver finishes, as soon as there is a second job.
const HARD: &str = r#"fn order(jobs, now) {
    if jobs.len < 2 { return rank(jobs.arrival); }
    let m = milp();
    let x = m.binary("x", 60);
    let seed = 7;
    for row in 0..7 {
        let numbers = [];
        let total = 0;
        for i in 0..60 {
            seed = (seed * 1103 + 12345) % 65537;
            numbers.push(seed % 100);
            total += seed % 100;
        }
        m.add(sum(x * numbers) == (total - total % 2) / 2);
    }
    m.maximize(sum(x));
    loop { m.solve(#{ nodes: 1000000000, gap: 0 }); }
}
"#;
/// The line of its `solve`.
const SOLVES: &str = "hard.rhai:17";

fn write(cluster: &Cluster, name: &str, text: &str) -> String {
    let path = cluster.path(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn sleeper(cluster: &Cluster) -> usize {
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.jobs().len() - 1
}

fn until_it_runs(cluster: &Cluster, job: usize) {
    cluster.until("the job runs", |cluster| cluster.jobs()[job]["state"] == "running");
}

/// A command of a user, in the background.
fn in_background(cluster: &Cluster, user: &str, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(args)
        .env("ROTA_HEAD", cluster.address())
        .env("ROTA_CREDENTIALS", cluster.path(&format!("pki/users/{user}")))
        .env("ROTA_HOME", cluster.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill runs");
    assert!(sent.success(), "{name} {pid}");
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn a_policy_that_cannot_decide_is_refused_with_its_line_and_jobs_start_all_the_while() {
    let cluster = Cluster::start(1, 8, &["--policy", "fifo+proportional"]);
    let first = sleeper(&cluster);
    until_it_runs(&cluster, first);
    let memory_mb = cluster.head_memory_mb();
    let bad = [
        ("loop", "fn order(jobs, now) {\n    loop { }\n}\n", "loop.rhai"),
        ("bomb", "fn order(jobs, now) {\n    let a = [0];\n    loop { a += a; }\n}\n", "bomb.rhai"),
        ("text", "fn order(jobs, now) {\n    let t = \"x\";\n    loop { t += t; }\n}\n", "text.rhai"),
        ("deep", "fn f(n) { f(n + 1) }\nfn order(jobs, now) { f(0) }\n", "deep.rhai"),
        ("throws", "fn order(jobs, now) {\n    throw \"no\";\n}\n", "throws.rhai"),
    ];
    for (name, text, place) in bad {
        let script = write(&cluster, &format!("{name}.rhai"), text);
        let error = cluster.try_rota(&["policy", "set", &script]).expect_err("refused");
        assert!(error.contains("a dry run failed") && error.contains(place), "{name}: {error}");
        let job = sleeper(&cluster);
        until_it_runs(&cluster, job);
    }
    assert_eq!(cluster.status()["policy"], "fifo+proportional");
    assert_eq!(cluster.status()["trouble"], "");
    let grown_mb = cluster.head_memory_mb() - memory_mb;
    assert!(grown_mb < 64.0, "the head grew by {grown_mb} MB");
}

#[test]
fn a_solver_that_does_not_end_is_killed_and_named_while_jobs_and_nodes_go_on() {
    let cluster =
        Cluster::start(1, 2, &["--round", "1s", "--heartbeat", "500ms", "--policy", "fifo+proportional"]);
    let first = sleeper(&cluster);
    until_it_runs(&cluster, first);
    // With one job it decides; with two, a dry run would refuse it.
    let script = write(&cluster, "hard.rhai", HARD);
    cluster.rota(&["policy", "set", &script]);
    let second = sleeper(&cluster);
    cluster.until("the policy is named", |cluster| {
        let trouble = cluster.status()["trouble"].as_str().unwrap_or_default().to_owned();
        trouble.contains("had not decided after 2 s") && trouble.contains(SOLVES)
    });
    assert_eq!(cluster.jobs()[first]["state"], "running", "what runs goes on");
    assert_ne!(cluster.jobs()[second]["state"], "running", "nobody decided that it runs");
    let events = cluster.rota(&["events"]);
    assert!(events.contains("policy-failed") && events.contains(SOLVES), "{events}");
    let error = cluster.try_rota(&["policy", "set", &script]).expect_err("a dry run takes too long");
    assert!(error.contains("had not decided after 2 s") && error.contains(SOLVES), "{error}");
    cluster.rota(&["policy", "set", "fifo+proportional"]);
    until_it_runs(&cluster, second);
    let events = cluster.rota(&["events"]);
    assert!(!events.contains("node-lost"), "heartbeats were answered: {events}");
    assert_eq!(cluster.status()["trouble"], "");
}

#[test]
fn questions_of_a_user_do_not_delay_a_new_job() {
    // A question may take as long as a round, here a minute.
    let mut cluster = Cluster::start(1, 2, &["--round", "1m", "--policy", "fifo+proportional"]);
    cluster.issue("olga", "operate");
    for _ in 0..2 {
        let job = sleeper(&cluster);
        until_it_runs(&cluster, job);
    }
    let script = write(&cluster, "hard.rhai", HARD);
    let asked = Instant::now();
    let mut questions: Vec<Child> = Vec::new();
    for user in ["olga", "olga", "olga", "ada"] {
        questions.push(in_background(&cluster, user, &["whatif", "-p", &script]));
    }
    cluster.until("two of them are looked into", |cluster| cluster.deciders().len() == 3);
    cluster.rota(&["cancel", "0"]);
    cluster.rota(&["submit", "--gpus", "1", "--time", "1m", "--wait", "--", "/bin/true"]);
    let took = asked.elapsed();
    for question in &mut questions {
        let ended = question.try_wait().expect("it is ours");
        assert!(ended.is_none(), "the job ended before any question was answered, after {took:?}");
    }
    assert!(cluster.deciders().len() <= 3, "one for rounds and two for questions");
    // Its children end with the head, even in the middle of a solve.
    let children = cluster.deciders();
    cluster.kill_head();
    cluster.until("no process is left", |_| !children.iter().any(|pid| is_alive(*pid)));
    for mut question in questions {
        let _ = question.kill();
        let _ = question.wait();
    }
    cluster.start_head();
}

#[test]
fn a_decider_that_is_killed_or_stopped_is_started_again() {
    let cluster = Cluster::start(1, 4, &["--round", "1s", "--policy", "fifo+proportional"]);
    let job = sleeper(&cluster);
    until_it_runs(&cluster, job);
    for name in ["-KILL", "-ABRT", "-STOP"] {
        let [pid] = cluster.deciders()[..] else { panic!("{:?}", cluster.deciders()) };
        signal(pid, name);
        let job = sleeper(&cluster);
        until_it_runs(&cluster, job);
        cluster.until("the old process is gone", |_| !is_alive(pid));
    }
    assert_eq!(cluster.deciders().len(), 1);
    cluster.until("all is well", |cluster| cluster.status()["trouble"] == "");
}

#[test]
fn memory_of_a_policy_is_limited() {
    let cluster = Cluster::start(1, 2, &["--policy", "fifo+proportional", "--policy-memory", "600MB"]);
    let job = sleeper(&cluster);
    until_it_runs(&cluster, job);
    let [pid] = cluster.deciders()[..] else { panic!("{:?}", cluster.deciders()) };
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it lives");
    let line = limits.lines().find(|line| line.starts_with("Max address space")).expect("a line");
    assert!(line.contains("600000000"), "{line}");
    let refused = cluster.try_rota(&["head", "--policy-memory", "1MB"]).expect_err("too little");
    assert!(refused.contains("512MB"), "{refused}");
}

#[test]
fn a_text_that_is_refused_is_named_until_it_is_mended_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("mine.rhai");
    let good = "fn order(jobs, now) { rank(jobs.arrival) }\n";
    std::fs::write(&script, good).expect("written");
    let policies = folder.path().display().to_string();
    let mut cluster = Cluster::start(1, 2, &["--round", "1s", "--policy-dir", &policies]);
    cluster.rota(&["policy", "set", "mine.rhai"]);
    std::fs::write(&script, "fn order(jobs, now) { rank(jobs.folly) }\n").expect("written");
    // Before a restart "the old text stays in use", after it "the text in the journal is used": both say what is wrong.
    let is_named = |cluster: &Cluster| {
        cluster.status()["trouble"].as_str().is_some_and(|text| text.contains("no field `folly`"))
    };
    cluster.until("the text is refused", is_named);
    cluster.kill_head();
    cluster.start_head();
    cluster.until("the new head names it", is_named);
    let error = cluster.try_rota(&["policy", "reload"]).expect_err("it is still bad");
    assert!(error.contains("folly"), "{error}");
    cluster.until("it is still named", is_named);
    cluster.kill_head();
    // Mended while no head ran.
    std::fs::write(&script, good).expect("written");
    cluster.start_head();
    cluster.until("nothing is wrong any more", |cluster| cluster.status()["trouble"] == "");
}

#[test]
fn a_quota_is_the_reason_that_a_live_job_waits() {
    let cluster = Cluster::start(1, 4, &["--policy", "fifo", "--quota", "ada=1"]);
    cluster.issue("olga", "operate");
    let first = sleeper(&cluster);
    until_it_runs(&cluster, first);
    sleeper(&cluster);
    cluster
        .try_rota_as("olga", &["submit", "--gpus", "3", "--time", "1h", "--", "/bin/sleep", "600"])
        .expect("submitted");
    until_it_runs(&cluster, 2);
    let text = cluster.rota(&["explain", "1"]);
    assert!(text.contains("it waits for its tenant's quota: the jobs of `ada` may hold 1 GPU and"), "{text}");
    assert!(text.contains("(job 0 1)"), "{text}");
    let limit = Instant::now() + Duration::from_secs(3);
    while Instant::now() < limit {
        assert_ne!(cluster.jobs()[1]["state"], "running", "the quota holds");
    }
}
