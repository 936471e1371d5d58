//! Keys, columns, sets, and what a stage returns.

use super::check;

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
