//! Synergy-OPT phase 2 and the joint model: against the originals' workloads and against brute force.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::synergy_opt::{
    Demand, Gangs, JointJob, JointProblem, LeftOut, Level, Part, PlacementProblem, Server, pack,
};
use rota_solvers::{Highs, Limits, SolveStatus, Solver, Start, check};

use crate::synergy_workloads::{index, workloads};

/// Nothing oversubscribed, every placed job complete; returns GPUs placed and servers used in all.
fn audit(problem: &PlacementProblem, placement: &[Vec<Part>], context: &str) -> (u32, usize) {
    let mut used = vec![(0_u32, 0.0_f64, 0.0_f64); problem.servers.len()];
    let mut n_gpus = 0;
    for (job, parts) in problem.jobs.iter().zip(placement) {
        let gpus: u32 = parts.iter().map(|part| part.gpus).sum();
        assert!(gpus == 0 || gpus == job.gpus, "{context}: {gpus} of {} GPUs placed", job.gpus);
        n_gpus += gpus;
        for part in parts {
            let share = f64::from(part.gpus) / f64::from(job.gpus);
            let server = &mut used[part.server];
            server.0 += part.gpus;
            server.1 += share * job.cpus;
            server.2 += share * job.memory;
        }
    }
    for (server, used) in problem.servers.iter().zip(&used) {
        let fits = used.0 <= server.gpus
            && used.1 <= server.cpus * (1.0 + 1e-9) + 1e-9
            && used.2 <= server.memory * (1.0 + 1e-9) + 1e-9;
        assert!(fits, "{context}: {used:?} on {server:?}");
    }
    (n_gpus, placement.iter().map(Vec::len).sum())
}

#[test]
fn the_originals_workloads_are_placed_or_proven_infeasible() {
    let Some(folder) = crate::golden("milp/synergy") else { return };
    for workload in workloads(&folder) {
        let Some(expected) = index(&folder, &format!("{}_p2_ilp.mps.gz", workload.name)) else { continue };
        let problem = workload.placement_problem();
        let packed = pack(&problem, Gangs::Whole);
        audit(&problem, &packed, &workload.name);
        let built = problem.model(Gangs::Whole, LeftOut::Forbidden).unwrap();
        let start = built.encode(&packed);
        let begin = start.as_deref().map_or(Start::Cold, Start::Values);
        let solution = Highs.solve(&built.model, &Limits::default(), begin);
        println!("{}: packed {}, {} in {:?}", workload.name, start.is_some(), solution.status, solution.wall);
        if expected.is_infinite() {
            assert_eq!(solution.status, SolveStatus::Infeasible, "{}", workload.name);
            continue;
        }
        assert_eq!(solution.status, SolveStatus::Optimal, "{}", workload.name);
        let placement = built.decode(&solution).unwrap();
        let n_gpus: u32 = problem.jobs.iter().map(|job| job.gpus).sum();
        assert_eq!(audit(&problem, &placement, &workload.name), (n_gpus, problem.jobs.len()));
    }
}

#[test]
fn rounding_the_lp_never_oversubscribes_and_places_four_gpus_in_five() {
    let Some(folder) = crate::golden("milp/synergy") else { return };
    for workload in workloads(&folder) {
        let problem = workload.placement_problem();
        let relaxed = problem.relaxed_model().unwrap();
        let solution = Highs.solve(&relaxed.model, &Limits::default(), Start::Cold);
        assert_eq!(solution.status, SolveStatus::Optimal, "{}", workload.name);
        let placement = problem.round(&relaxed, &solution, Gangs::Split).unwrap();
        let (n_gpus, n_parts) = audit(&problem, &placement, &workload.name);
        let asked: u32 = problem.jobs.iter().map(|job| job.gpus).sum();
        println!("{}: {n_gpus} of {asked} GPUs, {n_parts} parts, {:?}", workload.name, solution.wall);
        assert!(f64::from(n_gpus) >= 0.8 * f64::from(asked), "{}: {n_gpus} of {asked}", workload.name);
    }
}

fn random_problem(random: &mut StdRng) -> PlacementProblem {
    let server = |random: &mut StdRng| Server {
        gpus: random.random_range(1..=4),
        cpus: f64::from(random.random_range(2..=8)),
        memory: f64::from(random.random_range(2..=8)),
    };
    let job = |random: &mut StdRng| Demand {
        gpus: random.random_range(1..=4),
        cpus: f64::from(random.random_range(0..=6)),
        memory: f64::from(random.random_range(0..=6)),
    };
    PlacementProblem {
        servers: (0..random.random_range(1..=2)).map(|_| server(random)).collect(),
        jobs: (0..random.random_range(1..=4)).map(|_| job(random)).collect(),
    }
}

/// All ways to put a job's GPUs on up to two servers under a rule, the empty one included.
fn ways(problem: &PlacementProblem, job: &Demand, gangs: Gangs) -> Vec<Vec<Part>> {
    let fits_one = problem.servers.iter().any(|server| server.gpus >= job.gpus);
    let may_spread = gangs == Gangs::Split || !fits_one;
    let mut ways = vec![Vec::new()];
    for first in 0..=job.gpus {
        let second = job.gpus - first;
        let parts: Vec<Part> = [(0, first), (1, second)]
            .into_iter()
            .filter(|&(_, gpus)| gpus > 0)
            .map(|(server, gpus)| Part { server, gpus })
            .collect();
        let exists = parts.iter().all(|part| part.server < problem.servers.len());
        if exists && (parts.len() == 1 || may_spread) {
            ways.push(parts);
        }
    }
    ways
}

fn fits(problem: &PlacementProblem, placement: &[&Vec<Part>]) -> bool {
    (0..problem.servers.len()).all(|s| {
        let mut used = (0, 0.0, 0.0);
        for (job, parts) in problem.jobs.iter().zip(placement) {
            for part in parts.iter().filter(|part| part.server == s) {
                let share = f64::from(part.gpus) / f64::from(job.gpus);
                used = (used.0 + part.gpus, used.1 + share * job.cpus, used.2 + share * job.memory);
            }
        }
        let server = &problem.servers[s];
        used.0 <= server.gpus && used.1 <= server.cpus + 1e-9 && used.2 <= server.memory + 1e-9
    })
}

/// Most GPUs placed, then fewest parts.
fn brute_force(problem: &PlacementProblem, gangs: Gangs) -> (u32, usize) {
    let all: Vec<Vec<Vec<Part>>> = problem.jobs.iter().map(|job| ways(problem, job, gangs)).collect();
    let n_codes: usize = all.iter().map(Vec::len).product();
    let mut best = (0, 0);
    for code in 0..n_codes {
        let mut rest = code;
        let placement: Vec<&Vec<Part>> = all
            .iter()
            .map(|ways| {
                let way = &ways[rest % ways.len()];
                rest /= ways.len();
                way
            })
            .collect();
        let n_gpus: u32 = placement.iter().flat_map(|parts| parts.iter()).map(|part| part.gpus).sum();
        let n_parts: usize = placement.iter().map(|parts| parts.len()).sum();
        let is_better = n_gpus > best.0 || (n_gpus == best.0 && n_parts < best.1);
        if is_better && fits(problem, &placement) {
            best = (n_gpus, n_parts);
        }
    }
    best
}

#[test]
fn random_placements_agree_with_brute_force() {
    for seed in 0..300 {
        let problem = random_problem(&mut StdRng::seed_from_u64(seed));
        let asked: u32 = problem.jobs.iter().map(|job| job.gpus).sum();
        for gangs in [Gangs::Whole, Gangs::Split] {
            let context = format!("seed {seed} {gangs:?} {problem:?}");
            let best = brute_force(&problem, gangs);
            let built = problem.model(gangs, LeftOut::Allowed).unwrap();
            let packed = pack(&problem, gangs);
            let start = built.encode(&packed).unwrap();
            check(&built.model, &start).unwrap_or_else(|error| panic!("{context}: start, {error}"));
            let solution = Highs.solve(&built.model, &Limits::default(), Start::Values(&start));
            assert_eq!(solution.status, SolveStatus::Optimal, "{context}");
            let placement = built.decode(&solution).unwrap();
            assert_eq!(audit(&problem, &placement, &context), best, "{context}");
            assert_eq!(built.encode(&placement), Some(solution.values), "{context}");
            assert!(audit(&problem, &packed, &context).0 <= best.0, "{context}");

            let strict = problem.model(gangs, LeftOut::Forbidden).unwrap();
            let solution = Highs.solve(&strict.model, &Limits::default(), Start::Cold);
            assert_eq!(solution.status.has_values(), best.0 == asked, "{context}: {}", solution.status);
        }
    }
}

fn random_joint(random: &mut StdRng) -> JointProblem {
    let servers = random_problem(random).servers;
    let job = |random: &mut StdRng| {
        let level = |random: &mut StdRng| Level {
            cpus: f64::from(random.random_range(0..=6)),
            memory: f64::from(random.random_range(0..=6)),
            throughput: f64::from(random.random_range(1..=8)) / 2.0,
        };
        let levels = (0..random.random_range(1..=3)).map(|_| level(random)).collect();
        JointJob { gpus: random.random_range(1..=5), levels, floor: 1.0 }
    };
    JointProblem { servers, jobs: (0..random.random_range(1..=3)).map(|_| job(random)).collect() }
}

/// Most throughput over all levels and places, jobs left out allowed; gangs on as few servers as possible.
fn brute_force_joint(problem: &JointProblem) -> f64 {
    let n_levels: Vec<usize> = problem.jobs.iter().map(|job| job.levels.len()).collect();
    let n_codes: usize = n_levels.iter().product();
    let mut best = 0.0_f64;
    for code in 0..n_codes {
        let mut rest = code;
        let chosen: Vec<&Level> = problem
            .jobs
            .iter()
            .zip(&n_levels)
            .map(|(job, n)| {
                let level = &job.levels[rest % n];
                rest /= n;
                level
            })
            .collect();
        let demand = |(job, level): (&JointJob, &&Level)| Demand {
            gpus: job.gpus,
            cpus: level.cpus,
            memory: level.memory,
        };
        let jobs = problem.jobs.iter().zip(&chosen).map(demand).collect();
        let placing = PlacementProblem { servers: problem.servers.clone(), jobs };
        let all: Vec<Vec<Vec<Part>>> =
            placing.jobs.iter().map(|job| ways(&placing, job, Gangs::Whole)).collect();
        let n_ways: usize = all.iter().map(Vec::len).product();
        for code in 0..n_ways {
            let mut rest = code;
            let mut placement = Vec::new();
            let mut throughput = 0.0;
            for ((ways, level), job) in all.iter().zip(&chosen).zip(&problem.jobs) {
                let way = &ways[rest % ways.len()];
                rest /= ways.len();
                if !way.is_empty() && level.throughput < job.floor {
                    throughput = f64::NEG_INFINITY;
                }
                throughput += if way.is_empty() { 0.0 } else { level.throughput };
                placement.push(way);
            }
            if throughput > best && fits(&placing, &placement) {
                best = throughput;
            }
        }
    }
    best
}

#[test]
fn random_joint_problems_agree_with_brute_force() {
    for seed in 0..300 {
        let problem = random_joint(&mut StdRng::seed_from_u64(seed));
        let context = format!("seed {seed} {problem:?}");
        let built = problem.model(LeftOut::Allowed).unwrap();
        let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        assert_eq!(solution.status, SolveStatus::Optimal, "{context}");
        let best = brute_force_joint(&problem);
        assert!((solution.objective.unwrap() - best).abs() < 1e-9, "{context}: {solution:?}, not {best}");
        let plan = built.decode(&solution).unwrap();
        let mut jobs = Vec::new();
        let mut parts = Vec::new();
        for (job, got) in problem.jobs.iter().zip(&plan) {
            let level = &job.levels[got.as_ref().map_or(0, |got| got.level)];
            jobs.push(Demand { gpus: job.gpus, cpus: level.cpus, memory: level.memory });
            parts.push(got.as_ref().map_or(Vec::new(), |got| got.parts.clone()));
        }
        audit(&PlacementProblem { servers: problem.servers.clone(), jobs }, &parts, &context);
        if plan.iter().flatten().all(|got| got.parts.len() == 1) {
            assert_eq!(built.encode(&plan).map(|v| check(&built.model, &v).is_ok()), Some(true), "{context}");
        }
    }
}
