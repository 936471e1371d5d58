//! Growing, for scripts: free GPUs go, level by level, to the job for which the next level is worth most. The script says
//! what a level is worth, how many GPUs there are to give and when to stop; the climbing is `rota_core::timeline`.

use std::sync::Arc;

use rhai::{Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use rota_core::time::Time;
use rota_core::timeline::{Growth, Ladder, Limits, Planned};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Closure, Outcome, Session, fail};
use crate::values::timeline::TimelineValue;
use crate::values::{Column, JobValue, Jobs, View, number, type_label};

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
                    "it knows \"gpu_time\" and \"run_time\", or a closure `|at, next|` that returns a Column".into()
                });
                fail(format!("grow: \"{other}\" is no criterion: {hint}"))
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

/// Asks a closure what steps are worth: all at once as columns, or one job after another.
struct Asking<'a> {
    engine: &'a Engine,
    closure: &'a Closure,
    jobs: Jobs,
    /// Position in columns of each job that may grow, in the order of the ladders.
    positions: Vec<usize>,
}

impl Asking<'_> {
    fn worth(&self, at: &[u32], next: &[u32]) -> Outcome<Vec<f64>> {
        self.jobs.session.meter().charge(self.jobs.len() * 2)?;
        if self.closure.n_arguments() == 3 {
            return self.one_by_one(at, next);
        }
        let column = |gpus: &[u32]| {
            let mut values = vec![0.0; self.jobs.len()];
            self.positions.iter().zip(gpus).for_each(|(position, gpus)| values[*position] = f64::from(*gpus));
            Column::compute(&self.jobs, values.into_iter())
        };
        let args = (column(at)?, column(next)?);
        let answer = self.closure.call(self.engine, self.jobs.session.meter(), args)?;
        let Some(worths) = answer.read_lock::<Column>() else {
            return fail(format!(
                "grow: the closure |at, next| must return a Column, one number for each job, got {}",
                type_label(&answer)
            ));
        };
        if !worths.jobs.is_same(&self.jobs) {
            return fail(format!(
                "grow: the closure returned a Column of {} jobs, expected one of the {} jobs that `at` and `next` are of",
                worths.jobs.len(),
                self.jobs.len()
            ));
        }
        let values = worths.values();
        let worths: Vec<f64> = self.positions.iter().map(|position| values[*position]).collect();
        let is_odd = |index: &usize| worths[*index].is_nan() && next[*index] > at[*index];
        match (0..worths.len()).find(is_odd) {
            Some(index) => fail(format!(
                "grow: what job {} gains from {} to {} GPUs is not a number (NaN)",
                self.job(index).id(),
                at[index],
                next[index]
            )),
            None => Ok(worths),
        }
    }

    fn job(&self, index: usize) -> JobValue {
        JobValue::new(&self.jobs.session, self.jobs.row_at(self.positions[index]) as u32)
    }

    fn one_by_one(&self, at: &[u32], next: &[u32]) -> Outcome<Vec<f64>> {
        let mut worths = vec![f64::NEG_INFINITY; at.len()];
        for index in (0..at.len()).filter(|index| next[*index] > at[*index]) {
            let job = self.job(index);
            let args = (job.clone(), i64::from(at[index]), i64::from(next[index]));
            let answer = self.closure.call(self.engine, self.jobs.session.meter(), args)?;
            match number(&answer).filter(|worth| !worth.is_nan()) {
                Some(worth) => worths[index] = worth,
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

impl TimelineValue {
    fn grow(self, engine: &Engine, worth: &Worth, options: &Map) -> Outcome<TimelineValue> {
        let mut ahead = self.ahead()?;
        self.session.meter().charge(ahead.planned().len() + ahead.timeline().n_gpus() as usize)?;
        let limits = limits(options, ahead.free_now())?;
        let rule: fn(&Planned, u32, u32) -> f64 = match worth {
            Worth::GpuTime => Planned::gpu_time_saved,
            Worth::RunTime => Planned::time_saved,
            Worth::Asked(closure) => {
                let jobs = View(Arc::clone(&self.session)).jobs();
                let position = |planned: &Planned| jobs.position_of(planned.row as usize);
                let Some(positions) = ahead.planned().iter().map(position).collect::<Option<Vec<usize>>>()
                else {
                    return fail("grow: a planned job is not one of `view.jobs`: it may not run yet");
                };
                let asking = Asking { engine, closure, jobs: jobs.clone(), positions };
                let gpus = Growth::new(ahead.ladders()).run(limits, |at, next| asking.worth(at, next))?;
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
    let ladders = positions.iter().map(ladder).collect();
    let asking = Asking { engine, closure: &closure, jobs: jobs.clone(), positions };
    let gpus = Growth::new(ladders).run(limits, |at, next| asking.worth(at, next))?;
    let mut values = vec![0.0; jobs.len()];
    asking.positions.iter().zip(gpus).for_each(|(position, gpus)| values[*position] = f64::from(gpus));
    Column::compute(jobs, values.into_iter())
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "Timeline",
        "grow(worth, options: Map) -> Timeline",
        "Gives GPUs that are free now to planned jobs, level by level, each to the job for which its next level is worth most; \
         ties go to the earlier deadline, then to who was planned first. `worth` is a closure `|at, next|` over two columns of \
         GPU counts, before and after the step, that returns a Column; or `|job, at, next|` of one job (slow); or a word: \
         `\"gpu_time\"` (the default: GPU time saved, restarts weighed) or `\"run_time\"` (seconds saved for each GPU). Options: \
         `take`, how many GPUs may be given (default and limit: all that are free now), and `stop_below`, the worth at which \
         to stop (default `()`: give all).",
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
            "grow: the worth of a level is a closure `|at, next|` or a word, got {}",
            type_label(&other)
        ))
    });
    let engine = registrar.method(
        "Column",
        "grow(worth: Fn, options: Map) -> Column",
        "Numbers of GPUs that grow: the cluster's other GPUs go, level by level, to the job for which its next level is worth \
         most; ties go to who arrived first. `worth` is a closure and options are as in `Timeline.grow`: `let none = jobs.held \
         * 0; none.grow(|at, next| jobs.rate(next) - jobs.rate(at))`.",
    );
    engine.register_fn("grow", |ctx: NativeCallContext, from: Column, worth: FnPtr| {
        grow_counts(ctx.engine(), &from, worth, &Map::new())
    });
    engine.register_fn("grow", |ctx: NativeCallContext, from: Column, worth: FnPtr, options: Map| {
        grow_counts(ctx.engine(), &from, worth, &options)
    });
}
