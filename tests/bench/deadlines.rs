//! What planning for deadlines costs, printed as tables: `cargo bench --bench deadlines [-- SECTION…]`.
//!
//! Sections: `growth` (the cost of an ElasticFlow decision against the number of running jobs, with the exponent fitted
//! to it) and `cluster10` (a whole run compared with the original program; needs ROTA_SHARED). CPU time of one thread.

mod measure;

use std::sync::Arc;
use std::time::Duration;

use measure::{cpu_now, peak_memory_mb, process_cpu_now, quantile};
use rota_core::cluster::Cluster;
use rota_core::plan::{Plan, Verdict};
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, Simulation, simulate};
use rota_core::snapshot::Snapshot;
use rota_core::time::Span;
use rota_scripts::{Limits, ScriptPolicy};
use rota_test_support::need;
use rota_traces::format::{self, Setting};
use rota_traces::generate::{self, DeadlineOptions, Recipe, WorkloadOptions};
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

fn main() {
    let sections: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |name: &str| sections.is_empty() || sections.iter().any(|s| s == name);
    if wants("growth") {
        growth();
    }
    if wants("cluster10") {
        cluster10();
    }
}

fn a100(nodes: u32) -> Arc<Cluster> {
    let text = format!(
        "format = 1\nname = \"{nodes} nodes\"\n[[nodes]]\ncount = {nodes}\ngpu_type = \"A100\"\ngpus = 8\ncpus = 96\nmem = \"900GB\"\n"
    );
    Arc::new(cluster::read(&Source::new("bench.toml", text)).expect("a cluster"))
}

/// GPU-hours of an average job of ElasticFlow's generator: the load is computed with it.
const GPU_HOURS_PER_JOB: f64 = 20.9;
/// Work that arrives, relative to what all GPUs can do: enough that they are short and some jobs are declined.
const LOAD: f64 = 4.0;
/// Simulated hours before the first decision that counts, and after it.
const HOURS: (f64, f64) = (20.0, 5.0);

/// Decisions of elasticflow in steady state, on clusters that double with their load.
fn growth() {
    let profiles = profile::load("elasticflow-a100").expect("shipped profiles");
    println!(
        "One decision of elasticflow, admission included. ElasticFlow's generator, {LOAD} times the work that"
    );
    println!("all GPUs can do with the GPUs asked for, deadlines 1 to 3 durations away, 5-minute rounds:");
    println!("milliseconds of CPU over the last {} h", HOURS.1);
    println!(
        "{:>6} {:>9} {:>10} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "nodes", "running", "arrivals", "declined", "mean", "p50", "p99", "us/job"
    );
    let mut curve: Vec<(f64, f64)> = Vec::new();
    for nodes in [32, 64, 128, 256, 512, 1024] {
        let cluster = a100(nodes);
        let jobs_per_hour = LOAD * f64::from(cluster.n_gpus()) / GPU_HOURS_PER_JOB;
        let options = WorkloadOptions {
            recipe: Recipe::Elasticflow,
            jobs: Some(((HOURS.0 + HOURS.1) * jobs_per_hour) as usize),
            jobs_per_hour,
            multi_gpu: true,
            deadlines: DeadlineOptions { tightness: (1.0, 3.0), best_effort: 0.1 },
            ..WorkloadOptions::default()
        };
        let workload = Arc::new(generate::generate(&cluster, &profiles, &options).expect("a workload"));
        let mut script = ScriptPolicy::load("elasticflow", Limits::default()).expect("a shipped policy");
        let mut timed = Timed { inner: &mut script, seen: Vec::new() };
        let settings = RunSettings { round: Span::from_secs(300), ..RunSettings::default() };
        let mut run =
            Simulation::new(Arc::clone(&cluster), Arc::clone(&workload), Vec::new(), &mut timed, &settings);
        let end_s = (HOURS.0 + HOURS.1) * 3_600.0;
        while run.progress().now.as_secs_f64() < end_s && run.step().expect("a run without errors") {}
        drop(run);
        timed.seen.retain(|seen| (HOURS.0 * 3_600.0..end_s).contains(&seen.now_s));
        curve.push(row(nodes, &timed.seen));
    }
    println!("fitted: cost of a decision ~ running jobs ^ {:.2}", exponent(&curve));
    let cpu_s = process_cpu_now().as_secs_f64();
    println!("all of this: {cpu_s:.0} s of CPU, {:.0} MB at most", peak_memory_mb());
    println!();
}

fn row(nodes: u32, seen: &[Seen]) -> (f64, f64) {
    let mean = |value: fn(&Seen) -> f64| seen.iter().map(value).sum::<f64>() / seen.len() as f64;
    let mut took: Vec<f64> = seen.iter().map(|seen| seen.took.as_secs_f64() * 1e3).collect();
    took.sort_by(f64::total_cmp);
    let (running, mean_ms) = (mean(|seen| seen.running), mean(|seen| seen.took.as_secs_f64() * 1e3));
    println!(
        "{nodes:>6} {running:>9.0} {:>10.1} {:>9.1} {mean_ms:>8.2} {:>8.2} {:>8.2} {:>8.2}",
        mean(|seen| seen.asking),
        mean(|seen| seen.declined),
        quantile(&took, 0.5),
        quantile(&took, 0.99),
        mean_ms / running * 1e3
    );
    (running, mean_ms)
}

/// The slope of a straight line through the logarithms, by least squares.
fn exponent(curve: &[(f64, f64)]) -> f64 {
    let points: Vec<(f64, f64)> = curve.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let covariance: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    covariance / points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>()
}

/// A decision: when, how long it took, and about whom.
struct Seen {
    now_s: f64,
    took: Duration,
    running: f64,
    asking: f64,
    declined: f64,
}

struct Timed<'a> {
    inner: &'a mut dyn Policy,
    seen: Vec<Seen>,
}

impl Policy for Timed<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let began = cpu_now();
        let plan = self.inner.decide(snapshot)?;
        let took = cpu_now() - began;
        let declined = plan.verdicts.iter().filter(|(_, v)| matches!(v, Verdict::Decline(_))).count();
        self.seen.push(Seen {
            now_s: snapshot.now.as_secs_f64(),
            took,
            running: snapshot.jobs.n_running() as f64,
            asking: snapshot.jobs.n_asking() as f64,
            declined: declined as f64,
        });
        Ok(plan)
    }
}

/// A whole run, reading included, compared with what the Python took on such a machine.
fn cluster10() {
    const PYTHON_S: f64 = 11.45;
    const REPEATS: usize = 3;
    let path = need::shared_path("traces/elasticflow-itp/elasticflow/cluster10.csv");
    let Some(path) = path else { return };
    let cluster = a100(32);
    let profiles = profile::load("elasticflow-a100").expect("shipped profiles");
    let settings = RunSettings { round: Span::from_secs(60), ..RunSettings::default() };
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let began = cpu_now();
        let source = Source::open(&path).expect("a readable trace");
        let read = format::read(&source, None, &Setting::new(&cluster, &profiles)).expect("a sound trace");
        let mut script = ScriptPolicy::load("elasticflow", Limits::default()).expect("a shipped policy");
        let workload = Arc::new(read.workload);
        simulate(Arc::clone(&cluster), workload, Vec::new(), &mut script, &settings, &mut |_| {})
            .expect("a run without errors");
        best = best.min(cpu_now() - began);
    }
    let s = best.as_secs_f64();
    println!("cluster10 (260 jobs, 256 GPUs, 60 s slots) with elasticflow: CPU seconds, best of {REPEATS}");
    println!("  {s:.3} s, {:.0}x less than the {PYTHON_S} s of the original program", PYTHON_S / s);
    println!();
}
