//! Models written in scripts: what they answer, what their author reads when something is wrong, and their limits.

#[path = "../common/mod.rs"]
mod common;
mod two_sets;

use rota_core::plan::Plan;
use rota_core::policy::Policy;
use rota_core::snapshot::Snapshot;
use rota_scripts::Limits;
use rota_scripts::sample::{Size, snapshot};

use common::policy;

/// Eight jobs, three of which arrived earlier.
fn instant() -> Snapshot {
    snapshot(Size { n_nodes: 1, n_old: 3, n_new: 5 })
}

fn decide(body: &str) -> Result<Plan, String> {
    let text = format!("fn order(jobs, now) {{\n    let m = milp();\n{body}\n    rank(jobs.arrival)\n}}\n");
    policy(&text, Limits::default()).decide(&instant()).map_err(|error| error.message)
}

fn notes(body: &str) -> Vec<String> {
    decide(body).unwrap_or_else(|error| panic!("{error}")).notes
}

/// What a script prints, without the solver's own notes.
fn printed(body: &str) -> Vec<String> {
    notes(body).into_iter().filter(|note| !note.starts_with("milp:")).collect()
}

#[track_caller]
fn check_error(body: &str, place: &str, message: &str) {
    let error = decide(body).expect_err(body);
    assert!(error.starts_with(&format!("mine.rhai:{place}: ")) && error.contains(message), "{body}\n{error}");
}

#[test]
fn a_knapsack_over_jobs_is_solved_as_brute_force_would() {
    let lines = printed(
        r#"    let x = m.binary("x", jobs);
    m.add("gpus", sum(x * jobs.gpus) <= 8);
    m.maximize(sum(x * (jobs.gpus + 0.5)));
    let answer = m.solve(#{gap: 0.0});
    print(answer.status);
    print(answer.value(sum(x * jobs.gpus)) <= 8.0);
    print(answer.objective);
    print(answer.value(x).sum());"#,
    );
    let gpus: Vec<u32> = instant().jobs.gpus().to_vec();
    let value = |set: u32| {
        let chosen = gpus.iter().enumerate().filter(|(i, _)| set & (1 << i) != 0).map(|(_, gpus)| *gpus);
        let (gpus, count) = chosen.fold((0, 0), |(sum, n), gpus| (sum + gpus, n + 1));
        (gpus <= 8).then(|| f64::from(gpus) + 0.5 * f64::from(count))
    };
    let best = (0..1_u32 << gpus.len()).filter_map(value).fold(0.0, f64::max);
    assert_eq!(lines[..2], ["optimal", "true"]);
    assert_eq!(lines[2].parse::<f64>().expect("a number"), best);
}

#[test]
fn operators_mix_variables_numbers_columns_and_arrays() {
    let lines = printed(
        r#"    let x = m.real("x", 3, 0.0, 10.0);
    let y = m.integer("y", 0, 7);
    m.add(x * [1.0, 2.0, 4.0] + 1 <= 9.0);
    m.add("y", 2 * y - 1 <= sum(x) / 2.0);
    m.maximize(sum(x) + y - 3);
    let answer = m.solve();
    print(answer.value(x));
    print(answer.value(y));
    print(answer.value(-x[1] + y));
    print(answer.objective);"#,
    );
    assert_eq!(lines, ["[8.0, 4.0, 2.0]", "4.0", "0.0", "15.0"]);
}

#[test]
fn one_constraint_over_jobs_is_a_row_for_each() {
    let lines = printed(
        r#"    let least = m.real("least");
    let x = m.real("x", jobs, 0.0, 1.0);
    m.add("fair", x * jobs.gpus >= least);
    m.add(sum(x * jobs.gpus) == 6.0);
    m.maximize(least);
    let answer = m.solve();
    let spread = answer.value(x * jobs.gpus);
    print(spread.most() - spread.least() < 1e-9);
    print(m.text().contains("fair_0"));
    print(answer.value(x.of(jobs.filter(jobs.gpus > 0))).len == jobs.len);
    print(answer.value(x[jobs[2]]) == answer.value(x).of(jobs[2]));"#,
    );
    assert_eq!(lines, ["true", "true", "true", "true"]);
}

#[test]
fn a_model_without_an_answer_is_a_status_and_asking_for_values_an_error() {
    let lines = printed(
        r#"    let x = m.real("x");
    m.add(x <= -1);
    let answer = m.solve();
    print(answer.status);
    print(answer.is_solved);"#,
    );
    assert_eq!(lines, ["infeasible", "false"]);
    check_error(
        "    let x = m.real(\"x\");\n    m.add(x <= -1);\n    m.solve().value(x);",
        "5:15",
        "the solve ended `infeasible`, so there are no values",
    );
    check_error("    m.maximize(m.real(\"x\"));\n    m.solve().objective;", "4:15", "no objective");
}

#[test]
fn mistakes_are_shown_where_they_were_made() {
    let x = "    let x = m.binary(\"x\", jobs);\n";
    for (line, place, message) in [
        ("    m.add(sum(x * x) <= 1);", "4:17", "a product of two expressions with variables is not linear"),
        ("    m.add(1.0 / x <= 1);", "4:15", "a division by variables is not linear"),
        ("    m.add(sum(x) < 8);", "4:18", "constraints are written with <=, >= or =="),
        ("    m.maximize(x);", "4:7", "takes one expression, got one for each of 8 jobs: write `sum(…)`"),
        (
            "    m.add(x + m.real(\"y\", 3) <= 1);",
            "4:13",
            "expressions over 8 jobs and over 3 entries do not go together",
        ),
        ("    m.add(x <= milp().real(\"z\"));", "4:13", "two different models"),
        ("    m.add(8);", "4:7", "add: takes a constraint such as `sum(x) <= 8`, got a whole number"),
        ("    m.binary(\"x\", jobs);", "4:7", "variable x_0: the name is taken"),
        ("    m.binary(\"a b\");", "4:7", "a name cannot contain spaces"),
        ("    m.real(\"r\", jobs, 1.0, 0.0);", "4:7", "lower bound 1 is above upper bound 0"),
        ("    m.solve(#{gpa: 0.1});", "4:7", "`gpa` is not a limit: did you mean `gap`?"),
        ("    m.add(x * (0.0 / 0.0) <= 1);", "4:7", "is not a usable number"),
        ("    x[99];", "4:6", "index 99 is not among the 8 jobs of this expression"),
    ] {
        check_error(&format!("{x}{line}"), place, message);
    }
}

#[test]
fn a_model_counts_against_memory_and_operations() {
    let grow = "fn order(jobs, now) {\n    let m = milp();\n    let x = m.real(\"x\", 100000);\n    let all = [];\n    \
                loop { all.push(x + x); }\n    rank(jobs.arrival)\n}\n";
    let error = policy(grow, Limits::default()).decide(&instant()).expect_err("endless").message;
    assert!(error.contains("memory") || error.contains("column"), "{error}");
    let work = "fn order(jobs, now) {\n    let m = milp();\n    let x = m.real(\"x\", 100000);\n    \
                loop { sum(x); }\n    rank(jobs.arrival)\n}\n";
    let error = policy(work, Limits { operations: 1_000_000, ..Limits::default() }).decide(&instant());
    assert!(error.expect_err("endless").message.contains("operations"));
    let mut fine = policy(
        "fn order(jobs, now) {\n    let m = milp();\n    m.real(\"x\", 100000);\n    rank(jobs.arrival)\n}\n",
        Limits::default(),
    );
    for round in 0..20 {
        assert!(fine.decide(&instant()).is_ok(), "round {round}: what a model took is given back");
    }
}

#[test]
fn the_optimum_is_a_plan_with_its_bound_and_a_note() {
    let text = "fn allocate(view) {\n    let best = view.optimum(view.queue);\n    print(best.throughput <= best.bound + 1e-9);\n    \
                print(best.status);\n    best.plan\n}\n";
    let plan = policy(text, Limits::default()).decide(&instant()).unwrap_or_else(|error| panic!("{error}"));
    assert!(plan.notes[0].starts_with("opt: optimal, gap 0.000 %, throughput "), "{:?}", plan.notes);
    assert_eq!(plan.notes[1..], ["true", "optimal"]);
    let wrong = "fn allocate(view) {\n    view.optimum(view.queue, #{placement: \"best\"}).plan\n}\n";
    let error = policy(wrong, Limits::default()).decide(&instant()).expect_err("a wrong word").message;
    assert!(error.contains("placement knows \"pack\", \"round\", \"exact\", not \"best\""), "{error}");
}
