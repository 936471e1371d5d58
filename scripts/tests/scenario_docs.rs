//! docs/scenarios.md: every example on the page is run, and every word of the scenario language is on it.
//! `UPDATE_EXPECT=1` writes what came of the examples.

use std::fs;
use std::path::{Path, PathBuf};

use rota_scripts::scenario::{LineError, Report, of_script, parse, run};
use rota_scripts::{Limits, ScriptPolicy, Source};

fn page() -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scenarios.md");
    let text = fs::read_to_string(&path).expect("docs/scenarios.md is there");
    (path, text)
}

/// The blocks of a kind.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let start = format!("```{kind}\n");
    text.split(start.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

fn reports(text: &str, script: Option<&str>) -> Vec<Report> {
    let scenarios = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(!scenarios.is_empty(), "{text}");
    let report = |scenario: &rota_scripts::scenario::Scenario| {
        let source = |text: &str| Source { name: "mine".into(), file: "mine.rhai".into(), text: text.into() };
        let policy = match script {
            Some(text) => ScriptPolicy::from_sources("mine", &[source(text)], Limits::default()),
            None => ScriptPolicy::load(&scenario.policy, Limits::default()),
        };
        let mut policy = policy.unwrap_or_else(|error| panic!("{error}"));
        for (key, value) in &scenario.set {
            policy.set(key, value).unwrap_or_else(|error| panic!("{error}"));
        }
        run(scenario, &mut policy)
    };
    scenarios.iter().map(report).collect()
}

#[test]
fn every_example_of_the_page_holds() {
    let (path, text) = page();
    let examples = blocks(&text, "scenario");
    assert!(examples.len() >= 9, "{}", examples.len());
    let (mut updated, mut failures) = (text.clone(), String::new());
    for example in examples {
        for report in reports(example, None) {
            let asked = example.split("----").next().unwrap_or_default();
            updated = updated.replace(example, &format!("{asked}----\n{}\n", report.actual.join("\n")));
            if !report.passes() {
                failures.push_str(&report.difference());
            }
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, updated).expect("docs/ can be written");
    } else {
        assert!(failures.is_empty(), "\n{failures}");
    }
    for script in blocks(&text, "rhai") {
        for report in reports(&of_script(script), Some(script)) {
            assert!(report.passes(), "{}", report.difference());
        }
    }
}

#[test]
fn every_word_of_the_language_is_on_the_page_and_in_an_example() {
    let (_, text) = page();
    let examples = blocks(&text, "scenario").join("\n");
    let lines = LineError::UnknownLine.to_string();
    for word in lines.split('`').skip(1).step_by(2).filter(|word| *word != "----") {
        assert!(text.contains(&format!("`{word}`")), "`{word}` is not explained");
        assert!(examples.lines().any(|line| line.starts_with(word)), "`{word}` has no example");
    }
    let properties = LineError::UnknownProperty(String::new()).to_string();
    let properties = properties.split("a job has ").nth(1).expect("the list of properties");
    for word in properties.split(", ") {
        assert!(text.contains(&format!("| `{word}=")), "`{word}` is not explained");
        assert!(examples.contains(&format!(" {word}=")), "`{word}` has no example");
    }
    let units = LineError::UnknownUnit(String::new()).to_string();
    let units = units.split("a cluster has ").nth(1).expect("the list of units").replace('`', "");
    for word in units.split(", ").flat_map(|piece| piece.split(" and ")) {
        assert!(text.contains(&format!("`{word}`")), "`{word}` is not explained");
        assert!(examples.contains(&format!(" {word}")), "`{word}` has no example");
    }
}
