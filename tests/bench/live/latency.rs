//! From the acknowledgement of a submission to the job's own first line, and how long commands take.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::driver::{Bell, User, job};
use crate::measure::quantile;

const N_JOBS: u64 = 300;
const N_CALLS: usize = 200;

pub(crate) fn measure() {
    let cluster = Cluster::start(2, 8, &[]);
    let bell = Bell::hang(cluster.folder.path());
    let mut user = User::connect(&cluster);
    let (mut answered_ms, mut running_ms) = (Vec::new(), Vec::new());
    for index in 0..N_JOBS {
        let sent = Instant::now();
        user.submit(vec![job(&bell.command())]);
        let acknowledged = Instant::now();
        let runs = bell.next();
        answered_ms.push((acknowledged - sent).as_secs_f64() * 1e3);
        running_ms.push(runs.saturating_duration_since(acknowledged).as_secs_f64() * 1e3);
        // Never in step with rounds or heartbeats.
        std::thread::sleep(Duration::from_millis(7 + index * 37 % 83));
    }
    answered_ms.sort_unstable_by(f64::total_cmp);
    running_ms.sort_unstable_by(f64::total_cmp);
    println!(
        "\n**Start latency**: {N_JOBS} jobs one after another at irregular moments, head and two agents with the"
    );
    println!(
        "settings they have by themselves, loopback, milliseconds. Promised for the second row: 20 and 100.\n"
    );
    println!("| from | to | p50 | p90 | p99 | largest |\n|---|---|---|---|---|---|");
    let row = |from: &str, to: &str, ms: &[f64]| {
        let [p50, p90, p99, most] = [0.5, 0.9, 0.99, 1.0].map(|q| quantile(ms, q));
        println!("| {from} | {to} | {p50:.1} | {p90:.1} | {p99:.1} | {most:.1} |");
    };
    row("submission sent", "acknowledged: on the disk", &answered_ms);
    row("acknowledged", "the job's first line was read", &running_ms);
}

/// How long commands of people take, in turn with one that asks nobody: what a busy machine adds is the same for all.
pub(crate) fn calls() {
    let cluster = Cluster::start(2, 8, &[]);
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--array", "20", "--", "/bin/sleep", "600"]);
    let commands: [&[&str]; 6] = [
        &["--version"],
        &["jobs"],
        &["nodes"],
        &["top", "--once"],
        &["explain", "0"],
        &["submit", "--hold", "--gpus", "1", "--", "/bin/true"],
    ];
    let mut took_ms = commands.map(|_| Vec::new());
    for _ in 0..N_CALLS {
        for (command, took_ms) in commands.iter().zip(&mut took_ms) {
            let begun = Instant::now();
            cluster.rota(command);
            took_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    println!(
        "\n**Commands**: {N_CALLS} calls of each in turn, from the start of the program to its end, milliseconds. Promised: 20.\n"
    );
    println!("| command | least | p50 | p90 | p99 |\n|---|---|---|---|---|");
    for (command, ms) in commands.iter().zip(&mut took_ms) {
        ms.sort_unstable_by(f64::total_cmp);
        let [least, p50, p90, p99] = [0.0, 0.5, 0.9, 0.99].map(|q| quantile(ms, q));
        println!("| `rota {}` | {least:.1} | {p50:.1} | {p90:.1} | {p99:.1} |", command.join(" "));
    }
}
