//! Times of reading, building and solving, for the benchmark table of issue 4:
//! `cargo run --release -p rota-solvers --example solve_speed [golden/milp]`.
//!
//! Wall times, best of three. "build" is ours (formulation to `Model`), "pack" the start without a solver.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rota_solvers::synergy_opt::{
    Demand, Gangs, JointJob, JointProblem, LeftOut, Level, LevelJob, LevelProblem, PlacementProblem, Server,
    Shape, pack,
};
use rota_solvers::{Highs, Limits, Solution, Solver, Start, read_model};
use serde_json::Value;

fn main() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden/milp");
    let folder = std::env::args().nth(1).map_or(default, PathBuf::from).join("synergy");
    if !folder.is_dir() {
        println!("skipped: {} is absent", folder.display());
        return;
    }
    files(&folder);
    levels(&folder, "s64_j200_seed12");
    placement(&folder, "s16_j100_seed8");
    joint(&folder, "s16_j100_seed8");
    joint(&folder, "s64_j200_seed12");
}

/// Best wall time of three, and the last result.
fn timed<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..3 {
        let started = Instant::now();
        last = Some(work());
        best = best.min(started.elapsed());
    }
    (best, last.expect("three rounds ran"))
}

fn say(what: &str, time: Duration, solution: Option<&Solution>) {
    let answer = solution.map_or(String::new(), |s| {
        format!("{} {:?} bound {:?} nodes {:?}", s.status, s.objective, s.bound, s.nodes)
    });
    println!("{what:<44} {:>10.2} ms  {answer}", time.as_secs_f64() * 1e3);
}

/// The MPS files as they are.
fn files(folder: &Path) {
    for name in ["s64_j200_seed12_p1_ilp", "s64_j200_seed12_p1_lp", "s16_j100_seed8_p2_ilp"] {
        let path = folder.join(format!("{name}.mps.gz"));
        if !path.is_file() {
            println!("{name}: no file");
            continue;
        }
        let (time, model) = timed(|| read_model(&path).expect("a golden model"));
        say(&format!("{name} read"), time, None);
        let (time, solution) = timed(|| Highs.solve(&model, &Limits::default(), Start::Cold));
        say(&format!("{name} solve"), time, Some(&solution));
    }
}

fn workload(folder: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("a golden workload");
    serde_json::from_str(&text).expect("a golden workload")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Phase 1 of a workload: levels per GPU, fair share 3 CPUs and 62.5 GB per GPU.
fn level_problem(json: &Value) -> LevelProblem {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let job = |job: &Value| {
        let gpus = number(&job["gpus"]);
        let table = &json["tput"][job["model"].as_str().expect("a name")];
        let mut levels = Vec::new();
        for (c, cpus) in list(&json["cpu_levels"]).iter().enumerate() {
            for (m, memory) in list(&json["mem_levels"]).iter().enumerate() {
                let (cpus, memory) = (gpus * number(cpus), gpus * number(memory));
                levels.push(Level { cpus, memory, throughput: number(&table[c][m]) });
            }
        }
        // row 2, column 1 of a 9 x 5 table
        LevelJob { floor: levels[11].throughput, levels }
    };
    let servers = number(&json["servers"]);
    let jobs = list(&json["jobs"]).iter().map(job).collect();
    LevelProblem { cpus: servers * 24.0, memory: servers * 500.0, jobs }
}

/// Our own phase 1.
fn levels(folder: &Path, name: &str) {
    let problem = level_problem(&workload(folder, name));
    for shape in [Shape::Whole, Shape::Relaxed] {
        let (build, built) = timed(|| problem.model(shape).expect("a sane problem"));
        say(&format!("{name} levels {shape:?} build ({} vars)", built.model.n_variables()), build, None);
        let (solve, solution) = timed(|| Highs.solve(&built.model, &Limits::default(), Start::Cold));
        say(&format!("{name} levels {shape:?} solve"), solve, Some(&solution));
    }
}

/// Level and server at once, gap 1 %, 20 s, once.
fn joint(folder: &Path, name: &str) {
    let json = workload(folder, name);
    let gpus = json["jobs"].as_array().expect("a list").iter().map(|job| number(&job["gpus"]) as u32);
    let jobs = level_problem(&json)
        .jobs
        .into_iter()
        .zip(gpus)
        .map(|(job, gpus)| JointJob { gpus, levels: job.levels, floor: job.floor })
        .collect();
    let server = Server { gpus: 8, cpus: 24.0, memory: 500.0 };
    let problem = JointProblem { servers: vec![server; number(&json["servers"]) as usize], jobs };
    let (build, built) = timed(|| problem.model(LeftOut::Allowed).expect("a sane problem"));
    say(&format!("{name} joint build ({} vars)", built.model.n_variables()), build, None);
    let limits = Limits { gap: 0.01, wall: Duration::from_secs(20), ..Limits::default() };
    let solution = Highs.solve(&built.model, &limits, Start::Cold);
    say(&format!("{name} joint solve"), solution.wall, Some(&solution));
}

/// Our own phase 2, cold and with the packing as start.
fn placement(folder: &Path, name: &str) {
    let json = workload(folder, name);
    let server = Server { gpus: 8, cpus: 24.0, memory: 500.0 };
    let job = |job: &Value| Demand {
        gpus: number(&job["gpus"]) as u32,
        cpus: number(&job["phase1_ilp_cpu"]),
        memory: number(&job["phase1_ilp_mem"]),
    };
    let jobs = json["jobs"].as_array().expect("a list").iter().map(job).collect();
    let problem = PlacementProblem { servers: vec![server; number(&json["servers"]) as usize], jobs };
    let (time, packed) = timed(|| pack(&problem, Gangs::Whole));
    say(&format!("{name} pack"), time, None);
    for gangs in [Gangs::Whole, Gangs::Split] {
        let (build, built) = timed(|| problem.model(gangs, LeftOut::Forbidden).expect("a sane problem"));
        say(&format!("{name} placement {gangs:?} build ({} vars)", built.model.n_variables()), build, None);
        if gangs == Gangs::Whole {
            let (cold, solution) = timed(|| Highs.solve(&built.model, &Limits::default(), Start::Cold));
            say(&format!("{name} placement {gangs:?} cold"), cold, Some(&solution));
        }
        if let Some(values) = built.encode(&packed) {
            let start = Start::Values(&values);
            let (warm, solution) = timed(|| Highs.solve(&built.model, &Limits::default(), start));
            say(&format!("{name} placement {gangs:?} warm"), warm, Some(&solution));
        }
    }
    let relaxed = problem.relaxed_model().expect("a sane problem");
    let (time, solution) = timed(|| Highs.solve(&relaxed.model, &Limits::default(), Start::Cold));
    say(&format!("{name} placement relaxed"), time, Some(&solution));
}
