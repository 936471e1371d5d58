//! Jobs that change their size or their node while they live: what they have done goes with them.

use std::process::Command;

use crate::cluster::Cluster;
use rota_test_support::need;

/// A policy that gives every job so many GPUs.
fn policy(n_gpus: u32) -> String {
    format!(
        "// Every job on {n_gpus} GPUs.\nfn allocate(view) {{\n    \
         view.fill(rank(view.jobs.arrival)).gpus(view.jobs.gpus * 0 + {n_gpus}).give(\"fair_share\").run()\n}}\n"
    )
}

/// Losses that the example printed, by step.
fn losses(log: &str) -> Vec<(u32, f64)> {
    let line = |line: &str| {
        let (step, loss) = line.strip_prefix("step ")?.split_once(" loss ")?;
        Some((step.parse().ok()?, loss.parse().ok()?))
    };
    log.lines().filter_map(line).collect()
}

#[test]
fn training_grows_from_one_rank_to_four_on_the_live_cluster_and_its_loss_goes_on() {
    let Some(python) = need::numpy() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/agent/python/examples/train.py");
    let policies = tempfile::tempdir().expect("a folder");
    let policy_dir = policies.path().display().to_string();
    let cluster = Cluster::start(2, 2, &["--round", "1s", "--policy-dir", &policy_dir]);
    let alone = Command::new(&python)
        .args(["-B", script, "--steps", "400"])
        .env("ROTA_CHECKPOINT_DIR", cluster.path("alone"))
        .output()
        .expect("it runs");
    let expected = losses(&String::from_utf8_lossy(&alone.stdout));
    let size = policies.path().join("size.rhai");
    std::fs::write(&size, policy(1)).expect("written");
    cluster.rota(&["policy", "set", "size.rhai"]);
    // Slow until it has its last size: its 400 steps take a quarter of an hour, longer than a busy machine needs for two changes of its
    // size. No compiled modules in the checkout.
    let pause = cluster.path("pause");
    std::fs::write(&pause, "2").expect("written");
    let train = format!("exec {python} -B {script} --pause=$(cat {pause})");
    let sizes = ["--levels", "1,2,4", "--per-gpu", "--iterations", "400"];
    cluster.rota(&[&["submit"][..], &sizes, &["--", "/bin/sh", "-c", &train]].concat());
    let mut seen = Vec::new();
    for n_gpus in [1_u32, 2, 4] {
        if n_gpus == 4 {
            std::fs::write(&pause, "0.05").expect("written");
        }
        std::fs::write(&size, policy(n_gpus)).expect("written");
        cluster.until("it runs at this size", |cluster| {
            let job = &cluster.jobs()[0];
            job["state"] == "running"
                && job["gpus_held"] == n_gpus
                && job["incarnation"].as_u64() > Some(seen.len() as u64)
        });
        let all_are_up = format!("rank 0 of {n_gpus} begins at step ");
        cluster.until("it has printed a loss", |cluster| {
            let log = cluster.try_rota(&["logs", "0"]).unwrap_or_default();
            log.contains(&all_are_up) && !losses(&log).is_empty()
        });
        seen.push(cluster.jobs()[0]["incarnation"].clone());
    }
    cluster.until_all_finished(1);
    let log = cluster.rota(&["logs", "0"]);
    let last = losses(&log);
    assert_eq!(last.last().map(|(step, _)| *step), Some(400), "{log}");
    assert!(last.len() < expected.len(), "the last launch went on where the one before it stopped: {log}");
    for (step, loss) in &last {
        let as_alone = expected.iter().find(|(as_step, _)| as_step == step).map(|(_, loss)| *loss);
        assert!(
            as_alone.is_some_and(|other| (other - loss).abs() < 1e-4),
            "step {step}: {loss}, alone {as_alone:?}"
        );
    }
    assert_eq!(cluster.jobs()[0]["done"], 400.0);
    assert_eq!(cluster.jobs()[0]["n_failures"], 0);
}

#[test]
fn a_checkpoint_is_copied_to_the_node_that_its_job_moves_to() {
    let cluster = Cluster::start(2, 1, &["--round", "1s", "--copy-checkpoints"]);
    // Larger than one piece, and in a folder below.
    let script = "mkdir -p $ROTA_CHECKPOINT_DIR/deep; cd $ROTA_CHECKPOINT_DIR/deep; \
                  [ -e big ] || head -c 1500000 /dev/urandom > big; cksum < big; echo $ROTA_INCARNATION >> launches; \
                  cat launches; sleep 600";
    cluster.rota(&["submit", "--gpus", "1", "--", "/bin/sh", "-c", script]);
    cluster.until("it has written", |cluster| {
        cluster.try_rota(&["logs", "0"]).is_ok_and(|log| log.lines().count() == 2)
    });
    let first = cluster.rota(&["logs", "0"]);
    let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
    cluster.rota(&["drain", &node]);
    cluster.until("it runs elsewhere with what it had", |cluster| {
        cluster.try_rota(&["logs", "0"]).is_ok_and(|log| log.lines().count() == 3)
    });
    let job = &cluster.jobs()[0];
    assert_ne!(job["nodes"][0], *node);
    let second = cluster.rota(&["logs", "0"]);
    assert_eq!(second.lines().next(), first.lines().next(), "the file is the same");
    assert!(second.ends_with(&format!("1\n{}\n", job["incarnation"])), "{second}");
}
