//! What a policy cannot do: time, files, text as code; and where a script is stopped.

use super::check;

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
fn an_endless_loop_is_stopped_and_found() {
    check(
        r#"fn order(jobs, now) {
    let n = 0;
    loop { n += 1; }
}"#,
        r#"mine.rhai:3:14: used more than 10000000 operations
  |
3 |     loop { n += 1; }
  |              ^
  hint: of its first 199999 operations went 99 % to line 3
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
        r#"mine.rhai:3:20: a string grew beyond 262144 bytes
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
fn the_limit_on_operations_says_which_verb_they_went_to() {
    check(
        r#"fn order(jobs, now) {
    let n = 0;
    while n < 1e12 {
        n += weigh([1, 2, 3].map(|x| x * 2), jobs);
        rank(jobs.arrival, jobs.gpus, jobs.held, jobs.service);
    }
    rank(jobs.arrival)
}
fn weigh(list, jobs) { list.len() }"#,
        r#"mine.rhai:4:46: used more than 10000000 operations
  |
4 |         n += weigh([1, 2, 3].map(|x| x * 2), jobs);
  |                                              ^
  hint: of its first 199999 operations went 36 % to line 4, 22 % to line 5, 10 % to line 5 (`rank`)
  in stage `order`"#,
    );
}
