//! Models over two sets and their starts: what they answer, and what their author reads when something is wrong.

use super::{decide, instant, notes, printed};

#[track_caller]
fn check_error(body: &str, message: &str) {
    let error = decide(body).expect_err(body);
    assert!(error.starts_with("mine.rhai:") && error.contains(message), "{body}\n{error}");
}

/// Jobs to slots at the least cost, which brute force finds too.
#[test]
fn an_assignment_of_jobs_to_slots_is_solved_as_brute_force_would() {
    let lines = printed(
        r#"    let some = jobs.filter(jobs.gpus > 0);
    let cost = by_row(some.gpus) * by_column([3, 1, 4]) + by_column(0..3);
    let x = m.binary("x", [some, 3]);
    m.add("once", x.row_sums() == 1);
    m.add("room", x.column_sums() <= 3);
    m.minimize(sum(x * cost));
    let answer = m.solve(#{ gap: 0.0 });
    let chosen = answer.value(x);
    print(answer.objective);
    print((chosen * cost).sum());
    print(chosen.row_sums().sum());
    print(chosen.column_sums().len());
    print(`${chosen.n_rows} x ${chosen.n_columns}`);"#,
    );
    let gpus: Vec<f64> = instant().jobs.gpus().iter().map(|gpus| f64::from(*gpus)).collect();
    let factor = [3.0, 1.0, 4.0];
    let cost = |code: u32| {
        let slots: Vec<usize> = (0..8).map(|job| (code / 3_u32.pow(job) % 3) as usize).collect();
        let fits = (0..3).all(|slot| slots.iter().filter(|chosen| **chosen == slot).count() <= 3);
        fits.then(|| {
            slots.iter().zip(&gpus).map(|(slot, gpus)| gpus * factor[*slot] + *slot as f64).sum::<f64>()
        })
    };
    let best = (0..3_u32.pow(8)).filter_map(cost).fold(f64::INFINITY, f64::min);
    assert_eq!(lines[0].parse::<f64>().expect("a number"), best);
    assert_eq!(lines[1].parse::<f64>().expect("a number"), best);
    assert_eq!(lines[2..], ["8.0", "3", "8 x 3"]);
}

#[test]
fn variables_exist_only_where_a_matrix_is_not_zero() {
    let lines = printed(
        r#"    let early = by_column(0..4) < by_row([1, 3]);
    let x = m.binary("x", early);
    print(m.text().contains("x_0_0"));
    print(m.text().contains("x_0_1"));
    m.add("cover", x.column_sums() <= 1);
    m.maximize(sum(x));
    let answer = m.solve();
    print(answer.value(x).to_arrays());
    print(x.len);"#,
    );
    // A variable without a row or a cost is written only once it has one.
    assert_eq!(lines[1..2], ["false"]);
    assert_eq!(lines[2].matches("1.0").count(), 3, "{lines:?}");
    assert_eq!(lines[3], "8");
}

#[test]
fn expressions_over_one_set_go_along_either_side() {
    let lines = printed(
        r#"    let open = m.binary("open", 2);
    let x = m.binary("x", [3, 2]);
    m.add("link", x <= by_column(open));
    m.add("once", x.row_sums() == 1);
    m.minimize(sum(x * matrix([[1, 9], [9, 1], [1, 9]])) + sum(open * [10, 10]));
    let answer = m.solve(#{ gap: 0.0 });
    print(answer.objective);
    print(answer.value(open));
    print(answer.value(x.row(1)));
    print(answer.value(x.column(0)));
    let y = m.real("y", 3, 0.0, 1.0);
    m.add(by_row(y) <= x);
    print(answer.value(sum(x.row_sums() * [1, 2, 4])));"#,
    );
    assert_eq!(lines, ["21.0", "[1.0, 0.0]", "[1.0, 0.0]", "[1.0, 1.0, 1.0]", "7.0"]);
}

#[test]
fn sums_by_key_follow_the_first_occurrence() {
    let lines = printed(
        r#"    let x = m.real("x", 5, 0.0, 10.0);
    m.add("group", x.sum_by([7, 2, 7, 2, 9]) <= [3, 4, 5]);
    m.maximize(sum(x));
    print(m.solve().objective);
    let y = m.real("y", jobs, 0.0, 1.0);
    m.add("tenant", y.sum_by(jobs.tenant) <= 1);
    m.maximize(sum(y));
    print(m.solve().objective);"#,
    );
    let tenants: std::collections::BTreeSet<u32> =
        (0..8).map(|row| instant().jobs.spec(row).tenant.0).collect();
    assert_eq!(lines[0], "12.0");
    assert_eq!(lines[1], format!("{:.1}", tenants.len() as f64));
}

#[test]
fn columns_go_along_the_jobs_and_bounds_may_be_matrices() {
    let lines = printed(
        r#"    let x = m.integer("x", [jobs, 2], 0, by_row(jobs.gpus) * by_column([1, 2]));
    m.maximize(sum(x) + sum(x * jobs.gpus) * 0.0);
    let answer = m.solve();
    print(answer.objective == 3.0 * jobs.gpus.sum());
    print(answer.value(x[jobs[2]]).len() == 2);
    print(answer.value(x)[jobs[2]][1] == 2.0 * jobs[2].gpus);
    print((answer.value(x).column(0) == jobs.gpus).sum() == jobs.len.to_float());
    print((answer.value(x).row_argmax() == 1).sum() == jobs.len.to_float());
    print(((answer.value(x) / jobs.gpus).row_most() == 2).sum() == jobs.len.to_float());"#,
    );
    assert_eq!(lines, ["true"; 6]);
}

const KNAPSACK: &str = r#"    let x = m.binary("x", [4, 2]);
    m.add("once", x.row_sums() <= 1);
    m.add("room", (x * matrix([[1, 3], [2, 4], [3, 5], [1, 2]])).row_sums().sum_by([0, 0, 0, 0]) <= 7);
    m.maximize(sum(x * matrix([[1, 4], [2, 5], [3, 7], [1, 3]])));
"#;

#[test]
fn a_start_that_holds_is_used_and_the_optimum_stays() {
    let cold = printed(&format!(
        "{KNAPSACK}    let a = m.solve(#{{ gap: 0.0 }});\n    print(a.start);\n    print(a.objective);"
    ));
    assert_eq!(cold[0], "none");
    let warm = printed(&format!(
        "{KNAPSACK}    m.start(x, matrix([[0, 0], [0, 0], [0, 1], [1, 0]]) * 0 + 0);\n    m.start(x, \
         matrix([[0, 0], [0, 0], [0, 1], [0, 1]]));\n    let a = m.solve(#{{ gap: 0.0 }});\n    print(a.start);\n    print(a.objective);"
    ));
    assert_eq!(warm, ["used", &cold[1]]);
}

/// With no node to search in, what is found is at least what the solve began with.
#[test]
fn an_answer_is_never_worse_than_its_start() {
    let lines = printed(&format!(
        "{KNAPSACK}    m.start(x, matrix([[0, 0], [0, 0], [0, 1], [0, 1]]));\n    let a = m.solve(#{{ nodes: 0 }});\n    \
         print(a.is_solved && a.objective >= 10.0);"
    ));
    assert_eq!(lines, ["true"]);
}

#[test]
fn a_start_that_does_not_hold_is_named_and_not_used() {
    let body = format!(
        "{KNAPSACK}    m.start(x, 1);\n    let a = m.solve(#{{ gap: 0.0 }});\n    print(a.start);\n    print(a.status);"
    );
    let lines = notes(&body);
    assert!(
        lines[0].ends_with("start not used: row once_0 is 2, outside -inf to 1 by more than 0"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "not used: row once_0 is 2, outside -inf to 1 by more than 0");
    assert_eq!(lines[2], "optimal");
}

#[test]
fn a_start_may_leave_variables_out() {
    let lines = printed(
        r#"    let x = m.binary("x", 3);
    let y = m.integer("y", 2, 5);
    m.add(sum(x) + y <= 4);
    m.maximize(sum(x) + y);
    m.start(x, [1, 0, 1]);
    let a = m.solve();
    print(a.start);
    print(a.objective);"#,
    );
    assert_eq!(lines, ["used", "4.0"]);
}

#[test]
fn mistakes_with_two_sets_say_what_does_not_go_together() {
    let x = "    let x = m.binary(\"x\", [jobs, 3]);\n";
    for (line, message) in [
        ("    m.add(x * [1, 2, 3] <= 1);", "say along which side with by_row(…) or by_column(…)"),
        (
            "    m.add(x * by_column([1, 2]) <= 1);",
            "over 8 jobs x 3 and over any rows x 2 do not go together",
        ),
        (
            "    m.add(x <= by_row([1, 2]));",
            "over 8 jobs x 3 and over 2 entries x any columns do not go together",
        ),
        ("    m.binary(\"y\", [3, jobs]);", "the second of two sets is a count or an array"),
        ("    m.binary(\"y\", [jobs, 3, 4]);", "take two sets, as in [jobs, 20], got 3 of them"),
        ("    m.binary(\"y\", [jobs, \"many\"]);", "or two of these as [jobs, count], got a String"),
        ("    m.binary(\"y\", [100000, 100000]);", "a model may have 0 to 1000000 of a name"),
        ("    m.binary(\"y\", by_row(jobs.gpus));", "it needs rows and columns"),
        ("    m.maximize(x);", "takes one expression, got one for each of 8 jobs x 3: write `sum(…)`"),
        ("    matrix([[1, 2], [3]]);", "row 1 has 1 numbers, row 0 has 2"),
        ("    matrix([[1, 2], [3, \"a\"]]);", "row 1, column 1 must be a number, got a String"),
        ("    by_column(jobs.gpus);", "a column of jobs goes along rows: write by_row(…)"),
        (
            "    by_row(\"all\");",
            "takes a column, an array of numbers or a range such as 0..20, got a String",
        ),
        ("    x.column(3);", "column 3 is not among the 8 jobs x 3 of this expression"),
        ("    x.row(8);", "row 8 is not among the 8 jobs x 3 of this expression"),
        (
            "    m.real(\"r\", jobs).row_sums();",
            "row_sums: takes expressions over two sets, these are over 8 jobs",
        ),
        ("    x.sum_by(jobs.gpus);", "sum_by: takes expressions over one set"),
        ("    m.real(\"r\", 3).sum_by([1, 2]);", "sum_by: 2 keys for expressions over 3 entries"),
        ("    m.start(x * 2, 1);", "start: takes variables as they were made, not an expression"),
        ("    m.start(x, 0.0 / 0.0);", "start: NaN is not a usable number"),
        ("    m.start(x, [1, 2, 3]);", "say along which side with by_row(…) or by_column(…)"),
        ("    m.start(milp().binary(\"x\", [jobs, 3]), 1);", "belongs to another model"),
        (
            "    matrix([[1]]) + matrix([[1, 2]]);",
            "matrices of 1 entries x 1 and of 1 entries x 2 do not go together",
        ),
        ("    matrix([[1, 2]]).column(2);", "column 2 is not among the columns of a matrix of 1 entries x 2"),
    ] {
        check_error(&format!("{x}{line}"), message);
    }
}

#[test]
fn empty_sets_make_empty_models() {
    let lines = printed(
        r#"    let none = jobs.filter(jobs.gpus < 0);
    let x = m.binary("x", [none, 4]);
    let y = m.binary("y", [jobs, 0]);
    m.add("cap", (x * by_row(none.gpus)).column_sums() <= 3);
    m.add("row", y.row_sums() == 0);
    m.maximize(sum(x) + sum(y));
    let answer = m.solve();
    print(answer.status);
    print(answer.value(x).to_arrays().len());
    print(answer.value(y).n_columns);"#,
    );
    assert_eq!(lines, ["optimal", "0", "0"]);
}
