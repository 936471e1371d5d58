//! Rules stand in the scripts: each is edited here as text, as a reader would, and the decision changes as predicted.

use rota_scripts::scenario::{parse, run};
use rota_scripts::{Limits, ScriptPolicy, Source, shipped};

/// What a policy does in a scenario, round by round, with some of a shipped script's text replaced.
fn edited(name: &str, edits: &[(&str, &str)], scenario: &str) -> Vec<String> {
    let script = shipped::find(name).unwrap_or_else(|| panic!("{name} is shipped"));
    let mut sources = ScriptPolicy::sources_of(name).unwrap_or_else(|error| panic!("{error}"));
    let own: &mut Source =
        sources.iter_mut().find(|source| source.file == script.file).expect("its own source");
    for (old, new) in edits {
        assert_eq!(own.text.matches(old).count(), 1, "{name} has `{old}` once");
        own.text = own.text.replace(old, new);
    }
    let mut policy = ScriptPolicy::from_sources(name, &sources, Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let scenarios = parse(&format!("scenario: edited\n{scenario}policy {name}\nrounds 3\n----\n"));
    let scenarios = scenarios.unwrap_or_else(|error| panic!("{error}"));
    run(&scenarios[0], &mut policy).actual
}

const TWO_CURVES: &str = "cluster 1 nodes, 8 gpus, 16 cpus, 64 GB
job steep speeds=1:1,2:2,4:4 work=4800 deadline=9000
job flat speeds=1:1,2:1.1,4:1.2 work=2400 deadline=9000
";

#[test]
fn the_growth_criterion_of_elasticflow_is_a_line_of_its_script() {
    let first = |edits: &[(&str, &str)]| edited("elasticflow", edits, TWO_CURVES)[0].clone();
    assert_eq!(first(&[]), "0: steep 0[0-3] 8c 32g, flat 0[4-7] 8c 32g", "each is given all it can use");
    let scarce = ("take: ahead.free(view.now)", "take: 4");
    assert_eq!(first(&[scarce]), "0: steep 0[0-3] 8c 32g, flat 0[4] 2c 8g", "the steep one first");
    let shortest = ("gain * steps.later / steps.later_rate - 1.0 +", "(steps.jobs.done - steps.jobs.work) +");
    assert_eq!(
        first(&[scarce, shortest]),
        "0: steep 0[0] 2c 8g, flat 0[4-7] 8c 32g",
        "the one with the least work left"
    );
}

#[test]
fn where_growth_stops_is_a_word_of_its_script() {
    let stop = ("stop_below: ()", "stop_below: 0.0");
    let lines = edited("elasticflow", &[stop], TWO_CURVES);
    assert_eq!(
        lines[0], "0: steep 0[0-3] 8c 32g, flat 0[4] 2c 8g",
        "a second GPU of the flat one saves nothing"
    );
}

const TWO_DEADLINES: &str = "cluster 1 nodes, 4 gpus, 16 cpus, 64 GB
job soon speeds=1:1,2:1.8,4:3 work=1500 deadline=900
job later speeds=1:1,2:1.8,4:3 work=1500 deadline=2000
";

#[test]
fn the_order_of_edf_is_a_line_of_its_script() {
    let first = |edits: &[(&str, &str)]| edited("edf", edits, TWO_DEADLINES)[0].clone();
    assert_eq!(first(&[]), "0: soon 0[0-3] 16c 64g | waits later");
    let latest = ("rank(jobs.deadline)", "rank(-jobs.deadline)");
    assert_eq!(first(&[latest]), "0: later 0[0-3] 16c 64g | waits soon");
}

#[test]
fn the_order_of_elasticflow_decides_who_is_planned_first() {
    // Both need all four GPUs for most of their time: only the first to be planned can be in time.
    let clash = TWO_DEADLINES.replace("deadline=2000", "deadline=901").replace("work=1500", "work=2400");
    let first = |edits: &[(&str, &str)]| edited("elasticflow", edits, &clash)[0].clone();
    assert!(first(&[]).starts_with("0: soon 0[0-3] 16c 64g | declined later ("), "{}", first(&[]));
    let latest = ("rank(jobs.deadline)", "rank(-jobs.deadline)");
    // Arrivals are judged in the order of arrival: the first is let in, and the second, planned before it, would make it late.
    let said = first(&[latest]);
    assert!(said.contains("| declined later (with it, job soon "), "{said}");
}

#[test]
fn the_bound_of_an_admission_is_a_number_of_its_script() {
    let snug =
        "cluster 1 nodes, 4 gpus, 16 cpus, 64 GB\njob snug speeds=1:1,2:1.8,4:3 work=1700 deadline=600\n";
    let declined =
        |edits: &[(&str, &str)]| edited("elasticflow-admission", edits, snug)[0].contains("declined snug");
    assert!(!declined(&[]));
    assert!(declined(&[("param(\"margin\", 0.0,", "param(\"margin\", 0.25,")]));
    let tenants = "cluster 1 nodes, 8 gpus, 16 cpus, 64 GB\njob a gpus=3 work=900\njob b gpus=3 work=900\n";
    assert_eq!(edited("quota", &[], tenants)[0], "0: a 0[0-2] 6c 24g | waits b");
    let wider = ("param(\"share\", 0.5,", "param(\"share\", 0.75,");
    assert_eq!(edited("quota", &[wider], tenants)[0], "0: a 0[0-2] 6c 24g, b 0[3-5] 6c 24g");
    let no_deadline = ("if why == \"\"", "if true");
    let late = "cluster 1 nodes, 4 gpus, 16 cpus, 64 GB\njob late gpus=4 work=9000 deadline=600\n";
    let said = &edited("chronus-admission", &[], late)[0];
    assert!(said.contains("declined late"), "{said}");
    assert_eq!(edited("chronus-admission", &[no_deadline], late)[0], "0: late 0[0-3] 16c 64g");
}

#[test]
fn the_gain_of_optimus_is_a_line_of_its_script() {
    let jobs = "cluster 1 nodes, 3 gpus, 12 cpus, 48 GB
job long speeds=1:1,2:1.8,4:3 work=9000
job short speeds=1:1,2:1.8,4:3 work=900
";
    let first = |edits: &[(&str, &str)]| edited("optimus", edits, jobs)[0].clone();
    assert_eq!(first(&[]), "0: long 0[0-1] 8c 32g, short 0[2] 4c 16g", "the third GPU goes to the longer");
    let reversed = ("saved * where", "where(steps.at == 0, 1e9, -saved) * where");
    assert_eq!(first(&[reversed]), "0: long 0[0] 4c 16g, short 0[1-2] 8c 32g");
}

#[test]
fn a_stage_of_a_shipped_policy_is_a_part_by_its_name() {
    let load = |name: &str| ScriptPolicy::load(name, Limits::default());
    let stages = |name: &str| {
        let policy = load(name).unwrap_or_else(|error| panic!("{error}"));
        policy
            .stages()
            .iter()
            .map(|(part, _, stages)| format!("{part} {stages:?}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(stages("elasticflow:admit+las"), "elasticflow:admit [Admit] las [Order]");
    assert_eq!(stages("edf-admission"), "edf-admission [Admit] edf [Allocate, Place]");
    assert_eq!(stages("edf-admission+las"), "edf-admission [Admit] las [Order]");
    let why = |name: &str| load(name).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(why("las:admit"), "policies/las.rhai: defines no stage `admit`: it has order");
    assert_eq!(
        why("elasticflow:admt"),
        "no policy part `elasticflow:admt`: `admt` is not a stage: did you mean `admit`?"
    );
    assert_eq!(
        why("elasticflow+elasticflow-admission"),
        "stage `admit` is defined by both policies/elasticflow.rhai and admission/elasticflow-admission.rhai: a policy has \
         one of each"
    );
}

/// Both say the same, so an edit of either is an edit of what the other says.
#[test]
fn the_criterion_in_the_script_is_the_word_gpu_time() {
    let native = ("|steps| saving(steps), limits", "\"gpu_time\", limits");
    for seed in 0..40_u32 {
        let mut state = u64::from(seed) * 7919 + 17;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut scenario = "cluster 2 nodes, 8 gpus, 16 cpus, 64 GB\n".to_owned();
        for name in ["a", "b", "c", "d", "e", "f"] {
            let (two, four) = (11 + draw(10), 22 + draw(15));
            let deadline =
                if draw(4) == 0 { String::new() } else { format!(" deadline={}", 600 + draw(4000)) };
            let work = 300 + draw(3000);
            scenario.push_str(&format!(
                "job {name} speeds=1:1,2:{}.{},4:{}.{} work={work} restart={}{deadline}\n",
                two / 10,
                two % 10,
                four / 10,
                four % 10,
                draw(90)
            ));
        }
        let lines = edited("elasticflow", &[], &scenario);
        assert_eq!(lines, edited("elasticflow", &[native], &scenario), "{scenario}");
    }
}
