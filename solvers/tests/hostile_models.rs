//! Models nobody should write: each ends in a status or a typed error, never in a panic or a hang.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::{
    Highs, Limits, Model, ModelError, Sense, SolveStatus, Solver, Start, check, exchange, read_lp, read_mps,
};

fn solve(model: &Model) -> rota_solvers::Solution {
    Highs.solve(model, &Limits::default(), Start::Cold)
}

#[test]
fn an_unbounded_lp_is_unbounded() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.continuous("x", 0.0, f64::INFINITY).unwrap();
    model.set_cost(x, 1.0).unwrap();
    assert_eq!(solve(&model).status, SolveStatus::Unbounded);
}

#[test]
fn an_unbounded_integer_model_is_unbounded_and_an_infeasible_one_is_not() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.integer("x", 0.0, f64::INFINITY).unwrap();
    let y = model.integer("y", 0.0, f64::INFINITY).unwrap();
    model.set_cost(x, 1.0).unwrap();
    model.row("ray", 0.0, 0.0, [(x, 1.0), (y, -1.0)]).unwrap();
    assert_eq!(solve(&model).status, SolveStatus::Unbounded);
    // 2x = 2y + 1 has real but no whole solutions
    model.row("parity", 1.0, 1.0, [(x, 2.0), (y, -2.0)]).unwrap();
    assert_eq!(solve(&model).status, SolveStatus::Infeasible);
}

#[test]
fn a_model_without_variables_is_judged_by_its_rows() {
    let mut model = Model::new(Sense::Minimize);
    model.set_offset(4.0).unwrap();
    assert_eq!(solve(&model).objective, Some(4.0));
    model.row("holds", -1.0, 1.0, []).unwrap();
    assert_eq!(solve(&model).status, SolveStatus::Optimal);
    model.row("fails", 1.0, 2.0, []).unwrap();
    assert_eq!(solve(&model).status, SolveStatus::Infeasible);
}

#[test]
fn an_ill_scaled_model_gives_a_status_and_only_checked_values() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut model = Model::new(Sense::Maximize);
        for i in 0..8 {
            let upper = 10_f64.powi(random.random_range(-9..=9));
            let x = if i % 2 == 0 {
                model.continuous(&format!("x{i}"), 0.0, upper)
            } else {
                model.integer(&format!("x{i}"), 0.0, upper.max(1.0))
            };
            model.set_cost(x.unwrap(), 10_f64.powi(random.random_range(-9..=9))).unwrap();
        }
        for r in 0..6 {
            let terms: Vec<_> = model
                .variables()
                .map(|x| (x, random.random_range(-1.0..1.0) * 10_f64.powi(random.random_range(-9..=9))))
                .collect();
            let side = 10_f64.powi(random.random_range(-6..=9));
            model.row(&format!("r{r}"), f64::NEG_INFINITY, side, terms).unwrap();
        }
        let limits = Limits { nodes: 1000, wall: Duration::from_secs(2), ..Limits::default() };
        let solution = Highs.solve(&model, &limits, Start::Cold);
        assert_eq!(solution.status.has_values(), check(&model, &solution.values).is_ok(), "seed {seed}");
    }
}

#[test]
fn fifty_thousand_binaries_end_in_a_status_and_keep_the_start() {
    let mut random = StdRng::seed_from_u64(1);
    let mut model = Model::new(Sense::Maximize);
    let variables: Vec<_> = (0..50_000).map(|i| model.binary(&format!("x{i}")).unwrap()).collect();
    for &x in &variables {
        model.set_cost(x, random.random_range(1.0..2.0)).unwrap();
    }
    for r in 0..40 {
        let terms: Vec<_> = variables
            .iter()
            .filter(|_| random.random_bool(0.05))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|&x| (x, random.random_range(1.0..100.0)))
            .collect();
        model.row(&format!("knapsack{r}"), f64::NEG_INFINITY, 25_000.0, terms).unwrap();
    }
    let limits = Limits { wall: Duration::from_secs(3), ..Limits::default() };
    let started = Instant::now();
    let solution = Highs.solve(&model, &limits, Start::Cold);
    println!("50,000 binaries: {} after {:?}, gap {:?}", solution.status, started.elapsed(), solution.gap());
    assert!(!matches!(solution.status, SolveStatus::Failed { .. } | SolveStatus::Infeasible));
    if solution.status.has_values() {
        assert!(check(&model, &solution.values).is_ok());
    }
    // a start is never lost, however short the time
    let limits = Limits { wall: Duration::ZERO, ..limits };
    let solution = Highs.solve(&model, &limits, Start::Values(&vec![0.0; 50_000]));
    assert_eq!(solution.status, SolveStatus::LimitWithIncumbent);
}

#[test]
fn node_limits_stop_a_hard_model_the_same_way_twice() {
    let mut random = StdRng::seed_from_u64(3);
    let mut model = Model::new(Sense::Maximize);
    let variables: Vec<_> = (0..60).map(|i| model.binary(&format!("x{i}")).unwrap()).collect();
    for &x in &variables {
        model.set_cost(x, random.random_range(10.0..11.0)).unwrap();
    }
    for r in 0..5 {
        let terms: Vec<_> = variables.iter().map(|&x| (x, random.random_range(50.0..100.0))).collect();
        model.row(&format!("r{r}"), f64::NEG_INFINITY, 2000.0, terms).unwrap();
    }
    let limits = Limits { nodes: 50, ..Limits::default() };
    let first = Highs.solve(&model, &limits, Start::Cold);
    let second = Highs.solve(&model, &limits, Start::Cold);
    assert_eq!(first.status, SolveStatus::LimitWithIncumbent);
    assert_eq!(first.values, second.values);
    assert!(first.gap().unwrap() > 0.0);
    let loose = Limits { gap: 0.5, ..Limits::default() };
    let solution = Highs.solve(&model, &loose, Start::Cold);
    assert_eq!(solution.status, SolveStatus::GapReached);
    assert!(solution.gap().unwrap() <= 0.5);
}

#[test]
fn several_threads_may_follow_one_thread() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.integer("x", 0.0, 7.5).unwrap();
    model.set_cost(x, 2.0).unwrap();
    for threads in [1, 2, 1, 3] {
        let solution = Highs.solve(&model, &Limits { threads, ..Limits::default() }, Start::Cold);
        assert_eq!(solution.objective, Some(14.0), "{threads} threads: {}", solution.status);
    }
}

#[test]
fn bad_limits_and_bad_starts_fail_with_a_reason() {
    let mut model = Model::new(Sense::Maximize);
    model.binary("x").unwrap();
    let limits = Limits { gap: f64::NAN, ..Limits::default() };
    let reason = Highs.solve(&model, &limits, Start::Cold).status.to_string();
    assert_eq!(reason, "failed: a gap of NaN cannot be asked for");
    let reason = Highs.solve(&model, &Limits::default(), Start::Values(&[])).status.to_string();
    assert_eq!(reason, "failed: the start has 0 values for 1 variables");
    let reason = Highs.solve(&model, &Limits::default(), Start::Values(&[f64::NAN])).status.to_string();
    assert_eq!(reason, "failed: the start has a value that is not finite");
}

#[test]
fn an_infeasible_start_does_no_harm() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.binary("x").unwrap();
    let y = model.binary("y").unwrap();
    model.set_cost(x, 1.0).unwrap();
    model.row("one", f64::NEG_INFINITY, 1.0, [(x, 1.0), (y, 1.0)]).unwrap();
    let solution = Highs.solve(&model, &Limits::default(), Start::Values(&[1.0, 1.0]));
    assert_eq!((solution.status, solution.values), (SolveStatus::Optimal, vec![1.0, 0.0]));
}

#[test]
fn coefficients_beyond_the_solver_fail_with_a_reason() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.continuous("x", 0.0, 1.0).unwrap();
    model.row("huge", 0.0, 1e19, [(x, 1e18)]).unwrap();
    let solution = solve(&model);
    assert!(matches!(solution.status, SolveStatus::Failed { .. }), "{}", solution.status);
}

#[test]
fn a_big_m_that_hides_in_the_tolerance_is_seen_through() {
    // y may be 1 only if x is, but 1e7 * 1e-7 is within HiGHS' integer tolerance
    let mut model = Model::new(Sense::Maximize);
    let x = model.binary("x").unwrap();
    let y = model.continuous("y", 0.0, 1.0).unwrap();
    model.set_cost(x, -100.0).unwrap();
    model.set_cost(y, 1.0).unwrap();
    model.row("switch", f64::NEG_INFINITY, 0.0, [(y, 1.0), (x, -1e7)]).unwrap();
    let solution = solve(&model);
    assert!(check(&model, &solution.values).is_ok(), "{}", solution.status);
    assert_eq!(solution.objective, Some(0.0), "{}", solution.status);
}

#[test]
fn duplicate_names_and_nan_are_typed_errors() {
    let mut model = Model::new(Sense::Minimize);
    let x = model.binary("x").unwrap();
    assert_eq!(model.binary("x").unwrap_err().to_string(), "variable x: the name is taken");
    assert!(matches!(model.continuous("n", f64::NAN, 1.0), Err(ModelError::NotANumber { .. })));
    assert!(matches!(model.continuous("n", 2.0, 1.0), Err(ModelError::EmptyRange { .. })));
    assert!(matches!(model.continuous("a b", 0.0, 1.0), Err(ModelError::BadName { .. })));
    assert!(matches!(model.set_cost(x, f64::INFINITY), Err(ModelError::NotANumber { .. })));
    let error = model.row("r", 0.0, 1.0, [(x, f64::NAN)]).unwrap_err();
    assert_eq!(error.to_string(), "row r, coefficient of x: NaN is not a usable number");
    model.row("r", 0.0, 1.0, [(x, 1.0)]).unwrap();
    let error = model.row("r", 0.0, 1.0, [(x, 1.0)]).unwrap_err();
    assert_eq!(error.to_string(), "row r: the name is taken");
    assert_eq!((model.n_variables(), model.n_rows(), model.n_terms()), (1, 1, 1));
}

#[test]
fn garbage_never_panics_a_reader() {
    let mut model = Model::new(Sense::Maximize);
    let x = model.integer("x", -3.0, 4.5).unwrap();
    let y = model.continuous("y", f64::NEG_INFINITY, 2.0).unwrap();
    model.set_cost(x, 1.25).unwrap();
    model.row("range", -1.0, 1.0, [(x, 1.0), (y, -2.5)]).unwrap();
    let mps = rota_solvers::write_mps(&model);
    let lp = rota_solvers::write_lp(&model).unwrap();
    let request = exchange::write_request(&model, &Limits::default(), Start::Values(&[0.0, 0.0]));
    let answer = exchange::write_answer(&solve(&model));
    let mut random = StdRng::seed_from_u64(5);
    let pieces =
        ["\n", " ", "1e999", "nan", "-", "<=", "x", "ROWS", "é", "\u{0}", ":", "End", "9", "'MARKER'"];
    for _ in 0..20_000 {
        for text in [&mps, &lp, &request, &answer] {
            let mut damaged: Vec<char> = text.chars().collect();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..damaged.len());
                match random.random_range(0..3) {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.truncate(at.max(1)),
                    _ => {
                        let piece = pieces[random.random_range(0..pieces.len())];
                        damaged.splice(at..at, piece.chars());
                    }
                }
                if damaged.is_empty() {
                    damaged.push('x');
                }
            }
            let damaged: String = damaged.into_iter().collect();
            let _ = read_mps(&damaged);
            let _ = read_lp(&damaged);
            let _ = exchange::read_request(&damaged);
            let _ = exchange::read_answer(&model, &damaged);
        }
    }
}
