//! The built-in workload with data sets: placement by data is ahead, on every seed, and by how much.

use std::process::Command;

use serde_json::Value;

fn runs(options: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_rota")).args(options).output().expect("it runs");
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    results["runs"].as_array().expect("runs").clone()
}

fn figure(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or_else(|| panic!("{name}: {run:#}"))
}

#[test]
fn placement_by_data_is_ahead_on_every_seed() {
    let mut gains = Vec::new();
    for seed in ["1", "2", "3", "4", "5"] {
        let policies =
            "fifo+proportional+first-fit,fifo+proportional+consolidate,fifo+proportional+local-data";
        let runs = runs(&["compare", "--workload", "data", "-p", policies, "--seed", seed, "--json"]);
        let [first_fit, consolidate, local] = runs.as_slice() else { panic!("{runs:#?}") };
        for other in [first_fit, consolidate] {
            let jct = |run: &Value| figure(run, "avg_jct_s");
            gains.push(jct(other) / jct(local));
            assert!(
                figure(local, "data_wait_s") < 0.6 * figure(other, "data_wait_s"),
                "seed {seed}: {runs:#?}"
            );
            assert!(figure(local, "data_hit_ratio") > figure(other, "data_hit_ratio") + 0.2, "seed {seed}");
            assert!(figure(local, "data_fetched_bytes") < figure(other, "data_fetched_bytes"), "seed {seed}");
        }
    }
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least > 1.05, "at least 5 % on every seed: {gains:?}");
}

/// A job that is moved fetches its data again, so tune must not move it as lightly as one without data.
#[test]
fn tune_is_not_behind_proportional_where_moving_means_fetching_again() {
    for (order, placement, loads) in [
        ("fifo", "consolidate", "20,35,45"),
        ("fifo", "local-data", "20,35,45"),
        ("srtf", "consolidate", "20,35,45"),
        ("srtf", "local-data", "20,35,45"),
        ("las", "consolidate", "20,35,45"),
        ("las", "local-data", "20,35,45"),
    ] {
        let policies = format!("{order}+tune+{placement},{order}+proportional+{placement}");
        let options = ["compare", "--workload", "data", "-p", &policies, "--jobs-per-hour", loads];
        let runs = runs(&[&options[..], &["--seed", "77", "--json"]].concat());
        let jcts = |allocation: &str| -> Vec<f64> {
            let name = format!("{order}+{allocation}+{placement}");
            let of_it = runs.iter().filter(|run| run["policy"].as_str() == Some(name.as_str()));
            of_it.map(|run| figure(run, "avg_jct_s")).collect()
        };
        let (tune, proportional) = (jcts("tune"), jcts("proportional"));
        assert_eq!((tune.len(), proportional.len()), (loads.split(',').count(), loads.split(',').count()));
        for (tune, proportional) in tune.iter().zip(&proportional) {
            assert!(*tune <= 1.02 * proportional, "{policies} at {loads}: {tune} s against {proportional} s");
        }
        for run in &runs {
            assert!(figure(run, "data_wait_s") < figure(run, "avg_jct_s"), "{run:#}");
        }
    }
}

#[test]
fn workloads_without_data_sets_say_nothing_of_data() {
    let runs = runs(&["simulate", "--workload", "small", "-p", "fifo+proportional+local-data", "--json"]);
    assert!(runs[0].get("data_hit_ratio").is_none(), "{:#}", runs[0]);
}
