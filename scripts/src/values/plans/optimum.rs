//! The optimum of a round, for scripts: `view.optimum(view.queue)`.

use rhai::{Dynamic, Engine, Map, NativeCallContext};
use rota_solvers::Solver;
use rota_solvers::synergy_opt::ClassProblem;

use crate::language::limits::Meter;
use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::models::optimum::{
    ChosenLevels, Formulation, Method, Optimum, OptimumSettings, optimum, optimum_by,
};
use crate::policy::part::Stage;
use crate::policy::solving;
use crate::values::plans::level_problem;
use crate::values::{PlanValue, Queue, View, number, type_label};

/// The optimum of a round with its plan.
#[derive(Clone, Debug)]
pub(crate) struct OptimumValue {
    found: Optimum,
    plan: PlanValue,
}

impl View {
    fn optimum(&self, engine: &Engine, queue: Dynamic, options: &Map) -> Outcome<OptimumValue> {
        let session = &self.0;
        let settings = settings(options, session.meter())?;
        let queue = Queue::from_value(session, queue)?;
        session.meter().charge(queue.rows.len() + session.snapshot.cluster.nodes().len())?;
        let mut room = session.take_room();
        let mut solver = solving::OneByOne(&session.shared.solving);
        let mut refused = None;
        let found = match session.shared.model(Stage::LevelModel) {
            None => optimum(&session.snapshot, &queue.rows, &mut room, &mut solver, &settings),
            Some(model) => {
                let mut choose = |problem: &ClassProblem, _: &mut dyn Solver| {
                    let chosen = level_problem::ask(session, engine, &model, problem, &settings.limits);
                    // The plan that goes on with proportional shares is thrown away with the error.
                    Ok(chosen.unwrap_or_else(|error| {
                        refused = Some(error);
                        ChosenLevels { counts: None, bound: None, status: String::new() }
                    }))
                };
                optimum_by(&session.snapshot, &queue.rows, &mut room, &mut solver, &settings, &mut choose)
            }
        };
        session.give_room(room);
        if let Some(error) = refused {
            return Err(error);
        }
        let mut found = match found {
            Ok(found) => found,
            Err(error) => return fail(format!("optimum: {error}")),
        };
        session.shared.note(&found.note());
        let plan = PlanValue::of(session, std::mem::take(&mut found.granted));
        Ok(OptimumValue { found, plan })
    }
}

fn settings(options: &Map, meter: &Meter) -> Outcome<OptimumSettings> {
    const KEYS: [&str; 5] = ["gap", "nodes", "model", "placement", "exact_spots"];
    let mut settings = OptimumSettings::default();
    settings.limits = solving::limits(meter, settings.limits.gap, settings.limits.nodes);
    for (key, value) in options {
        let amount = || match number(value) {
            Some(amount) if (0.0..=1e9).contains(&amount) => Ok(amount),
            _ => fail(format!("optimum: `{key}` must be a number from 0 to 1e9, got {value}")),
        };
        match key.as_str() {
            "gap" => settings.limits.gap = amount()?,
            "nodes" => settings.limits.nodes = amount()? as u64,
            "exact_spots" => settings.exact_spots = amount()? as usize,
            "placement" => settings.method = method(value)?,
            "model" => settings.formulation = formulation(value)?,
            other => {
                let hint =
                    nearest::hint(other, KEYS).unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
                return fail(format!("optimum: `{other}` is not an option: {hint}"));
            }
        }
    }
    Ok(settings)
}

fn method(value: &Dynamic) -> Outcome<Method> {
    let word = value.clone().into_immutable_string().ok();
    match word.as_deref() {
        Some("pack") => Ok(Method::Pack),
        Some("round") => Ok(Method::Round),
        Some("exact") => Ok(Method::Exact),
        Some(word) => {
            fail(format!("optimum: placement knows \"pack\", \"round\", \"exact\", not \"{word}\""))
        }
        None => fail(format!("optimum: placement must be a word, got {}", type_label(value))),
    }
}

fn formulation(value: &Dynamic) -> Outcome<Formulation> {
    match value.clone().into_immutable_string().ok().as_deref() {
        Some("two_phases") => Ok(Formulation::TwoPhases),
        Some("joint") => Ok(Formulation::Joint),
        _ => fail(format!("optimum: model knows \"two_phases\" and \"joint\", not {value}")),
    }
}

/// A field: its name, its meaning, how it is read.
type Number = (&'static str, &'static str, fn(&Optimum) -> f64);

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "View",
        "optimum(queue: Queue, options: Map) -> Optimum",
        "The CPU and memory levels with most throughput for the jobs of a queue whose GPUs fit together, and GPUs \
         for them. Options: `gap` and `nodes` limit each solve, `placement` (`\"pack\"`, `\"round\"`, `\"exact\"`) says \
         what is tried when packing leaves jobs out, `model` (`\"two_phases\"`, `\"joint\"`) whether levels and places are \
         chosen in one model, `exact_spots` up to which size (jobs times nodes) places and joint models are solved. A part of \
         the policy that defines `fn level_model(problem)` chooses the levels.",
    );
    engine.register_fn("optimum", |ctx: NativeCallContext, view: View, queue: Dynamic| {
        view.optimum(ctx.engine(), queue, &Map::new())
    });
    engine.register_fn("optimum", |ctx: NativeCallContext, view: View, queue: Dynamic, options: Map| {
        view.optimum(ctx.engine(), queue, &options)
    });
    const OWNER: &str = "Optimum";
    registrar
        .class::<OptimumValue>(OWNER, "The best levels for the jobs of a round, and what they are worth.");
    let engine = registrar.field(
        OWNER,
        "plan: Plan",
        "The plan: levels that found a place, fair shares for the others.",
    );
    engine.register_get("plan", |o: &mut OptimumValue| o.plan.clone());
    let numbers: [Number; 4] = [
        (
            "bound",
            "Throughput relative to proportional shares, summed over jobs, that no levels can exceed.",
            |o| o.bound,
        ),
        ("ideal", "The same for the levels found, servers ignored.", |o| o.ideal),
        ("throughput", "The same for the plan.", |o| o.throughput),
        ("gap", "Distance of `ideal` from `bound`, relative.", Optimum::gap),
    ];
    for (name, doc, value) in numbers {
        let engine = registrar.field(OWNER, format!("{name}: float"), doc);
        engine.register_get(name, move |o: &mut OptimumValue| value(&o.found));
    }
    let engine = registrar.field(
        OWNER,
        "status: String",
        "How the solve of the levels ended, such as `optimal` or `gap_reached`.",
    );
    engine.register_get("status", |o: &mut OptimumValue| rhai::ImmutableString::from(&*o.found.status));
    registrar.unknown_field::<OptimumValue>(OWNER);
}
