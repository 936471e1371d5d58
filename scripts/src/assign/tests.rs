use super::*;

const COLUMNS: &[&str] = &["model", "batch", "deadline_s", "gpu_levels", "priority"];

fn job(number: usize) -> JobFacts {
    JobFacts {
        number,
        name: format!("j{number}"),
        tenant: "t".into(),
        arrival_s: 100.0,
        duration_s: 50.0,
        gpus: 2,
        model: "plain".into(),
        batch: 0,
        ended: String::new(),
        deadline_s: None,
    }
}

fn models() -> Vec<ModelFacts> {
    let model = |name: &str, class: &str| ModelFacts {
        name: name.into(),
        class: class.into(),
        batches: vec![64, 128],
        levels: vec![(64, vec![1, 2, 4])],
        cpu_gain: 1.5,
        mem_gain: 1.0,
        gpu_mem_bytes: 8_000_000_000,
    };
    vec![model("a", "vision"), model("b", "language"), model("c", "vision")]
}

/// Numbers that count up by tenths, so that tests can be read.
fn tenths(first: f64) -> Numbers {
    let mut next = first;
    Box::new(move || {
        let now = next;
        next = (next + 0.1) % 1.0;
        now
    })
}

fn assigned(source: &str, n_jobs: usize) -> Result<Vec<Cells>, String> {
    let mut rules =
        Rules::load("r.rhai", source, &[], &models(), COLUMNS).map_err(|error| error.to_string())?;
    let each = (0..n_jobs).map(|number| rules.assign(&job(number), tenths(number as f64 / 10.0)));
    each.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

#[test]
fn what_a_script_returns_becomes_cells() {
    let source = r#"fn assign(job, models) {
        let model = pick(models);
        #{ model: model.name, batch: model.batches[1], gpu_levels: model.levels.get("64"), priority: (),
           deadline_s: [[job.arrival_s + 2 * job.duration_s, 10], [300, 0.5]] }
    }"#;
    let cells = &assigned(source, 1).expect("sound")[0];
    let found: Vec<(&str, &str)> = cells.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let expected = [
        ("batch", "128"),
        ("deadline_s", "200:10|300:0.5"),
        ("gpu_levels", "1-2-4"),
        ("model", "a"),
        ("priority", ""),
    ];
    assert_eq!(found, expected);
    assert_eq!(assigned("fn assign(job, models) { }", 1), Ok(vec![Cells::new()]), "nothing changes nothing");
}

#[test]
fn shares_are_met_by_turns_and_by_chance() {
    let by_shares = r#"fn assign(job, models) { #{ model: by_shares([["x", 20], ["y", 70], ["z", 10]]) } }"#;
    let given = assigned(by_shares, 100).expect("sound");
    let count = |name: &str| given.iter().filter(|cells| cells["model"] == name).count();
    assert_eq!((count("x"), count("y"), count("z")), (20, 70, 10));
    let turns = r#"fn assign(job, models) { #{ model: by_turns(["p", "q", "r"], "list") } }"#;
    let given: Vec<String> =
        assigned(turns, 4).expect("sound").into_iter().map(|c| c["model"].clone()).collect();
    assert_eq!(given, ["p", "q", "r", "p"]);
    let by_chance = r#"fn assign(job, models) { #{ model: pick_by(#{ x: 1, y: 3 }) } }"#;
    let given = assigned(by_chance, 10).expect("sound");
    assert_eq!(given.iter().filter(|cells| cells["model"] == "x").count(), 3, "numbers below a quarter");
}

#[test]
fn parameters_are_declared_set_and_checked() {
    let source = r#"param("part", 0.5, 0.0..=1.0, "A part.");
        fn assign(job, models) { #{ deadline_s: param("part") } }"#;
    let load = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Rules::load("r.rhai", source, &set, &models(), COLUMNS).map_err(|error| error.to_string())
    };
    let mut rules = load(&[("part", "0.25")]).expect("sound");
    assert_eq!(rules.assign(&job(0), tenths(0.0)).expect("sound")["deadline_s"], "0.25");
    assert_eq!(rules.parameters()[0].name, "part");
    let error = load(&[("part", "2")]).err().expect("too much");
    assert!(error.contains("`2` is not a number from 0 to 1"), "{error}");
    let error = load(&[("prat", "1")]).err().expect("unknown");
    assert!(error.contains("no parameter `prat`") && error.contains("did you mean `part`?"), "{error}");
}

#[test]
fn mistakes_are_named_with_their_place_and_their_job() {
    let cases = [
        ("fn assign(job, models) { #{ modle: \"a\" } }", "has no column `modle`", "did you mean `model`?"),
        ("fn assign(job, models) { 5 }", "returned a whole number, not a Map", "(job j0)"),
        ("fn assign(job, models) { #{ model: models } }", "model: an Array is not a cell", "(job j0)"),
        ("fn assign(job, models) { #{ batch: 1.0 / 0.0 } }", "batch: inf is not a finite number", "(job j0)"),
        ("fn assign(job, models) {\n  #{ batch: job.gpu }\n}", "r.rhai:2:", "gpu"),
        ("fn assign(job, models) { pick([]) }", "pick: the array is empty", "(job j0)"),
        ("fn assign(job, models) { loop { } }", "used more than 1000000 operations", "(job j0)"),
        ("fn assign(job) { }", "rules are one function `fn assign(job, models)`", "r.rhai:1:1"),
        ("let x = 5;", "rules are one function", "r.rhai"),
        ("fn assign(job, models) { sleep(1); }", "it has no clock", "(job j0)"),
    ];
    for (source, message, hint) in cases {
        let error = assigned(source, 1).expect_err(source);
        assert!(error.contains(message) && error.contains(hint), "{source}:\n{error}");
    }
}

#[test]
fn every_rule_that_comes_with_rota_can_be_loaded() {
    for script in crate::policy::shipped::RULES {
        let rules = Rules::load(script.file, script.source, &[], &models(), COLUMNS);
        assert!(rules.is_ok(), "{:?}", rules.err());
        assert!(script.source.starts_with(&format!("// {}: ", script.name)), "{}", script.file);
        assert!(
            script.source.contains("// Source: ") && script.source.contains("// Differs from the original")
        );
    }
}
