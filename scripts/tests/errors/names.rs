//! Names and forms that are not known, found before or while a script runs.

use super::check;

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
        r#"mine.rhai: defines no stage: write at least one of fn admit(job, view), fn order(jobs, now), fn allocate(view), fn place(job, nodes), fn decide(view)"#,
    );
}
