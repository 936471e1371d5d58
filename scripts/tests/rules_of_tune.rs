//! The rules of `tune` stand in its script: each is edited as text, and the decision changes as predicted.

use rota_core::policy::Policy;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::{parse, run};
use rota_scripts::{Limits, ScriptPolicy, Source, shipped};

/// The policy `fifo+tune` with one piece of tune's text replaced.
fn edited(old: &str, new: &str) -> ScriptPolicy {
    let source = |name: &str| {
        let script = shipped::find(name).expect("a shipped script");
        Source { name: name.into(), file: format!("{name}.rhai"), text: script.source.into() }
    };
    let mut tune = source("tune");
    assert_eq!(tune.text.matches(old).count(), 1, "tune.rhai has `{old}` once");
    tune.text = tune.text.replace(old, new);
    ScriptPolicy::from_sources("fifo+mine", &[source("fifo"), tune], Limits::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts what the shipped rule and the edited one decide in the first round of a small world.
#[track_caller]
fn changes(world: &str, (old, new): (&str, &str), (shipped, mine): (&str, &str)) {
    for (mut policy, expected) in [(edited(old, old), shipped), (edited(old, new), mine)] {
        let text = format!("scenario: a rule\n{world}policy fifo+tune\n----\n0: {expected}\n");
        let scenarios = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let report = run(&scenarios[0], &mut policy);
        assert!(report.passes(), "{}", report.difference());
    }
}

#[test]
fn who_gives_back_excess_is_a_rule_of_the_script() {
    changes(
        "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob prod gpus=1 cpus=7 mem=20 priority=1\njob test gpus=1 cpus=5 mem=20\n\
         job last gpus=1 cpus=3 mem=20\n",
        (
            ".or_else(\"reclaim_excess\", \"richest\")",
            ".or_else(\"reclaim_excess\", rank(view.jobs.filter(view.jobs.priority == 0).arrival))",
        ),
        // The richest gives back 4 CPUs, of which 3 are needed. Where prod gives nothing, test's 2 do not suffice.
        (
            "prod 0[0] 4c 20g, test 0[1] 5c 20g, last 0[2] 3c 20g",
            "prod 0[0] 7c 20g, test 0[1] 5c 20g | waits last",
        ),
    );
}

#[test]
fn the_packing_key_is_a_rule_of_the_script() {
    changes(
        "cluster 2 nodes, 2 gpus, 6 cpus, 100 GB\njob first gpus=1\njob gang gpus=2\njob last gpus=1\n",
        (".pack(view.queue)", ".pack(rank(-view.jobs.gpus))"),
        (
            "first 0[0] 1c 10g, gang 0[1]+1[0] 2c 20g, last 1[1] 1c 10g",
            "first 1[0] 1c 10g, gang 0[0-1] 2c 20g, last 1[1] 1c 10g",
        ),
    );
}

#[test]
fn who_is_raised_first_is_a_rule_of_the_script() {
    changes(
        "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob first gpus=1 cpus=6 mem=20\njob hungry gpus=1 cpus=8 mem=20\n",
        (".rearrange(raised)", ".rearrange(rank(-view.jobs.cpu_demand))"),
        // The hungry one claims what the first holds beyond its share; what is left then tops the first up.
        ("first 0[0] 6c 20g, hungry 0[1] 6c 20g", "first 0[0] 4c 20g, hungry 0[1] 8c 20g"),
    );
}

#[test]
fn by_gain_the_job_that_gains_most_from_each_cpu_is_raised_first_among_those_of_equal_priority() {
    let by_gain = ("param(\"raise\", \"order\"", "param(\"raise\", \"gain\"");
    let world = |priority: u32| {
        format!(
            "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob first gpus=1 cpus=3:1,9:1.5 mem=20 priority={priority}\n\
             job keen gpus=1 cpus=3:1,6:2 mem=20\n"
        )
    };
    let by_order = "first 0[0] 9c 20g, keen 0[1] 3c 20g";
    // The first gains .5 from 6 CPUs, keen 1 from 3.
    changes(&world(0), by_gain, (by_order, "first 0[0] 6c 20g, keen 0[1] 6c 20g"));
    changes(&world(1), by_gain, (by_order, by_order));
}

#[test]
fn who_gets_what_is_left_is_a_rule_of_the_script() {
    changes(
        "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob first gpus=1 cpus=10 mem=20\njob hungry gpus=1 cpus=11 mem=20\n",
        (".top_up(view.queue)", ".top_up(rank(-view.jobs.cpu_demand))"),
        ("first 0[0] 9c 20g, hungry 0[1] 3c 20g", "first 0[0] 3c 20g, hungry 0[1] 9c 20g"),
    );
}

#[test]
fn mistakes_in_a_rule_are_named() {
    let refused = |new: &str| {
        let world = "scenario: a rule\ncluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob a gpus=1\npolicy fifo+tune\n----\n";
        let scenarios = parse(world).unwrap_or_else(|error| panic!("{error}"));
        run(&scenarios[0], &mut edited(".or_else(\"reclaim_excess\", \"richest\")", new)).actual.join("\n")
    };
    let said = refused(".or_else(\"reclaim_excess\", \"poorest\")");
    assert!(said.contains("or_else: givers: knows \"richest\", not \"poorest\""), "{said}");
    let said = refused(".or_else(\"fair_share\", \"richest\")");
    assert!(said.contains("only \"reclaim_excess\" has givers"), "{said}");
    let said = refused(".pack(7)");
    assert!(said.contains("expected a Queue"), "{said}");
}

/// Each order of its own is another pass over its jobs, and counts against the limit of operations.
#[test]
fn orders_of_their_own_count_their_work() {
    let instant = snapshot(Size { n_nodes: 2, n_old: 2_000, n_new: 20 });
    let decide = |rules: &str| {
        let text = format!(
            "fn decide(view) {{\n    let all = view.queue;\n    let q = rank(view.jobs.gpus);\n    let plan = ();\n    \
             for i in 0..20 {{ plan = view.fill(all){rules}.run(); }}\n    plan\n}}\n"
        );
        let source = Source { name: "mine".into(), file: "mine.rhai".into(), text };
        let limits = Limits { operations: 5_000, ..Limits::default() };
        ScriptPolicy::from_sources("mine", &[source], limits)
            .unwrap_or_else(|error| panic!("{error}"))
            .decide(&instant)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(decide(".pack(all).rearrange(all).top_up(all)"), Ok(()));
    let said =
        decide(".pack(q).rearrange(q).top_up(q).or_else(\"reclaim_excess\", q)").expect_err("too much work");
    assert!(said.contains("used more than 5000 operations"), "{said}");
}
