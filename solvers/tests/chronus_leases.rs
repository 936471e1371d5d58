//! The Chronus lease model against every MILP its original recorded, and against brute force.

use std::path::Path;

use flate2::read::MultiGzDecoder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::chronus_leases::{
    LeaseGoal, LeasePlan, LeaseProblem, LeaseRow, Settlement, Unsettled, settle,
};
use rota_solvers::{Highs, Limits, Recorded, Recording, SolveStatus, Solver, Start, check};
use serde_json::Value;

fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return serde_json::from_reader(MultiGzDecoder::new(&bytes[..])).unwrap();
    }
    serde_json::from_slice(&bytes).unwrap()
}

/// Every recorded solve of every case that has them.
fn recorded_solves(folder: &Path) -> Vec<(String, Value)> {
    let mut cases: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let mut solves = Vec::new();
    for case in cases {
        for name in ["expected_highs.json", "expected_highs.json.gz"] {
            let path = case.join(name);
            if path.is_file()
                && let Some(list) = json(&path)["milp"].as_array()
            {
                let title = |value: &Value| format!("{} at {}", case.display(), value["time"]);
                solves.extend(list.iter().map(|value| (title(value), value.clone())));
            }
        }
    }
    solves
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as i64).collect()
}

fn problem_of(solve: &Value) -> LeaseProblem {
    let column = |key: &str| integers(&solve[key]);
    let (gpus, need, horizon, level) = (column("gpus"), column("need"), column("horizon"), column("vid"));
    let value: Vec<f64> = solve["value"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let row = |j: usize| LeaseRow {
        gpus: gpus[j] as u32,
        need: need[j] as u32,
        horizon: horizon[j],
        value: value[j],
        level: level[j] as u32,
    };
    let goal = match solve["objective"].as_str().unwrap() {
        "minimize" => LeaseGoal::Minimize,
        "maximize" => LeaseGoal::Maximize,
        "random" => LeaseGoal::Random,
        other => panic!("unknown goal {other}"),
    };
    LeaseProblem { rows: (0..gpus.len()).map(row).collect(), capacity: column("capacity"), goal }
}

#[test]
fn every_recorded_solve_has_the_recorded_objective() {
    let Some(folder) = crate::golden("chronus/cases") else { return };
    let (mut n_solves, mut n_proved) = (0, 0);
    for (title, solve) in recorded_solves(&folder) {
        if solve["status"] != "Optimal" || !solve["value"].is_array() {
            continue;
        }
        let problem = problem_of(&solve);
        let built = problem.model().unwrap();
        let expected = solve["obj"].as_f64().unwrap();
        let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        assert_eq!(solution.status, SolveStatus::Optimal, "{title}");
        let found = solution.objective.unwrap();
        assert!(
            (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
            "{title}: {found}, not {expected}"
        );
        let settled = settle(&problem, &|| None, usize::MAX, &mut Highs, &Limits::default());
        let settled = settled.unwrap_or_else(|error| panic!("{title}: {error}"));
        assert!(
            (settled.objective - expected).abs() <= 1e-6 * expected.abs().max(1.0),
            "{title}: settled at {}, not {expected}",
            settled.objective
        );
        n_proved += usize::from(settled.how == Settlement::Proved);

        if let Some(recorded) = solve["X"].as_array() {
            // the recording leaves out what lies beyond a row's own horizon
            let flags = |text: &Value| {
                let runs = text.as_str().unwrap().chars().map(|c| c == '1');
                runs.chain(std::iter::repeat(false)).take(problem.n_leases()).collect()
            };
            let plan = LeasePlan {
                chosen: integers(&solve["S"]).into_iter().map(|s| s == 1).collect(),
                leases: recorded.iter().map(flags).collect(),
            };
            let values = built.encode(&plan).expect("the recorded plan respects its horizons");
            let mut solver = Recorded::new([Recording { status: SolveStatus::Optimal, values }]);
            let replayed = solver.solve(&built.model, &Limits::default(), Start::Cold);
            assert_eq!(built.decode(&replayed).as_ref(), Ok(&plan), "{title}: {}", replayed.status);
            assert!(
                (replayed.objective.unwrap() - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                "{title}"
            );
        }
        n_solves += 1;
    }
    println!("{n_solves} recorded solves compared, {n_proved} of them settled without a solve");
    assert!(n_solves > 0);
}

fn row(gpus: u32, need: u32, horizon: i64, value: f64, level: u32) -> LeaseRow {
    LeaseRow { gpus, need, horizon, value, level }
}

#[test]
fn an_expired_level_does_not_disturb_its_neighbours() {
    // a mistake of the original, whose model is infeasible here
    let rows =
        vec![row(8, 1, 4, 10.0, 0), row(8, 1, -2, 10.0, 0), row(8, 1, 4, 8.0, 1), row(8, 2, 2, 10.0, 0)];
    let problem = LeaseProblem { rows, capacity: vec![8; 4], goal: LeaseGoal::Minimize };
    let built = problem.model().unwrap();
    let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
    assert_eq!(solution.objective, Some(27.0));
    assert_eq!(built.decode(&solution).unwrap().chosen, [true, false, true, true]);
}

#[test]
fn a_capacity_shorter_than_the_horizon_is_refused() {
    let problem =
        LeaseProblem { rows: vec![row(1, 1, 3, 1.0, 0)], capacity: vec![8; 2], goal: LeaseGoal::Random };
    assert_eq!(problem.model().unwrap_err().to_string(), "leases with a capacity: 2 given, 3 needed");
}

/// Tries every X (S follows from X) of a small problem.
fn brute_force(problem: &LeaseProblem) -> Option<f64> {
    let n_leases = problem.n_leases();
    let n_rows = problem.rows.len();
    let largest = problem.capacity.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut best: Option<f64> = None;
    for code in 0_u64..1 << (n_rows * n_leases) {
        let runs = |j: usize, t: usize| code >> (j * n_leases + t) & 1 == 1;
        let is_inside =
            (0..n_rows).all(|j| (0..n_leases).all(|t| !runs(j, t) || (t as i64) < problem.rows[j].horizon));
        let is_packed = (0..n_leases).all(|t| {
            let used: i64 =
                (0..n_rows).filter(|&j| runs(j, t)).map(|j| i64::from(problem.rows[j].gpus)).sum();
            used <= problem.capacity[t]
        });
        if !is_inside || !is_packed {
            continue;
        }
        // one level of each job has exactly its leases, all other levels none
        let mut objective = Some(0.0);
        let mut chosen_in_group = 0;
        for j in (0..n_rows).rev() {
            let row = &problem.rows[j];
            let n_runs = (0..n_leases).filter(|&t| runs(j, t)).count() as u32;
            match n_runs {
                0 => {}
                n if n == row.need => {
                    chosen_in_group += 1;
                    let is_counted = problem.goal != LeaseGoal::Random || j == 0;
                    objective = objective.map(|sum| sum + if is_counted { row.value } else { 0.0 });
                }
                _ => objective = None,
            }
            if row.level == 0 {
                objective = objective.filter(|_| chosen_in_group == 1);
                chosen_in_group = 0;
            }
            let sigma = match problem.goal {
                LeaseGoal::Minimize => -1.0,
                LeaseGoal::Maximize => 1.0,
                LeaseGoal::Random => 0.0,
            };
            if n_leases > 0 && runs(j, 0) {
                objective = objective.map(|sum| sum + sigma * f64::from(row.gpus) / largest);
            }
        }
        if let Some(objective) = objective {
            best = Some(best.map_or(objective, |so_far| so_far.max(objective)));
        }
    }
    best
}

#[test]
fn random_lease_problems_agree_with_brute_force() {
    let goals = [LeaseGoal::Minimize, LeaseGoal::Maximize, LeaseGoal::Random];
    for seed in 0..300_u64 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut rows = Vec::new();
        for _ in 0..random.random_range(1..=2) {
            let (gpus, need) = (random.random_range(1..=4), random.random_range(1..=2));
            for level in 0..random.random_range(1..=2) {
                let value = 10.0 - 3.0 * f64::from(level);
                rows.push(row(gpus, need, random.random_range(-1..=3), value, level));
            }
        }
        let capacity = (0..3).map(|_| random.random_range(0..=6)).collect();
        let problem = LeaseProblem { rows, capacity, goal: goals[(seed % 3) as usize] };
        let built = problem.model().unwrap();
        let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        match brute_force(&problem) {
            None => assert_eq!(solution.status, SolveStatus::Infeasible, "seed {seed} {problem:?}"),
            Some(best) => {
                let found = solution.objective.unwrap_or(f64::NAN);
                assert!((found - best).abs() < 1e-9, "seed {seed}: {found}, not {best}: {problem:?}");
                let plan = built.decode(&solution).unwrap();
                assert_eq!(built.encode(&plan), Some(solution.values), "seed {seed}");
            }
        }
    }
}

/// A problem of several jobs with up to three levels; values are close to each other now and then.
fn random_problem(seed: u64) -> LeaseProblem {
    let goals = [LeaseGoal::Minimize, LeaseGoal::Maximize, LeaseGoal::Random];
    let mut random = StdRng::seed_from_u64(seed);
    let apart = if seed.is_multiple_of(5) { 0.1 } else { 3.0 };
    let mut rows = Vec::new();
    for _ in 0..random.random_range(1..=9) {
        let (gpus, need) = (random.random_range(1..=5), random.random_range(1..=3));
        let mut horizon = random.random_range(0..=6);
        for level in 0..random.random_range(1..=3) {
            rows.push(row(gpus, need, horizon, 10.0 - apart * f64::from(level), level));
            horizon += random.random_range(1..=3);
        }
    }
    let capacity = (0..12).map(|_| random.random_range(8..=16)).collect();
    LeaseProblem { rows, capacity, goal: goals[(seed % 3) as usize] }
}

#[test]
fn a_settled_problem_is_as_good_as_a_solved_one() {
    let (mut n_proved, mut n_solved) = (0, 0);
    for seed in 0..400_u64 {
        let problem = random_problem(seed);
        let built = problem.model().unwrap();
        let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        let settled = match settle(&problem, &|| None, usize::MAX, &mut Highs, &Limits::default()) {
            Ok(settled) => settled,
            Err(Unsettled::NoPlan { .. }) => {
                assert_eq!(solution.status, SolveStatus::Infeasible, "seed {seed}");
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let values = built.encode(&settled.plan).expect("a plan within its horizons");
        let objective =
            check(&built.model, &values).unwrap_or_else(|v| panic!("seed {seed}: {v} in {problem:?}"));
        let best = solution.objective.unwrap_or_else(|| panic!("seed {seed}: {}", solution.status));
        assert!((objective - best).abs() < 1e-6, "seed {seed}: {objective}, not {best}: {problem:?}");
        assert!((settled.objective - best).abs() < 1e-6 && settled.bound > best - 1e-6, "seed {seed}");
        match settled.how {
            Settlement::Proved => n_proved += 1,
            Settlement::Solved(_) => n_solved += 1,
            Settlement::FellBack(status) => panic!("seed {seed}: {status}"),
        }
    }
    assert!(n_proved > 50 && n_solved > 20, "{n_proved} proved, {n_solved} solved: both ways are tried");
}

#[test]
fn without_an_answer_the_packed_plan_is_taken() {
    let n_fallen = (0..200_u64).filter(|&seed| {
        let problem = random_problem(seed);
        let settled = settle(&problem, &|| None, usize::MAX, &mut Recorded::default(), &Limits::default());
        let Ok(settled) = settled else { return false };
        let built = problem.model().unwrap();
        let values = built.encode(&settled.plan).expect("a plan within its horizons");
        assert!(check(&built.model, &values).is_ok(), "seed {seed}");
        matches!(settled.how, Settlement::FellBack(_))
    });
    assert!(n_fallen.count() > 5);
}

#[test]
fn a_known_plan_is_the_least_that_is_settled_for() {
    let mut n_rescued = 0;
    for seed in 0..150_u64 {
        let problem = random_problem(seed);
        let built = problem.model().unwrap();
        let solution = Highs.solve(&built.model, &Limits::default(), Start::Cold);
        let Ok(known) = built.decode(&solution) else { continue };
        assert!(problem.holds(&known), "seed {seed}");
        let settle_with = |known: &dyn Fn() -> Option<LeasePlan>| {
            settle(&problem, known, usize::MAX, &mut Recorded::default(), &Limits::default())
        };
        let settled =
            settle_with(&|| Some(known.clone())).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(settled.objective > problem.objective(&known) - 1e-6, "seed {seed}: {}", settled.objective);
        n_rescued += usize::from(settle_with(&|| None).is_err());
    }
    assert!(n_rescued > 0, "packing always finds something: nothing is tried here");
}

#[test]
fn a_plan_that_does_not_hold_is_not_taken_for_known() {
    let problem =
        LeaseProblem { rows: vec![row(4, 1, 2, 10.0, 0)], capacity: vec![8; 2], goal: LeaseGoal::Minimize };
    let plan =
        |chosen: bool, leases: &[bool]| LeasePlan { chosen: vec![chosen], leases: vec![leases.to_vec()] };
    assert!(problem.holds(&plan(true, &[false, true])));
    for wrong in [
        plan(true, &[true, true]),
        plan(true, &[false, false]),
        plan(false, &[false, false]),
        plan(true, &[false, false, true]),
        plan(true, &[true]),
        LeasePlan { chosen: Vec::new(), leases: Vec::new() },
    ] {
        assert!(!problem.holds(&wrong), "{wrong:?}");
    }
    let narrow = LeaseProblem { capacity: vec![8, 3], ..problem };
    assert!(!narrow.holds(&plan(true, &[false, true])), "more GPUs than there are");
}
