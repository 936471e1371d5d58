//! Real work: a Python data loader, unpacking and tokenising with as many workers as it has CPUs.

use std::process::Command;
use std::time::{Duration, Instant};

use rota_traces::profile::load;
use rustix::time::{ClockId, clock_gettime};

use super::commands::{has_agent, rota, said};

/// How long a look at the machine takes.
const SPIN: Duration = Duration::from_millis(300);

#[test]
fn a_data_loader_is_faster_with_two_cpus_than_with_one() {
    let has_python =
        Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if !has_agent() || !has_python || n_cpus < 2 {
        println!("python3 and two CPUs are needed to profile a data loader: not tried");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/agent/python/examples/load_data.py");
    let words = [
        "run",
        "--name",
        "text",
        "--out",
        "out",
        "--cpus",
        "1,2",
        "--iterations",
        "30",
        "--no-warm-up-run",
        "--within",
        "50%",
        "--repeats",
        "1",
        "--",
        "python3",
        script,
        "--batch-size",
        "6",
    ];
    let two_before = worth_of_two_cpus();
    let (is_good, text) = said(&rota(folder.path(), &words));
    let two = two_before.min(worth_of_two_cpus());
    assert!(is_good, "{text}");
    let set = load(folder.path().join("out/profile.toml").to_str().expect("a path")).expect("a profile");
    let curve = set.get("text").and_then(|profile| profile.host.clone()).expect("a curve");
    assert_eq!(curve.cpus(), [1.0, 2.0]);
    assert!(text.contains("--workers 2"), "a worker for each CPU: {text}");
    if two < 1.8 {
        println!(
            "others work on this machine, who leave {two:.2} of two CPUs: the curve's shape is not asked for"
        );
        return;
    }
    // Nearly twice as fast on a quiet machine; only the shape is asked for.
    let gain = curve.at(2.0, 0.0) / curve.at(1.0, 0.0);
    assert!(gain > 1.15, "two CPUs are {gain:.2} times as fast as one\n{text}");
}

/// How many CPUs two busy threads get: 2 on a quiet machine, less where others take the rest.
fn worth_of_two_cpus() -> f64 {
    let busy_s = || {
        let now = || clock_gettime(ClockId::ThreadCPUTime);
        let began = Instant::now();
        while began.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        now().tv_sec as f64 + now().tv_nsec as f64 / 1e9
    };
    let began = Instant::now();
    let busy: f64 = std::thread::scope(|scope| {
        let spinners = [scope.spawn(busy_s), scope.spawn(busy_s)];
        spinners.into_iter().map(|spinner| spinner.join().expect("it spins")).sum()
    });
    busy / began.elapsed().as_secs_f64()
}
