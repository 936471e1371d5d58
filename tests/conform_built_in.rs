//! `rota conform` where nothing but the program is installed.

use std::process::{Command, Output};

fn conform(args: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.arg("conform").args(args).current_dir(dir.path());
    command.env("ROTA_SHARED", dir.path().join("nothing")).output().expect("the program starts")
}

#[test]
fn an_installed_program_has_cases_of_every_system() {
    let output = conform(&["--json"]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}{text}");
    assert!(errors.contains("built-in golden cases"), "{errors}");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let systems = report["systems"].as_array().expect("systems");
    let counts: Vec<(&str, u64)> = systems
        .iter()
        .map(|of| (of["name"].as_str().unwrap_or(""), of["cases"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(counts, [("synergy", 174), ("elasticflow", 14), ("chronus", 23), ("milp", 8)]);
}

#[test]
fn a_folder_that_was_named_is_not_replaced_by_the_built_in_cases() {
    let output = conform(&["--golden", "nowhere"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere"));
}
