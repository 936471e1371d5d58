//! The problem that a script's lease model is given, and its answer: which step of its deadline each job is held to, and in
//! which leases it runs.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, ImmutableString};
use rota_solvers::chronus_leases::{LeaseGoal, LeasePlan, LeaseProblem, LeaseRow, Shelf, Unsettled, greedy};
use rota_solvers::{Limits, SolveStatus, check};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::models::leases::Found;
use crate::policy::asking::AskedModel;
use crate::values::milp::matrix::Matrix;
use crate::values::milp::shape::{Set, Sides};
use crate::values::type_label;

/// Promised jobs at the steps of their deadlines, and the leases to come.
#[derive(Clone, Debug)]
pub(crate) struct LeaseProblemValue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    session: Arc<Session>,
    problem: LeaseProblem,
    start: Option<LeasePlan>,
    limits: Limits,
}

/// Asks a model for the plan of a problem. Without an answer the plan is the one that is known, or a packed one.
pub(crate) fn ask(
    session: &Arc<Session>,
    engine: &Engine,
    model: &AskedModel,
    problem: &LeaseProblem,
    known: Option<LeasePlan>,
    limits: &Limits,
) -> Outcome<Result<Found, Unsettled>> {
    let packed = || greedy(&problem.rows, Shelf::new(problem.capacity.clone()));
    let start = known.filter(|plan| problem.holds(plan)).map_or_else(packed, Ok);
    let found = |plan: LeasePlan, how: String| Found {
        objective: problem.objective(&plan),
        bound: problem.bound(),
        plan,
        how,
    };
    if problem.rows.is_empty() {
        let nothing = LeasePlan { chosen: Vec::new(), leases: Vec::new() };
        return Ok(Ok(found(nothing, "nothing promised".to_owned())));
    }
    let asked = LeaseProblemValue(Arc::new(Inner {
        session: Arc::clone(session),
        problem: problem.clone(),
        start: start.as_ref().ok().cloned(),
        limits: limits.clone(),
    }));
    let answer = session.shared.ask(engine, model, Dynamic::from(asked.clone()))?;
    let plan = asked.read(&answer).map_err(|error| model.blame(error))?;
    Ok(match (plan, start) {
        (Some(plan), _) => Ok(found(plan, format!("plan of {}", model.file()))),
        (None, Ok(plan)) => {
            Ok(found(plan, format!("FELL BACK to the packed plan, {} gave none", model.file())))
        }
        (None, Err(row)) => Err(Unsettled::NoPlan { row, status: SolveStatus::LimitWithout }),
    })
}

impl LeaseProblemValue {
    fn rows(&self) -> &[LeaseRow] {
        &self.0.problem.rows
    }

    fn each(&self, value: impl Fn(&LeaseRow) -> f64) -> Outcome<Array> {
        self.0.session.meter().charge(self.rows().len())?;
        Ok(self.rows().iter().map(|row| Dynamic::from(value(row))).collect())
    }

    /// The job of each row, counted from 0: its rows are adjacent, and the first has level 0.
    fn jobs(&self) -> Outcome<Array> {
        self.0.session.meter().charge(self.rows().len())?;
        let mut n_jobs = 0;
        let jobs = self.rows().iter().map(|row| {
            n_jobs += i64::from(row.level == 0);
            Dynamic::from(n_jobs - 1)
        });
        Ok(jobs.collect())
    }

    fn start(&self) -> Outcome<Dynamic> {
        let Some(plan) = &self.0.start else { return Ok(Dynamic::UNIT) };
        let n_leases = self.0.problem.n_leases();
        let sides = Sides { rows: Some(Set::Count(self.rows().len())), columns: Some(n_leases) };
        let runs = |row: &Vec<bool>, lease: usize| f64::from(u8::from(row.get(lease) == Some(&true)));
        let values = plan.leases.iter().flat_map(|row| (0..n_leases).map(move |lease| runs(row, lease)));
        Matrix::compute(&self.0.session, sides, values).map(Dynamic::from)
    }

    fn start_holds(&self) -> Outcome<Dynamic> {
        let Some(plan) = &self.0.start else { return Ok(Dynamic::UNIT) };
        self.0.session.meter().charge(self.rows().len())?;
        let held = plan.chosen.iter().map(|chosen| Dynamic::from(f64::from(u8::from(*chosen))));
        Ok(Dynamic::from_array(held.collect()))
    }

    /// The plan that a model returned: a row that runs is the step its job is held to.
    fn read(&self, answer: &Dynamic) -> Outcome<Option<LeasePlan>> {
        if answer.is_unit() {
            return Ok(None);
        }
        let Some(answer) = answer.read_lock::<Matrix>() else {
            return fail(format!("lease_model must return a Matrix or (), got {}", type_label(answer)));
        };
        let (n_rows, n_leases) = (self.rows().len(), self.0.problem.n_leases());
        if (answer.sides().n_rows(), answer.sides().n_columns()) != (n_rows, n_leases) {
            let sides = answer.sides();
            return fail(format!(
                "lease_model returned a matrix of {sides}, there are {n_rows} rows x {n_leases} leases"
            ));
        }
        let leases: Vec<Vec<bool>> = (0..n_rows)
            .map(|row| answer.row_values(row).iter().map(|value| *value > 0.5).collect())
            .collect();
        let chosen = leases.iter().map(|row: &Vec<bool>| row.contains(&true)).collect();
        let plan = LeasePlan { chosen, leases };
        let problem = &self.0.problem;
        if problem.holds(&plan) {
            return Ok(Some(plan));
        }
        let why = problem.model().ok().and_then(|built| {
            let Some(values) = built.encode(&plan) else {
                return Some("a row runs after its deadline".to_owned());
            };
            check(&built.model, &values).err().map(|violation| violation.to_string())
        });
        fail(format!("lease_model: the plan does not hold: {}", why.unwrap_or_default()))
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "LeaseProblem";
    registrar.class::<LeaseProblemValue>(
        OWNER,
        "What `fn lease_model(problem)` is asked: in which leases promised jobs run. A row is a job at one step of its deadline, \
         and the rows of a job are adjacent; columns are leases, the first begins now. Exactly one row of each job must have as \
         many leases as it needs, before its horizon, and the others none. The answer is a Matrix of rows and leases with 1 where \
         a job runs, or `()` for the packed plan.",
    );
    type Numbers = (&'static str, &'static str, fn(&LeaseRow) -> f64);
    let arrays: [Numbers; 4] = [
        ("gpus", "GPUs of each row's job.", |row| f64::from(row.gpus)),
        ("need", "Leases that it still needs.", |row| f64::from(row.need)),
        ("horizon", "Whole leases before that step of its deadline.", |row| row.horizon as f64),
        ("value", "What meeting that step is worth.", |row| row.value),
    ];
    for (name, doc, value) in arrays {
        let engine = registrar.field(OWNER, format!("{name}: Array"), doc);
        engine.register_get(name, move |problem: &mut LeaseProblemValue| problem.each(value));
    }
    registrar
        .field(
            OWNER,
            "job: Array",
            "The job of each row, counted from 0: rows of the same job have the same number.",
        )
        .register_get("job", |problem: &mut LeaseProblemValue| problem.jobs());
    registrar.field(OWNER, "capacity: Array", "GPUs of each lease.").register_get(
        "capacity",
        |problem: &mut LeaseProblemValue| -> Outcome<Array> {
            let Inner { problem, session, .. } = &*problem.0;
            session.meter().charge(problem.n_leases())?;
            Ok(problem.capacity.iter().take(problem.n_leases()).map(|gpus| Dynamic::from(*gpus)).collect())
        },
    );
    registrar.field(OWNER, "most_gpus: float", "GPUs of the largest lease, at least 1.").register_get(
        "most_gpus",
        |problem: &mut LeaseProblemValue| {
            problem.0.problem.capacity.iter().copied().max().unwrap_or(0).max(1) as f64
        },
    );
    registrar
        .field(OWNER, "n_rows: int", "How many rows.")
        .register_get("n_rows", |problem: &mut LeaseProblemValue| problem.rows().len() as i64);
    registrar
        .field(OWNER, "n_leases: int", "How many leases.")
        .register_get("n_leases", |problem: &mut LeaseProblemValue| problem.0.problem.n_leases() as i64);
    let engine = registrar.field(
        OWNER,
        "goal: String",
        "What `term` was called with: `minimize` or `maximize` the GPUs of the first lease, or `random`.",
    );
    engine.register_get("goal", |problem: &mut LeaseProblemValue| {
        ImmutableString::from(match problem.0.problem.goal {
            LeaseGoal::Minimize => "minimize",
            LeaseGoal::Maximize => "maximize",
            LeaseGoal::Random => "random",
        })
    });
    starts(registrar);
    registrar.unknown_field::<LeaseProblemValue>(OWNER);
}

fn starts(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "LeaseProblem";
    let engine = registrar.field(
        OWNER,
        "start: Matrix",
        "The plan that is known already, for `m.start`: 1 where a row runs; `()` where none is known.",
    );
    engine.register_get("start", |problem: &mut LeaseProblemValue| problem.start());
    let engine = registrar.field(
        OWNER,
        "start_holds: Array",
        "1 for the rows that this plan holds their jobs to, else 0; `()` where none is known.",
    );
    engine.register_get("start_holds", |problem: &mut LeaseProblemValue| problem.start_holds());
    registrar
        .field(OWNER, "gap: float", "The `gap` that `term` was called with, for `m.solve`.")
        .register_get("gap", |problem: &mut LeaseProblemValue| problem.0.limits.gap);
    registrar
        .field(OWNER, "nodes: int", "The `nodes` that `term` was called with, for `m.solve`.")
        .register_get("nodes", |problem: &mut LeaseProblemValue| problem.0.limits.nodes as i64);
}
