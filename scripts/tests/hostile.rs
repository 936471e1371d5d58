//! Scripts that mean harm, or were written in a hurry: each ends in a clear error within its limits, and memory stays
//! bounded. The counting allocator is installed, as in the programs that run scripts of others.

mod common;

use std::time::{Duration, Instant};

use rota_core::check::check;
use rota_core::policy::Policy;
use rota_scripts::memory::{CountingAllocator, bytes_held_by_this_thread, peak_of_this_thread, reset_peak};
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::{Limits, STACK_BYTES};

use common::policy;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MEMORY_BYTES: u64 = 16 << 20;
/// One value may be in the making when the limit is noticed; none is larger than this.
const ONE_VALUE_BYTES: i64 = 8 << 20;

/// The first line of the error, after checking that memory stayed within the limit.
#[track_caller]
fn stopped(text: &str, limits: Limits) -> String {
    let instant = snapshot(Size { n_nodes: 4, n_old: 40, n_new: 10 });
    let mut policy = policy(text, Limits { memory_bytes: MEMORY_BYTES, ..limits });
    let before = bytes_held_by_this_thread();
    reset_peak();
    let error = policy.decide(&instant).expect_err("a hostile script fails");
    let peak = peak_of_this_thread() - before;
    assert!(peak < MEMORY_BYTES as i64 + ONE_VALUE_BYTES, "{peak} bytes at the peak");
    assert!(peak > 0, "the allocator counts");
    let again = policy.decide(&instant).expect_err("it fails again, no better and no worse");
    assert_eq!(error, again);
    let left = bytes_held_by_this_thread() - before;
    assert!(left < 1 << 20, "{left} bytes stay behind");
    error.message.lines().next().unwrap_or_default().to_owned()
}

/// Fewer operations than by default, so that endless loops end soon; all else as it is.
fn few_operations() -> Limits {
    Limits { operations: 1_000_000, ..Limits::default() }
}

#[track_caller]
fn stops(body: &str, expected: &str) {
    let message = stopped(&format!("fn order(jobs, now) {{\n{body}\n}}"), few_operations());
    assert!(message.ends_with(expected), "{message}\nshould end in\n{expected}");
}

#[test]
fn an_endless_loop_runs_out_of_operations() {
    stops("loop {}", "used more than 1000000 operations");
    stops("while true { let x = 1; }", "used more than 1000000 operations");
}

#[test]
fn endless_native_work_runs_out_of_operations_too() {
    stops("loop { jobs.attained * jobs.gpus; }", "used more than 1000000 operations");
    stops("loop { rank(jobs.arrival); }", "used more than 1000000 operations");
}

#[test]
fn a_script_cannot_catch_its_own_end() {
    stops("try { loop {} } catch { }\nrank(jobs.arrival)", "used more than 1000000 operations");
}

#[test]
fn recursion_ends_at_its_depth() {
    let text = "fn order(jobs, now) { order(jobs, now) }";
    let message = stopped(text, Limits::default());
    assert!(message.ends_with("functions call each other more than 32 deep"), "{message}");
}

#[test]
fn closures_in_closures_end_at_their_depth() {
    let text = "fn order(jobs, now) { deeper(jobs) }\nfn deeper(jobs) {\n    let all = jobs;\n    jobs.order_by(|job| deeper(all).len)\n}";
    let message = stopped(text, Limits::default());
    assert!(message.ends_with("closures call verbs that call closures, too deep"), "{message}");
}

#[test]
fn a_string_bomb_ends_at_its_size() {
    stops("let s = \"boom\";\nloop { s += s; }", "a string grew beyond 262144 bytes");
    stops("let s = \"x\";\ns.pad(100000000, 'x');", "a string grew beyond 262144 bytes");
}

#[test]
fn an_array_bomb_ends_at_its_size() {
    stops("let a = [0];\nloop { a += a; }", "an array grew beyond 100000 elements");
    stops("let a = [0];\nloop { a = [a, a]; }", "an array grew beyond 100000 elements");
    stops("let a = [];\na.pad(100000000, 0);", "an array grew beyond 100000 elements");
}

#[test]
fn a_text_that_would_be_huge_is_not_made() {
    let expected = "replace: the text would have 40000000000 bytes, at most 262144 are allowed";
    stops("let s = \"\";\ns.pad(200000, 'x');\ns.replace(\"x\", s);", expected);
    stops("let s = \"\";\ns.pad(200000, 'x');\ns.replace('x', s);", expected);
}

/// A copy is one operation, however large what is copied is.
#[test]
fn large_copies_end_at_their_size() {
    let limits = || Limits { copied_bytes: 256 << 20, ..few_operations() };
    for body in [
        "let a = [];\na.pad(99999, []);\nloop { let b = a; b.push(1); }",
        "let a = [];\na.pad(99999, 1);\nloop { length(a); }",
        "let m = #{};\nfor i in 0..5000 { m.set(i, i); }\nloop { let n = m; }",
        "let a = [];\nloop { a = [a]; }",
    ] {
        let text = format!("fn order(jobs, now) {{\n{body}\n}}\nfn length(a) {{ a.len() }}");
        let message = stopped(&text, limits());
        assert!(message.contains("copied more than 256 MB"), "{body}: {message}");
    }
}

/// Values in values are dropped one inside the other, on the stack: the copies that it takes to nest them end before that does.
#[test]
fn nested_arrays_end_before_the_stack_does() {
    let instant = snapshot(Size { n_nodes: 1, n_old: 0, n_new: 1 });
    let text = "fn order(jobs, now) {\n    let a = [];\n    for i in 0..100000 { a = [a]; }\n    rank(jobs.arrival)\n}";
    let error = policy(text, Limits::default()).decide(&instant).expect_err("too many copies");
    assert!(error.message.contains("copied more than 1024 MB"), "{}", error.message);
}

/// Each holds the one before it, so that all are freed one within the other: as long as the limits let the chain become, that
/// must not take more stack than there is.
#[test]
fn a_chain_of_closures_ends_at_a_limit_before_the_stack_does() {
    let text = "fn order(jobs, now) {\nlet a = 0; loop { let b = a; let f = |x| b; a = f; }\n}";
    let decide = move || {
        let instant = snapshot(Size { n_nodes: 4, n_old: 40, n_new: 10 });
        let error = policy(text, Limits::default()).decide(&instant).expect_err("a hostile script fails");
        error.message.lines().next().unwrap_or_default().to_owned()
    };
    let deciding = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(decide).expect("a thread");
    let message = deciding.join().expect("it does not abort");
    assert!(message.ends_with("used more than 10000000 operations"), "{message}");
}

#[test]
fn a_map_bomb_ends_at_its_memory() {
    let text =
        "fn order(jobs, now) {\n    let m = #{};\n    let i = 0;\n    loop { i += 1; m[`key ${i}`] = i; }\n}";
    let message = stopped(text, Limits::default());
    assert!(message.ends_with("uses more than 16 MB of memory"), "{message}");
}

#[test]
fn many_values_below_their_limits_end_at_the_memory_of_all() {
    let text = "fn order(jobs, now) { hoard([], 0) }\nfn hoard(kept, n) {\n    let a = [];\n    a.pad(90000, 1);\n    \
                let b = a; let c = a; let d = a; let e = a; let f = a; let g = a;\n    hoard(a, n + 1)\n}";
    let message = stopped(text, Limits::default());
    assert!(message.ends_with("uses more than 16 MB of memory"), "{message}");
}

#[test]
fn columns_count_until_they_are_dropped() {
    let limits = Limits { column_bytes: 100_000, ..Limits::default() };
    let text = "fn order(jobs, now) {\n    let kept = [];\n    loop { kept.push(jobs.gpus + 1); }\n}";
    let message = stopped(text, limits.clone());
    assert!(message.ends_with("columns take more than 0 MB"), "{message}");
    let text = "fn order(jobs, now) {\n    for i in 0..10000 { let column = jobs.gpus + 1; }\n    rank(jobs.arrival)\n}";
    let instant = snapshot(Size { n_nodes: 4, n_old: 40, n_new: 10 });
    assert!(policy(text, limits).decide(&instant).is_ok(), "columns that are dropped do not count");
}

#[test]
fn the_alarm_rings_in_time() {
    let alarm = Duration::from_millis(50);
    let limits = Limits { alarm: Some(alarm), operations: u64::MAX, ..Limits::default() };
    let instant = snapshot(Size { n_nodes: 4, n_old: 40, n_new: 10 });
    let mut policy = policy("fn order(jobs, now) {\n    loop { rank(jobs.arrival); }\n}", limits);
    let start = Instant::now();
    let error = policy.decide(&instant).expect_err("the alarm rings");
    let took = start.elapsed();
    assert!(error.message.starts_with("mine.rhai:2:"), "{}", error.message);
    assert!(error.message.contains("ran for longer than 50 ms"), "{}", error.message);
    assert!(took >= alarm && took < alarm * 20, "rang after {took:?}");
}

#[test]
fn printing_without_end_keeps_few_lines() {
    let instant = snapshot(Size { n_nodes: 4, n_old: 40, n_new: 10 });
    let text = "fn order(jobs, now) {\n    for i in 0..10000 { print(i); }\n    rank(jobs.arrival)\n}";
    let plan = policy(text, Limits::default()).decide(&instant).expect("it decides");
    assert_eq!(plan.notes.len(), 51);
    assert_eq!(plan.notes[50], "(more than 50 lines printed, the rest is left out)");
}

#[test]
fn memory_between_rounds_has_a_size() {
    stops(
        "let log = [];\nlog.pad(90000, 1);\nthis.log = log;\nrank(jobs.arrival)",
        "private memory takes more than 262144 bytes",
    );
}

#[test]
fn what_a_plan_gives_twice_is_found_by_the_check() {
    let instant = snapshot(Size { n_nodes: 4, n_old: 0, n_new: 10 });
    let text = "fn decide(view) {\n    let p = plan();\n    for job in view.jobs { p.run(job, [#{node: 0, gpus: [0], cpus: 1}]); }\n    p\n}";
    let plan = policy(text, Limits::default()).decide(&instant).expect("a plan, though a bad one");
    assert!(check(&instant, plan).is_err());
    let text = "fn decide(view) {\n    let p = plan();\n    p.run(view.jobs[0], [#{node: 0, gpus: [0], cpus: 1000000}]);\n    p\n}";
    let plan = policy(text, Limits::default()).decide(&instant).expect("a plan, though a bad one");
    assert!(check(&instant, plan).is_err());
}

#[test]
fn an_error_leaves_no_trace_in_the_next_round() {
    let instant = snapshot(Size { n_nodes: 4, n_old: 40, n_new: 10 });
    let text = "fn order(jobs, now) {\n    this.n = (this.n ?? 0) + 1;\n    if this.n == 2 { throw \"second\"; }\n    rank(jobs.arrival)\n}";
    let mut policy = policy(text, Limits::default());
    let first = policy.decide(&instant).expect("the first round");
    let memory = policy.memory();
    assert!(policy.decide(&instant).is_err());
    assert_eq!(policy.memory(), memory, "what a failed round remembered is forgotten");
    policy.restore_memory("").expect("empty memory");
    assert_eq!(policy.decide(&instant).expect("as the first"), first);
}

#[test]
fn placements_count_their_work_and_end() {
    let few = || Limits { operations: 20_000, ..Limits::default() };
    let heavy = "fn place(job, nodes) {\n    let x = nodes.free_gpus;\n    for i in 0..100 { x = x * 0.5 + nodes.id; }\n    rank(x)\n}";
    let instant = snapshot(Size { n_nodes: 200, n_old: 0, n_new: 1000 });
    let error = policy(heavy, few()).decide(&instant).expect_err("too much work for the limit");
    assert!(error.message.contains("used more than 20000 operations"), "{}", error.message);
    let light = heavy.replace("0..100", "0..2");
    assert!(policy(&light, few()).decide(&instant).is_ok(), "the same with less to compute");
    for (body, expected) in [
        (
            "let x = nodes.id;\n    loop { x = x + x; }",
            "a placement computes more than 1024 columns of nodes",
        ),
        (
            "let p = rank(nodes.id);\n    loop { p = p.or_else(p); }",
            "a placement is made of more than 32 placements",
        ),
        (
            "let p = first_fit();\n    loop { p = local_data(p); }",
            "a placement is made of more than 32 placements",
        ),
        ("loop { rank(nodes.id + 1).compact(); }", "used more than 1000000 operations"),
    ] {
        let message = stopped(&format!("fn place(job, nodes) {{\n    {body}\n}}"), few_operations());
        assert!(message.ends_with(expected), "{message}\nshould end in\n{expected}");
    }
}

/// Operations of a decision that calls a verb so many times.
fn operations(call: &str, n_calls: usize, n_jobs: u32) -> u64 {
    let instant = snapshot(Size { n_nodes: 4, n_old: n_jobs, n_new: 4 });
    let text = format!(
        "fn order(jobs, now) {{ rank(jobs.arrival) }}\nfn allocate(view) {{\n    let jobs = view.jobs;\n    let t = view.timeline();\n    \
         for i in 0..{n_calls} {{ let x = {call}; }}\n    view.fill(view.queue)\n}}"
    );
    let mut policy = policy(&text, Limits { operations: u64::MAX, ..Limits::default() });
    policy.decide(&instant).unwrap_or_else(|error| panic!("{call}: {error}"));
    policy.operations()
}

/// A verb over jobs costs an operation for every 16 of them, and rounding.
#[test]
fn verbs_count_as_many_operations_as_they_have_jobs() {
    let few = 20;
    let many = 2_000;
    for call in [
        "jobs.gpus + 1",
        "jobs.by(jobs.gpus)",
        "jobs.gpus.sum_by(jobs.tenant_name)",
        "jobs.tenant_name.recall(#{}, 1.0)",
        "jobs.recall(#{}, 1.0)",
        "jobs.gpus.argmax()",
        "jobs.gpus.quantile(0.5)",
        "jobs.gpus.total_by(jobs.tenant)",
        "jobs.gpus.total_before(jobs.tenant)",
        "jobs.gpus.total_up_to(jobs.arrival)",
        "rank(jobs.arrival).running_total(jobs.gpus)",
        "rank(jobs.gpus, jobs.arrival)",
        "view.queue.contains(jobs[0])",
        "jobs.rate(jobs.gpus)",
        "jobs.level_above(jobs.gpus)",
        "(jobs.held * 0).grow(|steps| steps.next_rate)",
        "t.reserve_gangs(view.queue, ())",
        "view.time_slice(view.queue, #{ most: 2 })",
        "view.time_slice(view.queue, #{ most: 2, together: jobs.gpus })",
        "view.fill(view.queue).run()",
        "view.fill(view.queue).place(local_search(#{})).run()",
    ] {
        let of_one = |n_jobs| operations(call, 11, n_jobs) - operations(call, 1, n_jobs);
        let (small, large) = (of_one(few), of_one(many));
        let n_more = 10 * u64::from(many - few);
        assert!(
            large.saturating_sub(small) >= n_more / 20,
            "{call}: {small} operations with {few} jobs, {large} with {many}"
        );
    }
}

#[test]
fn absurd_sizes_are_refused() {
    for (body, expected) in [
        ("let m = milp(); m.binary(\"x\", 1000000000000);", "a model may have 0 to 1000000 of a name"),
        ("let m = milp(); m.binary(\"x\", [100000, 100000]);", "a model may have 0 to 1000000 of a name"),
        ("by_row(0..1000000000) * by_column(0..1000000000);", "used more than 1000000 operations"),
        ("local_search(#{ splits: [[[4294967297]]] });", "64 splits at most"),
        ("let p = []; p.pad(100000, \"fastest\"); local_search(#{ prefer: p });", "a string grew beyond"),
        ("view.timeline().block(9223372036854775807, view.now, view.now + 1.0);", "cannot be reserved"),
        (
            "let t = view.timeline(); for i in 0..100000 { t = t.block(1, view.now + i * 10.0, view.now + i * 10.0 + 5.0); }",
            "used more than 1000000 operations",
        ),
        ("view.timeline().follow(view.queue, \"1=0:99999999999\");", "was not made by `memory`"),
        ("view.fill(view.queue).gpus(view.jobs.gpus * 1e18).run();", "cannot get"),
        ("view.fill(view.queue).first_nodes(-1).run();", "-1 nodes cannot be used"),
        ("view.time_slice(view.queue, #{ most: 1000000 });", "from 1 to 1000"),
        ("view.timeline().reserve_gangs(view.queue, -1);", "got -1"),
    ] {
        let text = format!("fn allocate(view) {{\n    {body}\n    view.fill(view.queue)\n}}");
        let message = stopped(&text, few_operations());
        assert!(message.contains(expected), "{body}\n{message}\nshould contain\n{expected}");
    }
}
