//! A journal that is kept short: what leaves it, what stays, and that heads and replays go on from what is left.

use rota_core::ids::{Incarnation, JobId};
use rota_core::plan::Plan;
use rota_core::policy::Policy as _;
use rota_core::round;
use rota_core::time::{Span, Time};
use rota_head::replay::replay;
use rota_head::scribe::{Scribe, state_of};
use rota_head::{
    ClusterState, EventFilter, HistoryFilter, KeepJournal, PlanRecord, ProfileText, Reader, Record, Rules,
    Standing, read_journal,
};
use rota_scripts::{Limits, ScriptPolicy};
use rota_transport::message::JobRequest;
use rota_transport::value::{Iterations, Text};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::oracle::{assert_no_doubles, submit_witnesses};

/// An image every few lines, and next to nothing kept.
const SHORT: KeepJournal = KeepJournal { span: Span::from_secs(120), bytes: 1_000_000_000, image_every: 12 };

fn rules() -> Rules {
    Rules::plain(ProfileText::load("synergy").expect("built in"))
}

fn at(seconds: i64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn node_joined(node: u32) -> Record {
    let record = json!({ "kind": "node-joined", "node": node, "name": format!("node{node}"), "rack": 0, "has": {
        "gpu_type": "V100", "n_gpus": 8, "gpu_mem_bytes": 0,
        "host": { "cpu_micro": 48_000_000, "mem_bytes": 500_000_000_000_u64, "storage_bps": 500_000_000 },
    }});
    serde_json::from_value(record).expect("a record")
}

fn received(job: JobId, user: &str) -> Record {
    let mut request = JobRequest::emulated(1);
    request.model = Text::cut("res50");
    request.work = Iterations::new(1e9).expect("a count");
    Record::JobReceived { job, user: user.into(), key: job.0.into(), request: Box::new(request) }
}

/// Rounds a minute apart, held with a real policy: jobs arrive, run for a few minutes and finish. Every record is also
/// given to `take`, after it was written.
fn write_rounds(scribe: &mut Scribe, policy: &str, n_rounds: u64, mut take: impl FnMut(Time, &Record)) {
    let mut script = ScriptPolicy::load(policy, Limits::default()).expect("shipped");
    let mut write = |scribe: &mut Scribe, now: Time, records: Vec<Record>| {
        for record in &records {
            scribe.record(now, record.clone());
        }
        scribe.write().expect("written");
        records.iter().for_each(|record| take(now, record));
    };
    let set = Record::PolicySet {
        policy: policy.into(),
        set: Vec::new(),
        user: "ada".into(),
        digest: String::new(),
        texts: Vec::new(),
        files: Vec::new(),
    };
    write(scribe, at(0), vec![set, node_joined(0)]);
    for round in 1..=n_rounds {
        let now = at(60 * round as i64);
        let job = scribe.cluster().next_job();
        let user = if round % 2 == 0 { "ada" } else { "bob" };
        let mut records = vec![received(job, user), Record::JobSubmitted { job }];
        let jobs = scribe.cluster().scheduler().jobs();
        let old = (0..jobs.len()).filter(|row| (now - jobs.started(*row)) > Span::from_secs(290));
        let ends = old.filter(|row| !jobs.allocation(*row).is_empty());
        let finished = |row: usize| Record::JobFinished {
            job: jobs.id(row),
            incarnation: jobs.incarnation(row),
            done: 5.0,
        };
        records.extend(ends.map(finished));
        records.push(Record::RoundBegan { round, protects: Some(Span::ZERO) });
        write(scribe, now, records);
        let mut copy = scribe.cluster().clone();
        let decision = round::decide(&copy.snapshot(now), &mut script).expect("decides");
        let (planned, applied) = copy.plan(now, round, decision, script.memory());
        let starts = applied.orders.into_iter().filter_map(|order| match order {
            rota_core::event::Command::Start { job, incarnation, .. } => {
                Some(Record::JobStarted { job, incarnation })
            }
            _ => None,
        });
        let records: Vec<_> = std::iter::once(planned).chain(starts).collect();
        write(scribe, now, records);
    }
}

#[test]
fn lines_leave_the_journal_and_jobs_and_events_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scribe = Scribe::open(folder.path(), &rules(), SHORT).expect("opened");
    write_rounds(&mut scribe, "fifo+proportional", 60, |_, _| {});
    let reader = Reader::open(folder.path()).expect("opened");
    let first = reader.journal(0, 1).expect("read").first().map(|(line, _, _)| *line).expect("a line");
    assert!(first > scribe.last_line() - 60, "line {first} of {} is the first", scribe.last_line());
    assert!(scribe.cluster().jobs().len() < 20, "jobs that have ended have left the memory");
    let ended = reader.history(&HistoryFilter::default()).expect("read");
    assert!(ended.len() > 50 && ended.iter().all(|job| job.standing == Standing::Finished));
    assert!(ended.iter().all(|job| (299.0..301.0).contains(&job.gpu_s)), "{:?}", ended[0]);
    assert!(ended.windows(2).all(|pair| pair[0].id < pair[1].id));
    let of_job = EventFilter { job: Some(JobId(3)), ..EventFilter::default() };
    let kinds: Vec<_> = reader.events(&of_job).expect("read").into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["job-received", "job-started", "job-finished"]);
    let of_user = EventFilter { user: Some("ada".into()), until: Some(at(600)), ..EventFilter::default() };
    let of_user = reader.events(&of_user).expect("read");
    assert!(of_user.len() > 8 && of_user.iter().all(|event| event.job.is_none_or(|job| job.0 % 2 == 1)));
    let (last_line, cluster) = (scribe.last_line(), scribe.cluster().image().without_ended());
    drop((scribe, reader));
    let (line, again) = state_of(folder.path(), &rules()).expect("read");
    assert_eq!((line, again.image().without_ended()), (last_line, cluster));
}

#[test]
fn a_log_cut_off_anywhere_is_read_to_what_its_lines_add_up_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scribe = Scribe::open(folder.path(), &rules(), SHORT).expect("opened");
    let mut written = Vec::new();
    write_rounds(&mut scribe, "las+tune", 25, |time, record| written.push((time, record.clone())));
    // As a head that was killed leaves it: with its write-ahead log, of which some end is missing.
    let log = std::fs::read(folder.path().join("head.sqlite-wal")).expect("a log");
    let cut_to = tempfile::tempdir().expect("a folder");
    let mut states = std::collections::BTreeMap::new();
    let mut state = ClusterState::new(&rules()).expect("good rules");
    states.insert(0, state.image());
    for (index, (time, record)) in written.iter().enumerate() {
        state.apply(*time, record);
        states.insert(index as u64 + 1, state.image().without_ended());
    }
    let mut seen = std::collections::BTreeSet::new();
    for part in 0..60 {
        let to = cut_to.path().join(part.to_string());
        std::fs::create_dir(&to).expect("made");
        std::fs::copy(folder.path().join("head.sqlite"), to.join("head.sqlite")).expect("copied");
        std::fs::write(to.join("head.sqlite-wal"), &log[..log.len() * part / 59]).expect("written");
        let (line, state) = state_of(&to, &rules()).expect("read");
        let expected = states.get(&line).unwrap_or_else(|| panic!("line {line} was never written"));
        assert_eq!(state.image().without_ended(), *expected, "cut to {part} of 59: line {line}");
        let ended = Reader::open(&to).expect("opened").history(&HistoryFilter::default()).expect("read");
        let n_received = written[..line as usize].iter().filter(|(_, r)| r.kind() == "job-received").count();
        assert_eq!(ended.len() + state.image().n_jobs(), n_received, "every job is known: line {line}");
        seen.insert(line);
    }
    assert!(seen.len() > 10, "cuts show different states: {seen:?}");
}

#[test]
fn a_replay_begins_where_a_pruned_journal_does() {
    for policy in ["las+tune", "chronus"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut scribe = Scribe::open(folder.path(), &rules(), SHORT).expect("opened");
        write_rounds(&mut scribe, policy, 40, |_, _| {});
        drop(scribe);
        let journal = read_journal(folder.path()).expect("read");
        assert!(matches!(journal.first(), Some((_, Record::Image { .. }))), "{:?}", journal.first());
        let replayed = replay(&journal, &rules(), None).expect("replays");
        assert_eq!((replayed.n_equal, replayed.first_difference), (replayed.n_plans, None), "{policy}");
        assert!((2..40).contains(&replayed.n_plans), "{policy}: {} plans are left", replayed.n_plans);
    }
}

#[test]
fn a_round_that_changes_nothing_costs_little_however_many_jobs_run() {
    let mut cluster = ClusterState::new(&rules()).expect("good rules");
    (0..50).for_each(|node| drop(cluster.apply(at(0), &node_joined(node))));
    for job in (0..400).map(JobId) {
        cluster.apply(at(1), &received(job, "ada"));
        cluster.apply(at(1), &Record::JobSubmitted { job });
    }
    let mut script = ScriptPolicy::load("las+tune", Limits::default()).expect("shipped");
    let mut planned = |seconds: i64, round: u64| {
        cluster.apply(at(seconds), &Record::RoundBegan { round, protects: None });
        let decision = round::decide(&cluster.snapshot(at(seconds)), &mut script).expect("decides");
        let record = cluster.plan(at(seconds), round, decision, script.memory()).0;
        (serde_json::to_string(&record).expect("JSON"), cluster.scheduler().jobs().n_running())
    };
    let (first, n_running) = planned(60, 1);
    assert!(n_running == 400 && first.len() > 10_000, "the first one starts all of them");
    let (second, n_running) = planned(120, 2);
    assert_eq!(n_running, 400);
    assert!(second.len() < 200, "{} bytes: {}", second.len(), &second[..200]);
}

#[test]
fn plans_and_progress_in_the_words_of_earlier_versions_are_still_read() {
    let mut cluster = ClusterState::new(&rules()).expect("good rules");
    let slice = json!({ "node": 0, "gpus": 1, "share": 1000,
        "host": { "cpu_micro": 1_000_000, "mem_bytes": 1_000_000_000_u64, "storage_bps": 0 } });
    let plan = |run: Value| json!({ "kind": "planned", "round": 1, "plan": { "verdicts": [[0, null]], "run": run, "wake": "next-round" } });
    let lines = [
        json!({ "kind": "head-started", "epoch": 1, "version": "0.1.0" }),
        json!({ "kind": "policy-set", "policy": "fifo", "set": [], "user": "ada", "digest": "" }),
        serde_json::to_value(node_joined(0)).expect("JSON"),
        serde_json::to_value(received(JobId(0), "ada")).expect("JSON"),
        json!({ "kind": "job-submitted", "job": 0 }),
        json!({ "kind": "round-began", "round": 1 }),
        plan(json!([[0, { "slices": [slice] }]])),
        json!({ "kind": "job-progressed", "job": 0, "incarnation": 1, "done": 50.0 }),
    ];
    let mut apply = |seconds: i64, line: &Value| {
        let record: Record = serde_json::from_value(line.clone()).expect("a record");
        let applied = cluster.apply(at(seconds), &record);
        assert!(applied.refused.is_none(), "{line}: {:?}", applied.refused);
        (cluster.scheduler().jobs().n_running(), cluster.done(JobId(0)))
    };
    for (index, line) in lines.iter().enumerate() {
        apply(index as i64, line);
    }
    let mut kept = plan(json!([[0, null]]));
    kept["plan"]["verdicts"] = json!([]);
    assert_eq!(apply(7, &kept), (1, 50.0));
    let mut stopped = plan(json!([]));
    stopped["plan"]["verdicts"] = json!([]);
    assert_eq!(apply(7, &stopped).0, 0, "a job that an earlier version did not list stops");
}

#[test]
fn a_plan_without_what_stays_is_the_same_plan() {
    let mut cluster = ClusterState::new(&rules()).expect("good rules");
    cluster.apply(at(0), &node_joined(0));
    for job in (0..12).map(JobId) {
        cluster.apply(at(1), &received(job, "ada"));
        cluster.apply(at(1), &Record::JobSubmitted { job });
    }
    let mut script = ScriptPolicy::load("las+tune", Limits::default()).expect("shipped");
    for round in 1..30 {
        let now = at(600 * round);
        let plan: Plan = script.decide(&cluster.snapshot(now)).expect("decides");
        let whole = PlanRecord::from(&plan);
        let short = whole.clone().without_what_stays(cluster.scheduler().jobs());
        assert_eq!(short.whole(cluster.scheduler().jobs()), whole.whole(cluster.scheduler().jobs()));
        let mut other = cluster.clone();
        let record = |plan| Record::Planned { round: 1, plan, memory: String::new(), keeps_memory: false };
        let (a, b) = (cluster.apply(now, &record(whole)), other.apply(now, &record(short)));
        assert_eq!((&a.orders, a.refused), (&b.orders, b.refused));
        assert_eq!(cluster.image(), other.image());
    }
}

#[test]
fn a_head_that_keeps_its_journal_short_is_killed_again_and_again_and_loses_nothing() {
    let short = [
        "--round",
        "1s",
        "--lease",
        "6s",
        "--heartbeat",
        "1s",
        "--image-every",
        "25",
        "--keep-journal",
        "3s",
    ];
    let mut cluster = Cluster::start(2, 4, &short);
    for kill in 0..4_u64 {
        submit_witnesses(&cluster, 3, 2);
        std::thread::sleep(std::time::Duration::from_millis(437 * (kill * 7 % 5)));
        cluster.kill_head();
        cluster.start_head();
        cluster.until("the head is back", |cluster| cluster.status()["is_ready"] == true);
    }
    cluster.until_all_finished(12);
    assert_no_doubles(&cluster, 12);
    // What follows makes lines: those of the first jobs are gone by the end.
    submit_witnesses(&cluster, 8, 1);
    cluster.until_all_finished(20);
    let first_line = |cluster: &Cluster| {
        let reader = Reader::open(&cluster.folder.path().join("head")).expect("opened");
        reader.journal(0, 1).expect("read").first().map(|(line, _, _)| *line)
    };
    cluster.until("lines have left the journal", |cluster| {
        submit_witnesses(cluster, 1, 0);
        first_line(cluster) > Some(40)
    });
    let explained = cluster.rota(&["explain", "0"]);
    assert!(explained.contains("finished after"), "{explained}");
    cluster.rota(&["logs", "0"]);
    assert!(cluster.try_rota(&["cancel", "0"]).expect_err("it is over").contains("has ended"));
    let events = cluster.rota(&["events", "--json"]);
    assert!(events.contains("job 0 is finished") && events.contains("job 19 is finished"), "{events}");
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--json"]);
    let replayed: Value = serde_json::from_str(&replayed).expect("JSON");
    assert_eq!(replayed["equal"], replayed["plans"], "{replayed}");
}

#[test]
fn a_policy_file_that_is_broken_or_gone_does_not_keep_a_head_from_starting() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("mine.rhai");
    let good = "fn order(jobs, now) { rank(jobs.arrival) }\n";
    std::fs::write(&script, good).expect("written");
    let policy = script.display().to_string();
    let mut cluster = Cluster::start(1, 2, &["--round", "1s", "--policy", &policy]);
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("it runs", |cluster| cluster.jobs()[0]["state"] == "running");
    for bad in [Some("fn order(jobs, now) { rank(jobs.arrival \n"), None] {
        cluster.kill_head();
        match bad {
            Some(text) => std::fs::write(&script, text).expect("written"),
            None => std::fs::remove_file(&script).expect("removed"),
        }
        cluster.start_head();
        cluster.until("the head is back", |cluster| cluster.status()["is_ready"] == true);
        cluster.until("it says what is wrong", |cluster| {
            cluster.status()["trouble"].as_str().is_some_and(|text| text.contains("mine.rhai"))
        });
        cluster.rota(&["submit", "--gpus", "1", "--", "/bin/true"]);
        let newest = cluster.jobs().len() - 1;
        cluster.until("the text in the journal decides", |cluster| {
            cluster.jobs()[newest]["state"] == "finished"
        });
    }
    assert_eq!(cluster.jobs()[0]["incarnation"], 1, "what ran was kept");
    std::fs::write(&script, good).expect("written");
    cluster.until("the file that is back is used", |cluster| cluster.status()["trouble"] == "");
}

#[test]
fn a_policys_memory_survives_a_restart_that_names_the_policy_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("counting.rhai");
    let counting = "fn order(jobs, now) {
        this.n = (this.n ?? 0) + 1;
        if this.n % 16 < 8 { rank(-jobs.priority) } else { rank(jobs.priority) }
    }\n";
    std::fs::write(&script, counting).expect("written");
    let mut cluster = Cluster::start(1, 1, &["--round", "1s", "--policy", &script.display().to_string()]);
    for priority in ["1", "2"] {
        cluster.rota(&["submit", "--emulate", "--gpus", "1", "--time", "12s", "--priority", priority]);
    }
    cluster.until("the policy has decided a few times", |cluster| {
        cluster.status()["n_rounds"].as_u64() >= Some(5)
    });
    cluster.kill_head();
    cluster.start_head();
    cluster.until_all_finished(2);
    cluster.kill_head();
    let journal = read_journal(&cluster.folder.path().join("head")).expect("read");
    let memories = journal.iter().filter_map(|(_, record)| match record {
        Record::Planned { memory, .. } => {
            Some(memory.chars().filter(char::is_ascii_digit).collect::<String>())
        }
        _ => None,
    });
    let counts: Vec<u64> = memories.filter_map(|digits| digits.parse().ok()).collect();
    let expected: Vec<u64> = (1..=counts.len() as u64).collect();
    assert_eq!(counts, expected, "it went on counting");
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--json"]);
    let replayed: Value = serde_json::from_str(&replayed).expect("JSON");
    assert_eq!(replayed["equal"], replayed["plans"], "{replayed}");
}

#[test]
fn rules_that_change_hold_for_the_jobs_that_are_there() {
    let mut cluster = ClusterState::new(&rules()).expect("good rules");
    cluster.apply(at(0), &node_joined(0));
    let job = JobId(0);
    cluster.apply(at(1), &received(job, "ada"));
    cluster.apply(at(1), &Record::JobSubmitted { job });
    let quotas = vec![("bob".to_owned(), 3), ("ada".to_owned(), 2)];
    let new = Rules { quotas, round: Span::from_secs(5), ..rules() };
    let started =
        serde_json::from_value::<Record>(json!({ "kind": "head-started", "epoch": 2, "version": "0",
        "rules": serde_json::to_value(&new).expect("JSON") }));
    cluster.apply(at(2), &started.expect("a record"));
    let snapshot = cluster.snapshot(at(3));
    assert_eq!(snapshot.round, Span::from_secs(5));
    let tenant = snapshot.jobs.spec(0).tenant;
    assert_eq!(snapshot.tenants.get(tenant.index()).map(String::as_str), Some("ada"));
    assert_eq!(snapshot.guards.quota_gpus.get(&tenant), Some(&2));
    assert_eq!(cluster.incarnation(job), Some(Incarnation(0)));
}
