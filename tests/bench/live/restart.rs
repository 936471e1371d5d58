//! A head with a thousand agents and ten thousand jobs: its memory, how long a submission of all of them takes, how soon heartbeats
//! are answered and rounds decided while every job reports its progress, and how soon all agents are back after the head was
//! killed. Connections and sessions are real; behind them are no GPUs and no processes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::measure::quantile;
use crate::named::{self, Seen};
use crate::rounds;

const N_AGENTS: usize = 1_000;
const N_GPUS: u32 = 8;
const N_JOBS: usize = 10_000;
/// How long heartbeats and rounds are watched.
const WATCHED: Duration = Duration::from_secs(60);

pub(crate) fn measure() {
    let settings = ["--policy", "srtf+tune", "--round", "10s", "--log", "info,rota_head=debug"];
    let mut cluster = Cluster::start(0, N_GPUS, &settings);
    let begun = Instant::now();
    let (runtime, seen) = named::start(&cluster, N_AGENTS, None);
    let number = |cluster: &Cluster, key: &str| cluster.status()[key].as_u64();
    cluster.until("all are there", |cluster| number(cluster, "n_nodes_up") == Some(N_AGENTS as u64));
    let joined = begun.elapsed();
    let begun = Instant::now();
    let copies = (N_JOBS / 2).to_string();
    for _ in 0..2 {
        cluster.rota(&["submit", "--gpus", "1", "--time", "10h", "--array", &copies, "--", "/bin/true"]);
    }
    let submitted = begun.elapsed();
    let most = u64::from(N_GPUS) * N_AGENTS as u64;
    cluster.until("the GPUs are in use", |cluster| number(cluster, "n_running") == Some(most));
    let running = begun.elapsed();
    let watched = watch(&cluster, &seen);
    let here_mb = (cluster.head_memory_mb(), most_memory_mb(&cluster));
    cluster.kill_head();
    seen.n_welcomed.store(0, Ordering::Relaxed);
    let begun = Instant::now();
    cluster.start_head();
    cluster.until("all leases are renewed", |_| seen.n_welcomed.load(Ordering::Relaxed) >= N_AGENTS);
    let renewed = begun.elapsed();
    cluster.until("all are back", |cluster| number(cluster, "n_nodes_up") == Some(N_AGENTS as u64));
    let back = begun.elapsed();
    cluster.until("all that ran goes on", |cluster| number(cluster, "n_running") == Some(most));
    std::thread::sleep(Duration::from_secs(10));
    let back_mb = most_memory_mb(&cluster);
    let jobs = cluster.jobs();
    let n_first = jobs.iter().filter(|job| job["state"] == "running" && job["incarnation"] == 1).count();
    assert_eq!(n_first as u64, most, "nothing was started again");
    println!(
        "\n**A large cluster**: {N_AGENTS} agents of {N_GPUS} GPUs, {N_JOBS} jobs of one GPU, srtf+tune in rounds of 10 s; every job"
    );
    println!("that runs reports its progress once a second.\n");
    println!("| | |\n|---|---|");
    println!("| all agents there after | {:.1} s |", joined.as_secs_f64());
    println!("| all jobs submitted after | {:.1} s |", submitted.as_secs_f64());
    println!("| all GPUs in use after | {:.1} s |", running.as_secs_f64());
    println!("{watched}");
    println!("| memory of the head now, and its most | {:.0} MB, {:.0} MB |", here_mb.0, here_mb.1);
    println!("| every lease renewed after a kill of the head | {:.1} s |", renewed.as_secs_f64());
    println!("| all agents back after it | {:.1} s |", back.as_secs_f64());
    println!("| the most memory then | {back_mb:.0} MB |");
    runtime.shutdown_background();
    cluster.kill_head();
}

/// The most memory that the head has had, in megabytes.
fn most_memory_mb(cluster: &Cluster) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", cluster.head_id())).expect("it lives");
    let line = text.lines().find(|line| line.starts_with("VmHWM")).expect("a line for the memory");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("kilobytes") / 1e3
}

/// CPU time that the head itself has used, in seconds.
pub(crate) fn cpu_s(cluster: &Cluster) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", cluster.head_id())).expect("it lives");
    // User and system time, which Linux counts in hundredths of a second, are the twelfth and thirteenth after the name.
    let (_, rest) = text.rsplit_once(')').expect("a name");
    let ticks = rest.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>().expect("ticks"));
    ticks.sum::<f64>() / 100.0
}

/// Watches heartbeats and rounds for a while: rows of the table.
fn watch(cluster: &Cluster, seen: &Seen) -> String {
    seen.beats_ms.lock().expect("nobody panics").clear();
    let (n_before, log_before) = (seen.n_reports.load(Ordering::Relaxed), cluster.head_log().len());
    let cpu_before = cpu_s(cluster);
    std::thread::sleep(WATCHED);
    let cpu = (cpu_s(cluster) - cpu_before) / WATCHED.as_secs_f64();
    let n_reports = seen.n_reports.load(Ordering::Relaxed) - n_before;
    let mut beats = std::mem::take(&mut *seen.beats_ms.lock().expect("nobody panics"));
    beats.sort_unstable_by(f64::total_cmp);
    let rounds = rounds::decided(cluster.head_log().get(log_before..).unwrap_or_default(), N_JOBS);
    assert!(!beats.is_empty() && !rounds.is_empty(), "{} heartbeats, {} rounds", beats.len(), rounds.len());
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|q| quantile(&beats, q));
    let sorted = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        (quantile(&values, 0.5), quantile(&values, 1.0))
    };
    let (all, policy) = (sorted(|round| round.0), sorted(|round| round.1));
    format!(
        "| reports taken in | {:.0} per second |\n\
         | {} heartbeats answered within: p50, p99, most | {p50:.1} ms, {p99:.1} ms, {most:.1} ms |\n\
         | {} rounds decided within: p50, most | {:.1} ms, {:.1} ms |\n\
         | of which the policy itself | {:.1} ms, {:.1} ms |\n\
         | CPUs that the head keeps busy | {cpu:.2} |",
        n_reports as f64 / WATCHED.as_secs_f64(),
        beats.len(),
        rounds.len(),
        all.0,
        all.1,
        policy.0,
        policy.1,
    )
}
