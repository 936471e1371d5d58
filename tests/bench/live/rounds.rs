//! What a round costs besides the policy: the way to the process in which it decides and back. In the first round everything is
//! sent, later what has changed.

use std::sync::Arc;
use std::time::Duration;

use rota_transport::identity::{Credentials, Role};

use crate::cluster::Cluster;
use crate::measure::quantile;
use crate::memory::live;

/// Agents of 8 GPUs, and jobs of one.
const SIZES: [(usize, usize); 3] = [(2, 100), (20, 1_000), (200, 10_000)];

pub(crate) fn measure() {
    println!("\n**Rounds**: las+tune, rounds every 2 s, all GPUs taken; milliseconds.\n");
    println!("| jobs | running | the policy, p50 | added, p50 | added, first round |");
    println!("|---|---|---|---|---|");
    for (n_agents, n_jobs) in SIZES {
        one(n_agents, n_jobs);
    }
}

fn one(n_agents: usize, n_jobs: usize) {
    let mut cluster = Cluster::start(0, 8, &["--round", "2s", "--log", "info,rota_head=debug"]);
    let names: Vec<_> = (0..n_agents).map(|index| format!("node{index}")).collect();
    cluster.rota(&["pki", "issue", "--pki", &cluster.path("pki"), "--agent", &names.join(",")]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("made");
    for name in &names {
        let folder = cluster.folder.path().join("pki/agents").join(name);
        let credentials = Credentials::load_for(&folder, Role::Agent).expect("credentials");
        runtime.spawn(live(credentials, Arc::from(cluster.address())));
    }
    cluster
        .until("all are there", |cluster| cluster.status()["n_nodes_up"].as_u64() == Some(n_agents as u64));
    let copies = n_jobs.to_string();
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--array", &copies, "--", "/bin/true"]);
    let rounds = |cluster: &Cluster| decided(&cluster.head_log(), n_jobs);
    cluster.until("twelve rounds were held", |cluster| rounds(cluster).len() >= 12);
    std::thread::sleep(Duration::from_millis(100));
    let seen = rounds(&cluster);
    let running = cluster.status()["n_running"].as_u64().unwrap_or_default();
    let sorted = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = seen.iter().skip(1).map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let (policy, added) = (sorted(&|r| r.1), sorted(&|r| r.0 - r.1));
    let first = seen.first().map_or(0.0, |(all, policy)| all - policy);
    let (policy, added) = (quantile(&policy, 0.5), quantile(&added, 0.5));
    println!("| {n_jobs} | {running} | {policy:.2} | {added:.2} | {first:.2} |");
    runtime.shutdown_background();
    cluster.kill_head();
}

/// Rounds about so many jobs in a head's log: milliseconds from the question to the checked plan, and of the policy itself.
pub(crate) fn decided(log: &str, n_jobs: usize) -> Vec<(f64, f64)> {
    let mark = format!("{n_jobs} jobs: decided in ");
    let lines = log.lines().filter_map(|line| line.split_once(&mark));
    let both = lines.filter_map(|(_, rest)| rest.split_once(", the policy took "));
    both.filter_map(|(all, policy)| Some((ms(all)?, ms(policy)?))).collect()
}

/// Milliseconds of a duration as `Debug` writes it: `1.5ms`, `800µs`, `2s`.
fn ms(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let per = match &text[number.len()..] {
        "ns" => 1e-6,
        "µs" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * per)
}
