//! Scripts that run and do not do what their author means: `rota policy check` names the line, and a run warns.

use rota_scripts::commands::diagnose;
use rota_scripts::{Limits, ScriptPolicy, Source};

use super::check;

/// What `check` says of a script without running it.
fn said(text: &str) -> Vec<String> {
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
    match diagnose("mine", &[source], Limits::default()) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// One thing is wrong, with this place and message at the beginning and this hint.
#[track_caller]
fn refuses(text: &str, begins: &str, hint: &str) {
    let said = said(text);
    let [one] = said.as_slice() else { panic!("one error, got {said:#?}") };
    assert!(one.starts_with(begins), "{one}");
    assert!(one.contains(hint), "{one}");
}

#[track_caller]
fn accepts(text: &str) {
    assert_eq!(said(text), Vec::<String>::new(), "{text}");
}

#[test]
fn a_result_that_is_thrown_away_is_refused() {
    refuses(
        "fn order(jobs, now) {\n    let q = rank(jobs.arrival);\n    q.reversed();\n    q\n}",
        "mine.rhai:3:7: the result of `reversed` is not used",
        "it returns a new Queue",
    );
    refuses(
        "fn allocate(view) {\n    let t = view.timeline();\n    for job in view.queue {\n        t.reserve(job, job.gpus, view.now, view.now + 9.0);\n    }\n    view.fill(view.queue).gpus(t.gpus)\n}",
        "mine.rhai:4:11: the result of `reserve` is not used",
        "it returns a new Timeline",
    );
    refuses(
        "fn allocate(view) {\n    let f = view.fill(view.queue);\n    if view.now > 9.0 { f.give(\"fair_share\"); }\n    f\n}",
        "mine.rhai:3:27: the result of `give` is not used",
        "it returns a new Fill",
    );
    refuses(
        "fn order(jobs, now) {\n    jobs.filter(jobs.gpus < 4);\n    rank(jobs.arrival)\n}",
        "mine.rhai:2:10: the result of `filter` is not used",
        "it returns a new Jobs",
    );
    refuses(
        "fn order(jobs, now) {\n    let m = milp();\n    let x = m.binary(\"x\", jobs);\n    sum(x) <= 8;\n    m.maximize(sum(x));\n    rank(m.solve().value(x))\n}",
        "mine.rhai:4:12: the result of `<=` is not used",
        "m.add(…)",
    );
    refuses(
        "fn order(jobs, now) {\n    rank(jobs.gpus);\n    rank(jobs.arrival)\n}",
        "mine.rhai:2:5: the result of `rank` is not used",
        "give it to a variable",
    );
}

#[test]
fn what_also_does_something_may_be_thrown_away() {
    accepts(
        "fn order(jobs, now) {\n    let a = [2, 1];\n    a.sort_by(|x| x);\n    a.remove(0);\n    print(a);\n    rank(jobs.arrival)\n}",
    );
    accepts(
        "fn allocate(view) {\n    let p = view.fill(view.queue).run();\n    p.wake_at(view.now + 9.0);\n    p\n}",
    );
    accepts(
        "fn order(jobs, now) {\n    this.count();\n    if now > 5.0 { return rank(jobs.gpus); }\n    if now > 3.0 { rank(jobs.arrival) } else { rank(jobs.held) }\n}\nfn count() { this.n = 1; 5 }",
    );
    accepts(
        "fn order(jobs, now) {\n    let m = milp();\n    m.binary(\"x\", 3);\n    let q = switch now.to_int() { 0 => rank(jobs.gpus), _ => rank(jobs.arrival) };\n    q\n}",
    );
}

#[test]
fn a_function_that_hides_a_verb_is_refused() {
    refuses(
        "fn order(jobs, now) { rank(min(jobs.arrival, 5.0)) }\nfn min(a, b) { a }",
        "mine.rhai:2:1: there is a `min` with 2 arguments already",
        "give it another name",
    );
    accepts("fn order(jobs, now) { rank(least(jobs.arrival, 5.0, 3)) }\nfn least(a, b, c) { a }");
    refuses(
        "fn order(jobs, now) { rank(jobs.rate(jobs.gpus)) }\nfn rate(job, gpus) { gpus }",
        "mine.rhai:2:1: there is a `rate` with 2 arguments already",
        "give it another name",
    );
    accepts(
        "fn order(jobs, now) { jobs.order_by(|job| rate(job, 2)) }\nfn rate(job, gpus) { gpus / job.gpus }",
    );
}

#[test]
fn a_comparison_of_a_comparison_is_refused() {
    refuses(
        "fn order(jobs, now) { rank(1 < jobs.gpus < 8) }",
        "mine.rhai:1:42: a comparison of what a comparison gives",
        "join two comparisons",
    );
    accepts(
        "fn order(jobs, now) { rank((1 < jobs.gpus) & (jobs.gpus < 8), (jobs.gpus > 1) == (jobs.held > 1)) }",
    );
}

#[test]
fn a_placement_in_a_closure_has_the_verbs_of_one() {
    accepts(
        "fn place(view) { place_by(|job, nodes| rank(min(nodes.fits, 3).least_by(nodes.rack)).within(nodes.rack)) }",
    );
}

#[test]
fn a_switch_on_a_float_is_refused() {
    refuses(
        "fn order(jobs, now) { jobs.order_by(|job| switch job.gpus / 2 { 1 => 5, _ => 6 }) }",
        "mine.rhai:1:59: a `switch` on a float does not find a whole number",
        "to_int()",
    );
    refuses(
        "fn order(jobs, now) {\n    let left = now * 2;\n    switch left { 1 => rank(jobs.gpus), _ => rank(jobs.arrival) }\n}",
        "mine.rhai:3:12: a `switch` on a float does not find a whole number",
        "to_int()",
    );
    refuses(
        "fn order(jobs, now) { rank(switch jobs.gpus { 1 => 0, _ => 1 }) }",
        "mine.rhai:1:39: a `switch` on a column finds no case",
        "where(condition, a, b)",
    );
    accepts("fn order(jobs, now) { jobs.order_by(|job| switch (job.gpus / 2).to_int() { 1 => 5, _ => 6 }) }");
    accepts("fn order(jobs, now) { jobs.order_by(|job| switch job.gpus / 2 { 0..4 => 5, _ => 6 }) }");
    accepts(
        "fn order(jobs, now) { jobs.order_by(|job| switch job.gpus / 2 { 0.5 => 5, 1.0 => 6, _ => 7 }) }",
    );
}

#[test]
fn a_function_that_looks_like_a_stage_and_is_none_is_refused() {
    refuses(
        "fn ordr(jobs, now) { rank(-jobs.arrival) }\nfn place(job, nodes) { rank(nodes.id) }",
        "mine.rhai:1:1: `ordr` is no stage, and nothing calls it",
        "did you mean `order`?",
    );
    refuses(
        "fn schedule(view) { view.fill(view.queue) }\nfn order(jobs, now) { rank(jobs.arrival) }",
        "mine.rhai:1:1: `schedule` is no stage, and nothing calls it",
        "stages are admit, order",
    );
    accepts("fn order(jobs, now) { orders(jobs, now) }\nfn orders(jobs, now) { rank(jobs.arrival) }");
    accepts(
        "fn order(jobs, now) { let by = Fn(\"ordered\"); by.call(jobs, now) }\nfn ordered(jobs, now) { rank(jobs.arrival) }",
    );
}

#[test]
fn a_number_compared_with_a_text_is_refused_where_no_run_comes() {
    refuses(
        "fn order(jobs, now) {\n    if jobs.len > 1000000 { return jobs.order_by(|job| 1); }\n    if now < 0.0 && jobs[0].tenant_name == 3 { return          rank(jobs.gpus); }\n    rank(jobs.arrival)\n}",
        "mine.rhai:3:41: `==` of a String and a whole number",
        "",
    );
    refuses(
        "fn order(jobs, now) { rank(jobs.filter(jobs.tenant_name == jobs.gpus).arrival) }",
        "mine.rhai:1:57: `==` of a Texts column and a Column",
        "",
    );
    accepts("fn order(jobs, now) { rank(jobs.filter(jobs.tenant_name == \"ann\").arrival) }");
}

#[test]
fn no_shipped_script_has_such_habits() {
    for script in rota_scripts::shipped::ALL {
        if matches!(script.role, rota_scripts::shipped::Role::Study) {
            continue;
        }
        let sources = ScriptPolicy::sources_of(script.name).unwrap_or_else(|error| panic!("{error}"));
        let wrong = match diagnose(script.name, &sources, Limits::default()) {
            // A model is asked for by another part only.
            Err(errors) if !errors[0].to_string().contains("is never asked for") => errors,
            _ => Vec::new(),
        };
        assert!(wrong.is_empty(), "{}: {}", script.name, wrong[0]);
    }
}

#[test]
fn arguments_of_a_stage_in_another_order_are_refused() {
    check(
        "fn place(nodes, job) { rank(nodes.gpus) }",
        "mine.rhai:1:1: the arguments of a stage in another order: write `fn place(job, nodes)`\n  |\n1 | fn place(nodes, job) { rank(nodes.gpus) }\n  | ^",
    );
}

#[test]
fn functions_see_nothing_of_the_top_level() {
    for word in ["let", "const"] {
        check(
            &format!("{word} WEIGHT = 3.0;\nfn order(jobs, now) {{ rank(jobs.arrival * WEIGHT) }}"),
            "mine.rhai:2:43: unknown variable `WEIGHT`\n  |\n2 | fn order(jobs, now) { rank(jobs.arrival * WEIGHT) }\n  |                                           ^\n  hint: functions see no \
             variables and constants of the top level: write `param(\"weight\", …)` there, or a function that returns it, `fn weight() { … }`",
        );
    }
    accepts(
        "fn order(jobs, now) { jobs.order_by(|job| job.gpus * weights().large) }\nfn weights() { #{ large: 4, small: 1 } }",
    );
}

#[test]
fn a_stage_that_nobody_asks_is_warned_of() {
    let warned = |name: &str| {
        let policy = ScriptPolicy::load(name, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        policy.warnings().join("; ")
    };
    assert_eq!(
        warned("elasticflow+las"),
        "las orders the jobs, and elasticflow does not look at `view.queue`: the order has no effect"
    );
    assert_eq!(
        warned("gandiva+consolidate"),
        "consolidate says where jobs go, and gandiva places them by itself: the placement has no effect"
    );
    let text = "fn place(view) { if view.queue.len > 9 { first_fit() } else { consolidate() } }\nfn allocate(view) { view.fill(rank(view.jobs.arrival)) }";
    let of = |name: &str, text: &str| Source {
        name: name.into(),
        file: format!("./{name}.rhai"),
        text: text.into(),
    };
    let sources = [of("mine", text), of("by", "fn order(jobs, now) { rank(jobs.gpus) }")];
    let policy = ScriptPolicy::from_sources("mine+by", &sources, Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(policy.warnings(), Vec::<String>::new(), "the placement looks at the order");
    for sound in ["las+gandiva", "las+tune+consolidate", "las+consolidate", "srtf+opt", "quota+las+greedy"] {
        assert_eq!(warned(sound), "", "{sound}");
    }
}

#[test]
fn a_run_is_warned_of_what_check_would_refuse() {
    let text = "fn order(jobs, now) {\n    let q = rank(jobs.arrival);\n    q.reversed();\n    q\n}";
    let source = Source { name: "mine".into(), file: "./mine.rhai".into(), text: text.into() };
    let policy = ScriptPolicy::from_sources("./mine.rhai", &[source], Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let said = policy.warnings().join("; ");
    assert!(said.starts_with("./mine.rhai:3:7: the result of `reversed` is not used ("), "{said}");
}
