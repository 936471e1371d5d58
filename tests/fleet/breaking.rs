//! `rota deploy --faults`: what fails in a simulation fails on a cluster of emulated agents too, at the same times and with the same results.

use std::path::Path;
use std::process::{Command, Output};

use rota_test_support::need;
use serde_json::Value;

/// A cluster of `rota up`, ended with the test.
struct Local(tempfile::TempDir);

impl Local {
    fn up(args: &[&str]) -> Local {
        let local = Local(tempfile::tempdir().expect("a folder"));
        local.rota(&[&["up"], args].concat());
        local
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }

    fn output(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
        command
            .args(args)
            .env("ROTA_HOME", self.path())
            .env_remove("ROTA_HEAD")
            .env_remove("ROTA_CREDENTIALS");
        command.output().expect("rota runs")
    }

    fn rota(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "rota {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.output(&["up", "--stop"]);
    }
}

const JOBS: &str = "job_id,arrival_s,gpus,iterations,checkpoint_every_s,restart_s,ended\n\
                    a,0,4,4000,600,60,\nb,0,4,4000,600,60,\nc,0,2,2500,600,60,failed\nd,310,2,1900,600,60,\ne,700,1,5000,600,60,passed\n";

/// A node for longer than a round, a GPU of the other, and a failure that takes checkpoints.
const OUTAGES: &str = "from_s,lasts_s,what,which,loses_checkpoints\n\
                       1330,1000,node,node0,\n2750,900,gpu,node1/0,\n4900,400,node,node1,1\n";

fn runs(text: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(text).expect("JSON");
    all["runs"].as_array().expect("runs").clone()
}

#[test]
fn nodes_gpus_and_jobs_fail_as_in_a_simulation_and_times_agree() {
    // Killing and starting processes takes real time, so many times as much of the jobs'.
    let (time_scale, most) = if need::is_long_tier() { ("30", 0.03) } else { ("200", 0.15) };
    let local = Local::up(&[
        "2",
        "--gpus",
        "4",
        "--round",
        "300s",
        "--on-grid",
        "--time-scale",
        time_scale,
        "--policy",
        "fifo+proportional",
    ]);
    let (jobs, outages) = (local.file("jobs.csv", JOBS), local.file("outages.csv", OUTAGES));
    let deploy = [
        "deploy",
        "--trace",
        &jobs,
        "--round",
        "300s",
        "-p",
        "fifo+proportional",
        "--compare-simulation",
        "--json",
    ];
    let broken = ["--faults", &outages, "--ends-as-recorded"];
    let text = local.rota(&[&deploy[..], &broken].concat());
    let [live, simulated]: [Value; 2] = runs(&text).try_into().expect("a deployment and its simulation");
    assert_eq!(simulated["faults"]["node_failures"], 2, "{simulated:#}");
    assert!(simulated["faults"]["stops"].as_u64() >= Some(3), "{simulated:#}");
    for key in ["finished", "failed"] {
        assert_eq!(live[key], simulated[key], "{key}: {live:#}\n{simulated:#}");
    }
    for key in ["avg_jct_s", "makespan_s"] {
        let number = |run: &Value| run[key].as_f64().expect(key);
        let apart = (number(&live) / number(&simulated) - 1.0).abs();
        assert!(apart < most, "{key}: {live:#}\n{simulated:#}");
    }
    let events = local.rota(&["events"]);
    for what in ["node-lost", "node-returned", "gpu-lost", "gpu-returned", "job-failed"] {
        assert!(events.contains(what), "{what} is not in the journal:\n{events}");
    }
    let nodes: Value = serde_json::from_str(&local.rota(&["nodes", "--json"])).expect("JSON");
    let is_up = |node: &Value| node["state"] == "up" && node["reason"] == "";
    assert!(nodes.as_array().expect("a list").iter().all(is_up), "everything is back: {nodes:#}");
}

#[test]
fn what_cannot_be_broken_here_is_refused_with_the_reason() {
    let cluster = crate::cluster::Cluster::start(1, 1, &[]);
    let error = cluster.try_rota(&["deploy", "--jobs", "1", "--mtbf", "9h"]).expect_err("refused");
    assert!(error.contains("faults need a cluster that `rota up` started on this machine"), "{error}");
}
