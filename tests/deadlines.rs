//! The ElasticFlow family as its users meet it: its tables with nothing else said, its original's rules, bad rows.

mod common;

use std::path::Path;

use common::{refused, rota, said};
use rota_test_support::need;
use serde_json::Value;

const POLICIES: &str =
    "elasticflow,elasticflow-open,edf,edf-admission,gandiva,tiresias,tiresias-gittins,themis,fifo,las+tune";

const HEAD: &str = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n";

fn runs(json: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(json).expect("JSON");
    file["runs"].as_array().expect("runs").clone()
}

/// A folder with one trace in it: `jobs.csv`.
fn with_trace(rows: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("jobs.csv"), format!("{HEAD}{rows}")).expect("a trace");
    folder
}

#[test]
fn a_gang_beyond_its_levels_runs_under_every_policy() {
    // Levels of bert with batch 64 end at 8 GPUs; 16 were measured, and are slower.
    let folder = with_trace("wide,0,90000,bert,90000,64,16,8189\nslim,60,9000,bert,90000,64,1,2000\n");
    let json = said(&rota(folder.path(), &format!("compare --json -p {POLICIES} --trace jobs.csv")));
    let runs = runs(&json);
    assert_eq!(runs.len(), 10);
    for run in runs {
        assert_eq!((&run["finished"], &run["met"]), (&Value::from(2), &Value::from(2)), "{run}");
    }
}

#[test]
fn the_public_traces_run_under_every_policy_with_nothing_else_said() {
    for file in [
        "traces/elasticflow-itp/elasticflow/195job.csv",
        "traces/elasticflow-itp/elasticflow/cluster10.csv",
        "traces/philly-elasticflow/elasticVpollux_e.csv",
        "traces/philly-elasticflow/resnet_cifar_trace.csv",
    ] {
        let Some(path) = need::shared_path(file) else { return };
        let args = format!("compare --json -p {POLICIES} --trace {}", path.display());
        for run in runs(&said(&rota(Path::new("."), &args))) {
            assert_eq!(run["unfinished"], 0, "{file}: {run}");
        }
    }
}

#[test]
fn promises_that_the_rest_of_a_policy_breaks_are_counted() {
    // With two GPUs it would be in time, and las gives it the one that it asks for.
    let folder = with_trace("tight,0,9000,bert,1200,64,1,2000\n");
    let run = |policy: &str| {
        rota(folder.path(), &format!("simulate -p {policy} --trace jobs.csv --round 60s --out out"))
    };
    let broken = run("elasticflow-admission+las");
    let warning = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert!(warning.contains("elasticflow-admission promises deadlines by a plan"), "{warning}");
    let line = "of 1 deadlines that elasticflow-admission promised, las missed 1 (100.0 %)";
    let said_of_it = said(&broken);
    assert!(said_of_it.contains(line), "{said_of_it}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a report");
    assert!(page.contains(line));
    std::fs::remove_dir_all(folder.path().join("out")).expect("the folder");
    let kept = run("elasticflow-admission");
    assert!(!String::from_utf8_lossy(&kept.stderr).contains("warning"), "it keeps what it promises");
    assert!(!said(&kept).contains("promised"));
}

#[test]
fn compat_runs_the_originals_schedulers_under_both_their_names() {
    let folder = with_trace("a,0,9000,bert,4000,64,1,2000\nb,0,90000,bert,100,64,8,8137\n");
    let args = "compare --json -p ef-accessctrl,elasticflow,gandiva --trace jobs.csv --round 60s --set compat=artifact";
    let runs = runs(&said(&rota(folder.path(), args)));
    let counts = |at: usize| (runs[at]["met"].as_u64(), runs[at]["declined"].as_u64());
    // All arrivals of one moment are judged together there: the impossible one takes the other with it.
    assert_eq!(counts(0), (Some(0), Some(2)));
    assert_eq!(counts(1), counts(0));
    assert_eq!(runs[2]["finished"], 2);
    assert!(runs[2]["gpu_util"].as_f64().is_some_and(|util| util > 0.0 && util < 1.0), "{}", runs[2]);
}

#[test]
fn compat_writes_its_rounds_and_what_was_asked_of_it() {
    let folder = with_trace("a,0,9000,bert,4000,64,1,2000\nb,30,90000,bert,100000,64,8,8137\n");
    for policy in [
        "elasticflow",
        "elasticflow-open",
        "edf",
        "edf-admission",
        "gandiva",
        "tiresias",
        "themis",
        "chronus",
    ] {
        let args = format!(
            "simulate -q -p {policy} --trace jobs.csv --round 60s --set compat=artifact --defect none --out out --overwrite"
        );
        said(&rota(folder.path(), &args));
        let rounds = std::fs::read_to_string(folder.path().join("out/rounds.csv")).expect("rounds.csv");
        let mut lines = rounds.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let columns = lines.next().expect("a heading");
        let held = columns.iter().position(|column| *column == "gpus_held").expect("gpus_held");
        let most = lines.filter_map(|line| line[held].parse::<u32>().ok()).max();
        assert!(most.is_some_and(|most| most >= 8), "{policy}: {rounds}");
        let config = std::fs::read_to_string(folder.path().join("out/config.toml")).expect("config.toml");
        assert!(
            config.contains("defect = [\"none\"]") && config.contains("defects = [\"none\"]"),
            "{config}"
        );
    }
}

#[test]
fn a_defect_alone_is_the_difference_it_says() {
    let folder = with_trace("a,0,9000,bert,4000,64,1,2000\nb,0,90000,bert,100,64,8,8137\n");
    let met = |defect: &str| {
        let args = format!(
            "simulate --json -p elasticflow --trace jobs.csv --round 60s --set compat=artifact --defect {defect}"
        );
        runs(&said(&rota(folder.path(), &args)))[0]["met"].as_u64()
    };
    assert_eq!(met("all"), Some(0), "the impossible one takes the other with it");
    assert_eq!(met("none"), Some(1));
    assert_eq!(met("joint-admission"), Some(0));
    assert_eq!(met("growth-sign,planned-end"), Some(1));
    let list = said(&rota(folder.path(), "simulate --defect list"));
    assert!(list.contains("joint-admission") && list.contains("fixed: "), "{list}");
}

#[test]
fn compat_refuses_what_the_original_has_not() {
    let folder = with_trace("a,0,9000,bert,4000,64,1,2000\n");
    let said = |more: &str| {
        refused(&rota(folder.path(), &format!("simulate --trace jobs.csv --set compat=artifact {more}")))
    };
    assert!(
        said("-p edf --window 0..1").contains("--window: the original program of edf has no such option")
    );
    assert!(said("-p nobody").contains("ElasticFlow's original has ef-accessctrl, ef, edf"));
    assert!(said("-p edf --round 1500ms").contains("a slot of 1.5 s: the original needs whole seconds"));
}

#[test]
fn bad_rows_are_refused_with_row_and_column_or_counted_and_listed() {
    let folder = with_trace(
        "a,5,100,bert,900,64,2,50\nb,5,100,berd,900,64,2,50\nc,5,100,bert,1,64,2,50\nd,5,100,bert,900,64,999,50\n",
    );
    let refusal = refused(&rota(folder.path(), "simulate -p edf --trace jobs.csv"));
    assert!(
        refusal.contains("jobs.csv:3, column 4 (model_name): got \"berd\", expected a model of"),
        "{refusal}"
    );
    let output = rota(folder.path(), "simulate -p edf --trace jobs.csv --skip-bad-rows --json");
    let listed = String::from_utf8(output.stderr.clone()).expect("text");
    assert_eq!(runs(&said(&output))[0]["finished"], 1);
    assert!(listed.starts_with("3 rows dropped:\n  line 3: jobs.csv:3, column 4 (model_name)"), "{listed}");
    for place in ["line 4: jobs.csv:4, column 5 (ddl)", "line 5: jobs.csv:5, column 7 (num_gpu)"] {
        assert!(listed.contains(place), "{place} is missing in\n{listed}");
    }
}
