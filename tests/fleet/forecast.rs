//! Whether jobs start when the forecast said so: emulated clusters whose jobs run longer or shorter than their owners guessed.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rota_test_support::need;
use serde_json::{Value, json};

use crate::web::Page;

/// Runs, and how many of them at a time.
const N_RUNS: usize = 20;
const AT_ONCE: usize = 3;
const N_JOBS: usize = 16;
/// By how much guesses are off: the standard deviation of the logarithm of real over guessed time.
const OFF: f64 = 0.3;
/// Seconds of the jobs' time in one real second, as in `FAST`.
const SCALE: f64 = 60.0;
/// They stop nothing that runs here: these jobs write no checkpoints, and would begin again.
const POLICIES: [&str; 2] = ["fifo+proportional", "srtf+proportional"];

/// A run: how many of the jobs that waited started within the spread that they were given, of how many.
fn run(seed: u64) -> (usize, usize) {
    let policy = POLICIES[seed as usize % POLICIES.len()];
    let page = Page::start(2, 4, &["--policy", policy]);
    let token = page.token("ada");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut job = |_| {
        let guessed_s: f64 = random.random_range(120.0..900.0);
        let real_s = guessed_s * (OFF * normal(&mut random)).exp() / SCALE;
        let gpus = [1, 1, 2, 4][random.random_range(0..4)];
        json!({"gpus": gpus, "time_s": guessed_s, "command": ["/bin/sleep", format!("{real_s:.3}")]})
    };
    let jobs: Vec<Value> = (0..N_JOBS).map(&mut job).collect();
    assert_eq!(page.post(&token, "/api/v1/jobs", &json!({"jobs": jobs})).status, 201);
    page.until("some run", || page.see(&token, "/api/v1/status")["n_running"].as_u64() >= Some(3));
    let forecast = page.see(&token, "/api/v1/forecast");
    let all = || page.see(&token, "/api/v1/jobs?which=all&limit=100&order=asc")["items"].clone();
    page.until("all have ended", || {
        all().as_array().is_some_and(|jobs| jobs.iter().all(|job| job["state"] == "finished"))
    });
    let jobs = all();
    let (mut n_within, mut n_cases) = (0, 0);
    for expected in forecast["jobs"].as_array().expect("jobs") {
        let (start, id) = (&expected["start"], expected["job"].as_u64().expect("a number"));
        let real_s = jobs[id as usize]["started_s"].as_f64().expect("it started");
        let (Some(low_s), high_s) = (start["low_s"].as_f64(), start["high_s"].as_f64()) else { continue };
        n_cases += 1;
        n_within += usize::from(low_s <= real_s && high_s.is_none_or(|high_s| real_s <= high_s));
    }
    println!("run {seed}, {policy}: {n_within} of {n_cases} starts within their spreads");
    (n_within, n_cases)
}

/// Close to a standard normal number: a sum of twelve uniform ones.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0
}

#[test]
fn real_starts_lie_within_the_spreads_of_the_forecast() {
    if !need::long_tier("6 minutes") {
        return;
    }
    let next = AtomicUsize::new(0);
    let all: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let work = || {
            let mut found = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= N_RUNS {
                    return found;
                }
                found.push(run(seed as u64));
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no run fails")).collect()
    });
    let (n_within, n_cases) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("{n_within} of {n_cases} jobs started within the spread that they were given");
    assert!(n_cases > 100 && n_within as f64 >= 0.8 * n_cases as f64, "{n_within} of {n_cases}: {all:?}");
}
