//! `rota reproduce` as its users meet it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rota(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args).current_dir(dir).env_remove("ROTA_SHARED").output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The folder of public material, where there is one.
fn shared() -> Option<PathBuf> {
    let default = || concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into();
    let shared = PathBuf::from(std::env::var("ROTA_SHARED").unwrap_or_else(|_| default()));
    if !shared.join("traces/elasticflow-itp").is_dir() {
        println!("{} is absent: nothing to reproduce", shared.display());
        return None;
    }
    Some(shared)
}

#[test]
fn the_functional_test_needs_no_file_and_ends_each_run_with_the_originals_two_lines() {
    let empty = tempfile::tempdir().expect("a folder");
    let output = rota(empty.path(), &["reproduce", "elasticflow", "functional"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(" jobs: ")).collect();
    let expected = [(6, 4), (1, 9), (5, 5), (2, 8), (3, 7)]
        .map(|(accepted, declined)| {
            [format!("accepted jobs: {accepted}"), format!("declined jobs: {declined}")]
        })
        .concat();
    assert_eq!(lines, expected);
    assert!(said.contains("were never published"), "{said}");
}

#[test]
fn the_functional_test_is_told_to_programs_too() {
    let empty = tempfile::tempdir().expect("a folder");
    let output = rota(empty.path(), &["reproduce", "elasticflow", "functional", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["is_as_published"], true);
    assert_eq!(value["runs"][3]["original"], "dlas-gpu");
    assert_eq!(value["runs"][3]["accepted"], 2);
}

#[test]
fn a_missing_trace_is_named_with_its_origin() {
    let empty = tempfile::tempdir().expect("a folder");
    let output = rota(empty.path(), &["reproduce", "elasticflow", "8b", "--traces", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("cluster01.csv is in none of the folders nowhere"), "{said}");
    assert!(said.contains("github.com/microsoft/elasticflow-traces"), "{said}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn a_figure_takes_no_parameters_but_compat() {
    let empty = tempfile::tempdir().expect("a folder");
    let output = rota(empty.path(), &["reproduce", "elasticflow", "8b", "--set", "lease=5"]);
    assert!(text(&output.stderr).contains("--set lease=5: "), "{}", text(&output.stderr));
}

#[test]
fn the_original_program_meets_the_deadlines_it_met_there() {
    let Some(shared) = shared() else { return };
    let folders =
        ["traces/elasticflow-itp/elasticflow", "traces/philly-elasticflow", "golden/elasticflow/traces"]
            .map(|folder| shared.join(folder).display().to_string());
    let mut args = vec!["reproduce", "elasticflow", "8b", "--quick", "--json", "--set", "compat=artifact"];
    args.extend(folders.iter().flat_map(|folder| ["--traces", folder.as_str()]));
    let output = rota(Path::new("."), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let traces = value["traces"].as_array().expect("traces");
    let met = |trace: &str, who: usize| {
        let entry = traces.iter().find(|entry| entry["trace"] == trace).expect("a trace");
        entry["runs"][who]["met"].as_u64().expect("a count")
    };
    // Golden runs of the original: cluster10 and Philly on 32 servers, in the order of the table.
    assert_eq!([0, 1, 2, 3].map(|who| met("cluster10", who)), [250, 202, 86, 124]);
    assert_eq!([1, 2, 3].map(|who| met("philly", who)), [382, 362, 408]);
}

#[test]
fn elasticflow_meets_at_least_as_many_deadlines_as_every_baseline() {
    let Some(shared) = shared() else { return };
    let folders =
        ["traces/elasticflow-itp/elasticflow", "traces/philly-elasticflow", "golden/elasticflow/traces"]
            .map(|folder| shared.join(folder).display().to_string());
    let mut args = vec!["reproduce", "elasticflow", "order", "--json"];
    args.extend(folders.iter().flat_map(|folder| ["--traces", folder.as_str()]));
    let output = rota(Path::new("."), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["order_holds"], true, "{value:#}");
    assert_eq!(value["traces"].as_array().map(Vec::len), Some(6));
}

#[test]
fn a_figure_of_synergy_needs_no_file_and_says_what_holds() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = rota(dir.path(), &["reproduce", "synergy", "8", "--quick", "--out", "eight"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for part in ["less than a minute", "The paper's conclusion holds", "What cannot be had again", "not run"]
    {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    assert!(dir.path().join("eight/plots/avg-jct.png").exists());
}

#[test]
fn a_figure_that_does_not_exist_is_answered_with_those_that_do() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = rota(dir.path(), &["reproduce", "synergy", "13"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there are 1, 6, 7, 8, 9, 10, 11, 12"), "{}", text(&output.stderr));
}

#[test]
fn a_file_that_is_not_shipped_is_named_with_its_origin() {
    let dir = tempfile::tempdir().expect("a folder");
    for (system, figure, file) in [("synergy", "6", "philly.csv"), ("elasticflow", "6b", "195job.csv")] {
        let output = rota(dir.path(), &["reproduce", system, figure, "--traces", "nowhere"]);
        let said = text(&output.stderr);
        assert!(
            said.contains(&format!(
                "{file} is in none of the folders nowhere; it is published at github.com/"
            )),
            "{said}"
        );
    }
}

#[test]
fn elasticflow_leads_on_the_first_jobs_of_its_testbed() {
    let Some(shared) = shared() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let traces = shared.join("traces/elasticflow-itp/elasticflow").display().to_string();
    let output = rota(dir.path(), &["reproduce", "elasticflow", "6a", "--traces", &traces]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("conclusion holds") && said.contains("0.640"), "{said}");
}

/// A crowd on 32 GPUs: sixty jobs in ten minutes, of which not all can be in time.
fn crowd() -> String {
    let mut text =
        "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n".to_owned();
    for job in 0..60_u32 {
        let (submitted, duration_s) = (10 * job, 1_500 + 137 * (job % 19));
        let deadline = submitted + duration_s * (6 + job % 7) / 10;
        let iterations = f64::from(duration_s) * 7.3;
        text.push_str(&format!("{job},{submitted},{iterations:.0},gpt2,{deadline},128,1,{duration_s}\n"));
    }
    text
}

#[test]
fn the_model_never_admits_fewer_than_the_greedy_in_the_same_state_and_both_keep_their_promises() {
    let dir = tempfile::tempdir().expect("a folder");
    for name in ["195job.csv", "cluster10.csv", "philly_103959.csv"] {
        std::fs::write(dir.path().join(name), crowd()).expect("a file can be written");
    }
    let args = ["reproduce", "elasticflow", "admission", "--traces", "."];
    let output = rota(dir.path(), &[&args[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let traces = value["traces"].as_array().expect("traces");
    assert_eq!(traces.len(), 3);
    for trace in traces {
        let count = |place: &str, key: &str| trace[place][key].as_u64().expect("a count");
        let same = |key: &str| count("same_state", key);
        assert_eq!((same("asked"), same("worse")), (60, 0), "{trace}");
        assert!(same("greedy") <= same("model") && same("model") <= same("at_most"), "{trace}");
        for policy in ["elasticflow", "elasticflow-opt"] {
            assert_eq!(
                count(policy, "met"),
                60 - count(policy, "declined"),
                "{policy} broke a promise: {trace}"
            );
        }
    }
    assert!(traces[1]["elasticflow"]["declined"].as_u64() > Some(0), "nothing is scarce: {value}");
    let refused = rota(dir.path(), &[&args[..], &["--set", "compat=artifact"]].concat());
    assert!(text(&refused.stderr).contains("the original has no model"), "{}", text(&refused.stderr));
}
