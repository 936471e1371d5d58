//! The problem that a script's level model is given, and its answer: which CPU and memory levels jobs get.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine};
use rota_solvers::Limits;
use rota_solvers::synergy_opt::{ClassProblem, Level, LevelClass, Offered, relaxed};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::models::optimum::ChosenLevels;
use crate::policy::asking::AskedModel;
use crate::values::milp::matrix::Matrix;
use crate::values::milp::shape::{Set, Sides};
use crate::values::type_label;

/// For each class its levels in use and how many jobs run at each.
type Counts = Vec<Vec<(usize, u32)>>;

/// Kinds of jobs, and the levels worth offering to them.
#[derive(Clone, Debug)]
pub(crate) struct LevelProblem(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    session: Arc<Session>,
    problem: ClassProblem,
    /// For each class the levels that no other beats.
    offered: Vec<Vec<usize>>,
    limits: Limits,
}

/// Asks a model for the levels of a problem.
pub(crate) fn ask(
    session: &Arc<Session>,
    engine: &Engine,
    model: &AskedModel,
    problem: &ClassProblem,
    limits: &Limits,
) -> Outcome<ChosenLevels> {
    let offered: Vec<Vec<usize>> = problem.classes.iter().map(LevelClass::worth_offering).collect();
    let inner =
        Inner { session: Arc::clone(session), problem: problem.clone(), offered, limits: limits.clone() };
    let asked = LevelProblem(Arc::new(inner));
    let answer = session.shared.ask(engine, model, Dynamic::from(asked.clone()))?;
    let counts = asked.read(&answer).map_err(|error| model.blame(error))?;
    let classes = problem.classes.iter();
    let offered: Vec<Offered<'_>> =
        classes.map(|class| Offered { levels: &class.levels, count: class.count }).collect();
    let bound = relaxed(problem.cpus, problem.memory, &offered).bound;
    let status = match counts {
        Some(_) => format!("levels of {}", model.file()),
        None => format!("NO LEVELS of {}", model.file()),
    };
    Ok(ChosenLevels { counts, bound: bound.is_finite().then_some(bound), status })
}

impl LevelProblem {
    fn n_levels(&self) -> usize {
        self.0.offered.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// A number for each class and each of its levels; 0 where a class has no such level.
    fn matrix(&self, value: impl Fn(&Level) -> f64) -> Outcome<Matrix> {
        self.pairs(|class, level| {
            level.map_or(0.0, |level| value(&self.0.problem.classes[class].levels[level]))
        })
    }

    fn pairs(&self, value: impl Fn(usize, Option<usize>) -> f64) -> Outcome<Matrix> {
        let (n_rows, n_levels) = (self.0.offered.len(), self.n_levels());
        let sides = Sides { rows: Some(Set::Count(n_rows)), columns: Some(n_levels) };
        let at = |position: usize| {
            let (class, place) = (position / n_levels, position % n_levels);
            value(class, self.0.offered[class].get(place).copied())
        };
        Matrix::compute(&self.0.session, sides, (0..n_rows * n_levels).map(at))
    }

    fn each(&self, value: impl Fn(&LevelClass) -> f64) -> Outcome<Array> {
        self.0.session.meter().charge(self.0.problem.classes.len())?;
        Ok(self.0.problem.classes.iter().map(|class| Dynamic::from(value(class))).collect())
    }

    /// Everybody at the proportional share, which is the first level; nothing if another one beats it.
    fn start(&self) -> Outcome<Dynamic> {
        let classes = &self.0.problem.classes;
        let is_there = self.0.offered.iter().zip(classes).all(|(offered, class)| {
            offered.contains(&0) && class.levels.first().is_some_and(|level| level.throughput >= class.floor)
        });
        if !is_there {
            return Ok(Dynamic::UNIT);
        }
        let count =
            |class: usize, level| if level == Some(0) { f64::from(classes[class].count) } else { 0.0 };
        self.pairs(count).map(Dynamic::from)
    }

    /// How many jobs of each class have which level, from what a model returned.
    fn read(&self, answer: &Dynamic) -> Outcome<Option<Counts>> {
        if answer.is_unit() {
            return Ok(None);
        }
        let Some(answer) = answer.read_lock::<Matrix>() else {
            return fail(format!("level_model must return a Matrix or (), got {}", type_label(answer)));
        };
        let (n_rows, n_levels) = (self.0.offered.len(), self.n_levels());
        if (answer.sides().n_rows(), answer.sides().n_columns()) != (n_rows, n_levels) {
            let sides = answer.sides();
            return fail(format!(
                "level_model returned a matrix of {sides}, there are {n_rows} kinds of jobs x {n_levels} levels"
            ));
        }
        let mut counts = Vec::with_capacity(n_rows);
        for (row, (offered, class)) in self.0.offered.iter().zip(&self.0.problem.classes).enumerate() {
            let mut of_class = Vec::new();
            for (place, &value) in answer.row_values(row).iter().enumerate() {
                let count = value.round();
                if (value - count).abs() > 1e-6 || !(0.0..=1e9).contains(&count) {
                    return fail(format!("level_model: {value} jobs of kind {row} at level {place}"));
                }
                match offered.get(place) {
                    Some(&level) if count > 0.0 => of_class.push((level, count as u32)),
                    None if count > 0.0 => {
                        return fail(format!("level_model: kind {row} has no level {place}"));
                    }
                    _ => {}
                }
            }
            let n_jobs: u64 = of_class.iter().map(|(_, count)| u64::from(*count)).sum();
            if n_jobs != u64::from(class.count) {
                return fail(format!(
                    "level_model: levels for {n_jobs} jobs of kind {row}, there are {}",
                    class.count
                ));
            }
            counts.push(of_class);
        }
        Ok(Some(counts))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "LevelProblem";
    registrar.class::<LevelProblem>(
        OWNER,
        "What `fn level_model(problem)` is asked: how many jobs of each kind (same model, batch and GPUs) run at which CPU and \
         memory level. Rows are kinds, columns levels that no other level of the kind beats; a kind with fewer levels has 0 in the \
         columns behind them. The answer is a Matrix with the number of jobs at each, or `()` for proportional shares.",
    );
    type Numbers = (&'static str, &'static str, fn(&Level) -> f64);
    let matrices: [Numbers; 4] = [
        ("exists", "1 where the kind has that level, else 0.", |_| 1.0),
        ("cpus", "CPUs of one job at each level.", |level| level.cpus),
        ("memory", "Memory of one job at each level, GB.", |level| level.memory),
        ("throughput", "How fast a job is at each level, relative to its proportional share.", |level| {
            level.throughput
        }),
    ];
    for (name, doc, value) in matrices {
        let engine = registrar.field(OWNER, format!("{name}: Matrix"), doc);
        engine.register_get(name, move |problem: &mut LevelProblem| problem.matrix(value));
    }
    registrar
        .field(OWNER, "count: Array", "How many jobs of each kind.")
        .register_get("count", |problem: &mut LevelProblem| problem.each(|class| f64::from(class.count)));
    registrar
        .field(OWNER, "floor: Array", "The throughput below which no job of the kind may fall.")
        .register_get("floor", |problem: &mut LevelProblem| problem.each(|class| class.floor));
    let engine = registrar.field(
        OWNER,
        "start: Matrix",
        "All jobs at their proportional shares, for `m.start`; `()` where that level is not offered.",
    );
    engine.register_get("start", |problem: &mut LevelProblem| problem.start());
    type Number = (&'static str, &'static str, fn(&Inner) -> f64);
    let numbers: [Number; 3] = [
        ("cluster_cpus", "CPUs of all nodes of the GPU type.", |inner| inner.problem.cpus),
        ("cluster_memory", "Memory of all nodes of the GPU type, GB.", |inner| inner.problem.memory),
        ("gap", "The `gap` that `optimum` was called with, for `m.solve`.", |inner| inner.limits.gap),
    ];
    for (name, doc, value) in numbers {
        let engine = registrar.field(OWNER, format!("{name}: float"), doc);
        engine.register_get(name, move |problem: &mut LevelProblem| value(&problem.0));
    }
    registrar
        .field(OWNER, "nodes: int", "The `nodes` that `optimum` was called with, for `m.solve`.")
        .register_get("nodes", |problem: &mut LevelProblem| problem.0.limits.nodes as i64);
    registrar.unknown_field::<LevelProblem>(OWNER);
}
