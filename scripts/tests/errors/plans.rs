//! Plans: which jobs get what, and where.

use super::check;

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
        r#"mine.rhai:3:7: wake_at: NaN is not a time
  |
3 |     p.wake_at(0.0 / 0.0);
  |       ^
  in stage `decide`"#,
    );
}
