//! Models written in a script: `let m = milp(); let x = m.binary("x", jobs); m.add(sum(x * jobs.gpus) <= 8);`.
//!
//! A script holds a handle; variables, expressions and constraints know the model they belong to. What a model
//! takes counts as column memory, and building it as operations. Sets are in `shape`, expressions in `linear`, numbers
//! over two sets in `matrix`, answers in `answer`.

pub(crate) mod answer;
pub(crate) mod linear;
pub(crate) mod matrix;
pub(crate) mod matrix_arithmetic;
pub(crate) mod operators;
pub(crate) mod pairs;
pub(crate) mod shape;
pub(crate) mod sides;
pub(crate) mod starts;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhai::{Dynamic, ImmutableString, Map, NativeCallContext};
use rota_solvers::{Kind, Limits, Model, ModelError, Sense, Start, write_lp};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, Shared, fail};
use crate::policy::solving;
use crate::values::{number, type_label};
use answer::MilpAnswer;
use linear::{Constraint, Linear, Relation};
use matrix::Matrix;
use shape::Shape;
use starts::{Began, Starts};

/// About how many bytes a variable or a row takes besides its terms: name, bounds, cost.
const BYTES_EACH: u64 = 128;
/// About how many bytes a term takes.
const BYTES_PER_TERM: u64 = 16;

/// A model in the making.
#[derive(Clone, Debug)]
pub(crate) struct MilpValue(pub(crate) Arc<Cell>);

/// What all handles of one model share.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) session: Arc<Session>,
    model: Mutex<Model>,
    starts: Mutex<Starts>,
    bytes: AtomicU64,
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.session.meter().free_column(self.bytes.load(Relaxed));
    }
}

/// The bounds of new variables: numbers, or one for each job.
type Bounds<'a> = (&'a Dynamic, &'a Dynamic);

impl Cell {
    /// Never held while script code runs.
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never held while script code runs, nor taken while the model is held.
    fn starts(&self) -> MutexGuard<'_, Starts> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what is about to be added.
    fn take(&self, n_items: usize, n_terms: usize) -> Outcome<()> {
        let bytes = n_items as u64 * BYTES_EACH + n_terms as u64 * BYTES_PER_TERM;
        self.take_bytes(n_items + n_terms, bytes)
    }

    fn take_bytes(&self, n_items: usize, bytes: u64) -> Outcome<()> {
        let meter = self.session.meter();
        meter.charge(n_items)?;
        meter.take_column(bytes)?;
        self.bytes.fetch_add(bytes, Relaxed);
        Ok(())
    }
}

impl MilpValue {
    fn new(session: Arc<Session>) -> Self {
        let (model, bytes) = (Mutex::new(Model::new(Sense::Maximize)), AtomicU64::new(0));
        MilpValue(Arc::new(Cell { session, model, starts: Mutex::default(), bytes }))
    }

    /// Variables over one or two sets; over a matrix, one for each pair whose number is not 0.
    fn variables_over(&self, kind: Kind, name: &str, over: &Dynamic, bounds: Bounds<'_>) -> Outcome<Linear> {
        let Some(wanted) = over.read_lock::<Matrix>() else {
            return self.variables(kind, name, Shape::from_value(over)?, bounds, |_| true);
        };
        if wanted.sides().rows.is_none() || wanted.sides().columns.is_none() {
            return fail(format!("variables over a matrix of {}: it needs rows and columns", wanted.sides()));
        }
        let shape = Shape::Pairs(wanted.sides().clone());
        self.variables(kind, name, shape, bounds, |position| wanted.values()[position] != 0.0)
    }

    fn variables(
        &self,
        kind: Kind,
        name: &str,
        shape: Shape,
        bounds: Bounds<'_>,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Outcome<Linear> {
        let low = Linear::constant(&self.0, bounds.0)?.spread(&shape)?;
        let high = Linear::constant(&self.0, bounds.1)?.spread(&shape)?;
        self.0.session.meter().charge(shape.len())?;
        self.0.take((0..shape.len()).filter(|position| is_wanted(*position)).count(), 0)?;
        let mut variables = vec![None; shape.len()];
        let mut model = self.0.model();
        for position in shape.positions_by_id().filter(|position| is_wanted(*position)) {
            let name = shape.name_of(name, position);
            let made = model.variable(&name, kind, low.number(position), high.number(position));
            variables[position] = Some(made.or_else(wrong)?);
        }
        drop(model);
        Linear::of_variables(&self.0, shape, &variables)
    }

    fn add(&self, name: Option<&str>, constraint: &Constraint) -> Outcome<()> {
        let Constraint { linear, relation } = constraint;
        self.own(linear)?;
        self.0.take(linear.shape().len(), linear.n_terms())?;
        let mut model = self.0.model();
        let name = name.map_or_else(|| format!("row{}", model.n_rows()), str::to_owned);
        for position in linear.shape().positions_by_id() {
            let side = -linear.number(position);
            let (low, high) = match relation {
                Relation::AtMost => (f64::NEG_INFINITY, side),
                Relation::AtLeast => (side, f64::INFINITY),
                Relation::Equal => (side, side),
            };
            let name = linear.shape().name_of(&name, position);
            model.row(&name, low, high, linear.terms(position).iter().copied()).or_else(wrong)?;
        }
        Ok(())
    }

    fn set_objective(&self, sense: Sense, objective: &Linear) -> Outcome<()> {
        self.own(objective)?;
        if !objective.shape().is_one() {
            let word = if sense == Sense::Maximize { "maximize" } else { "minimize" };
            return fail(format!(
                "{word}: takes one expression, got one for each of {}: write `sum(…)`",
                objective.shape()
            ));
        }
        let terms = objective.terms(0).to_vec();
        let expression = rota_solvers::Expression { terms, constant: objective.number(0) };
        self.0.session.meter().charge(objective.n_terms())?;
        self.0.model().set_objective(sense, expression).or_else(wrong)
    }

    fn own(&self, linear: &Linear) -> Outcome<()> {
        if linear.is_of(&self.0) { Ok(()) } else { fail("this expression belongs to another model") }
    }

    fn solve(&self, call: &NativeCallContext<'_>, options: &Map) -> Outcome<MilpAnswer> {
        let session = &self.0.session;
        let limits = limits(options, session)?;
        let starts = self.0.starts().clone();
        let model = self.0.model();
        let (values, began) = starts.complete(&model);
        session.meter().charge(model.n_variables() + model.n_terms())?;
        let start = if began == Began::Warm { Start::Values(&values) } else { Start::Cold };
        let solution = session.shared.solving.solver(&place(call)).solve(&model, &limits, start);
        drop(model);
        let answer = MilpAnswer::new(&self.0, solution, began);
        session.shared.note(&answer.note());
        Ok(answer)
    }

    fn text(&self) -> Outcome<ImmutableString> {
        let most = self.0.session.meter().limits().string_bytes;
        match write_lp(&self.0.model()) {
            Ok(text) if text.len() <= most => Ok(text.into()),
            Ok(text) => fail(format!("the model takes {} bytes as text, a text may have {most}", text.len())),
            Err(error) => wrong(error),
        }
    }
}

/// File and line of a call of `solve`.
fn place(call: &NativeCallContext<'_>) -> String {
    let (file, position) = (call.call_source().unwrap_or("a script"), call.call_position());
    match position.line() {
        Some(line) => format!("{file}:{line}, where a model is solved"),
        None => format!("{file}, where a model is solved"),
    }
}

fn wrong<T>(error: ModelError) -> Outcome<T> {
    fail(error.to_string())
}

fn limits(options: &Map, session: &Session) -> Outcome<Limits> {
    const KEYS: [&str; 3] = ["gap", "nodes", "seed"];
    let mut limits = solving::limits(session.meter(), 1e-4, 10_000);
    for (key, value) in options {
        let amount = match number(value) {
            Some(amount) if (0.0..=1e9).contains(&amount) => amount,
            _ => {
                return fail(format!(
                    "solve: `{key}` must be a number from 0 to 1e9, got {}",
                    type_label(value)
                ));
            }
        };
        match key.as_str() {
            "gap" => limits.gap = amount,
            "nodes" => limits.nodes = amount as u64,
            "seed" => limits.seed = amount as u32,
            other => {
                let hint =
                    nearest::hint(other, KEYS).unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
                return fail(format!("solve: `{other}` is not a limit: {hint}"));
            }
        }
    }
    Ok(limits)
}

pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    const OWNER: &str = "Milp";
    registrar.class::<MilpValue>(OWNER, "A model to be optimised: variables, rows, one objective.");
    let shared = Arc::clone(shared);
    registrar
        .function("milp() -> Milp", "An empty model.")
        .register_fn("milp", move || shared.session().map(MilpValue::new));
    variables(registrar);
    let engine = registrar.method(
        OWNER,
        "add(constraint)",
        "A row, or one for each job or pair: `m.add(sum(x * jobs.gpus) <= 8)`. A name may come first: `m.add(\"gpus\", …)`.",
    );
    engine.register_fn("add", |m: MilpValue, constraint: Constraint| m.add(None, &constraint));
    engine.register_fn("add", |m: MilpValue, name: ImmutableString, constraint: Constraint| {
        m.add(Some(&name), &constraint)
    });
    engine.register_fn("add", |_: MilpValue, other: Dynamic| -> Outcome<()> {
        fail(format!("add: takes a constraint such as `sum(x) <= 8`, got {}", type_label(&other)))
    });
    let engine = registrar.method(OWNER, "maximize(expression)", "Sets the objective: as large as possible.");
    engine.register_fn("maximize", |m: MilpValue, goal: Linear| m.set_objective(Sense::Maximize, &goal));
    let engine = registrar.method(OWNER, "minimize(expression)", "Sets the objective: as small as possible.");
    engine.register_fn("minimize", |m: MilpValue, goal: Linear| m.set_objective(Sense::Minimize, &goal));
    let engine = registrar.method(
        OWNER,
        "solve(limits: Map) -> Answer",
        "Solves. Limits: `gap` (relative, 0.0001 by default), `nodes` (10000), `seed`.",
    );
    engine.register_fn("solve", |ctx: NativeCallContext, m: MilpValue| m.solve(&ctx, &Map::new()));
    engine.register_fn("solve", |ctx: NativeCallContext, m: MilpValue, limits: Map| m.solve(&ctx, &limits));
    registrar
        .method(OWNER, "text() -> String", "The model as LP text, to look at.")
        .register_fn("text", |m: MilpValue| m.text());
    registrar.unknown_field::<MilpValue>(OWNER);
}

fn variables(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Milp";
    let (zero, one) = (Dynamic::from(0.0), Dynamic::from(1.0));
    let endless = Dynamic::from(f64::INFINITY);
    let engine = registrar.method(
        OWNER,
        "binary(name, over) -> Linear",
        "Variables that are 0 or 1: one for each job of a set, or so many; over two sets, `[jobs, 20]`, one for each pair; over a \
         matrix, one for each pair whose number is not 0, and nothing for the others. Without `over`, a single one.",
    );
    let bounds = (zero.clone(), one.clone());
    engine.register_fn("binary", move |m: MilpValue, name: ImmutableString| {
        m.variables(Kind::Integer, &name, Shape::One, (&bounds.0, &bounds.1), |_| true)
    });
    let bounds = (zero.clone(), one);
    engine.register_fn("binary", move |m: MilpValue, name: ImmutableString, over: Dynamic| {
        m.variables_over(Kind::Integer, &name, &over, (&bounds.0, &bounds.1))
    });
    for (verb, kind, what) in
        [("integer", Kind::Integer, "whole numbers"), ("real", Kind::Continuous, "any numbers")]
    {
        let engine = registrar.method(
            OWNER,
            &format!("{verb}(name, over, low, high) -> Linear"),
            &format!("Variables that are {what} between two bounds, from 0 to infinity when none are given; bounds may be columns, arrays or matrices. `over` is as for `binary`; without it, a single one."),
        );
        let bounds = (zero.clone(), endless.clone());
        engine.register_fn(verb, move |m: MilpValue, name: ImmutableString| {
            m.variables(kind, &name, Shape::One, (&bounds.0, &bounds.1), |_| true)
        });
        let bounds = (zero.clone(), endless.clone());
        engine.register_fn(verb, move |m: MilpValue, name: ImmutableString, over: Dynamic| {
            m.variables_over(kind, &name, &over, (&bounds.0, &bounds.1))
        });
        engine.register_fn(verb, move |m: MilpValue, name: ImmutableString, low: Dynamic, high: Dynamic| {
            m.variables(kind, &name, Shape::One, (&low, &high), |_| true)
        });
        engine.register_fn(
            verb,
            move |m: MilpValue, name: ImmutableString, over: Dynamic, low: Dynamic, high: Dynamic| {
                m.variables_over(kind, &name, &over, (&low, &high))
            },
        );
    }
}
