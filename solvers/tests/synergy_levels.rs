//! Synergy-OPT phase 1 against the originals' workloads and against brute force.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::synergy_opt::{Level, LevelJob, LevelProblem, Shape};
use rota_solvers::{Highs, Limits, SolveStatus, Solver, Start};

use crate::synergy_workloads::{index, workloads};

#[test]
fn the_originals_workloads_reach_the_originals_objective() {
    let Some(folder) = crate::golden("milp/synergy") else { return };
    let mut n_compared = 0;
    for workload in workloads(&folder) {
        let problem = workload.level_problem();
        for (shape, suffix) in [(Shape::Whole, "p1_ilp"), (Shape::Relaxed, "p1_lp")] {
            let Some(row) = index(&folder, &format!("{}_{suffix}.mps.gz", workload.name)) else { continue };
            let built = problem.model(shape).unwrap();
            let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
            assert_eq!(solution.status, SolveStatus::Optimal, "{} {suffix}", workload.name);
            let (found, expected) = (solution.objective.unwrap(), -row);
            assert!(
                (found - expected).abs() <= 1e-6 * expected,
                "{}: {found}, not {expected}",
                workload.name
            );
            n_compared += 1;
        }
    }
    println!("{n_compared} level models compared");
    assert!(n_compared > 0);
}

fn random_problem(random: &mut StdRng) -> LevelProblem {
    let jobs = (0..random.random_range(1..=4))
        .map(|_| {
            let levels: Vec<Level> = (0..random.random_range(1..=5))
                .map(|_| Level {
                    cpus: f64::from(random.random_range(0..=8)) / 2.0,
                    memory: f64::from(random.random_range(0..=8)) * 20.83,
                    throughput: f64::from(random.random_range(0..=10)) / 4.0,
                })
                .collect();
            let floor = levels[0].throughput.min(1.0);
            LevelJob { levels, floor }
        })
        .collect();
    LevelProblem { cpus: random.random_range(0.0..10.0), memory: random.random_range(0.0..400.0), jobs }
}

fn brute_force(problem: &LevelProblem) -> Option<f64> {
    let mut best: Option<f64> = None;
    let n_choices: usize = problem.jobs.iter().map(|job| job.levels.len()).product();
    for mut code in 0..n_choices {
        let (mut cpus, mut memory, mut throughput, mut is_allowed) = (0.0, 0.0, 0.0, true);
        for job in &problem.jobs {
            let level = job.levels[code % job.levels.len()];
            code /= job.levels.len();
            cpus += level.cpus;
            memory += level.memory;
            throughput += level.throughput;
            is_allowed &= level.throughput >= job.floor;
        }
        if is_allowed && cpus <= problem.cpus && memory <= problem.memory {
            best = Some(best.map_or(throughput, |so_far| so_far.max(throughput)));
        }
    }
    best
}

#[test]
fn random_level_problems_agree_with_brute_force() {
    for seed in 0..300 {
        let problem = random_problem(&mut StdRng::seed_from_u64(seed));
        let built = problem.model(Shape::Whole).unwrap();
        let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        let relaxed = problem.model(Shape::Relaxed).unwrap();
        let bound = Highs.solve(&relaxed.model, &Limits::default(), Start::Cold);
        let Some(best) = brute_force(&problem) else {
            assert_eq!(solution.status, SolveStatus::Infeasible, "seed {seed}");
            continue;
        };
        assert!((solution.objective.unwrap() - best).abs() < 1e-9, "seed {seed}: {solution:?}, not {best}");
        assert!(bound.objective.unwrap() >= best - 1e-9, "seed {seed}: the relaxation is no bound");
        let choice = built.decode(&solution).unwrap();
        let sum: f64 = problem.jobs.iter().zip(&choice).map(|(job, &l)| job.levels[l].throughput).sum();
        assert!((sum - best).abs() < 1e-9, "seed {seed}: decoded {choice:?}");
        assert_eq!(built.encode(&choice), Some(solution.values), "seed {seed}");
    }
}

#[test]
fn amounts_that_are_no_numbers_are_named() {
    let level = Level { cpus: 1.0, memory: f64::NAN, throughput: 1.0 };
    let jobs = vec![LevelJob { levels: vec![level], floor: 0.0 }];
    let error = LevelProblem { cpus: 1.0, memory: 1.0, jobs }.model(Shape::Whole).unwrap_err();
    assert_eq!(error.to_string(), "job 0, level 0, memory: NaN is not a finite amount of at least 0");
}
