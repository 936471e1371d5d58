//! `rota trace` and `--trace` as users meet them: what an import says, what is refused, and every public trace at hand.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rota_test_support::need;

fn rota(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota")).args(args).current_dir(dir).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn a_table_of_ones_own_is_mapped_simulated_and_run_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let table =
        "id,submitted,n,hours,team\na,2026-01-31 07:00:00,1,1.5,vision\nb,2026-01-31 07:10:00,4,0.5,nlp\n";
    fs::write(dir.path().join("mine.csv"), table).expect("written");
    let guess = rota(dir.path(), &["trace", "import", "mine.csv"]);
    assert_eq!(guess.status.code(), Some(1));
    assert!(
        text(&guess.stderr).contains("say --map job_id=id,arrival_s=submitted"),
        "{}",
        text(&guess.stderr)
    );
    let map = "job_id=id,arrival_s=submitted:date,gpus=n,duration_s=hours:h,tenant=team";
    let import = rota(dir.path(), &["trace", "import", "mine.csv", "--map", map]);
    assert_eq!(text(&import.stderr), "mine.csv: recognised as rota; 2 jobs\n");
    let expected = "job_id,arrival_s,gpus,iterations,tenant\na,0,1,5400,vision\nb,600,4,1800,nlp\n";
    assert_eq!(text(&import.stdout), expected);
    let run =
        rota(dir.path(), &["simulate", "-p", "fifo", "--trace", "mine.csv", "--map", map, "--out", "out"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let again = rota(dir.path(), &["explain", "out", "b"]);
    assert!(again.status.success(), "it simulates the run again, with the map: {}", text(&again.stderr));
}

#[test]
fn a_check_lists_every_row_that_makes_no_sense() {
    let dir = tempfile::tempdir().expect("a folder");
    let rows = "a,0,1,5\r\na,1,1,5\r\n\r\nb,-1,1,5\r\nc,1,1,1e18\r\nd,1,4000,5\r\n";
    fs::write(dir.path().join("t.csv"), format!("job_id,arrival_s,gpus,duration_s\r\n{rows}"))
        .expect("written");
    let output = rota(dir.path(), &["trace", "check", "t.csv", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = found["findings"].as_array().expect("a list");
    let lines: Vec<_> = rows.iter().filter_map(|row| row["line"].as_u64()).collect();
    assert_eq!((lines, found["jobs"].as_u64()), (vec![3, 5, 6, 7], Some(2)), "{found:#}");
    let of = |key: &str| rows.iter().filter_map(|row| row[key].as_str()).collect::<Vec<_>>();
    assert_eq!(of("severity"), ["error"; 4]);
    assert_eq!(of("rule"), ["unreadable-row", "unreadable-row", "unreadable-row", "too-many-gpus"]);
    assert_eq!(of("column"), ["job_id", "arrival_s", "duration_s", "gpus"]);
    assert_eq!(of("value"), ["a", "-1", "1e18", "4000"]);
    // A file without one sound row is no other case.
    fs::write(dir.path().join("bad.csv"), "job_id,arrival_s,gpus,duration_s\na,0,1,x\nb,0,0,5\n")
        .expect("written");
    let bad = rota(dir.path(), &["trace", "check", "bad.csv", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&bad.stdout).expect("JSON");
    assert_eq!(
        (bad.status.code(), found["findings"].as_array().map(Vec::len)),
        (Some(1), Some(2)),
        "{found:#}"
    );
    let import = rota(dir.path(), &["trace", "import", "bad.csv", "--skip-bad-rows"]);
    assert!(
        !import.status.success()
            && text(&import.stderr).contains("has no job that can be used: 2 rows make no sense")
    );
    fs::write(dir.path().join("empty.csv"), "job_id,arrival_s,gpus,duration_s\n").expect("written");
    let empty = rota(dir.path(), &["trace", "stats", "empty.csv"]);
    assert!(
        !empty.status.success() && text(&empty.stderr).contains("at least one job"),
        "{}",
        text(&empty.stderr)
    );
}

#[test]
fn a_fix_leaves_a_sound_trace_and_a_record_of_every_change() {
    let dir = tempfile::tempdir().expect("a folder");
    let rows = "a,0,1,5,\na,1,1,5,\nd,1,4000,5,\ne,10,1,5,3\n";
    fs::write(dir.path().join("t.csv"), format!("job_id,arrival_s,gpus,duration_s,deadline_s\n{rows}"))
        .expect("written");
    let fixed = rota(dir.path(), &["trace", "check", "t.csv", "--fix", "mended.csv"]);
    assert!(fixed.status.success(), "{}", text(&fixed.stderr));
    let said = text(&fixed.stderr);
    assert!(said.contains("2 jobs written to mended.csv, 3 changes to mended.csv.changes.csv"), "{said}");
    let record = fs::read_to_string(dir.path().join("mended.csv.changes.csv")).expect("a record");
    assert_eq!(
        record,
        "line,job,column,from,to,why\n\
         3,,row,a,(left out),unreadable-row: job_id: expected a name that no other job has (line 2 has it)\n\
         4,d,row,4000,(left out),too-many-gpus: gpus: the cluster has 128 GPUs for it\n\
         5,e,deadline_s,3,,deadline-before-arrival: the job arrives at 10\n"
    );
    let again = rota(dir.path(), &["trace", "check", "mended.csv", "--strict"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("2 jobs, 0 errors, 0 warnings, 0 notes"), "{}", text(&again.stdout));
    let strict = "job_id,arrival_s,gpus,duration_s,deadline_s\ne,10,1,5,3\n";
    fs::write(dir.path().join("warned.csv"), strict).expect("written");
    assert!(rota(dir.path(), &["trace", "check", "warned.csv"]).status.success());
    assert_eq!(rota(dir.path(), &["trace", "check", "warned.csv", "--strict"]).status.code(), Some(1));
}

#[test]
fn two_traces_are_put_on_one_page() {
    let dir = tempfile::tempdir().expect("a folder");
    for name in ["a.csv", "b.csv"] {
        let text =
            "job_id,arrival_s,gpus,duration_s,tenant,ended\na,0,1,500,x,passed\nb,4000,4,60,y,failed\n";
        fs::write(dir.path().join(name), text).expect("written");
    }
    let args =
        ["trace", "stats", "a.csv", "--against", "b.csv", "--page", "both.html", "--plots", "both", "--json"];
    let output = rota(dir.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["traces"][1]["by_end"]["failed"]["jobs"], 1, "{found:#}");
    assert_eq!(found["traces"][0]["curves"]["per_hour_by_hour"].as_array().map(Vec::len), Some(24));
    let page = fs::read_to_string(dir.path().join("both.html")).expect("a page");
    assert!(page.contains("a.csv and b.csv") && page.matches("<svg").count() == 7, "{}", page.len());
    assert!(dir.path().join("both/plots/demand.pdf").is_file());
}

/// Average completion time in hours under each policy.
fn average_hours(dir: &Path, trace: &str, policies: &[&str]) -> Vec<f64> {
    let policies = policies.join(",");
    let output = rota(dir, &["simulate", "-p", &policies, "--trace", trace, "--cluster", "philly", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let runs = found["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["avg_jct_s"].as_f64().expect("a number") / 3_600.0).collect()
}

#[test]
fn a_trace_fitted_to_philly_keeps_laws_and_queues() {
    let Some(path) = need::shared_path("traces/philly-pollux/philly.csv") else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let philly = path.display().to_string();
    // With few queues, with some, and with one that grows for weeks.
    let policies = ["srtf+tune", "las+tune", "fifo+tune"];
    let given = average_hours(dir.path(), &philly, &policies);
    for seed in 1..=if need::is_long_tier() { 5 } else { 1 } {
        let seed = seed.to_string();
        let args = [
            "trace",
            "generate",
            "--like",
            &philly,
            "--cluster",
            "philly",
            "--seed",
            &seed,
            "-o",
            "like.csv",
        ];
        let fitted = rota(dir.path(), &args);
        assert!(fitted.status.success(), "{}", text(&fitted.stderr));
        eprintln!("seed {seed}: {}", text(&fitted.stderr));
        for ((policy, given), drawn) in
            policies.iter().zip(&given).zip(average_hours(dir.path(), "like.csv", &policies))
        {
            eprintln!("seed {seed}, {policy}: {drawn:.2} h, {given:.2} h in the given trace");
            assert!((drawn / given - 1.0).abs() < 0.1, "seed {seed}, {policy}: {drawn} h, not {given} h");
        }
    }
}

/// Every file below the public traces is read, or refused for a reason that says what it is.
#[test]
fn every_public_file_is_read_or_refused_for_a_stated_reason() {
    let Some(folder) = need::shared_path("traces") else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let throughputs = folder.join("gavel-throughputs/simulation_throughputs.json").display().to_string();
    let imported = rota(dir.path(), &["profile", "import", &throughputs, "-o", "gavel.toml"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    // Of formats with many files one is enough, and the large ones are read by their own tests.
    let cases = [
        ("tiresias/60_job.csv", &[][..], Ok("tiresias; 60 jobs")),
        ("tiresias/tf_job.csv", &[], Err("a name that no other job has")),
        ("tiresias/yarn-gput1000.csv", &[], Err("run times without arrivals")),
        ("tiresias/n32g4.csv", &[], Err("a cluster: give it to --cluster")),
        ("philly-gavel-msr/seed0/0e4a51.trace", &[], Err("rota profile import")),
        (
            "philly-gavel-msr/physical_cluster/small_test.trace",
            &["--profiles", "gavel.toml", "--cluster", "mixed.toml"],
            Ok("gavel"),
        ),
        (
            "shockwave/120_0.2_5_100_40_25_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace",
            &[],
            Ok("shockwave; 120 jobs"),
        ),
        ("sia/workloads/philly/workload-1.csv", &[], Ok("sia; 160 jobs")),
        (
            "alibaba-gpu-v2023-openb/openb_pod_list_default.csv",
            &[],
            Ok("openb; 6,203 jobs; 1088 rows left out: asks for no GPU"),
        ),
        ("alibaba-gpu-v2023-openb/openb_node_list_gpu_node.csv", &[], Err("a list of nodes")),
        ("alibaba-pai-v2020/philly_runtime.csv", &[], Err("run times without arrivals")),
        ("alibaba-pai-v2020/job_1_norm.csv", &[], Err("measured mini-batch times")),
        ("acme/cluster_summary.csv", &[], Err("a summary of clusters")),
        ("helios-artifact/philly_vc.csv", &[], Err("a list of virtual clusters")),
        ("elasticflow-itp/raw/cluster10.csv", &[], Ok("itp; 260 jobs")),
        ("philly-elasticflow/philly_103959.csv", &[], Ok("elasticflow")),
    ];
    let cluster = "format = 1\nname = \"mixed\"\n[[nodes]]\ncount = 4\ngpu_type = \"v100\"\ngpus = 8\ncpus = 64\nmem = \"500GB\"\n";
    fs::write(dir.path().join("mixed.toml"), cluster).expect("written");
    for (file, more, expected) in cases {
        let path = folder.join(file).display().to_string();
        let mut args = vec!["trace", "import", path.as_str(), "-o", "jobs.csv"];
        args.extend(more);
        let output = rota(dir.path(), &args);
        let said = text(&output.stderr);
        match expected {
            Ok(part) => {
                assert!(
                    output.status.success() && said.contains(&format!("recognised as {part}")),
                    "{file}: {said}"
                );
                let again = rota(dir.path(), &["trace", "import", "jobs.csv", "-o", "again.csv"]);
                let again = text(&again.stderr);
                assert!(
                    again.contains("recognised as rota") || again.contains("expected a model of"),
                    "{file}: {again}"
                );
            }
            Err(part) => assert!(!output.status.success() && said.contains(part), "{file}: {said}"),
        }
    }
}
