//! docs/what-you-can-change.md is true: the lines it quotes stand in the scripts, it names every script, and of each script one
//! rule is edited as text, as a reader would, and the decision changes as predicted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rota_scripts::scenario::{parse, run};
use rota_scripts::shipped::Role;
use rota_scripts::{Limits, ScriptPolicy, shipped};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The quoted lines of each script; a row without a name belongs to the one above it.
fn quoted_lines() -> BTreeMap<String, Vec<String>> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut of = String::new();
    for row in page("what-you-can-change.md").lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches([' ', '|'])).collect();
        let [name, _, line] = cells.as_slice() else { panic!("three cells: {row}") };
        if name.starts_with('`') {
            name.trim_matches('`').clone_into(&mut of);
        }
        if line.starts_with('`') {
            lines.entry(of.clone()).or_default().push(line.trim_matches('`').to_owned());
        }
    }
    lines
}

#[test]
fn every_quoted_line_stands_in_its_script_and_every_script_is_quoted() {
    let quoted = quoted_lines();
    for (name, lines) in &quoted {
        let script = shipped::find(name).unwrap_or_else(|| panic!("{name} is not shipped"));
        for line in lines {
            let stands = script.source.lines().any(|written| written.trim() == line);
            assert!(stands, "{} has no line `{line}`", script.file);
        }
    }
    // Placements have a page of their own reference; studies are not policies.
    let wanted = shipped::ALL.iter().filter(|script| !matches!(script.role, Role::Placement | Role::Study));
    let missing: Vec<&str> =
        wanted.map(|script| script.name).filter(|name| !quoted.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not in docs/what-you-can-change.md: {missing:?}");
}

#[test]
fn the_model_on_the_page_about_models_is_the_shipped_one() {
    let page = page("models-in-scripts.md");
    let block = page.split("fn lease_model(problem) {").nth(1).and_then(|rest| rest.split("```").next());
    let lines: Vec<&str> =
        block.expect("the model").lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let script = shipped::find("lease-model").expect("shipped").source;
    assert!(lines.len() > 5, "{lines:?}");
    for line in lines {
        assert!(script.lines().any(|written| written.trim() == line), "{line}");
    }
}

/// One rule of a script, edited.
struct Edit {
    /// The policy, and which of its parts is edited.
    policy: &'static str,
    part: &'static str,
    old: &'static str,
    new: &'static str,
    world: &'static str,
    /// Which decision is looked at, counted from 0.
    round: usize,
    /// Who runs then, by the shipped rule and by the edited one.
    before: String,
    after: String,
}

const ONE_GPU: &str = "cluster 1 nodes, 1 gpus, 3 cpus, 50 GB\n";

/// What a policy decides with a text in the place of another.
fn decides(edit: &Edit, old: &str, new: &str) -> String {
    let Edit { policy, part, world, .. } = edit;
    let mut sources = ScriptPolicy::sources_of(policy).unwrap_or_else(|error| panic!("{error}"));
    let own = sources.iter_mut().find(|source| source.name == *part).expect("the part");
    assert_eq!(own.text.matches(old).count(), 1, "{part} has `{old}` once");
    own.text = own.text.replace(old, new);
    let mut loaded = ScriptPolicy::from_sources(policy, &sources, Limits::default())
        .unwrap_or_else(|error| panic!("{policy}, `{new}`: {error}"));
    let world = world.replace("one gpu\n", ONE_GPU);
    let text = format!("scenario: edited\n{world}policy {policy}\nrounds {}\n----\n", edit.round + 1);
    let scenarios = parse(&text).unwrap_or_else(|error| panic!("{policy}: {error}"));
    let actual = run(&scenarios[0], &mut loaded).actual;
    let line = actual.get(edit.round).unwrap_or_else(|| panic!("{policy}: {actual:#?}"));
    let decision = line.split_once(": ").map_or(line.as_str(), |(_, decision)| decision);
    decision.split(" | ").next().unwrap_or_default().to_owned()
}

#[test]
fn one_rule_of_each_script_edited_as_text_changes_the_decision_as_predicted() {
    let quoted = quoted_lines();
    let mut edited = BTreeSet::new();
    let mut wrong = Vec::new();
    for edit in edits() {
        let lines = quoted.get(edit.part).unwrap_or_else(|| panic!("{} is quoted", edit.part));
        assert!(
            lines.iter().any(|line| line.contains(edit.old)),
            "`{}` is part of a quoted line of {}",
            edit.old,
            edit.part
        );
        let (before, after) = (decides(&edit, edit.old, edit.old), decides(&edit, edit.old, edit.new));
        if before != edit.before || after != edit.after {
            wrong.push(format!("{}: `{before}`, edited `{after}`", edit.policy));
        }
        edited.insert(edit.part);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let missing: Vec<&String> = quoted.keys().filter(|name| !edited.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no rule is edited of {missing:?}");
}

/// The edits: (policy, part, old, new, world, round, before, after).
fn edits() -> Vec<Edit> {
 const HEAVY_LIGHT: &str = "one gpu\njob light work=3000\njob heavy work=3000 priority=4\n";
    const LONG_FIRST: &str = "one gpu\njob long work=900\njob short work=300\n";
    const EARLY_LATE: &str = "one gpu\njob early work=900\njob late work=900 at=300\n";
    const LONG_SHORT: &str = "one gpu\njob long work=900\njob short work=300\n";
    const CURVES: &str = "cluster 1 nodes, 8 gpus, 16 cpus, 64 GB
job steep speeds=1:1,2:2,4:4 work=4800 deadline=9000
job flat speeds=1:1,2:1.1,4:1.2 work=2400 deadline=9000
";
    const DEADLINES: &str = "cluster 1 nodes, 4 gpus, 16 cpus, 64 GB
job soon speeds=1:1,2:1.8,4:3 work=1500 deadline=900
job later speeds=1:1,2:1.8,4:3 work=1500 deadline=2000
";
    const QUEUE: &str = "cluster 1 nodes, 2 gpus, 6 cpus, 100 GB
job first gpus=1 work=600
job wide gpus=2 work=300
job small gpus=1 work=900
";
    const HUNGRY: &str = "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob hungry gpus=1 cpus=8 mem=20\n";
    let grown = ["steep 0[0-3] 8c 32g, flat 0[4-7] 8c 32g", "steep 0[0-3] 8c 32g, flat 0[4] 2c 8g"];
    let stop = ["stop_below: ()", "stop_below: 0.0"];
    type Row = (&'static str, [&'static str; 2], &'static str, usize, [&'static str; 2]);
    let one = |early: &'static str, late: &'static str| [early, late];
    let rows: Vec<Row> = vec![
        ("fifo", ["jobs.arrival", "-jobs.arrival"], EARLY_LATE, 1, one("early", "late")),
        ("srtf", ["jobs.remaining", "-jobs.remaining"], LONG_SHORT, 0, one("short", "long")),
        ("las", ["jobs.service", "-jobs.service"], EARLY_LATE, 1, one("late", "early")),
        ("ftf", ["-rho", "rho"], LONG_SHORT, 1, one("short", "long")),
        ("themis", ["-ratio", "ratio"], LONG_SHORT, 1, one("short", "long")),
        (
            "mlfq",
            ["param(\"slice\", 1800.0,", "param(\"slice\", 200.0,"],
            EARLY_LATE,
            1,
            one("early", "late"),
        ),
        (
            "tiresias",
            ["param(\"first\", 3250.0,", "param(\"first\", 200.0,"],
            EARLY_LATE,
            1,
            one("early", "late"),
        ),
        ("tiresias-gittins", ["-gittins(", "gittins("], EARLY_LATE, 1, one("early", "late")),
        (
            "gavel-maxmin",
            ["where(jobs.priority > 0, jobs.priority,", "where(jobs.priority > 0, 1.0 / jobs.priority,"],
            HEAVY_LIGHT,
            0,
            one("heavy", "light"),
        ),
        (
            "gavel-water-filling",
            ["where(jobs.priority > 0, jobs.priority,", "where(jobs.priority > 0, 1.0 / jobs.priority,"],
            HEAVY_LIGHT,
            0,
            one("heavy", "light"),
        ),
        (
            "gavel-isolated",
            ["where(jobs.priority > 0, jobs.priority,", "where(jobs.priority > 0, 1.0 / jobs.priority,"],
            HEAVY_LIGHT,
            0,
            one("heavy", "light"),
        ),
        (
            "gandiva-packing",
            ["where(jobs.priority > 0, jobs.priority,", "where(jobs.priority > 0, 1.0 / jobs.priority,"],
            HEAVY_LIGHT,
            0,
            one("heavy", "light"),
        ),
        (
            "gavel-las",
            ["like(\"gavel-maxmin\", #{ speeds: \"alike\" })", "like(\"srtf\", #{})"],
            LONG_FIRST,
            0,
            one("long", "short"),
        ),
        (
            "gavel-maxmin-packed",
            ["like(\"gavel-maxmin\", #{ packing: true })", "like(\"srtf\", #{})"],
            LONG_FIRST,
            0,
            one("long", "short"),
        ),
        (
            "gandiva-fair",
            ["like(\"gavel-isolated\", #{ per: \"job\" })", "like(\"srtf\", #{})"],
            LONG_FIRST,
            0,
            one("long", "short"),
        ),
        (
            "gavel-proportional",
            ["like(\"gavel-isolated\", #{ per: \"cluster\" })", "like(\"srtf\", #{})"],
            LONG_FIRST,
            0,
            one("long", "short"),
        ),
        (
            "gavel-finish-time",
            ["speed * factor >= worst", "speed * factor * jobs.arrival >= worst"],
            EARLY_LATE,
            1,
            one("late", "early"),
        ),
        (
            "gavel-makespan",
            ["scale / (work * mix_of(jobs))", "scale * (work * mix_of(jobs))"],
            LONG_FIRST,
            0,
            one("long", "short"),
        ),
        (
            "gavel-throughput",
            ["m.maximize(worth);", "m.minimize(worth);"],
            "one gpu\njob slow work=900\njob fast speeds=1:2 work=1800\n",
            0,
            one("fast", "slow"),
        ),
        (
            "gavel-fifo",
            ["rank(-jobs.priority, jobs.arrival)", "rank(-jobs.priority, -jobs.arrival)"],
            EARLY_LATE,
            1,
            one("early", "late"),
        ),
        (
            "allox",
            ["1e-6) / weight", "1e-6) * weight"],
            "one gpu\njob light work=600\njob heavy work=900 priority=4\n",
            0,
            one("heavy", "light"),
        ),
        (
            "srsf-aging",
            ["param(\"patience\", 14400.0,", "param(\"patience\", 1.0,"],
            "one gpu\njob long work=1200\njob first work=300\njob second work=300 at=300\n",
            1,
            one("second", "long"),
        ),
        (
            "just-in-time",
            ["where(must_start, urgency(jobs, too_late, work), 1.0)", "1.0"],
            "one gpu\njob urgent work=1500 deadline=1600\njob small work=600 deadline=9000\n",
            0,
            one("urgent", "small"),
        ),
        ("chronus", ["late, promised, work)", "late, promised, -work)"], LONG_SHORT, 0, one("short", "long")),
        (
            "chronus-deadlines",
            ["#{ spare: \"deadlines\" }", "#{ spare: \"shortest\" }"],
            "one gpu\njob hopeful work=2000 deadline=2300\njob small work=900\n",
            0,
            one("hopeful", "small"),
        ),
        (
            "load-limit",
            ["param(\"hours\", 24.0,", "param(\"hours\", 0.1,"],
            "cluster 1 nodes, 2 gpus, 6 cpus, 100 GB\njob a work=900\njob b work=900\n",
            0,
            ["a 0[0] 3c 50g, b 0[1] 3c 50g", "a 0[0] 3c 50g"],
        ),
        (
            "opt",
            ["view.optimum(view.queue, #{", "view.optimum(rank(view.jobs.duration), #{"],
            LONG_SHORT,
            0,
            ["long 0[0] 1c 10g", "short 0[0] 1c 10g"],
        ),
        (
            "srsf",
            ["jobs.remaining * jobs.gpus", "jobs.remaining"],
            "cluster 1 nodes, 2 gpus, 6 cpus, 100 GB\njob wide gpus=2 work=300\njob thin work=400\n",
            0,
            ["thin 0[0] 3c 50g", "wide 0[0-1] 6c 100g"],
        ),
        (
            "tetris",
            ["param(\"alignment\", 0.5,", "param(\"alignment\", 1.0,"],
            "cluster 1 nodes, 2 gpus, 6 cpus, 100 GB\njob big gpus=2 work=900\njob small work=300\n",
            0,
            ["small 0[0] 3c 50g", "big 0[0-1] 6c 100g"],
        ),
        (
            "drf",
            ["param(\"users\", \"tenants\",", "param(\"users\", \"jobs\","],
            "cluster 1 nodes, 2 gpus, 6 cpus, 100 GB\njob a1 tenant=a\njob a2 tenant=a\njob b1 tenant=b\n",
            0,
            ["a1 0[0] 3c 50g, b1 0[1] 3c 50g", "a1 0[0] 3c 50g, a2 0[1] 3c 50g"],
        ),
        (
            "fair-share",
            ["param(\"weights\", #{},", "param(\"weights\", #{ b: 9 },"],
            "cluster 1 nodes, 3 gpus, 9 cpus, 150 GB\njob a1 tenant=a\njob a2 tenant=a\njob b1 tenant=b\njob b2 tenant=b\n",
            0,
            [
                "a1 0[0] 3c 50g, a2 0[2] 3c 50g, b1 0[1] 3c 50g",
                "a1 0[0] 3c 50g, b1 0[1] 3c 50g, b2 0[2] 3c 50g",
            ],
        ),
        ("elasticflow", stop, CURVES, 0, grown),
        ("elasticflow-open", stop, CURVES, 0, grown),
        ("elasticflow-opt", stop, CURVES, 0, grown),
        (
            "edf",
            ["rank(jobs.deadline)", "rank(-jobs.deadline)"],
            DEADLINES,
            0,
            ["soon 0[0-3] 16c 64g", "later 0[0-3] 16c 64g"],
        ),
        (
            "optimus",
            ["(left / steps.rate - left / steps.next_rate)", "(steps.next_rate - steps.rate)"],
            "cluster 1 nodes, 3 gpus, 12 cpus, 48 GB
job long speeds=1:1,2:1.8,4:3 work=9000
job short speeds=1:1,2:1.9,4:3 work=900
",
            0,
            ["long 0[0-1] 8c 32g, short 0[2] 4c 16g", "long 0[0] 4c 16g, short 0[1-2] 8c 32g"],
        ),
        (
            "easy-backfill",
            ["param(\"reservations\", 1,", "param(\"reservations\", 0,"],
            QUEUE,
            0,
            ["first 0[0] 3c 50g", "first 0[0] 3c 50g, small 0[1] 3c 50g"],
        ),
        (
            "conservative-backfill",
            ["reserve_gangs(queue, ())", "reserve_gangs(queue, 0)"],
            QUEUE,
            0,
            ["first 0[0] 3c 50g", "first 0[0] 3c 50g, small 0[1] 3c 50g"],
        ),
        (
            "gandiva",
            ["together: view.jobs.gpus", "together: view.jobs.duration"],
            "cluster 2 nodes, 2 gpus, 12 cpus, 48 GB
job wide gpus=2 work=900
job left gpus=1 work=600
job right gpus=1 work=600
job second gpus=2 work=600
",
            0,
            [
                "wide 0[0-1] 6c 24g, left 1[0] 6c 24g, right 1[1] 6c 24g, second 0[0-1] 6c 24g",
                "wide 0[0-1] 12c 48g, left 1[0] 3c 12g, right 1[1] 3c 12g, second 1[0-1] 6c 24g",
            ],
        ),
        (
            "proportional",
            ["give(\"fair_share\")", "give(\"demand\")"],
            HUNGRY,
            0,
            ["hungry 0[0] 3c 50g", "hungry 0[0] 8c 20g"],
        ),
        (
            "greedy",
            ["give(\"demand\")", "give(\"fair_share\")"],
            HUNGRY,
            0,
            ["hungry 0[0] 8c 20g", "hungry 0[0] 3c 50g"],
        ),
        (
            "tune",
            [".pack(view.queue)", ".pack(rank(-view.jobs.gpus))"],
            "cluster 2 nodes, 2 gpus, 6 cpus, 100 GB\njob first gpus=1\njob gang gpus=2\njob last gpus=1\n",
            0,
            [
                "first 0[0] 1c 10g, gang 0[1]+1[0] 2c 20g, last 1[1] 1c 10g",
                "first 1[0] 1c 10g, gang 0[0-1] 2c 20g, last 1[1] 1c 10g",
            ],
        ),
        (
            "elasticflow-admission",
            ["param(\"margin\", 0.0,", "param(\"margin\", 0.25,"],
            "cluster 1 nodes, 4 gpus, 16 cpus, 64 GB\njob snug speeds=1:1,2:1.8,4:3 work=1700 deadline=600\n",
            0,
            ["snug 0[0-3] 16c 64g", "nobody"],
        ),
        (
            "edf-admission",
            [
                "view.timeline().reserve_earliest(turn(view.jobs)).verdicts(turn(view.everyone))",
                "view.timeline().block(2, view.now, view.now + 1e9).reserve_earliest(turn(view.jobs)).verdict(job, turn(view.everyone))",
            ],
            "cluster 1 nodes, 2 gpus, 6 cpus, 100 GB\njob timely gpus=2 work=600 deadline=900\n",
            0,
            ["timely 0[0-1] 6c 100g", "nobody"],
        ),
        (
            "chronus-admission",
            ["if why == \"\"", "if true"],
            "one gpu\njob late work=9000 deadline=600\n",
            0,
            ["nobody", "late 0[0] 3c 50g"],
        ),
        (
            "quota",
            ["param(\"share\", 0.5,", "param(\"share\", 0.75,"],
            "cluster 1 nodes, 8 gpus, 16 cpus, 64 GB\njob a gpus=3 work=900\njob b gpus=3 work=900\n",
            0,
            ["a 0[0-2] 6c 24g", "a 0[0-2] 6c 24g, b 0[3-5] 6c 24g"],
        ),
        (
            "level-model",
            [
                "m.maximize(sum(at * problem.throughput));",
                "m.minimize(sum(at * problem.cpus) + sum(at * problem.memory));",
            ],
            "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob hungry cpus=1:0.4,3:1,8:2.4\njob other cpus=1:0.4,3:1,8:1.5\n",
            0,
            ["hungry 0[0] 8c 10g, other 0[1] 3c 10g", "hungry 0[0] 3c 10g, other 0[1] 3c 10g"],
        ),
        (
            "lease-model",
            ["\"maximize\" => 1.0", "\"maximize\" => -1.0"],
            "cluster 1 nodes, 8 gpus, 16 cpus, 64 GB\njob strict gpus=8 work=1500 deadline=9000\njob long gpus=4 work=30000\nround 20m\n",
            1,
            ["strict 0[0-7] 16c 64g", "long 0[0-3] 8c 32g"],
        ),
    ];
    let mut edits: Vec<Edit> = rows
        .into_iter()
        .map(|(policy, [old, new], world, round, [before, after])| {
            // A name alone is that job on the only GPU.
            let full = |name: &str| match name.contains(' ') || name == "nobody" {
                true => name.to_owned(),
                false => format!("{name} 0[0] 3c 50g"),
            };
            Edit { policy, part: policy, old, new, world, round, before: full(before), after: full(after) }
        })
        .collect();
    edits.push(Edit {
        policy: "srtf+no-preempt",
        part: "no-preempt",
        old: "no_preemption();",
        new: "fn place(view) { first_fit() }",
        world: "one gpu\njob long work=900\njob short work=300 at=300\n",
        round: 1,
        before: "long 0[0] 3c 50g".to_owned(),
        after: "short 0[0] 3c 50g".to_owned(),
    });
    edits
}
