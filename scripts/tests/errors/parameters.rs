//! Parameters, the top level, and parts that are put together.

use rota_core::policy::Policy;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::{Limits, ScriptPolicy, Source};

use super::check;

#[test]
fn a_default_outside_of_its_range_is_refused() {
    check(
        r#"param("x", 5, 0..=3, "An x.");
fn order(jobs, now) { rank(jobs.arrival) }"#,
        r#"mine.rhai:1:1: param `x`: its default 5 is not from 0 to 3
  |
1 | param("x", 5, 0..=3, "An x.");
  | ^"#,
    );
}

#[test]
fn an_undeclared_parameter_is_named_with_the_nearest() {
    check(
        r#"param("steps", 5, 0..=9, "Steps.");
fn order(jobs, now) { rank(jobs.arrival * param("step")) }"#,
        r#"mine.rhai:2:43: param `step` is not declared in this file: did you mean `steps`?
  |
2 | fn order(jobs, now) { rank(jobs.arrival * param("step")) }
  |                                           ^
  in stage `order`"#,
    );
}

#[test]
fn stage_verbs_do_not_work_at_the_top_level() {
    check(
        r#"plan();
fn order(jobs, now) { rank(jobs.arrival) }"#,
        r#"mine.rhai:1:1: this works only inside a stage function, not at the top level of a script
  |
1 | plan();
  | ^"#,
    );
}

#[test]
fn an_error_in_a_placement_closure_names_its_own_file() {
    let mine = Source {
        name: "mine".into(),
        file: "mine.rhai".into(),
        text: "fn place(view) {\n    by_score(|node, job| node.fre)\n}".into(),
    };
    let tune = rota_scripts::shipped::find("tune").expect("tune is shipped");
    let tune = Source { name: "tune".into(), file: tune.file.into(), text: tune.source.into() };
    let mut policy =
        ScriptPolicy::from_sources("mine+tune", &[tune, mine], Limits::default()).expect("it compiles");
    let error =
        policy.decide(&snapshot(Size { n_nodes: 1, n_old: 0, n_new: 2 })).expect_err("the field is misspelt");
    assert_eq!(
        error.message,
        "mine.rhai:2:31: Node has no field `fre`\n  |\n2 |     by_score(|node, job| node.fre)\n  |                               ^\n  \
         hint: did you mean `free`?\n  in stage `allocate`"
    );
}

#[test]
fn parts_that_clash_are_named() {
    let load = |name| ScriptPolicy::load(name, Limits::default()).err().map(|error| error.to_string());
    assert_eq!(
        load("las+srtf").as_deref(),
        Some(
            "stage `order` is defined by both policies/las.rhai and policies/srtf.rhai: a policy has one of each"
        )
    );
    assert_eq!(load("las+tuen").as_deref(), Some("no policy part `tuen`: did you mean `tune`?"));
    assert_eq!(
        load("xyzzy").as_deref(),
        Some("no policy part `xyzzy`: `rota policy list` shows all; a file of your own ends in .rhai")
    );
    let missing = load("./no-such.rhai").expect("there is no such file");
    assert!(missing.starts_with("./no-such.rhai: "), "{missing}");
}

#[test]
fn parameters_are_checked_when_they_are_set() {
    let mut policy = ScriptPolicy::load("tetris+tune", Limits::default()).expect("a shipped policy");
    let mut set = |key, value| policy.set(key, value).err().map(|error| error.to_string());
    assert_eq!(set("alignment", "0.25"), None);
    assert_eq!(set("tetris.alignment", "0.5"), None);
    assert_eq!(
        set("alignment", "2").as_deref(),
        Some("parameter `alignment`: `2` is not a number from 0 to 1")
    );
    assert_eq!(
        set("alignment", "NaN").as_deref(),
        Some("parameter `alignment`: `NaN` is not a number from 0 to 1")
    );
    assert_eq!(
        set("alignmnet", "0.1").as_deref(),
        Some("no parameter `alignmnet` in policy tetris+tune: did you mean `alignment`?")
    );
    let mut plain = ScriptPolicy::load("fifo", Limits::default()).expect("a shipped policy");
    assert_eq!(
        plain.set("speed", "1").map_err(|error| error.to_string()),
        Err("no parameter `speed` in policy fifo, which has none".to_owned())
    );
}

#[test]
fn a_script_like_another_has_its_stages_and_other_defaults() {
    let text = "// mine: long leases.\nlike(\"chronus\", #{ lease: 3600.0, steps: 2 });";
    let mine = super::policy(text).expect("it compiles");
    let default = |name: &str| {
        let found = mine.params().into_iter().find(|(_, parameter)| parameter.name == name);
        found.map(|(part, parameter)| (part, parameter.default.to_string(), parameter.value.to_string()))
    };
    assert_eq!(default("lease"), Some(("mine".into(), "3600.0".into(), "3600.0".into())));
    assert_eq!(default("steps"), Some(("mine".into(), "2".into(), "2".into())));
    assert_eq!(default("caution"), Some(("mine".into(), "1.1".into(), "1.1".into())), "as it was");
    assert_eq!(mine.headers(), ["mine: long leases."]);
}

#[test]
fn a_script_like_another_is_told_what_it_cannot_say() {
    check(
        r#"like("chornus", #{});"#,
        "mine.rhai:1:1: no shipped policy `chornus`: did you mean `chronus`?\n  |\n1 | like(\"chornus\", #{});\n  | ^",
    );
    check(
        r#"like("chronus", #{ leese: 1.0 });"#,
        r#"mine.rhai:1:1: chronus has no parameter `leese`
  |
1 | like("chronus", #{ leese: 1.0 });
  | ^
  hint: did you mean `lease`?"#,
    );
    check(
        r#"like("chronus", #{ lease: 0.0 });"#,
        r#"mine.rhai:1:1: parameter `lease`: `0.0` is not a number from 1 to 1000000000
  |
1 | like("chronus", #{ lease: 0.0 });
  | ^"#,
    );
    check(
        r#"like("las", #{});
fn place(view) { first_fit() }"#,
        r#"mine.rhai:1:1: a script that is like las says nothing else: leave the rest out
  |
1 | like("las", #{});
  | ^"#,
    );
}
