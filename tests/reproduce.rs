//! `rota reproduce` as its users meet it.

use std::path::Path;
use std::process::{Command, Output};

use rota_lab::reproduce::claims::Scope;
use rota_scripts::artifact::{Defects, System};
use rota_test_support::need;

fn rota(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args).current_dir(dir).env_remove("ROTA_SHARED").output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
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
fn the_functional_test_has_a_form_for_programs_too() {
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
fn a_parameter_that_a_figure_does_not_have_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = |args: &[&str], why: &str| {
        let output = rota(dir.path(), &[&["reproduce"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    };
    refused(&["synergy", "8", "--quick", "--set", "lease=5"], "--set lease: this study has seeds");
    refused(&["synergy", "8", "--quick", "--set", "compat=both"], "--set compat=both: there is `artifact`");
    refused(&["elasticflow", "6b", "--live"], "--live is for the functional test");
}

/// Where the traces lie below a folder of public material.
const FOLDERS: [&str; 3] =
    ["traces/elasticflow-itp/elasticflow", "traces/philly-elasticflow", "golden/elasticflow/traces"];

#[test]
fn a_defect_that_is_none_or_another_programs_is_refused_before_anything_runs() {
    let empty = tempfile::tempdir().expect("a folder");
    for (name, message) in [
        ("foo", "`foo` is not a defect of an original"),
        ("edf-width", "--defect edf-width: synergy has no such defect"),
    ] {
        let output = rota(empty.path(), &["reproduce", "synergy", "9", "--quick", "--defect", name]);
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
        assert!(!empty.path().join("reproduce-synergy-9").exists(), "{name} cost a run");
    }
}

/// Each defect of the two programs in the figure by itself; the numbers of the other program do not depend on it.
#[test]
fn every_named_defect_can_be_the_only_one_of_a_figure() {
    let Some(shared) = need::shared() else { return };
    let folder = [shared.join("traces/elasticflow-itp/elasticflow").display().to_string()];
    let run = |defect: &str| {
        let args = ["elasticflow", "6a", "--set", "compat=artifact", "--defect", defect];
        let value = claims(&with_traces(&args, &folder));
        let rows = value["rows"]["original"].as_array().expect("rows").clone();
        assert_eq!(rows.len(), 6, "{defect}: a run failed");
        move |policy: &str| {
            let row = rows.iter().find(|row| row["policy"] == policy).expect("a row");
            row["numbers"]["deadline_ratio"].as_f64().expect("a ratio")
        }
    };
    let as_it_is = run("all");
    assert_eq!(["edf", "tiresias", "chronus"].map(&as_it_is), [0.08, 0.32, 0.44]);
    for defect in Defects::ALL.of(System::ElasticFlow).iter() {
        assert_eq!(run(defect.name())("chronus"), as_it_is("chronus"), "{defect}");
    }
    for defect in Defects::ALL.of(System::Chronus).iter() {
        assert_eq!(run(defect.name())("edf"), as_it_is("edf"), "{defect}");
    }
    assert_eq!(run("edf-width")("edf"), as_it_is("edf"), "it alone makes EDF what it is");
    assert!(run("none")("edf") > as_it_is("edf"));
}

/// A figure's claims.json; its files are left in a folder that is gone afterwards.
fn claims(args: &[&str]) -> serde_json::Value {
    let dir = tempfile::tempdir().expect("a folder");
    let output = rota(dir.path(), &[&["reproduce"], args, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn with_traces<'a>(args: &[&'a str], folders: &'a [String]) -> Vec<&'a str> {
    let given = folders.iter().flat_map(|folder| ["--traces", folder.as_str()]);
    args.iter().copied().chain(given).collect()
}

fn outcome<'a>(value: &'a serde_json::Value, claim: &str, column: &str) -> &'a str {
    let claims = value["claims"].as_array().expect("claims");
    let claim = claims.iter().find(|entry| entry["name"] == claim).expect("a claim");
    let verdicts = claim["verdicts"].as_array().expect("verdicts");
    let verdict = verdicts.iter().find(|verdict| verdict["column"] == column).expect("a column");
    verdict["outcome"].as_str().expect("an outcome")
}

#[test]
fn the_original_program_meets_the_deadlines_it_met_there() {
    let Some(shared) = need::shared() else { return };
    let folders = FOLDERS.map(|folder| shared.join(folder).display().to_string());
    let args = ["elasticflow", "8b", "--quick", "--set", "compat=artifact"];
    let value = claims(&with_traces(&args, &folders));
    let rows = value["rows"]["original"].as_array().expect("rows");
    let met = |trace: &str, policy: &str| {
        let row = rows.iter().find(|row| row["at"]["trace"] == trace && row["policy"] == policy);
        row.expect("a row")["numbers"]["met"].as_f64().expect("a count")
    };
    // Golden runs of the original: cluster10 and Philly on 32 servers.
    let policies = ["elasticflow", "edf", "gandiva", "tiresias"];
    assert_eq!(policies.map(|policy| met("cluster10", policy)), [250.0, 202.0, 86.0, 124.0]);
    assert_eq!(
        ["edf", "gandiva", "tiresias"].map(|policy| met("philly_103959", policy)),
        [382.0, 362.0, 408.0]
    );
}

#[test]
fn elasticflow_meets_at_least_as_many_deadlines_as_every_baseline() {
    let Some(shared) = need::shared() else { return };
    let folders = FOLDERS.map(|folder| shared.join(folder).display().to_string());
    let value = claims(&with_traces(&["elasticflow", "order", "--set", "compat=none"], &folders));
    assert_eq!(outcome(&value, "elasticflow-never-behind", "shipped"), "holds", "{value:#}");
}

#[test]
fn a_figure_of_synergy_needs_no_file_and_has_a_verdict_for_each_column() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = rota(dir.path(), &["reproduce", "synergy", "9", "--quick", "--quiet", "--out", "nine"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "--quiet");
    let said = text(&output.stdout);
    for part in [
        "tune-never-slower: ",
        "  original's rules  ",
        "  shipped           ",
        "--quick: a quarter of the jobs",
    ] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    for file in ["report.html", "claims.json", "plots/avg-jct-s-las-split-50-0-50.png", "study/runs.csv"] {
        assert!(dir.path().join("nine").join(file).exists(), "{file}");
    }
}

/// The artifact guide's numbers, with the random numbers of the artifact's program and its rules.
#[test]
fn the_published_row_of_synergy_comes_out_to_its_last_digit() {
    let dir = tempfile::tempdir().expect("a folder");
    let args = [
        "simulate",
        "-p",
        "fifo+tune",
        "--workload",
        "synergy-artifact",
        "--jobs-per-hour",
        "9",
        "--jobs",
        "7500",
    ];
    let how = ["--window", "4000..5000", "--set", "compat=artifact", "--json"];
    let output = rota(dir.path(), &[&args[..], &how].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let hours = |name: &str| value["runs"][0][name].as_f64().expect("a number") / 3_600.0;
    assert_eq!(
        (format!("{:.4}", hours("avg_jct_s")), format!("{:.3}", hours("p99_jct_s"))),
        ("21.8766".into(), "156.933".into())
    );
}

/// Golden runs of the original's opt: equal optima leave its solver a choice, so means are compared and not jobs.
#[test]
fn the_originals_opt_takes_as_long_as_it_did_there() {
    let Some(shared) = need::shared() else { return };
    let golden = shared.join("golden/synergy");
    let dir = tempfile::tempdir().expect("a folder");
    let cluster = golden.join("configs/s1.ini").display().to_string();
    for (input, policy, hours) in [
        ("o24_single", "fifo+opt", 0.8996),
        ("o24_single", "srtf+opt", 0.8579),
        ("o20_multi", "fifo+opt", 1.3253),
        ("o20_multi", "srtf+opt", 1.0669),
    ] {
        let trace = golden.join("inputs").join(format!("{input}.trace")).display().to_string();
        let args =
            ["simulate", "-p", policy, "--trace", &trace, "--cluster", &cluster, "--profiles", "synergy"];
        let how = ["--first-round", "1s", "--set", "compat=artifact", "--json"];
        let output = rota(dir.path(), &[&args[..], &how].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mean = value["runs"][0]["avg_jct_s"].as_f64().expect("a number") / 3_600.0;
        assert!((mean / hours - 1.0).abs() < 0.01, "{input} {policy}: {mean} h, the original {hours} h");
    }
}

#[test]
fn every_figure_and_claim_stands_in_the_list_of_the_documentation() {
    let page = include_str!("../docs/reproduce.md");
    let (_, list) =
        page.split_once("<!-- claims: written by `rota reproduce all --claims` -->").expect("a list");
    for paper in rota_lab::reproduce::papers::PAPERS {
        for figure in paper.figures {
            let heading = format!("### `{} {}`: {}", paper.system, figure.name, figure.title);
            let (_, section) = list.split_once(&heading).unwrap_or_else(|| {
                panic!(
                    "docs/reproduce.md lacks {heading}: run `rota reproduce all --claims docs/reproduce.md`"
                )
            });
            let section = section.split("\n### ").next().unwrap_or_default();
            for claim in figure.claims {
                let row = format!("| `{}` | {}", claim.name, claim.says);
                let over_all = format!("### `{}`, over all figures", paper.system);
                let (section, heading) = match claim.scope {
                    Scope::Figure => (section, &heading),
                    Scope::Paper => (list.split_once(&over_all).map_or("", |(_, rest)| rest), &over_all),
                };
                assert!(section.contains(&row), "{heading} lacks {row}");
            }
        }
    }
    let (_, gpemu) = list.split_once("### `gpemu synergy`: ").expect("GPEmu's run has its section");
    for (name, says) in rota_lab::reproduce::gpemu::CLAIMS {
        assert!(gpemu.contains(&format!("| `{name}` | {says} | ")), "{name}");
    }
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
fn elasticflow_leads_on_the_first_jobs_of_its_testbed_in_every_column() {
    let Some(shared) = need::shared() else { return };
    let folder = [shared.join("traces/elasticflow-itp/elasticflow").display().to_string()];
    let value = claims(&with_traces(&["elasticflow", "6a"], &folder));
    for column in ["published", "original", "shipped"] {
        assert_eq!(outcome(&value, "elasticflow-ahead", column), "holds", "{column}: {value:#}");
    }
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
    for claim in ["model-never-admits-fewer", "promises-are-kept"] {
        assert_eq!(outcome(&value, claim, "shipped"), "holds", "{value:#}");
    }
    let rows = value["rows"]["shipped"].as_array().expect("rows");
    let number = |trace: &str, policy: &str, name: &str| {
        let row = rows.iter().find(|row| row["at"]["trace"] == trace && row["policy"] == policy);
        row.expect("a row")["numbers"][name].as_f64().expect("a number")
    };
    for trace in ["195job", "cluster10", "philly_103959"] {
        let [greedy, model, any] =
            ["elasticflow", "elasticflow-opt", "any plan"].map(|policy| number(trace, policy, "entered"));
        assert_eq!(number(trace, "elasticflow", "asked"), 60.0);
        assert!(greedy <= model && model <= any, "{trace}: {greedy} {model} {any}");
    }
    assert!(number("cluster10", "elasticflow", "declined") > 0.0, "nothing is scarce: {value}");
    let refused = rota(dir.path(), &[&args[..], &["--set", "compat=artifact"]].concat());
    assert!(text(&refused.stderr).contains("the original has no model"), "{}", text(&refused.stderr));
    let refused = rota(dir.path(), &[&args[..], &["--defect", "edf-width"]].concat());
    assert!(
        text(&refused.stderr).contains("--defect edf-width: the original has no model"),
        "nothing would change"
    );
}
