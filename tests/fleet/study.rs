//! A study whose runs are jobs of the live cluster.

use crate::cluster::Cluster;

#[test]
fn the_shards_of_a_study_run_as_jobs_and_end_in_the_same_tables() {
    // Shards that took turns on the GPUs in rounds of a second would begin again and again where a run takes longer than that.
    let cluster = Cluster::start(2, 1, &["--round", "1s", "--policy", "fifo"]);
    let script = cluster.path("batch.rhai");
    let text = r#"sweep(#{ policy: ["fifo", "las+tune"], workload: "small", seed: [1, 2, 3] });"#;
    std::fs::write(&script, text).expect("a script");
    let (there, here) = (cluster.path("there"), cluster.path("here"));
    let said = cluster.rota(&["study", &script, "--on", "rota", "--shards", "3", "--out", &there]);
    assert!(said.contains("0 runs in") && said.contains("6 were there already"), "{said}");
    let jobs = cluster.jobs();
    assert!(jobs.len() == 3 && jobs.iter().all(|job| job["state"] == "finished"), "{jobs:#?}");
    cluster.rota(&["study", &script, "--out", &here, "--quiet"]);
    for table in ["runs.csv", "groups.csv", "pairs.csv"] {
        let read = |folder: &str| std::fs::read_to_string(format!("{folder}/{table}")).expect("a table");
        assert_eq!(read(&there), read(&here), "{table}");
    }
}
