//! The shipped models, `models/*.rhai`: as good as the native formulations on the golden cases and on random ones, the same
//! decision wherever only one is optimal, and text that can be edited.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_core::policy::Policy;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::scenario::{parse, run};
use rota_scripts::{Limits, ScriptPolicy, Source, shipped};
use rota_solvers::chronus_leases::{LeaseGoal, LeaseProblem, LeaseRow};
use rota_solvers::synergy_opt::{ClassProblem, Level, LevelClass};
use rota_solvers::{Highs, Model, SolveStatus, Solver, Start, Variable, read_model};
use rota_test_support::need;

/// What a shipped model answers to a problem written as a map.
struct Said {
    /// As the solver notes it; nothing if there is no plan.
    objective: Option<f64>,
    /// The answer row by row, numbers apart by blanks.
    rows: Vec<String>,
}

fn ask(model: &str, problem: &str, prints_rows: bool) -> Said {
    let script = shipped::find(model).unwrap_or_else(|| panic!("{model} is shipped"));
    let name = model.replace('-', "_");
    let text = script.source.replace(&format!("fn {name}("), "fn model(");
    let printing = if prints_rows {
        "if answer != () { for row in answer.to_arrays() { let line = \"\"; for number in row { line += `${number.to_int()} `; } print(line); } }"
    } else {
        ""
    };
    let text = format!(
        "{text}\nfn order(jobs, now) {{\n    let answer = model({problem});\n    {printing}\n    rank(jobs.arrival)\n}}\n"
    );
    let source = Source { name: "mine".into(), file: "mine.rhai".into(), text };
    let limits = Limits { note_lines: 10_000, ..Limits::default() };
    let mut policy =
        ScriptPolicy::from_sources("mine", &[source], limits).unwrap_or_else(|error| panic!("{error}"));
    let plan = policy.decide(&snapshot(Size { n_nodes: 1, n_old: 0, n_new: 1 }));
    let notes = plan.unwrap_or_else(|error| panic!("{error}")).notes;
    let (solves, rows): (Vec<String>, Vec<String>) =
        notes.into_iter().partition(|note| note.starts_with("milp: "));
    let objective = solves[0].split("objective ").nth(1).and_then(|rest| rest.split(',').next());
    let objective = objective.map(|number| number.parse().expect("a number"));
    Said { objective, rows: rows.iter().map(|row| row.trim().to_owned()).collect() }
}

fn list(numbers: impl Iterator<Item = f64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| format!("{number:?}")).collect();
    format!("[{}]", numbers.join(", "))
}

/// A lease problem as a script's map, with the fields that a policy gives it.
fn lease_text(problem: &LeaseProblem) -> String {
    let each = |value: fn(&LeaseRow) -> f64| list(problem.rows.iter().map(value));
    let mut job = -1.0;
    let jobs = problem.rows.iter().map(|row| {
        job += f64::from(u8::from(row.level == 0));
        job
    });
    let goal = format!("{:?}", problem.goal).to_lowercase();
    let most = problem.capacity.iter().copied().max().unwrap_or(0).max(1) as f64;
    let capacity = problem.capacity.iter().take(problem.n_leases()).map(|gpus| *gpus as f64);
    format!(
        "#{{ n_rows: {}, n_leases: {}, gpus: {}, need: {}, horizon: {}, value: {}, job: {}, capacity: {}, most_gpus: {most:?}, \
         goal: \"{goal}\", start: (), start_holds: (), gap: 0.0, nodes: 1000000 }}",
        problem.rows.len(),
        problem.n_leases(),
        each(|row| f64::from(row.gpus)),
        each(|row| f64::from(row.need)),
        each(|row| row.horizon as f64),
        each(|row| row.value),
        list(jobs),
        list(capacity)
    )
}

/// A level problem as a script's map: of each class the levels that no other beats.
fn level_text(problem: &ClassProblem) -> String {
    let offered: Vec<Vec<usize>> = problem.classes.iter().map(LevelClass::worth_offering).collect();
    let n_levels = offered.iter().map(Vec::len).max().unwrap_or(0);
    let matrix = |value: &dyn Fn(&Level) -> f64| {
        let rows = problem.classes.iter().zip(&offered).map(|(class, offered)| {
            list((0..n_levels).map(|at| offered.get(at).map_or(0.0, |level| value(&class.levels[*level]))))
        });
        format!("matrix([{}])", rows.collect::<Vec<_>>().join(", "))
    };
    format!(
        "#{{ exists: {}, cpus: {}, memory: {}, throughput: {}, count: {}, floor: {}, start: (), cluster_cpus: {:?}, \
         cluster_memory: {:?}, gap: 0.0, nodes: 1000000 }}",
        matrix(&|_| 1.0),
        matrix(&|level| level.cpus),
        matrix(&|level| level.memory),
        matrix(&|level| level.throughput),
        list(problem.classes.iter().map(|class| f64::from(class.count))),
        list(problem.classes.iter().map(|class| class.floor)),
        problem.cpus,
        problem.memory
    )
}

#[track_caller]
fn check_objective(title: &str, found: Option<f64>, expected: f64) {
    let found = found.unwrap_or_else(|| panic!("{title}: no plan"));
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{title}: {found}, not {expected}");
}

/// Files of a folder's index with the objective in a column, those that have one.
fn index(folder: &Path, column: &str) -> Vec<(PathBuf, f64)> {
    let text = std::fs::read_to_string(folder.join("index.csv")).expect("an index");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().expect("titles");
    let at = |title: &str| titles.iter().position(|other| *other == title).expect("a column");
    let solved = lines.filter(|row| row[at("status")] == "Optimal");
    solved.map(|row| (folder.join(row[0]), row[at(column)].parse().expect("a number"))).collect()
}

/// The lease problem behind one of the original's models, read from its rows: variables are `x_row_lease` and `s_row`.
fn lease_problem(model: &Model) -> LeaseProblem {
    let place = |variable: Variable| {
        let mut parts = model.variable_name(variable).split('_');
        let kind = parts.next().expect("a kind").to_owned();
        let numbers: Vec<usize> = parts.map(|part| part.parse().expect("a number")).collect();
        (kind, numbers)
    };
    let mut rows: BTreeMap<usize, LeaseRow> = BTreeMap::new();
    let mut capacity: BTreeMap<usize, i64> = BTreeMap::new();
    let (mut costs, mut later) = (Vec::new(), Vec::new());
    for variable in model.variables() {
        match place(variable) {
            (kind, numbers) if kind == "s" => {
                let row = LeaseRow { gpus: 0, need: 0, horizon: 0, value: model.cost(variable), level: 0 };
                rows.insert(numbers[0], row);
            }
            (_, numbers) => costs.extend((numbers[1] == 0).then(|| model.cost(variable))),
        }
    }
    for row in model.rows() {
        let terms: Vec<_> = model.terms(row).map(|(variable, factor)| (place(variable), factor)).collect();
        let held = terms.iter().find(|((kind, _), _)| kind == "s");
        let range = model.row_range(row);
        match held {
            Some(((_, numbers), factor)) if *factor < 0.0 => {
                let row = rows.get_mut(&numbers[0]).expect("a row");
                row.need = (-factor) as u32;
                row.horizon = terms.len() as i64 - 1;
            }
            Some(_) => later.extend(terms.iter().skip(1).map(|((_, numbers), _)| numbers[0])),
            None if range.lower == range.upper => {}
            None => {
                for ((_, numbers), factor) in &terms {
                    rows.get_mut(&numbers[0]).expect("a row").gpus = *factor as u32;
                    capacity.insert(numbers[1], range.upper as i64);
                }
            }
        }
    }
    for row in later {
        rows.get_mut(&row).expect("a row").level = 1;
    }
    let goal = match costs.iter().sum::<f64>() {
        sum if sum < 0.0 => LeaseGoal::Minimize,
        sum if sum > 0.0 => LeaseGoal::Maximize,
        _ => LeaseGoal::Random,
    };
    LeaseProblem { rows: rows.into_values().collect(), capacity: capacity.into_values().collect(), goal }
}

#[test]
fn the_lease_model_reaches_the_optimum_of_every_golden_model() {
    let Some(folder) = need::shared_path("golden/milp/chronus") else { return };
    let cases = index(&folder, "objective");
    for (path, expected) in &cases {
        let problem = lease_problem(&read_model(path).expect("a model"));
        let said = ask("lease-model", &lease_text(&problem), false);
        check_objective(&path.display().to_string(), said.objective, *expected);
    }
    assert_eq!(cases.len(), 48);
}

/// The solves that the original recorded in the cases carried here.
fn recorded_solves() -> Vec<(String, serde_json::Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/chronus/cases");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("cases").map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    let mut solves = Vec::new();
    for case in cases {
        let Ok(text) = std::fs::read_to_string(case.join("expected_highs.json")) else { continue };
        let case_json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let list = case_json["milp"].as_array().cloned().unwrap_or_default();
        let solved = list.into_iter().filter(|s| s["status"] == "Optimal" && s["value"].is_array());
        solves.extend(solved.map(|solve| (format!("{} at {}", case.display(), solve["time"]), solve)));
    }
    solves
}

fn recorded_problem(solve: &serde_json::Value) -> LeaseProblem {
    let column = |key: &str| -> Vec<f64> {
        let numbers = solve[key].as_array().expect("an array").iter();
        numbers.map(|number| number.as_f64().expect("a number")).collect()
    };
    let (gpus, need, horizon) = (column("gpus"), column("need"), column("horizon"));
    let (value, level) = (column("value"), column("vid"));
    let row = |j: usize| LeaseRow {
        gpus: gpus[j] as u32,
        need: need[j] as u32,
        horizon: horizon[j] as i64,
        value: value[j],
        level: level[j] as u32,
    };
    let goal = match solve["objective"].as_str() {
        Some("minimize") => LeaseGoal::Minimize,
        Some("maximize") => LeaseGoal::Maximize,
        _ => LeaseGoal::Random,
    };
    let capacity = column("capacity").into_iter().map(|gpus| gpus as i64).collect();
    LeaseProblem { rows: (0..gpus.len()).map(row).collect(), capacity, goal }
}

/// The native plan row by row, and whether no other plan is as good.
fn native_plan(problem: &LeaseProblem) -> Option<(f64, Vec<String>, bool)> {
    let built = problem.model().expect("a model");
    let solution = Highs.solve(&built.model, &rota_solvers::Limits::default(), Start::Cold);
    if solution.status == SolveStatus::Infeasible {
        return None;
    }
    let best = solution.objective.expect("a plan");
    let plan = built.decode(&solution).expect("a plan");
    let rows = plan
        .leases
        .iter()
        .map(|row| row.iter().map(|runs| if *runs { "1" } else { "0" }).collect::<Vec<_>>().join(" "));
    // The same model without this plan: at least one variable must differ.
    let mut other = built.model.clone();
    let differs = other.variables().map(|v| (v, if solution.value(v) == Some(1.0) { -1.0 } else { 1.0 }));
    let differs: Vec<_> = differs.collect();
    let n_ones = differs.iter().filter(|(_, factor)| *factor < 0.0).count() as f64;
    other.row("another", 1.0 - n_ones, f64::INFINITY, differs).expect("a row");
    let second = Highs.solve(&other, &rota_solvers::Limits::default(), Start::Cold).objective;
    Some((best, rows.collect(), second.is_none_or(|second| second < best - 1e-6)))
}

#[track_caller]
fn check_as_native(title: &str, problem: &LeaseProblem) -> bool {
    let said = ask("lease-model", &lease_text(problem), true);
    let Some((best, rows, is_unique)) = native_plan(problem) else {
        assert!(said.objective.is_none() && said.rows.is_empty(), "{title}: {:?}", said.rows);
        return false;
    };
    check_objective(title, said.objective, best);
    if is_unique {
        assert_eq!(said.rows, rows, "{title}");
    }
    is_unique
}

#[test]
fn the_lease_model_plans_recorded_solves_as_the_native_one_does() {
    let solves = recorded_solves();
    let mut n_unique = 0;
    for (title, solve) in &solves {
        let problem = recorded_problem(solve);
        n_unique += usize::from(check_as_native(title, &problem));
        let expected = solve["obj"].as_f64().expect("an objective");
        check_objective(title, ask("lease-model", &lease_text(&problem), false).objective, expected);
    }
    assert!(solves.len() >= 100 && n_unique > 5, "{} solves, {n_unique} with one best plan", solves.len());
}

#[test]
fn the_lease_model_plans_random_problems_as_the_native_one_does() {
    let goals = [LeaseGoal::Minimize, LeaseGoal::Maximize, LeaseGoal::Random];
    let mut n_unique = 0;
    for seed in 0..150_u64 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut rows = Vec::new();
        for _ in 0..random.random_range(1..=5) {
            let (gpus, need) = (random.random_range(1..=4), random.random_range(1..=3));
            let mut horizon = random.random_range(1..=4);
            for level in 0..random.random_range(1..=3) {
                rows.push(LeaseRow { gpus, need, horizon, value: 10.0 - 3.0 * f64::from(level), level });
                horizon += random.random_range(1..=3);
            }
        }
        let capacity = (0..12).map(|_| random.random_range(3..=9)).collect();
        let problem = LeaseProblem { rows, capacity, goal: goals[(seed % 3) as usize] };
        n_unique += usize::from(check_as_native(&format!("seed {seed}"), &problem));
    }
    assert!(n_unique > 3, "{n_unique} of 150 have one best plan");
}

/// The level problem behind phase 1 of one of the original's models: jobs are rows that sum to 1, levels their variables.
fn level_problem(model: &Model) -> ClassProblem {
    let mut job_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut classes: Vec<LevelClass> = Vec::new();
    let mut level_of: BTreeMap<usize, usize> = BTreeMap::new();
    let is_one = |row: &rota_solvers::Row| model.row_range(*row).lower == model.row_range(*row).upper;
    for row in model.rows().filter(is_one) {
        let levels = model.terms(row).enumerate().map(|(level, (variable, _))| {
            job_of.insert(variable.index(), classes.len());
            level_of.insert(variable.index(), level);
            Level { cpus: 0.0, memory: 0.0, throughput: -model.cost(variable) }
        });
        let levels = levels.collect();
        classes.push(LevelClass { levels, floor: 0.0, count: 1 });
    }
    let mut amounts = Vec::new();
    for row in model.rows().filter(|row| !is_one(row)) {
        let terms: Vec<(Variable, f64)> = model.terms(row).collect();
        let jobs: std::collections::BTreeSet<usize> = terms.iter().map(|(v, _)| job_of[&v.index()]).collect();
        let range = model.row_range(row);
        match (jobs.len(), terms.len()) {
            (1, 1) => {}
            (1, _) => classes[job_of[&terms[0].0.index()]].floor = -range.upper,
            _ => {
                for (variable, amount) in &terms {
                    let level = &mut classes[job_of[&variable.index()]].levels[level_of[&variable.index()]];
                    *(if amounts.is_empty() { &mut level.cpus } else { &mut level.memory }) = *amount;
                }
                amounts.push(range.upper);
            }
        }
    }
    ClassProblem { cpus: amounts[0], memory: amounts[1], classes }
}

#[test]
fn the_level_model_reaches_the_optimum_of_every_golden_model() {
    let carried = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/milp/synergy");
    let mut cases = index(&carried, "mps_objective");
    if let Some(folder) = need::shared_path("golden/milp/synergy") {
        cases.extend(index(&folder, "mps_objective"));
    }
    let is_phase_1 = |path: &Path| path.to_string_lossy().ends_with("_p1_ilp.mps.gz");
    let mut n_cases = 0;
    for (path, expected) in cases.iter().filter(|(path, _)| is_phase_1(path)) {
        let problem = level_problem(&read_model(path).expect("a model"));
        let said = ask("level-model", &level_text(&problem), false);
        check_objective(&path.display().to_string(), said.objective, -expected);
        n_cases += 1;
    }
    assert!(n_cases >= 1, "{n_cases}");
}

/// Every way to give the jobs of a class its levels: how many at each.
fn ways(n_levels: usize, count: u32) -> Vec<Vec<u32>> {
    if n_levels == 1 {
        return vec![vec![count]];
    }
    let with = |first: u32| {
        ways(n_levels - 1, count - first).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..=count).flat_map(with).collect()
}

/// The best throughput and the ways that reach it, by trying all.
fn best_ways(problem: &ClassProblem) -> (f64, Vec<Vec<Vec<u32>>>) {
    let mut all: Vec<Vec<Vec<u32>>> = vec![Vec::new()];
    for class in &problem.classes {
        let own = ways(class.levels.len(), class.count);
        all = all
            .iter()
            .flat_map(|so_far| own.iter().map(|way| [so_far.clone(), vec![way.clone()]].concat()))
            .collect();
    }
    let total = |way: &Vec<Vec<u32>>, value: fn(&Level) -> f64| -> f64 {
        let of_class = |(class, counts): (&LevelClass, &Vec<u32>)| -> f64 {
            class.levels.iter().zip(counts).map(|(level, count)| f64::from(*count) * value(level)).sum()
        };
        problem.classes.iter().zip(way).map(of_class).sum()
    };
    let is_allowed = |way: &Vec<Vec<u32>>| {
        let reaches_floor = problem.classes.iter().zip(way).all(|(class, counts)| {
            class
                .levels
                .iter()
                .zip(counts)
                .all(|(level, count)| *count == 0 || level.throughput >= class.floor)
        });
        reaches_floor && total(way, |l| l.cpus) <= problem.cpus && total(way, |l| l.memory) <= problem.memory
    };
    let mut best = (f64::NEG_INFINITY, Vec::new());
    for way in all.into_iter().filter(is_allowed) {
        let throughput = total(&way, |l| l.throughput);
        if throughput > best.0 + 1e-9 {
            best = (throughput, vec![way]);
        } else if throughput > best.0 - 1e-9 {
            best.1.push(way);
        }
    }
    best
}

#[test]
fn the_level_model_chooses_as_trying_everything_and_the_native_one_do() {
    let mut n_unique = 0;
    for seed in 0..120_u64 {
        let mut random = StdRng::seed_from_u64(seed);
        let classes = (0..random.random_range(1..=3)).map(|_| {
            // More of everything is faster: no level is beaten by another, so that columns are levels.
            let levels = (1..=random.random_range(1..=4)).map(|n| Level {
                cpus: f64::from(n * 2),
                memory: f64::from(n * 20),
                throughput: f64::from(n) + f64::from(random.random_range(0..9)) / 10.0,
            });
            LevelClass { levels: levels.collect(), floor: 1.0, count: random.random_range(1..=3) }
        });
        let classes: Vec<LevelClass> = classes.collect();
        let cpus = f64::from(random.random_range(10..=40));
        let problem = ClassProblem { cpus, memory: cpus * 12.0, classes };
        let said = ask("level-model", &level_text(&problem), true);
        let built = problem.model().expect("a model");
        let native = Highs.solve(&built.model, &rota_solvers::Limits::default(), Start::Cold);
        let (best, ways) = best_ways(&problem);
        if ways.is_empty() {
            assert!(said.objective.is_none() && native.objective.is_none(), "seed {seed}");
            continue;
        }
        let title = format!("seed {seed}: {problem:?}");
        check_objective(&title, said.objective, best);
        check_objective(&title, native.objective, best);
        if let [way] = ways.as_slice() {
            let n_levels = problem.classes.iter().map(|class| class.levels.len()).max().unwrap_or(0);
            let row = |counts: &Vec<u32>| {
                let padded = counts.iter().copied().chain(std::iter::repeat(0)).take(n_levels);
                padded.map(|count| count.to_string()).collect::<Vec<_>>().join(" ")
            };
            assert_eq!(said.rows, way.iter().map(row).collect::<Vec<_>>(), "{title}");
            n_unique += 1;
        }
    }
    assert!(n_unique > 50, "{n_unique} of 120 have one best choice");
}

/// What a policy with one part's text changed does in the first rounds of a small world.
fn edited(policy: &str, part: &str, (old, new): (&str, &str), world: &str) -> Result<Vec<String>, String> {
    let mut sources = ScriptPolicy::sources_of(policy).unwrap_or_else(|error| panic!("{error}"));
    let own = sources.iter_mut().find(|source| source.name == part).expect("a part");
    assert_eq!(own.text.matches(old).count(), 1, "{part} has `{old}` once");
    own.text = own.text.replace(old, new);
    let mut policy =
        ScriptPolicy::from_sources(policy, &sources, Limits::default()).map_err(|error| error.to_string())?;
    let scenarios = parse(&format!("scenario: edited\n{world}policy fifo\n----\n"));
    Ok(run(&scenarios.unwrap_or_else(|error| panic!("{error}"))[0], &mut policy).actual)
}

const HUNGRY: &str = "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB
job hungry cpus=1:0.4,3:1,8:2.4
job other cpus=1:0.4,3:1,8:1.5
";

#[test]
fn the_objective_of_the_level_model_is_a_line_of_its_script() {
    let first = |edit: (&str, &str)| {
        edited("fifo+opt+level-model", "level-model", edit, HUNGRY).expect("a policy")[0].clone()
    };
    let objective = "m.maximize(sum(at * problem.throughput));";
    let said = first((objective, objective));
    assert!(said.starts_with("0: hungry 0[0] 8c 10g, other 0[1] 3c 10g |"), "{said}");
    assert!(said.contains("levels of models/level-model.rhai"), "{said}");
    let frugal = "m.minimize(sum(at * problem.cpus) + sum(at * problem.memory));";
    let said = first((objective, frugal));
    assert!(said.starts_with("0: hungry 0[0] 3c 10g, other 0[1] 3c 10g |"), "{said}");
}

const LEASES: &str = "cluster 1 nodes, 8 gpus, 16 cpus, 64 GB
job strict gpus=8 work=1500 deadline=9000
job long gpus=4 work=30000
round 20m
rounds 3
";

#[test]
fn the_objective_of_the_lease_model_is_a_line_of_its_script() {
    let second = |edit: (&str, &str)| {
        edited("chronus+lease-model", "lease-model", edit, LEASES).expect("a policy")[1].clone()
    };
    let same = "\"maximize\" => 1.0";
    let said = second((same, same));
    assert!(
        said.starts_with("1200: strict 0[0-7]") && said.contains("plan of models/lease-model.rhai"),
        "{said}"
    );
    let said = second((same, "\"maximize\" => -1.0"));
    assert!(said.starts_with("1200: long 0[0-3]") && said.contains("waits strict"), "{said}");
}

#[test]
fn an_answer_that_is_no_plan_is_an_error_of_the_model() {
    let refused = |policy: &str, part: &str, edit: (&str, &str), world: &str| {
        edited(policy, part, edit, world).expect("a policy").join("\n")
    };
    let leases = |new: &str| {
        refused(
            "chronus+lease-model",
            "lease-model",
            ("if answer.is_solved { answer.value(runs) }", new),
            LEASES,
        )
    };
    let said = leases("answer.value(runs) * 0");
    assert!(
        said.contains("models/lease-model.rhai") && said.contains("the plan does not hold: row one_0"),
        "{said}"
    );
    let said = leases("7");
    assert!(said.contains("lease_model must return a Matrix or (), got a whole number"), "{said}");
    let said = leases("matrix([[1]])");
    assert!(said.contains("returned a matrix of 1 entries x 1, there are 1 rows x"), "{said}");
    let said = leases("()");
    assert!(said.contains("FELL BACK to the packed plan, models/lease-model.rhai gave none"), "{said}");
    let levels = |new: &str| {
        let old = "if answer.is_solved { answer.value(at) }";
        refused("fifo+opt+level-model", "level-model", (old, new), HUNGRY)
    };
    let said = levels("answer.value(at) * 2");
    assert!(said.contains("levels for 2 jobs of kind 0, there are 1"), "{said}");
    let said = levels("answer.value(at) * 0.5");
    assert!(said.contains("0.5 jobs of kind 0 at level"), "{said}");
    let said = levels("problem.cpuss");
    assert!(said.contains("LevelProblem has no field `cpuss`"), "{said}");
    let said = levels("()");
    assert!(said.contains("NO LEVELS of models/level-model.rhai"), "{said}");
}

#[test]
fn a_model_that_never_ends_is_stopped_and_named() {
    let endless = ("let m = milp();", "let m = milp(); loop { problem.gpus; }");
    let said = edited("chronus+lease-model", "lease-model", endless, LEASES).expect("a policy").join("\n");
    assert!(said.contains("used more than 10000000 operations"), "{said}");
    assert!(said.contains("lease-model.rhai"), "{said}");
}

#[test]
fn a_model_that_no_part_asks_for_is_refused() {
    let why = |name: &str| ScriptPolicy::load(name, Limits::default()).err().map(|error| error.to_string());
    assert_eq!(
        why("las+tune+lease-model").as_deref(),
        Some(
            "models/lease-model.rhai: `lease_model` is never asked for: only `term` of Leases does, and no part of this policy \
             calls it"
        )
    );
    assert_eq!(why("srtf+opt+level-model"), None);
    assert_eq!(why("lease-model"), None, "by itself it is joined to chronus");
}
