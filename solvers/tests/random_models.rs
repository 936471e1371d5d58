//! A thousand random small models against brute force and against a second road to the same solver.
//!
//! A failure prints its seed: `SEED=n cargo test --release -p rota-solvers random`.

use good_lp::{Expression, Solution as _, SolverModel, Variable as Column, variable, variables};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_solvers::{Highs, Limits, Model, Sense, SolveStatus, Solver, Start, check};

const N_MODELS: u64 = 1000;

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..N_MODELS,
    }
}

/// Up to six integers in small boxes, up to five rows of every form.
fn random_integer_model(random: &mut StdRng) -> Model {
    let sense = if random.random_bool(0.5) { Sense::Minimize } else { Sense::Maximize };
    let mut model = Model::new(sense);
    let n_variables = random.random_range(1..=6);
    for i in 0..n_variables {
        let lower = f64::from(random.random_range(-2..=1));
        let upper = lower + f64::from(random.random_range(0..=3));
        let x = model.integer(&format!("x{i}"), lower, upper).unwrap();
        model.set_cost(x, f64::from(random.random_range(-9..=9)) / 2.0).unwrap();
    }
    model.set_offset(f64::from(random.random_range(-3..=3))).unwrap();
    for r in 0..random.random_range(0..=5) {
        let variables: Vec<_> = model.variables().collect();
        let terms: Vec<_> =
            variables.into_iter().map(|x| (x, f64::from(random.random_range(-5..=5)))).collect();
        let middle = f64::from(random.random_range(-6..=6));
        let (lower, upper) = match random.random_range(0..6) {
            0 => (middle, middle),
            1 => (middle, middle + f64::from(random.random_range(1..=4))),
            2 | 3 => (f64::NEG_INFINITY, middle),
            _ => (middle, f64::INFINITY),
        };
        model.row(&format!("r{r}"), lower, upper, terms).unwrap();
    }
    model
}

/// The best objective over all points of the box, and the point.
fn brute_force(model: &Model) -> Option<(f64, Vec<f64>)> {
    let ranges: Vec<_> = model.variables().map(|x| model.range(x)).collect();
    let mut point: Vec<f64> = ranges.iter().map(|range| range.lower).collect();
    let mut best: Option<(f64, Vec<f64>)> = None;
    loop {
        if let Ok(objective) = check(model, &point) {
            let is_better = best.as_ref().is_none_or(|(so_far, _)| match model.sense() {
                Sense::Minimize => objective < *so_far,
                Sense::Maximize => objective > *so_far,
            });
            if is_better {
                best = Some((objective, point.clone()));
            }
        }
        let Some(at) = (0..point.len()).find(|&i| point[i] < ranges[i].upper) else { return best };
        point[at] += 1.0;
        for i in 0..at {
            point[i] = ranges[i].lower;
        }
    }
}

#[test]
fn random_integer_models_agree_with_brute_force() {
    let mut n_feasible = 0;
    for seed in seeds() {
        let model = random_integer_model(&mut StdRng::seed_from_u64(seed));
        let solution = Highs.solve(&model, &Limits::default(), Start::Cold);
        match brute_force(&model) {
            None => assert_eq!(solution.status, SolveStatus::Infeasible, "seed {seed}\n{model}"),
            Some((best, point)) => {
                assert_eq!(solution.status, SolveStatus::Optimal, "seed {seed}\n{model}");
                assert_eq!(solution.objective, Some(best), "seed {seed}\n{model}");
                let warm = Highs.solve(&model, &Limits::default(), Start::Values(&point));
                assert_eq!(warm.objective, Some(best), "warm, seed {seed}\n{model}");
                n_feasible += 1;
            }
        }
    }
    println!("{n_feasible} of {} random models are feasible", seeds().count());
}

/// The same model built by good_lp; its objective, or `None` when infeasible.
fn by_good_lp(model: &Model) -> Option<f64> {
    let mut problem = variables!();
    let columns: Vec<Column> = model
        .variables()
        .map(|x| {
            let (range, definition) = (model.range(x), variable());
            let definition =
                if model.kind(x) == rota_solvers::Kind::Integer { definition.integer() } else { definition };
            problem.add(definition.min(range.lower).max(range.upper))
        })
        .collect();
    let objective: Expression =
        model.variables().map(|x| model.cost(x) * columns[x.index()]).sum::<Expression>() + model.offset();
    let goal = match model.sense() {
        Sense::Minimize => problem.minimise(objective.clone()),
        Sense::Maximize => problem.maximise(objective.clone()),
    };
    let mut solver = goal.using(good_lp::highs);
    for row in model.rows() {
        let sum: Expression = model.terms(row).map(|(x, value)| value * columns[x.index()]).sum();
        let range = model.row_range(row);
        if range.lower.is_finite() {
            solver = solver.with(sum.clone().geq(range.lower));
        }
        if range.upper.is_finite() {
            solver = solver.with(sum.leq(range.upper));
        }
    }
    solver.solve().ok().map(|solution| solution.eval(objective))
}

#[test]
fn random_mixed_models_agree_with_good_lp() {
    for seed in seeds() {
        let mut random = StdRng::seed_from_u64(seed);
        let mut model = random_integer_model(&mut random);
        let y = model.continuous("y", -1.5, 2.5).unwrap();
        model.set_cost(y, f64::from(random.random_range(-3..=3))).unwrap();
        let terms: Vec<_> =
            model.variables().map(|x| (x, f64::from(random.random_range(-20..=20)) / 7.0)).collect();
        model.row("mixed", f64::NEG_INFINITY, 3.3, terms).unwrap();
        let solution = Highs.solve(&model, &Limits::default(), Start::Cold);
        match by_good_lp(&model) {
            None => assert_eq!(solution.status, SolveStatus::Infeasible, "seed {seed}\n{model}"),
            Some(expected) => {
                assert_eq!(solution.status, SolveStatus::Optimal, "seed {seed}\n{model}");
                let found = solution.objective.unwrap();
                assert!((found - expected).abs() <= 1e-6, "seed {seed}: {found}, not {expected}\n{model}");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    for seed in 0..50 {
        let model = random_integer_model(&mut StdRng::seed_from_u64(seed));
        let solve = || Highs.solve(&model, &Limits { seed: 7, ..Limits::default() }, Start::Cold);
        let (first, second) = (solve(), solve());
        assert_eq!((first.values, first.nodes), (second.values, second.nodes), "seed {seed}");
    }
}
