//! Growing, for scripts: free GPUs go, level by level, to the job for which the next level is worth most. The script says
//! what a level is worth, how many GPUs there are to give and when to stop; the climbing is `rota_core::timeline`.

use std::sync::Arc;

use rhai::{Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use rota_core::time::Time;
use rota_core::timeline::{Growth, GrowthStep, Ladder, Limits, Planned};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Closure, Outcome, Session, fail};
use crate::values::timeline::TimelineValue;
use crate::values::{Column, JobValue, Jobs, Rows, number, type_label};

/// What one more level is worth.
enum Worth {
    GpuTime,
    RunTime,
    Asked(Closure),
}

const WORDS: [&str; 2] = ["gpu_time", "run_time"];
const OPTIONS: [&str; 2] = ["take", "stop_below"];

impl Worth {
    fn word(word: &str) -> Outcome<Worth> {
        match word {
            "gpu_time" => Ok(Worth::GpuTime),
            "run_time" => Ok(Worth::RunTime),
            other => {
                let hint = nearest::hint(other, WORDS).unwrap_or_else(|| {
                    "it knows \"gpu_time\" and \"run_time\", or a closure `|steps|` that returns a Column"
                        .into()
                });
                fail(format!("grow: \"{other}\" is not a criterion: {hint}"))
            }
        }
    }
}

/// Limits from a map of options, within what is free.
fn limits(options: &Map, free: u32) -> Outcome<Limits> {
    let mut limits = Limits { take: free, stop_below: None };
    for (key, value) in options {
        match key.as_str() {
            "take" => match number(value) {
                Some(take) if take.fract() == 0.0 && take >= 0.0 => limits.take = free.min(take as u32),
                _ => return fail(format!("grow: `take` must be a whole number of GPUs, got {value}")),
            },
            "stop_below" if value.is_unit() => {}
            "stop_below" => match number(value).filter(|least| !least.is_nan()) {
                Some(least) => limits.stop_below = Some(least),
                None => {
                    let got = type_label(value);
                    return fail(format!(
                        "grow: `stop_below` must be a number, or () to stop at nothing, got {got}"
                    ));
                }
            },
            other => {
                let hint = nearest::hint(other, OPTIONS)
                    .unwrap_or_else(|| format!("use one of {}", OPTIONS.join(", ")));
                return fail(format!("grow: `{other}` is not an option: {hint}"));
            }
        }
    }
    Ok(limits)
}

/// Steps that jobs could take, as a script sees them.
#[derive(Clone, Debug)]
pub(crate) struct StepsValue {
    /// The job of each step.
    jobs: Jobs,
    steps: Arc<Vec<GrowthStep>>,
    /// Levels at which jobs will do what they do not do now, with their speeds, by ladder; only plans have them.
    later: Option<Arc<Vec<(u32, f64)>>>,
}

impl StepsValue {
    fn column(&self, value: impl Fn(&GrowthStep) -> f64) -> Outcome<Column> {
        Column::compute(&self.jobs, self.steps.iter().map(value))
    }

    fn later(&self, value: impl Fn(&(u32, f64)) -> f64) -> Outcome<Column> {
        match &self.later {
            Some(later) => self.column(|step| value(&later[step.index])),
            None => fail("steps without plans have no later level: grow a Timeline"),
        }
    }

    /// What a closure says of all steps: at once as columns, or one after another.
    fn worths(&self, engine: &Engine, closure: &Closure) -> Outcome<Vec<f64>> {
        let meter = self.jobs.session.meter();
        meter.charge(self.steps.len() * 2)?;
        match closure.n_arguments() {
            1 => {
                let answer = closure.call(engine, meter, (self.clone(),))?;
                let worths = self.of_all(&answer).map_err(|error| closure.blame(error))?;
                Ok(worths)
            }
            3 => self.one_by_one(engine, closure),
            n => fail(format!("grow: the closure takes `|steps|` or `|job, at, next|`, not {n} arguments")),
        }
    }

    fn of_all(&self, answer: &Dynamic) -> Outcome<Vec<f64>> {
        let Some(worths) = answer.read_lock::<Column>() else {
            return fail(format!(
                "grow: the closure |steps| must return a Column, one number for each step, got {}",
                type_label(answer)
            ));
        };
        if !worths.jobs.is_same(&self.jobs) {
            return fail(format!(
                "grow: the closure returned a Column of {} jobs, expected one of the {} steps: take numbers of jobs from \
                 `steps.jobs`",
                worths.jobs.len(),
                self.jobs.len()
            ));
        }
        let worths = worths.values();
        match worths.iter().position(|worth| worth.is_nan()) {
            None => Ok(worths.to_vec()),
            Some(odd) => {
                let GrowthStep { at, next, .. } = self.steps[odd];
                let id = self.job(odd).id();
                fail(format!("grow: what job {id} gains from {at} to {next} GPUs is not a number (NaN)"))
            }
        }
    }

    fn job(&self, position: usize) -> JobValue {
        JobValue::new(&self.jobs.session, self.jobs.row_at(position) as u32)
    }

    fn one_by_one(&self, engine: &Engine, closure: &Closure) -> Outcome<Vec<f64>> {
        let mut worths = Vec::with_capacity(self.steps.len());
        for (position, step) in self.steps.iter().enumerate() {
            let job = self.job(position);
            let args = (job.clone(), i64::from(step.at), i64::from(step.next));
            let answer = closure.call(engine, self.jobs.session.meter(), args)?;
            match number(&answer).filter(|worth| !worth.is_nan()) {
                Some(worth) => worths.push(worth),
                None => {
                    let got = if answer.is_float() { "NaN" } else { type_label(&answer) };
                    return fail(format!(
                        "grow: the closure |job, at, next| must return a number, got {got} for job {}",
                        job.id()
                    ));
                }
            }
        }
        Ok(worths)
    }
}

/// Lets jobs grow as a closure says; `rows` has the row of each ladder.
fn climb(
    engine: &Engine,
    session: &Arc<Session>,
    growth: Growth<'_>,
    rows: impl Fn(usize) -> u32,
    later: Option<Arc<Vec<(u32, f64)>>>,
    closure: &Closure,
    limits: Limits,
) -> Outcome<Vec<u32>> {
    let Limits { take, stop_below } = limits;
    if growth.steps().is_empty() {
        return Ok(growth.run(&[], stop_below));
    }
    session.meter().charge(growth.steps().len())?;
    // Where every step can be taken, it does not matter which is taken first.
    let wanted: u64 = growth.steps().iter().map(|step| u64::from(step.next - step.at)).sum();
    if stop_below.is_none() && wanted <= u64::from(take) {
        let worths = vec![0.0; growth.steps().len()];
        return Ok(growth.run(&worths, None));
    }
    let rows = growth.steps().iter().map(|step| rows(step.index)).collect();
    let jobs = Jobs::new(session, Rows::Steps(Arc::new(rows)));
    let steps = StepsValue { jobs, steps: Arc::new(growth.steps().to_vec()), later };
    let worths = steps.worths(engine, closure)?;
    Ok(growth.run(&worths, stop_below))
}

impl TimelineValue {
    fn grow(self, engine: &Engine, worth: &Worth, options: &Map) -> Outcome<TimelineValue> {
        let mut ahead = self.ahead()?;
        self.session.meter().charge(ahead.planned().len() + ahead.timeline().n_gpus() as usize)?;
        let limits = limits(options, ahead.free_now())?;
        let rule: fn(&Planned, u32, u32) -> f64 = match worth {
            Worth::GpuTime => Planned::gpu_time_saved,
            Worth::RunTime => Planned::time_saved,
            Worth::Asked(closure) => {
                let growth = Growth::new(ahead.ladders(), limits.take);
                let row = |index: usize| ahead.planned()[index].row;
                let later = Some(Arc::new(ahead.planned().iter().map(Planned::later_level).collect()));
                let gpus = climb(engine, &self.session, growth, row, later, closure, limits)?;
                Arc::make_mut(&mut ahead).grow_to(&gpus);
                return Ok(self.with_plans(ahead));
            }
        };
        Arc::make_mut(&mut ahead).grow(limits, rule);
        Ok(self.with_plans(ahead))
    }
}

/// Levels for a set of jobs, without a plan for later.
fn grow_counts(engine: &Engine, from: &Column, closure: FnPtr, options: &Map) -> Outcome<Column> {
    let jobs = &from.jobs;
    let session: &Arc<Session> = &jobs.session;
    let snapshot = &session.snapshot;
    session.meter().charge(jobs.len() * 2 + snapshot.n_gpus_up() as usize)?;
    let begin = crate::values::levels::counts("grow", from)?;
    let begun: u64 = begin.iter().map(|gpus| u64::from(*gpus)).sum();
    let free = u64::from(snapshot.n_gpus_up()).saturating_sub(begun);
    let limits = limits(options, free as u32)?;
    let closure = session.shared.closure(closure);
    let positions: Vec<usize> = jobs.positions_by_id().collect();
    let ladder = |position: &usize| Ladder {
        levels: session.speeds().of(snapshot, jobs.row_at(*position) as u32).levels(),
        gpus: begin[*position],
        deadline: Time::MAX,
    };
    let growth = Growth::new(positions.iter().map(ladder).collect(), limits.take);
    let row = |index: usize| jobs.row_at(positions[index]) as u32;
    let gpus = climb(engine, session, growth, row, None, &closure, limits)?;
    let mut values = vec![0.0; jobs.len()];
    positions.iter().zip(gpus).for_each(|(position, gpus)| values[*position] = f64::from(gpus));
    Column::compute(jobs, values.into_iter())
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "Timeline",
        "grow(worth, options: Map) -> Timeline",
        "Gives GPUs that are free now to planned jobs, level by level, each to the job for which its next level is worth most; \
         ties go to the earlier deadline, then to the job planned first. `worth` is a closure `|steps|` that returns a Column, a \
         number for each of the Steps; or `|job, at, next|` that returns a number (slow); or a word: \
         `\"gpu_time\"` (the default: GPU time saved, restarts weighed) or `\"run_time\"` (seconds saved for each GPU). Options: \
         `take`, how many GPUs may be given (default and limit: all that are free now), and `stop_below`, the worth at which \
         to stop (default `()`: give all). A closure is not asked where there are GPUs for every step and no `stop_below`.",
    );
    engine.register_fn("grow", |ctx: NativeCallContext, t: TimelineValue| {
        t.grow(ctx.engine(), &Worth::GpuTime, &Map::new())
    });
    engine.register_fn("grow", |ctx: NativeCallContext, t: TimelineValue, word: ImmutableString| {
        t.grow(ctx.engine(), &Worth::word(&word)?, &Map::new())
    });
    engine.register_fn(
        "grow",
        |ctx: NativeCallContext, t: TimelineValue, word: ImmutableString, options: Map| {
            t.grow(ctx.engine(), &Worth::word(&word)?, &options)
        },
    );
    engine.register_fn("grow", |ctx: NativeCallContext, t: TimelineValue, closure: FnPtr| {
        let worth = Worth::Asked(t.session.shared.closure(closure));
        t.grow(ctx.engine(), &worth, &Map::new())
    });
    engine.register_fn("grow", |ctx: NativeCallContext, t: TimelineValue, closure: FnPtr, options: Map| {
        let worth = Worth::Asked(t.session.shared.closure(closure));
        t.grow(ctx.engine(), &worth, &options)
    });
    engine.register_fn("grow", |_: TimelineValue, other: Dynamic| -> Outcome<TimelineValue> {
        fail(format!(
            "grow: the worth of a level is a closure `|steps|` or a word, got {}",
            type_label(&other)
        ))
    });
    let engine = registrar.method(
        "Column",
        "grow(worth: Fn, options: Map) -> Column",
        "Numbers of GPUs that grow: the cluster's other GPUs go, level by level, to the job for which its next level is worth \
         most; ties go to the job that arrived first. `worth` is a closure and options are as in `Timeline.grow`: `let none = jobs.held \
         * 0; none.grow(|steps| steps.next_rate - steps.rate)`.",
    );
    engine.register_fn("grow", |ctx: NativeCallContext, from: Column, worth: FnPtr| {
        grow_counts(ctx.engine(), &from, worth, &Map::new())
    });
    engine.register_fn("grow", |ctx: NativeCallContext, from: Column, worth: FnPtr, options: Map| {
        grow_counts(ctx.engine(), &from, worth, &options)
    });
    steps(registrar);
}

fn steps(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Steps";
    registrar.class::<StepsValue>(
        OWNER,
        "The steps to the next level that jobs could take, which `grow` asks about. Its fields are columns, one number for each step.",
    );
    registrar
        .field(OWNER, "at: Column", "GPUs before the step.")
        .register_get("at", |steps: &mut StepsValue| steps.column(|step| f64::from(step.at)));
    registrar
        .field(OWNER, "next: Column", "GPUs after the step.")
        .register_get("next", |steps: &mut StepsValue| steps.column(|step| f64::from(step.next)));
    registrar
        .field(OWNER, "rate: Column", "Estimated iterations per second before the step; 0 without GPUs.")
        .register_get("rate", |steps: &mut StepsValue| steps.column(|step| step.rate));
    registrar
        .field(OWNER, "next_rate: Column", "Estimated iterations per second after the step.")
        .register_get("next_rate", |steps: &mut StepsValue| steps.column(|step| step.next_rate));
    let engine = registrar.field(
        OWNER,
        "later: Column",
        "Of planned jobs: GPUs with which the work that is not done now will be done, the last of the job's plan, else its most \
         efficient number.",
    );
    engine.register_get("later", |steps: &mut StepsValue| steps.later(|level| f64::from(level.0)));
    registrar
        .field(OWNER, "later_rate: Column", "Iterations per second with `later` GPUs.")
        .register_get("later_rate", |steps: &mut StepsValue| steps.later(|level| level.1));
    let engine = registrar.field(
        OWNER,
        "jobs: Jobs",
        "The job of each step, a job once for each of its steps: `steps.jobs.deadline`. To compute with; they cannot be ranked.",
    );
    engine.register_get("jobs", |steps: &mut StepsValue| steps.jobs.clone());
    registrar.unknown_field::<StepsValue>(OWNER);
}
