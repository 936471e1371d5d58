//! `just-in-time` compared with the policies it is meant to be ahead of, on drawn jobs with strict, soft and no deadlines.

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{refused, rota, said};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rota_test_support::need;
use serde_json::Value;

/// Who is to be beaten.
const OTHERS: [&str; 4] = ["edf", "themis", "srtf", "chronus"];

const CLUSTER: &str = "format = 1\nname = \"eight\"\n[[nodes]]\ncount = 8\ngpu_type = \"gpu\"\ngpus = 8\ncpus = 128\nmem = \"256GB\"\n";

/// Jobs in Chronus' format: most are short and small, most of the work is in the others. All come within 1,000 minutes, far
/// more than can be done: spread over 1,400, `edf` can meet nearly all deadlines and is ahead with one of these seeds.
fn drawn(seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut trace =
        "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,\
                     expect_value_list,best_effort,job_type\n"
            .to_owned();
    for job in 0..1200 {
        let gpus = [1, 1, 1, 1, 1, 1, 1, 2, 4, 8][rng.random_range(0..10)];
        let minutes = (20.0 / rng.random_range(0.01..1.0_f64)) as u32;
        let first = minutes + 15 + (f64::from(minutes) * rng.random_range(0.1..2.2)) as u32;
        let apart = 30.max(minutes / 3);
        let (times, values, is_best_effort, class) = match rng.random_range(0..3) {
            0 => ("0".to_owned(), "0", 1, "best"),
            1 => (first.to_string(), "10", 0, "strict"),
            _ => (format!("{first}-{}-{}", first + apart, first + 2 * apart), "10-8-5", 0, "soft"),
        };
        let at = rng.random_range(1..1000);
        let _ = writeln!(
            trace,
            "{job},somebody,{gpus},{at},100,alexnet,{minutes},5,{times},{values},{is_best_effort},{class}"
        );
    }
    trace
}

/// Deadlines missed, and the mean completion time of best-effort jobs.
fn fared(runs: &[Value], policy: &str) -> (f64, f64) {
    let run = runs.iter().find(|run| run["policy"] == policy).expect("it ran");
    let figure = |name: &str| run[name].as_f64().expect("a number");
    (figure("deadline_jobs") - figure("deadline_met"), figure("avg_best_effort_jct_s"))
}

/// Runs of `compare`, with `just-in-time` among the policies.
fn compared(dir: &Path, policies: &[&str], rest: &str) -> Vec<Value> {
    let policies = policies.join(",");
    let args = format!("compare --json -p just-in-time,{policies} --round 5m {rest}");
    let file: Value = serde_json::from_str(&said(&rota(dir, &args))).expect("JSON");
    file["runs"].as_array().expect("runs").clone()
}

#[test]
fn fewest_deadlines_are_missed_where_not_all_can_be_met() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("eight.toml"), CLUSTER).expect("a cluster");
    for seed in 1..=3 {
        std::fs::write(dir.path().join("jobs.csv"), drawn(seed)).expect("a trace");
        // EDF looks at no estimate, so wrong ones do not harm it.
        for (setting, others) in
            [("", &OTHERS[..]), ("--restart-cost 30s", &OTHERS[..]), ("--estimate-noise 0.3", &OTHERS[1..])]
        {
            let rest = format!("--trace jobs.csv --cluster eight.toml {setting}");
            let runs = compared(dir.path(), others, &rest);
            let (missed, _) = fared(&runs, "just-in-time");
            for other in others {
                let (missed_there, _) = fared(&runs, other);
                assert!(missed < missed_there, "seed {seed} {setting}: {missed}, {other} {missed_there}");
            }
        }
    }
}

#[test]
fn on_the_public_traces_it_is_ahead_of_chronus_and_srtf() {
    for mix in ["MIX1", "MIX2"] {
        let trace = format!("traces/philly-chronus/trace_job_Philly_{mix}.csv");
        let Some(trace) = need::shared_path(&trace) else { return };
        let rest = format!("--trace {} --cluster chronus", trace.display());
        let runs = compared(Path::new("."), &["chronus", "srtf"], &rest);
        let (missed, best_effort_s) = fared(&runs, "just-in-time");
        let (missed_by_chronus, best_effort_there) = fared(&runs, "chronus");
        assert!(missed * 10.0 < missed_by_chronus, "{mix}: {missed}, chronus {missed_by_chronus}");
        assert!(best_effort_s < best_effort_there, "{mix}: {best_effort_s} s, chronus {best_effort_there} s");
        let (missed_by_srtf, _) = fared(&runs, "srtf");
        assert!(missed * 3.0 < missed_by_srtf, "{mix}: {missed}, srtf {missed_by_srtf}");
    }
}

#[test]
fn its_parameters_have_bounds() {
    let why = refused(&rota(Path::new("."), "simulate -p just-in-time --jobs 5 --set crowded=-1"));
    assert!(why.contains("parameter `crowded`: `-1` is not a number from 0 to 1000"), "{why}");
}
