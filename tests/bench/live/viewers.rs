//! What viewers of the live page cost: a thousand nodes, ten thousand jobs that come and go, ten viewers of whom one is a real
//! browser. How soon a change is seen, how long the page works on an update, and what the head does more than without viewers.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rota_test_support::need;
use rota_test_support::ports::free_port;

use crate::browser::Browser;
use crate::cluster::Cluster;
use crate::measure::quantile;
use crate::named;
use crate::restart::cpu_s;

const N_AGENTS: usize = 1_000;
const N_GPUS: u32 = 8;
const N_JOBS: usize = 10_000;
const N_VIEWERS: usize = 10;
/// Every job has started or ended once within so long.
const LASTS: Duration = Duration::from_secs(60);
const WATCHED: Duration = Duration::from_secs(40);
/// Changes whose way to viewers is timed.
const N_MARKS: usize = 15;

pub(crate) fn measure() {
    let Some(program) = need::chromium() else { return };
    let address = format!("127.0.0.1:{}", free_port());
    let settings = ["--policy", "fifo+proportional", "--round", "5s", "--web", &address];
    let mut cluster = Cluster::start(0, N_GPUS, &settings);
    let (runtime, _seen) = named::start(&cluster, N_AGENTS, Some(LASTS));
    let number = |cluster: &Cluster, key: &str| cluster.status()[key].as_u64().unwrap_or(0);
    cluster.until("all are there", |cluster| number(cluster, "n_nodes_up") == N_AGENTS as u64);
    submit(&cluster, N_JOBS);
    cluster.until("the GPUs are in use", |cluster| number(cluster, "n_running") >= 7_900);
    let alone = busy(&mut cluster);
    // A person has at most eight streams.
    cluster.issue("bob", "admin");
    let tokens = ["ada", "bob"].map(|user| {
        cluster.try_rota_as(user, &["web", "login", "--token"]).expect("signed in").trim().to_owned()
    });
    let marks = Arc::new(Marks::default());
    for index in 1..N_VIEWERS {
        let (address, token, marks) = (address.clone(), tokens[index % 2].clone(), Arc::clone(&marks));
        std::thread::spawn(move || view(&address, &token, &marks));
    }
    // One that never reads on: it must not hold anybody up.
    let slow = open(&address, &tokens[1]);
    let link = cluster.rota(&["web", "login"]);
    let link = link.split_whitespace().find(|word| word.starts_with("http")).expect("a link").to_owned();
    let mut browser = Browser::open(&program, &link, 1400, 900);
    browser.wait_for("document.querySelector('.grid tbody a') && Number(document.body.dataset.seen) > 2");
    browser.eval("location.hash = '#/jobs'");
    browser.wait_for("document.querySelectorAll('.grid tbody tr').length > 10");
    browser.eval("performance.clearMeasures(); window.long = []; new PerformanceObserver((list) => list.getEntries().forEach((one) => window.long.push(one.duration))).observe({ type: 'longtask' })");
    let watched = busy(&mut cluster);
    let work = browser.eval("performance.getEntriesByName('rota-update').map((one) => one.duration)");
    let mut work: Vec<f64> = work.as_array().into_iter().flatten().filter_map(|ms| ms.as_f64()).collect();
    work.sort_unstable_by(f64::total_cmp);
    let long = browser.eval("JSON.stringify(window.long.map(Math.round))");
    let mut delays_ms = marked(&cluster, &marks);
    delays_ms.sort_unstable_by(f64::total_cmp);
    println!(
        "\n**Viewers**: {N_AGENTS} nodes of {N_GPUS} GPUs, {N_JOBS} jobs that last {} s each; {N_VIEWERS} viewers, one a browser, and",
        LASTS.as_secs()
    );
    println!("another that reads nothing; {} s each.\n", WATCHED.as_secs());
    println!("| | |\n|---|---|");
    println!("| CPUs that the head keeps busy without viewers, with them | {alone:.3}, {watched:.3} |");
    println!(
        "| updates in the browser; page's work on one: p50, p99, most | {}; {:.1} ms, {:.1} ms, {:.1} ms |",
        work.len(),
        quantile(&work, 0.5),
        quantile(&work, 0.99),
        quantile(&work, 1.0)
    );
    println!("| tasks of the page over 50 ms | {long} |");
    println!(
        "| a job that was submitted is in a viewer's update after: p50, most | {:.0} ms, {:.0} ms |",
        quantile(&delays_ms, 0.5),
        quantile(&delays_ms, 1.0)
    );
    println!(
        "| bytes to each viewer | {:.0} kB/s |",
        marks.n_bytes.load(Ordering::Relaxed) as f64
            / 1e3
            / marks.begun.elapsed().as_secs_f64()
            / (N_VIEWERS - 1) as f64
    );
    println!("| complaints of the browser | {:?} |", browser.complaints);
    drop(slow);
    runtime.shutdown_background();
    cluster.kill_head();
}

/// What viewers saw.
struct Marks {
    begun: Instant,
    n_bytes: AtomicUsize,
    /// When each viewer saw a job first, by its name.
    seen: Mutex<Vec<(String, Instant)>>,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { begun: Instant::now(), n_bytes: AtomicUsize::new(0), seen: Mutex::default() }
    }
}

fn submit(cluster: &Cluster, n: usize) {
    let copies = (n / 2).to_string();
    for _ in 0..2 {
        cluster.rota(&["submit", "--gpus", "1", "--time", "60s", "--array", &copies, "--", "/bin/true"]);
    }
}

/// CPUs that the head keeps busy while jobs come and go, and are replaced.
fn busy(cluster: &mut Cluster) -> f64 {
    let (begun, before) = (Instant::now(), cpu_s(cluster));
    while begun.elapsed() < WATCHED {
        std::thread::sleep(Duration::from_secs(5));
        let status = cluster.status();
        let n_here = status["n_running"].as_u64().unwrap_or(0) + status["n_waiting"].as_u64().unwrap_or(0);
        let n_missing = (N_JOBS as u64).saturating_sub(n_here);
        if n_missing > 1 {
            submit(cluster, n_missing as usize);
        }
    }
    (cpu_s(cluster) - before) / begun.elapsed().as_secs_f64()
}

/// Milliseconds from the answer to a submission until each viewer has the job.
fn marked(cluster: &Cluster, marks: &Marks) -> Vec<f64> {
    let mut found = Vec::new();
    for index in 0..N_MARKS {
        let name = format!("mark-{index}-");
        cluster.rota(&["submit", "--name", &name, "--gpus", "1", "--time", "60s", "--", "/bin/true"]);
        let sent = Instant::now();
        let all_saw = || {
            marks.seen.lock().expect("nobody panics").iter().filter(|(seen, _)| *seen == name).count()
                >= N_VIEWERS - 1
        };
        while !all_saw() && sent.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = marks.seen.lock().expect("nobody panics");
        found.extend(
            seen.iter()
                .filter(|(seen, _)| *seen == name)
                .map(|(_, at)| at.saturating_duration_since(sent).as_secs_f64() * 1e3),
        );
    }
    found
}

fn open(address: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connected");
    let request =
        format!("GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// A viewer that only looks for marks.
fn view(address: &str, token: &str, marks: &Marks) {
    let mut stream = BufReader::new(open(address, token));
    let (mut line, mut known) = (Vec::new(), BTreeSet::new());
    while stream.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        marks.n_bytes.fetch_add(line.len(), Ordering::Relaxed);
        let at = Instant::now();
        if line.starts_with(b"data:") {
            let text = String::from_utf8_lossy(&line);
            for (start, _) in text.match_indices("\"mark-") {
                let name = text.get(start + 1..).and_then(|rest| rest.split('"').next()).unwrap_or_default();
                if known.insert(name.to_owned()) {
                    let mut seen = marks.seen.lock().expect("nobody panics");
                    seen.push((name.to_owned(), at));
                }
            }
        }
        line.clear();
    }
}
