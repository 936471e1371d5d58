//! Deploying traces: what a simulation foretells, fast-forward, and a journal that becomes a trace again.

use rota_test_support::need;
use serde_json::Value;

use crate::cluster::Cluster;

/// No job ends close to a round: a little time lost to starting is a little, not a whole round.
const TRACE: &str = "job_id,arrival_s,gpus,iterations,model,gpu_levels,deadline_s\n\
                     a,0,1,1430,,1-2-4,9000\nb,100,2,720,,,\nc,130,4,440,,,7200\n";

fn summary(text: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(text).expect("JSON");
    all["runs"].as_array().expect("runs").clone()
}

fn apart(deployed: &Value, simulated: &Value, key: &str) -> f64 {
    let number = |run: &Value| run[key].as_f64().unwrap_or_else(|| panic!("{key} of {run:#}"));
    (number(deployed) / number(simulated) - 1.0).abs()
}

#[test]
fn two_policies_are_deployed_with_fast_forward_and_end_as_simulated() {
    let grid = ["--round", "300s", "--on-grid", "--fast-forward", "--time-scale", "20"];
    let cluster = Cluster::start(1, 4, &grid);
    let (trace, again) = (cluster.path("trace.csv"), cluster.path("again.csv"));
    std::fs::write(&trace, TRACE).expect("written");
    let deploy = ["deploy", "--trace", &trace, "--round", "300s", "-p", "las+tune,elasticflow", "--json"];
    let how = ["--fast-forward", "1", "--compare-simulation"];
    let runs = summary(&cluster.rota(&[&deploy[..], &how].concat()));
    assert_eq!(runs.len(), 4);
    for pair in runs.chunks(2) {
        assert_eq!(pair[0]["finished"], 3, "{:#}", pair[0]);
        for key in ["avg_jct_s", "makespan_s"] {
            assert!(apart(&pair[0], &pair[1], key) < 0.05, "{key}: {pair:#?}");
        }
    }
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--trace-out", &again, "--json"]);
    let replayed: Value = serde_json::from_str(&replayed).expect("JSON");
    assert_eq!(replayed["equal"], replayed["plans"], "{replayed}");
    let recorded = std::fs::read_to_string(&again).expect("a trace");
    assert_eq!(recorded.lines().count(), 7, "three jobs under each policy:\n{recorded}");
    let simulated = summary(&cluster.rota(&["simulate", "--trace", &again, "-p", "las+tune", "--json"]));
    assert_eq!(simulated[0]["finished"], 6, "{simulated:#?}");
}

/// The promise of a live cluster that runs the simulator's policies, on real time: minutes, so only in the long tier.
#[test]
fn a_simulation_predicts_what_a_deployment_at_time_scale_60_comes_to() {
    if !need::long_tier("nine minutes") {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let rota = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rota"));
        let output = command
            .args(args)
            .env("ROTA_HOME", home.path())
            .env_remove("ROTA_HEAD")
            .output()
            .expect("it runs");
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "rota {args:?}: {complained}");
        said.into_owned()
    };
    let on = ["--cluster", "a100-4", "--profiles", "elasticflow-a100", "--round", "4m"];
    rota(&[&["up", "--on-grid", "--time-scale", "60"][..], &on].concat());
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/data/short-deadlines-30.csv");
    let deploy = ["deploy", "--trace", trace, "-p", "las+tune,elasticflow", "--compare-simulation", "--json"];
    let runs = summary(&rota(&[&deploy[..], &on].concat()));
    rota(&["up", "--stop"]);
    for pair in runs.chunks(2) {
        for key in ["avg_jct_s", "makespan_s"] {
            assert!(apart(&pair[0], &pair[1], key) < 0.05, "{key}: {pair:#?}");
        }
    }
}

#[test]
fn a_head_that_people_use_does_not_jump_in_time() {
    let cluster = Cluster::start(1, 1, &[]);
    let error = cluster.try_rota(&["deploy", "--jobs", "1", "--fast-forward", "1"]).expect_err("refused");
    assert!(error.contains("must be started with --fast-forward"), "{error}");
}
