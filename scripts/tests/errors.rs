//! What a script's author reads when something is wrong: each message in full.

use rota_core::policy::Policy;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::{Limits, ScriptPolicy, Source};

fn policy(text: &str) -> Result<ScriptPolicy, rota_scripts::LoadError> {
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
    ScriptPolicy::from_sources("mine", &[source], Limits::default())
}

/// The message of the script's decision on a small instant.
fn error_of(text: &str) -> String {
    let instant = snapshot(Size { n_nodes: 1, n_old: 3, n_new: 2 });
    match policy(text) {
        Err(error) => error.to_string(),
        Ok(mut policy) => match policy.decide(&instant) {
            Err(error) => error.message,
            Ok(plan) => panic!("no error, but {plan:?}"),
        },
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let got = error_of(text);
    assert!(got == expected, "\n--- expected\n{expected}\n--- got\n{got}\n---");
}

#[test]
fn a_misspelt_field_is_named_with_the_nearest() {
    check(
        r#"fn order(jobs, now) {
    rank(jobs.atained)
}"#,
        r#"mine.rhai:2:15: Jobs has no field `atained`
  |
2 |     rank(jobs.atained)
  |               ^
  hint: did you mean `attained`?
  in stage `order`"#,
    );
}

#[test]
fn a_misspelt_field_of_one_job_too() {
    check(
        r#"fn order(jobs, now) {
    jobs.order_by(|job| job.arival)
}"#,
        r#"mine.rhai:2:29: Job has no field `arival`
  |
2 |     jobs.order_by(|job| job.arival)
  |                             ^
  hint: did you mean `arrival`?
  in stage `order`"#,
    );
}

#[test]
fn a_misspelt_verb_is_named_with_the_nearest() {
    check(
        r#"fn order(jobs, now) {
    rank(jobs.attained).frist(3)
}"#,
        r#"mine.rhai:2:25: no function `frist` for (Queue, int)
  |
2 |     rank(jobs.attained).frist(3)
  |                         ^
  hint: did you mean `first` or `print`?
  in stage `order`"#,
    );
}

#[test]
fn a_misspelt_function_is_named_with_the_nearest() {
    check(
        r#"fn order(jobs, now) {
    rnak(jobs.attained)
}"#,
        r#"mine.rhai:2:5: no function `rnak` for (Column)
  |
2 |     rnak(jobs.attained)
  |     ^
  hint: did you mean `rank`?
  in stage `order`"#,
    );
}

#[test]
fn a_verb_with_the_wrong_arguments_shows_how_it_is_called() {
    check(
        r#"fn order(jobs, now) {
    clamp(jobs.arrival, 1)
}"#,
        r#"mine.rhai:2:5: no function `clamp` for (Column, int)
  |
2 |     clamp(jobs.arrival, 1)
  |     ^
  hint: it is `clamp(a: Column, low: float, high: float) -> Column`
  in stage `order`"#,
    );
}

#[test]
fn a_misspelt_variable_is_found_before_anything_runs() {
    check(
        r#"fn order(jobs, now) {
    rank(jbos.attained)
}"#,
        r#"mine.rhai:2:10: unknown variable `jbos`
  |
2 |     rank(jbos.attained)
  |          ^
  hint: did you mean `jobs`?"#,
    );
}

#[test]
fn a_syntax_error_has_its_place() {
    check(
        r#"fn order(jobs, now) {
    rank(jobs.attained
}"#,
        r#"mine.rhai:3:1: syntax: expecting ',' to separate the arguments to function call 'rank'
  |
3 | }
  | ^"#,
    );
}

#[test]
fn a_stage_with_wrong_arguments_is_refused() {
    check(
        r#"fn order(jobs) { rank(jobs.arrival) }"#,
        r#"mine.rhai:1:1: a stage with the wrong number of arguments: write `fn order(jobs, now)`
  |
1 | fn order(jobs) { rank(jobs.arrival) }
  | ^"#,
    );
}

#[test]
fn a_file_without_a_stage_is_no_part() {
    check(
        r#"fn odrer(jobs, now) { rank(jobs.arrival) }"#,
        r#"mine.rhai: defines no stage: write at least one of fn admit(job, view), fn order(jobs, now), fn allocate(view), fn place(view), fn decide(view)"#,
    );
}

#[test]
fn a_key_that_is_no_number_names_job_and_key() {
    check(
        r#"fn order(jobs, now) {
    let share = jobs.attained / jobs.held;
    rank(jobs.priority, share)
}"#,
        r#"mine.rhai:3:5: rank: key 2 of job 1 is not a number (NaN)
  |
3 |     rank(jobs.priority, share)
  |     ^
  in stage `order`"#,
    );
}

#[test]
fn a_key_that_is_a_word_is_refused() {
    check(
        r#"fn order(jobs, now) {
    rank(jobs.arrival, "x")
}"#,
        r#"mine.rhai:2:5: rank: key 2 must be a column or a number, got a String
  |
2 |     rank(jobs.arrival, "x")
  |     ^
  in stage `order`"#,
    );
}

#[test]
fn rank_needs_a_column() {
    check(
        r#"fn order(jobs, now) {
    rank(1, 2)
}"#,
        r#"mine.rhai:2:5: rank: at least one key must be a column, such as `jobs.arrival`
  |
2 |     rank(1, 2)
  |     ^
  in stage `order`"#,
    );
}

#[test]
fn a_closure_key_that_is_a_word_is_refused() {
    check(
        r#"fn order(jobs, now) {
    jobs.order_by(|job| job.name)
}"#,
        r#"mine.rhai:2:10: order_by: the key of job 0 must be a number or an array of numbers, got a String
  |
2 |     jobs.order_by(|job| job.name)
  |          ^
  in stage `order`"#,
    );
}

#[test]
fn what_a_closure_throws_is_shown_where_it_was_thrown() {
    check(
        r#"fn order(jobs, now) {
    jobs.order_by(|job| {
        if job.id == 2 { throw `no ${job}`; }
        1
    })
}"#,
        r#"mine.rhai:3:26: no job 2
  |
3 |         if job.id == 2 { throw `no ${job}`; }
  |                          ^
  in stage `order`"#,
    );
}

#[test]
fn columns_of_different_sets_do_not_mix() {
    check(
        r#"fn order(jobs, now) {
    rank(jobs.arrival + jobs.filter(jobs.gpus > 1).arrival)
}"#,
        r#"mine.rhai:2:23: columns of different job sets (5 and 1 jobs): take both from the same `jobs`
  |
2 |     rank(jobs.arrival + jobs.filter(jobs.gpus > 1).arrival)
  |                       ^
  in stage `order`"#,
    );
}

#[test]
fn an_index_outside_of_a_set_is_refused() {
    check(
        r#"fn order(jobs, now) {
    jobs[9]
}"#,
        r#"mine.rhai:2:9: index 9 is outside of 5 jobs (0 is the first)
  |
2 |     jobs[9]
  |         ^
  in stage `order`"#,
    );
}

#[test]
fn a_job_twice_in_an_order_is_refused() {
    check(
        r#"fn order(jobs, now) {
    [jobs[0], jobs[0]]
}"#,
        r#"mine.rhai:1:1: job 0 is in the order twice
  |
1 | fn order(jobs, now) {
  | ^
  in stage `order`"#,
    );
}

#[test]
fn a_stage_that_returns_nothing_is_told_why() {
    check(
        r#"fn order(jobs, now) {
    let queue = rank(jobs.arrival);
}"#,
        r#"mine.rhai:1:1: `order` must return a Queue (what `rank` returns) or an array of jobs, got nothing
  |
1 | fn order(jobs, now) {
  | ^
  hint: end the function with the value it returns
  in stage `order`"#,
    );
}

#[test]
fn a_stage_that_returns_the_wrong_thing_is_refused() {
    check(
        r#"fn order(jobs, now) {
    5
}"#,
        r#"mine.rhai:1:1: `order` must return a Queue (what `rank` returns) or an array of jobs, got a whole number
  |
1 | fn order(jobs, now) {
  | ^
  in stage `order`"#,
    );
}

#[test]
fn fields_cannot_be_set() {
    check(
        r#"fn order(jobs, now) {
    jobs.arrival = 3;
    rank(jobs.arrival)
}"#,
        r#"mine.rhai:2:10: `arrival` of Jobs cannot be set
  |
2 |     jobs.arrival = 3;
  |          ^
  in stage `order`"#,
    );
}

#[test]
fn a_closure_that_uses_its_own_set_is_told_how() {
    check(
        r#"fn order(jobs, now) {
    jobs.order_by(|job| job.gpus / jobs.len)
}"#,
        r#"mine.rhai:2:10: a closure uses the variable its verb is called on
  |
2 |     jobs.order_by(|job| job.gpus / jobs.len)
  |          ^
  hint: copy it first: `let all = jobs;`, and use the copy in the closure
  in stage `order`"#,
    );
}

#[test]
fn memory_takes_plain_data_only() {
    check(
        r#"fn order(jobs, now) {
    this.kept = jobs;
    rank(jobs.arrival)
}"#,
        r#"mine.rhai:1:1: `this.kept` holds a set of Jobs: private memory is plain data (numbers, words, switches, arrays, maps)
  |
1 | fn order(jobs, now) {
  | ^
  in stage `order`"#,
    );
}

#[test]
fn a_policy_cannot_sleep() {
    check(
        r#"fn order(jobs, now) {
    sleep(5);
    rank(jobs.arrival)
}"#,
        r#"mine.rhai:2:5: a script cannot sleep: it has no clock
  |
2 |     sleep(5);
  |     ^
  in stage `order`"#,
    );
}

#[test]
fn a_policy_has_no_clock() {
    check(
        r#"fn order(jobs, now) {
    timestamp()
}"#,
        r#"mine.rhai:2:5: no function `timestamp` for ()
  |
2 |     timestamp()
  |     ^
  in stage `order`"#,
    );
}

#[test]
fn a_policy_cannot_evaluate_text() {
    check(
        r#"fn order(jobs, now) {
    eval("1")
}"#,
        r#"mine.rhai:2:5: syntax: reserved keyword 'eval' is disabled
  |
2 |     eval("1")
  |     ^"#,
    );
}

#[test]
fn a_policy_cannot_load_files() {
    check(
        r#"import "x" as y;
fn order(jobs, now) { rank(jobs.arrival) }"#,
        r#"mine.rhai:1:1: syntax: 'import' is a reserved keyword
  |
1 | import "x" as y;
  | ^"#,
    );
}

#[test]
fn an_unknown_word_for_what_to_give_lists_the_known() {
    check(
        r#"fn allocate(view) {
    view.fill(view.queue).give("demnd")
}"#,
        r#"mine.rhai:2:27: give: knows "demand", "fair_share", not "demnd"
  |
2 |     view.fill(view.queue).give("demnd")
  |                           ^
  in stage `allocate`"#,
    );
}

#[test]
fn what_is_no_queue_cannot_be_filled() {
    check(
        r#"fn allocate(view) {
    view.fill(5)
}"#,
        r#"mine.rhai:2:10: expected a Queue (what `rank` returns) or an array of jobs, got a whole number
  |
2 |     view.fill(5)
  |          ^
  in stage `allocate`"#,
    );
}

#[test]
fn an_answer_that_is_no_share_is_refused_where_it_was_given() {
    check(
        r#"fn allocate(view) {
    view.fill(view.queue)
        .give(|job| share(20, 1, 0))
        .or_else(|job, room| 7)
}"#,
        r#"mine.rhai:4:30: the closure must return a Share (such as `job.demand`) or (), got a whole number for job 2
  |
4 |         .or_else(|job, room| 7)
  |                              ^
  in stage `allocate`"#,
    );
}

#[test]
fn a_strategy_must_be_one() {
    check(
        r#"fn place(view) {
    1
}"#,
        r#"mine.rhai:1:1: `place` must return a Placement, such as first_fit(), got a whole number
  |
1 | fn place(view) {
  | ^
  in stage `place`"#,
    );
}

#[test]
fn a_verdict_must_be_one() {
    check(
        r#"fn admit(job, view) {
    true
}"#,
        r#"mine.rhai:1:1: `admit` must return accept(), decline("why") or wait(), got true or false
  |
1 | fn admit(job, view) {
  | ^
  in stage `admit`"#,
    );
}

#[test]
fn an_unknown_node_is_refused() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.run(view.jobs[0], [#{node: 7, gpus: [0]}]);
    p
}"#,
        r#"mine.rhai:3:7: run: there is no node 7: nodes go from 0 to 0
  |
3 |     p.run(view.jobs[0], [#{node: 7, gpus: [0]}]);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn an_unknown_gpu_is_refused() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.run(view.jobs[0], [#{node: 0, gpus: [9]}]);
    p
}"#,
        r#"mine.rhai:3:7: run: node 0 has no GPU 9: they go from 0 to 7
  |
3 |     p.run(view.jobs[0], [#{node: 0, gpus: [9]}]);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn a_misspelt_entry_is_named_with_the_nearest() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.run(view.jobs[0], [#{node: 0, gpu: [0]}]);
    p
}"#,
        r#"mine.rhai:3:7: run: `gpu` means nothing in an entry: did you mean `gpus` or `cpus`?
  |
3 |     p.run(view.jobs[0], [#{node: 0, gpu: [0]}]);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn negative_amounts_are_refused() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.run(view.jobs[0], [#{node: 0, gpus: [0], cpus: -3}]);
    p
}"#,
        r#"mine.rhai:3:7: run: `cpus` must be a number that is not negative, got -3
  |
3 |     p.run(view.jobs[0], [#{node: 0, gpus: [0], cpus: -3}]);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn a_job_that_ended_cannot_run() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.run(99, [#{node: 0, gpus: [0]}]);
    p
}"#,
        r#"mine.rhai:3:7: job 99 has ended or never arrived
  |
3 |     p.run(99, [#{node: 0, gpus: [0]}]);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn a_job_that_does_not_run_keeps_nothing() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.keep(4);
    p
}"#,
        r#"mine.rhai:3:7: keep: job 4 does not run, so there is nothing to keep
  |
3 |     p.keep(4);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn a_wake_that_is_no_time_is_refused() {
    check(
        r#"fn decide(view) {
    let p = plan();
    p.wake_at(0.0 / 0.0);
    p
}"#,
        r#"mine.rhai:3:7: wake_at: NaN is no time
  |
3 |     p.wake_at(0.0 / 0.0);
  |       ^
  in stage `decide`"#,
    );
}

#[test]
fn a_default_outside_of_its_range_is_refused() {
    check(
        r#"param("x", 5, 0..=3, "An x.");
fn order(jobs, now) { rank(jobs.arrival) }"#,
        r#"mine.rhai:1:1: param `x`: its default 5 is not from 0 to 3
  |
1 | param("x", 5, 0..=3, "An x.");
  | ^"#,
    );
}

#[test]
fn an_undeclared_parameter_is_named_with_the_nearest() {
    check(
        r#"param("steps", 5, 0..=9, "Steps.");
fn order(jobs, now) { rank(jobs.arrival * param("step")) }"#,
        r#"mine.rhai:2:43: param `step` is not declared in this file: did you mean `steps`?
  |
2 | fn order(jobs, now) { rank(jobs.arrival * param("step")) }
  |                                           ^
  in stage `order`"#,
    );
}

#[test]
fn stage_verbs_do_not_work_at_the_top_level() {
    check(
        r#"plan();
fn order(jobs, now) { rank(jobs.arrival) }"#,
        r#"mine.rhai:1:1: this works only inside a stage function, not at the top level of a script
  |
1 | plan();
  | ^"#,
    );
}

#[test]
fn an_endless_loop_is_stopped_and_found() {
    check(
        r#"fn order(jobs, now) {
    let n = 0;
    loop { n += 1; }
}"#,
        r#"mine.rhai:3:17: used more than 10000000 operations
  |
3 |     loop { n += 1; }
  |                 ^
  in stage `order`"#,
    );
}

#[test]
fn deep_recursion_is_stopped_and_found() {
    check(
        r#"fn order(jobs, now) { deeper(1) }
fn deeper(n) {
    deeper(n + 1)
}"#,
        r#"mine.rhai:3:16: functions call each other more than 32 deep
  |
3 |     deeper(n + 1)
  |                ^
  in stage `order`"#,
    );
}

#[test]
fn a_string_that_doubles_is_stopped_and_found() {
    check(
        r#"fn order(jobs, now) {
    let text = "x";
    loop { text += text; }
}"#,
        r#"mine.rhai:3:20: a string grew beyond 65536 bytes
  |
3 |     loop { text += text; }
  |                    ^
  in stage `order`"#,
    );
}

#[test]
fn an_array_that_doubles_is_stopped_and_found() {
    check(
        r#"fn order(jobs, now) {
    let a = [1];
    loop { a += a; }
}"#,
        r#"mine.rhai:3:17: an array grew beyond 100000 elements
  |
3 |     loop { a += a; }
  |                 ^
  in stage `order`"#,
    );
}

#[test]
fn an_error_in_a_placement_closure_names_its_own_file() {
    let mine = Source {
        name: "mine".into(),
        file: "mine.rhai".into(),
        text: "fn place(view) {\n    by_score(|node, job| node.fre)\n}".into(),
    };
    let tune = rota_scripts::shipped::find("tune").expect("tune is shipped");
    let tune = Source { name: "tune".into(), file: tune.file.into(), text: tune.source.into() };
    let mut policy =
        ScriptPolicy::from_sources("mine+tune", &[tune, mine], Limits::default()).expect("it compiles");
    let error =
        policy.decide(&snapshot(Size { n_nodes: 1, n_old: 0, n_new: 2 })).expect_err("the field is misspelt");
    assert_eq!(
        error.message,
        "mine.rhai:2:31: Node has no field `fre`\n  |\n2 |     by_score(|node, job| node.fre)\n  |                               ^\n  \
         hint: did you mean `free`?\n  in stage `allocate`"
    );
}

#[test]
fn parts_that_clash_are_named() {
    let load = |name| ScriptPolicy::load(name, Limits::default()).err().map(|error| error.to_string());
    assert_eq!(
        load("las+srtf").as_deref(),
        Some(
            "stage `order` is defined by both policies/las.rhai and policies/srtf.rhai: a policy has one of each"
        )
    );
    assert_eq!(load("las+tuen").as_deref(), Some("no policy part `tuen`: did you mean `tune`?"));
    assert_eq!(
        load("xyzzy").as_deref(),
        Some("no policy part `xyzzy`: `rota policy list` shows all; a file of your own ends in .rhai")
    );
    let missing = load("./no-such.rhai").expect("there is no such file");
    assert!(missing.starts_with("./no-such.rhai: "), "{missing}");
}

#[test]
fn parameters_are_checked_when_they_are_set() {
    let mut policy = ScriptPolicy::load("tetris+tune", Limits::default()).expect("a shipped policy");
    let mut set = |key, value| policy.set(key, value).err().map(|error| error.to_string());
    assert_eq!(set("alignment", "0.25"), None);
    assert_eq!(set("tetris.alignment", "0.5"), None);
    assert_eq!(
        set("alignment", "2").as_deref(),
        Some("parameter `alignment`: `2` is not a number from 0 to 1")
    );
    assert_eq!(
        set("alignment", "NaN").as_deref(),
        Some("parameter `alignment`: `NaN` is not a number from 0 to 1")
    );
    assert_eq!(
        set("alignmnet", "0.1").as_deref(),
        Some("no parameter `alignmnet` in policy tetris+tune: did you mean `alignment`?")
    );
    let mut plain = ScriptPolicy::load("fifo", Limits::default()).expect("a shipped policy");
    assert_eq!(
        plain.set("speed", "1").map_err(|error| error.to_string()),
        Err("no parameter `speed` in policy fifo, which has none".to_owned())
    );
}
