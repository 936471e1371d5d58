//! What batches take, printed as tables: `cargo bench --bench batch [-- SECTION…]`.
//!
//! Sections: `cores` (one study with one thread and with two, in turn, and the ratio of their times), `figures` (the two figures
//! of papers that are promised in minutes). Wall time of the program as a user starts it, each time into an empty folder.

use rota_test_support::need;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const N_TURNS: usize = 3;

fn main() {
    let sections: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |name: &str| sections.is_empty() || sections.iter().any(|s| s == name);
    if wants("cores") {
        cores();
    }
    if wants("figures") {
        figures();
    }
}

/// The same study on one core and on two. Turns alternate, so that what else the machine does falls on both.
fn cores() {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("| turn | one thread (s) | two threads (s) | ratio |    (this machine has {n_cores} cores)");
    println!("|---|---|---|---|");
    for turn in 1..=N_TURNS {
        let [one, two] = ["1", "2"].map(|threads| timed(&["study", "synergy-8", "--threads", threads]));
        println!("| {turn} | {:.1} | {:.1} | {:.2} |", s(one), s(two), s(one) / s(two));
    }
}

/// Whole figures.
fn figures() {
    println!("| figure | wall (s) | promised (s) |");
    println!("|---|---|---|");
    let wall = timed(&["reproduce", "synergy", "8"]);
    println!("| synergy 8 | {:.1} | 300 |", s(wall));
    if need::shared_path("traces").is_none() {
        return;
    }
    let wall = timed(&["reproduce", "elasticflow", "8b"]);
    println!("| elasticflow 8b | {:.1} | 600 |", s(wall));
}

fn timed(args: &[&str]) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(args).arg("--quiet").arg("--out").arg(folder.path().join("out"));
    command.stdout(Stdio::null()).current_dir(env!("CARGO_MANIFEST_DIR"));
    let began = Instant::now();
    let status = command.status().expect("the program starts");
    assert!(status.success(), "rota {args:?}: {status}");
    began.elapsed()
}

fn s(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
