//! Every shipped script has a scenario file that shows what it does. `UPDATE_EXPECT=1` writes the results into them.

use std::fs;
use std::path::{Path, PathBuf};

use rota_scripts::scenario::{Report, parse, run};
use rota_scripts::{Limits, ScriptPolicy, Stage, shipped};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn run_file(path: &Path) -> Vec<Report> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let scenarios = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!scenarios.is_empty(), "{} has no scenario", path.display());
    let mut reports = Vec::new();
    for scenario in &scenarios {
        let mut policy =
            ScriptPolicy::load(&scenario.policy, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        for (key, value) in &scenario.set {
            policy.set(key, value).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        reports.push(run(scenario, &mut policy));
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, updated(&text, &reports))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    reports
}

/// The text with the lines after each `----` replaced by the results.
fn updated(text: &str, reports: &[Report]) -> String {
    let mut blocks = Vec::new();
    let mut reports = reports.iter();
    for block in text.split("scenario:").skip(1) {
        let asked = block.split("----").next().unwrap_or_default().trim_end();
        let got = reports.next().map(|r| r.actual.join("\n")).unwrap_or_default();
        blocks.push(format!("scenario:{asked}\n----\n{got}\n"));
    }
    blocks.join("\n")
}

#[test]
fn every_shipped_script_does_what_its_scenario_says() {
    let mut failures = String::new();
    for script in shipped::ALL {
        let path = folder().join(format!("{}.scn", script.name));
        for report in run_file(&path).iter().filter(|report| !report.passes()) {
            failures.push_str(&format!("{}\n{}", path.display(), report.difference()));
        }
    }
    assert!(failures.is_empty() || std::env::var_os("UPDATE_EXPECT").is_some(), "\n{failures}");
}

#[test]
fn no_scenario_is_left_without_its_script_and_no_script_file_is_left_out() {
    for entry in fs::read_dir(folder()).expect("the scenarios' folder") {
        let name =
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(
            shipped::find(&name).is_some_and(|s| s.name == name),
            "{name}.scn belongs to no shipped script"
        );
    }
    for folder in ["policies", "admission", "allocation", "placement", "models"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(&path).into_iter().flatten() {
            let file = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            let is_listed = shipped::ALL.iter().any(|s| s.file == format!("{folder}/{file}"));
            assert!(is_listed, "{folder}/{file} is not in the table of shipped scripts");
        }
    }
}

#[test]
fn every_shipped_script_names_its_source_and_what_differs() {
    for script in shipped::ALL {
        let head =
            script.source.lines().take_while(|line| line.starts_with("//")).collect::<Vec<_>>().join("\n");
        assert!(
            head.starts_with(&format!("// {}: ", script.name)),
            "{}: the header begins with its name",
            script.file
        );
        assert!(head.contains("Source: "), "{}: the header names its source", script.file);
        assert!(
            head.contains("original program"),
            "{}: the header says what differs from the original",
            script.file
        );
    }
}

#[test]
fn any_order_goes_with_any_admission_allocation_and_placement() {
    let of = |role| shipped::ALL.iter().filter(move |s| s.role == role).map(|s| s.name);
    let is_order = |name: &&str| {
        let policy = ScriptPolicy::load(name, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        let mut stages = policy.stages().into_iter().flat_map(|(_, _, stages)| stages);
        stages.all(|stage| stage == Stage::Order)
    };
    for order in of(shipped::Role::Policy).filter(is_order) {
        for admission in of(shipped::Role::Admission) {
            let name = format!("{admission}+{order}+tune");
            assert!(ScriptPolicy::load(&name, Limits::default()).is_ok(), "{name}");
        }
        for allocation in of(shipped::Role::Allocation) {
            for placement in of(shipped::Role::Placement) {
                let name = format!("{order}+{allocation}+{placement}");
                assert!(ScriptPolicy::load(&name, Limits::default()).is_ok(), "{name}");
            }
        }
    }
}
