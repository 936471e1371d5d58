//! Profiles on a live cluster: a job that is slower than its profile says is found out, and points of a sweep run as jobs.

use rota_test_support::need;
use rota_traces::profile::load;

use super::FAST;
use super::cluster::Cluster;

#[test]
fn a_slow_job_is_found_out_and_gpu_counts_are_profiled_over_nodes() {
    let cluster = Cluster::start(2, 2, &FAST);
    let agent = need::agent(env!("CARGO_BIN_EXE_rota"));
    let agent = agent.to_str().expect("a path");
    let head = cluster.address.clone();
    let profile = cluster.path("scale.toml");
    let text = "format = 1\n[[profile]]\nname = \"m\"\nbatch = 8\n[[profile.scale]]\nbatch = 8\npoints = [[1, 20.0], [4, 24.0]]\n";
    std::fs::write(&profile, text).expect("written");
    let out = cluster.path("out");
    let words = [
        "profile",
        "run",
        "--head",
        &head,
        "--name",
        "m",
        "--out",
        &out,
        "--gpus",
        "1,4",
        "--batch",
        "8",
        "--iterations",
        "6000",
        "--warm-up",
        "1200",
        "--within",
        "60%",
        "--repeats",
        "1",
        "--no-warm-up-run",
        "--time-scale",
        "60",
        "--environment-only",
        "--",
        agent,
        "emulate",
        "--profile",
        &profile,
        "--batch",
        "8",
        "--time-scale",
        "60",
    ];
    let said = cluster.rota(&words);
    let mine = load(&format!("{out}/profile.toml")).expect("a profile");
    let curve = mine.get("m").and_then(|m| m.scale_curve("", 8).cloned()).expect("a curve");
    for (gpus, rate) in [(1, 20.0), (4, 24.0)] {
        // Reports come once a second here, and a run is a few seconds.
        assert!(
            (curve.rate(gpus) / rate - 1.0).abs() < 0.35,
            "{gpus} GPUs: {} instead of {rate}\n{said}",
            curve.rate(gpus)
        );
    }
    // res50 does more than four iterations a second at its share: this one does one.
    let slow = ["submit", "--model", "res50", "--gpus", "1", "--iterations", "100000", "--", agent];
    cluster.rota(
        &[&slow[..], &["emulate", "--rate", "1", "--time-scale", "60", "--iterations", "100000"]].concat(),
    );
    let id = (cluster.jobs().len() - 1).to_string();
    cluster.until("the slow job is found out", |cluster| {
        cluster.rota(&["explain", &id]).contains("times the speed of its profile")
    });
    cluster.rota(&["cancel", &id]);
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--json"]);
    let replayed: serde_json::Value = serde_json::from_str(&replayed).expect("JSON");
    assert_eq!(replayed["equal"], replayed["plans"], "{replayed}");
}
