//! What operators and users expect of any scheduler: time limits, exit codes, dependencies, holds, requeues, priorities, cancelling
//! many jobs at once, and drains that let jobs end.

use rota_core::ids::{Incarnation, JobId};
use rota_core::time::{Span, Time};
use rota_head::{ClusterState, ProfileText, Record, Rules, Standing};
use rota_transport::message::JobRequest;
use rota_transport::value::Wait;
use serde_json::Value;

use crate::cluster::Cluster;

const SLEEP: [&str; 3] = ["--", "/bin/sleep", "600"];

fn state(cluster: &Cluster, job: usize) -> String {
    cluster.jobs().get(job).map_or(String::new(), |job| job["state"].as_str().unwrap_or_default().to_owned())
}

fn until_state(cluster: &Cluster, job: usize, wanted: &str) {
    cluster.until(&format!("job {job} is {wanted}"), |cluster| state(cluster, job) == wanted);
}

fn field(cluster: &Cluster, job: usize, field: &str) -> Value {
    cluster.jobs()[job][field].clone()
}

fn submit(cluster: &Cluster, args: &[&str], command: &[&str]) {
    cluster.rota(&[&["submit"][..], args, command].concat());
}

#[test]
fn a_time_limit_stops_a_job_once_and_for_all_also_over_a_restart_of_the_head() {
    let mut cluster = Cluster::start(1, 2, &["--round", "1s"]);
    let mark = cluster.path("alive");
    // It would go on for ever; the estimate alone stops nothing.
    let forever = format!("echo $$ > {mark}; while :; do sleep 0.1; done");
    let limited = ["submit", "--time", "1s", "--time-limit", "3s", "--wait", "--", "/bin/sh", "-c", &forever];
    assert_eq!(cluster.exit_code(&limited), Some(124));
    assert_eq!(state(&cluster, 0), "time-limit");
    assert_eq!((field(&cluster, 0, "incarnation"), field(&cluster, 0, "n_failures")), (1.into(), 0.into()));
    let pid = std::fs::read_to_string(&mark).expect("it ran");
    let process = format!("/proc/{}", pid.trim());
    cluster.until("it is gone", |_| !std::path::Path::new(&process).exists());
    submit(&cluster, &["--time", "1s"], &SLEEP);
    submit(&cluster, &["--time-limit", "8s"], &SLEEP);
    until_state(&cluster, 1, "running");
    until_state(&cluster, 2, "running");
    let explained = cluster.rota(&["explain", "2"]);
    assert!(explained.contains("its time limit is"), "{explained}");
    cluster.kill_head();
    cluster.start_head();
    until_state(&cluster, 2, "time-limit");
    let reason = field(&cluster, 2, "reason");
    assert!(reason.as_str().is_some_and(|text| text.starts_with("reached its time limit")), "{reason}");
    assert_eq!(state(&cluster, 1), "running", "an estimate is not a limit");
    let error = cluster.try_rota(&[&["submit", "--time-limit", "0s"][..], &SLEEP].concat());
    assert!(error.as_ref().is_err_and(|error| error.contains("time limit is 0")), "{error:?}");
}

#[test]
fn a_time_limit_counts_over_all_launches() {
    let at = |seconds: i64| Time::ZERO + Span::from_secs(seconds);
    let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
    let mut cluster = ClusterState::new(&rules).expect("built in");
    let mut request = JobRequest::emulated(1);
    request.conditions.time_limit = Some(Wait::new(Span::from_secs(60)).expect("a time"));
    let (job, request) = (JobId(0), Box::new(request));
    cluster.apply(at(0), &Record::JobReceived { job, user: "ada".into(), key: 1, request });
    cluster.apply(at(0), &Record::JobSubmitted { job });
    let (first, second) = (Incarnation(1), Incarnation(2));
    assert_eq!(cluster.next_limit(), None, "waiting does not count");
    cluster.apply(at(10), &Record::JobStarted { job, incarnation: first });
    assert_eq!(cluster.next_limit(), Some((at(70), job)));
    cluster.apply(at(30), &Record::JobStopped { job, incarnation: first, done: 0.0 });
    assert_eq!(cluster.next_limit(), None);
    cluster.apply(at(100), &Record::JobStarted { job, incarnation: second });
    assert_eq!(cluster.next_limit(), Some((at(140), job)), "20 of 60 seconds are used up");
    cluster.apply(at(140), &Record::JobTimedOut { job, ran: Span::from_secs(60) });
    assert_eq!(
        (cluster.next_limit(), cluster.job(job).map(|job| job.standing)),
        (None, Some(Standing::TimeLimit))
    );
}

#[test]
fn waiting_for_a_job_returns_what_it_ended_with() {
    let cluster = Cluster::start(1, 1, &["--round", "1s"]);
    let returns = |script: &str| {
        let args = ["submit", "--wait", "--most-failures", "1", "--", "/bin/sh", "-c", script];
        cluster.exit_code(&args)
    };
    assert_eq!(returns("exit 0"), Some(0));
    assert_eq!(returns("exit 7"), Some(7));
    assert_eq!(returns("kill -9 $$"), Some(128 + 9));
    assert_eq!(cluster.exit_code(&["submit", "--wait", "--gpus", "9", "--", "/bin/true"]), Some(125));
    let missing = ["submit", "--wait", "--most-failures", "1", "--", "/no/such/program"];
    assert_eq!(cluster.exit_code(&missing), Some(125));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| cluster.exit_code(&[&["submit", "--wait"][..], &SLEEP].concat()));
        until_state(&cluster, 5, "running");
        cluster.rota(&["cancel", "5"]);
        assert_eq!(waiting.join().expect("it ends"), Some(130));
    });
}

#[test]
fn jobs_wait_for_others_and_are_declined_when_that_cannot_be_any_more() {
    let mut cluster = Cluster::start(1, 4, &["--round", "1s"]);
    let gate = cluster.path("gate");
    let ends_with = |code: u32| format!("while [ ! -e {gate} ]; do sleep 0.1; done; exit {code}");
    let (good, bad) = (ends_with(0), ends_with(1));
    submit(&cluster, &["--array", "2"], &["--", "/bin/sh", "-c", &good]);
    submit(&cluster, &["--most-failures", "1"], &["--", "/bin/sh", "-c", &bad]);
    let run = ["--", "/bin/true"];
    submit(&cluster, &["--after-ok", "0-1"], &run);
    submit(&cluster, &["--after-ok", "2"], &run);
    submit(&cluster, &["--after-ok", "4", "--array", "2"], &run);
    submit(&cluster, &["--after", "0-2"], &run);
    cluster.until("the first run", |cluster| (0..3).all(|job| state(cluster, job) == "running"));
    assert!((3..8).all(|job| state(&cluster, job) == "held"), "{:#?}", cluster.jobs());
    let explained = cluster.rota(&["explain", "3"]);
    assert!(explained.contains("waits for job 0 to finish, and for 1 more jobs"), "{explained}");
    let unknown = cluster.try_rota(&["submit", "--after", "99", "--", "/bin/true"]);
    assert!(unknown.is_err_and(|error| error.contains("no such job")));
    cluster.kill_head();
    cluster.start_head();
    std::fs::write(&gate, "").expect("written");
    for (job, end) in [(3, "finished"), (4, "declined"), (5, "declined"), (6, "declined"), (7, "finished")] {
        until_state(&cluster, job, end);
    }
    assert_eq!(field(&cluster, 4, "reason"), "job 2, which had to finish first, failed");
    assert_eq!(field(&cluster, 5, "reason"), "job 4, which had to finish first, was declined");
    assert!(cluster.rota(&["explain", "4"]).contains("job 2, which had to finish first, failed"));
    // What has happened already is not waited for; what cannot be any more is refused at once.
    assert_eq!(cluster.exit_code(&["submit", "--wait", "--after-ok", "0,1", "--", "/bin/true"]), Some(0));
    let error = cluster.try_rota(&["submit", "--after-ok", "2", "--", "/bin/true"]).expect_err("never");
    assert!(error.contains("waits for job 2 to finish, which has ended otherwise: failed"), "{error}");
}

#[test]
fn held_jobs_do_not_run_until_they_are_released_and_requeued_ones_run_again() {
    let mut cluster = Cluster::start(1, 1, &["--round", "1s", "--policy", "fifo+proportional"]);
    cluster.issue("bob", "submit");
    cluster.issue("eve", "submit");
    let bob = |args: &[&str]| cluster.try_rota_as("bob", args);
    bob(&[&["submit", "--hold"][..], &SLEEP].concat()).expect("submitted");
    bob(&[&["submit"][..], &SLEEP].concat()).expect("submitted");
    until_state(&cluster, 1, "running");
    assert_eq!(
        (state(&cluster, 0).as_str(), field(&cluster, 0, "reason")),
        ("held", "on hold by bob".into())
    );
    bob(&["requeue", "1"]).expect("requeued");
    cluster.until("it runs again", |cluster| {
        state(cluster, 1) == "running" && field(cluster, 1, "incarnation").as_u64() == Some(2)
    });
    assert_eq!(bob(&["hold", "1"]).expect("held"), "job 1 is on hold\n");
    until_state(&cluster, 1, "held");
    assert_eq!(bob(&["release", "0"]).expect("released"), "job 0 is released\n");
    until_state(&cluster, 0, "running");
    for (args, word) in [
        (&["hold", "1"][..], "they are already"),
        (&["release", "0"], "is on hold"),
        (&["requeue", "1"], "none of the jobs named runs"),
        (&["priority", "1", "5"], "only operators"),
    ] {
        let error = bob(args).expect_err("refused");
        assert!(error.contains(word), "{args:?}: {error}");
    }
    let error = cluster.try_rota_as("eve", &["hold", "0"]).expect_err("not hers");
    assert!(error.contains("no job of this number"), "{error}");
    // An operator's hold is not bob's to release.
    cluster.rota(&["hold", "0"]);
    let error = bob(&["release", "0"]).expect_err("held by an operator");
    assert!(error.contains("held by an operator"), "{error}");
    cluster.kill_head();
    cluster.start_head();
    cluster.until("the head is back", |cluster| cluster.status()["is_ready"] == true);
    assert_eq!((state(&cluster, 0).as_str(), state(&cluster, 1).as_str()), ("held", "held"));
    cluster.rota(&["release", "0-1"]);
    until_state(&cluster, 0, "running");
    assert_eq!(field(&cluster, 0, "incarnation"), 2, "launches are counted on");
}

#[test]
fn priorities_order_the_queue_and_only_operators_raise_them() {
    let cluster = Cluster::start(1, 1, &["--round", "1s", "--policy", "las+proportional"]);
    cluster.issue("bob", "submit");
    cluster.rota(&[&["submit", "--array", "3"][..], &SLEEP].concat());
    until_state(&cluster, 0, "running");
    let error = cluster.try_rota_as("bob", &[&["submit", "--priority", "1"][..], &SLEEP].concat());
    assert!(error.as_ref().is_err_and(|error| error.contains("only operators")), "{error:?}");
    cluster.rota(&["priority", "2", "7"]);
    cluster.rota(&["priority", "1", "-3"]);
    assert_eq!((field(&cluster, 2, "priority"), field(&cluster, 1, "priority")), (7.into(), (-3).into()));
    until_state(&cluster, 2, "running");
    assert_ne!(state(&cluster, 1), "running");
    assert!(cluster.rota(&["events"]).contains("job 2 has priority 7, set by ada"));
}

#[test]
fn jobs_are_cancelled_by_range_array_name_and_user() {
    let cluster = Cluster::start(1, 1, &["--round", "1s"]);
    for user in ["bob", "eve"] {
        cluster.issue(user, "submit");
    }
    let submit_as = |user: &str, args: &[&str]| {
        cluster.try_rota_as(user, &[&["submit"][..], args, &SLEEP].concat()).expect("submitted");
    };
    submit_as("bob", &["--array", "4", "--name", "sweep"]);
    submit_as("bob", &["--array", "3", "--name", "other"]);
    submit_as("eve", &["--array", "3", "--name", "sweep"]);
    let bob = |args: &[&str]| cluster.try_rota_as("bob", args);
    assert_eq!(bob(&["cancel", "0-1"]).expect("cancelled"), "2 jobs are cancelled: 0-1\n");
    assert_eq!(bob(&["cancel", "--array", "5"]).expect("cancelled"), "3 jobs are cancelled: 4-6\n");
    assert!(bob(&["cancel", "--user", "eve"]).expect_err("hers").contains("only operators"));
    assert!(bob(&["cancel", "0"]).expect_err("over").contains("job 0 has ended"));
    assert!(bob(&["cancel", "0-1"]).expect_err("over").contains("no job that has not ended"));
    // A range leaves out what is not bob's.
    assert_eq!(bob(&["cancel", "3-9", "--name", "sweep"]).expect("cancelled"), "job 3 is cancelled\n");
    assert_eq!(cluster.rota(&["cancel", "--user", "eve", "--name", "sweep"]), "3 jobs are cancelled: 7-9\n");
    let left: Vec<_> = cluster
        .jobs()
        .into_iter()
        .filter(|job| job["state"] != "cancelled")
        .map(|job| job["id"].clone())
        .collect();
    assert_eq!(left, [2]);
}

#[test]
fn a_node_drained_when_idle_lets_its_jobs_end_and_takes_no_new_ones() {
    // A policy that lets jobs take turns: what runs on the node must not make room for others there.
    let mut cluster = Cluster::start(2, 1, &["--round", "1s", "--policy", "las+proportional"]);
    let gate = cluster.path("gate");
    let waits = format!("while [ ! -e {gate} ]; do sleep 0.1; done");
    submit(&cluster, &["--array", "2"], &["--", "/bin/sh", "-c", &waits]);
    until_state(&cluster, 0, "running");
    until_state(&cluster, 1, "running");
    let node = field(&cluster, 0, "nodes")[0].as_str().expect("a node").to_owned();
    cluster.rota(&["drain", &node, "--when-idle", "--reason", "a new fan"]);
    submit(&cluster, &["--array", "3"], &SLEEP);
    let of_node = |cluster: &Cluster| {
        let nodes = cluster.nodes();
        nodes.into_iter().find(|found| found["name"] == *node).expect("the node")
    };
    let draining = of_node(&cluster);
    assert_eq!((&draining["state"], &draining["reason"]), (&"draining".into(), &"a new fan".into()));
    cluster
        .until("the other node changed hands", |cluster| (2..5).any(|job| state(cluster, job) == "running"));
    cluster.kill_head();
    cluster.start_head();
    cluster.until("the head is back", |cluster| cluster.status()["is_ready"] == true);
    let rounds = cluster.status()["n_rounds"].as_u64();
    cluster.until("later rounds", |cluster| cluster.status()["n_rounds"].as_u64() > rounds.map(|n| n + 3));
    assert_eq!((state(&cluster, 0).as_str(), field(&cluster, 0, "incarnation")), ("running", 1.into()));
    assert_eq!(of_node(&cluster)["jobs"], serde_json::json!([0]));
    std::fs::write(&gate, "").expect("written");
    cluster.until("the node is idle and out of service", |cluster| of_node(cluster)["state"] == "drained");
    assert_eq!(
        (state(&cluster, 0).as_str(), &of_node(&cluster)["reason"]),
        ("finished", &"a new fan".into())
    );
    let events = cluster.rota(&["events"]);
    assert!(events.contains("takes no new jobs, closed by ada: a new fan"), "{events}");
    cluster.rota(&["drain", &node, "--undo"]);
    cluster.until("jobs run there again", |cluster| of_node(cluster)["n_busy"] == 1);
    assert_eq!(of_node(&cluster)["reason"], "");
}

#[test]
fn history_is_filtered_grouped_and_written_with_wall_clock_times() {
    let cluster = Cluster::start(1, 2, &["--round", "1s"]);
    cluster.issue("bob", "submit");
    let run = |user: &str, name: &str, code: &str| {
        let script = format!("sleep 0.2; exit {code}");
        let args = ["submit", "--most-failures", "1", "--name", name, "--", "/bin/sh", "-c", &script];
        cluster.try_rota_as(user, &args).expect("submitted");
    };
    run("ada", "good", "0");
    run("ada", "bad", "3");
    run("bob", "good", "0");
    cluster.until("all have ended", |cluster| {
        let jobs = cluster.jobs();
        jobs.len() == 3 && jobs.iter().all(|job| job["state"] == "finished" || job["state"] == "failed")
    });
    let history = |user: &str, args: &[&str]| {
        cluster.try_rota_as(user, &[&["history"][..], args].concat()).expect("shown")
    };
    let ids = |args: &[&str]| {
        let rows: Vec<Value> =
            serde_json::from_str(&history("ada", &[&["--json"][..], args].concat())).expect("JSON");
        rows.iter().map(|row| row["job"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), [0, 1, 2]);
    assert_eq!(ids(&["--user", "bob"]), [2]);
    assert_eq!(ids(&["--state", "failed"]), [1]);
    assert_eq!(ids(&["--name", "good", "--tenant", "ada"]), [0]);
    assert_eq!(ids(&["--model", "res50"]), Vec::<u64>::new());
    assert_eq!(ids(&["--from", "1d", "--until", "2100-01-01"]), [0, 1, 2]);
    assert_eq!(ids(&["--until", "1d"]), Vec::<u64>::new());
    let rows: Vec<Value> = serde_json::from_str(&history("ada", &["--json"])).expect("JSON");
    let year =
        rows[0]["ended"].as_str().and_then(|time| time.get(..4)).and_then(|year| year.parse::<u32>().ok());
    assert!(year >= Some(2025), "a date of the calendar: {}", rows[0]);
    assert!(rows[0]["gpu_hours"].as_f64() > Some(0.2 / 3600.0), "{}", rows[0]);
    let grouped = history("ada", &["--by", "user,day", "--csv"]);
    let lines: Vec<_> = grouped.lines().collect();
    assert_eq!(lines.first(), Some(&"user,day,jobs,gpu_hours"));
    assert!(lines.len() >= 3 && lines.iter().any(|line| line.starts_with("bob,20")), "{grouped}");
    let file = cluster.path("jobs.parquet");
    assert!(history("ada", &["--out", &file]).contains("3 rows"));
    assert!(std::fs::read(&file).expect("written").starts_with(b"PAR1"));
    // People see their own.
    assert!(!history("bob", &[]).contains("ada"));
    let error = cluster.try_rota_as("bob", &["history", "--user", "ada"]).expect_err("not his");
    assert!(error.contains("only operators"), "{error}");
}

#[test]
fn a_job_that_leaves_nothing_leaves_no_folder() {
    let cluster = Cluster::start(1, 1, &["--round", "1s"]);
    // Without a directory of its own, a job runs in a folder that the agent makes.
    let run = |command: &[&str]| {
        cluster.exit_code(&[&["submit", "--wait", "--workdir", "", "--"][..], command].concat())
    };
    assert_eq!(run(&["/bin/true"]), Some(0));
    assert_eq!(run(&["/usr/bin/touch", "kept"]), Some(0));
    let home = |job: u32| cluster.folder.path().join("node0/work").join(job.to_string());
    cluster.until("the empty folder is gone", |_| !home(0).exists());
    assert!(home(1).join("kept").exists(), "what a job wrote stays");
}

#[test]
fn units_name_options_that_the_programs_have() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let agent = rota_test_support::need::agent(env!("CARGO_BIN_EXE_rota"));
    let rota = std::path::PathBuf::from(env!("CARGO_BIN_EXE_rota"));
    for (unit, program, command) in [
        ("head/systemd/rota-head.service", rota, Some("head")),
        ("agent/systemd/rota-agent.service", agent, None),
    ] {
        let text = std::fs::read_to_string(root.join(unit)).expect("the unit");
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
        let help = std::process::Command::new(&program).args(command).arg("--help").output().expect("help");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for option in start.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{unit}: {option} is not an option");
        }
    }
}

#[test]
fn every_line_of_a_log_has_its_date() {
    let cluster = Cluster::start(1, 1, &[]);
    let has_date = |line: &str| {
        let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
        let start: String = line.chars().take(20).map(shape).collect();
        start == "0000-00-00T00:00:00."
    };
    for log in [cluster.head_log(), cluster.agent_log(0)] {
        assert!(log.lines().count() > 0 && log.lines().all(has_date), "{log}");
    }
}

#[test]
fn commands_do_not_wait_for_late_packets() {
    let cluster = Cluster::start(0, 1, &[]);
    let call = || {
        let began = std::time::Instant::now();
        cluster.rota(&["jobs"]);
        began.elapsed()
    };
    // The fastest of many is what the command itself takes, however busy the machine is. Waiting for late packets took 80 ms.
    let fastest = (0..60).map(|_| call()).min().expect("some");
    assert!(fastest < std::time::Duration::from_millis(60), "{fastest:?}");
}
