//! The language itself: what Rhai would answer silently and wrongly is an error here, or right.

use rota_core::policy::Policy;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::{Limits, ScriptPolicy, Source};

/// What a body of `order` prints last, or the first line of its error.
fn outcome(body: &str) -> String {
    told(body).unwrap_or_else(|message| message.lines().next().unwrap_or_default().to_owned())
}

/// What a body of `order` prints last, or its error.
fn told(body: &str) -> Result<String, String> {
    let text = format!("fn order(jobs, now) {{\n{body}\nrank(jobs.arrival)\n}}");
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text };
    let instant = snapshot(Size { n_nodes: 1, n_old: 3, n_new: 2 });
    let decided = ScriptPolicy::from_sources("mine", &[source], Limits::default())
        .map_err(|error| error.to_string())
        .and_then(|mut policy| policy.decide(&instant).map_err(|error| error.message));
    decided.map(|plan| plan.notes.last().cloned().unwrap_or_default())
}

#[track_caller]
fn gives(expression: &str, expected: &str) {
    assert_eq!(outcome(&format!("print({expression});")), expected, "{expression}");
}

/// The statements fail in the line below the head of the function, with this in the message.
#[track_caller]
fn fails(statements: &str, expected: &str) {
    let got = outcome(statements);
    assert!(got.starts_with("mine.rhai:") && got.contains(expected), "{statements}\n  got {got}");
}

#[test]
fn sorting_by_a_comparison_that_gives_no_whole_number_is_an_error() {
    fails(
        "let a = [#{at: 2.5}, #{at: 1.5}];\na.sort(|x, y| x.at - y.at);",
        "mine.rhai:3:3: sort: a comparison of two must return a whole number",
    );
    fails("let a = [2, 1]; a.sort(|a, b| a < b);", "got true or false (false)");
    fails("let a = [2, 1]; a.sort_by(|a, b| a.b);", "int has no field `b`");
    gives("{ let a = [3, 1, 2]; a.sort(|x, y| y - x); a }", "[3, 2, 1]");
}

#[test]
fn arrays_sort_by_a_key() {
    gives(
        "{ let a = [#{at: 2.5, n: 1}, #{at: 1.5, n: 2}, #{at: 2.5, n: 3}]; a.sort_by(|x| x.at); a.map(|x| x.n) }",
        "[2, 1, 3]",
    );
    gives("{ let a = [\"b\", \"c\", \"a\"]; a.sort_by(|x| x); a }", "[\"a\", \"b\", \"c\"]");
    gives(
        "{ let a = [[1, \"b\"], [1, \"a\"], [0, \"z\"]]; a.sort_by(|x| x); a }",
        "[[0, \"z\"], [1, \"a\"], [1, \"b\"]]",
    );
    gives("{ let bias = -1; let a = [1, 2.5, 2]; a.sort_by(|x| bias * x); a }", "[2.5, 2, 1]");
    gives("{ let a = [2, 0.5, 1]; a.sort(); a }", "[0.5, 1, 2]");
    fails(
        "let a = [1, 2]; a.sort_by(|x| if x == 1 { \"a\" } else { 1 });",
        "some keys are numbers and some are texts",
    );
    fails("let a = [1, 2]; a.sort_by(|x| 0.0 / 0.0);", "not a number (NaN)");
    fails("let a = [jobs[0], jobs[1]]; a.sort();", "got a Job; give a key");
}

#[test]
fn a_condition_that_is_not_true_or_false_is_an_error() {
    for verb in ["filter", "retain", "drain", "some", "all", "find", "index_of"] {
        fails(
            &format!("let a = [1, 2]; a.{verb}(|x| x);"),
            &format!("{verb}: the function must return true or false, got a whole number"),
        );
    }
    fails("let a = [1, 2]; a.dedup(|x, y| 1);", "dedup: the function must return true or false");
    fails("let a = #{x: 1}; a.filter(|k, v| v);", "filter: the function must return true or false");
    gives("[1, 2, 3].filter(|x| x > 1)", "[2, 3]");
    gives(
        "[[1, 2, 3].some(|x| x > 2), [1, 2].all(|x| x > 1), [5, 6].find(|x| x > 5), [5, 6].index_of(|x| x > 6)]",
        "[true, false, 6, -1]",
    );
    gives("{ let a = [1, 2, 3, 4]; let out = a.drain(|x| x % 2 == 0); [a, out] }", "[[1, 3], [2, 4]]");
    gives("{ let a = [1, 1, 2, 1]; a.dedup(); a }", "[1, 2, 1]");
    gives("#{a: 1, b: 2}.filter(|k, v| v > 1)", "#{\"b\": 2}");
}

#[test]
fn an_array_is_not_set_outside_of_its_bounds() {
    fails("let a = [1]; a.set(3, 1);", "set: index 3 is outside of an array of 1");
    gives("{ let a = [1, 2]; a.set(-1, 5); a }", "[1, 5]");
}

#[test]
fn comparing_what_cannot_be_compared_is_an_error() {
    fails("if jobs[0].gpus == \"8\" { print(1); }", "`==` of a whole number and a String");
    fails("if \"8\" < jobs[0].gpus { print(1); }", "`<` of a String and a whole number");
    fails("let c = jobs.gpus == \"a\";", "`==` of a Column and a String");
    fails("let c = jobs[0] == 1;", "`==` of a Job and a whole number");
    fails("if this.seen > 1 { print(1); }", "`>` of nothing and a whole number: write `value ?? 0`");
    fails("print(1 in [\"a\"]);", "`==` of a String and a whole number");
    gives(
        "[this.seen == (), this.seen != (), 1 == (), \"a\" == 'a', 1 == 1.0, true != false]",
        "[true, false, false, true, true, true]",
    );
    gives(
        "[1 < 2, 2 <= 1, -1 > -2, 1 == -1, \"a\" < \"b\", [1, 2] == [1, 2], #{a: 1} == #{a: 1}]",
        "[true, false, true, false, true, true, true]",
    );
}

#[test]
fn numbers_are_compared_exactly() {
    gives(
        "{ let never = 1.0 / 0.0; [never == never, never > 1e300, 1 < never, never != never] }",
        "[true, true, true, false]",
    );
    gives("{ let small = 1e-17; [small > 0.0, small == 0.0, 1.0 + 1e-15 > 1.0] }", "[true, false, true]");
}

#[test]
fn a_column_as_a_condition_says_where() {
    let message = outcome("if jobs.gpus > 4 { print(1); }");
    assert_eq!(message, "mine.rhai:2:14: expected true or false, got Column");
    let text = "fn order(jobs, now) { if jobs.gpus > 4 { print(1); } rank(jobs.arrival) }";
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
    let instant = snapshot(Size { n_nodes: 1, n_old: 3, n_new: 2 });
    let mut policy = ScriptPolicy::from_sources("mine", &[source], Limits::default()).expect("it compiles");
    let error = policy.decide(&instant).expect_err("a column is not a condition");
    assert!(error.message.contains("`where(condition, a, b)`"), "{}", error.message);
    fails("if jobs.gpus > 4 && jobs.held > 0 { print(1); }", "expected true or false, got Column");
}

#[test]
fn whole_numbers_divide_as_columns_do() {
    gives("[7 / 2, 8 / 2, (7 / 2).to_int(), 7 % 2]", "[3.5, 4.0, 3, 1]");
    fails("let x = 1 / 0;", "1 / 0");
    fails("let x = 9223372036854775807 + jobs.len;", "overflow");
    fails("let x = 1; x /= 2;", "there is no `/=`");
    fails("let a = [1, 2, 3]; print(a[3 / 2]);", "expected int, got float");
}

#[test]
fn a_number_and_a_text_do_not_add_up() {
    fails("let x = 2 * 1.5 + \"x\";", "a number and a text do not add up");
    gives("\"n: \" + 2", "n: 2");
    gives("`${2} GPUs`", "2 GPUs");
}

#[test]
fn errors_name_types_as_scripts_know_them() {
    for statement in [
        "let x = jobs[jobs];",
        "let x = jobs[0] + 1;",
        "let x = jobs.gpus[0];",
        "for x in jobs[0] { }",
        "let x = [1][jobs];",
        "rank(jobs).first(\"a\");",
        "clamp(jobs, 1, 2)",
        "jobs.gpus.of(3);",
        "max(jobs[0], 2)",
    ] {
        let got = outcome(statement);
        assert!(got.starts_with("mine.rhai:") && !got.contains("::"), "{statement}: {got}");
    }
}

#[test]
fn what_is_missing_is_named_with_a_hint() {
    fails("let m = #{}; let x = 2.0 * m[\"ann\"];", "`*` of a number and nothing");
    fails("let x = -\"a\";", "`-` of a String");
    fails("let x = (2 > 1) * 10;", "`*` of true or false and a whole number");
    fails("for i in 0..(7 / 2) { }", "`..` of a whole number and a number");
    fails("let x = 'ann';", "'ann' is more than one character");
    fails("let n = 1; jobs.order_by(|job| job.gpus * this.n);", "`this` is not kept here");
    fails("print((0.0 / 0.0).to_int());", "to_int: NaN is not a whole number");
    fails("print(1e30.to_int());", "to_int: 1000000000000000000000000000000 is not");
    fails("rank(jobs.arrival).first(-1);", "first: -1 jobs cannot be taken");
    gives("[2.9.to_int(), (-2.9).to_int(), 1e15.to_int()]", "[2, -2, 1000000000000000]");
}

#[test]
fn a_job_is_in_a_set_or_in_a_queue() {
    gives("{ let none = jobs.filter(jobs.gpus < 0); [jobs[0] in jobs, jobs[0] in none] }", "[true, false]");
    gives(
        "{ let queue = rank(jobs.arrival).first(2); [queue[1] in queue, jobs[4] in queue] }",
        "[true, false]",
    );
}

#[test]
fn what_makes_no_sense_is_refused_by_the_verb() {
    fails("clamp(jobs.gpus, 5, 1);", "clamp: the lower bound 5 is above the upper one, 1");
    gives(
        "[clamp(3, 1, 2), clamp(0.5, 1, 2.5), clamp(jobs.gpus, 0, 0.5).sum() < jobs.len]",
        "[2.0, 1.0, true]",
    );
    fails("jobs.recall(#{ \"0\": \"x\" }, 1.0);", "recall: the map has a String for job 0, not a number");
    fails("jobs.gpus.sum_by(jobs.arrival * (0.0 / 0.0));", "the group of some jobs is not a number (NaN)");
}

#[test]
fn what_newcomers_write_is_answered_with_what_to_write() {
    for (statement, message, hint) in [
        ("let x = jobs.gpus[0];", "no brackets for Column [int]", "`column.of(job)`"),
        (
            "let c = jobs.gpus + 0; c[jobs[0]] = 3;",
            "no brackets for Column [Job] = int",
            "a column cannot be changed",
        ),
        ("for g in jobs.gpus { }", "a loop over what is no array", "`for job in jobs { … }`"),
        ("let m = #{ 1: 2.0 };", "to end this object map literal", "`map.get(1)`"),
        ("let t = view.now;", "unknown variable `view`", "those of a stage stand in its first line"),
        ("for job in jobs { job.gpus = 3; }", "`gpus` of Job cannot be set", "`=` sets, `==` compares"),
    ] {
        fails(statement, message);
        let whole = told(statement).expect_err(statement);
        assert!(whole.contains("\n  hint: ") && whole.contains(hint), "{whole}");
    }
}

#[test]
fn a_job_is_told_by_its_number_in_columns_too() {
    gives(
        "{ let chosen = where(jobs.id == jobs[2].id, 5, 0); [chosen.sum(), chosen.of(jobs[2])] }",
        "[5.0, 5.0]",
    );
    gives("jobs.recall(#{ \"1\": 4 }, 0).sum()", "4.0");
    gives("jobs.tenant_name.recall(#{}, 2).sum() == 2.0 * jobs.len", "true");
}
