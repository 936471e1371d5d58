//! What the engine and the composed policies do, as text a reviewer can read. The scenarios of single scripts are
//! next to the scripts; here are those that need several parts. `UPDATE_EXPECT=1` writes what came of them.

use std::fs;
use std::path::{Path, PathBuf};

use rota_scripts::scenario::{Report, parse, run};
use rota_scripts::{Limits, ScriptPolicy};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("the scenarios").map(|entry| entry.expect("an entry").path()).collect();
    // What is known to be wrong has a folder of its own, and a test of its own in duel.rs.
    files.retain(|file| file.is_file());
    files.sort();
    files
}

fn reports(path: &Path, text: &str) -> Vec<Report> {
    let scenarios = parse(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(!scenarios.is_empty(), "{} has no scenario", path.display());
    let report = |scenario: &rota_scripts::scenario::Scenario| {
        let policy = ScriptPolicy::load(&scenario.policy, Limits::default());
        let mut policy = policy.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (key, value) in &scenario.set {
            policy.set(key, value).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        run(scenario, &mut policy)
    };
    scenarios.iter().map(report).collect()
}

/// The text with what stands after each `----` replaced by what came of it.
fn updated(text: &str, reports: &[Report]) -> String {
    let asked =
        text.split("scenario:").skip(1).map(|block| block.split("----").next().unwrap_or("").trim_end());
    let blocks: Vec<_> = asked
        .zip(reports)
        .map(|(asked, report)| format!("scenario:{asked}\n----\n{}\n", report.actual.join("\n")))
        .collect();
    blocks.join("\n")
}

#[test]
fn composed_policies_do_what_their_scenarios_say() {
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failures = String::new();
    for path in files() {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let reports = reports(&path, &text);
        if is_update {
            fs::write(&path, updated(&text, &reports)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
        for report in reports.iter().filter(|report| !report.passes() && !is_update) {
            failures.push_str(&format!("{}\n{}", path.display(), report.difference()));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
