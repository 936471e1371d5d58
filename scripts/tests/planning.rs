//! Planning ahead in scripts: plans by hand, growth, what is remembered, what is refused, and that it all counts as work.

mod common;

use rota_core::check::check;
use rota_core::plan::Plan;
use rota_core::policy::Policy;
use rota_core::snapshot::Snapshot;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::{parse, run};
use rota_scripts::{Limits, ScriptPolicy};

use common::policy;

fn instant() -> Snapshot {
    snapshot(Size { n_nodes: 2, n_old: 12, n_new: 6 })
}

fn decide(text: &str) -> Plan {
    let plan = policy(text, Limits::default()).decide(&instant()).unwrap_or_else(|error| panic!("{error}"));
    check(&instant(), plan.clone()).unwrap_or_else(|violation| panic!("{violation}"));
    plan
}

/// The message of an `allocate` with this body, without the place and what comes after the first line.
fn refused(body: &str) -> String {
    let text = format!("fn allocate(view) {{\nlet jobs = view.jobs;\nlet none = jobs.held * 0;\n{body}\n}}");
    let error = policy(&text, Limits::default()).decide(&instant()).expect_err("it is refused");
    let line = error.message.lines().next().unwrap_or_default().to_owned();
    line.split_once(": ").map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

#[test]
fn plans_by_hand_are_kept_apart_and_seen() {
    let plan = decide(
        "fn allocate(view) {
            let job = view.jobs[0];
            let t = view.timeline();
            let all = t.free(view.now);
            let share = t.share_until(job, view.now + 1e9);
            let held = t.reserve(job, share, view.now, view.now + 600.0);
            print(`${all} ${share} ${held.free(view.now)} ${held.free(view.now + 600.0)} ${held.start(job) == view.now}`);
            print(`${held.release(job).free(view.now)} ${t.share_until(job, view.now)}`);
            view.fill(rank(view.jobs.arrival)).gpus(held.gpus).give(\"fair_share\")
        }",
    );
    let numbers: Vec<&str> = plan.notes[0].split(' ').collect();
    let number = |index: usize| numbers[index].parse::<i64>().expect("a number");
    assert_eq!((number(2), number(3)), (number(0) - number(1), number(0)), "{:?}", plan.notes);
    assert_eq!(numbers[4], "true");
    assert_eq!(plan.notes[1], format!("{} ", number(0)), "no share is enough by now");
    assert_eq!(plan.run.len(), 1, "{:?}", plan.run);
}

#[test]
fn what_cannot_be_planned_is_refused_in_the_words_of_scripts() {
    let t = "let t = view.timeline();\nlet job = jobs[0];\n";
    let said = |body: &str| refused(&format!("{t}{body}"));
    assert_eq!(
        said("t.reserve(job, 1000, 0.0, 60.0)"),
        "reserve: job 0 cannot have 1000 GPUs from 0 s to 60 s: only 16 GPUs are free all through it"
    );
    assert_eq!(said("t.reserve(job, 1, 60.0, 0.0)"), "reserve: 1 GPUs from 60 s to 0 s cannot be reserved");
    assert_eq!(said("t.release(job)"), "release: job 0 is not planned on this timeline");
    assert_eq!(
        said("t.reserve_gangs(rank(jobs.arrival), \"many\")"),
        "reserve_gangs: how many may wait is a whole number from 0 on, or () for all, got a String"
    );
    assert_eq!(
        said("t.reserve_least(rank(jobs.deadline)).grow(\"gpu_tme\")"),
        "grow: \"gpu_tme\" is not a criterion: did you mean `gpu_time`?"
    );
    assert_eq!(
        said("t.reserve_least(rank(jobs.deadline)).grow(3)"),
        "grow: the worth of a level is a closure `|steps|` or a word, got a whole number"
    );
    assert_eq!(
        said("t.follow(rank(jobs.deadline), \"nonsense\")"),
        "follow: this text was not made by `memory` of a Timeline"
    );
    assert_eq!(
        said("t.verdicts()"),
        "verdicts: for `admit` only, which is asked about the jobs that these are on"
    );
    let said = |body: &str| refused(&format!("{t}let jobs = view.jobs;\n{body}"));
    assert_eq!(
        said("none.grow(|steps| 3)"),
        "grow: the closure |steps| must return a Column, one number for each step, got a whole number"
    );
    assert_eq!(
        said("none.grow(|steps| steps.next / (steps.at * 0) * 0)"),
        "grow: what job 0 gains from 0 to 1 GPUs is not a number (NaN)"
    );
    assert_eq!(
        said("none.grow(|job, at, next| \"x\")"),
        "grow: the closure |job, at, next| must return a number, got a String for job 0"
    );
    assert_eq!(
        said("none.grow(|steps| steps.next, #{ tak: 1 })"),
        "grow: `tak` is not an option: did you mean `take`?"
    );
    assert_eq!(
        said("none.grow(|steps| steps.next, #{ take: 0.5 })"),
        "grow: `take` must be a whole number of GPUs, got 0.5"
    );
    assert_eq!(
        said("(none + 0.5).grow(|steps| steps.next)"),
        "grow: 0.5 GPUs for job 0 is not a whole number of GPUs"
    );
    assert_eq!(said("jobs.rate(none - 1)"), "rate: -1 GPUs for job 0 is not a whole number of GPUs");
    assert_eq!(
        said("none.grow(|steps| rank(steps.jobs.deadline))"),
        "rank: these are steps of jobs, not jobs: they can only be computed with"
    );
    assert_eq!(
        said("none.grow(|steps| steps.later)"),
        "steps without plans have no later level: grow a Timeline"
    );
    assert_eq!(
        said("none.grow(|steps| jobs.gpus)"),
        "grow: the closure returned a Column of 18 jobs, expected one of the 18 steps: take numbers of jobs from `steps.jobs`"
    );
    assert_eq!(
        said("none.grow(|a, b| a)"),
        "grow: the closure takes `|steps|` or `|job, at, next|`, not 2 arguments"
    );
    assert_eq!(
        said("jobs.filter(jobs.gpus > 0).rate(view.everyone.gpus)"),
        "rate: a Column of 18 jobs for a set of 18: take both from the same `jobs`"
    );
}

#[test]
fn levels_are_columns() {
    let plan = decide(
        "fn allocate(view) {
            let jobs = view.jobs;
            let up = jobs.level_above(jobs.held * 0);
            print(`${(up == jobs.min_gpus).sum()} ${jobs.level_below(up).sum()} ${(jobs.rate(up) > 0).sum()} ${jobs.rate(up * 0).sum()}`);
            print(`${(jobs.restart_cost >= 0).sum()} ${(jobs.level_above(jobs.max_gpus) == jobs.max_gpus).sum()}`);
            view.fill(view.queue)
        }",
    );
    assert_eq!(plan.notes, ["18.0 0.0 18.0 0.0", "18.0 18.0"]);
}

#[test]
fn planning_counts_as_work() {
    for body in [
        "loop { view.timeline().reserve_gangs(rank(jobs.arrival), ()).free(view.now); }",
        "loop { none.grow(|steps| steps.next - steps.at); }",
        "loop { none.grow(|job, at, next| 1.0); }",
        "loop { jobs.rate(none); }",
        "loop { view.timeline().share_until(jobs[0], 1e12); }",
        "let t = view.timeline(); let at = view.now; loop { t = t.reserve(jobs[0], 1, at, at + 60.0); at += 60.0; }",
        "loop { view.timeline().reserve_least(rank(jobs.deadline)).memory; }",
        "loop { view.timeline().reserve_least(rank(jobs.deadline)).fits(jobs[0], rank(view.everyone.deadline)); }",
    ] {
        let text =
            format!("fn allocate(view) {{\nlet jobs = view.jobs;\nlet none = jobs.held * 0;\n{body}\n}}");
        let limits = Limits { operations: 200_000, ..Limits::default() };
        let error = policy(&text, limits).decide(&instant()).expect_err("it ends");
        assert!(error.message.contains("used more than 200000 operations"), "{body}: {}", error.message);
    }
}

#[test]
fn verdicts_in_bulk_are_those_reached_one_by_one() {
    // The first newcomers are judged by themselves, so the others are judged together with those of them that were let in.
    let verdicts = |bulk_from: usize| {
        let text = format!(
            "fn admit(job, view) {{
                let ahead = view.timeline().reserve_least(rank(view.jobs.deadline));
                let order = rank(view.everyone.deadline);
                if job.id >= {bulk_from} {{ ahead.verdicts(order) }} else {{ ahead.verdict(job, order) }}
            }}"
        );
        let mut jobs = "scenario: newcomers\ncluster 1 nodes, 8 gpus, 16 cpus, 64 GB\n".to_owned();
        for job in 0..12 {
            let (work, deadline) = (900 + 170 * ((job * 7) % 5), 900 + 130 * ((job * 5) % 9));
            jobs.push_str(&format!("job j{job} speeds=1:1,2:1.8,4:3 work={work} deadline={deadline}\n"));
        }
        let scenarios =
            parse(&format!("{jobs}policy mine\nrounds 1\n----\n")).unwrap_or_else(|error| panic!("{error}"));
        run(&scenarios[0], &mut policy(&text, Limits::default())).actual
    };
    let one_by_one = verdicts(99);
    assert!(one_by_one[0].contains("declined") && one_by_one[0].contains("waits"), "{one_by_one:?}");
    for bulk_from in [0, 3, 7, 11] {
        assert_eq!(verdicts(bulk_from), one_by_one, "from {bulk_from} on");
    }
}

#[test]
fn a_round_plans_once() {
    // The same jobs in the same order are planned when newcomers are judged and again when GPUs are given out.
    let operations = |second: &str| {
        let text = format!(
            "fn admit(job, view) {{ view.timeline().reserve_least(rank(view.jobs.arrival)).verdicts(rank(view.everyone.arrival)) }}
             fn allocate(view) {{
                let ahead = view.timeline().reserve_least({second});
                view.fill(view.queue).gpus(ahead.gpus).give(\"fair_share\")
             }}"
        );
        let mut policy = policy(&text, Limits::default());
        policy.decide(&snapshot(Size { n_nodes: 8, n_old: 300, n_new: 20 })).expect("it decides");
        policy.operations()
    };
    let (same, other) = (operations("rank(view.jobs.arrival)"), operations("rank(-view.jobs.arrival)"));
    assert!(same + 1_000 < other, "{same} operations, {other} where the order is another");
}

#[test]
fn elasticflow_remembers_the_plans_of_all_its_jobs() {
    const N_JOBS: usize = 1_500;
    let mut text = "scenario: many\ncluster 300 nodes, 8 gpus, 16 cpus, 64 GB\n".to_owned();
    for job in 0..N_JOBS {
        text.push_str(&format!("job j{job} speeds=1:1,2:1.8 work=3000 deadline={}\n", 9_000 + job));
    }
    text.push_str("policy elasticflow\nrounds 1\n----\n");
    let scenarios = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut policy = ScriptPolicy::load("elasticflow", Limits::default()).expect("a shipped policy");
    let report = run(&scenarios[0], &mut policy);
    assert!(!report.actual[0].contains("declined"), "{}", &report.actual[0][..200]);
    let memory = policy.memory();
    assert_eq!(memory.matches('=').count(), N_JOBS, "a plan for each");
    assert!(memory.len() < 60 * N_JOBS, "{} bytes", memory.len());
    let mut again = ScriptPolicy::load("elasticflow", Limits::default()).expect("a shipped policy");
    again.restore_memory(&memory).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.memory(), memory, "it survives a restart");
}
