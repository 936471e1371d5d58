//! Speed and memory of the simulator, printed as tables: `cargo bench --bench speed [-- SECTION…]`.
//!
//! Sections: `artifact` and `philly` (need ROTA_SHARED), `decision`, `scale`. CPU time of one thread is measured, scripts and their
//! native twins in turn, best of the repeats: the machine may be busy with other things.

mod measure;
mod twin;

use std::sync::Arc;
use std::time::Duration;

use measure::{cpu_now, peak_memory_mb, quantile};
use rota_core::cluster::Cluster;
use rota_core::ledger::Ledger;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::simulation::{RunSettings, Simulation, simulate};
use rota_core::snapshot::Snapshot;
use rota_core::workload::Workload;
use rota_scripts::{Limits, ScriptPolicy, Source as Script};
use rota_test_support::need;
use rota_traces::format::{self, Setting};
use rota_traces::generate::{self, WorkloadOptions};
use rota_traces::source::Source;
use rota_traces::{cluster, profile};
use twin::{Key, Share, Twin};

const REPEATS: usize = 3;

fn main() {
    let sections: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |name: &str| sections.is_empty() || sections.iter().any(|s| s == name);
    if wants("artifact") {
        artifact();
    }
    if wants("philly") {
        philly();
    }
    if wants("decision") {
        decision();
    }
    if wants("scale") {
        scale();
    }
}

fn cluster_of(nodes: u32) -> Arc<Cluster> {
    let text = format!(
        "format = 1\nname = \"{nodes} nodes\"\n[[nodes]]\ncount = {nodes}\ngpu_type = \"V100\"\ngpus = 8\ncpus = 24\nmem = \"500GB\"\nstorage = \"500MB/s\"\n"
    );
    Arc::new(cluster::read(&Source::new("bench.toml", text)).expect("a cluster"))
}

fn script(name: &str) -> ScriptPolicy {
    ScriptPolicy::load(name, Limits::default()).expect("a shipped policy")
}

fn run(cluster: &Arc<Cluster>, workload: &Arc<Workload>, policy: &mut dyn Policy) -> (Ledger, Duration) {
    let began = cpu_now();
    let ledger = simulate(
        Arc::clone(cluster),
        Arc::clone(workload),
        Vec::new(),
        policy,
        &RunSettings::default(),
        &mut |_| {},
    );
    (ledger.expect("a run without errors"), cpu_now() - began)
}

/// The originals' 1,000-job cases, reading and comparing included, against what the Python took on such a machine.
fn artifact() {
    let Some(golden) = need::shared_path("golden/synergy") else { return };
    let table = std::fs::read_to_string(golden.join("cases.csv")).expect("a table of cases");
    println!("Synergy's 1,000-job cases in artifact mode: CPU seconds of the process, best of {REPEATS}");
    println!("(the Python took 39 to 51 s on such a machine)");
    let header = table.lines().next().unwrap_or_default();
    for line in table.lines().filter(|l| l.starts_with("n1000.")) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let system = folder.path().join("synergy");
        std::fs::create_dir(&system).expect("a folder");
        for part in ["configs", "inputs", "cases"] {
            std::os::unix::fs::symlink(
                golden.canonicalize().expect("it is there").join(part),
                system.join(part),
            )
            .expect("a link");
        }
        std::fs::write(system.join("cases.csv"), format!("{header}\n{line}\n")).expect("a case table");
        let options = rota_lab::conform::Options {
            golden: folder.path().into(),
            systems: vec!["synergy".into()],
            out: None,
            first_round: None,
        };
        let mut best = Duration::MAX;
        for _ in 0..REPEATS {
            let began = measure::process_cpu_now();
            let report = rota_lab::conform::conform(&options, &|_, _| {}).expect("a sound folder");
            best = best.min(measure::process_cpu_now() - began);
            assert!(report.is_good(), "{}", report.to_text());
        }
        let name = line.split(',').next().unwrap_or_default();
        println!("  {name:32} {:.2} s, {:.0}x less than 39 s", best.as_secs_f64(), 39.0 / best.as_secs_f64());
    }
    println!();
}

/// The whole Philly trace, scripts against native twins.
fn philly() {
    let Some(path) = need::shared_path("traces/philly-pollux/philly.csv") else { return };
    let source = Source::open(&path).expect("a readable trace");
    let profiles = profile::load("synergy").expect("shipped profiles");
    println!("Philly, 5-minute rounds, one core: CPU seconds, best of {REPEATS}");
    println!(
        "{:>6} {:20} {:>9} {:>9} {:>7} {:>10} {:>10} {:>8} {:>8}",
        "nodes", "policy", "script s", "native s", "ratio", "jobs/s", "decisions", "queue", "running"
    );
    for nodes in [64, 128] {
        let cluster = cluster_of(nodes);
        let setting = Setting::new(&cluster, &profiles);
        let workload = Arc::new(format::read(&source, None, &setting).expect("a sound trace").workload);
        for (name, key, share) in [
            ("srtf+tune", Key::Remaining, Share::Tune),
            ("las+tune", Key::Attained, Share::Tune),
            ("fifo+proportional", Key::Arrival, Share::Fair),
        ] {
            let (mut scripted, mut native) = (Duration::MAX, Duration::MAX);
            let mut ledger = Ledger::default();
            for _ in 0..REPEATS {
                let (by_script, took) = run(&cluster, &workload, &mut script(name));
                scripted = scripted.min(took);
                let (by_twin, took) = run(&cluster, &workload, &mut Twin::new(key, share));
                native = native.min(took);
                assert_eq!(by_script.digest, by_twin.digest, "{name}: script and twin decide alike");
                ledger = by_script;
            }
            let mean = |f: fn(&rota_core::ledger::Sample) -> u32| {
                ledger.samples.iter().map(|s| f64::from(f(s))).sum::<f64>() / ledger.samples.len() as f64
            };
            let (s, n) = (scripted.as_secs_f64(), native.as_secs_f64());
            println!(
                "{nodes:>6} {name:20} {s:>9.2} {n:>9.2} {:>7.2} {:>10.0} {:>10} {:>8.0} {:>8.0}",
                s / n,
                workload.jobs.len() as f64 / s,
                ledger.n_decisions,
                mean(|s| s.waiting),
                mean(|s| s.running)
            );
        }
    }
    println!("peak memory of all of this: {:.0} MB", peak_memory_mb());
    println!();
}

/// `las+tune` with the shipped native answers, and with a script closure in their place.
const CLOSURE: &str = "\
fn allocate(view) {
    view.fill(view.queue).select().stayers_first().give(\"demand\").or_else(|job, room| job.fair_share).or_else(\"reclaim_excess\").rearrange().top_up()
}
";

/// One decision with ten thousand queued jobs on a thousand nodes.
fn decision() {
    let cluster = cluster_of(1_000);
    println!(
        "One decision on 1,000 nodes with at least 10,000 jobs waiting: milliseconds of CPU, best of {REPEATS}"
    );
    println!(
        "{:28} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "policy", "p50", "p99", "max", "mean", "rounds", "waiting", "running"
    );
    for (name, make) in
        [("las+tune", las_tune as fn() -> ScriptPolicy), ("las+tune, closure on misfit", las_closure)]
    {
        let mut rounds: Vec<Round> = (1..=8)
            .flat_map(|seed| {
                let repeats = (0..REPEATS).map(|_| busy_rounds(&cluster, seed, make()));
                repeats.reduce(quicker_of_each).expect("at least one repeat")
            })
            .collect();
        rounds.sort_by_key(|round| round.took);
        let took: Vec<f64> = rounds.iter().map(|round| round.took.as_secs_f64() * 1e3).collect();
        let mean = |f: fn(&Round) -> f64| rounds.iter().map(f).sum::<f64>() / rounds.len() as f64;
        println!(
            "{name:28} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8} {:>9.0} {:>9.0}",
            quantile(&took, 0.5),
            quantile(&took, 0.99),
            quantile(&took, 1.0),
            mean(|round| round.took.as_secs_f64() * 1e3),
            rounds.len(),
            mean(|round| round.waiting as f64),
            mean(|round| round.running as f64),
        );
    }
    println!();
}

/// The same rounds again: what each takes when nothing else gets in its way.
fn quicker_of_each(mut rounds: Vec<Round>, again: Vec<Round>) -> Vec<Round> {
    assert_eq!(rounds.len(), again.len(), "the same run twice");
    for (round, again) in rounds.iter_mut().zip(again) {
        round.took = round.took.min(again.took);
    }
    rounds
}

fn las_tune() -> ScriptPolicy {
    script("las+tune")
}

fn las_closure() -> ScriptPolicy {
    let las = Script {
        name: "las".into(),
        file: "las.rhai".into(),
        text: "fn order(jobs, now) { rank(-jobs.priority, jobs.service) }\n".into(),
    };
    let closure = Script { name: "closure".into(), file: "closure.rhai".into(), text: CLOSURE.into() };
    ScriptPolicy::from_sources("las+closure", &[las, closure], Limits::default()).expect("it compiles")
}

/// Twenty thousand jobs come within twenty minutes; the rounds in which half of them or more still wait.
fn busy_rounds(cluster: &Arc<Cluster>, seed: u64, mut policy: ScriptPolicy) -> Vec<Round> {
    let profiles = profile::load("synergy").expect("shipped profiles");
    let options = WorkloadOptions {
        jobs: Some(20_000),
        jobs_per_hour: 60_000.0,
        multi_gpu: true,
        seed,
        ..WorkloadOptions::default()
    };
    let workload = Arc::new(generate::generate(cluster, &profiles, &options).expect("a workload"));
    let mut timed = Timed { inner: &mut policy, rounds: Vec::new() };
    let settings = RunSettings::default();
    let mut simulation = Simulation::new(Arc::clone(cluster), workload, Vec::new(), &mut timed, &settings);
    for _ in 0..100 {
        assert!(simulation.step().expect("a run without errors"), "the workload outlasts the measurement");
    }
    simulation.close();
    timed.rounds.into_iter().filter(|round| round.waiting >= 10_000).collect()
}

/// How cost grows with the number of jobs on 100,000 GPUs.
fn scale() {
    let cluster = cluster_of(12_500);
    let profiles = profile::load("synergy").expect("shipped profiles");
    println!("12,500 nodes, 100,000 GPUs, las+tune, 2,300 jobs/h of 1 to 8 GPUs: CPU seconds");
    println!(
        "{:>9} {:>9} {:>12} {:>10} {:>10} {:>15} {:>10}",
        "jobs", "CPU s", "us per job", "decisions", "running", "ns per decided", "peak MB"
    );
    for jobs in [10_000, 100_000, 1_000_000] {
        let options = WorkloadOptions {
            jobs: Some(jobs),
            jobs_per_hour: 2_300.0,
            multi_gpu: true,
            ..WorkloadOptions::default()
        };
        let workload = Arc::new(generate::generate(&cluster, &profiles, &options).expect("a workload"));
        let (ledger, took) = run(&cluster, &workload, &mut script("las+tune"));
        let job_rounds: f64 = ledger.samples.iter().map(|s| f64::from(s.running + s.waiting)).sum();
        let s = took.as_secs_f64();
        println!(
            "{jobs:>9} {s:>9.1} {:>12.1} {:>10} {:>10.0} {:>15.0} {:>10.0}",
            s / jobs as f64 * 1e6,
            ledger.n_decisions,
            job_rounds / ledger.samples.len() as f64,
            s / job_rounds * 1e9,
            peak_memory_mb()
        );
    }
    println!();
}

/// What a decision had before it, and what it took.
struct Round {
    waiting: usize,
    running: usize,
    took: Duration,
}

struct Timed<'a> {
    inner: &'a mut dyn Policy,
    rounds: Vec<Round>,
}

impl Policy for Timed<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let running = snapshot.jobs.n_running();
        let began = cpu_now();
        let plan = self.inner.decide(snapshot);
        let took = cpu_now() - began;
        self.rounds.push(Round { waiting: snapshot.jobs.len() - running, running, took });
        plan
    }
}
