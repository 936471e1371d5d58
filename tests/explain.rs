//! `rota explain` as its users meet it: a run with declines, and a job of it.

use std::path::Path;
use std::process::{Command, Output};

fn rota(dir: &Path, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args.split_whitespace()).current_dir(dir).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The small trace with deadlines on one small cluster under two policies, in the folder `out`.
fn ran() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/data/elasticflow-50.csv");
    std::fs::write(
        folder.path().join("one.csv"),
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,8,64,256\n",
    )
    .expect("a cluster");
    let run = format!(
        "compare -q -p edf-admission,fifo+proportional --cluster one.csv --profiles elasticflow-a100 --trace {trace} --out out"
    );
    said(&rota(folder.path(), &run));
    folder
}

/// Names of the jobs that ended in this way.
fn jobs(dir: &Path, policy: &str, status: &str) -> Vec<String> {
    let path = dir.join(format!("out/jobs-{policy}.csv"));
    let mut reader = csv::Reader::from_path(path).expect("jobs.csv");
    let rows = reader.records().map(|row| row.expect("a row"));
    rows.filter(|row| row.get(9) == Some(status)).filter_map(|row| row.get(0).map(str::to_owned)).collect()
}

#[test]
fn declined_and_finished_jobs_are_explained() {
    let folder = ran();
    let dir = folder.path();
    let declined = jobs(dir, "edf-admission", "declined");
    let finished = jobs(dir, "fifo+proportional", "finished");
    let (declined, finished) =
        (declined.first().expect("one declined"), finished.last().expect("one finished"));
    let text = said(&rota(dir, &format!("explain out {declined} --policy edf-admission")));
    assert!(text.contains("It was declined: ") && text.contains("GPUs"), "{text}");
    let text = said(&rota(dir, &format!("explain out {finished} -p fifo+proportional")));
    assert!(text.contains("What it held:\n") && text.contains("and was done at"), "{text}");
    let json = said(&rota(dir, &format!("explain out {finished} -p fifo+proportional --json")));
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["status"], "finished");
    assert_eq!(value["phases"][0]["from_s"], value["start_s"]);
}

#[test]
fn an_unknown_job_run_or_folder_is_refused_by_name() {
    let folder = ran();
    let dir = folder.path();
    assert!(refused(&rota(dir, "explain out 1")).contains("several runs: say which with --policy"));
    assert!(
        refused(&rota(dir, "explain out 1 -p las")).contains("--policy las: the folder holds edf-admission")
    );
    assert!(refused(&rota(dir, "explain out nobody -p edf-admission")).contains("has no job `nobody`"));
    assert!(refused(&rota(dir, "explain nothing 1")).contains("nothing"));
}
