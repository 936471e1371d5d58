//! One set of features for every documented command: what `cargo build --workspace` compiled is what `-p rota` and the commands
//! without a package use. Otherwise HiGHS is compiled again, for minutes.

use std::collections::BTreeSet;
use std::process::Command;

/// Every external package with the features that a selection of ours gives it.
fn features(selection: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--locked",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p} [{f}]",
        ])
        .args(selection)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)").replace(" (proc-macro)", ""));
    lines.filter(|line| !line.is_empty() && !line.starts_with("rota")).collect()
}

#[test]
fn the_program_alone_selects_the_features_of_the_workspace() {
    let (whole, alone) = (features(&["--workspace"]), features(&["-p", "rota"]));
    assert!(alone.len() > 100, "{alone:?}");
    let other: Vec<&String> = alone.difference(&whole).collect();
    assert!(
        other.is_empty(),
        "`cargo build -p rota` would compile these again; see [dependencies] in Cargo.toml: {other:#?}"
    );
}

#[test]
fn commands_without_a_package_mean_the_workspace() {
    assert_eq!(features(&[]), features(&["--workspace"]));
}
