//! GPEmu's Synergy run on a real head and real agents with emulated GPUs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs the figure with this folder of public material; its JSON, and the folder it wrote.
fn reproduced(folder: &Path, shared: &Path, more: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(["reproduce", "gpemu", "synergy", "--json", "--out", "out"]).args(more);
    let output = command.current_dir(folder).env("ROTA_SHARED", shared).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn outcome<'v>(study: &'v Value, claim: &str, of: &str) -> &'v str {
    let verdicts = study["verdicts"].as_array().expect("verdicts");
    let found = verdicts.iter().find(|verdict| verdict["claim"] == claim && verdict["of"] == of);
    found
        .and_then(|verdict| verdict["outcome"].as_str())
        .unwrap_or_else(|| panic!("{claim} of {of}: {verdicts:#?}"))
}

fn assert_whole(study: &Value, n_jobs: u64) {
    let cells = study["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 4, "las and srtf, proportional and tuned");
    for cell in cells {
        for story in ["deployed", "simulated"] {
            assert_eq!(cell[story]["n_jobs"].as_u64(), Some(n_jobs), "{story}: {cell}");
        }
    }
}

#[test]
fn a_few_of_gpemus_jobs_are_deployed_under_four_policies_and_end_as_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    // A point for each curve: what is far from our times is told apart.
    let points = folder.path().join("golden/gpemu");
    std::fs::create_dir_all(&points).expect("made");
    let mut table = String::from("order,source,allocation,jct_h,cdf\n");
    for order in ["las", "srtf"] {
        for allocation in ["proportional", "tune"] {
            for n in 1..=40 {
                table += &format!("{order},gpemu,{allocation},{},{}\n", 100 + n, f64::from(n) / 40.0);
            }
        }
    }
    std::fs::write(points.join("synergy_cdf.csv"), table).expect("written");
    let study = reproduced(folder.path(), folder.path(), &["--quick"]);
    assert_whole(&study, 8);
    assert_eq!(outcome(&study, "as-simulated", "deployed"), "holds", "{:#}", study["verdicts"]);
    assert_eq!(outcome(&study, "times-as-gpemu", "deployed"), "does-not-hold");
    assert_eq!(outcome(&study, "tune-ahead", "GPEmu"), "tie");
    assert_eq!(outcome(&study, "times-as-the-paper", "deployed"), "not-comparable");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    assert!(page.contains("four accounts") && page.contains("not comparable"), "the page shows both");
    let times = std::fs::read_to_string(folder.path().join("out/times.csv")).expect("times");
    assert_eq!(times.lines().count(), 1 + 4 * 2 * 8);
    for name in ["las-allocations", "srtf-allocations", "las-tune", "srtf-proportional"] {
        assert!(folder.path().join(format!("out/plots/{name}.png")).is_file(), "{name}");
    }
}

/// All forty jobs, with time that runs and is never passed over.
#[test]
fn gpemus_forty_jobs_end_as_simulated_and_tuning_is_ahead() {
    if !rota_test_support::need::long_tier("a quarter of an hour") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let study = reproduced(folder.path(), folder.path(), &[]);
    assert_whole(&study, 40);
    for of in ["deployed", "simulated"] {
        assert_eq!(outcome(&study, "tune-ahead", of), "holds", "{:#}", study["verdicts"]);
    }
    assert_eq!(outcome(&study, "as-simulated", "deployed"), "holds", "{:#}", study["verdicts"]);
    assert_eq!(outcome(&study, "times-as-gpemu", "deployed"), "not-comparable", "no points are there");
}
