//! `rota explain` as its users meet it: a run with declines, and a job of it.

mod common;

use std::path::Path;

use common::{refused, rota, said};

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
    let mut reader = csv::Reader::from_path(dir.join("out/jobs.csv")).expect("jobs.csv");
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let rows = reader.records().map(|row| row.expect("a row"));
    rows.filter(|row| row.get(at("policy")) == Some(policy) && row.get(at("status")) == Some(status))
        .filter_map(|row| row.get(at("job_id")).map(str::to_owned))
        .collect()
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

/// A world small enough to compute by hand: 8 GPUs, first come, first served.
fn three_jobs(policy: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("one.csv", "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,8,64,256\n");
    // bert with batch 64 does 10.99 to 11.06 iterations a second on 8 GPUs and 4.46 on one.
    write(
        "jobs.csv",
        "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n\
         wide,0,60000,bert,90000,64,8,5425\nlate,10,20000,bert,6000,64,4,2600\n",
    );
    said(&rota(
        folder.path(),
        &format!("simulate -q -p {policy} --cluster one.csv --trace jobs.csv --round 60s --out out"),
    ));
    folder
}

#[test]
fn what_was_missing_and_who_had_it_is_said_of_a_job_that_waited_and_missed() {
    let folder = three_jobs("fifo");
    let text = said(&rota(folder.path(), "explain out late"));
    assert!(text.contains("It missed its deadline by"), "{text}");
    assert!(text.contains("What its deadline asked for:\n  from 60 s on: "), "{text}");
    assert!(text.contains("GPUs: it needed 4 GPUs and had 0; 0 were free; in the way: wide (8)"), "{text}");
    assert!(text.contains("time: with "), "{text}");
    let json = said(&rota(folder.path(), "explain out late --json"));
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["shortages"][0]["limit"], "gpus");
    assert_eq!(value["shortages"][0]["holders"][0]["job_id"], "wide");
    let recorded = said(&rota(folder.path(), "explain out late --recorded"));
    assert!(!recorded.contains("When it had less"), "{recorded}");
}

#[test]
fn a_job_that_was_scaled_is_told_what_its_deadline_asked_for() {
    let folder = three_jobs("elasticflow");
    let text = said(&rota(folder.path(), "explain out wide"));
    assert!(text.contains("Changes:\n") && text.contains("(its deadline asked for 1)"), "{text}");
}

#[test]
fn a_run_that_cannot_be_had_again_says_why() {
    let folder = three_jobs("fifo");
    let trace = folder.path().join("jobs.csv");
    let text = std::fs::read_to_string(&trace).expect("the trace");
    std::fs::write(&trace, text.replace("late,10", "late,11")).expect("changed");
    let text = said(&rota(folder.path(), "explain out late"));
    assert!(text.contains("What it needed is not known: trace jobs.csv has changed since the run"), "{text}");
    assert!(text.contains("What it held:"), "the folder is enough for that: {text}");
}

/// Servers of 4 GPUs, 12 CPUs and 250 GB, and jobs of alexnet on one GPU each: with its share of 3 CPUs and 62.5 GB such a
/// job has speed 1, with 12 CPUs and 125 GB its best, 2.94.
fn alexnets(n_servers: u32, names: &[&str], run: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("written");
    let head = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node";
    write("cluster.csv", format!("{head}\n1,{n_servers},4,12,250\n"));
    let rows: String = names.iter().map(|name| format!("{name},0,1,60000,alexnet\n")).collect();
    write("jobs.csv", format!("job_id,arrival_s,gpus,iterations,model\n{rows}"));
    let args = format!("simulate --cluster cluster.csv --trace jobs.csv --profiles synergy --out out {run}");
    let text = said(&rota(folder.path(), &args));
    (folder, text)
}

#[test]
fn a_job_alone_on_two_servers_by_hand() {
    let (folder, text) = alexnets(2, &["alone"], "-p fifo+proportional");
    let line = text.lines().find(|line| line.contains("on the table")).unwrap_or_else(|| panic!("{text}"));
    // 1 - 1 / 2.94
    let expected = "fifo+proportional leaves on the table at most 66.0 % of the speed of the jobs that run, mostly alexnet on node0 (";
    assert!(line.starts_with(expected), "{line}");
    let summary = std::fs::read_to_string(folder.path().join("out/summary.json")).expect("summary.json");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let gap = &summary["runs"][0]["speed_gap"];
    assert!((gap["lost"].as_f64().expect("a part") - (1.0 - 1.0 / 2.94)).abs() < 1e-9, "{gap}");
    assert_eq!((&gap["models"][0]["model"], &gap["models"][0]["part"]), (&"alexnet".into(), &1.0.into()));
    let jobs = std::fs::read_to_string(folder.path().join("out/jobs.csv")).expect("jobs.csv");
    assert!(jobs.ends_with(",0.340136,3,12,62.5,125\n"), "{jobs}");
    let text = said(&rota(folder.path(), "explain out alone"));
    for words in [
        "It ran at 34 % of its best speed: with each GPU it held 3 of the 12 CPUs and 62.5 of the 125 GB that it can use.",
        "at 34 % of its best speed on node0 with 3 of 12 CPUs (its share is 3), 62.5 of 125 GB (its share is 62.5)",
        "9 CPUs were free there; 187.5 GB were free there; 1 other node had room for all it can use",
        "At 0 s opt would have given it 12 CPUs and 125 GB on node0, 100 % of its best speed; all jobs together: 1 by \
         fifo+proportional, 2.94 by opt, at most 2.94",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
    let recorded = said(&rota(folder.path(), "explain out alone --recorded"));
    assert!(recorded.contains("It ran at 34 %") && !recorded.contains("When it ran slowly"), "{recorded}");
}

#[test]
fn the_best_of_a_gang_is_said_to_be_that_on_few_nodes() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write(
        "cluster.csv",
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,4,4,12,250\n",
    );
    write("jobs.csv", "job_id,arrival_s,gpus,iterations,model\ngang,0,4,60000,alexnet\n");
    let run =
        "simulate -q -p fifo+tune+random --cluster cluster.csv --trace jobs.csv --profiles synergy --out out";
    said(&rota(folder.path(), run));
    let text = said(&rota(folder.path(), "explain out gang"));
    assert!(text.contains("of its best speed on as few nodes as can hold it (spread over more"), "{text}");
    let text = said(&rota(folder.path(), "solve --at 0 out"));
    assert!(
        text.contains(
            "(the bound assumes that a job with several GPUs runs on the fewest nodes that can hold it)"
        ),
        "{text}"
    );
}

#[test]
fn who_runs_at_its_best_leaves_nothing_and_is_not_called_slow() {
    let (folder, text) = alexnets(2, &["alone"], "-p fifo+greedy");
    assert!(
        text.contains("fifo+greedy leaves on the table at most 0.0 % of the speed of the jobs that run ("),
        "{text}"
    );
    let text = said(&rota(folder.path(), "explain out alone"));
    assert!(text.contains("It ran at 100 % of its best speed") && !text.contains("slowly"), "{text}");
}

/// One server for two: the best for both together is 6 CPUs each, 1.75 twice, and each is in the other's way by 3.
#[test]
fn neighbours_above_their_share_are_named() {
    let (folder, _) = alexnets(1, &["one", "two"], "-q -p fifo+opt");
    let text = said(&rota(folder.path(), "explain out two"));
    assert!(text.contains("at 60 % of its best speed on node0 with 6 of 12 CPUs"), "{text}");
    assert!(
        text.contains("0 CPUs were free there") && text.contains("above their share: job one (by 3 CPUs"),
        "{text}"
    );
    assert!(text.contains("no other node had room for all it can use"), "{text}");
}

#[test]
fn an_unknown_job_run_or_folder_is_refused_by_name() {
    let folder = ran();
    let dir = folder.path();
    assert!(refused(&rota(dir, "explain out 1")).contains("several runs: choose one with --policy"));
    assert!(
        refused(&rota(dir, "explain out 1 -p las"))
            .contains("--policy las: the runs of the folder are edf-admission")
    );
    assert!(refused(&rota(dir, "explain out nobody -p edf-admission")).contains("has no job `nobody`"));
    assert!(refused(&rota(dir, "explain nothing 1")).contains("nothing"));
}

/// Four GPUs, first come, first served: `big` has four jobs of two GPUs and a quota of three, then `small` comes with one.
#[test]
fn a_quota_is_the_reason_of_its_tenants_jobs_and_of_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    write("one.csv", "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,4,24,200\n");
    write(
        "jobs.csv",
        "job_id,arrival_s,model,gpus,duration_s,tenant\n\
         b0,0,res50,2,600,big\nb1,1,res50,2,600,big\nb2,2,res50,2,600,big\nb3,3,res50,2,600,big\n\
         s0,4,res50,2,600,small\n",
    );
    let run = "simulate -q -p fifo --cluster one.csv --profiles synergy --trace jobs.csv --round 60s \
               --quota big=3 --timeline --out out";
    said(&rota(dir, run));
    let explained = |job: &str| {
        let json = said(&rota(dir, &format!("explain out {job} --json")));
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON")
    };
    // It came last and starts at the first round: the jobs that wait for their quota hold no GPU from it.
    let small = explained("s0");
    assert_eq!(small["start_s"], 60.0, "{small}");
    assert_eq!(small["shortages"], serde_json::json!([]), "{small}");
    let blocked = explained("b1");
    let shortage = &blocked["shortages"][0];
    assert_eq!(
        (&shortage["limit"], &shortage["quota"]),
        (&"quota".into(), &serde_json::json!(["big", 3])),
        "{blocked}"
    );
    assert_eq!(shortage["holders"][0]["job_id"], "b0", "only jobs of its tenant are in its way: {blocked}");
    assert_eq!(shortage["holders"].as_array().map(Vec::len), Some(1), "{blocked}");
    let text = said(&rota(dir, "explain out b1"));
    assert!(text.contains("its tenant's quota: it needed 2 GPUs and had 0"), "{text}");
    assert!(text.contains("the jobs of its tenant `big` may hold 3 GPUs; in the way: "), "{text}");
}
