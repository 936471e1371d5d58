//! What Chronus' leases cost, printed as tables: `cargo bench --bench chronus [-- SECTION…]`.
//!
//! Sections: `python` (the first 2,000 MIX2 jobs on 40 nodes, against the original's 10.6 s of CPU time), `full` (all of
//! SLO, MIX1 and MIX2 on 120 nodes), `pollux` (ElasticFlow's 195 jobs that the original's port did not finish), `growth`
//! (the model by lease length and load). All need ROTA_SHARED. CPU time of one thread; solves are timed apart.

#[expect(dead_code, reason = "shared by benchmarks that measure other things too")]
mod measure;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use measure::cpu_now;
use rota_core::cluster::Cluster;
use rota_core::ledger::Ledger;
use rota_core::simulation::{RunSettings, simulate};
use rota_core::time::Span;
use rota_core::workload::Workload;
use rota_scripts::artifact::chronus as artifact;
use rota_scripts::{Limits, ScriptPolicy};
use rota_solvers::{Highs, Limits as SolveLimits, Model, Solution, Solver, Start};
use rota_test_support::need;
use rota_traces::format::{self, Format, Setting};
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

/// CPU time of the original on the first 2,000 MIX2 jobs, HiGHS in place of Gurobi, and the part of it in HiGHS.
const PYTHON_CPU_S: f64 = 10.6;
const PYTHON_SOLVER_PART: f64 = 0.25;

fn main() {
    let sections: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |name: &str| sections.is_empty() || sections.iter().any(|s| s == name);
    let Some(shared) = need::shared() else { return };
    if wants("python") {
        python(&shared);
    }
    if wants("full") {
        full(&shared);
    }
    if wants("pollux") {
        pollux(&shared);
    }
    if wants("growth") {
        growth(&shared);
    }
}

/// What solves cost.
#[derive(Clone, Copy, Debug, Default)]
struct SolveCost {
    n_solves: usize,
    cpu: Duration,
    slowest: Duration,
    most_variables: usize,
}

/// HiGHS with a stopwatch.
#[derive(Clone, Default)]
struct Timed(Arc<Mutex<SolveCost>>);

impl Solver for Timed {
    fn solve(&mut self, model: &Model, limits: &SolveLimits, start: Start<'_>) -> Solution {
        let began = cpu_now();
        let solution = Highs.solve(model, limits, start);
        let took = cpu_now() - began;
        let mut cost = self.0.lock().expect("no solve panics");
        cost.n_solves += 1;
        cost.cpu += took;
        cost.slowest = cost.slowest.max(took);
        cost.most_variables = cost.most_variables.max(model.n_variables());
        solution
    }
}

/// One run and what it cost.
struct Measured {
    ledger: Ledger,
    cpu: Duration,
    solves: SolveCost,
}

impl Measured {
    fn outside(&self) -> Duration {
        self.cpu.saturating_sub(self.solves.cpu)
    }

    fn say(&self, what: &str) {
        let SolveCost { n_solves, cpu, slowest, most_variables } = self.solves;
        let n_terms = self.ledger.notes.iter().filter(|(_, note)| note.starts_with("chronus:")).count();
        let n_proved = self.ledger.notes.iter().filter(|(_, note)| note.contains("proved optimal")).count();
        let n_fallbacks = self.ledger.notes.iter().filter(|(_, note)| note.contains("FELL BACK")).count();
        let n_left = self.ledger.outcomes.iter().filter(|outcome| outcome.finish.is_none()).count();
        println!(
            "{what:<34} {:>8.3} s CPU, {:>8.3} outside the solver, {n_terms:>5} leases: {n_proved} proved without a solve, {n_solves} solves in {:.3} s (slowest {:.3} s, {most_variables} variables), {n_fallbacks} fallbacks, {n_left} jobs unfinished",
            self.cpu.as_secs_f64(),
            self.outside().as_secs_f64(),
            cpu.as_secs_f64(),
            slowest.as_secs_f64(),
        );
    }
}

fn servers(nodes: u32, gpus: u32, gpu_type: &str) -> Arc<Cluster> {
    let text = format!(
        "format = 1\nname = \"{nodes} nodes\"\n[[nodes]]\ncount = {nodes}\ngpu_type = \"{gpu_type}\"\ngpus = {gpus}\ncpus = 128\nmem = \"256GB\"\nstorage = \"500MB/s\"\n"
    );
    Arc::new(cluster::read(&Source::new("bench.toml", text)).expect("a cluster"))
}

fn load(
    path: &std::path::Path,
    format: Format,
    cluster: &Cluster,
    profiles: &str,
    n_jobs: usize,
) -> Arc<Workload> {
    let profiles = profile::load(profiles).expect("built in");
    let source = Source::open(path).expect("a trace");
    let read = format::read(&source, Some(format), &Setting::new(cluster, &profiles)).expect("a sound trace");
    let mut workload = read.workload;
    workload.jobs.truncate(n_jobs);
    workload.truths.truncate(n_jobs);
    Arc::new(workload)
}

fn philly(shared: &std::path::Path, trace: &str, cluster: &Cluster, n_jobs: usize) -> Arc<Workload> {
    let path = shared.join(format!("traces/philly-chronus/trace_job_Philly_{trace}.csv"));
    load(&path, Format::Chronus, cluster, "synergy", n_jobs)
}

fn run(cluster: &Arc<Cluster>, workload: &Arc<Workload>, round_s: i64, set: &[(&str, String)]) -> Measured {
    let mut policy = ScriptPolicy::load("chronus", Limits::default()).expect("a shipped policy");
    for (key, value) in set {
        policy.set(key, value).expect("a parameter");
    }
    let timed = Timed::default();
    policy.use_solver(Box::new(timed.clone()));
    let settings = RunSettings { round: Span::from_secs(round_s), ..RunSettings::default() };
    let began = cpu_now();
    let (cluster, workload) = (Arc::clone(cluster), Arc::clone(workload));
    let ledger = simulate(cluster, workload, Vec::new(), &mut policy, &settings, &mut |_| ()).expect("a run");
    let cpu = cpu_now() - began;
    let solves = *timed.0.lock().expect("no solve panics");
    Measured { ledger, cpu, solves }
}

fn python(shared: &std::path::Path) {
    let cluster = servers(40, 8, "gpu");
    let workload = philly(shared, "MIX2", &cluster, 2_000);
    let measured = run(&cluster, &workload, 300, &[]);
    measured.say("MIX2, 2,000 jobs, 40 nodes");
    let outside = PYTHON_CPU_S * (1.0 - PYTHON_SOLVER_PART) / measured.outside().as_secs_f64();
    let whole = PYTHON_CPU_S / measured.cpu.as_secs_f64();
    println!(
        "  the original: {PYTHON_CPU_S} s; {whole:.1} times cheaper whole, {outside:.1} times outside the solver"
    );
    let mut timed = Timed::default();
    let began = cpu_now();
    let settings = artifact::ChronusSettings::minutes();
    let run = artifact::run(&cluster, &workload, &settings, &mut timed).expect("a run");
    let cpu = (cpu_now() - began).as_secs_f64();
    let solver = timed.0.lock().expect("no solve panics").cpu.as_secs_f64();
    println!(
        "  compat=artifact, every model solved: {cpu:.3} s CPU, {:.3} outside the solver, {} solves: {:.1} and {:.1} times cheaper",
        cpu - solver,
        run.solves.len(),
        PYTHON_CPU_S / cpu,
        PYTHON_CPU_S * (1.0 - PYTHON_SOLVER_PART) / (cpu - solver),
    );
}

fn full(shared: &std::path::Path) {
    let cluster = servers(120, 8, "gpu");
    for trace in ["SLO", "MIX1", "MIX2"] {
        let workload = philly(shared, trace, &cluster, usize::MAX);
        run(&cluster, &workload, 300, &[]).say(&format!("{trace}, {} jobs, 120 nodes", workload.jobs.len()));
    }
}

fn pollux(shared: &std::path::Path) {
    let path = shared.join("golden/elasticflow/traces/elasticVpollux_e.csv");
    let cluster = servers(16, 4, "T4");
    let workload = load(&path, Format::Elasticflow, &cluster, "elasticflow-t4", usize::MAX);
    let set = [("lease", "240".to_owned())];
    run(&cluster, &workload, 240, &set).say("elasticVpollux_e, 16 x 4 T4");
}

/// The model as the original states it, every one solved: by lease length, then by load.
fn growth(shared: &std::path::Path) {
    println!("\nEvery model solved (compat=artifact), MIX2:");
    println!(
        "{:>6} {:>6} {:>7} {:>8} {:>10} {:>10} {:>11}",
        "jobs", "nodes", "lease", "models", "largest", "solver s", "slowest s"
    );
    for (n_jobs, nodes, lease) in [
        (100, 4, 60),
        (100, 4, 20),
        (100, 4, 10),
        (100, 4, 5),
        (500, 10, 20),
        (1_000, 20, 20),
        (2_000, 40, 20),
        (500, 20, 20),
        (500, 40, 20),
    ] {
        let cluster = servers(nodes, 8, "gpu");
        let workload = philly(shared, "MIX2", &cluster, n_jobs);
        let mut timed = Timed::default();
        let settings = artifact::ChronusSettings { lease, ..artifact::ChronusSettings::minutes() };
        match artifact::run(&cluster, &workload, &settings, &mut timed) {
            Err(error) => println!("{n_jobs:>6} {nodes:>6} {lease:>7}  {error}"),
            Ok(_) => {
                let SolveCost { n_solves, cpu, slowest, most_variables } = *timed.0.lock().expect("no panic");
                let (cpu, slowest) = (cpu.as_secs_f64(), slowest.as_secs_f64());
                println!(
                    "{n_jobs:>6} {nodes:>6} {lease:>7} {n_solves:>8} {most_variables:>10} {cpu:>10.2} {slowest:>11.3}"
                );
            }
        }
    }
}
