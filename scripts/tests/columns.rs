//! What can be asked of columns: functions of one number, sums along a queue, the job with the least, quantiles, groups
//! and names of tenants.

mod common;

use rota_core::policy::Policy;
use rota_scripts::Limits;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::{parse, run};

use common::policy;

/// What an expression over four jobs is: a (1 GPU, tenant x), b (2, y), c (4, x), d (2, y).
#[track_caller]
fn gives(expression: &str, expected: &str) {
    let world = "scenario: four jobs\ncluster 1 nodes, 1 gpus, 3 cpus, 50 GB\ncluster 3 nodes, 4 gpus, 12 cpus, 200 GB\n\
                 job a gpus=1 work=400 tenant=x\njob b gpus=2 work=300 tenant=y\njob c gpus=4 work=200 tenant=x\n\
                 job d gpus=2 work=100 tenant=y\nrounds 1\n";
    let scenario = parse(world).expect("a scenario").remove(0);
    let text = format!(
        "fn order(jobs, now) {{\n    let all = jobs;\n    print({expression});\n    rank(jobs.arrival)\n}}\n\
         fn list(column, jobs) {{ let list = []; for job in jobs {{ list.push(column.of(job)); }} list }}"
    );
    let report = run(&scenario, &mut policy(&text, Limits::default()));
    let notes = report.actual.iter().map(|line| line.split("| notes ").nth(1).unwrap_or(line)).next();
    assert_eq!(notes, Some(expected), "{expression}\n{:?}", report.actual);
}

#[test]
fn functions_of_one_number_work_on_columns() {
    gives("list(abs(-jobs.gpus), all)", "[1.0, 2.0, 4.0, 2.0]");
    gives("list(sqrt(jobs.gpus), all)[2]", "2.0");
    gives("list(exp(ln(jobs.gpus)), all).map(|x| x.round())", "[1.0, 2.0, 4.0, 2.0]");
    gives("list(log(jobs.gpus * 25), all)[2]", "2.0");
    gives("list(pow(jobs.gpus, 2), all)", "[1.0, 4.0, 16.0, 4.0]");
    gives("list(jobs.gpus ** 2, all) == list(pow(jobs.gpus, 2.0), all)", "true");
    gives("[pow(2, 3), pow(2.0, 0.5) > 1.4]", "[8.0, true]");
}

#[test]
fn sums_along_a_queue_count_the_job_itself() {
    gives("list(rank(jobs.remaining).running_total(jobs.gpus), all)", "[9.0, 8.0, 6.0, 2.0]");
}

#[test]
fn the_job_with_the_least_and_the_most() {
    gives("[jobs.remaining.argmin().name, jobs.remaining.argmax().name]", "[\"d\", \"a\"]");
    gives("(jobs.gpus == 2).argmax().name", "b");
    gives("jobs.filter(jobs.gpus > 9).gpus.argmin() == ()", "true");
}

#[test]
fn sums_by_group_are_maps_and_maps_are_looked_up_by_text() {
    gives("jobs.gpus.sum_by(jobs.tenant_name)", "#{\"x\": 5.0, \"y\": 4.0}");
    gives("jobs.remaining.sum_by(jobs.gpus)", "#{\"1\": 400.0, \"2\": 400.0, \"4\": 200.0}");
    gives("list(jobs.tenant_name.recall(#{ x: 3, z: 9.0 }, 0.5), all)", "[3.0, 0.5, 3.0, 0.5]");
    gives(
        "list(jobs.tenant_name.recall(jobs.gpus.sum_by(jobs.tenant_name), 0.0), all)",
        "[5.0, 4.0, 5.0, 4.0]",
    );
}

#[test]
fn quantiles_lie_between_two_numbers_in_proportion() {
    gives(
        "[jobs.remaining.quantile(0), jobs.remaining.quantile(0.5), jobs.remaining.quantile(1.0)]",
        "[100.0, 250.0, 400.0]",
    );
}

#[test]
fn tenants_have_names_that_select_and_group() {
    gives("jobs.filter(jobs.tenant_name == \"x\").len", "2");
    gives("jobs.filter(\"x\" != jobs.tenant_name)[0].name", "b");
    gives("jobs.filter(jobs.tenant_name == \"nobody\").len", "0");
    gives("[jobs[0].tenant_name, jobs.tenant_name.of(jobs[1])]", "[\"x\", \"y\"]");
    gives("list(jobs.gpus.total_by(jobs.tenant_name), all)", "[5.0, 4.0, 5.0, 4.0]");
    gives("list(jobs.gpus.total_before(jobs.tenant_name), all)", "[0.0, 0.0, 1.0, 2.0]");
}

#[test]
fn jobs_are_answered_for_by_group() {
    gives("jobs.by(jobs.tenant_name).keys()", "[\"x\", \"y\"]");
    gives("jobs.by(jobs.tenant_name)[\"y\"].gpus.sum()", "4.0");
    gives("jobs.by(jobs.gpus).keys()", "[\"1\", \"2\", \"4\"]");
    gives(
        "list(jobs.map_by(jobs.tenant_name, |group| group.remaining.least()), all)",
        "[200.0, 100.0, 200.0, 100.0]",
    );
}

#[test]
fn whole_numbers_are_keys_of_maps() {
    gives(
        "{ let seen = #{}; for job in jobs { seen.set(job.id, job.gpus); } [seen.get(2), seen.contains(2), 3 in seen, seen.remove(9), seen[`${jobs[1].id}`]] }",
        "[4, true, true, (), 2]",
    );
}

#[test]
fn what_they_cost_counts() {
    let instant = snapshot(Size { n_nodes: 16, n_old: 3_000, n_new: 0 });
    let cost = |line: &str| {
        let mut policy = policy(
            &format!("fn order(jobs, now) {{ let all = jobs; {line}\n rank(jobs.arrival) }}"),
            Limits::default(),
        );
        policy.decide(&instant).unwrap_or_else(|error| panic!("{error:?}"));
        policy.operations()
    };
    let nothing = cost("");
    for line in [
        "abs(jobs.gpus);",
        "pow(jobs.gpus, 2);",
        "jobs.gpus.argmin();",
        "jobs.gpus.quantile(0.5);",
        "jobs.tenant_name == \"ann\";",
        "jobs.by(jobs.tenant_name);",
        "jobs.map_by(jobs.tenant, |group| 1);",
        "rank(jobs.arrival).running_total(jobs.gpus);",
    ] {
        assert!(cost(line) >= nothing + 3_000 / 16, "{line}");
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    let instant = snapshot(Size { n_nodes: 1, n_old: 4, n_new: 0 });
    for (line, expected) in [
        ("jobs.gpus.quantile(2.0);", "quantile: the share is from 0 to 1, got 2"),
        ("(jobs.gpus * (0.0 / 0.0)).argmin();", "argmin: the number of job 0 is not a number (NaN)"),
        (
            "rank(jobs.arrival).first(1).running_total(jobs.gpus);",
            "running_total: the queue has 1 jobs, the column 4",
        ),
        ("jobs.by(3);", "jobs are grouped by a column, such as `jobs.tenant_name`, got a whole number"),
        ("jobs.map_by(jobs.tenant_name, |group| \"x\");", "map_by: the answer for `"),
        ("let m = #{}; m[jobs[0].id] = 1;", "expected String, got int"),
    ] {
        let text = format!("fn order(jobs, now) {{\n let all = jobs;\n {line}\n rank(jobs.arrival)\n}}");
        let error = policy(&text, Limits::default()).decide(&instant).expect_err(line);
        assert!(
            error.message.contains(expected) && error.message.starts_with("mine.rhai:3:"),
            "{line}\n{}",
            error.message
        );
    }
}
